"""`yomi dataset play shogi` on a cluster. A unit is a game."""

from __future__ import annotations

import itertools
from collections.abc import Generator, Sequence
from typing import Any

from yomi.engine.clients.client import EngineError
from yomi.engine.clients.spec import EngineSpec, is_own
from yomi.engine.clients.usi import UsiClient
from yomi.engine.clusters.actors import ClusterOptions, Places, Recipe
from yomi.engine.clusters.units import Report, UnitPool, UnitWorker
from yomi.engine.color import BLACK, DRAW, WHITE
from yomi.engine.datasets.making import Log
from yomi.engine.matches.units import placed
from yomi.engine.shogi.datasets.played import FAILURES, PlayedPositions, ShogiPlayOptions, play_positions
from yomi.engine.shogi.records.record import GameRecord

PACKED_BYTES = 32


class PlayedUnits(UnitWorker):
    """Plays games in an actor. The unit is the number of the game."""

    def __init__(
        self,
        places: Places,
        options: ShogiPlayOptions,
        spec: EngineSpec,
        openings: Sequence[GameRecord],
        is_yomi: bool,
    ) -> None:
        super().__init__()
        self._options, self._spec, self._openings = options, placed(spec, places, is_yomi), openings
        self._engine: UsiClient | None = None
        self._failures = 0

    def work(self, unit: int, payload: Any) -> Report:
        """Raises EngineError if the engine does not start or fails again and again."""
        self._engine = self._engine or UsiClient(self._spec)
        try:
            played = play_positions(self._engine, self._options, self._openings, unit)
        except EngineError as error:
            self._failures += 1
            if self._failures == FAILURES:
                raise
            self.close()
            return Report({"failed": str(error)})
        self._failures = 0
        rows = [[packed.hex(), score, move] for packed, score, move in played.rows]
        return Report({"winner": played.winner, "ending": played.ending, "plies": played.plies, "rows": rows})

    def close(self) -> None:
        if self._engine is not None:
            self._engine.close()
        self._engine = None


def _checked(number: int, report: Report) -> PlayedPositions | str:
    """Return a game, or why it failed. Raises ValueError for anything else."""
    if isinstance(report.data, dict) and isinstance(report.data.get("failed"), str):
        return str(report.data["failed"])
    winner, ending, plies, rows = (report.data[name] for name in ("winner", "ending", "plies", "rows"))
    if winner not in (BLACK, WHITE, DRAW) or not isinstance(ending, str) or type(plies) is not int:
        raise ValueError("expected a game with a result")
    found = [(bytes.fromhex(packed), int(score), int(move)) for packed, score, move in rows]
    if any(len(packed) != PACKED_BYTES for packed, _, _ in found):
        raise ValueError(f"expected boards of {PACKED_BYTES} bytes")
    return PlayedPositions(number, winner, ending, plies, found)


def games_on_cluster(
    cluster: ClusterOptions,
    options: ShogiPlayOptions,
    spec: EngineSpec,
    openings: Sequence[GameRecord],
    first: int,
    log: Log,
) -> Generator[PlayedPositions | None, None, None]:
    """Yield games in order, from game `first`, without an end. None: the game failed.

    Raises:
        ClusterError: the cluster is lost, or engines fail again and again.
    """
    recipe = Recipe(PlayedUnits, (options, spec, openings, is_own(spec)))
    with UnitPool(cluster, lambda actors: (recipe, 1), log) as pool:
        for number, played in pool.run(itertools.count(first), lambda number: None, _checked, in_order=True):
            if isinstance(played, str):
                log(f"game {number} left out: {played}")
                yield None
            else:
                yield played

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Generic

import numpy as np

from yomi.engine.learning.replay import RECORDS
from yomi.engine.learning.rows import ply_of, rows_of, write_games
from yomi.engine.learning.selfplay import FinishedGame, Ply
from yomi.engine.play import G
from yomi.nets.data.shards import Array, Manifest, begin_dataset

if TYPE_CHECKING:
    from yomi.engine.learning.learnable import Learnable
    from yomi.engine.play import Ended
    from yomi.engine.players.request import Decision

SHARD_ROWS = 512


class Collection(Generic[G]):
    """Writes games to a growing data set, with their records. `close` writes the rest."""

    def __init__(self, folder: Path, learnable: Learnable[G]) -> None:
        """Create a data set, or extend an existing one. Records are in its folder `games`.

        Raises:
            NetworkError: the folder contains a data set of another kind.
            OSError: the folder cannot be written.
        """
        self.folder, self.learnable = folder, learnable
        dataset = begin_dataset(folder, Manifest(learnable.features))
        (folder / RECORDS).mkdir(exist_ok=True)
        self._number = max((int(shard.path.name.rpartition("-")[2]) for shard in dataset.shards), default=0)
        self._rng = np.random.default_rng(0)  # nothing is drawn without surprise
        self._games: list[tuple[dict[str, Array], bytes]] = []
        self._first, self._plies = 0, list[Ply]()

    def begin(self, game: G) -> None:
        """Start a game. It may have moves."""
        self._first, self._plies = game.ply, []

    def note(self, game: G, decision: Decision) -> None:
        """Add a decision. Call it before the move is played."""
        self._plies.append(ply_of(game.position, decision, self.learnable.spec))

    def end(self, game: G, ended: Ended, name: str) -> None:
        """Add a finished game with the players' names. A game without searches is left out.

        Raises:
            OSError: a shard cannot be written. Its games are kept for the next call.
        """
        finished = FinishedGame(game, ended, self.learnable.outcome(game, ended), self._first, self._plies)
        rows = rows_of(finished, self.learnable, 0.0, self._rng)
        if len(rows["value"]):
            self._games.append((rows, self.learnable.record(finished, name)))
        if sum(len(rows["value"]) for rows, _ in self._games) >= SHARD_ROWS:
            self.close()

    def close(self) -> None:
        """Write the remaining games.

        Raises:
            OSError: they cannot be written.
        """
        if not self._games:
            return
        size = self.learnable.spec.planes_shape[-1]
        suffix = self.learnable.suffix
        write_games(self.folder, self.folder / RECORDS, self._number + 1, size, suffix, self._games)
        self._number += 1
        self._games.clear()

"""Shogi for the learning loop: how games begin and end, and what is learned of them."""

from __future__ import annotations

import functools
import weakref
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from yomi.engine.learning.learnable import Outcome
from yomi.engine.learning.rows import RecordedGame, counts_of, planes_of, plies_by_move
from yomi.engine.option_row import OptionError
from yomi.engine.play import DECLARATION, Ended
from yomi.engine.records import record_score
from yomi.engine.shogi.records.files import load_records, to_bytes
from yomi.engine.shogi.records.record import GameRecord, RecordedMove, RecordError, record_of
from yomi.engine.shogi.referee import ShogiReferee, csa_ending
from yomi.engine.shogi.selfplay import begin
from yomi.native.datasets.packed import write_boards
from yomi.native.shogi.position import FORM_DLSHOGI
from yomi.native.shogi.spec import DLSHOGI_FEATURES, shogi_spec
from yomi.native.shogi.tables import HAND_TYPES, SQUARES
from yomi.nets.dlshogi.network import DLSHOGI_PLANES
from yomi.nets.features import FEATURE_SETS, SHOGI_BOARD

if TYPE_CHECKING:
    from pathlib import Path

    import numpy.typing as npt

    from yomi.engine.learning.rows import Encoder
    from yomi.engine.learning.selfplay import FinishedGame
    from yomi.engine.options import Options
    from yomi.engine.shogi.game import ShogiGame
    from yomi.native.spec import GameSpec
    from yomi.nets.data.shards import Arrays
    from yomi.nets.features import FeatureSet

SPARSE_KIND = "sparse-shogi"
"""Of yomi.nets.definitions: such networks see boards."""
SEPARATOR = b"/\n"
"""Of games in CSA; the last one ends the file as well."""


class LearnableShogi:
    """See yomi.engine.learning.learnable.Learnable. Without points, and without a board that anyone owns."""

    suffix = ".csa"
    has_score = False
    boards: Sequence[Mapping[str, Any]] = ({},)

    def __init__(
        self,
        options: Options,
        openings: Sequence[GameRecord] = (GameRecord(),),
        named: str = "",
        network: Mapping[str, Any] | None = None,
    ) -> None:
        """Begin games by the options' rules, with openings that are drawn.

        Args:
            options: tell the rules, the mates that are looked for at leaves, and the scale of evaluations.
            openings: one at least.
            named: their file with its digest; empty for the usual position.
            network: [network] of a training configuration, if not the usual one.

        Raises:
            OptionError: an opening has an illegal move.
        """
        self.network = network or {"kind": "dlshogi-resnet", "blocks": 4, "channels": 48}
        extras = int(self.network.get("extras", DLSHOGI_FEATURES[1]))
        is_sparse = self.network.get("kind") == SPARSE_KIND
        self.features = SHOGI_BOARD if is_sparse else f"dlshogi-{DLSHOGI_PLANES}-{extras}"
        self.spec, self._show = seen_by(FEATURE_SETS[self.features])
        self.fixed_settings: Mapping[str, Any] = {"openings": named}
        self._options = options
        # Positions count their moves from 0: what comes before them is not known.
        self._openings = [replace(each, initial=replace(each.initial, number=1)) for each in openings]
        self._opened: weakref.WeakKeyDictionary[ShogiGame, GameRecord] = weakref.WeakKeyDictionary()
        self._referee = ShogiReferee()
        for each in self._openings:
            begin(options, each)

    def new_game(self, rng: np.random.Generator, lead: float) -> ShogiGame:
        """Return a game after an opening."""
        return self._begin(self._openings[int(rng.integers(len(self._openings)))])

    def restart(self, game: ShogiGame) -> ShogiGame:
        """Return a game after the same opening."""
        return self._begin(self._opened[game])

    def judge(self, game: ShogiGame) -> Ended | None:
        """Return how a game has ended, as soon as a win can be declared by that; None while it goes on."""
        ended = self._referee.judge(game)
        return Ended(game.side_to_move, DECLARATION) if ended is None and game.can_declare else ended

    def outcome(self, game: ShogiGame, ended: Ended) -> Outcome:
        """Return the winner."""
        return Outcome(ended.winner)

    def komi(self, game: ShogiGame) -> float:
        """Return 0."""
        return 0.0

    def encode(self, positions: npt.NDArray[np.void], history: npt.NDArray[Any]) -> Arrays:
        """Return dlshogi's planes and numbers, or boards and hands for sparse networks."""
        return self._show(positions, history)

    def record(self, finished: FinishedGame[ShogiGame], name: str) -> bytes:
        """Return CSA with evaluations, and the visits that are learned, as comments; what separates games follows."""
        game, notes = finished.game, []
        for (_, move), ply in zip(game.moves, plies_by_move(finished), strict=True):
            note = RecordedMove(move)
            if ply is not None and ply.found is not None:
                note.score = record_score(0.5 + ply.found.value / 2.0, None, self._options.centipawns)
                note.counts = counts_of(ply)
            notes.append(note)
        ending = csa_ending(finished.ended, game)
        black, white = finished.names(name)
        return to_bytes([record_of(game, notes, black=black, white=white, ending=ending)], self.suffix) + SEPARATOR

    def _begin(self, opening: GameRecord) -> ShogiGame:
        game = begin(self._options, opening)
        game.position["mate_depth"] = self._options.leaf_mate_depth
        self._opened[game] = opening
        return game


def replay(path: Path, features: FeatureSet) -> tuple[GameSpec, Encoder, list[RecordedGame[ShogiGame]]]:
    """See yomi.engine.game.Game.replay; all legal moves may be named, also those that searches waive."""
    if features.joined:
        raise OptionError(f"{path}: rows of {features.name} found, expected dlshogi's features or {SHOGI_BOARD}")
    try:
        games = [
            RecordedGame(each.game(0), [note.move for note in each.moves], each.winner) for each in load_records(path)
        ]
    except RecordError as error:
        raise OptionError(str(error)) from None
    for recorded in games:
        recorded.game.position["all_moves"] = 1
    return *seen_by(features), games


def seen_by(features: FeatureSet) -> tuple[GameSpec, Encoder]:
    """Return shogi as networks of a feature set see it, and what writes the columns of their data sets."""
    if features.name == SHOGI_BOARD:
        return shogi_spec(), boards_of
    spec = shogi_spec(FORM_DLSHOGI, features.extras)
    return spec, functools.partial(planes_of, spec=spec, features=features)


def boards_of(positions: npt.NDArray[np.void], history: npt.NDArray[Any]) -> Arrays:
    """Return boards and hands of positions as the side to move sees them."""
    count = len(positions)
    boards, hands = np.zeros((count, SQUARES), np.uint8), np.zeros((count, 2 * len(HAND_TYPES)), np.uint8)
    write_boards(positions, boards, hands)
    return {"planes": np.zeros((count, 0), np.uint8), "levels": boards, "globals": hands}

"""Othello for the learning loop."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.games.othello.game import MOVES, OthelloGame, OthelloReferee
from tests.games.othello.kernels import othello_spec
from tests.games.othello.network import FEATURES
from yomi.engine.learning.rows import planes_of
from yomi.engine.learning.selfplay import Outcome
from yomi.nets.metadata import feature_set

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from yomi.engine.learning.selfplay import FinishedGame
    from yomi.engine.play import Ended
    from yomi.nets.data.shards import Arrays

NETWORK = f"{Path(__file__).with_name('torch_network.py')}:OthelloResNet"


class LearnableOthello:
    """See yomi.engine.learning.selfplay.Learnable. Wins are learned, not discs."""

    features = FEATURES
    suffix = ".txt"
    has_score = False
    boards: Sequence[Mapping[str, Any]] = ({},)
    fixed_settings: Mapping[str, Any] = {}

    def __init__(self, size: int) -> None:
        """Begin games on a board of this size."""
        self.size, self.spec = size, othello_spec(size)
        self.network: Mapping[str, Any] = {"kind": NETWORK, "board_size": size}

    def new_game(self, rng: np.random.Generator, lead: float) -> OthelloGame:
        """Return the usual four discs; nothing is drawn."""
        return OthelloGame(self.size)

    def restart(self, game: OthelloGame) -> OthelloGame:
        """Return the same."""
        return OthelloGame(self.size)

    def first_position(self, game: OthelloGame) -> dict[str, Any]:
        """Return nothing: pages cannot draw these boards."""
        return {}

    def judge(self, game: OthelloGame) -> Ended | None:
        """Return how a game has ended; None while it goes on."""
        return OthelloReferee().judge(game)

    def outcome(self, game: OthelloGame, ended: Ended) -> Outcome:
        """Return the winner."""
        return Outcome(ended.winner)

    def komi(self, game: OthelloGame) -> float:
        """Return none."""
        return 0.0

    def encode(self, positions: npt.NDArray[np.void], history: npt.NDArray[Any]) -> Arrays:
        """Return the planes."""
        return planes_of(positions, history, self.spec, feature_set(self.features))

    def record(self, finished: FinishedGame[OthelloGame], name: str) -> bytes:
        """Return the moves and Black's discs minus White's, on one line."""
        moves = " ".join(MOVES[move] for _, move in finished.game.moves)
        return f"{moves} {finished.ended.detail}\n".encode()

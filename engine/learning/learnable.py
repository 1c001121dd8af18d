"""The interface between a game and the learning loop."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from yomi.engine.play import G

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from yomi.engine.learning.selfplay import FinishedGame
    from yomi.engine.play import Ended
    from yomi.native.spec import GameSpec
    from yomi.nets.data.shards import Arrays


@dataclass(frozen=True, slots=True)
class Outcome:
    """The labels that a finished game gives. The score includes komi."""

    winner: int  # BLACK, WHITE or DRAW
    margin: float | None = None  # Black's lead in points
    owners: npt.NDArray[np.float32] | None = None
    """[area], +1 for Black. The points are in the order of `yomi.native.game.add_ownership`."""


class Learnable(Protocol[G]):
    """A game that can be learned."""

    features: str  # feature set of the rows, a name of yomi.nets.features
    spec: GameSpec  # its planes are those of the feature set
    network: Mapping[str, Any]
    """The default table [network] of the training configuration."""
    suffix: str  # of the records; one file holds many games
    has_score: bool  # whether the game has a score
    boards: Sequence[Mapping[str, Any]]
    """One set of option values per board. Games are played on all of them; the options' own board comes first."""
    fixed_settings: Mapping[str, Any]
    """Settings of the game besides the options. A run can only continue with the same values."""

    def new_game(self, rng: np.random.Generator, lead: float) -> G:
        """Return a new game. `lead`, Black's mean score in recent games without komi, is the mean of the drawn komi."""

    def restart(self, game: G) -> G:
        """Return a game with the same beginning as `game`, without its moves."""

    def judge(self, game: G) -> Ended | None:
        """Return the end of a game, or None while it continues."""

    def outcome(self, game: G, ended: Ended) -> Outcome: ...

    def komi(self, game: G) -> float:
        # 0 in games without a score
        ...

    def encode(self, positions: npt.NDArray[np.void], history: npt.NDArray[Any]) -> Arrays:
        """Return the input columns of a data set, for positions of one game with its history. They have the spec's
        marks.
        """

    def record(self, finished: FinishedGame[G], name: str) -> bytes:
        """Return the record of a game, with the search results of its moves. `name` is the network's."""

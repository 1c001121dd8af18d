"""What the learning loop knows of a game."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from yomi.engine.play import G

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from yomi.engine.learning.selfplay import Finished
    from yomi.engine.play import Ended
    from yomi.native.spec import GameSpec
    from yomi.nets.data.shards import Arrays


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a game ended, as labels; points are those of the game's own result, komi included."""

    winner: int
    """BLACK, WHITE or DRAW."""
    margin: float | None = None
    """Points that Black is ahead by."""
    owners: npt.NDArray[np.float32] | None = None
    """[area], +1 Black; as yomi.native.game.add_ownership lays the board out."""


class Learnable(Protocol[G]):
    """A game that can be learned."""

    features: str
    """The feature set that is learned from, of yomi.nets.features."""
    spec: GameSpec
    """Of the game as rows show it: its planes are those of the feature set."""
    network: Mapping[str, Any]
    """[network] of a training configuration: kind and options of what is trained unless told otherwise."""
    suffix: str
    """Of the records, which are joined to files of many games."""
    points: bool
    """Whether there is a score."""
    boards: Sequence[Mapping[str, Any]]
    """Options of each board that games are played on, where they are others; its own come first."""
    asked: Mapping[str, Any]
    """What its games depend on besides the options; a run goes on with the same only."""

    def begin(self, rng: np.random.Generator, lead: float) -> G:
        """Return a game at its beginning.

        Args:
            rng: draws rules, komi, an opening.
            lead: points that the games of late ended with on average for Black, komi not counted.
        """

    def again(self, game: G) -> G:
        """Return a game that begins as another one did, without its moves."""

    def judge(self, game: G) -> Ended | None:
        """Return how a game has ended; None while it goes on."""

    def outcome(self, game: G, ended: Ended) -> Outcome:
        """Return the labels of a finished game."""

    def komi(self, game: G) -> float:
        """Return the points that White has been given; 0 without a score."""

    def show(self, positions: npt.NDArray[np.void], history: npt.NDArray[Any]) -> Arrays:
        """Return the columns of a data set that hold what networks see.

        Args:
            positions: of one game, with the spec's marks.
            history: the game's.
        """

    def record(self, finished: Finished[G], name: str) -> bytes:
        """Return a game's record, with what was found of its moves.

        Args:
            finished: the game.
            name: of the network.
        """

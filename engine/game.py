"""What the shared parts of the engine know of a game. `engine.go` and `engine.shogi` describe theirs."""

from __future__ import annotations

import abc
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from engine.play import G

if TYPE_CHECKING:
    from engine.evaluators.network import Format
    from engine.options import Options
    from engine.play import Referee
    from engine.players.player import Player


P = TypeVar("P", bound="Player[Any]")


class Game(abc.ABC, Generic[G, P]):
    """A game: its positions, its players and its rules."""

    name: str
    """As commands and options name it."""
    formats: tuple[type[Format], ...]
    """Of the networks that play it, in the order in which they are asked whether they know a file."""
    idle_moves: tuple[int, ...] = ()
    """Moves that change nothing on the board, such as a pass."""

    @abc.abstractmethod
    def new_game(self, options: Options) -> G:
        """Return the beginning of a game by the options.

        Raises:
            ValueError: they do not go together; one line that says what was expected.
        """

    @abc.abstractmethod
    def make_player(self, options: Options) -> P:
        """Return the player that the options describe; slow: kernels and the network are loaded.

        Raises:
            LoadingError: it cannot be made.
            ValueError: see `new_game`.
        """

    @abc.abstractmethod
    def referee(self, player: P) -> Referee[G]:
        """Return what ends games of this process; if a score needs a verdict it is the player's."""

    @abc.abstractmethod
    def format_opening(self, game: G) -> str:
        """Return the moves of a game as a match keeps its openings."""

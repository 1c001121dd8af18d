"""One game: two sides that choose moves and a referee that knows when it is over.

Self-play, the openings of matches and the measurement of levels are this loop with other sides, referees and recorders.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

from yomi.engine.color import DRAW, opponent
from yomi.engine.players.request import Decision, PlayableGame, Request

if TYPE_CHECKING:
    from yomi.engine.players.player import Player

RESIGNATION = "resignation"
SCORE = "score"
TIME = "time"
ILLEGAL = "illegal move"
FAILURE = "failure"
ADJUDICATION = "adjudication"
MAX_MOVES = "max moves"
NO_RESULT = "no result"
MATE = "mate"
REPETITION = "repetition"
PERPETUAL_CHECK = "perpetual check"
DECLARATION = "declaration"


@dataclass(frozen=True, slots=True)
class Ended:
    """How a game ended."""

    winner: int
    """BLACK, WHITE or DRAW (also for a game without result)."""
    ending: str
    """One of the names above."""
    detail: str = ""
    """Score, illegal move, last words: on one line."""
    score: float | None = field(default=None, compare=False)  # Black's points minus White's, if the game was counted


G = TypeVar("G", bound=PlayableGame)
G_contra = TypeVar("G_contra", bound=PlayableGame, contravariant=True)


class Side(Protocol[G_contra]):
    """Chooses the moves of one color, or of both."""

    def choose(self, game: G_contra) -> Decision:
        """Return the decision of the side to move; the game stays as it is."""


class Referee(Generic[G_contra]):
    """Knows when games are over, one after the other."""

    def start(self, game: G_contra) -> None:
        """Make ready what scores games such as this one; by itself a referee needs nothing."""

    def judge(self, game: G_contra) -> Ended | None:
        """Return how the game has ended by the rules, or was broken off and scored; None while it goes on."""
        raise NotImplementedError

    def close(self) -> None:
        """Release what scores games."""


class FirstMoves(Referee[PlayableGame]):
    """Breaks games off after some moves: for openings."""

    def __init__(self, moves: int) -> None:
        """Let `moves` moves be played, those before the first position included."""
        self._moves = moves

    def judge(self, game: PlayableGame) -> Ended | None:
        """Return a draw once there are so many moves, or the rules have ended the game."""
        return Ended(DRAW, MAX_MOVES) if game.ply >= self._moves or game.is_over else None


class PlayerSide(Generic[G]):
    """A player of this process."""

    def __init__(self, player: Player[G]) -> None:
        """Let `player` choose."""
        self.player = player

    def choose(self, game: G) -> Decision:
        """Return the player's decision."""
        return self.player.decide(Request(game, hide_moves=self.player.options.ignore_pre_root_history))


def play_game(
    game: G,
    sides: Mapping[int, Side[G]],
    referee: Referee[G],
    record: Callable[[Decision, float], None] = lambda decision, seconds: None,
) -> Ended:
    """Play a game to its end, and return how it ended.

    Args:
        game: as far as it has come; it is played on.
        sides: by color.
        referee: ends it.
        record: called with each decision for a move and the seconds that it took, before the move is played.
    """
    while (ended := referee.judge(game)) is None:
        color, begin = game.side_to_move, time.monotonic()
        decision = sides[color].choose(game)
        if decision.win:
            return Ended(color, DECLARATION)
        if decision.resign or decision.move is None:
            return Ended(opponent(color), RESIGNATION)
        record(decision, time.monotonic() - begin)
        game.push(decision.move)
    return ended

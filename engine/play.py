"""Plays one game: two sides choose moves, and a referee ends the game.

Self-play, openings of matches and measurements of levels use this loop with different sides, referees and recorders.
"""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Generic, Protocol, TypeVar

from yomi.engine.color import DRAW, opponent
from yomi.engine.players.request import Decision, PlayableGame

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
IMPASSE = "impasse"  # shogi: a draw by points
TRY = "try"  # shogi: the king has reached the other king's initial square


@dataclass(frozen=True, slots=True)
class Ended:
    winner: int  # BLACK, WHITE or DRAW (also without a result)
    ending: str  # one of the names above
    detail: str = ""  # one line: score, illegal move or last words
    score: float | None = field(default=None, compare=False)  # Black's points minus White's, if the game was counted


G = TypeVar("G", bound=PlayableGame)
G_contra = TypeVar("G_contra", bound=PlayableGame, contravariant=True)


class Side(Protocol[G_contra]):
    """Chooses the moves of one color, or of both: a Player, or the engines of a match (EngineSides)."""

    def choose(self, game: G_contra) -> Decision:
        """Return the decision of the side to move, without playing it on `game`."""


class Referee(Generic[G_contra]):
    """Decides when a game is over. It can serve one game after another."""

    def start(self, game: G_contra) -> None:
        """Prepare to score games with the board size and rules of `game`."""

    def judge(self, game: G_contra) -> Ended | None:
        """Return the end of the game, by its rules or because it was stopped and scored; None if it continues."""
        raise NotImplementedError

    def close(self) -> None:
        """Release the evaluator that scores games."""


class FirstMoves(Referee[PlayableGame]):
    """Ends each game after a number of moves, to make openings."""

    def __init__(self, moves: int) -> None:
        """End games after `moves` moves, including the moves before the first position."""
        self._moves = moves

    def judge(self, game: PlayableGame) -> Ended | None:
        return Ended(DRAW, MAX_MOVES) if game.ply >= self._moves or game.is_over else None


def end_by(decision: Decision, color: int) -> Ended | None:
    """Return how the decision of `color` ends the game, or None if it is a move, which does not."""
    if decision.win:
        return Ended(color, DECLARATION)
    if decision.draw:
        return Ended(DRAW, IMPASSE)
    return Ended(opponent(color), RESIGNATION) if decision.resign or decision.move is None else None


def play_game(
    game: G,
    sides: Mapping[int, Side[G]],
    referee: Referee[G],
    record: Callable[[Decision, float], None] = lambda decision, seconds: None,
) -> Ended:
    """Play a game from its current position to its end, and return the end.

    `record` receives each decision and the seconds that it took, before the move is played.
    """
    while (ended := referee.judge(game)) is None:
        color, begin = game.side_to_move, time.monotonic()
        decision = sides[color].choose(game)
        if ended := end_by(decision, color):
            return ended
        assert decision.move is not None  # otherwise the game has ended
        record(decision, time.monotonic() - begin)
        game.push(decision.move)
    return ended

"""The end of a game, its winner, and results as text."""

from __future__ import annotations

from collections.abc import Callable

from yomi.engine.color import BLACK, DRAW, WHITE
from yomi.engine.go.game import GoGame, score_text
from yomi.engine.go.vertex import format_color
from yomi.engine.go.words import result_in_words
from yomi.engine.play import (
    ADJUDICATION,
    FAILURE,
    MAX_MOVES,
    NO_RESULT,
    RESIGNATION,
    SCORE,
    TIME,
    Ended,
    Referee,
)

MOVES_PER_POINT = 3  # Default maximum of moves for each point. A longer game is scored as it stands.
# First letter after the winner's (R, Resign, Res., Time, Forfeit). Anything else is a score.
SGF_ENDINGS = {"R": RESIGNATION, "T": TIME, "F": FAILURE}


def read_sgf_result(text: str) -> tuple[int, str] | None:
    """Return (winner, ending) of an SGF result; None if it names no winner and no draw."""
    if "+" not in text:
        text = result_in_words(text) or text
    letter, _, how = text.strip().partition("+")
    winner = {"B": BLACK, "BLACK": BLACK, "W": WHITE, "WHITE": WHITE}.get(letter.upper())
    if text.strip().lower() in ("0", "draw", "jigo"):
        winner = DRAW
    return None if winner is None else (winner, SGF_ENDINGS.get(how.strip()[:1].upper(), SCORE))


def sgf_result(ended: Ended) -> str:
    """Return an SGF result."""
    if ended.ending == NO_RESULT:
        return "Void"
    if ended.winner == DRAW:
        return "0"
    if ended.ending in (SCORE, MAX_MOVES):
        return ended.detail
    reason = {RESIGNATION: "R", TIME: "T", ADJUDICATION: "R"}.get(ended.ending, "F")
    return f"{format_color(ended.winner)}+{reason}"


class GoReferee(Referee[GoGame]):
    """Ends games by passes, by a repetition without result, or after too many moves."""

    def __init__(self, score: Callable[[GoGame], float], max_moves: int = 0) -> None:
        """Score games by `score` (Black's points minus White's), after `max_moves` at the latest (0: MOVES_PER_POINT
        for each point).
        """
        self._score, self._max_moves = score, max_moves

    def judge(self, game: GoGame) -> Ended | None:
        if game.is_no_result:
            return Ended(DRAW, NO_RESULT, "third repetition")
        if not game.is_over and game.ply < (self._max_moves or MOVES_PER_POINT * game.size**2):
            return None
        score = self._score(game)
        winner = BLACK if score > 0 else WHITE if score < 0 else DRAW
        return Ended(winner, SCORE if game.is_over else MAX_MOVES, score_text(score))

"""The end of a game, its winner, and komi and results as text."""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Callable

from yomi.engine.color import BLACK, DRAW, WHITE
from yomi.engine.go.game import GoGame, score_text
from yomi.engine.go.vertex import format_color
from yomi.engine.play import ADJUDICATION, FAILURE, MAX_MOVES, NO_RESULT, RESIGNATION, SCORE, TIME, Ended, Referee

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
        """`score` returns Black's points minus White's. `max_moves` of 0 is MOVES_PER_POINT for each point."""
        self._score, self._max_moves = score, max_moves

    def judge(self, game: GoGame) -> Ended | None:
        if game.is_no_result:
            return Ended(DRAW, NO_RESULT, "third repetition")
        if not game.is_over and game.ply < (self._max_moves or MOVES_PER_POINT * game.size**2):
            return None
        score = self._score(game)
        winner = BLACK if score > 0 else WHITE if score < 0 else DRAW
        return Ended(winner, SCORE if game.is_over else MAX_MOVES, score_text(score), score)


_FRACTIONS = str.maketrans({"½": ".5", "¼": ".25", "¾": ".75"})
_NUMBER = re.compile(r"[-+]?(?:\d+(?:\.\d*)?|\.\d+)")
_HALF = re.compile(r"\s*(?:目|子|집|호|점)?\s*(?:半|반)")
_FRACTION = re.compile(r"\s*(?:又|と|and|\s)\s*([13])\s*[/⁄]\s*([24])")
_SIDES = {"B": ("black", "黑", "黒", "흑"), "W": ("white", "白", "백")}
_REASONS = {
    "R": ("resign", "中盘", "中盤", "中押", "投了", "认输", "認輸", "불계"),
    "T": ("time", "超时", "超時", "時間", "시간"),
    "F": ("forfeit", "disconnect", "기권"),
}


def komi_in_text(text: str) -> float | None:
    """Return the first number of a text: "6,5", "7.5目", "6目半", "3又3/4子"; None if there is none."""
    text = unicodedata.normalize("NFKC", text.translate(_FRACTIONS)).strip()
    try:
        value = float(text)
    except ValueError:
        text = re.sub(r"(?<=\d),(?=\d)", ".", text)
        found = _NUMBER.search(text)
        if found is None:
            return None
        value = float(found[0])
        if _HALF.match(text, found.end()):
            value += math.copysign(0.5, value)
        elif part := _FRACTION.match(text, found.end()):
            value += int(part[1]) / int(part[2])
    return value if math.isfinite(value) else None


def result_in_words(text: str) -> str:
    """Return a result as in SGF, such as "W+R" for "white wins by resign"; empty if no winner is named."""
    text = unicodedata.normalize("NFKC", text).lower()
    places = {
        side: min((text.find(word) for word in words if word in text), default=-1) for side, words in _SIDES.items()
    }
    named = [side for side in places if places[side] >= 0]
    if not named:
        return ""
    winner = min(named, key=lambda side: places[side])
    reason = next((letter for letter, words in _REASONS.items() if any(word in text for word in words)), "")
    points = _NUMBER.search(text, places[winner])
    if not reason and points:
        value = float(points[0]) + (0.5 if _HALF.match(text, points.end()) else 0.0)
        reason = f"{value:g}"
    return f"{winner}+{reason}"

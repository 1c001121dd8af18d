"""Komi and results in words of several languages, as records of servers and federations have them."""

from __future__ import annotations

import math
import re
import unicodedata

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

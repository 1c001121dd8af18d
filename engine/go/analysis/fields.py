"""Readers for the fields of a query. Limits and error messages are those of KataGo's analysis engine 1.17, because
clients may match them (docs/Analysis_Engine.md).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from yomi.engine.go.vertex import VertexError, parse_color, parse_vertex, point_at
from yomi.native.go.board import PASS

Fields = Mapping[str, Any]

PAIRS = 'Must be an array of pairs of the form: ["b" or "w", GTP board vertex]'
MAX_SHOWN = 300
VERTICES = "Must be an array of GTP board vertices"


class FieldError(ValueError):
    """A query has a wrong field. The message is one line."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(message)
        self.field = field


def integer(fields: Fields, name: str, low: int, high: int, message: str) -> int:
    """Return an integer field.

    Raises:
        FieldError: not an integer, or outside its range.
    """
    value = fields[name]
    if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= high:
        raise FieldError(name, message)
    return value


def real(fields: Fields, name: str, low: float, high: float, message: str) -> float:
    value = fields[name]
    if not isinstance(value, int | float) or isinstance(value, bool) or not low <= value <= high:
        raise FieldError(name, message)
    return float(value)


def boolean(fields: Fields, name: str) -> bool:
    """Return a boolean field; false if it is missing."""
    value = fields.get(name, False)
    if not isinstance(value, bool):
        raise FieldError(name, "Must be a boolean")
    return value


def integers(fields: Fields, name: str, message: str) -> list[int]:
    values = fields[name]
    if not isinstance(values, list) or not all(isinstance(each, int) and not isinstance(each, bool) for each in values):
        raise FieldError(name, message)
    return values


def color(fields: Fields, name: str) -> int:
    try:
        return parse_color(fields[name])
    except (VertexError, AttributeError):
        raise FieldError(name, 'Must be "b" or "w"') from None


def moves(fields: Fields, name: str, size: int, *, passes: bool) -> list[tuple[int, int]]:
    """Return an array of [player, vertex] pairs as (color, move)."""
    pairs = fields[name]
    if not isinstance(pairs, list):
        raise FieldError(name, PAIRS)
    found = []
    for pair in pairs:
        if not isinstance(pair, list) or len(pair) != 2 or not all(isinstance(each, str) for each in pair):
            raise FieldError(name, PAIRS)
        try:
            player = parse_color(pair[0])
        except VertexError:
            raise FieldError(name, f"Could not parse player: {shown(pair[0])}") from None
        found.append((player, _vertex(name, pair[1], size, passes)))
    return found


def vertices(fields: Fields, name: str, field: str, size: int) -> list[int]:
    """Return an array of vertices or passes. Errors name `field`."""
    texts = fields[name]
    if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
        raise FieldError(field, VERTICES)
    return [_vertex(field, text, size, True) for text in texts]


def _vertex(field: str, text: str, size: int, passes: bool) -> int:
    """Return the move of a GTP vertex, or of `(X,Y)` counted from the top left corner."""
    try:
        match = re.fullmatch(r"\(\s*([0-9]{1,3})\s*,\s*([0-9]{1,3})\s*\)", text.strip(), re.ASCII)
        if match:
            x, y = int(match[1]), int(match[2])
            move = point_at(x, y, size) if x < size and y < size else None
        else:
            move = parse_vertex(text, size)
    except VertexError:
        move = None
    if move is None or (move == PASS and not passes):
        raise FieldError(field, f"Could not parse board location: {shown(text)}")
    return move


def shown(value: object) -> str:
    """Return a value of a query, shortened for an error message."""
    text = str(value)
    return text if len(text) <= MAX_SHOWN else text[:MAX_SHOWN] + "..."

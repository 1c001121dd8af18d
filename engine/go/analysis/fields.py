"""Readers for the fields of a query, and for its `overrideSettings`.

Limits and error messages are those of KataGo's analysis engine 1.17, because clients may match them
(docs/Analysis_Engine.md).
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from yomi.engine.color import BLACK, WHITE
from yomi.engine.go.points import Board, VertexError, parse_color
from yomi.engine.options import (
    FOR_HUMAN_NET,
    NOT_FOR_ANALYSIS,
    OptionError,
    Options,
    Setting,
    find,
    without_human_net,
)
from yomi.errors import reraised
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
    """Return a whole number from `low` to `high`. JSON does not distinguish integers: 1e9 is 1000000000."""
    value = fields[name]
    if type(value) not in (int, float) or not low <= value <= high or value != int(value):
        raise FieldError(name, message)
    return int(value)


def real(fields: Fields, name: str, low: float, high: float, message: str) -> float:
    value = fields[name]
    if type(value) not in (int, float) or not low <= value <= high:
        raise FieldError(name, message)
    return float(value)


def boolean(fields: Fields, name: str) -> bool:
    value = fields.get(name, False)
    if not isinstance(value, bool):
        raise FieldError(name, "Must be a boolean")
    return value


def integers(fields: Fields, name: str, message: str) -> list[int]:
    values = fields[name]
    if not isinstance(values, list) or not all(type(value) is int for value in values):
        raise FieldError(name, message)
    return values


def color(fields: Fields, name: str) -> int:
    try:
        return parse_color(fields[name])
    except (VertexError, AttributeError):
        raise FieldError(name, 'Must be "b" or "w"') from None


def moves(fields: Fields, name: str, board: Board, *, passes: bool) -> list[tuple[int, int]]:
    """Return an array of [player, vertex] pairs as (color, move)."""
    pairs = fields[name]
    if not isinstance(pairs, list):
        raise FieldError(name, PAIRS)
    found = []
    for pair in pairs:
        if not isinstance(pair, list) or len(pair) != 2 or not all(isinstance(text, str) for text in pair):
            raise FieldError(name, PAIRS)
        try:
            player = parse_color(pair[0])
        except VertexError:
            raise FieldError(name, f"Could not parse player: {shown(pair[0])}") from None
        found.append((player, _vertex(name, pair[1], board, passes)))
    return found


def vertices(fields: Fields, name: str, field: str, board: Board) -> list[int]:
    """Return an array of vertices or passes as moves. `field` is the name for error messages."""
    texts = fields[name]
    if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
        raise FieldError(field, VERTICES)
    return [_vertex(field, text, board, True) for text in texts]


def _vertex(field: str, text: str, board: Board, passes: bool) -> int:
    """Return the move of a GTP vertex, or of `(X,Y)` counted from the top left corner."""
    try:
        match = re.fullmatch(r"\(\s*([0-9]{1,3})\s*,\s*([0-9]{1,3})\s*\)", text.strip(), re.ASCII)
        if match:
            x, y = int(match[1]), int(match[2])
            move = board.point(x, y) if x < board.width and y < board.height else None
        else:
            move = board.parse_vertex(text)
    except VertexError:
        move = None
    if move is None or (move == PASS and not passes):
        raise FieldError(field, f"Could not parse board location: {shown(text)}")
    return move


def shown(value: object) -> str:
    text = str(value)
    return text if len(text) <= MAX_SHOWN else text[:MAX_SHOWN] + "..."


FIELD = "overrideSettings"
# Values of reportAnalysisWinratesAs: the point of view of a response; None for the side to move.
PERSPECTIVES: dict[str, int | None] = {"b": BLACK, "black": BLACK, "w": WHITE, "white": WHITE, "sidetomove": None}
FIXED = ("seed", "rollout_weight")  # options that are fixed for all positions of an analysis
LIMITS = ("visits", "playouts", "seconds")  # limits that cannot be removed: an unlimited search would never be answered
MAX_PV = 1000


@dataclass(frozen=True, slots=True)
class Settings:
    """Settings of a query's search and answer, besides the query's own fields."""

    options: Options
    perspective: int | None = BLACK  # point of view of all values: BLACK, WHITE, or None for the side to move
    pv_length: int = 15  # maximum number of moves of a principal variation after the first move

    @property
    def policy_power(self) -> float:
        # KataGo reports the policy of the network at temperature 1, and the search its priors at another temperature.
        own = self.options.policy_temperature
        return (self.options.root_policy_temperature or own) / own


def override(settings: Settings, values: Mapping[str, Any]) -> tuple[Settings, list[str]]:
    """Return settings in which values are replaced, and the names that have no effect. Raises FieldError.

    Names are KataGo's or yomi's. Numbers and booleans may be text.
    """
    options = settings.options.copy()
    settings, unknown = replace(settings, options=options), []
    for name, value in values.items():
        if name == "reportAnalysisWinratesAs":
            if not isinstance(value, str) or value.lower() not in PERSPECTIVES:
                raise _refused(f"{name} {shown(value)}: expected BLACK, WHITE or SIDETOMOVE")
            settings = replace(settings, perspective=PERSPECTIVES[value.lower()])
        elif name == "analysisPVLen":
            settings = replace(settings, pv_length=int(_number(name, value, 1, MAX_PV)))
        elif (row := _find(name)) is not None and row.name in FOR_HUMAN_NET and settings.options.human_net is None:
            raise _refused(without_human_net(row.katago))
        elif row is None or row.name in NOT_FOR_ANALYSIS:
            unknown.append(name)
        elif not row.live and row.katago:  # KataGo accepts such names, so they are reported as without effect
            unknown.append(f"{name} (can only be set at the start)")
        elif not row.live or row.name in FIXED:
            raise _refused(f"{name} can only be set at the start")
        else:
            row = replace(row, optional=row.optional and row.name not in LIMITS)
            with reraised(OptionError, _refused):
                options.set(row.name, row.parse(value) if isinstance(value, str) else row.check(value))
    return settings, unknown


def _refused(why: str) -> FieldError:
    return FieldError(FIELD, f"Could not set settings: {why}")


def _find(name: str) -> Setting | None:
    try:
        return find(name, "go")
    except OptionError:
        return None


def _number(name: str, value: Any, low: float, high: float) -> float:
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        number = low - 1
    if isinstance(value, bool) or not low <= number <= high:
        raise _refused(f"{name} {shown(value)}: expected a number from {low:g} to {high:g}")
    return number

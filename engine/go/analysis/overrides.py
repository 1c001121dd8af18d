"""`overrideSettings` of a query: changes to the engine's settings, by KataGo's names or yomi's."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from yomi.engine.color import BLACK, WHITE
from yomi.engine.go.analysis.fields import FieldError, shown
from yomi.engine.options import NOT_FOR_ANALYSIS, Option, OptionError, Options, Value, find

FIELD = "overrideSettings"
# Values of reportAnalysisWinratesAs: the point of view of a response; None for the side to move.
PERSPECTIVES: dict[str, int | None] = {
    "b": BLACK,
    "black": BLACK,
    "w": WHITE,
    "white": WHITE,
    "sidetomove": None,
}
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
        """Exponent that turns the root's priors into the network's policy at temperature 1, which KataGo reports."""
        own = self.options.policy_temperature
        return (self.options.root_policy_temperature or own) / own


def override(settings: Settings, values: Mapping[str, Any]) -> tuple[Settings, list[str]]:
    """Return the settings with changes, and the names that are unknown or mean nothing to an analysis.

    Args:
        settings: the settings to change; they stay as they are.
        values: new values by KataGo's names or yomi's. Numbers and booleans may be text.

    Raises:
        FieldError: a wrong value, or a setting that is fixed for all queries.
    """
    options = settings.options.copy()
    settings = replace(settings, options=options)
    unknown = []
    for name, value in values.items():
        match name:
            case "reportAnalysisWinratesAs":
                settings = replace(settings, perspective=_perspective(value))
            case "analysisPVLen":
                settings = replace(settings, pv_length=int(_number(name, value, 1, MAX_PV)))
            case _:
                row = _find(name)
                if row is None:
                    unknown.append(name)
                else:
                    _set(options, row, name, value)
    return settings, unknown


def _find(name: str) -> Option | None:
    try:
        row = find(name, "go")
    except OptionError:
        return None
    return None if row.name in NOT_FOR_ANALYSIS else row


def _set(options: Options, row: Option, name: str, value: Any) -> None:
    if not row.live or row.name in FIXED:
        raise FieldError(FIELD, f"Could not set settings: {name} can only be set at the start")
    if row.name in LIMITS:
        row = replace(row, optional=False)
    try:
        checked: Value = row.parse(value) if isinstance(value, str) else row.check(value)
    except OptionError as error:
        raise FieldError(FIELD, f"Could not set settings: {error}") from None
    options.set(row.name, checked)


def _perspective(value: Any) -> int | None:
    if not isinstance(value, str) or value.lower() not in PERSPECTIVES:
        raise FieldError(
            FIELD,
            f"Could not set settings: reportAnalysisWinratesAs {shown(value)}: expected BLACK, WHITE or SIDETOMOVE",
        )
    return PERSPECTIVES[value.lower()]


def _number(name: str, value: Any, low: float, high: float) -> float:
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        number = low - 1
    if isinstance(value, bool) or not low <= number <= high:
        raise FieldError(
            FIELD, f"Could not set settings: {name} {shown(value)}: expected a number from {low:g} to {high:g}"
        )
    return number

"""USI's view of the table of options: `option` lines, and values as `setoption` sends them."""

from __future__ import annotations

from collections.abc import Iterator

from engine.options import USI_NAMES, Option, OptionError, Options, Value, rows_for

MAX_SPIN = 2**31 - 1
"""Graphical interfaces keep numbers in 32 bits."""
EMPTY = "<empty>"
CLEAR_TREE = "Clear_Tree"
"""The one button: forget the tree and all evaluations."""


def option_lines(options: Options) -> Iterator[str]:
    """Yield an `option` line for each option; the defaults are the values in force."""
    for row in rows_for("shogi"):
        if row.usi is not None:
            yield f"option name {row.usi.names[0]} type {_kind(row)}{_default(row, options.get(row.name))}{_range(row)}"
    yield f"option name {CLEAR_TREE} type button"


def find_option(name: str) -> Option | None:
    """Return the row of an option by its USI name, in capitals or not, with blanks or underscores."""
    return USI_NAMES.get("_".join(name.lower().split()))


def parse_value(row: Option, text: str) -> Value:
    """Return the value of `row` that USI's text means.

    Raises:
        OptionError: it is none.
    """
    usi = row.usi
    assert usi is not None
    text = text.strip()
    if row.kind in ("file", "text"):
        return row.parse("none" if text in ("", EMPTY) else text)
    if row.kind == "choice":
        for name, value in zip(usi.choices, row.choices, strict=False):
            if text.lower() == name.lower():
                return value
        return row.parse(text)
    if row.kind == "flag":
        return row.parse(text)
    try:
        number = float(text) if len(text) < 30 else float("nan")
    except ValueError:
        number = float("nan")
    error = OptionError(f"{usi.names[0]}: expected {_expected(row)}, found {text[:100]!r}")
    if number != number:
        raise error
    if row.optional and number == usi.none:
        return None
    unscaled = number / usi.scale
    try:
        return row.check(
            unscaled if row.kind == "real" else round(unscaled) if unscaled == round(unscaled) else unscaled
        )
    except (OptionError, OverflowError):
        raise error from None


def shown(row: Option, value: Value) -> str:
    """Return a value as USI shows it."""
    usi = row.usi
    assert usi is not None
    if row.kind in ("file", "text"):
        return EMPTY if value is None else str(value)
    if row.kind == "flag":
        return "true" if value else "false"
    if row.kind == "choice":
        return usi.choices[row.choices.index(str(value))] if usi.choices else str(value)
    return str(usi.none if value is None else _scaled(row, float(value)))


def _scaled(row: Option, value: float) -> int:
    assert row.usi is not None
    return max(-MAX_SPIN, min(MAX_SPIN, round(value * row.usi.scale)))


def _kind(row: Option) -> str:
    return {"file": "filename", "text": "string", "choice": "combo", "flag": "check"}.get(row.kind, "spin")


def _default(row: Option, value: Value) -> str:
    return f" default {shown(row, value)}"


def _limits(row: Option) -> tuple[int, int]:
    assert row.usi is not None
    assert row.low is not None
    assert row.high is not None
    low = _scaled(row, row.low)
    return (min(low, row.usi.none) if row.optional else low), _scaled(row, row.high)


def _range(row: Option) -> str:
    assert row.usi is not None
    if row.kind == "choice":
        return "".join(f" var {choice}" for choice in row.usi.choices or row.choices)
    if row.kind in ("file", "text", "flag"):
        return ""
    low, high = _limits(row)
    return f" min {low} max {high}"


def _expected(row: Option) -> str:
    low, high = _limits(row)
    return f"a number from {low} to {high}"

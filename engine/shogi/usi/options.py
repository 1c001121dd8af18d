"""The table of options as USI's `option` lines."""

from __future__ import annotations

from collections.abc import Iterator

from yomi.engine.levels import LevelSwitch
from yomi.engine.options import USI_NAMES, Option, OptionError, rows_for

CLEAR_TREE = "Clear_Tree"  # the one button: forget the tree and all evaluations
TYPES = {"file": "filename", "text": "string", "choice": "combo", "flag": "check"}


def option_lines(level: LevelSwitch) -> Iterator[str]:
    """Yield an `option` line for each option. The defaults are the values at full strength.

    Interfaces send all defaults back. Defaults of a level would then remain.
    """
    for row in rows_for("shogi"):
        if row.usi is not None:
            default = row.format_usi(level.own(row.name))
            kind = TYPES.get(row.kind, "spin")
            yield f"option name {row.usi.names[0]} type {kind} default {default}{_range(row)}"
    yield f"option name {CLEAR_TREE} type button"


def set_option(row: Option, text: str, level: LevelSwitch) -> None:
    """Set an option from USI text. A value that the level overrides takes effect at full strength.

    Raises:
        OptionError: the value does not suit; the option keeps its value.
    """
    try:
        level.set(row.name, row.parse_usi(text), wins=False)
    except OptionError as error:
        raise OptionError(f"{error}; it stays {row.format_usi(level.own(row.name))}") from None


def find_option(name: str) -> Option | None:
    """Return an option by its USI name, in any case, with blanks or underscores."""
    return USI_NAMES.get("_".join(name.lower().split()))


def _range(row: Option) -> str:
    assert row.usi is not None
    if row.kind == "choice":
        return "".join(f" var {choice}" for choice in row.usi.choices or row.choices)
    if row.kind in TYPES:
        return ""
    low, high = row.usi_limits()
    return f" min {low} max {high}"

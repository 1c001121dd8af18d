"""Flags of commands that are not in the table of options, and checks of their values."""

from __future__ import annotations

import argparse
import dataclasses
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from yomi.settings import KINDS, OptionError, Setting

if TYPE_CHECKING:
    from argparse import Namespace, _ActionsContainer

T = TypeVar("T")


def add_sets(group: _ActionsContainer, of: str) -> None:
    """Add `--set TABLE.KEY=VALUE`, which changes a key of a training configuration."""
    text = f"change a key of the {of}, such as training.batch=256; repeatable"
    group.add_argument("--set", action="append", default=[], metavar="TABLE.KEY=VALUE", help=text)


def add_value(
    group: _ActionsContainer,
    flag: str,
    default: int | float | str | None,
    metavar: str | None,
    text: str,
    shown: str = "",
    *,
    low: float | None = None,
    high: float | None = None,
) -> argparse.Action:
    """Add a flag with a value of the default's type, from `low` to `high`. An optional integer has the default None.

    The help ends with the default, or with `shown`.
    """
    kind, name = KINDS.get(type(default).__name__, "int"), flag.removeprefix("--").replace("-", "_")
    row = Setting(name, kind, default is None, default, text, unset=shown, low=low, high=high, word=metavar or "")
    return add_setting(group, row, None if shown else default, absent=default)


def add_setting(
    group: _ActionsContainer, row: Setting, default: Any, *, prefix: str = "", absent: Any = argparse.SUPPRESS
) -> argparse.Action:
    """Add the flag of a setting.

    Args:
        group: receives the flag.
        row: the setting.
        default: the default value in the help.
        prefix: begins the name of the argument.
        absent: the argument without the flag; SUPPRESS: none.
    """
    unit = f" {row.unit}" if row.unit and default is not None else ""
    shown = row.unset or "none" if default is None else row.format(default) + unit
    form: dict[str, Any] = {"metavar": row.metavar, "type": type_of(row.parse, f"{row.key}: ")}
    if row.kind == "flag":
        form = {"action": argparse.BooleanOptionalAction}
    text = f"{row.help} (default: {shown})".replace("%", "%%")
    action = group.add_argument(row.flag, dest=prefix + row.name, default=absent, help=text, **form)
    if row.names[1:]:
        add_old_names(group, action, *(f"--{name.replace('_', '-')}" for name in row.names[1:]))
    return action


def type_of(read: Callable[[str], T], prefix: str = "") -> Callable[[str], T]:
    """Return a type for argparse that shows the message of a ValueError, without its prefix."""

    def convert(text: str) -> T:
        try:
            return read(text)
        except ValueError as error:
            raise argparse.ArgumentTypeError(str(error).removeprefix(prefix)) from None

    return convert


def add_old_names(group: _ActionsContainer, action: argparse.Action, *flags: str) -> None:
    """Accept old names of a flag with one value. The help does not contain them."""
    group.add_argument(
        *flags, dest=action.dest, type=action.type or str, default=argparse.SUPPRESS, help=argparse.SUPPRESS
    )


def add_task(group: _ActionsContainer, units: str) -> None:
    from yomi.engine.clusters.jobs import (
        Task,  # not above: every start of an engine would load it, for a sixth of its time
    )

    text = f"do share i of n of the {units}, in OUT/part-i-of-n (docs/CLUSTERS.md)"
    group.add_argument("--task", type=type_of(Task.parse), metavar="i/n", help=text)


def filled(kind: type[T], args: Namespace, **others: object) -> T:
    """Return a dataclass made of `others` and, for its other fields, of the flags of the same names."""
    values: dict[str, Any] = {**vars(args), **others}
    names = [field.name for field in dataclasses.fields(kind)]  # type: ignore[arg-type]  # T is one
    return kind(**{name: values[name] for name in names if name in values})


def check_ranges(args: Namespace, **ranges: tuple[float, float]) -> None:
    """Raise OptionError if a number is not between its two limits."""
    for name, (low, high) in ranges.items():
        if not low <= getattr(args, name) <= high:
            raise OptionError(f"--{name.replace('_', '-')} {getattr(args, name):g}: expected {low:g} to {high:g}")


def check_counts(args: Namespace, **least: int) -> None:
    for name, low in least.items():
        value = getattr(args, name)
        if value is not None and value < low:
            raise OptionError(f"--{name.replace('_', '-')} {value}: expected at least {low}")

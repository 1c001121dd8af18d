"""Flags of commands that are not in the table of options, and checks of their values."""

from __future__ import annotations

import argparse
import dataclasses
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from yomi.engine.option_row import OptionError

if TYPE_CHECKING:
    from argparse import Namespace, _ActionsContainer

T = TypeVar("T")


def add_value(
    group: _ActionsContainer, flag: str, default: int | float | str, metavar: str | None, text: str, shown: str = ""
) -> argparse.Action:
    """Add a flag with a value of the default's type. The help ends with the default, or with `shown`."""
    default_text = shown or (f"{default:g}" if isinstance(default, float) else str(default))
    return group.add_argument(
        flag, type=type(default), default=default, metavar=metavar, help=f"{text} (default: {default_text})"
    )


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

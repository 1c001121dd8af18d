"""Flags of commands that are no options of the table, and checks of them."""

from __future__ import annotations

import argparse
import dataclasses
from typing import TYPE_CHECKING, Any, TypeVar

from yomi.engine.option_row import OptionError

if TYPE_CHECKING:
    from argparse import Namespace, _ActionsContainer

T = TypeVar("T")


def add_value(
    group: _ActionsContainer, flag: str, default: int | float | str, metavar: str | None, text: str, shown: str = ""
) -> argparse.Action:
    """Add a flag with a value of the default's type, and return it.

    Args:
        group: the parser, or a group of it.
        flag: its name.
        default: the value without it.
        metavar: stands for the value in the help; None for the flag's name.
        text: what it does; the help says the default behind it.
        shown: the default in words; empty for the value.
    """
    default_text = shown or (f"{default:g}" if isinstance(default, float) else str(default))
    return group.add_argument(
        flag, type=type(default), default=default, metavar=metavar, help=f"{text} (default: {default_text})"
    )


def add_old_names(group: _ActionsContainer, action: argparse.Action, *flags: str) -> None:
    """Let a flag that takes one value be given by its old names, too. The help does not show them."""
    group.add_argument(
        *flags, dest=action.dest, type=action.type or str, default=argparse.SUPPRESS, help=argparse.SUPPRESS
    )


def filled(kind: type[T], args: Namespace, **others: object) -> T:
    """Return a dataclass made of `others` and, for fields that are not among them, the flags of the same names."""
    values: dict[str, Any] = {**vars(args), **others}
    names = [field.name for field in dataclasses.fields(kind)]  # type: ignore[arg-type]  # T is one
    return kind(**{name: values[name] for name in names if name in values})


def check_ranges(args: Namespace, **ranges: tuple[float, float]) -> None:
    """Check numbers by name: the least and the largest that each may be.

    Raises:
        OptionError: one of them is beyond.
    """
    for name, (low, high) in ranges.items():
        if not low <= getattr(args, name) <= high:
            raise OptionError(f"--{name.replace('_', '-')} {getattr(args, name):g}: expected {low:g} to {high:g}")


def check_counts(args: Namespace, **least: int) -> None:
    """Check counts by name.

    Raises:
        OptionError: one of them is too small.
    """
    for name, low in least.items():
        if getattr(args, name) < low:
            raise OptionError(f"--{name.replace('_', '-')} {getattr(args, name)}: expected at least {low}")

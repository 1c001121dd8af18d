"""Checks of arguments. An `OptionError` contains the wrong value and the expected one."""

from __future__ import annotations

import math
import os
import reprlib
from collections.abc import Callable, Collection, Iterable, Mapping
from numbers import Real
from pathlib import Path
from typing import Any, TypeAlias

from yomi.engine.color import BLACK, WHITE
from yomi.settings import OptionError, did_you_mean, rows_of

Progress: TypeAlias = Callable[[str], None]  # receives lines about the work


def no_progress(line: str) -> None: ...


def plain(value: Any) -> Any:
    """Return a value in which paths are replaced by text."""
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    return os.fspath(value) if isinstance(value, os.PathLike) else value


def shown(value: object) -> str:
    """Return a value as text for a message: one line, in which a long list or array loses its middle."""
    return " ".join(reprlib.repr(value).split())


def wrong(name: str, found: object, expected: str) -> OptionError:
    """Return an OptionError about an argument's value."""
    return OptionError(f"{name} {shown(found)} found, expected {expected}")


def is_number(value: object, low: float, high: float = math.inf, *, is_whole: bool = False) -> bool:
    """Return whether a value is a finite number in a range. 2.0 is whole, True is not a number."""
    if not isinstance(value, Real) or isinstance(value, bool):
        return False
    number: Any = value
    return bool(low <= number <= high and number < math.inf and (not is_whole or number == int(number)))


def whole(name: str, value: Any, low: int, high: float = math.inf) -> int:
    """Return an integer in a range, or raise OptionError."""
    if not is_number(value, low, high, is_whole=True):
        raise wrong(name, value, f"an integer {f'of at least {low}' if high == math.inf else f'from {low} to {high}'}")
    return int(value)


def text(name: str, value: Any, expected: str = "text") -> str:
    """Return a text, or raise OptionError."""
    if not isinstance(value, str):
        raise wrong(name, value, expected)
    return value


def text_or_bytes(name: str, value: Any) -> str | bytes:
    """Return a text or bytes, or raise OptionError."""
    if not isinstance(value, str | bytes):
        raise wrong(name, value, "text or bytes")
    return value


def path(name: str, value: Any) -> Path:
    """Return a path, or raise OptionError."""
    if not isinstance(value, str | os.PathLike) or "\0" in str(Path(value)):
        raise wrong(name, value, "a path")
    return Path(value)


def folder(name: str, value: Any) -> Path:
    """Return the path of a folder, which need not exist, or raise OptionError."""
    found = path(name, value)
    if os.path.isfile(found):
        raise wrong(name, str(found), "a folder")
    return found


def items(name: str, value: Any, expected: str) -> list[Any]:
    """Return the items of a list, or raise OptionError. Text is refused, since its items would be letters."""
    if isinstance(value, str | bytes) or not isinstance(value, Iterable):
        raise wrong(name, value, expected)
    return list(value)


def one_of(name: str, value: Any, choices: Collection[str]) -> str:
    """Return one of the choices, or raise OptionError."""
    if not isinstance(value, str) or value not in choices:
        raise wrong(name, value, " or ".join(choices))
    return value


def side(name: str, value: Any) -> int:
    """Return BLACK or WHITE, or raise OptionError."""
    if value not in (BLACK, WHITE):
        raise wrong(name, value, "yomi.BLACK or yomi.WHITE")
    return int(value)


def divided(given: Mapping[str, Any], options: Iterable[str], *kinds: type) -> list[dict[str, Any]]:
    """Split arguments into options of the engine and values of each kind of settings; return one dictionary for each.

    Raises:
        OptionError: a name is unknown.
    """
    if not isinstance(given, Mapping):
        raise wrong("options", given, 'a mapping such as {"visits": 100}')
    names = [set(options)]
    names += [{name for row in rows_of(kind).values() for name in (row.name, *row.names)} for kind in kinds]
    found: list[dict[str, Any]] = [{} for _ in names]
    for name, value in given.items():
        part = next((part for part, known in zip(found, names, strict=True) if name in known), None)
        if part is None:
            raise OptionError(f"unknown option {name!r}{did_you_mean(name, set.union(*names))}")
        part[name] = plain(value)
    return found

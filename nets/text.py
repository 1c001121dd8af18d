"""Reads JSON and TOML of unknown origin: every fault is a ValueError, and values have sane sizes."""

import csv
import io
import json
import math
import re
import tomllib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

# Levels of lists and tables. Python's own limit depends on the caller, and repr() has one as well.
MAX_DEPTH = 64
# Integers have a smaller magnitude, so that each becomes a float without an error.
MAX_INTEGER = 1 << 64
# Surrogates that represent no byte of a file's name. No text with one can be written or printed.
_LONE = re.compile("[\ud800-\udc7f\udd00-\udfff]")
# A key of a thousand parts or more. tomllib's time grows with the square of their number, up to hours.
_DOTTED_KEY = re.compile(r"(?:\.[^.=,\[\]{}#\n]{0,64}){1000}")


def parse_json(text: str | bytes) -> Any:
    """Return the value of a JSON text.

    Raises:
        ValueError: the text is not JSON, is nested too deep, or contains a lone surrogate, a float that is not finite,
            or an integer beyond 64 bits.
    """
    try:
        value = json.loads(text)
    except RecursionError:
        # The parser's limit depends on the caller's own depth. `_check` has a fixed one.
        raise ValueError(_too_deep()) from None
    _check(value, finite=True)
    return value


def first_difference(name: str, old: object, new: object) -> tuple[str, object, object]:
    """Return the innermost part in which two values differ: its name, such as `players.0.folder`, and both values."""
    if isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        old, new = dict(enumerate(old)), dict(enumerate(new))
    if isinstance(old, dict) and isinstance(new, dict):
        for key in (*old, *new):
            if old.get(key) != new.get(key):
                return first_difference(f"{name}.{key}" if name else str(key), old.get(key), new.get(key))
    return name, old, new


def csv_lines(rows: Iterable[Iterable[str]]) -> str:
    stream = io.StringIO(newline="")
    csv.writer(stream).writerows(rows)
    return stream.getvalue()


def parse_toml(text: str) -> dict[str, Any]:
    """Return the tables of a TOML text.

    Raises:
        ValueError: it is not TOML, is nested too deep, or has an integer that is too large.
    """
    if _DOTTED_KEY.search(text):
        raise ValueError(_too_deep())
    try:
        tables = tomllib.loads(text)
    except RecursionError:
        raise ValueError(_too_deep()) from None
    _check(tables, finite=False)
    return tables


def read_toml(path: Path) -> dict[str, Any]:
    """Return the tables of a TOML file.

    Raises:
        OSError: it cannot be read.
        ValueError: see `parse_toml`.
    """
    return parse_toml(path.read_text(encoding="utf-8"))


def set_keys(tables: dict[str, Any], words: Iterable[str]) -> dict[str, Any]:
    """Return tables in which `TABLE.KEY=VALUE` of each word replaces values. VALUE is as in TOML, or text without
    quotes.

    Raises:
        ValueError: a word is of another form.
    """
    changed = {name: dict(table) if isinstance(table, dict) else table for name, table in tables.items()}
    for word in words:
        place, equals, text = word.partition("=")
        table, dot, key = place.strip().partition(".")
        if not (equals and dot and table and key) or not isinstance(changed.setdefault(table, {}), dict):
            raise ValueError(f"{word!r} found, expected TABLE.KEY=VALUE such as training.batch=256")
        try:
            value = parse_toml(f"value = {text}")["value"]
        except ValueError:
            value = text.strip()
        changed[table][key] = value
    return changed


def _too_deep() -> str:
    return f"nested too deep, expected at most {MAX_DEPTH} levels"


def _check(value: Any, *, finite: bool) -> None:
    # Level by level, since recursion would meet Python's own limit.
    level = [value]
    for _ in range(MAX_DEPTH):
        inner: list[Any] = []
        for each in level:
            if isinstance(each, dict):
                inner += each.values()
                inner += each.keys()
            elif isinstance(each, list):
                inner += each
            elif isinstance(each, str):
                if not each.isascii() and _LONE.search(each):
                    raise ValueError("half of a character found (a lone surrogate), expected Unicode")
            elif isinstance(each, int) and not -MAX_INTEGER < each < MAX_INTEGER:
                raise ValueError("an integer beyond 64 bits found, expected a smaller one")
            elif finite and isinstance(each, float) and not math.isfinite(each):
                raise ValueError(f"the number {each} found, expected a finite one")
        if not inner:
            return
        level = inner
    raise ValueError(_too_deep())

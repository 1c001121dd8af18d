"""One row of the table of options: its type and range, and how its value is read and written."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from yomi.nets.errors import LineError

Value = bool | int | float | str | None

UNITS = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}
TRUE, FALSE = ("true", "yes", "on", "1"), ("false", "no", "off", "0")
EMPTY = "<empty>"  # USI's word for an empty text
NO_NUMBER = 0  # USI's number for none
MAX_SPIN = 2**31 - 1  # graphical interfaces keep USI's numbers in 32 bits
MAX_WORD = 100  # longer words are not compared with known ones: the time has no bound
METAVARS = {"int": "N", "real": "X", "memory": "SIZE", "file": "FILE", "text": "TEXT", "flag": ""}
EXPECTED = {
    "int": "an integer",
    "real": "a number",
    "memory": "a size such as 256M or 4G",
    "flag": "true or false",
    "file": "a file",
    "text": "text",
}


class OptionError(LineError, ValueError):
    """An unknown option or a wrong value. The message contains the expected values."""


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Return a question with up to three known words that are spelled like `word` or contain it; otherwise ""."""
    import difflib  # not above: it would add a millisecond to every start

    key, words = word.lower(), {name.lower(): name for name in known}
    if not key or key.lstrip("+-").isdecimal() or len(key) > MAX_WORD:
        return ""
    close = difflib.get_close_matches(key, words, 3, 0.7) or [name for name in words if name in key or key in name]
    return f"; did you mean {', '.join(words[name] for name in close[:3])}?" if close else ""


class Usi:
    __slots__ = ("choices", "names", "scale")

    def __init__(self, *names: str, scale: float = 1, choices: tuple[str, ...] = ()) -> None:
        """Describe the option.

        Args:
            names: The name that is sent, then further names that are accepted.
            scale: USI's number divided by the value: 1000 for seconds that USI has in milliseconds.
            choices: USI's names of the choices, in the order of the row's own.
        """
        self.names, self.scale, self.choices = names, scale, choices


@dataclass(frozen=True, slots=True)
class Option:
    """One row of the table. The name is that of the TOML file and of Python."""

    name: str
    kind: str  # text, file, choice, flag, int, real or memory
    optional: bool  # whether none is allowed
    default: Value
    help: str  # a verb phrase of at most 80 characters
    group: str
    more: str = ""  # further sentences for the reference
    unset: str = ""  # meaning of none
    low: float | None = None
    high: float | None = None
    unit: str = ""
    choices: tuple[str, ...] = ()
    codes: tuple[int, ...] = ()  # the numbers that kernels read for the choices; empty: 0, 1, 2, ...
    katago: str = ""  # KataGo's name, or ""
    live: bool = True  # whether it can change while the program runs (USI: without a new `isready`)
    games: tuple[str, ...] = ()  # games that have the option; empty: all
    defaults: Mapping[str, Value] = field(default_factory=dict)  # of games that differ from `default`
    usi: Usi | None = None
    words: Mapping[str, Value] = field(default_factory=dict)  # values with a name, such as max

    def default_for(self, game: str) -> Value:
        return self.defaults.get(game, self.default)

    def default_text(self, value: Value) -> str:
        """Return a default value as text; none with its meaning."""
        return f"none: {self.unset}" if value is None and self.unset else self.format(value)

    def is_for(self, game: str) -> bool:
        return not self.games or game in self.games

    def code(self, value: str) -> int:
        """Return the number that kernels read for a choice."""
        index = self.choices.index(value)
        return self.codes[index] if self.codes else index

    @property
    def flag(self) -> str:
        return "--" + self.name.replace("_", "-")

    @property
    def metavar(self) -> str:
        return "{" + ",".join(self.choices) + "}" if self.choices else METAVARS[self.kind]

    @property
    def expected(self) -> str:
        text = "one of " + ", ".join(self.choices) if self.choices else EXPECTED[self.kind]
        if self.low is not None and self.high is not None:
            text += f" from {self.format(self.low)} to {self.format(self.high)}"
        return text + "".join(f", or {word}" for word in (*self.words, *(["none"] if self.optional else [])))

    def parse(self, text: str) -> Value:
        """Read a value from a command line or a GTP command.

        Raises:
            OptionError: the value is of the wrong type or out of range.
        """
        word = text.strip()
        if word.lower() in self.words:
            return self.words[word.lower()]
        if self.optional and word.lower() == "none":
            return None
        try:
            match self.kind:
                case "flag":
                    return self.check(_truth(word))
                case "int":
                    return self.check(_integer(word))
                case "real":
                    return self.check(float(word))
                case "memory":
                    return self.check(parse_memory(word))
        except (ValueError, OverflowError) as error:
            if isinstance(error, OptionError):
                raise
            raise OptionError(f"{self.name}: expected {self.expected}, found {text!r}") from None
        return self.check(word)

    def check(self, value: object) -> Value:
        """Return `value` in the type of the option: an integer for a flag of numbers becomes a float, for example.

        Raises:
            OptionError: the value is of the wrong type or out of range.
        """
        error = OptionError(f"{self.name}: expected {self.expected}, found {value!r}")
        if value is None:
            if not self.optional:
                raise error
            return None
        if self.kind == "flag":
            if not isinstance(value, bool):
                raise error
            return value
        if self.kind in ("int", "real", "memory"):
            if isinstance(value, str) and (self.kind == "memory" or value.lower() in self.words):
                return self.parse(value)
            return self._check_number(value, error)
        if not isinstance(value, str) or not value or any(ord(c) < 32 for c in value):
            raise error
        if self.kind == "choice" and value.lower() not in self.choices:
            raise error
        return value.lower() if self.kind == "choice" else value

    def _check_number(self, value: object, error: OptionError) -> Value:
        if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
            raise error
        if self.kind != "real" and value != int(value):
            raise error
        if (self.low is not None and value < self.low) or (self.high is not None and value > self.high):
            raise error
        return float(value) if self.kind == "real" else int(value)

    def parse_usi(self, text: str) -> Value:
        """Read a value from USI's `setoption`. Errors are those of `parse`."""
        usi = self.usi
        assert usi is not None
        word = text.strip()
        if self.kind in ("file", "text"):
            return self.parse("none" if word in ("", EMPTY) else word)
        if self.kind in ("choice", "flag"):
            names = [name.lower() for name in usi.choices]
            if word.lower() in names:
                return self.choices[names.index(word.lower())]
            if usi.choices and word.lower() not in self.choices:
                raise OptionError(f"{usi.names[0]}: expected one of {', '.join(usi.choices)}, found {word[:100]!r}")
            return self.parse(word)
        if word.lower() in self.words:
            return self.words[word.lower()]
        low, high = self.usi_limits()
        error = OptionError(f"{usi.names[0]}: expected a number from {low} to {high}, found {word[:100]!r}")
        if not re.fullmatch(r"[+-]?[0-9]{1,18}(\.[0-9]{1,18})?", word, re.ASCII):
            raise error
        number = float(word)
        if self.optional and number == NO_NUMBER:
            return None
        value = number / usi.scale
        try:
            return self.check(value if self.kind == "real" or value != round(value) else round(value))
        except OptionError:
            raise error from None

    def format_usi(self, value: Value) -> str:
        usi = self.usi
        assert usi is not None
        if self.kind in ("file", "text"):
            return EMPTY if value is None else str(value)
        if self.kind == "choice" and usi.choices:
            return usi.choices[self.choices.index(str(value))]
        if self.kind in ("choice", "flag"):
            return self.format(value)
        return str(NO_NUMBER if value is None else self._scaled(float(value)))

    def usi_limits(self) -> tuple[int, int]:
        """Return the least and the greatest number that USI shows for an option of numbers."""
        assert self.low is not None
        assert self.high is not None
        low = self._scaled(self.low)
        return (min(low, NO_NUMBER) if self.optional else low), self._scaled(self.high)

    def _scaled(self, value: float) -> int:
        assert self.usi is not None
        return max(-MAX_SPIN, min(MAX_SPIN, round(value * self.usi.scale)))

    def format(self, value: Value) -> str:
        """Write a value so that `parse` reads it back."""
        if value is None:
            return "none"
        if isinstance(value, bool):
            return "true" if value else "false"
        if self.kind == "memory":
            return format_memory(int(value))
        if isinstance(value, float):
            return f"{value:.10g}"
        return str(value)


def _truth(word: str) -> bool:
    if word.lower() in TRUE:
        return True
    if word.lower() in FALSE:
        return False
    raise ValueError(word)


def _integer(word: str) -> int:
    if not re.fullmatch(r"[+-]?[0-9]{1,18}", word):
        raise ValueError(word)
    return int(word)


def parse_memory(text: str) -> int:
    """Return the number of bytes of a text such as `256M`, `4G`, `1.5G` or `1000000`."""
    match = re.fullmatch(r"([0-9]{1,18}(?:\.[0-9]{1,9})?) ?([KMGT]?)(?:i?B)?", text.strip(), re.IGNORECASE)
    if not match:
        raise ValueError(f"expected a size such as 256M or 4G, found {text!r}")
    unit = UNITS[match[2].upper()]
    return int(float(match[1]) * unit) if "." in match[1] else int(match[1]) * unit


def format_memory(count: int) -> str:
    """Return the shortest text that `parse_memory` reads back as `count` bytes."""
    for unit in ("T", "G", "M", "K"):
        if count and count % UNITS[unit] == 0:
            return f"{count // UNITS[unit]}{unit}"
    return str(count)


KINDS = {"bool": "flag", "int": "int", "float": "real", "str": "text"}  # by the types of fields


def option(default: Value, text: str, group: str, *, kind: str = "", **others: Any) -> Any:
    """Describe a field of `Options`. `others` are fields of `Option`; an empty kind is that of the field's type."""

    def row(name: str, annotation: str) -> Option:
        type_name, _, rest = annotation.partition(" | ")
        return Option(name, kind or KINDS[type_name], rest == "None", default, text, group, **others)

    return field(default=default, metadata={"option": row})


def number(default: Value, low: float, high: float, text: str, group: str, **others: Any) -> Any:
    return option(default, text, group, low=low, high=high, **others)


def choice(default: str, choices: tuple[str, ...], text: str, group: str, **others: Any) -> Any:
    return option(default, text, group, kind="choice", choices=choices, **others)


flag = option  # the field's type makes it a flag

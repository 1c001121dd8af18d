"""One row of the table of options: its type, its range, and how its value is read and written."""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from yomi.nets.errors import LineError

Value = bool | int | float | str | None

UNITS = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}
TRUE, FALSE = ("true", "yes", "on", "1"), ("false", "no", "off", "0")

EMPTY = "<empty>"
"""USI's word for an empty text."""
NO_NUMBER = 0
"""What USI shows in place of none where there are numbers, and what is understood as it."""
MAX_SPIN = 2**31 - 1
"""Graphical interfaces keep USI's numbers in 32 bits."""


MAX_WORD = 100
"""Characters of a word that is compared with known ones: the time for longer words has no bound."""


class OptionError(LineError, ValueError):
    """A value or a name that the table does not allow; the message says what was expected."""


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Return a question with up to three known words that are spelt like `word` or contain it.

    It is empty if there are none, and for numbers: no number looks like another.
    """
    import difflib  # here, for it costs a millisecond of every start

    key, words = word.lower(), {each.lower(): each for each in known}
    if not key or key.lstrip("+-").isdecimal() or len(key) > MAX_WORD:
        return ""
    close = difflib.get_close_matches(key, words, 3, 0.7) or [each for each in words if each in key or key in each]
    return f"; did you mean {', '.join(words[each] for each in close[:3])}?" if close else ""


class Usi:
    """How a row looks in USI."""

    __slots__ = ("choices", "names", "scale")

    def __init__(self, *names: str, scale: float = 1, choices: tuple[str, ...] = ()) -> None:
        """Describe a row.

        Args:
            names: The name that is shown, then others that are understood.
            scale: The number that USI shows, divided by the value: 1000 for seconds that are shown in milliseconds.
            choices: The names of a choice's values, in the order of the row's own.
        """
        self.names, self.scale, self.choices = names, scale, choices


@dataclass(frozen=True, slots=True)
class Option:
    """One row of the table."""

    name: str
    """As in the TOML file and in Python; the flag is the same with dashes."""
    kind: str
    """text, file, choice, flag, int, real or memory."""
    default: Value
    help: str
    group: str
    low: float | None
    high: float | None
    unit: str
    choices: tuple[str, ...]
    optional: bool
    """May be `none`."""
    katago: str
    """KataGo's name of the same parameter, also understood by kata-set-param; empty for none."""
    live: bool
    """May be changed while the program runs (in USI: without a new `isready`)."""
    games: tuple[str, ...]
    """The games that it means anything to; empty for all."""
    defaults: Mapping[str, Value]
    """The defaults of games that have others than `default`."""
    usi: Usi | None
    """Its USI option; None where there is none."""
    words: Mapping[str, Value] = field(default_factory=dict)
    """Values that have a name, such as max."""

    def default_for(self, game: str) -> Value:
        """Return the default in a game."""
        return self.defaults.get(game, self.default)

    def is_for(self, game: str) -> bool:
        """Whether it means anything to a game."""
        return not self.games or game in self.games

    @property
    def flag(self) -> str:
        """The command-line flag."""
        return "--" + self.name.replace("_", "-")

    @property
    def metavar(self) -> str:
        """What stands for the value in a help text."""
        if self.kind == "choice":
            return "{" + ",".join(self.choices) + "}"
        return {"int": "N", "real": "X", "memory": "SIZE", "file": "FILE", "text": "TEXT", "flag": ""}[self.kind]

    @property
    def expected(self) -> str:
        """What a value has to be, in words."""
        words = {
            "int": "an integer",
            "real": "a number",
            "memory": "a size such as 256M or 4G",
            "flag": "true or false",
        }
        text = words.get(self.kind, "a file" if self.kind == "file" else "text")
        if self.kind == "choice":
            text = "one of " + ", ".join(self.choices)
        if self.low is not None and self.high is not None:
            text += f" from {self.format(self.low)} to {self.format(self.high)}"
        elif self.low is not None:
            text += f" of at least {self.format(self.low)}"
        return text + "".join(f", or {word}" for word in (*self.words, *(["none"] if self.optional else [])))

    def parse(self, text: str) -> Value:
        """Read a value as it stands on a command line or in a GTP command.

        Raises:
            OptionError: It is not what `expected` says.
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
        """Return `value` as the program is to see it.

        Raises:
            OptionError: It is of the wrong type or outside its range.
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
        """Read a value as USI has it.

        Raises:
            OptionError: It is none.
        """
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
        """Write a value as USI has it."""
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
        """Return the least and the greatest number that USI shows for a row of numbers."""
        assert self.usi is not None
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
    """Return the bytes that a text such as `256M`, `4G`, `1.5G` or `1000000` means."""
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


def option(
    default: Value,
    kind: str,
    text: str,
    group: str,
    *,
    low: float | None = None,
    high: float | None = None,
    unit: str = "",
    choices: tuple[str, ...] = (),
    katago: str = "",
    live: bool = True,
    games: tuple[str, ...] = (),
    defaults: Mapping[str, Value] = {},
    usi: Usi | None = None,
    words: Mapping[str, Value] = {},
) -> Any:
    """Describe a field of `Options`; the arguments are those of `Option`, which is optional where a default is None."""
    row = functools.partial(
        Option,
        kind=kind,
        default=default,
        help=text,
        group=group,
        low=low,
        high=high,
        unit=unit,
        choices=choices,
        optional=None in (default, *defaults.values()),
        katago=katago,
        live=live,
        games=games,
        defaults=defaults,
        usi=usi,
        words=words,
    )
    return field(default=default, metadata={"option": row})

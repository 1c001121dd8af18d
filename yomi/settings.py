"""Settings as rows: options of the engine, of learning, of matches and of training.

A dataclass field is a setting. Its annotation is the type; none is allowed if it has `| None`. From the row come the
check, the flag (`yomi.engine.cli.flags.add_settings`), the key of a file, the reference, and USI's option:

    @dataclass
    class Settings:
        visits: int = number(100, 2, None, "make this many visits in a full search")
        search: str = choice("puct", ("puct", "gumbel"), "choose the search")
"""

from __future__ import annotations

import dataclasses
import functools
import os
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import MISSING, dataclass, field
from typing import Any, TypeVar, cast

from yomi.errors import LineError, reraised
from yomi.language import tr

Value = bool | int | float | str | None
T = TypeVar("T")

UNITS = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}
TRUE, FALSE = ("true", "yes", "on", "1"), ("false", "no", "off", "0")
EMPTY = "<empty>"  # USI's word for an empty text
NO_NUMBER = 0  # USI's number for none
MAX_SPIN = 2**31 - 1  # graphical interfaces keep USI's numbers in 32 bits
MAX_WORD = 100  # longer words are not compared with known ones: the time has no bound
MIN_PART = 3  # letters of a word that may be part of a known word
# By kind: the word in a flag's help, and the expected value in messages.
METAVARS = {"int": "N", "real": "X", "memory": "SIZE", "file": "FILE", "text": "TEXT", "flag": "", "own": "TEXT"}
EXPECTED = {
    "int": "an integer",
    "real": "a number",
    "memory": "a size such as 256M or 4G",
    "flag": "true or false",
    "file": "a file",
    "text": "text",
    "own": "text",
}
KINDS = {"bool": "flag", "int": "int", "float": "real", "str": "text"}  # by the types of fields


class OptionError(LineError, ValueError):
    """An unknown setting or a wrong value. The message contains the expected values."""


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Return a question with up to three known words that resemble or contain `word`, or "" if there are none."""
    import difflib  # not above: it would add a millisecond to every start

    key, words = word.lower(), {name.lower(): name for name in known}
    if not key or key.lstrip("+-").isdecimal() or len(key) > MAX_WORD:
        return ""
    close = difflib.get_close_matches(key, words, 3, 0.7)
    if not close and len(key) >= MIN_PART:  # single letters are part of nearly every name
        close = [name for name in words if name in key or key in name or sorted(name) == sorted(key)]
    return tr("; did you mean {words}?", words=", ".join(words[name] for name in close[:3])) if close else ""


class Usi:
    __slots__ = ("choices", "names", "scale")

    def __init__(self, *names: str, scale: float = 1, choices: tuple[str, ...] = ()) -> None:
        """Describe a setting as an option of USI.

        Args:
            names: The name that is sent, then further names that are accepted.
            scale: factor from the value to USI's number: 1000 for seconds that USI has in milliseconds.
            choices: USI's names of the choices, in the order of the setting's own.
        """
        self.names, self.scale, self.choices = names, scale, choices


@dataclass(frozen=True, slots=True)
class Setting:
    """A setting: its name, its type, its limits and default, and its texts for the user."""

    name: str  # in Python and in files
    kind: str  # text, file, choice, flag, int, real, memory, or own: `read` parses it
    optional: bool  # whether none is allowed
    default: Any  # MISSING: a value is required
    help: str  # a verb phrase of at most 80 characters
    group: str = ""
    more: str = ""  # further sentences for the reference
    unset: str = ""  # meaning of none
    low: float | None = None
    high: float | None = None
    unit: str = ""
    choices: tuple[str, ...] = ()
    codes: tuple[int, ...] = ()  # the numbers that kernels read for the choices; empty: 0, 1, 2, ...
    many: bool = False  # a tuple of such values
    repeats: bool = False  # whether the flag of such a tuple is given once for each value
    names: tuple[str, ...] = ()  # names of flag and key: the current one, then old ones; empty: `name`
    word: str = ""  # the value in the flag's help, if it differs from METAVARS
    read: Callable[[str], Any] | None = None  # parses text of the kind `own`, or raises ValueError
    katago: str = ""  # KataGo's name, or ""
    live: bool = True  # whether it can change later: options while the engine runs (USI: without a new `isready`)
    games: tuple[str, ...] = ()  # games that have the option; empty: all
    defaults: Mapping[str, Value] = field(default_factory=dict)  # of games that differ from `default`
    usi: Usi | None = None
    words: Mapping[str, Value] = field(default_factory=dict)  # values with a name, such as max

    def default_for(self, game: str) -> Value:
        value: Value = self.defaults.get(game, self.default)
        return value

    def is_for(self, game: str) -> bool:
        return not self.games or game in self.games

    def code(self, value: str) -> int:
        """Return the number that kernels read for a choice."""
        index = self.choices.index(value)
        return self.codes[index] if self.codes else index

    @property
    def key(self) -> str:
        """The name that users write in files, with `_`. The flag has `-` in its place."""
        return self.names[0] if self.names else self.name

    @property
    def flag(self) -> str:
        return "--" + self.key.replace("_", "-")

    @property
    def metavar(self) -> str:
        return self.word or ("{" + ",".join(self.choices) + "}" if self.choices else METAVARS[self.kind])

    @property
    def expected(self) -> str:
        text = tr("one of {names}", names=", ".join(self.choices)) if self.choices else tr(EXPECTED[self.kind])
        if self.low is not None and self.high is None:
            text += tr(" of at least {low}", low=self.format(self.low))
        elif self.low is not None:
            text += tr(" from {low} to {high}", low=self.format(self.low), high=self.format(self.high))
        text = tr("a list, each {text}", text=text) if self.many else text
        return text + "".join(
            tr(", or {word}", word=word)
            for word in (*self.words, *(["none"] if self.optional and "none" not in self.choices else []))
        )

    def parse(self, text: str) -> Any:
        """Read a value from a command line or a GTP command.

        Raises:
            OptionError: the value is of the wrong type or out of range.
        """
        word = text.strip()
        if word.lower() in self.words:
            return self.words[word.lower()]
        if self.optional and word.lower() == "none" and "none" not in self.choices:
            return None
        try:
            match self.kind:
                case "own":
                    assert self.read is not None
                    return self.read(word)
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
            if self.kind == "own":
                raise OptionError(f"{self.key}: {error}") from None
            raise self._error(text) from None
        return self.check(word)

    def load(self, value: object) -> Any:
        """Return a value from a TOML file or from Python in the setting's type. Errors: see `check`."""
        if isinstance(value, str):
            if self.optional and value.lower() == "none" and "none" not in self.choices:
                return None
            if self.kind == "file" and value.startswith("~"):
                value = os.path.expanduser(value)
        return self.check(value)

    def check(self, value: object) -> Any:
        """Convert `value` to the setting's type, such as an integer to a float.

        Raises:
            OptionError: the value is of the wrong type or out of range.
        """
        if value is None and self.optional:
            return None
        if self.many:
            if not isinstance(value, list | tuple):
                raise self._error(value)
            return tuple(map(self._check_one, value))
        return self._check_one(value)

    def _check_one(self, value: object) -> Any:
        if self.kind == "own":
            # A list in a file is what a flag separates by commas.
            return self.parse(",".join(map(str, value)) if isinstance(value, list | tuple) else str(value))
        if self.kind == "flag":
            if not isinstance(value, bool):
                raise self._error(value)
            return value
        if self.kind in ("int", "real", "memory"):
            if isinstance(value, str) and (self.kind == "memory" or value.lower() in self.words):
                return self.parse(value)
            return self._check_number(value)
        if not isinstance(value, str) or any(ord(c) < 32 for c in value) or (not value and value != self.default):
            raise self._error(value)
        if self.kind == "choice" and value.lower() not in self.choices:
            raise self._error(value)
        return value.lower() if self.kind == "choice" else value

    def _check_number(self, value: object) -> int | float:
        if isinstance(value, bool) or not isinstance(value, int | float) or value - value != 0:  # nan and infinity
            raise self._error(value)
        if (self.low is not None and value < self.low) or (self.high is not None and value > self.high):
            raise self._error(value)
        if self.kind != "real":
            if value != int(value):
                raise self._error(value)
            return int(value)
        try:
            return float(value)
        except OverflowError:
            raise self._error(value) from None

    def _error(self, value: object) -> OptionError:
        text = tr("expected {expected}, found {value}", expected=self.expected, value=repr(value))
        return OptionError(f"{self.key}: {text}")

    def parse_usi(self, text: str) -> Value:
        """Read a value from USI's `setoption`. Errors: see `parse`."""
        usi = self.usi
        assert usi is not None
        word = text.strip()
        if self.kind in ("file", "text"):
            return self.parse("none" if word in ("", EMPTY) else word)  # type: ignore[no-any-return]
        if self.kind == "own":
            return self.parse(word)  # type: ignore[no-any-return]
        if self.kind in ("choice", "flag"):
            names = [name.lower() for name in usi.choices]
            if word.lower() in names:
                return self.choices[names.index(word.lower())]
            if usi.choices and word.lower() not in self.choices:
                raise OptionError(f"{usi.names[0]}: expected one of {', '.join(usi.choices)}, found {word[:100]!r}")
            return self.parse(word)  # type: ignore[no-any-return]
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
            return self._check_number(value if self.kind == "real" or value != round(value) else round(value))
        except OptionError:
            raise error from None

    def format_usi(self, value: Value) -> str:
        usi = self.usi
        assert usi is not None
        if self.kind in ("file", "text"):
            return EMPTY if value is None else str(value)
        if self.kind == "choice" and usi.choices:
            return usi.choices[self.choices.index(str(value))]
        if self.kind in ("choice", "flag", "own"):
            return self.format(value)
        return str(NO_NUMBER if value is None else self._scaled(float(value)))

    def usi_limits(self) -> tuple[int, int]:
        """Return the minimum and the maximum of a numeric option, as USI shows them."""
        assert self.low is not None
        assert self.high is not None
        low = self._scaled(self.low)
        return (min(low, NO_NUMBER) if self.optional else low), self._scaled(self.high)

    def _scaled(self, value: float) -> int:
        assert self.usi is not None
        return max(-MAX_SPIN, min(MAX_SPIN, round(value * self.usi.scale)))

    def format(self, value: Any) -> str:
        """Write a value so that `parse` reads it back."""
        if value is None or value in ("", (), []):
            return "none"
        if isinstance(value, bool):
            return "true" if value else "false"
        if self.many:
            return ",".join(map(str, value))
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


# -- fields of dataclasses ---------------------------------------------------------------------------------------------


def option(default: Any, text: str, group: str = "", *, kind: str = "", **others: Any) -> Any:
    """Define a dataclass field that is a setting. `others`: fields of `Setting`. No kind: that of the field's type."""

    def row(name: str, annotation: str) -> Setting:
        type_name, _, rest = annotation.partition(" | ")
        many = type_name.startswith("tuple[") and kind != "own"
        type_name = type_name.removeprefix("tuple[").removesuffix(", ...]")
        return Setting(name, kind or KINDS[type_name], rest == "None", default, text, group, **{"many": many, **others})

    return field(default=default, metadata={"setting": row})


def number(default: Any, low: float, high: float | None, text: str, group: str = "", **others: Any) -> Any:
    return option(default, text, group, low=low, high=high, **others)


def choice(default: str | None, choices: tuple[str, ...], text: str, group: str = "", **others: Any) -> Any:
    return option(default, text, group, kind="choice", choices=choices, **others)


flag = option  # the field's type makes it a flag


@functools.cache
def rows_of(kind: type) -> dict[str, Setting]:
    """Return the settings of a dataclass by name. Other fields are omitted."""
    fields = (field for field in dataclasses.fields(kind) if "setting" in field.metadata)
    return {row.name: row.metadata["setting"](row.name, str(row.type)) for row in fields}


def load_settings(kind: type, values: Mapping[str, Any], place: str = "") -> dict[str, Any]:
    """Return the checked values of settings by the names of the dataclass's fields.

    Args:
        kind: the dataclass.
        values: the values, as a TOML file or Python has them. Keys are the flags' names, also with `-`.
        place: begins the message of an error.

    Raises:
        OptionError: a name is unknown, or a value is of the wrong type or out of range.
    """
    rows = {name: row for row in rows_of(kind).values() for name in (row.names or (row.name,))}
    found = {}
    for name, value in values.items():
        row = rows.get(name.replace("-", "_"))
        if row is None:
            known = dict.fromkeys(row.key for row in rows.values())
            raise OptionError(f"{place}unknown setting {name!r}, expected one of {', '.join(known)}")
        with reraised(OptionError, OptionError, f"{place}"):
            found[row.name] = row.load(value)
    return found


def make_settings(kind: type[T], values: Mapping[str, Any], place: str = "") -> T:
    """Return a dataclass of settings with the checked values; see `load_settings`. Required values must be present."""
    found = load_settings(kind, values, place)
    for row in rows_of(cast(Any, kind)).values():
        if row.default is MISSING and row.name not in found:
            raise OptionError(f"{place}no {row.key} found, expected {row.key}=...: {row.help}")
    return kind(**found)

"""Engines that users describe: yomi with options, or any command line. Also their limits and clocks.

Mistakes in descriptions raise SpecError.
"""

import math
import re
import shlex
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import pairwise
from pathlib import Path, PurePath

from yomi.engine.clock import TimeSettings, TimeSystem
from yomi.engine.options import TABLE, OptionError, rows_for
from yomi.errors import LineError, reraised
from yomi.settings import did_you_mean
from yomi.system import split_command

TIMES = ("main", "byoyomi", "increment", "seconds")
COUNTS = ("periods", "stones", "playouts", "visits", "nodes", "depth")
MAX_COMMAND = 1 << 15
SEPARATOR = ";;"
YOMI = "yomi"
OWN = (sys.executable, "-m", "yomi")
# Options of yomi that are limits of the engine, so that they override the match's limits.
YOMI_LIMITS = ("visits", "playouts", "seconds")


class SpecError(LineError, ValueError):
    """The description of an engine or its limits is wrong. The message is one line."""


@dataclass(frozen=True, slots=True)
class EngineLimits:
    """Limits of one engine; None means no limit. Times are in seconds."""

    main: float | None = None
    byoyomi: float | None = None
    periods: int | None = None  # byo-yomi periods (default 1)
    stones: int | None = None  # moves to play within a period (Canadian byo-yomi)
    increment: float | None = None
    seconds: float | None = None  # Time per move. Exceeding it does not lose the game.
    playouts: int | None = None
    visits: int | None = None
    nodes: int | None = None
    depth: int | None = None

    def __post_init__(self) -> None:
        for name in TIMES:
            value = getattr(self, name)
            if value is not None and not (math.isfinite(value) and 0 <= value <= 1e7):
                raise SpecError(f"{name} {value}: expected seconds from 0 on")
        for name in COUNTS:
            value = getattr(self, name)
            if value is not None and value < 1:
                raise SpecError(f"{name} {value}: expected at least 1")
        if self.increment is not None and self.byoyomi is not None:
            raise SpecError("increment and byoyomi: expected one of them")
        if self.byoyomi is None and (self.periods is not None or self.stones is not None):
            raise SpecError("periods or stones without byoyomi: expected byoyomi, too")
        if self.periods is not None and self.stones is not None:
            raise SpecError("periods and stones: expected one of them")
        if self.has_clock and self.seconds is not None:
            raise SpecError("seconds (a move) beside main, byoyomi or increment: expected one kind")

    @property
    def has_clock(self) -> bool:
        return self.main is not None or self.byoyomi is not None or self.increment is not None

    def over(self, other: "EngineLimits") -> "EngineLimits":
        """Return these limits, completed by `other`. If a time is limited here, no time of `other` is used."""
        mine = {name: value for name, value in asdict(self).items() if value is not None}
        clock = ("main", "byoyomi", "periods", "stones", "increment", "seconds")
        replaced = clock if any(name in mine for name in clock) else ()
        return EngineLimits(**{name: value for name, value in asdict(other).items() if name not in replaced} | mine)

    def clock(self, *, increment_first: bool = False) -> TimeSettings:
        """Return the clock of a game. With `increment_first` (shogi) the increment comes before each move."""
        main = self.main or 0.0
        if self.byoyomi is not None:
            if self.stones is not None:
                return TimeSettings(TimeSystem.CANADIAN, main, self.byoyomi, self.stones)
            return TimeSettings(TimeSystem.BYOYOMI, main, self.byoyomi, self.periods or 1)
        if self.increment is not None:
            return TimeSettings(TimeSystem.FISCHER, main + self.increment * increment_first, increment=self.increment)
        if self.main is not None:
            return TimeSettings(TimeSystem.ABSOLUTE, main)
        return TimeSettings()

    def __str__(self) -> str:
        return " ".join(f"{name} {value:g}" for name, value in asdict(self).items() if value is not None) or "no limit"


def limits_of(values: Mapping[str, object]) -> EngineLimits:
    found: dict[str, float | int] = {}
    for name, value in values.items():
        if name not in (*TIMES, *COUNTS):
            raise SpecError(f"unknown limit '{name}': expected one of {', '.join((*TIMES, *COUNTS))}")
        try:
            number = float(str(value))
        except ValueError:
            raise SpecError(f"{name} '{value}': expected a number") from None
        if name in COUNTS and not number.is_integer():
            raise SpecError(f"{name} {value}: expected a whole number")
        found[name] = int(number) if name in COUNTS else number
    return EngineLimits(**found)  # type: ignore[arg-type]  # checked above


@dataclass(frozen=True, slots=True)
class EngineSpec:
    name: str
    command: tuple[str, ...]
    limits: EngineLimits = field(default_factory=EngineLimits)
    options: Mapping[str, str] = field(default_factory=dict)  # USI options by name
    commands: tuple[str, ...] = ()  # GTP commands sent once after the start
    folder: str | None = None
    environment: Mapping[str, str] = field(default_factory=dict)
    evaluations: bool = True  # GTP: choose moves by a command that reports the evaluation, if the engine has one


def parse_spec(text: str, game: str, protocol: str) -> EngineSpec:
    """Read `yomi[:OPTION=VALUE,...] [;; KEY=VALUE ...]` or `COMMAND LINE [;; KEY=VALUE ...]`.

    The keys: name, a limit (seconds, visits, playouts, nodes, depth, main, byoyomi, periods, stones, increment),
    option.NAME (USI), init (a GTP command), folder, env.NAME, evaluations. `game` and `protocol` are those of yomi.
    """
    return parse_spec_table(spec_table(text), game, protocol)


def spec_table(text: str) -> dict[str, object]:
    engine, _, rest = text.partition(SEPARATOR)
    values: dict[str, object] = {"engine": engine.strip()}
    tables: dict[str, dict[str, str]] = {"option": {}, "env": {}}
    init: list[str] = []
    for word in _split(rest):
        key, equals, value = word.partition("=")
        if not equals:
            raise SpecError(f"'{word}' after {SEPARATOR}: expected KEY=VALUE")
        table, dot, name = key.partition(".")
        if dot and table in tables:
            tables[table][name] = value
        elif key == "init":
            init.append(value)
        else:
            values[key] = value
    return values | {"options": tables["option"], "env": tables["env"], "init": init}


def without_secrets(text: str) -> str:
    """Return a player of a command line, in which `...` replaces the values of its environment."""
    engine, separator, rest = text.partition(SEPARATOR)
    if not separator:
        return text
    words = (re.sub(r"^(env\.[^=]*=).*", r"\1...", word, flags=re.DOTALL) for word in _split(rest))
    return f"{engine}{separator} {shlex.join(words)}"


def networks_of(spec: EngineSpec) -> dict[str, str]:
    """Return the network files in the command line of a yomi engine, by flag."""
    known = {TABLE[name].flag for name in ("net", "value_net")} if is_own(spec) else ()
    return {flag: file for flag, file in pairwise(spec.command) if flag in known}


def parse_spec_table(values: Mapping[str, object], game: str, protocol: str) -> EngineSpec:
    """Read a TOML table: the key engine, and the keys of `parse_spec` (as tables: options, env; as a list: init)."""
    command = command_of(values)
    left = {key: value for key, value in values.items() if key != "engine"}
    limits = {key: left.pop(key) for key in (*TIMES, *COUNTS) if key in left}
    name = str(left.pop("name", ""))
    options = {key: text_of(value) for key, value in _table("options", left.pop("options", {})).items()}
    environment = {key: text_of(value) for key, value in _table("env", left.pop("env", {})).items()}
    commands = tuple(_texts("init", left.pop("init", [])))
    folder = left.pop("folder", None)
    evaluations = text_of(left.pop("evaluations", "true"))
    if left:
        raise SpecError(f"unknown key '{next(iter(left))}' of a player: expected engine, name, a limit, options, ...")
    if evaluations not in ("true", "false"):
        raise SpecError(f"evaluations '{evaluations}': expected true or false")
    if is_yomi(command[0]):
        name = name or ",".join(map(_short, command[0].split(",")))
        own, command = _yomi(command, game, protocol)
        limits = own | limits
    name = name or PurePath(command[0]).name.removesuffix(".exe")
    if any(ord(character) < 32 for character in name):
        raise SpecError(f"name {name!r}: expected a name of one line, without control characters")
    with reraised(SpecError, SpecError, f"player '{name}': "):
        return EngineSpec(
            name,
            tuple(command),
            limits_of(limits),
            options,
            commands,
            None if folder is None else str(folder),
            environment,
            evaluations == "true",
        )


def command_of(values: Mapping[str, object]) -> list[str]:
    engine = values.get("engine", "")
    command = _split(engine) if isinstance(engine, str) else list(_texts("engine", engine))
    if not command:
        raise SpecError("a player without engine: expected yomi or a command line")
    return command


def with_unique_names(specs: Sequence[EngineSpec]) -> list[EngineSpec]:
    named: list[EngineSpec] = []
    for spec in specs:
        name, number = spec.name, 1
        while any(other.name == name for other in named):
            number += 1
            name = f"{spec.name}-{number}"
        named.append(replace(spec, name=name))
    return named


def is_yomi(word: str) -> bool:
    """Return whether the first word of a command line means this program."""
    return word == YOMI or word.startswith(f"{YOMI}:")


def is_own(spec: EngineSpec) -> bool:
    """Return whether `parse_spec` made this engine from the word `yomi`."""
    return spec.command[: len(OWN)] == OWN


def _yomi(command: list[str], game: str, protocol: str) -> tuple[dict[str, object], list[str]]:
    """Return the limits in `yomi:OPTION=VALUE,... [FLAG ...]`, and the command line of the engine."""
    limits: dict[str, object] = {}
    flags: list[str] = []
    known = {row.name: row for row in rows_for(game)}
    for word in filter(None, command[0].partition(":")[2].split(",")):
        key, equals, value = word.partition("=")
        name = key.strip().replace("-", "_")
        if name not in known:
            what = "another game's option" if name in TABLE else "unknown option"
            hint = did_you_mean(name, known)
            raise SpecError(f"yomi:{word}: {what} '{key}', expected OPTION=VALUE with one of yomi help options{hint}")
        row = known[name]
        with reraised(OptionError, SpecError, f"yomi:{word}: "):
            parsed = row.parse(value if equals else "true")
        if name in YOMI_LIMITS and parsed is not None:
            limits[name] = value
        elif row.kind == "flag":
            flags.append(row.flag if parsed else row.flag.replace("--", "--no-", 1))
        else:
            flags += [row.flag, value]
    return limits, [*OWN, protocol, *flags, *command[1:]]


def _short(word: str) -> str:
    # Without the folder of the file, for the name of an engine.
    key, equals, value = word.partition("=")
    return f"{key}{equals}{Path(value).name}" if equals else word


def _split(text: str) -> list[str]:
    if len(text) > MAX_COMMAND:
        raise SpecError(f"a command line of {len(text)} characters found, expected at most {MAX_COMMAND}")
    try:
        return split_command(text)
    except ValueError as error:
        raise SpecError(f"'{text}': {str(error).lower()}") from None


def text_of(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _texts(key: str, value: object) -> list[str]:
    if isinstance(value, str):
        return [value]
    if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
        raise SpecError(f"{key}: expected a list of texts")
    return value


def _table(key: str, value: object) -> Mapping[str, object]:
    if not isinstance(value, Mapping):
        raise SpecError(f"{key}: expected a table of names and values")
    return value

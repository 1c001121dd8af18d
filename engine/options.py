"""One table of options: command-line flags, the TOML file, GTP parameters and docs/OPTIONS.md are all made from it.

The table is the class `Options`: a field is an option, its type annotation the type that the program sees, its
metadata (made by `option`) everything else. `python -m engine.options` prints the reference.
"""

from __future__ import annotations

import dataclasses
import functools
import math
import re
import tomllib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

Value = bool | int | float | str | None

UNITS = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}
TRUE, FALSE = ("true", "yes", "on", "1"), ("false", "no", "off", "0")


class OptionError(ValueError):
    """A value or a name that the table does not allow; the message says what was expected."""


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
    """May be changed while the program runs."""

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
        return text + (", or none" if self.optional else "")

    def parse(self, text: str) -> Value:
        """Read a value as it stands on a command line or in a GTP command.

        Raises:
            OptionError: It is not what `expected` says.
        """
        word = text.strip()
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
            if self.kind == "memory" and isinstance(value, str):
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
    optional: bool = False,
) -> Any:
    """Describe a field of `Options`; the arguments are those of `Option`."""
    optional = optional or default is None
    parts = (default, kind, text, group, low, high, unit, choices, optional, katago, live)
    return field(default=default, metadata={"option": functools.partial(_row, parts)})


def _row(parts: tuple[Any, ...], name: str) -> Option:
    default, kind, text, group, low, high, unit, choices, optional, katago, live = parts
    return Option(name, kind, default, text, group, low, high, unit, choices, optional, katago, live)


NETWORK, LIMITS, SEARCH, PLAY, GAME, LOG = "Network", "Limits", "Search", "Play", "Game", "Log"


@dataclass
class Options:
    """Every setting of the engine, with its value."""

    net: str | None = option(
        None,
        "file",
        "network to play with: KataGo's .bin.gz or .txt.gz, or ONNX; without one, rollouts",
        NETWORK,
        live=False,
    )
    evaluator: str = option(
        "auto",
        "choice",
        "what judges positions; auto: the network where one is given, else rollouts",
        NETWORK,
        choices=("auto", "onnx", "rollouts", "uniform"),
        live=False,
    )
    device: str = option(
        "auto", "choice", "where the network runs", NETWORK, choices=("auto", "cpu", "cuda", "tensorrt"), live=False
    )
    backend: str = option(
        "auto",
        "choice",
        "what computes the network; auto: yomi's own kernels on a processor where they can, else onnxruntime",
        NETWORK,
        choices=("auto", "native", "onnx"),
        live=False,
    )
    precision: str = option(
        "auto", "choice", "numbers that the network computes with", NETWORK, choices=("auto", "fp32"), live=False
    )
    symmetry: str = option(
        "random",
        "choice",
        "symmetry of the board that the network sees: a random one each time, none, or the average over all eight",
        NETWORK,
        choices=("random", "none", "average"),
    )
    cache_size: int = option(
        64 * 2**20, "memory", "memory for evaluations of positions seen before", NETWORK, low=0, high=2**40, live=False
    )

    visits: int | None = option(
        None,
        "int",
        "visits of the root for a move, those kept from earlier searches included",
        LIMITS,
        low=1,
        high=10**12,
        katago="maxVisits",
    )
    playouts: int | None = option(None, "int", "playouts for a move", LIMITS, low=1, high=10**12, katago="maxPlayouts")
    seconds: float | None = option(
        None,
        "real",
        "time for a move; on a clock, the most for a move (without any limit and without a clock: 5 seconds)",
        LIMITS,
        low=0,
        high=10**7,
        unit="s",
        katago="maxTime",
    )
    memory: int = option(2**30, "memory", "memory for the search tree", LIMITS, low=2**20, high=2**44, live=False)
    lag: float = option(
        0.2,
        "real",
        "time kept in reserve for each move against delays on the way to the clock",
        LIMITS,
        low=0,
        high=60,
        unit="s",
        katago="lagBuffer",
    )

    workers: int | None = option(
        None,
        "int",
        "search workers (threads) on one tree; none: one for each processor core",
        SEARCH,
        low=1,
        high=256,
        katago="numSearchThreads",
        live=False,
    )
    batch_size: int | None = option(
        None, "int", "positions evaluated at once; none: what suits the device", SEARCH, low=1, high=4096, live=False
    )
    batches_in_flight: int | None = option(
        None,
        "int",
        "batches that a worker keeps under way; none: what suits the device",
        SEARCH,
        low=1,
        high=64,
        live=False,
    )
    c_puct: float | None = option(
        None,
        "real",
        "exploration: constant part of the factor; none: 1.0 with a network, 1.8 with rollouts",
        SEARCH,
        low=0,
        high=100,
        katago="cpuctExploration",
    )
    c_puct_log: float = option(
        0.45,
        "real",
        "exploration: part that grows with log((visits + c_puct_base) / c_puct_base)",
        SEARCH,
        low=0,
        high=100,
        katago="cpuctExplorationLog",
    )
    c_puct_base: float = option(
        500.0,
        "real",
        "exploration: visits at which the logarithm starts to count",
        SEARCH,
        low=1,
        high=10**9,
        katago="cpuctExplorationBase",
    )
    fpu_reduction: float = option(
        0.2,
        "real",
        "first-play urgency: what an unvisited move loses against its parent's value",
        SEARCH,
        low=0,
        high=2,
        katago="fpuReductionMax",
    )
    root_fpu_reduction: float = option(
        0.1, "real", "the same at the root", SEARCH, low=0, high=2, katago="rootFpuReductionMax"
    )
    virtual_loss: float = option(
        1.0,
        "real",
        "losses that a playout under way counts for",
        SEARCH,
        low=0,
        high=100,
        katago="numVirtualLossesPerThread",
    )
    score_utility: float = option(
        0.1,
        "real",
        "weight of the score beside winning and losing (1), measured from zero",
        SEARCH,
        low=0,
        high=2,
        katago="staticScoreUtilityFactor",
    )
    dynamic_score_utility: float = option(
        0.3,
        "real",
        "weight of the score, measured from the score that the search expects",
        SEARCH,
        low=0,
        high=2,
        katago="dynamicScoreUtilityFactor",
    )
    rollout_weight: float = option(
        0.0, "real", "share of rollouts in the value of a position; the rest is the network's", SEARCH, low=0, high=1
    )
    policy_temperature: float = option(
        1.0,
        "real",
        "temperature of the network's policy; above 1 flatter",
        SEARCH,
        low=0.01,
        high=100,
        katago="nnPolicyTemperature",
    )
    root_policy_temperature: float = option(
        1.0, "real", "the same at the root", SEARCH, low=0.01, high=100, katago="rootPolicyTemperature"
    )
    root_noise: float = option(
        0.0,
        "real",
        "share of Dirichlet noise in the root's policy (self-play: 0.25)",
        SEARCH,
        low=0,
        high=1,
        katago="rootDirichletNoiseWeight",
    )
    root_noise_total: float = option(
        10.83,
        "real",
        "sum of the concentrations of that noise over the legal moves",
        SEARCH,
        low=0.01,
        high=1000,
        katago="rootDirichletNoiseTotalConcentration",
    )
    use_lcb: bool = option(
        True,
        "flag",
        "choose among the most visited moves by the lower confidence bound",
        SEARCH,
        katago="useLcbForSelection",
    )
    seed: int | None = option(
        None,
        "int",
        "seed of all random choices; with one worker the search repeats itself exactly; none: a new one each start",
        SEARCH,
        low=0,
        high=2**62,
    )

    ponder: bool = option(False, "flag", "think in the opponent's time", PLAY, katago="ponderingEnabled")
    resign: bool = option(True, "flag", "resign lost games", PLAY, katago="allowResignation")
    resign_threshold: float = option(
        0.05, "real", "winrate below which a move counts as lost", PLAY, low=0, high=1, katago="resignThreshold"
    )
    resign_moves: int = option(
        3,
        "int",
        "own moves in a row below the threshold before the engine resigns",
        PLAY,
        low=1,
        high=1000,
        katago="resignConsecTurns",
    )
    temperature: float = option(
        0.0,
        "real",
        "temperature of the choice among the visited moves; 0 takes the best",
        PLAY,
        low=0,
        high=10,
        katago="chosenMoveTemperature",
    )
    temperature_moves: int = option(
        0,
        "int",
        "moves from the start of the game that the temperature is used for; after them the best is taken; 0: all",
        PLAY,
        low=0,
        high=10000,
    )
    cleanup: bool = option(
        False,
        "flag",
        "capture all dead stones before passing (servers that score the board as it stands, such as CGOS)",
        PLAY,
    )

    size: int = option(19, "int", "board size until boardsize is sent", GAME, low=2, high=19, live=False)
    rules: str = option(
        "tromp-taylor",
        "text",
        "tromp-taylor, chinese, japanese, korean, aga, new-zealand, another of KataGo's names, or KataGo's JSON form",
        GAME,
        live=False,
    )
    komi: float | None = option(
        None, "real", "komi until komi is sent; none: that of the rules", GAME, low=-1000, high=1000, live=False
    )

    log_file: str | None = option(
        None, "file", "write the log there (appended); none: warnings and errors to stderr", LOG, live=False
    )
    log_level: str = option(
        "info",
        "choice",
        "what the log file receives; debug: every line of the protocol",
        LOG,
        choices=("debug", "info", "warning", "error"),
        live=False,
    )

    def set(self, name: str, value: object) -> None:
        """Check `value` and put it in force.

        Raises:
            OptionError: There is no such option, or the value does not suit it.
        """
        row = find(name)
        setattr(self, row.name, row.check(value))

    def set_text(self, name: str, text: str) -> None:
        """Like `set`, from text."""
        row = find(name)
        setattr(self, row.name, row.parse(text))

    def get(self, name: str) -> Value:
        """Return the value in force."""
        value: Value = getattr(self, find(name).name)
        return value

    def copy(self) -> Options:
        """Return an independent copy."""
        return dataclasses.replace(self)


TABLE: dict[str, Option] = {row.name: row.metadata["option"](row.name) for row in dataclasses.fields(Options)}
"""Every option by name, in the order of the reference."""

ALIASES = {row.katago.lower(): row.name for row in TABLE.values() if row.katago}


def find(name: str) -> Option:
    """Return the row of an option by its name (dashes or underscores) or KataGo's name for it.

    Raises:
        OptionError: There is none.
    """
    key = name.replace("-", "_").lower()
    key = ALIASES.get(name.lower(), key)
    if key not in TABLE:
        close = [known for known in TABLE if key and (key in known or known in key)]
        hint = f"; did you mean {', '.join(close[:3])}?" if close else ""
        raise OptionError(f"unknown option {name!r}{hint}")
    return TABLE[key]


def read_config(path: Path) -> dict[str, Value]:
    """Read a TOML file of options.

    Raises:
        OptionError: The file cannot be read or is not TOML, or a key or a value is not in the table.
    """
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise OptionError(f"cannot read the configuration {path}: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise OptionError(f"{path} is not a TOML file: {error}") from None
    values: dict[str, Value] = {}
    for key, value in data.items():
        try:
            row = find(key)
            is_text = row.optional and isinstance(value, str) and value.lower() == "none"
            values[row.name] = None if is_text else row.check(value)
        except OptionError as error:
            raise OptionError(f"{path}: {error}") from None
    return values


def reference() -> str:
    """Return docs/OPTIONS.md."""
    lines = [
        "# Options",
        "",
        "Made from the table in `engine/options.py` by `python -m engine.options`; do not edit.",
        "",
        "Each option is a command-line flag, a key of the TOML file given by `--config FILE` (same name, `_` for `-`),",
        "and a parameter of `kata-get-param` and `kata-set-param`, where KataGo's name (in the fourth column) is",
        "understood as well. The command line goes before the file, the file before the defaults. Options marked",
        "`start` cannot be changed while the engine runs.",
    ]
    for group in dict.fromkeys(row.group for row in TABLE.values()):
        lines += ["", f"## {group}", "", "| option | value | default | | meaning |", "|---|---|---|---|---|"]
        for row in TABLE.values():
            if row.group == group:
                unit = f" ({row.unit})" if row.unit else ""
                notes = ", ".join(filter(None, [row.katago and f"`{row.katago}`", "" if row.live else "start"]))
                lines.append(
                    f"| `{row.flag}` | {row.expected}{unit} | {row.format(row.default)} | {notes} | {row.help} |"
                )
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    print(reference(), end="")

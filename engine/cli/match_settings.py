"""The settings of `yomi match`: one table for flags and the TOML file."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from yomi.engine.arguments import add_old_names, type_of
from yomi.engine.cli.games import GAMES
from yomi.engine.cli.parser import CliError
from yomi.engine.clients.spec import COUNTS, TIMES, text_of
from yomi.engine.matches.schedule import FORMS
from yomi.engine.options import TABLE
from yomi.nets.text import read_toml

FILE_PLAYERS = "players"
MAX_CPU = 4095


def count(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise ValueError(f"expected a number from 1 on, found {text!r}")
    return int(text)


def number(text: str) -> int:
    if not text.isdecimal():
        raise ValueError(f"expected a number from 0 on, found {text!r}")
    return int(text)


def seconds(text: str) -> float:
    return _real(text, 0.0, 1e7, "seconds")


def share(text: str) -> float:
    return _real(text, 0.0, 0.5, "a winrate from 0 to 0.5")


def _real(text: str, low: float, high: float, what: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not low <= value <= high:
        raise ValueError(f"expected {what}, found {text!r}")
    return value


def cpus(text: str) -> list[frozenset[int]]:
    """Read processors: `0,1` or groups `0-1,2-3`."""
    groups = []
    for group in text.replace(" ", "").split(","):
        first, dash, last = group.partition("-")
        if not (_is_cpu(first) and (_is_cpu(last) or not dash) and int(first) <= int(last or first)):
            raise ValueError(f"expected processors such as 0,1 or 0-1,2-3 (up to {MAX_CPU}), found {text!r}")
        groups.append(frozenset(range(int(first), int(last or first) + 1)))
    return groups


def _is_cpu(text: str) -> bool:
    return text.isdecimal() and len(text) <= len(str(MAX_CPU)) and int(text) <= MAX_CPU


def bounds(text: str) -> tuple[float, ...]:
    """Read the bounds of an SPRT: `ELO0,ELO1[,ALPHA,BETA]`."""
    try:
        values = tuple(float(word) for word in text.split(","))
    except ValueError:
        values = ()
    if len(values) not in (2, 4):
        raise ValueError(f"expected ELO0,ELO1 or ELO0,ELO1,ALPHA,BETA, found {text!r}")
    return values


def flag(text: str) -> bool:
    if text not in ("true", "false"):
        raise ValueError(f"expected true or false, found {text!r}")
    return text == "true"


def one_of(choices: Collection[str]) -> Callable[[str], str]:
    def read(text: str) -> str:
        if text not in choices:
            raise ValueError(f"expected one of {', '.join(choices)}, found {text!r}")
        return text

    return read


@dataclass(frozen=True, slots=True)
class Setting:
    name: str
    read: Callable[[str], Any]
    default: Any
    metavar: str
    help: str
    group: str = ""
    old_name: str = ""
    """Accepted as a flag and as a key of the file."""


LIMITS, RUNNING, OPENINGS, ENDING = "limits of players without their own", "running", "openings", "ending games"
LIMIT_HELP = {
    "main": "set the main time of a game",
    "byoyomi": "set the time of a byo-yomi period",
    "increment": "add this time for each move",
    "seconds": "set the time of a move; exceeding it does not lose the game",
    "periods": "Go: set the number of byo-yomi periods (default: 1)",
    "stones": "Go: set the stones to play in a period (Canadian overtime)",
    "playouts": "limit the playouts of a move",
    "visits": "limit the visits of a move",
    "nodes": "shogi: limit the nodes of a move",
    "depth": "shogi: limit the depth of the search",
}

SETTINGS = (
    Setting("game", one_of(GAMES), None, "GAME", argparse.SUPPRESS),  # on the command line it precedes the players
    Setting("games", count, 2, "N", "play this many games with each pair of players (default: 2)"),
    Setting("form", one_of(FORMS), FORMS[0], "FORM",
            "play a round-robin, or a gauntlet of the first player (default: round-robin)"),
    Setting("out", Path, Path("match"), "FOLDER", "write records and journal to this folder (default: match)"),
    *(Setting(name, seconds, None, "S", LIMIT_HELP[name], LIMITS) for name in TIMES),
    *(Setting(name, count, None, "N", LIMIT_HELP[name], LIMITS) for name in COUNTS),
    Setting("margin", seconds, 0.0, "S", "allow moves this much more than their time (default: 0)", LIMITS),
    Setting("timeout", seconds, None, "S", "forfeit engines silent for this much more than their time"
            " (default: 60, or 600 if a player has no time limit)", LIMITS),
    Setting("at_once", count, None, "N", "play this many games at the same time (default: groups of --cpus, or 1)",
            RUNNING, old_name="parallel"),
    Setting("cpus", cpus, [], "LIST", "pin the engines of each game to processors: 0,1 or 0-1,2-3", RUNNING),
    Setting("restart", flag, False, "", "start the engines again for every game", RUNNING),
    Setting("size", count, None, "N", "set the board size (default: 19)", "Go"),
    Setting("komi", float, None, "K", "set the komi (default: the komi of the rules)", "Go"),
    Setting("rules", str, None, "RULES", "set the rules, as in yomi gtp (default: tromp-taylor)", "Go"),
    Setting("scorer", str, None, "WHAT", "score by area, ownership (by rollouts), or a GTP engine's command line"
            " (default: area if the rules count all stones as alive, otherwise ownership)", "Go"),
    Setting("entering_king", one_of(TABLE["entering_king"].choices), None, "RULE",
            "set the rule of the declaration win: none, 24, 24h, 27, 27h (default: 27)", "shogi"),
    Setting("openings", str, None, "FROM", "read a record, folder or SFEN list; policy: yomi draws openings", OPENINGS),
    Setting("opening_moves", count, None, "N", "set the moves of an opening (default: all of a record; policy: 8)",
            OPENINGS),
    Setting("opening_net", Path, None, "FILE", "draw policy openings with this network (default: none)", OPENINGS),
    Setting("opening_seed", number, 1, "N", "set the seed of openings and of their order (default: 1)", OPENINGS),
    Setting("max_moves", number, 0, "N", "score (Go) or draw (shogi) games after N moves (default: 3 per point; 512)",
            ENDING),
    Setting("resign_below", share, None, "P", "end games if both engines see the same side below this winrate", ENDING),
    Setting("resign_moves", count, 3, "N", "require agreement for this many moves of each side (default: 3)", ENDING),
    Setting("sprt", bounds, None, "E0,E1", "stop when the first player is clearly stronger by E1 Elo, or by at most E0",
            ENDING),
)  # fmt: skip


def add_settings(parser: argparse.ArgumentParser) -> None:
    groups: dict[str, Any] = {"": parser}
    for setting in SETTINGS:
        if setting.group not in groups:
            groups[setting.group] = parser.add_argument_group(setting.group)
        group = groups[setting.group]
        words = f"--{setting.name.replace('_', '-')}"
        if setting.read is flag:
            group.add_argument(words, action="store_const", const=True, help=setting.help)
        else:
            action = group.add_argument(words, metavar=setting.metavar, type=type_of(setting.read), help=setting.help)
            if setting.old_name:
                add_old_names(group, action, f"--{setting.old_name}")


def read_file(path: Path | None) -> tuple[dict[str, Any], list[Mapping[str, Any]]]:
    if path is None:
        return {}, []
    try:
        data = read_toml(path)
    except OSError as error:
        raise CliError(f"--config {path}: {error.strerror}") from None
    except ValueError as error:
        raise CliError(f"--config {path}: {error}") from None
    players = data.pop(FILE_PLAYERS, [])
    if not isinstance(players, list) or not all(isinstance(player, Mapping) for player in players):
        raise CliError(f"--config {path}: expected players as tables [[players]]")
    return read_values(data, f"--config {path}: "), players


def read_values(data: Mapping[str, Any], place: str = "") -> dict[str, Any]:
    """Return settings by name from values as a TOML file has them; `place` begins the message of an error.

    Raises:
        CliError: a setting is unknown, or its value is wrong.
    """
    known = {setting.name: setting for setting in SETTINGS}
    by_old_name = {setting.old_name: setting for setting in SETTINGS if setting.old_name}
    values = {}
    for key, value in data.items():
        setting = {**by_old_name, **known}.get(key.replace("-", "_"))
        if setting is None:
            raise CliError(f"{place}unknown key '{key}', expected one of {', '.join(known)}, players")
        try:
            values[setting.name] = setting.read(_as_typed(value))
        except ValueError as error:
            raise CliError(f"{place}{key}: {error}") from None
    return values


def _as_typed(value: object) -> str:
    return ",".join(map(text_of, value)) if isinstance(value, list) else text_of(value)


def merge(args: argparse.Namespace, from_file: Mapping[str, Any]) -> argparse.Namespace:
    """Return all settings. The command line overrides the file, the file overrides the defaults."""
    merged = argparse.Namespace()
    for setting in SETTINGS:
        value = getattr(args, setting.name)
        setattr(merged, setting.name, from_file.get(setting.name, setting.default) if value is None else value)
    return merged

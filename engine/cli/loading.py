"""Options of command lines and of the files that they name."""

from __future__ import annotations

import argparse
import os
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from yomi.engine.cli.flags import add_setting, type_of
from yomi.engine.cli.parser import CliError
from yomi.engine.default_network import network_fault
from yomi.engine.levels import FULL
from yomi.engine.options import TABLE, Options, Value, read_config, rows_for
from yomi.language import tr
from yomi.settings import OptionError

if TYPE_CHECKING:
    from yomi.engine.game import Game

LIMITS = ("visits", "playouts", "seconds", "depth")
LEFT_OUT = "left_out"  # Name of the argument that lists the options without a flag


def user_config() -> Path | None:
    """Return the path of the user's file of options, or None if this user has no home folder."""
    base = Path(os.environ.get("XDG_CONFIG_HOME", ""))
    if not base.is_absolute():  # the specification wants others to be ignored
        try:
            base = Path.home() / ".config"
        except RuntimeError:
            return None
    return base / "yomi" / "config.toml"


def add_options(
    parser: argparse.ArgumentParser,
    game: Game[Any, Any],
    leave_out: Collection[str] = (),
    defaults: Mapping[str, Value] | None = None,
) -> None:
    """Add `--config` and a flag for every option of a game, in groups, except those in `leave_out`.

    `defaults` are the command's own defaults, for the help. Pass them to `collect` as well.
    """
    text = "read options from a TOML file (keys: docs/OPTIONS.md)"
    parser.add_argument("--config", metavar="FILE", type=Path, help=text)
    parser.set_defaults(**{LEFT_OUT: tuple(sorted(leave_out))})
    groups: dict[str, argparse._ArgumentGroup] = {}
    for row in rows_for(game.name):
        if row.name in leave_out:
            continue
        if row.group not in groups:
            groups[row.group] = parser.add_argument_group(row.group.lower())
        action = add_setting(groups[row.group], row, (defaults or {}).get(row.name, row.default_for(game.name)))
        if row.name == "size" and "height" not in leave_out:
            action.type = type_of(_read_size, "size: ")


def _read_size(text: str) -> int | tuple[int, int]:
    """Return the number of `--size`, or columns and rows of COLUMNSxROWS. Raises OptionError."""
    columns, cross, rows = text.lower().partition("x")
    if cross and not (columns.isdecimal() and rows.isdecimal()):
        raise OptionError(tr("expected a number or COLUMNSxROWS such as 13x9, found {text}", text=repr(text)))
    size: int = TABLE["size"].parse(columns)
    return (size, TABLE["height"].parse(rows)) if cross else size


def collect(args: argparse.Namespace, game: Game[Any, Any], /, **defaults: Value) -> Options:
    """Return the options merged from all sources. Highest priority first: command line, `--config`, the user's file,
    `defaults`.

    With `--level`, `defaults` contains the level's settings and has priority over the user's file.
    """
    options = Options.for_game(game.name)
    given = {name: value for name, value in vars(args).items() if name in TABLE}
    if isinstance(given.get("size"), tuple):
        given["size"], given["height"] = given["size"]
    from_user = _from_user(args, game)
    has_level = given.get("level", FULL) != FULL
    defaults = {**from_user, **defaults} if has_level else {**defaults, **from_user}
    for name, value in {**defaults, **_from_file(args, game), **given}.items():
        options.set(name, value)
    check(options, game)
    return options


def known_options(args: argparse.Namespace, game: Game[Any, Any]) -> set[str]:
    """Return the names of the options that the command line or a file set."""
    return {*file_values(args, game), *named_options(args, game)}


def named_options(args: argparse.Namespace, game: Game[Any, Any]) -> set[str]:
    """Return the names of the options that `--config` or the command line set, not the user's file."""
    return {*_from_file(args, game), *(name for name in vars(args) if name in TABLE)}


def visits_without_limit(args: argparse.Namespace, visits: int, game: Game[Any, Any]) -> dict[str, Value]:
    """Return `visits` as a default for `collect`, or nothing if the user set another limit."""
    given, others = _given(args, game), [name for name in _limits(game) if name != "visits"]
    return {} if any(given.get(name) is not None for name in others) else {"visits": visits}


def is_given(args: argparse.Namespace, game: Game[Any, Any], *names: str) -> bool:
    """Whether the user set one of these options, be it to none."""
    given = _given(args, game)
    return any(name in given for name in names)


def _given(args: argparse.Namespace, game: Game[Any, Any]) -> dict[str, Any]:
    return {**file_values(args, game), **vars(args)}


def _limits(game: Game[Any, Any]) -> list[str]:
    return [name for name in LIMITS if TABLE[name].is_for(game.name)]


def check_limited(options: Options, game: Game[Any, Any]) -> None:
    if all(options.get(name) is None for name in _limits(game)):
        names = ", ".join(_limits(game))
        raise CliError(tr("visits none without another limit: expected one of {names}", names=names))


def file_values(args: argparse.Namespace, game: Game[Any, Any]) -> dict[str, Value]:
    """Return the options of the user's file and, over them, of the file of --config."""
    return {**_from_user(args, game), **_from_file(args, game)}


def _from_file(args: argparse.Namespace, game: Game[Any, Any]) -> dict[str, Value]:
    return {} if args.config is None else read_config(args.config, game.name)


def _from_user(args: argparse.Namespace, game: Game[Any, Any]) -> dict[str, Value]:
    left_out = vars(args).get(LEFT_OUT, ())
    return {name: value for name, value in user_values(game).items() if name not in left_out}


def user_values(game: Game[Any, Any]) -> dict[str, Value]:
    path = user_config()
    try:
        return read_config(path, game.name) if path is not None and path.exists() else {}
    except OSError as error:
        raise CliError(
            tr(
                "cannot read the configuration {path}: {why}; expected XDG_CONFIG_HOME to name a folder that this user"
                " can read",
                path=path,
                why=error.strerror,
            )
        ) from None


def check(options: Options, game: Game[Any, Any], places: Mapping[str, str] | None = None) -> None:
    """Raise CliError for a network that is no file, or for options that do not fit the game. Loads nothing slow.

    `places`: for errors, the place of each option that is not a flag.
    """
    places = places or {}
    for name, path in (("net", options.net), ("value_net", options.value_net), ("human_net", options.human_net)):
        if path is not None and (fault := network_fault(path, game.name, game.networks)):
            raise CliError(f"{places.get(name, TABLE[name].flag)} {path}: {fault}")
    if found := game.find_fault(options):
        name, text = found
        raise CliError(f"{places.get(name, TABLE[name].flag)}: {text}")

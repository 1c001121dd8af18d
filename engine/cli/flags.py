"""Command-line flags made from the table of options."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from yomi.engine.cli.errors import CliError
from yomi.engine.default_network import network_fault
from yomi.engine.options import TABLE, Option, OptionError, Options, Value, read_config, rows_for
from yomi.nets.errors import NetworkError

if TYPE_CHECKING:
    from yomi.engine.game import Game

LIMITS = ("visits", "playouts", "seconds", "depth")
"""Options that end a search."""
LEFT_OUT = "left_out"
"""Name in the arguments of the options that a command has no use for."""


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
    """Add a flag for every option of a game, in groups, and `--config`.

    Args:
        parser: Where to add them.
        game: its descriptor.
        leave_out: Names of options that mean nothing to this command.
        defaults: Those of this command, where it has its own; the same go to `collect`.
    """
    parser.add_argument(
        "--config", metavar="FILE", type=Path, help="read options from a TOML file (keys: docs/OPTIONS.md)"
    )
    parser.set_defaults(**{LEFT_OUT: tuple(sorted(leave_out))})
    groups: dict[str, argparse._ArgumentGroup] = {}
    for row in rows_for(game.name):
        if row.name in leave_out:
            continue
        if row.group not in groups:
            groups[row.group] = parser.add_argument_group(row.group.lower())
        _add(groups[row.group], row, (defaults or {}).get(row.name, row.default_for(game.name)))


def _add(group: argparse._ArgumentGroup, row: Option, default: Value) -> None:
    unit = f" {row.unit}" if row.unit and default is not None else ""
    text = f"{row.help} (default: {row.default_text(default)}{unit})".replace("%", "%%")
    if row.kind == "flag":
        group.add_argument(row.flag, action=argparse.BooleanOptionalAction, default=argparse.SUPPRESS, help=text)
    else:
        group.add_argument(row.flag, metavar=row.metavar, type=_reader(row), default=argparse.SUPPRESS, help=text)


def _reader(row: Option) -> Callable[[str], Value]:
    def read(text: str) -> Value:
        try:
            return row.parse(text)
        except OptionError as error:
            raise argparse.ArgumentTypeError(str(error).removeprefix(f"{row.name}: ")) from None

    return read


def collect(args: argparse.Namespace, game: Game[Any, Any], /, **defaults: Value) -> Options:
    """Return the options: the table's defaults, then those of the command, the files, and the command line.

    A level of strength is a flag: its settings, which are in `defaults`, take precedence over the user's file.

    Raises:
        CliError: The file or a value in it is wrong, or a file named by an option does not exist.
    """
    options = Options.for_game(game.name)
    given = {name: value for name, value in vars(args).items() if name in TABLE}
    try:
        from_user = _from_user(args, game)
        defaults = {**from_user, **defaults} if _has_level(args) else {**defaults, **from_user}
        for name, value in {**defaults, **_from_file(args, game), **given}.items():
            options.set(name, value)
    except OptionError as error:
        raise CliError(str(error)) from None
    check(options, game)
    return options


def suited(options: Options, args: argparse.Namespace, game: Game[Any, Any], changes: Collection[str] = ()) -> Options:
    """Return options with the values that come with the network, but for those that the user has named.

    Players do that by themselves; this is for commands that search without one.

    Args:
        options: the options.
        args: of the command line; an option that is there was named.
        game: its descriptor.
        changes: names of further options that the user has set.

    Raises:
        CliError: what comes with the network cannot be used.
    """
    named = {*file_values(args, game), *named_options(args, game), *changes}
    try:
        found = game.network_defaults(options)
    except (NetworkError, OptionError) as error:
        raise CliError(str(error)) from None
    return options.with_values({name: value for name, value in found.items() if name not in named})


def named_options(args: argparse.Namespace, game: Game[Any, Any]) -> set[str]:
    """Return the names of the options that `--config` or the command line set, not the user's file.

    Raises:
        CliError: the file or a value in it is wrong.
    """
    return {*_from_file(args, game), *(name for name in vars(args) if name in TABLE)}


def visits_without_limit(args: argparse.Namespace, visits: int, game: Game[Any, Any]) -> dict[str, Value]:
    """Return what `collect` takes to limit a search to these visits, unless file or command line have another limit.

    Raises:
        CliError: the file or a value in it is wrong.
    """
    given = {**file_values(args, game), **vars(args)}
    others = [name for name in _limits(game) if name != "visits"]
    return {} if any(given.get(name) is not None for name in others) else {"visits": visits}


def _limits(game: Game[Any, Any]) -> list[str]:
    return [name for name in LIMITS if TABLE[name].is_for(game.name)]


def check_limited(options: Options, game: Game[Any, Any]) -> None:
    """Check that a search ends by itself.

    Raises:
        CliError: all limits are none.
    """
    if all(options.get(name) is None for name in _limits(game)):
        raise CliError(f"visits none without another limit: expected one of {', '.join(_limits(game))}")


def file_values(args: argparse.Namespace, game: Game[Any, Any]) -> dict[str, Value]:
    """Return the options in the user's file, and over them those in the file of --config.

    Raises:
        CliError: a file or a value in it is wrong.
    """
    return {**_from_user(args, game), **_from_file(args, game)}


def _from_file(args: argparse.Namespace, game: Game[Any, Any]) -> dict[str, Value]:
    try:
        return {} if args.config is None else read_config(args.config, game.name)
    except OptionError as error:
        raise CliError(str(error)) from None


def _from_user(args: argparse.Namespace, game: Game[Any, Any]) -> dict[str, Value]:
    """Return the options in the user's file that the command has a flag for."""
    left_out = vars(args).get(LEFT_OUT, ())
    return {name: value for name, value in user_values(game).items() if name not in left_out}


def _has_level(args: argparse.Namespace) -> bool:
    if "level" not in vars(args):
        return False
    from yomi.engine.levels import FULL  # here, for few commands have levels and a GUI waits for the first answer

    return bool(args.level != FULL)


def user_values(game: Game[Any, Any]) -> dict[str, Value]:
    """Return the options of a game that the user's file sets.

    Raises:
        CliError: the file or a value in it is wrong.
    """
    path = user_config()
    try:
        return read_config(path, game.name) if path is not None and path.exists() else {}
    except OptionError as error:
        raise CliError(str(error)) from None
    except OSError as error:
        hint = "expected XDG_CONFIG_HOME to name a folder that this user can read"
        raise CliError(f"cannot read the configuration {path}: {error.strerror}; {hint}") from None


def check(options: Options, game: Game[Any, Any], places: Mapping[str, str] | None = None) -> None:
    """Check what can be checked before anything slow is loaded.

    Args:
        options: What to check.
        game: its descriptor.
        places: Where options stand that are no flags, for the error.

    Raises:
        CliError: A network that is not a file, or what the game finds.
    """
    places = places or {}
    for name, path in (("net", options.net), ("value_net", options.value_net)):
        if path is not None and (fault := network_fault(path, game.name, game.networks)):
            raise CliError(f"{places.get(name, TABLE[name].flag)} {path}: {fault}")
    if found := game.find_fault(options):
        name, text = found
        raise CliError(f"{places.get(name, TABLE[name].flag)}: {text}")

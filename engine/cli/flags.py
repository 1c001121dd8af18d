"""Flags of commands. Also merges the options of command lines with those in files that they name."""

from __future__ import annotations

import argparse
import dataclasses
import os
from collections.abc import Callable, Collection, Container, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

from yomi.engine.cli.parser import CliError
from yomi.engine.default_network import network_fault
from yomi.engine.levels import FULL
from yomi.engine.options import TABLE, Options, Value, read_config, rows_for
from yomi.language import tr
from yomi.settings import KINDS, OptionError, Setting, rows_of

if TYPE_CHECKING:
    from argparse import Namespace, _ActionsContainer

    from yomi.engine.clusters.actors import ClusterOptions
    from yomi.engine.game import Game

T = TypeVar("T")

LIMITS = ("visits", "playouts", "seconds", "depth")
LEFT_OUT = "left_out"  # Name of the argument that lists the options without a flag


def add_settings(
    parser: _ActionsContainer, kind: type, *, leave_out: Container[str] = (), prefix: str = "", group: str = ""
) -> None:
    """Add a flag for every setting of a dataclass, except those in `leave_out`. `settings_of` reads them.

    Flags are in the groups of their settings. Settings without a group are in `group`; empty: in the parser itself.
    """
    groups: dict[str, Any] = {"": parser}
    for row in rows_of(kind).values():
        if row.name in leave_out:
            continue
        title = row.group or group
        if title not in groups:
            groups[title] = parser.add_argument_group(title)
        add_setting(groups[title], row, row.default, prefix=prefix)


def given_settings(kind: type, args: Namespace, prefix: str = "") -> dict[str, Any]:
    """Return the settings of a dataclass that are set by flags, by name."""
    values = {name: getattr(args, prefix + name) for name in rows_of(kind) if hasattr(args, prefix + name)}
    return {name: tuple(value) if isinstance(value, list) else value for name, value in values.items()}


def settings_of(kind: Callable[..., T], args: Namespace, prefix: str = "", **others: Any) -> T:
    """Return a dataclass of settings from the flags of `add_settings` and from `others`."""
    return kind(**{**given_settings(cast(type, kind), args, prefix), **others})


def add_value(
    group: _ActionsContainer,
    flag: str,
    default: int | float | str | None,
    metavar: str | None,
    text: str,
    shown: str = "",
    *,
    low: float | None = None,
) -> argparse.Action:
    """Add a flag with a value of the default's type, at least `low`. An optional integer has the default None.

    The help ends with the default, or with `shown`.
    """
    kind, name = KINDS.get(type(default).__name__, "int"), flag.removeprefix("--").replace("-", "_")
    row = Setting(name, kind, default is None, default, text, unset=shown, low=low, word=metavar or "")
    return add_setting(group, row, None if shown else default, absent=default)


def add_setting(
    group: _ActionsContainer, row: Setting, default: Any, *, prefix: str = "", absent: Any = argparse.SUPPRESS
) -> argparse.Action:
    """Add the flag of a setting.

    Args:
        group: receives the flag.
        row: the setting.
        default: the default value in the help; MISSING: the flag is required.
        prefix: prefix of the argument's name.
        absent: value of the argument if the flag is not given; SUPPRESS: there is no argument then.
    """
    # Each value of a list is a value, even if none is allowed instead of the list.
    read = (dataclasses.replace(row, many=False, optional=False) if row.many else row).parse
    form: dict[str, Any] = {"metavar": row.metavar, "type": type_of(read, f"{row.key}: ")}
    if row.many:
        form |= {"action": "append"} if row.repeats else {"nargs": "+"}
    if row.kind == "flag":
        form = {"action": argparse.BooleanOptionalAction}
    text = row.help
    if default is dataclasses.MISSING:
        form["required"] = True
    else:
        unit = f" {row.unit}" if row.unit and default is not None else ""
        text += f" (default: {row.unset or 'none' if default is None else row.format(default) + unit})"
    action = group.add_argument(row.flag, dest=prefix + row.name, default=absent, help=text.replace("%", "%%"), **form)
    if row.names[1:]:
        add_old_names(group, action, *(f"--{name.replace('_', '-')}" for name in row.names[1:]))
    return action


def type_of(read: Callable[[str], T], prefix: str = "") -> Callable[[str], T]:
    """Return a `type` for argparse that shows the message of a ValueError, with `prefix` removed."""

    def convert(text: str) -> T:
        try:
            return read(text)
        except ValueError as error:
            raise argparse.ArgumentTypeError(str(error).removeprefix(prefix)) from None

    return convert


def add_old_names(group: _ActionsContainer, action: argparse.Action, *flags: str) -> None:
    """Accept old names of a flag that takes values. The help omits them."""
    group.add_argument(
        *flags,
        dest=action.dest,
        action=type(action),
        nargs=action.nargs,
        type=action.type or str,
        default=argparse.SUPPRESS,
        help=argparse.SUPPRESS,
    )


def add_task(group: _ActionsContainer, units: str) -> None:
    from yomi.engine.clusters.jobs import Task  # not above: every start of an engine would wait for it

    text = f"do share i of n of the {units}, in OUT/part-i-of-n (yomi help clusters)"
    group.add_argument("--task", type=type_of(Task.parse), metavar="i/n", help=text)


# -- clusters ----------------------------------------------------------------------------------------------------------


def add_cluster(parser: argparse.ArgumentParser) -> None:
    from yomi.engine.clusters.jobs import CLUSTER, ClusterSettings

    has_processes = {"--processes", "--at-once"} & set(parser._option_string_actions)  # these divide this machine, too
    add_settings(parser, ClusterSettings)
    if not has_processes:
        text = "use this many processes of the cluster (default: as many as fit)"
        group = next(group for group in parser._action_groups if group.title == CLUSTER)
        group.add_argument("--processes", dest="actors", type=int, metavar="N", help=text)


def asked_cluster(args: argparse.Namespace, processes: int | None = None) -> ClusterOptions | None:
    """Return the cluster that the flags name, with `processes` processes (None: as many as fit).

    Errors: see ClusterSettings.options.
    """
    from yomi.engine.clusters.jobs import ClusterSettings

    actors = getattr(args, "actors", None)
    if actors is not None and getattr(args, "cluster", None) is None:
        flags = "--cores-per-process, --gpus-per-process, --insecure, --processes"
        raise CliError(f"{flags}: expected --cluster with them")
    settings = settings_of(ClusterSettings, args)
    return settings.options(processes if actors is None else actors, getattr(args, "task", None))


# -- options of the engine --------------------------------------------------------------------------------------------


def user_config() -> Path | None:
    """Return the path of the user's file of options, or None if the user has no home folder."""
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
    text = "read options from a TOML file (keys: yomi help options)"
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
    """Read a number for `--size`, or columns and rows in the form COLUMNSxROWS. Raises OptionError."""
    columns, cross, rows = text.lower().partition("x")
    if cross and not (columns.isdecimal() and rows.isdecimal()):
        raise OptionError(tr("expected a number or COLUMNSxROWS such as 13x9, found {text}", text=repr(text)))
    size: int = TABLE["size"].parse(columns)
    return (size, TABLE["height"].parse(rows)) if cross else size


def collect(args: argparse.Namespace, game: Game[Any, Any], /, **defaults: Value) -> Options:
    """Return the options, merged from all sources.

    Highest priority first: command line, `--config`, the user's file, `defaults`. With `--level`, `defaults` contains
    the level's settings and has priority over the user's file.
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
    """Return the names of the options that the command line or a file set, also to none."""
    return {*file_values(args, game), *named_options(args, game)}


def named_options(args: argparse.Namespace, game: Game[Any, Any]) -> set[str]:
    """Return the names of the options set by `--config` or the command line. The user's own file does not count."""
    return {*_from_file(args, game), *(name for name in vars(args) if name in TABLE)}


def visits_without_limit(args: argparse.Namespace, visits: int, game: Game[Any, Any]) -> dict[str, Value]:
    """Return `visits` as a default for `collect`; empty if the user has set any limit."""
    given = {**file_values(args, game), **vars(args)}
    is_limited = any(given.get(name) is not None for name in _limits(game) if name != "visits")
    return {} if is_limited else {"visits": visits}


def _limits(game: Game[Any, Any]) -> list[str]:
    return [name for name in LIMITS if TABLE[name].is_for(game.name)]


def check_limited(options: Options, game: Game[Any, Any]) -> None:
    if all(options.get(name) is None for name in _limits(game)):
        names = ", ".join(_limits(game))
        raise CliError(tr("visits none without another limit: expected one of {names}", names=names))


def file_values(args: argparse.Namespace, game: Game[Any, Any]) -> dict[str, Value]:
    """Return the options in the user's file, overridden by those in the file of --config."""
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
    """Raise CliError if a network is no file, or if options do not suit the game. Nothing slow is loaded.

    `places` contains, for errors, the place of each option that is not a flag.
    """
    places = places or {}
    for name, path in (("net", options.net), ("value_net", options.value_net), ("human_net", options.human_net)):
        if path is not None and (fault := network_fault(path, game.name, game.networks)):
            raise CliError(f"{places.get(name, TABLE[name].flag)} {path}: {fault}")
    if found := game.find_fault(options):
        name, text = found
        raise CliError(f"{places.get(name, TABLE[name].flag)}: {text}")

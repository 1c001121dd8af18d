"""Flags of commands: of settings, of values that are no settings, and of clusters."""

from __future__ import annotations

import argparse
import dataclasses
from collections.abc import Callable, Container
from typing import TYPE_CHECKING, Any, TypeVar, cast

from yomi.engine.cli.parser import CliError
from yomi.settings import KINDS, Setting, rows_of

if TYPE_CHECKING:
    from argparse import Namespace, _ActionsContainer

    from yomi.engine.clusters.actors import ClusterOptions

T = TypeVar("T")


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
    """Return the settings of a dataclass that the flags contain, by name."""
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
    high: float | None = None,
) -> argparse.Action:
    """Add a flag with a value of the default's type, from `low` to `high`. An optional integer has the default None.

    The help ends with the default, or with `shown`.
    """
    kind, name = KINDS.get(type(default).__name__, "int"), flag.removeprefix("--").replace("-", "_")
    row = Setting(name, kind, default is None, default, text, unset=shown, low=low, high=high, word=metavar or "")
    return add_setting(group, row, None if shown else default, absent=default)


def add_setting(
    group: _ActionsContainer, row: Setting, default: Any, *, prefix: str = "", absent: Any = argparse.SUPPRESS
) -> argparse.Action:
    """Add the flag of a setting.

    Args:
        group: receives the flag.
        row: the setting.
        default: the default value in the help; MISSING: the flag is required.
        prefix: begins the name of the argument.
        absent: the argument without the flag; SUPPRESS: none.
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
    """Return a type for argparse that shows the message of a ValueError, without its prefix."""

    def convert(text: str) -> T:
        try:
            return read(text)
        except ValueError as error:
            raise argparse.ArgumentTypeError(str(error).removeprefix(prefix)) from None

    return convert


def add_old_names(group: _ActionsContainer, action: argparse.Action, *flags: str) -> None:
    """Accept old names of a flag with values. The help does not contain them."""
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

    text = f"do share i of n of the {units}, in OUT/part-i-of-n (docs/CLUSTERS.md)"
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
    """Return the cluster that the flags name, with this number of processes (None: as many as fit).

    Errors: see ClusterSettings.options.
    """
    from yomi.engine.clusters.jobs import ClusterSettings

    actors = getattr(args, "actors", None)
    if actors is not None and getattr(args, "cluster", None) is None:
        flags = "--cores-per-process, --gpus-per-process, --insecure, --processes"
        raise CliError(f"{flags}: expected --cluster with them")
    settings = settings_of(ClusterSettings, args)
    return settings.options(processes if actors is None else actors, getattr(args, "task", None))

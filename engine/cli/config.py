"""`yomi config init|show`: the user's file of options, which all commands read."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from yomi.engine.cli import logs
from yomi.engine.cli.errors import CliError
from yomi.engine.cli.flags import user_config
from yomi.engine.cli.games import GAMES
from yomi.engine.option_row import Option, OptionError, Value
from yomi.engine.options import TABLE, read_tables

USAGE = "yomi config init | show"
EPILOG = """\
examples:
  yomi config init      write a file to begin with; nothing that is there is replaced
  yomi config show      print the file's name and the options that it sets

The file is ~/.config/yomi/config.toml, or yomi/config.toml in XDG_CONFIG_HOME. Keys are the options of docs/OPTIONS.md.
Options for one game follow [go] or [shogi]. Flags and the file of --config take precedence.
"""

COMMENT = """\
# Options of yomi that all commands read. Flags and the file of --config take precedence.
# Remove a "#" to set an option. All keys: docs/OPTIONS.md, or yomi gtp --help-all and yomi usi --help-all.
"""
PROPOSED = {
    "": ("seconds", "visits", "memory", "workers", "device", "ponder", "log_file"),
    "go": ("net", "rules", "komi", "size"),
    "shogi": ("net", "book_file", "entering_king"),
}
"""Options in a new file: those of all games, then those of each table."""


def add(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True, prog="yomi config")
    for name, text in (("init", "write a file to begin with"), ("show", "print the options that the file sets")):
        actions.add_parser(name, help=text, description=text[0].upper() + text[1:] + ".")


def run(args: argparse.Namespace) -> int:
    path = user_config()
    if path is None:
        raise CliError("this user has no home folder: expected HOME or XDG_CONFIG_HOME to be set")
    if args.action == "init":
        _init(path)
    else:
        logs.echo(_show(path))
    return 0


def _init(path: Path) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("x", encoding="utf-8") as file:
            file.write(_template())
    except FileExistsError:
        raise CliError(f"{path}: this file exists: edit it, or remove it first") from None
    except OSError as error:
        raise CliError(f"cannot write {path}: {error.strerror or error}") from None
    logs.echo(f"{path} is written: remove a # there to set an option")


def _template() -> str:
    parts = [COMMENT]
    for table, names in PROPOSED.items():
        lines = [f"[{table}]"] if table else []
        for row in (TABLE[name] for name in names):
            lines.append(f"# {_assignment(row, row.default_for(table))}    # {row.help.partition(';')[0]}")
        parts.append("".join(f"{line}\n" for line in lines))
    return "\n".join(parts)


def _assignment(row: Option, value: Value) -> str:
    """Return a line of TOML that sets an option."""
    text = row.format(value)
    is_bare = row.kind in ("int", "real", "flag") and value is not None
    return f"{row.name} = {text if is_bare else json.dumps(text, ensure_ascii=False)}"


def _show(path: Path) -> str:
    try:
        if not path.exists():
            return f"# {path}: no such file; yomi config init writes one"
        tables = read_tables(path, GAMES)
    except OptionError as error:
        raise CliError(str(error)) from None
    except OSError as error:
        raise CliError(f"cannot read {path}: {error.strerror}") from None
    lines = [f"# {path}"]
    for table, values in tables.items():
        lines += ["", f"[{table}]"] if table and values else []
        for name, value in values.items():
            default = TABLE[name].format(TABLE[name].default_for(table))
            lines.append(f"{_assignment(TABLE[name], value)}    # default: {default}")
    return "\n".join(lines if any(tables.values()) else [*lines, "# sets no option"])

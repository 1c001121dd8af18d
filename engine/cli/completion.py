"""`yomi completion bash|zsh|fish`: a script that completes commands, options and files with Tab."""

from __future__ import annotations

import argparse
import importlib
import importlib.util
from collections.abc import Iterator

from yomi.engine.cli.errors import CliError
from yomi.nets.installation import missing_line, pip_command

SHELLS = ("bash", "zsh", "fish")
USAGE = "yomi completion bash | zsh | fish"
EPILOG = """\
examples:
  yomi completion bash > ~/.local/share/bash-completion/completions/yomi
  yomi completion zsh > ~/.zfunc/_yomi      with fpath+=~/.zfunc before compinit in ~/.zshrc
  yomi completion fish > ~/.config/fish/completions/yomi.fish

Open a new shell afterwards. Write the script again after an update of yomi.
"""
FILES, FOLDERS = ("FILE", "FILE|FOLDER", "NET", "PATH", "MOVES", "VALUES"), ("FOLDER", "DATA")


def add(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("shell", choices=SHELLS, help="the shell that reads the script")


def run(args: argparse.Namespace) -> int:
    from yomi.engine.cli.main import build

    if importlib.util.find_spec("shtab") is None:
        raise CliError(missing_line("shtab", "completion"))
    shtab = importlib.import_module("shtab")
    if args.shell not in shtab.SUPPORTED_SHELLS:
        update = pip_command("install", "--upgrade", "shtab")
        raise CliError(f"shtab {shtab.__version__} makes no script for {args.shell}: {update}")
    parser = build((), with_all=True)
    for action in _actions(parser):
        if action.metavar in FILES:
            action.complete = shtab.FILE  # type: ignore[attr-defined]  # shtab looks for it
        elif action.metavar in FOLDERS:
            action.complete = shtab.DIRECTORY  # type: ignore[attr-defined]
        elif isinstance(action.metavar, str) and action.metavar.startswith("{"):  # a choice of the table of options
            action.choices = action.metavar[1:-1].split(",")
    print(shtab.complete(parser, shell=args.shell))
    return 0


def _actions(parser: argparse.ArgumentParser) -> Iterator[argparse.Action]:
    """Yield the arguments of a parser and of its subcommands."""
    for action in parser._actions:
        yield action
        if isinstance(action, argparse._SubParsersAction):
            for child in dict.fromkeys(action.choices.values()):
                yield from _actions(child)

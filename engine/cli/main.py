"""The command line: `yomi COMMAND ...`. A command is a module that is imported when its help or its run needs it."""

from __future__ import annotations

import argparse
import importlib
import io
import os
import sys
from collections.abc import Sequence
from types import ModuleType

from yomi import __version__
from yomi.engine.cli.errors import CliError, Parser
from yomi.engine.cli.help import overview
from yomi.engine.cli.logs import LINE_ENDS
from yomi.engine.machine import MIN_TO_START, address_space_limit, limit_text, memory_fault
from yomi.engine.protocols.streams import CheckedStdout, OutputClosedError
from yomi.engine.records import printable
from yomi.native.errors import CompileError

BENCH = "bench"
"""The command that has a parser of its own."""
COMMANDS = {
    "play": "play in the terminal",
    "review": "review game records: best moves, losses, the worst moves",
    "selfplay": "let the engine play against itself and write game records",
    "gtp": "speak GTP, for a GUI of Go or the bridge to a server",
    "usi": "speak USI, for a GUI of shogi",
    "analysis": "speak KataGo's JSON analysis protocol, for KaTrain and the like",
    "cgos": "play Go on CGOS",
    "floodgate": "play shogi on floodgate and other servers of the CSA protocol",
    "match": "play games between engines of any kind and rate them",
    "duel": "compare two settings of the engine, many games side by side",
    "tune": "tune parameters of the search by games",
    "rate": "rate players from journals and game records",
    BENCH: "measure nodes per second, evaluators, tree, boards, mate search",
    "net": "look at network files, convert them, find the fastest way to run",
    "dataset": "make, check and convert training data, and balanced openings",
    "learn": "learn a game from nothing: self-play, training, and again",
    "train": "train networks, and test them on data",
    "setup": "compile the engine now instead of at the first start",
    "config": "write or show the file of options that all commands read",
    "completion": "print a script that completes commands in bash, zsh or fish",
    "doctor": "show what runs here, what is missing, and how to install it",
}
GROUPS = {
    "play and review": ("play", "review", "selfplay"),
    "engine for GUIs and servers": ("gtp", "usi", "analysis", "cgos", "floodgate"),
    "measure": ("match", "duel", "tune", "rate", BENCH),
    "networks and training": ("net", "dataset", "learn", "train"),
    "this machine": ("setup", "doctor", "config", "completion"),
}
"""Commands by purpose, in the order of the help."""
ALIASES = {"analyze": "review", "analyse": "review"}
MODULES = {"review": "analyze"}
"""Modules that are not called as their commands."""

OF_GAMES = ("play", "selfplay", "duel", "tune", "learn", "dataset")
"""Commands that may take the game from a file: see yomi.engine.cli.games."""
PROTOCOLS = ("gtp", "usi", "analysis")
"""Commands that speak to programs, and choose for themselves how text becomes bytes."""

USAGE = "yomi COMMAND [options]"
HEADING = "An engine for Go and shogi. It plays with KataGo's and dlshogi's networks, too."
EPILOG = """\
start here:
  yomi doctor                  what this machine can do
  yomi play go --size 9        a game in the terminal
  yomi gtp --net FILE          the engine for a GUI of Go, with another network
  yomi help COMMAND            the main options of a command (yomi COMMAND -h)
  yomi COMMAND --help-all      all options; yomi version: the version
"""


class MainParser(Parser):
    """The parser of `yomi` itself, whose help lists the commands in groups."""

    def format_help(self) -> str:
        """Return the overview of the commands."""
        return overview(GROUPS, COMMANDS, USAGE, HEADING, EPILOG)


def build(argv: Sequence[str], *, with_all: bool = False) -> argparse.ArgumentParser:
    """Return the parser. Only the command in `argv` gets its flags, or each if `with_all`, which takes time."""
    parser = MainParser(prog="yomi", usage=USAGE)
    parser.add_argument("--version", action="version", version=f"yomi {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", prog="yomi", parser_class=Parser)
    chosen = next((word for word in argv if not word.startswith("-")), None)
    for name, text in COMMANDS.items():
        if name == BENCH or not (with_all or name == chosen):
            commands.add_parser(name, help=text)
            continue
        module = command_module(name)
        child = commands.add_parser(
            name,
            help=text,
            usage=module.USAGE,
            description=text[0].upper() + text[1:] + ".",
            epilog=module.EPILOG,
        )
        module.add(child)
        child.set_defaults(run=module.run)
    if with_all:
        from yomi.bench.cli import make_parser

        commands.choices[BENCH] = make_parser(())
    return parser


def command_module(name: str) -> ModuleType:
    """Import the module of a command."""
    return importlib.import_module(f"yomi.engine.cli.{MODULES.get(name, name)}")


def expanded(words: Sequence[str]) -> list[str]:
    """Return the words with the names of today: `help X` becomes `X --help`, an alias its command."""
    first, *rest = words or [""]
    if first == "help":
        return expanded([*rest, "--help"])
    if first == "version" and not rest:
        return ["--version"]
    return [ALIASES.get(first, first), *rest] if words else []


def main_usi() -> int:
    """Run `yomi usi`: the command `yomi-usi`, for graphical interfaces that start a program without arguments."""
    return main(["usi", *sys.argv[1:]])


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command and return its exit status: 0, or 2 after an error, which is one line on stderr."""
    words = expanded(sys.argv[1:] if argv is None else argv)
    open_closed()
    check_stdout()
    if not words or words[0] not in PROTOCOLS:
        escape_unknown()
    try:
        try:
            return _run(words)
        finally:
            sys.stdout.flush()
    except OutputClosedError as error:
        print(f"yomi: error: {error}", file=sys.stderr)
        drop_stdout()
        return 2
    except BrokenPipeError:
        drop_stdout()
        return 1


def _run(words: list[str]) -> int:
    try:
        if words and not words[0].startswith("-"):
            check_address_space()
        if words[:1] == [BENCH]:
            from yomi.bench.cli import main as bench

            return bench(words[1:])
        if words and words[0] in OF_GAMES:
            from yomi.engine.cli.games import with_game

            words = with_game(words)
        parser = build(words)
        args = parser.parse_args(words)
        if args.command is None:
            parser.print_help()
            return 0
        status: int = args.run(args)
        return status
    except (CliError, CompileError) as error:
        print(f"yomi: error: {printable(error, keep=LINE_ENDS)}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130
    except (MemoryError, ImportError, OSError, RuntimeError) as error:
        why = memory_fault(error)
        if why is None:
            raise
        print(f"yomi: error: {why}", file=sys.stderr)
        return 2


def check_address_space() -> None:
    """Refuse to begin if the libraries of the engine could not even be loaded.

    Raises:
        CliError: this process may use too little address space.
    """
    limit = address_space_limit()
    if limit is not None and limit < MIN_TO_START:
        raise CliError(limit_text(limit))


def open_closed() -> None:
    """Put the null device in place of standard streams that were closed when the program began (`2>&-`).

    Python has None for them. Opened in this order, each gets the descriptor that is its own.
    """
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115  (until the program ends)


def check_stdout() -> None:
    """Have each failed write to the process's stdout end the command with an error."""
    stream = sys.stdout
    if stream is not sys.__stdout__ or not isinstance(stream, io.TextIOWrapper):
        return
    if isinstance(getattr(stream.buffer, "raw", stream.buffer), io.FileIO):  # no console of Windows, which has no disk
        stream.flush()
        file = CheckedStdout(stream.fileno(), "w", closefd=False)
        is_unbuffered = isinstance(stream.buffer, io.FileIO)  # PYTHONUNBUFFERED
        sys.stdout = io.TextIOWrapper(
            file if is_unbuffered else io.BufferedWriter(file),
            encoding=stream.encoding,
            errors=stream.errors,
            line_buffering=stream.line_buffering,
            write_through=stream.write_through,
        )


def drop_stdout() -> None:
    """Point stdout at the null device: the interpreter writes the rest of its buffer when it ends."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)


def escape_unknown() -> None:
    """Let what the terminal's encoding lacks be printed as a code: a name of a player or a file must end nothing."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")

"""The command line `yomi COMMAND ...`. The module of a command is imported when its help or its run needs it.

`yomi --help` imports no parser: modules take most of the time of a start.
"""

from __future__ import annotations

import importlib
import io
import itertools
import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from yomi import __version__, language
from yomi.engine.protocols.streams import CheckedStdout, OutputClosedError
from yomi.errors import Error
from yomi.language import tr
from yomi.system import IS_WINDOWS

if TYPE_CHECKING:
    import argparse

    from yomi.engine.cli.parser import Command

BENCH = "bench"
COMMANDS = {
    "play": "play in the terminal",
    "review": "review game records: best moves, losses, worst moves",
    "serve": "play in the browser, against yomi or with its hints",
    "selfplay": "play games of the engine against itself, and write records",
    "gtp": "speak GTP with a GUI for Go or the bridge to a server",
    "usi": "speak USI with a GUI for shogi",
    "analysis": "speak KataGo's JSON analysis protocol, for example with KaTrain",
    "cgos": "play Go on CGOS",
    "floodgate": "play shogi on floodgate and other servers of the CSA protocol",
    "match": "play games between engines of any kind and rate them",
    "duel": "compare two settings of the engine in many games at once",
    "tune": "tune parameters of the search by games",
    "rate": "rate players from journals and game records",
    "merge": "put the parts of a run on several machines together",
    "status": "show the progress of long runs",
    BENCH: "measure nodes per second, evaluators, tree, boards, mate search",
    "net": "show, convert and calibrate network files",
    "dataset": "make, check and convert training data, and balanced openings",
    "learn": "learn a game from nothing by self-play and training",
    "train": "train networks, and test them on data",
    "setup": "compile the engine now instead of at the first start",
    "config": "write or show the file of options that all commands read",
    "completion": "print a script that completes commands in bash, zsh or fish",
    "doctor": "show what runs here, what is missing, and how to install it",
}
GROUPS = {
    "play and review": ("play", "serve", "review", "selfplay"),
    "engine for GUIs and servers": ("gtp", "usi", "analysis", "cgos", "floodgate"),
    "measure": ("match", "duel", "tune", "rate", BENCH, "status", "merge"),
    "networks and training": ("net", "dataset", "learn", "train"),
    "this machine": ("setup", "doctor", "config", "completion"),
}
ALIASES = {"analyze": "review", "analyse": "review"}
OBJECTS = {
    "selfplay": "play:SELFPLAY_COMMAND",
    "learn": "train:LEARN",
    "rate": "match:RATE",
    "duel": "match:DUEL",
    "tune": "match:TUNE",
    "status": "merge:STATUS",
    **{name: f"engines:{name.upper()}" for name in ("gtp", "usi", "analysis", "cgos", "floodgate")},
    **{name: f"setup:{name.upper()}" for name in ("setup", "config", "completion")},
}

# Commands whose game may follow from a file in the flags: see `with_game`
OF_GAMES = ("play", "selfplay", "duel", "tune", "learn", "dataset")
PROTOCOLS = ("gtp", "usi", "analysis")  # Commands that speak to programs. Their sessions encode text themselves.
# Commands in the user's language. The others are for programs and research: English.
IN_JAPANESE = ("play", "review", "serve", "selfplay", "match", "setup", "doctor")

USAGE = "yomi COMMAND [options]"
HEADING = "An engine for Go and shogi. It also plays with networks of KataGo and dlshogi."
MAIN = ("play", "serve", "review", "gtp", "usi", "analysis", "match", "setup", "doctor")  # in the short overview
EPILOG = """\
start here:
  yomi play go --size 9        play in the terminal; yomi doctor: what works
  yomi help all                list all commands; yomi help PAGE: a page of docs
  yomi help COMMAND            show its main options; --help-all: all options
  yomi help options            explain all options; yomi help options WORD: some
"""


def build(argv: Sequence[str], *, with_all: bool = False) -> argparse.ArgumentParser:
    """Return the parser of all commands.

    Only the command in `argv` gets its flags. With `with_all` every command gets them, which imports all modules.
    """
    import argparse

    from yomi.engine.cli.parser import Parser, sentence

    parser = Parser(prog="yomi", usage=USAGE)
    parser.add_argument("--version", action="version", version=f"yomi {__version__}", help=argparse.SUPPRESS)
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", prog="yomi", parser_class=Parser)
    chosen = next((word for word in argv if not word.startswith("-")), None)
    for name, text in COMMANDS.items():
        if name == BENCH or not (with_all or name == chosen):
            commands.add_parser(name, help=text)
            continue
        command = find_command(name)
        child = commands.add_parser(
            name, help=text, usage=command.usage, description=sentence(text), epilog=command.epilog
        )
        command.add(child)
        child.set_defaults(run=command.run)
    if with_all:
        from yomi.bench.cli import make_parser

        commands.choices[BENCH] = make_parser(())
    return parser


def overview(*, with_all: bool = False) -> str:
    width = max(map(len, COMMANDS))
    lines = [tr("usage: ") + USAGE, tr(HEADING)]
    for title, names in (GROUPS if with_all else {"main commands": MAIN}).items():
        lines += ["", f"{tr(title)}:", *(f"  {name.ljust(width)}  {tr(COMMANDS[name])}" for name in names)]
    return "\n".join([*lines, "", *map(language.translated_line, EPILOG.splitlines()), ""])


def find_command(name: str) -> Command:
    from yomi.engine.cli.parser import Command

    module, _, attribute = OBJECTS.get(name, name).partition(":")
    found = importlib.import_module(f"yomi.engine.cli.{module}")
    return getattr(found, attribute) if attribute else Command(found.USAGE, found.EPILOG, found.add, found.run)


def expanded(words: Sequence[str]) -> list[str]:
    """Return the command line with aliases replaced: `help X` becomes `X --help`, unless X is a page."""
    first, *rest = words or [""]
    if first == "help" and rest[:1] == ["all"]:
        return ["--help-all"]
    if first == "help" and (not rest or rest[0].startswith("-") or rest[0] in (*COMMANDS, *ALIASES)):
        return expanded([*rest, "--help"])
    if first == "version" and not rest:
        return ["--version"]
    return [ALIASES.get(first, first), *rest] if words else []


def main_usi() -> int:
    """Run `yomi usi`. The program `yomi-usi` is for graphical interfaces that start a program without arguments."""
    return main(["usi", *sys.argv[1:]])


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command and return its exit status.

    An error is one line on stderr and status 2, Ctrl-C is status 130.
    """
    words = expanded(sys.argv[1:] if argv is None else argv)
    open_closed()
    check_stdout()
    is_translated = not words or words[0].startswith("-") or words[0] in IN_JAPANESE
    language.choose(language.wanted() if is_translated else language.ENGLISH)
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
        leading = set(itertools.takewhile(lambda word: word.startswith("-"), words))
        if not words or leading & {"-h", "--help", "--help-all", "--"}:
            print(overview(with_all="--help-all" in leading), end="")
            return 0
        if words[0] == "help":
            from yomi.engine.cli.pages import print_page

            return print_page(words[1:])
        if not words[0].startswith("-"):
            check_address_space()
        if words[:1] == [BENCH]:
            from yomi.bench.cli import run as bench

            return bench(words[1:])
        if words[0] in OF_GAMES:
            from yomi.engine.cli.games import with_game

            words = with_game(words)
        args = build(words).parse_args(words)
        args.command_words = words
        status: int = args.run(args)
        return status
    except Error as error:
        print_error(error)
        return 2
    except KeyboardInterrupt:
        return 130
    except (MemoryError, ImportError, OSError, RuntimeError) as error:
        from yomi.engine.machine import memory_fault

        why = memory_fault(error)
        if why is None and isinstance(error, OSError) and not isinstance(error, BrokenPipeError):
            why = f"{error.filename or 'output'}: {error.strerror or error}"
        if why is None:
            raise
        print_error(why)
        return 2


def print_error(error: object) -> None:
    from yomi.engine.cli.output import LINE_ENDS
    from yomi.errors import printable

    print(tr("yomi: error: {error}", error=printable(error, keep=LINE_ENDS)), file=sys.stderr)


def check_address_space() -> None:
    """Raise CliError if the limit of the address space is too low to load the libraries."""
    from yomi.engine.cli.parser import CliError
    from yomi.engine.machine import MIN_TO_START, address_space_limit, limit_text

    limit = address_space_limit()
    if limit is not None and limit < MIN_TO_START:
        raise CliError(limit_text(limit))


def open_closed() -> None:
    """Open the null device in place of standard streams that were closed at the start (`2>&-`)."""
    # Python sets them to None. Opened in this order, each gets its own descriptor: 0, 1 and 2.
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115  (until the program ends)


def check_stdout() -> None:
    """Make the command end with an error if a write to stdout fails."""
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
    """Redirect stdout to the null device, because the interpreter still writes its buffer at the end."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)


def escape_unknown() -> None:
    """Print characters that the terminal's encoding lacks as escapes, so that a name cannot end the command."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # Windows writes files and pipes in an encoding that lacks most characters.
            is_narrow = IS_WINDOWS and not stream.isatty() and not os.environ.get("PYTHONIOENCODING")
            encoding = "utf-8" if is_narrow else stream.encoding
            stream.reconfigure(encoding=encoding, errors="backslashreplace")

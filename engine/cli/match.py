"""`yomi match`: games between engines of any kind, with ratings. `yomi rate`: ratings of earlier games."""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from yomi.engine.cli.flags import add_cluster, add_settings, asked_cluster, given_settings
from yomi.engine.cli.games import split_game
from yomi.engine.cli.output import LINE_ENDS, echo, plot_check, say
from yomi.engine.cli.parser import CliError, Command
from yomi.engine.clients.spec import spec_table, without_secrets
from yomi.engine.matches.settings import MatchSettings
from yomi.engine.records import LeftOut
from yomi.engine.registry import GAMES
from yomi.engine.signals import ended_by_a_signal
from yomi.errors import printable
from yomi.nets.text import read_toml
from yomi.settings import load_settings

if TYPE_CHECKING:
    from yomi.engine.matches.results import GameResult

USAGE = "yomi match [GAME] PLAYER PLAYER [PLAYER ...] [options]"
EPILOG = """\
GAME is go or shogi. Without it the protocol of the first engine other than yomi decides, or the first network.
A PLAYER is `yomi`, `yomi:OPTION=VALUE,...` (options of docs/OPTIONS.md), or the command line of any GTP engine (Go) or
USI engine (shogi). Settings of a player follow after ` ;; `: name=NAME, limits (seconds=1, visits=400),
option.NAME=VALUE (USI), init=COMMAND (GTP, once), folder=FOLDER, env.NAME=VALUE, evaluations=false.

examples:
  yomi match "yomi:net=b6c96.bin.gz" "gnugo --mode gtp --level 10" --size 9 --komi 7 --games 100 --seconds 1
  yomi match "yomi:net=a.bin.gz ;; name=a visits=400" "yomi:net=b.bin.gz ;; name=b visits=200" --cpus 0,1
  yomi match shogi yomi fairy-stockfish --games 20 --main 60 --byoyomi 1 --openings balanced.sfen
  yomi match ./new ./old --sprt 0,20 --games 10000 --openings policy      (new, old: scripts that start an engine)
  yomi match --config match.toml

A TOML file contains the same settings (`seconds = 1`, `opening_moves = 8`) and tables [[players]] with engine, name,
limits, options, init, folder, env. --at-once plays several games at the same time, --cpus gives each its processors.
Engines do not ponder. Each game is written when it ends. The same command continues an interrupted match.
`yomi rate FOLDER` prints the tables at any time.
"""

INTERVAL = 1.0
# The interval is at least this many times the time that a table takes (with 10,000 games a table takes 0.2 s)
SHARE = 200


def add(parser: argparse.ArgumentParser) -> None:
    text = "yomi, yomi:OPTION=VALUE,..., or an engine's command line, after go or shogi"
    parser.add_argument("players", nargs="*", metavar="PLAYER", help=text)
    parser.add_argument("--config", type=Path, metavar="FILE", help="read settings and players from a TOML file")
    add_settings(parser, MatchSettings)
    add_cluster(parser)
    add_output(parser)


def run(args: argparse.Namespace) -> int:
    from yomi.engine.matches.match import match

    if args.plot is not None:
        plot_check(args.plot)
    from_file, tables = read_file(args.config)
    game, words = split_game(args.players, getattr(args, "game", None))
    given = {**from_file, **given_settings(MatchSettings, args)}
    settings = MatchSettings(**given)
    settings = replace(settings, game=game or settings.game)
    cluster = asked_cluster(args, settings.at_once)
    players = [*map(spec_table, words), *tables]
    described = [without_secrets(word) for word in args.command_words]
    with _Table() as table, ended_by_a_signal():
        results = match(settings, players, GAMES, table.say, table.show, cluster=cluster, words=described)
    if results:
        show(args, results)
    return 0


def read_file(path: Path | None) -> tuple[dict[str, Any], list[Mapping[str, Any]]]:
    """Return the settings of a TOML file and its players.

    Raises:
        CliError, OptionError: the file cannot be read, a setting is unknown, or its value is wrong.
    """
    if path is None:
        return {}, []
    try:
        data = read_toml(path)
    except OSError as error:
        raise CliError(f"--config {path}: {error.strerror}") from None
    except ValueError as error:
        raise CliError(f"--config {path}: {error}") from None
    players = data.pop("players", [])
    if not isinstance(players, list) or not all(isinstance(player, Mapping) for player in players):
        raise CliError(f"--config {path}: expected players as tables [[players]]")
    return load_settings(MatchSettings, data, f"--config {path}: "), players


class _Table:
    """The lines of a running match and, on a terminal, its table below them. A context manager."""

    def __init__(self) -> None:
        self._height = 0  # lines of the table on the terminal
        self._due = 0.0

    def say(self, text: str) -> None:
        self._erase()
        say(text)

    def show(self, lines: Sequence[str], results: Sequence[GameResult]) -> None:
        """Show the lines about a game, and the table of all games so far unless it is too early."""
        self._erase()
        self._write("\n".join(lines))
        if not sys.stderr.isatty() or time.monotonic() < self._due:
            return
        from yomi.engine.matches.report import report, to_text

        begin = time.monotonic()
        table = to_text(report(results)).split("\n\n")[:2]
        width = shutil.get_terminal_size().columns  # a line that is wrapped would be two
        lines = [line[:width] for line in "\n\n".join(table).splitlines()]
        self._write("\n".join(["", *lines]))
        self._height = len(lines) + 1
        spent = time.monotonic() - begin  # the next games wait for the table
        self._due = begin + max(INTERVAL, SHARE * spent)

    def _write(self, text: str) -> None:
        print(printable(text, keep=LINE_ENDS), file=sys.stderr, flush=True)

    def _erase(self) -> None:
        if self._height:
            sys.stderr.write(f"\x1b[{self._height}A\x1b[J")
            self._height = 0

    def __enter__(self) -> _Table:
        return self

    def __exit__(self, *error: object) -> None:
        self._erase()


# -- yomi rate -------------------------------------------------------------------------------------------------------

RATE_EPILOG = """\
examples:
  yomi rate match                             the folder of a match, also while it runs
  yomi rate games/*.csa --unique
  yomi rate a b c --format markdown --plot ratings.png

Ratings are Elo with mean 0, fitted by maximum likelihood together with the first player's advantage and the rate of
draws. ERROR is half the 95% interval relative to the mean, which is less than the error of a difference. The results
of two players contain their difference and its interval. Other +/- are one standard error. CFS is the likelihood that
a player is stronger than the next one.
"""
FORMATS = ("text", "markdown", "json")


def _add_rate(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("files", nargs="+", type=Path, metavar="FILE", help="read journals, SGF, CSA, KIF, or folders")
    add_output(parser)


def add_output(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("tables")
    text = "print the tables in this format (default: text)"
    group.add_argument("--format", choices=FORMATS, default="text", help=text)
    group.add_argument("--unique", action="store_true", help="ignore games with the same moves as an earlier game")
    group.add_argument("--no-advantage", action="store_true", help="do not fit the first player's advantage")
    group.add_argument("--plot", type=Path, metavar="FILE", help="draw the ratings with their errors (PNG, SVG, PDF)")


def _run_rate(args: argparse.Namespace) -> int:
    from yomi.engine.matches.results import read_results

    if args.plot is not None:
        plot_check(args.plot)
    show(args, read_results(args.files, GAMES.values(), LeftOut(say)))
    return 0


def show(args: argparse.Namespace, results: Sequence[GameResult]) -> None:
    from yomi.engine.matches.report import plot_ratings, report, to_json, to_markdown, to_text
    from yomi.engine.pictures import PlotError

    made = report(results, advantage=not args.no_advantage, unique=args.unique)
    if args.format == "json":
        json.dump(to_json(made), sys.stdout, indent=2)
        print()
    else:
        echo((to_markdown(made) if args.format == "markdown" else to_text(made)).removesuffix("\n"))
    if args.plot is not None:
        try:
            plot_ratings(made, args.plot)
        except PlotError as error:
            raise CliError(f"--plot {args.plot}: {error}") from None


RATE = Command("yomi rate FILE [FILE ...] [options]", RATE_EPILOG, _add_rate, _run_rate)

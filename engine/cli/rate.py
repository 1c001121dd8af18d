"""`yomi rate`: ratings and tables from journals and game records."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from yomi.engine.cli.errors import CliError
from yomi.engine.cli.games import GAMES
from yomi.engine.cli.logs import echo, say
from yomi.engine.cli.report import plot_check
from yomi.engine.records import LeftOut

if TYPE_CHECKING:
    from yomi.engine.matches.results import GameResult

USAGE = "yomi rate FILE [FILE ...] [options]"
EPILOG = """\
examples:
  yomi rate match                             the folder of a match, also while it runs
  yomi rate games/*.csa --unique
  yomi rate a b c --format markdown --plot ratings.png

Ratings are Elo with mean 0 by maximum likelihood, together with the first player's advantage and the rate of draws.
ERROR is half the 95% interval (relative to the mean), the other +/- are one standard error, CFS is the likelihood that
a player is stronger than the next one.
"""
FORMATS = ("text", "markdown", "json")


def add(parser: argparse.ArgumentParser) -> None:
    """Add the command's flags."""
    parser.add_argument("files", nargs="+", type=Path, metavar="FILE", help="journals, SGF, CSA, KIF, or folders")
    add_output(parser)


def add_output(parser: argparse.ArgumentParser) -> None:
    """Add the flags that say how the tables look."""
    group = parser.add_argument_group("tables")
    group.add_argument("--format", choices=FORMATS, default="text", help="form of the tables on stdout (default: text)")
    group.add_argument("--unique", action="store_true", help="leave out games with the same moves as one before")
    group.add_argument("--no-advantage", action="store_true", help="do not fit the first player's advantage")
    group.add_argument("--plot", type=Path, metavar="FILE", help="draw the ratings with their errors (PNG, SVG, PDF)")


def run(args: argparse.Namespace) -> int:
    """Print the tables of some games."""
    from yomi.engine.matches.read import read_results
    from yomi.engine.matches.results import MatchError

    if args.plot is not None:
        plot_check(args.plot)
    try:
        results = read_results(args.files, GAMES.values(), LeftOut(say))
    except MatchError as error:
        raise CliError(str(error)) from None
    show(args, results)
    return 0


def show(args: argparse.Namespace, results: Sequence[GameResult]) -> None:
    """Print the tables, and draw them where that is wanted.

    Raises:
        CliError: the plot cannot be made.
    """
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

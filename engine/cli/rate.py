"""`yomi rate`: ratings and tables from journals and game records."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from yomi.engine.cli.games import GAMES
from yomi.engine.cli.output import echo, plot_check, say
from yomi.engine.cli.parser import CliError
from yomi.engine.records import LeftOut

if TYPE_CHECKING:
    from yomi.engine.matches.results import GameResult

USAGE = "yomi rate FILE [FILE ...] [options]"
EPILOG = """\
examples:
  yomi rate match                             the folder of a match, also while it runs
  yomi rate games/*.csa --unique
  yomi rate a b c --format markdown --plot ratings.png

Ratings are Elo with mean 0, fitted by maximum likelihood together with the first player's advantage and the rate of
draws. ERROR is half the 95% interval (relative to the mean); other +/- are one standard error. CFS is the likelihood
that a player is stronger than the next one.
"""
FORMATS = ("text", "markdown", "json")


def add(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("files", nargs="+", type=Path, metavar="FILE", help="read journals, SGF, CSA, KIF, or folders")
    add_output(parser)


def add_output(parser: argparse.ArgumentParser) -> None:
    """Add the flags for the form of the tables."""
    group = parser.add_argument_group("tables")
    group.add_argument(
        "--format", choices=FORMATS, default="text", help="print the tables in this format (default: text)"
    )
    group.add_argument("--unique", action="store_true", help="ignore games with the same moves as an earlier game")
    group.add_argument("--no-advantage", action="store_true", help="do not fit the first player's advantage")
    group.add_argument("--plot", type=Path, metavar="FILE", help="draw the ratings with their errors (PNG, SVG, PDF)")


def run(args: argparse.Namespace) -> int:
    from yomi.engine.matches.results import read_results

    if args.plot is not None:
        plot_check(args.plot)
    show(args, read_results(args.files, GAMES.values(), LeftOut(say)))
    return 0


def show(args: argparse.Namespace, results: Sequence[GameResult]) -> None:
    """Print the tables, and draw the ratings if `--plot` is set."""
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

"""`yomi learn`: learn a game from nothing, or continue an earlier run."""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence
from pathlib import Path

from yomi.engine.cli.flags import add_cluster, add_settings, given_settings, settings_of
from yomi.engine.cli.games import add_children, add_games
from yomi.engine.cli.loading import add_options, collect, known_options
from yomi.engine.cli.output import echo, say, set_up_logs
from yomi.engine.cli.parser import CliError
from yomi.engine.clusters.jobs import ClusterSettings
from yomi.engine.learning.run import BOARD, COMMAND, RunSettings, learn
from yomi.engine.learning.settings import LearnSettings, learn_settings
from yomi.engine.options import TABLE
from yomi.engine.registry import GAMES
from yomi.settings import rows_of

STATUS = "status"
RUNS_PAGE = "learn-runs.html"
USAGE = "yomi learn GAME [options] | status FOLDER ..."
EPILOG = """\
examples:
  yomi learn go --size 5 --hours 2         from nothing, in the folder learn-go
  yomi learn go --size 5                   continue the run
  yomi learn status learn-go               show the status; FOLDER/status.html shows more
  yomi learn status learn-go other-run     compare runs; learn-runs.html lays their graphs over each other
  yomi learn shogi --hours 24              shogi, in the folder learn-shogi
  yomi learn go --size 9 --anchor "gnugo --mode gtp" --until gnugo 0.5     until it wins half its points

Learning needs PyTorch; yomi doctor shows how to install it. docs/LEARNING.md explains every setting.
"""
# Prefix of settings among the arguments, since some have the names of options.
PREFIX = "learning_"


def add(parser: argparse.ArgumentParser) -> None:
    children = add_children(parser, COMMAND, "GAME | status", "games, and the status of a run")
    usage = "yomi learn status FOLDER [FOLDER ...] [--page FILE]"
    status = children.add_parser(STATUS, help="show the status of a run, or compare runs", usage=usage)
    status.add_argument("folders", nargs="+", type=Path, metavar="FOLDER", help="folder of a run")
    text = f"write the page of several runs to FILE (default: {RUNS_PAGE})"
    status.add_argument("--page", type=Path, metavar="FILE", help=text)
    for game, child in add_games(parser, COMMAND, "Learn {} from nothing by self-play", children):
        add_settings(child, RunSettings, leave_out=rows_of(ClusterSettings))
        add_cluster(child)
        add_settings(child, game.settings_kind(COMMAND))
        add_options(child, game, leave_out=set(TABLE) - set(BOARD), defaults=game.defaults.get(COMMAND, {}))
        add_settings(child, LearnSettings, prefix=PREFIX, group="learning")


def run(args: argparse.Namespace) -> int:
    if args.game == STATUS:
        return _show_status(args.folders, args.page)
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    game = GAMES[args.game]
    options = collect(args, game, **game.defaults.get(COMMAND, {}))
    set_up_logs(options)
    settings = learn_settings(given_settings(LearnSettings, args, PREFIX))
    own = settings_of(game.settings_kind(COMMAND), args)
    named = known_options(args, game)
    return learn(game, settings_of(RunSettings, args), settings, own, options, say, named=named)


def _show_status(folders: Sequence[Path], page: Path | None) -> int:
    from yomi.engine.learning.page import comparison_text, short_names, status_text, write_comparison, write_page
    from yomi.engine.learning.store import Store

    for folder in folders:
        if not (folder / Store.SETTINGS).exists():
            raise CliError(f"{folder}: found no run, expected a folder of yomi learn")
    for folder in folders:
        echo(status_text(folder) if len(folders) == 1 else f"{folder}\n{status_text(folder)}")
        write_page(folder)
    if len(folders) > 1:
        echo(comparison_text(folders, short_names(folders)))
    if len(folders) > 1 or page is not None:
        page = page or Path(RUNS_PAGE)
        write_comparison(folders, page)
        echo(f"{page} shows the runs together")
    return 0

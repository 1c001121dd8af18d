"""`yomi duel`: two settings of the engine play each other. `yomi tune`: parameters are tuned by such games."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from yomi.engine.cli.flags import (
    add_cluster,
    add_options,
    add_settings,
    asked_cluster,
    check,
    collect,
    known_options,
    settings_of,
)
from yomi.engine.cli.games import add_children, add_games
from yomi.engine.cli.output import echo, say, set_up_logs
from yomi.engine.cli.parser import CliError, Command
from yomi.engine.matches.settings import (
    BOARD,
    DuelSettings,
    SideBySideSettings,
    TuneSettings,
    duel_defaults,
    player_options,
    tunable,
)
from yomi.engine.options import TABLE, Value
from yomi.engine.registry import GAMES
from yomi.engine.signals import ended_by_a_signal
from yomi.settings import OptionError, did_you_mean, rows_of

if TYPE_CHECKING:
    from yomi.engine.game import Game

COMMAND = "duel"
USAGE = "yomi duel GAME [options] [--first OPTION=VALUE,...] [--second OPTION=VALUE,...]"
EPILOG = """\
examples:
  yomi duel go --net b6c96.bin.gz --size 9 --visits 200 --first c_puct=1.3 --second c_puct=1.0 --games 400
  yomi duel shogi --net model.onnx --visits 100 --first fpu_reduction=0.4 --sprt 0,10 --games 10000

Flags hold for both players, --first and --second only for one. A process plays many games at once with equal visits and
without clocks, and their positions share batches. This is by far the fastest way to compare settings of the search or
networks. For other engines and for games with clocks use yomi match.
"""
LOGS = ("log_file", "log_level")


def add(parser: argparse.ArgumentParser) -> None:
    for game, child in add_games(parser, COMMAND, "Let two settings of the engine play {} against each other"):
        for side in ("first", "second"):
            text = f"set options of the {side} player only"
            child.add_argument(f"--{side}", default="", metavar="OPTION=VALUE,...", help=text)
        _add_common(child, game, DuelSettings)


def _add_common(parser: argparse.ArgumentParser, game: Game[Any, Any], kind: type[SideBySideSettings]) -> None:
    add_settings(parser, kind)
    add_cluster(parser)
    add_settings(parser, game.settings_kind(COMMAND))
    known = {*player_options(game.name), *BOARD, *LOGS}
    add_options(parser, game, leave_out=set(TABLE) - known, defaults=duel_defaults(game))


def read_changes(text: str, flag: str, game: Game[Any, Any]) -> dict[str, Value]:
    """Read `OPTION=VALUE,...`."""
    known = player_options(game.name)
    changes: dict[str, Value] = {}
    for word in filter(None, text.split(",")):
        key, equals, value = word.partition("=")
        name = key.strip().replace("-", "_")
        if name not in known:
            what = "no option of a duel's player" if name in TABLE else "unknown option"
            raise CliError(f"{flag} {word}: {what}, expected OPTION=VALUE{did_you_mean(name, known)}")
        try:
            changes[name] = TABLE[name].parse(value if equals else "true")
        except OptionError as error:
            raise CliError(f"{flag} {word}: {error}") from None
    return changes


def _play(args: argparse.Namespace, kind: type[SideBySideSettings], work: Callable[..., object]) -> int:
    """Read the settings and the options of both players, play, and print the report.

    `work` plays: it gets the game, the players and the settings; by name the cluster and the words of the command line.
    """
    from yomi.engine.matches.compare import duel_players

    game, settings = GAMES[args.game], settings_of(kind, args)
    first, second = (read_changes(getattr(args, side, ""), f"--{side}", game) for side in ("first", "second"))
    own = argparse.Namespace(
        **{name: value for name, value in vars(args).items() if name not in rows_of(cast(Any, kind))}
    )
    options = collect(own, game, **duel_defaults(game))
    set_up_logs(options)
    players = duel_players(game, options, known_options(own, game), first, second)
    for player in players:
        check(player, game)
    cluster = asked_cluster(args, settings.processes)
    try:
        with ended_by_a_signal():
            report = work(game, players, settings, cluster=cluster, words=args.command_words)
    except ValueError as error:
        raise CliError(str(error)) from None
    echo(str(report))
    return 0


def run(args: argparse.Namespace) -> int:
    from yomi.engine.matches.compare import duel

    names = args.first or "the flags", args.second or "the flags"
    return _play(
        args, DuelSettings, lambda game, players, settings, **run: duel(game, players, settings, names, say, **run)
    )


# -- yomi tune ---------------------------------------------------------------------------------------------------------

TUNE_USAGE = "yomi tune GAME --parameter NAME LOW:HIGH[:START] [--parameter ...] [options] | status FOLDER"
TUNE_EPILOG = """\
examples:
  yomi tune go --net b6c96.bin.gz --size 9 --visits 200 --parameter c_puct 0.5:2.0 --parameter fpu_reduction 0:0.5
  yomi tune status tune                    show how the values have moved, also during the tuning

In every pair of games the values are moved up or down at random, and the result moves them (SPSA). At the end the tuned
values play the values of the start. The same command continues an interrupted tuning.
"""


def _add_tune(parser: argparse.ArgumentParser) -> None:
    children = add_children(parser, "tune", "GAME | status", "games, and the status of a tuning")
    status = children.add_parser("status", help="show the status of a tuning", usage="yomi tune status FOLDER")
    status.add_argument("folder", type=Path, metavar="FOLDER", help="folder of the tuning")
    for game, child in add_games(parser, "tune", "Tune parameters of the search of {} by games", children):
        text = f"tune this parameter (default of START: the option): {', '.join(tunable(game.name))}"
        pair = ("NAME", "LOW:HIGH[:START]")
        child.add_argument("--parameter", nargs=2, action="append", required=True, metavar=pair, help=text)
        _add_common(child, game, TuneSettings)


def _run_tune(args: argparse.Namespace) -> int:
    from yomi.engine.matches.tuning import read_range, status, tune

    if args.game == "status":
        echo(status(args.folder))
        return 0
    ranges = dict(read_range(GAMES[args.game], *words) for words in args.parameter)
    return _play(
        args, TuneSettings, lambda game, players, settings, **run: tune(game, players, ranges, settings, say, **run)
    )


TUNE = Command(TUNE_USAGE, TUNE_EPILOG, _add_tune, _run_tune)

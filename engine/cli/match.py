"""The commands `yomi match` (games between engines, with ratings), `yomi rate`, `yomi duel` and `yomi tune`."""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, cast

from yomi.engine.cli.flags import (
    add_cluster,
    add_options,
    add_settings,
    asked_cluster,
    check,
    collect,
    given_settings,
    known_options,
    settings_of,
)
from yomi.engine.cli.games import add_children, add_games, split_game
from yomi.engine.cli.output import LINE_ENDS, echo, plot_check, say, set_up_logs
from yomi.engine.cli.parser import CliError, Command
from yomi.engine.clients.spec import spec_table, without_secrets
from yomi.engine.game import Game
from yomi.engine.matches.results import GameResult
from yomi.engine.matches.settings import (
    BOARD,
    DuelSettings,
    MatchSettings,
    SideBySideSettings,
    TuneSettings,
    duel_defaults,
    player_options,
    tunable,
)
from yomi.engine.options import TABLE, Value
from yomi.engine.records import LeftOut
from yomi.engine.registry import GAMES
from yomi.engine.signals import ended_by_a_signal
from yomi.errors import printable, reraised
from yomi.nets.text import read_toml
from yomi.settings import OptionError, did_you_mean, load_settings, rows_of

USAGE = "yomi match [GAME] PLAYER PLAYER [PLAYER ...] [options]"
EPILOG = """\
GAME is go or shogi. Without it the protocol of the first engine other than yomi decides, or the first network.
A PLAYER is `yomi`, `yomi:OPTION=VALUE,...` (see yomi help options), or the command line of any GTP engine (Go) or
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
    """Return the settings and the players in a TOML file.

    Raises:
        CliError, OptionError: the file cannot be read, a setting is unknown, or its value is wrong.
    """
    if path is None:
        return {}, []
    with reraised((OSError, ValueError), CliError, f"--config {path}: "):
        data = read_toml(path)
    players = data.pop("players", [])
    if not isinstance(players, list) or not all(isinstance(player, Mapping) for player in players):
        raise CliError(f"--config {path}: expected players as tables [[players]]")
    return load_settings(MatchSettings, data, f"--config {path}: "), players


class _Table(AbstractContextManager["_Table"]):
    """The lines of a running match and, on a terminal, its table below them. A context manager."""

    def __init__(self) -> None:
        self._height = 0  # lines of the table on the terminal
        self._due = 0.0

    def say(self, text: str) -> None:
        self._erase()
        say(text)

    def show(self, lines: Sequence[str], results: Sequence[GameResult]) -> None:
        """Show lines about a game. Also show the table of all games, unless the last one was shown a moment ago."""
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
    from yomi.engine.matches.report import plot_ratings, report, to_markdown, to_text
    from yomi.engine.pictures import PlotError

    made = report(results, advantage=not args.no_advantage, unique=args.unique)
    if args.format == "json":
        json.dump(asdict(made), sys.stdout, indent=2)
        print()
    else:
        echo((to_markdown(made) if args.format == "markdown" else to_text(made)).removesuffix("\n"))
    if args.plot is not None:
        with reraised(PlotError, CliError, f"--plot {args.plot}: "):
            plot_ratings(made, args.plot)


RATE = Command("yomi rate FILE [FILE ...] [options]", RATE_EPILOG, _add_rate, _run_rate)


# -- yomi duel: two settings of the engine play each other ------------------------------------------------------------

DUEL_COMMAND = "duel"
DUEL_USAGE = "yomi duel GAME [options] [--first OPTION=VALUE,...] [--second OPTION=VALUE,...]"
DUEL_EPILOG = """\
examples:
  yomi duel go --net b6c96.bin.gz --size 9 --visits 200 --first c_puct=1.3 --second c_puct=1.0 --games 400
  yomi duel shogi --net model.onnx --visits 100 --first fpu_reduction=0.4 --sprt 0,10 --games 10000

Flags hold for both players, --first and --second only for one. A process plays many games at once with equal visits and
without clocks, and their positions share batches. This is by far the fastest way to compare settings of the search or
networks. For other engines and for games with clocks use yomi match.
"""
LOGS = ("log_file", "log_level")


def _add_duel(parser: argparse.ArgumentParser) -> None:
    for game, child in add_games(parser, DUEL_COMMAND, "Let two settings of the engine play {} against each other"):
        for side in ("first", "second"):
            text = f"set options of the {side} player only"
            child.add_argument(f"--{side}", default="", metavar="OPTION=VALUE,...", help=text)
        _add_common(child, game, DuelSettings)


def _add_common(parser: argparse.ArgumentParser, game: Game[Any, Any], kind: type[SideBySideSettings]) -> None:
    add_settings(parser, kind)
    add_cluster(parser)
    add_settings(parser, game.settings_kind(DUEL_COMMAND))
    known = {*player_options(game.name), *BOARD, *LOGS}
    add_options(parser, game, leave_out=set(TABLE) - known, defaults=duel_defaults(game))


def read_changes(text: str, flag: str, game: Game[Any, Any]) -> dict[str, Value]:
    """Read options from `OPTION=VALUE,...`."""
    known = player_options(game.name)
    changes: dict[str, Value] = {}
    for word in filter(None, text.split(",")):
        key, equals, value = word.partition("=")
        name = key.strip().replace("-", "_")
        if name not in known:
            what = "no option of a duel's player" if name in TABLE else "unknown option"
            raise CliError(f"{flag} {word}: {what}, expected OPTION=VALUE{did_you_mean(name, known)}")
        with reraised(OptionError, CliError, f"{flag} {word}: "):
            changes[name] = TABLE[name].parse(value if equals else "true")
    return changes


def _play(args: argparse.Namespace, kind: type[SideBySideSettings], work: Callable[..., object]) -> int:
    """Read the settings and the options of both players, play, and print the report.

    `work` plays. It gets the game, the players and the settings; by name the cluster and the words of the command line.
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
    with reraised(ValueError, CliError), ended_by_a_signal():
        report = work(game, players, settings, cluster=cluster, words=args.command_words)
    echo(str(report))
    return 0


def _run_duel(args: argparse.Namespace) -> int:
    from yomi.engine.matches.compare import duel

    names = args.first or "the flags", args.second or "the flags"
    return _play(
        args, DuelSettings, lambda game, players, settings, **run: duel(game, players, settings, names, say, **run)
    )


DUEL = Command(DUEL_USAGE, DUEL_EPILOG, _add_duel, _run_duel)


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

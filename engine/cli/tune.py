"""`yomi tune`: tune parameters of the search by games between different values."""

from __future__ import annotations

import argparse
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from yomi.engine.cli.duel import INERT, add_common, begin_duel, describe, make_terms, open_referees, read_players
from yomi.engine.cli.flags import add_value
from yomi.engine.cli.games import add_children, add_games
from yomi.engine.cli.output import echo, say
from yomi.engine.cli.parser import CliError
from yomi.engine.clusters.jobs import Run, begin_run
from yomi.engine.matches.results import points_of
from yomi.engine.options import TABLE, SearchOptions, rows_for
from yomi.engine.registry import GAMES
from yomi.engine.signals import ended_by_a_signal
from yomi.settings import OptionError, did_you_mean

if TYPE_CHECKING:
    from yomi.engine.game import Game
    from yomi.engine.matches.duel import DuelPlayer
    from yomi.engine.matches.spsa import Spsa
    from yomi.engine.options import Options

COMMAND, STATUS = "tune", "status"
USAGE = "yomi tune GAME --parameter NAME LOW:HIGH[:START] [--parameter ...] [options] | status FOLDER"
EPILOG = """\
examples:
  yomi tune go --net b6c96.bin.gz --size 9 --visits 200 --parameter c_puct 0.5:2.0 --parameter fpu_reduction 0:0.5
  yomi tune status tune                    show how the values have moved, also during the tuning

In every pair of games the values are moved up or down at random, and the result moves them (SPSA). At the end the tuned
values play the values of the start. The same command continues an interrupted tuning.
"""
GAMES_WANTED, PAIRS, CONFIRM = 4000, 16, 400
UNIT = "iterations"
NAMES, CONFIRM_NAMES = ("up", "down"), ("tuned", "start")
CONFIRMATION = "confirmation"
QUARTERS = (0.25, 0.5, 0.75)


def tunable(game: str) -> list[str]:
    """Return the names of the parameters that can be tuned: numbers that a search uses."""
    known = set(SearchOptions.__dataclass_fields__) - INERT
    return [row.name for row in rows_for(game) if row.name in known and row.kind in ("real", "int")]


def add(parser: argparse.ArgumentParser) -> None:
    children = add_children(parser, COMMAND, "GAME | status", "games, and the status of a tuning")
    status = children.add_parser(STATUS, help="show the status of a tuning", usage="yomi tune status FOLDER")
    status.add_argument("folder", type=Path, metavar="FOLDER", help="folder of the tuning")
    for game, child in add_games(parser, COMMAND, "Tune parameters of the search of {} by games", children):
        text = f"tune this parameter (default of START: the option): {', '.join(tunable(game.name))}"
        pair = ("NAME", "LOW:HIGH[:START]")
        child.add_argument("--parameter", nargs=2, action="append", required=True, metavar=pair, help=text)
        add_value(child, "--games", GAMES_WANTED, "N", "play this many games for the tuning", low=2)
        add_value(child, "--pairs", PAIRS, "N", "change the values after this many pairs of games", low=1)
        text = "play this many games of the tuned values against the start; 0: none"
        add_value(child, "--confirm", CONFIRM, "N", text, low=0)
        text = "set the final perturbation as a share of the range"
        add_value(child, "--c-end", 0.0, "X", text, "0.15", low=0, high=0.5)
        add_value(child, "--r-end", 0.0, "X", "set the final gain of SPSA", "40 / pairs of games", low=0, high=10)
        add_common(child, game, COMMAND)
        child.set_defaults(task=None)  # each iteration depends on the iterations before it


def run(args: argparse.Namespace) -> int:
    if args.game == STATUS:
        echo(status(args.folder))
        return 0
    game = GAMES[args.game]
    ranges = dict(read_parameter(game, *words) for words in args.parameter)
    players = read_players(args, game, {}, {})
    try:
        with ended_by_a_signal():
            _tune(args, game, players, ranges)
    except ValueError as error:
        raise CliError(str(error)) from None
    return 0


def read_parameter(game: Game[Any, Any], name: str, text: str) -> tuple[str, list[float]]:
    """Return the name of a parameter, and its range with the start if one was given."""
    known = tunable(game.name)
    key = name.replace("-", "_")
    if key not in known:
        raise CliError(f"--parameter {name}: expected one of {', '.join(known)}{did_you_mean(key, known)}")
    where = f"--parameter {name} {text}"
    try:
        values = [float(TABLE[key].parse(value) or 0.0) for value in text.split(":")]
    except OptionError as error:
        raise CliError(f"{where}: {error}") from None
    if len(values) not in (2, 3) or not values[0] < values[1] or not values[0] <= values[-1] <= values[1]:
        raise CliError(f"{where}: expected LOW:HIGH or LOW:HIGH:START, in this order")
    return key, values


def _tune(
    args: argparse.Namespace,
    game: Game[Any, Any],
    players: tuple[Options, Options],
    ranges: Mapping[str, list[float]],
) -> None:
    """Play the remaining games of the tuning and of the last match, and print the status of both."""
    from yomi.engine.matches.parts import check_journal
    from yomi.engine.matches.results import MatchJournal

    terms = make_terms(args, game, players)
    batch = min(args.pairs, -(-args.games // 2))
    spsa = {"iterations": -(-args.games // (2 * batch)), "batch": batch, "c_end": args.c_end, "r_end": args.r_end}
    tuned = {"ranges": ranges, "seed": args.seed, **{name: value for name, value in spsa.items() if value}}
    described = {**describe(game, players, terms), "tuning": tuned}
    with (
        MatchJournal(args.out, described, lambda: {"start": _start(game, players[0], ranges)}) as journal,
        open_referees(args, game, players, terms, 2 * batch) as referees,
    ):
        made = make_spsa(tuned, journal.kept["start"])
        run = begin_duel(COMMAND, args, game, players, described)
        if journal.results:
            check_journal(args.out, run, GAMES)
        begun = len(made.replay(points_of(journal.results))) - 1
        begin_run(args.out, replace(run, units=made.iterations, unit=UNIT), begun, is_new=not journal.results)
        values = _play_iterations(journal, made, referees)
        if args.confirm:
            tasks = 2 * made.iterations * made.batch
            folder = args.out / CONFIRMATION
            with MatchJournal(folder, {**described, "tuned": values}) as last:
                _play_confirmation(last, values, referees, tasks, args.confirm + args.confirm % 2)
    echo(status(args.out))


def _start(game: Game[Any, Any], options: Options, ranges: Mapping[str, list[float]]) -> dict[str, float]:
    """Return the start of each parameter: from its range, otherwise from the options."""
    found = {name: values[2] for name, values in ranges.items() if len(values) == 3}
    if len(found) < len(ranges):
        with game.benchmark_setup(options) as (_, _, settings):
            for name, (low, high, *_) in ranges.items():
                value = found.setdefault(name, getattr(settings, name))
                if value is None or not low <= value <= high:
                    text = "none" if value is None else f"{value:g}"
                    raise CliError(f"--parameter {name} {low:g}:{high:g}: starts at {text}, expected LOW:HIGH:START")
    return found


def make_spsa(tuned: Mapping[str, Any], start: Mapping[str, float]) -> Spsa:
    from yomi.engine.matches.spsa import Parameter, Spsa

    ranges = tuned["ranges"].items()
    parameters = [
        Parameter(name, low, high, start[name], TABLE[name].kind == "int") for name, (low, high, *_) in ranges
    ]
    return Spsa(parameters, **{name: value for name, value in tuned.items() if name != "ranges"})


def _play_iterations(journal: Any, spsa: Spsa, referees: DuelPlayer) -> dict[str, float]:
    points = points_of(journal.results)
    history = spsa.replay(points)
    if points:
        say(f"{len(points)} games are in {journal.path}; the tuning continues with iteration {len(history)}")
    while (iteration := len(history) - 1) < spsa.iterations:
        begin = time.monotonic()
        tasks = [task for task in spsa.tasks(history[-1], iteration) if task.number not in points]
        for played in referees.play(tasks):
            journal.add(played.result(NAMES))
            points[played.number] = played.points
        history.append(spsa.step(history[-1], iteration, points))
        values = spsa.settings(history[-1])
        journal.keep({**journal.kept, "iteration": iteration + 1, "values": values})
        speed = len(tasks) / (time.monotonic() - begin)
        say(f"{iteration + 1}/{spsa.iterations}: {_format_values(values)}; {speed:.2f} games/s")
    return spsa.settings(spsa.result(history))


def _play_confirmation(journal: Any, values: Mapping[str, float], referees: DuelPlayer, begin: int, games: int) -> None:
    """Play the tuned values against the start, from openings that the tuning did not use."""
    from yomi.engine.matches.duel import DuelTask

    known = points_of(journal.results)
    tasks = [DuelTask(number, (values, {})) for number in range(begin, begin + games) if number not in known]
    say(f"{_format_values(values)} against the start: {len(tasks)} games")
    for played in referees.play(tasks):
        journal.add(played.result(CONFIRM_NAMES))


def _format_values(values: Mapping[str, float]) -> str:
    return ", ".join(f"{name} {value:.4g}" for name, value in values.items())


def done(folder: Path, run: Run, games: Mapping[str, Game[Any, Any]]) -> frozenset[int]:
    """Return the numbers of the finished iterations. Errors: see `check_journal`."""
    from yomi.engine.matches.parts import check_journal
    from yomi.engine.matches.results import JOURNAL_NAME, read_journal

    results = check_journal(folder, run, games)
    if (folder / CONFIRMATION / JOURNAL_NAME).exists():
        check_journal(folder / CONFIRMATION, run, games)
    found, _ = read_journal(folder / JOURNAL_NAME)
    spsa = make_spsa(run.settings["tuning"], found["kept"]["start"])
    return frozenset(range(len(spsa.replay(points_of(results))) - 1))


def results(folders: Sequence[Path], run: Run) -> list[str]:
    """Return the values over time, and the last match. Raises MatchError if a journal cannot be read."""
    return [line for folder in folders for line in status(folder).splitlines()]


def status(folder: Path) -> str:
    """Return the status of a tuning as text: the values over time, and the last match."""
    from yomi.engine.matches.duel import score_of
    from yomi.engine.matches.results import JOURNAL_NAME, MatchError, read_journal

    path = folder / JOURNAL_NAME
    found, results = read_journal(path)
    if "tuning" not in found:
        raise MatchError(f"{path}: a match found, expected the journal of yomi tune")
    spsa = make_spsa(found["tuning"], found["kept"]["start"])
    history = spsa.replay(points_of(results))
    done = len(history) - 1
    columns = {
        "start": history[0],
        **{f"{share:.0%}": history[round(share * done)] for share in QUARTERS},
        "now": history[-1],
        "tuned": spsa.result(history),
    }
    lines = [f"{done} of {spsa.iterations} iterations, {len(results)} games; tuned: mean of the last half"]
    rows = [["parameter", "range", *columns]]
    for number, parameter in enumerate(spsa.parameters):
        values = [f"{parameter.value(float(shares[number])):.4g}" for shares in columns.values()]
        rows.append([parameter.name, f"{parameter.low:g} to {parameter.high:g}", *values])
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines += ["  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip() for row in rows]
    if (folder / CONFIRMATION / JOURNAL_NAME).exists():
        _, last = read_journal(folder / CONFIRMATION / JOURNAL_NAME)
        score = score_of(points_of(last))
        lines.append(f"tuned against start: {score}, {score.share:.1%}, {score.verdict}")
    return "\n".join(lines)

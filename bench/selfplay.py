"""`bench selfplay`: evaluations per second of self-play, compared with the evaluator alone.

The number of concurrent games varies. The evaluations of unfinished games count. Games/s and rows/s need a time in
which many games end.
"""

import time
from dataclasses import replace
from typing import Any

from yomi.bench.measure import batch_sizes, evaluator_rate
from yomi.engine.cli.output import say
from yomi.engine.cli.parser import CliError
from yomi.engine.game import Game
from yomi.engine.learning.processes import process_workers
from yomi.engine.learning.settings import LearnSettings
from yomi.engine.learning.workers import Task
from yomi.engine.options import Options
from yomi.settings import make_settings

# Concurrent games of each process.
GAMES = (8, 16, 32, 64)


def run(options: Options, seconds: float, game: Game[Any, Any]) -> list[dict[str, Any]]:
    """Measure self-play with each number of concurrent games in GAMES. Measure the evaluator alone before and after.

    There is one process for each worker of the search. All measurements together take `seconds`: a tenth for the
    evaluator, the rest in equal parts. Each figure is printed at once. Visits and the share of full searches are the
    defaults of `yomi learn`.

    Raises:
        CliError: the processes have not played in this time.
    """
    end = time.monotonic() + seconds
    found: list[dict[str, Any]] = []
    with game.benchmark_setup(options) as (subject, queue, settings):
        workers, sizes = settings.workers, batch_sizes(queue, settings)

        def rate(rows: int, share: float) -> float:
            return evaluator_rate(queue, subject, subject.games[-1], rows, workers, seconds * share)

        rates = {rows: rate(rows, 0.05 / len(sizes)) for rows in sizes}
        best = max(sizes, key=rates.__getitem__)
        before = rates[best]
        say(f"self-play: the evaluator alone: {before:,.0f} a second")
        for left, games in zip(range(len(GAMES), 0, -1), GAMES, strict=True):
            counts = _play(game, replace(options, workers=1), games, workers, end, left)
            if counts is None:
                break
            after = rate(best, 0.05 / len(GAMES))
            alone, before = (before + after) / 2.0, after
            share = counts["evaluations_per_second"] / alone
            found.append({"games": games, "processes": workers, **counts, "alone_per_second": alone, "share": share})
            figure = f"{counts['evaluations_per_second']:,.0f} evaluations a second, {share:.0%} of the evaluator alone"
            say(f"self-play: {games} games side by side in each of {workers} processes: {figure}")
    if not found:
        raise CliError(f"--for {seconds:g}: the processes have not played in this time, expected more, such as 60")
    if missing := GAMES[len(found) :]:
        say(f"--for {seconds:g}: no time was left for {' and '.join(map(str, missing))} games side by side")
    return found


def _play(
    game: Game[Any, Any], options: Options, games: int, workers: int, end: float, left: int
) -> dict[str, float] | None:
    """Return counts per second while all processes play, for this measurement's part of the time until `end`.

    `left` is the number of measurements left, including this one. None: no process has delivered anything until `end`.
    """
    settings = make_settings(LearnSettings, {"games": games})
    processes = process_workers(workers, game, settings, 1, _fail)
    evaluations = played = rows = 0
    try:
        processes.use(Task(options, "bench", {}))
        delivered = 0
        while delivered < workers:  # the first delivery of each has the time of loading in it
            if (rest := end - time.monotonic()) <= 0.0:
                return None
            delivered += len(processes.take(min(1.0, rest)))
        begin = time.monotonic()
        until = begin + (end - begin) / left
        while (now := time.monotonic()) < until or (not evaluations and now < end):  # a slow network takes seconds
            for each in processes.take(min(0.2, end - now)):
                evaluations += each.evaluations
                played += len(each.games)
                rows += sum(len(one.rows["value"]) for one in each.games)
        passed = time.monotonic() - begin
    finally:
        processes.close()
    if not evaluations:
        return None
    return {
        "evaluations_per_second": evaluations / passed,
        "games_per_second": played / passed,
        "rows_per_second": rows / passed,
    }


def _fail(number: int, why: str) -> None:
    raise RuntimeError(f"process {number} of self-play ended: {why}")

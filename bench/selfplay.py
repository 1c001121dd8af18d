"""`bench selfplay`: evaluations per second of self-play by number of concurrent games, compared with the evaluator
alone.

The evaluations of unfinished games count. Games/s and rows/s need a time in which many games end.
"""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from yomi.bench.measure import batch_sizes, evaluator_rate
from yomi.engine.cli.output import say
from yomi.engine.learning.processes import ProcessWorkers
from yomi.engine.learning.settings import LearnSettings
from yomi.engine.learning.workers import Task
from yomi.nets.settings import make_settings

if TYPE_CHECKING:
    from yomi.engine.game import Game
    from yomi.engine.options import Options

# Concurrent games of each process.
GAMES = (8, 16, 32, 64)


def run(options: Options, seconds: float, game: Game[Any, Any]) -> list[dict[str, Any]]:
    """Measure as many processes as the search has workers, between two measurements of the evaluator alone.

    Visits and shares of full searches are those of `yomi learn`.
    """
    found = []
    with game.benchmark_setup(options) as (subject, queue, settings):
        workers = settings.workers

        def alone() -> float:
            rates = (
                evaluator_rate(queue, subject, subject.games[-1], rows, workers, seconds / 4)
                for rows in batch_sizes(queue, settings)
            )
            return max(rates)

        say(f"self-play: the evaluator alone, {seconds / 4:g} s a batch size")
        before = alone()
        for games in GAMES:
            say(f"self-play: {games} games side by side in each of {workers} processes, {seconds:g} s")
            counts = _play(game, replace(options, workers=1), games, workers, seconds)
            after = alone()
            best = (before + after) / 2.0
            share = counts["evaluations_per_second"] / best
            found.append({"games": games, "processes": workers, **counts, "alone_per_second": best, "share": share})
            before = after
    return found


def _play(game: Game[Any, Any], options: Options, games: int, workers: int, seconds: float) -> dict[str, float]:
    """Return counts per second while all processes play."""
    settings = make_settings(LearnSettings, {"games": games})
    processes = ProcessWorkers(workers, game, settings, 1, _fail)
    try:
        processes.use(Task(options, "bench", {}))
        delivered = 0
        while delivered < workers:  # the first delivery of each has the time of loading in it
            delivered += len(processes.take(1.0))
        begin = time.monotonic()
        evaluations = played = rows = delivered = 0
        while time.monotonic() - begin < seconds or delivered < workers:  # one batch of a slow network takes seconds
            for each in processes.take(0.2):
                delivered += 1
                evaluations += each.evaluations
                played += len(each.games)
                rows += sum(len(one.rows["value"]) for one in each.games)
        passed = time.monotonic() - begin
    finally:
        processes.close()
    return {
        "evaluations_per_second": evaluations / passed,
        "games_per_second": played / passed,
        "rows_per_second": rows / passed,
    }


def _fail(number: int, why: str) -> None:
    raise RuntimeError(f"process {number} of self-play ended: {why}")

"""`bench nps`: nodes per second of the search, beside its evaluator alone."""

from __future__ import annotations

import statistics
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from bench.measure import best_batch, evaluator_rate, search_counts
from bench.subjects import measured
from engine.search.search import Search

if TYPE_CHECKING:
    from engine.options import Options

RATES = ("evaluations_per_second", "playouts_per_second", "moves_per_second", "evaluator_per_second")


def run(options: Options, seconds: float, game: str) -> list[dict[str, Any]]:
    """Search each position of a game for `seconds`, the evaluator alone before and after it for half of that.

    Returns:
        One row a position, then rows named mean, median, min and max.
    """
    subject, queue, settings = measured(options, game)
    games = subject.games
    search = Search(subject.spec, queue, settings)
    try:
        search_counts(search, games[0], 0.5)  # warms caches and clocks up
        by_batch = best_batch(queue, subject, settings.workers, min(1.0, seconds / 2))
        best = max(by_batch, key=lambda rows: by_batch[rows])
        rows: list[dict[str, Any]] = []
        for number, position in enumerate(games, 1):
            before = evaluator_rate(queue, subject, position, best, settings.workers, seconds / 2)
            counts = search_counts(search, position, seconds)
            after = evaluator_rate(queue, subject, position, best, settings.workers, seconds / 2)
            alone = (before + after) / 2
            share = counts["evaluations_per_second"] / alone
            rows.append({"position": str(number), **counts, "evaluator_per_second": alone, "share": share})
    finally:
        queue.close()
    summaries: dict[str, Callable[[list[float]], float]] = {
        "mean": statistics.mean,
        "median": statistics.median,
        "min": min,
        "max": max,
    }
    for name, function in summaries.items():
        rows.append(
            {"position": name, **{key: function([row[key] for row in rows[: len(games)]]) for key in (*RATES, "share")}}
        )
    return rows

"""`bench evaluator`: positions per second of the evaluator alone, by batch size and threads."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from yomi.bench.measure import batch_sizes, evaluator_rate

if TYPE_CHECKING:
    from yomi.engine.game import Game
    from yomi.engine.options import Options


def run(options: Options, seconds: float, game: Game[Any, Any]) -> list[dict[str, Any]]:
    """Measure every batch size with one thread, and with the search's number of workers."""
    with game.benchmark_setup(options) as (subject, queue, settings):
        position, workers, in_flight = subject.games[-1], settings.workers, settings.batches_in_flight
        return [
            {
                "batch": rows,
                "one_thread_per_second": evaluator_rate(queue, subject, position, rows, 1, seconds, in_flight),
                "threads": workers,
                "all_threads_per_second": evaluator_rate(queue, subject, position, rows, workers, seconds, in_flight),
            }
            for rows in batch_sizes(queue, settings)
        ]

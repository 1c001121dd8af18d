"""`bench evaluator`: positions per second of the evaluator alone, by batch size and threads."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bench.measure import BATCH_SIZES, evaluator_rate
from bench.positions import positions
from engine.games.go.rules import PRESETS
from engine.players.go_setup import make_queue, search_settings
from native.go.spec import go_spec

if TYPE_CHECKING:
    from engine.options import Options


def run(options: Options, seconds: float) -> list[dict[str, Any]]:
    """Measure every batch size with one thread and with as many as the search has workers."""
    game = positions(options.size)[-1]
    spec = go_spec(options.size)
    queue = make_queue(options, options.size, PRESETS["tromp-taylor"])
    workers = search_settings(options, queue).workers
    try:
        return [
            {
                "batch": rows,
                "one_thread_per_second": evaluator_rate(queue, spec, game, rows, 1, seconds),
                "threads": workers,
                "all_threads_per_second": evaluator_rate(queue, spec, game, rows, workers, seconds),
            }
            for rows in BATCH_SIZES
        ]
    finally:
        queue.close()

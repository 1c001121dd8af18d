"""The evaluator alone: `bench evaluator` measures its speed, `bench precision` how much it differs from fp32."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from yomi.bench.measure import batch_sizes, evaluator_rate
from yomi.engine.default_network import network_file
from yomi.engine.evaluators.base import EvaluatorError
from yomi.engine.evaluators.devices import devices_of
from yomi.engine.evaluators.load import load
from yomi.engine.players.precision import compare, record

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


def precision(options: Options, game: Game[Any, Any], positions: int) -> list[dict[str, Any]]:
    """Compare the options' precision with fp32; auto is the fastest one.

    Raises:
        NetworkError: the network cannot be used.
        EvaluatorError: there is no network, or this machine cannot compute it in that precision.
    """
    net = network_file(options, game.name)
    if net is None:
        raise EvaluatorError(f"evaluator {options.evaluator} has no precisions to compare: expected auto or onnx")
    how = devices_of(options)[0], options.backend, options.batch_size
    exact, other = (
        load(game.formats, net, game.board_size(options), *how, precision) for precision in ("fp32", options.precision)
    )
    recorded = record(exact, game.sampling(exact, options), positions, math.inf)
    agreement = compare(recorded, other)
    return [
        {
            "precision": other.precision,
            "positions": agreement.positions,
            "same_best_move": agreement.same_move,
            "mean_value_error": agreement.value_error,
        }
    ]

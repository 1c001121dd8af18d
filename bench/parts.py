"""The parts of a search alone: `bench evaluator`, its `precision` against fp32, and `bench tree`.

`bench handoff` shows how well the search keeps a GPU busy, with a simulated one that costs no processor time.
"""

from __future__ import annotations

import functools
import math
import threading
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from yomi.bench.measure import batch_sizes, evaluator_rate
from yomi.engine.default_network import network_file
from yomi.engine.evaluators.base import Evaluator, EvaluatorError
from yomi.engine.evaluators.devices import devices_of
from yomi.engine.evaluators.kernel_evaluators import UniformEvaluator
from yomi.engine.evaluators.network import open_network
from yomi.engine.evaluators.queue import InlineQueue
from yomi.engine.evaluators.workers import EvaluationWorkers
from yomi.engine.game import BenchmarkPositions
from yomi.engine.players.precision import compare, record
from yomi.engine.search.search import Search
from yomi.engine.search.types import Limits, SearchSettings
from yomi.native.spec import Inputs
from yomi.native.tree import arrays
from yomi.native.tree.search import VISITS_PER_LEAF

if TYPE_CHECKING:
    from yomi.engine.game import Game
    from yomi.engine.options import Options
    from yomi.native.spec import GameSpec

# Trees of each kind that grow; the best counts.
REPEATS = 3


def evaluator(options: Options, seconds: float, game: Game[Any, Any]) -> list[dict[str, Any]]:
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
    network = open_network(game.formats, net, game.board_size(options))
    exact, other = (network.load(*how, precision) for precision in ("fp32", options.precision))
    recorded = record(exact, lambda: game.new_game(options), positions, math.inf)
    agreement = compare(recorded, other)
    return [
        {
            "precision": other.precision,
            "positions": agreement.positions,
            "same_best_move": agreement.same_move,
            "mean_value_error": agreement.value_error,
        }
    ]


def tree(subjects: Sequence[BenchmarkPositions], playouts: int, worker_counts: Sequence[int]) -> list[dict[str, Any]]:
    """Grow trees of `playouts` nodes. Times are the best of three, the memory is that of the last tree."""
    rows = []
    for subject in subjects:
        for inputs in (Inputs.NOTHING, Inputs.NUMBERS, Inputs.BITS):
            for workers in worker_counts:
                rates = []
                for _ in range(REPEATS):
                    search = _search(subject, inputs, workers, playouts)
                    search.set_position(subject.games[0])
                    report = search.run(Limits(playouts=playouts))
                    rates.append(report.playouts / report.seconds)
                rows.append(
                    {
                        "game": subject.name,
                        "inputs": str(inputs.name).lower(),
                        "workers": workers,
                        "playouts_per_second": max(rates),
                        "bytes_per_node": bytes_per_node(search.tree),
                        "mean_depth": search.moves_made / report.playouts,
                    }
                )
    return rows


def bytes_per_node(tree: arrays.Tree) -> float:
    """Return the bytes in use for each node: node, edges and statistics."""
    counters = tree.counters[0]
    used = (
        counters.node_top * arrays.NODE_BYTES
        + counters.edge_top * arrays.EDGE_BYTES
        + counters.stats_top * arrays.STATS_DTYPE.itemsize
    )
    return float(used / counters.node_top)


def _search(subject: BenchmarkPositions, inputs: Inputs, workers: int, playouts: int) -> Search:
    spec = subject.spec
    edges = spec.mean_moves / spec.mean_edges  # without a policy all moves have edges
    memory = int(1.2 * playouts * edges * arrays.bytes_per_node(spec.mean_edges))
    settings = SearchSettings(workers=workers, memory=memory, cache_size=0, symmetry="none", seed=1, ownership=False)
    return Search(spec, InlineQueue(UniformEvaluator(16, inputs)), settings)


# -- a simulated GPU --------------------------------------------------------------------------------------------------

HANDOFF_MEMORY = 1 << 30  # bytes of the tree
OPINIONS = 4096  # different outputs of the simulated network; a power of two


class SimulatedGpu:
    """A device that computes one batch after another, each in the same time, however many rows it has."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.batches = 0
        self._lock = threading.Lock()
        self._free_at = 0.0

    def compute(self) -> None:
        """Return when the device has computed a batch. Batches of other threads come first."""
        with self._lock:
            self._free_at = max(self._free_at, time.perf_counter()) + self.seconds
            end = self._free_at
            self.batches += 1
        while (left := end - time.perf_counter()) > 0:
            time.sleep(left)


class SimulatedEvaluator(Evaluator):
    """An evaluator on a SimulatedGpu. Equal positions get equal outputs, drawn at random."""

    inputs = Inputs.BITS
    description = "a simulated GPU"

    def __init__(self, gpu: SimulatedGpu, spec: GameSpec, rows: int) -> None:
        self.batch_size = rows
        self._gpu = gpu
        random = np.random.default_rng(1)
        # The spread of a trained network: its first move has about half of the policy.
        self._logits = 2.0 * random.standard_normal((OPINIONS, spec.policy_size), np.float32)
        self._values = 0.3 * random.standard_normal(OPINIONS, np.float32)

    def evaluate(self, batch: arrays.Batch, rows: int) -> None:
        self._gpu.compute()
        chosen = (batch.keys[:rows] % np.uint64(OPINIONS)).astype(np.int64)
        np.take(self._logits, chosen, axis=0, out=batch.logits[:rows])
        batch.values[:rows] = 0.0
        batch.values[:rows, arrays.VALUE] = self._values[chosen]


def handoff(
    subjects: Sequence[BenchmarkPositions], rows: int, milliseconds: float, workers: int, in_flight: int, seconds: float
) -> list[dict[str, Any]]:
    """Search each position for `seconds`; return a row for each, with the share of the device's possible speed."""
    table = []
    limit = rows / (milliseconds / 1e3)
    for subject in subjects:
        gpu = SimulatedGpu(milliseconds / 1e3)
        make = functools.partial(SimulatedEvaluator, gpu, subject.spec, rows)
        queue = EvaluationWorkers([make, make])
        settings = SearchSettings(workers=workers, memory=HANDOFF_MEMORY, batches_in_flight=in_flight, seed=1)
        search = Search(subject.spec, queue, settings)
        try:
            for number, game in enumerate(subject.games, 1):
                search.clear()
                search.set_position(game)
                # A young tree has too few good leaves for a full batch. In a game most trees are reused.
                search.run(Limits(visits=2 * VISITS_PER_LEAF * rows))
                before = gpu.batches
                report = search.run(Limits(seconds=seconds))
                rate = report.evaluations / report.seconds
                batches = gpu.batches - before
                table.append(
                    {
                        "game": subject.name,
                        "position": number,
                        "evaluations_per_second": rate,
                        "share": rate / limit,
                        "rows_per_batch": report.evaluations / max(1, batches),
                        "busy": batches * gpu.seconds / report.seconds,
                    }
                )
        finally:
            queue.close()
    return table

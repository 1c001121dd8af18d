"""Measures parts of a search alone: `bench evaluator`, `bench precision` (against fp32), `bench nets`, `bench tree`."""

import math
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from yomi.bench.measure import batch_sizes, evaluator_rate
from yomi.engine.default_network import network_file
from yomi.engine.evaluators.base import EvaluatorError
from yomi.engine.evaluators.devices import devices_of
from yomi.engine.evaluators.kernel_evaluators import UniformEvaluator
from yomi.engine.evaluators.network import open_network
from yomi.engine.evaluators.queue import InlineQueue
from yomi.engine.game import BenchmarkPositions, Game
from yomi.engine.options import Options
from yomi.engine.players.precision import compare, record
from yomi.engine.search.search import Search
from yomi.engine.search.types import Limits, SearchSettings
from yomi.native.spec import Inputs
from yomi.native.tree import arrays

BACKENDS = ("native", "onnx")
BATCH_SIZES = (1, 4, 8)
# The backends take turns, so that other load on the machine affects both.
TURN_SECONDS = 0.25
# Trees of each kind that grow; the best counts.
REPEATS = 3


def evaluator(options: Options, seconds: float, game: Game[Any, Any]) -> list[dict[str, Any]]:
    """Measure every batch size with one thread, and with the number of workers of a search."""
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
    """Compare the options' precision with fp32. `auto` is the fastest precision.

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


def nets(sizes: list[tuple[int, int]], threads: int, seconds: float) -> list[dict[str, Any]]:
    """Measure shogi networks with random weights, computed by yomi's kernels and by onnxruntime.

    Args:
        sizes: blocks and channels of each network, which reads dlshogi's 57 extra channels.
        threads: number of threads that evaluate.
        seconds: time for each figure.
    """
    from yomi.engine.shogi.networks import Dlshogi
    from yomi.engine.shogi.players.setup import shogi_subject
    from yomi.nets.dlshogi.network import SIDE
    from yomi.nets.dlshogi.random_network import write_network  # imports onnx

    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for blocks, channels in sizes:
            path = write_network(Path(folder) / f"resnet{blocks}x{channels}.onnx", blocks, channels)
            evaluators = {name: open_network((Dlshogi,), path, SIDE).load(backend=name) for name in BACKENDS}
            subject = shogi_subject(evaluators["native"].spec)
            for batch in BATCH_SIZES:
                how = subject, subject.games[0], batch, threads, TURN_SECONDS
                turns = max(1, round(seconds / TURN_SECONDS))
                rates = dict.fromkeys(evaluators, 0.0)
                for _ in range(turns):
                    for name, evaluator in evaluators.items():
                        rates[name] += evaluator_rate(InlineQueue(evaluator), *how) / turns
                columns = {f"{name}_per_second": rate for name, rate in rates.items()}
                ratio = rates["native"] / rates["onnx"]
                rows.append({"network": path.stem, "batch": batch, "threads": threads, **columns, "ratio": ratio})
            for evaluator in evaluators.values():
                evaluator.close()
    return rows


def tree(subjects: Sequence[BenchmarkPositions], playouts: int, worker_counts: Sequence[int]) -> list[dict[str, Any]]:
    """Grow trees of `playouts` nodes. Times are the best of three; the memory is that of the last tree."""
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
    """Return the bytes that a tree uses for each node: node, edges and statistics."""
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

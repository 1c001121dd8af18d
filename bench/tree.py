"""`bench tree`: speed of the tree and the board, with an evaluator that costs nothing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from yomi.engine.evaluators.kernel_evaluators import UniformEvaluator
from yomi.engine.evaluators.queue import InlineQueue
from yomi.engine.game import BenchmarkPositions
from yomi.engine.search.search import Search
from yomi.engine.search.settings import SearchSettings
from yomi.engine.search.types import Limits
from yomi.native.spec import Inputs
from yomi.native.tree import arrays

REPEATS = 3


def run(subjects: Sequence[BenchmarkPositions], playouts: int, worker_counts: Sequence[int]) -> list[dict[str, Any]]:
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

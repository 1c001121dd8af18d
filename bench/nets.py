"""`bench nets`: positions per second of shogi networks with random weights, yomi's kernels against onnxruntime."""

from __future__ import annotations

import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from yomi.bench.measure import run_threads
from yomi.engine.evaluators.network import open_network
from yomi.engine.shogi.networks import Dlshogi
from yomi.nets.dlshogi.network import SIDE
from yomi.nets.dlshogi.random_network import write_network

if TYPE_CHECKING:
    from yomi.engine.evaluators.network import NetworkEvaluator
    from yomi.native.tree.arrays import Batch

BACKENDS = ("native", "onnx")
BATCH_SIZES = (1, 4, 8)
# The backends take turns, so that other load on the machine affects both.
TURN_SECONDS = 0.25


def run(sizes: list[tuple[int, int]], threads: int, seconds: float) -> list[dict[str, Any]]:
    """Measure networks (blocks, channels) with dlshogi's 57 extra channels, `seconds` for each figure."""
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for blocks, channels in sizes:
            path = write_network(Path(folder) / f"resnet{blocks}x{channels}.onnx", blocks, channels)
            evaluators = {backend: open_network((Dlshogi,), path, SIDE).load(backend=backend) for backend in BACKENDS}
            for batch_rows in BATCH_SIZES:
                rates = _rates(evaluators, batch_rows, threads, seconds)
                rows.append({"network": path.stem, "batch": batch_rows, "threads": threads, **rates})
            for evaluator in evaluators.values():
                evaluator.close()
    return rows


def _rates(evaluators: dict[str, NetworkEvaluator], rows: int, threads: int, seconds: float) -> dict[str, float]:
    turns = max(1, round(seconds / TURN_SECONDS))
    counts = dict.fromkeys(evaluators, 0.0)
    for _ in range(turns):
        for name, evaluator in evaluators.items():
            counts[name] += _rate(evaluator, rows, threads) / turns
    rates = {f"{name}_per_second": rate for name, rate in counts.items()}
    return {**rates, "ratio": counts["native"] / counts["onnx"]}


def _rate(evaluator: NetworkEvaluator, rows: int, threads: int) -> float:

    def work(stop: threading.Event) -> Iterator[int]:
        batch = _batch(evaluator, rows)
        evaluator.evaluate(batch, rows)
        yield 0
        while not stop.is_set():
            evaluator.evaluate(batch, rows)
            yield rows

    return run_threads(work, threads, TURN_SECONDS)


def _batch(evaluator: NetworkEvaluator, rows: int) -> Batch:
    from yomi.engine.shogi.game import ShogiGame
    from yomi.native.shogi.planes import write_planes
    from yomi.native.spec import Inputs
    from yomi.native.tree.buffers import make_batch

    spec = evaluator.spec
    batch, game = make_batch(spec, rows, Inputs.NUMBERS), ShogiGame()
    scratch = np.zeros(1, spec.scratch_dtype)[0]
    for row in range(rows):
        write_planes(game.position, game.history, 0, scratch, batch.planes[row], batch.extras[row])
    return batch

"""`bench handoff`: measures how well the search keeps a GPU busy. The GPU is simulated, at little processor time."""

from __future__ import annotations

import functools
import threading
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from yomi.engine.evaluators.base import Evaluator
from yomi.engine.evaluators.workers import EvaluationWorkers
from yomi.engine.search.search import Search
from yomi.engine.search.types import Limits, SearchSettings
from yomi.native.spec import Inputs
from yomi.native.tree.arrays import VALUE
from yomi.native.tree.search import VISITS_PER_LEAF

if TYPE_CHECKING:
    from yomi.engine.game import BenchmarkPositions
    from yomi.native.spec import GameSpec
    from yomi.native.tree.arrays import Batch

MEMORY = 1 << 30  # bytes of the tree
OPINIONS = 4096  # different outputs of the simulated network; a power of two


class SimulatedGpu:
    """A device that computes one batch after another. Each takes the same time, whatever its number of rows."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.batches = 0
        self._lock = threading.Lock()
        self._free_at = 0.0

    def compute(self) -> None:
        """Wait until the device has computed a batch. Batches of other threads may come first."""
        with self._lock:
            self._free_at = max(self._free_at, time.perf_counter()) + self.seconds
            end = self._free_at
            self.batches += 1
        while (left := end - time.perf_counter()) > 0:
            time.sleep(left)


class SimulatedEvaluator(Evaluator):
    """An evaluator on a SimulatedGpu. Its outputs are random, but equal for equal positions."""

    inputs = Inputs.BITS
    description = "a simulated GPU"

    def __init__(self, gpu: SimulatedGpu, spec: GameSpec, rows: int) -> None:
        self.batch_size = rows
        self._gpu = gpu
        random = np.random.default_rng(1)
        # The spread of a trained network: its first move has about half of the policy.
        self._logits = 2.0 * random.standard_normal((OPINIONS, spec.policy_size), np.float32)
        self._values = 0.3 * random.standard_normal(OPINIONS, np.float32)

    def evaluate(self, batch: Batch, rows: int) -> None:
        self._gpu.compute()
        chosen = (batch.keys[:rows] % np.uint64(OPINIONS)).astype(np.int64)
        np.take(self._logits, chosen, axis=0, out=batch.logits[:rows])
        batch.values[:rows] = 0.0
        batch.values[:rows, VALUE] = self._values[chosen]


def run(
    subjects: Sequence[BenchmarkPositions], rows: int, milliseconds: float, workers: int, in_flight: int, seconds: float
) -> list[dict[str, Any]]:
    """Search each position for `seconds`. Return a row for each, with the share of the device's possible speed."""
    table = []
    limit = rows / (milliseconds / 1e3)
    for subject in subjects:
        gpu = SimulatedGpu(milliseconds / 1e3)
        make = functools.partial(SimulatedEvaluator, gpu, subject.spec, rows)
        queue = EvaluationWorkers([make, make])
        settings = SearchSettings(workers=workers, memory=MEMORY, batches_in_flight=in_flight, seed=1)
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

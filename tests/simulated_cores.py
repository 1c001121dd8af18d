"""The hand-over between search and a GPU with more cores than this machine has: `python -m tests.simulated_cores`.

To search a batch takes the time that it takes on a core of its own, but the threads sleep meanwhile. This measures the
parts that all cores share: Python and its lock, the queues, the evaluation workers. The shared tree is left out.
"""

import argparse
import functools
import statistics
import time

from yomi.bench.handoff import SimulatedGpu
from yomi.engine.evaluators.base import Evaluator
from yomi.engine.evaluators.workers import WORKERS_PER_DEVICE, EvaluationWorkers
from yomi.engine.options import Options
from yomi.engine.registry import GAMES
from yomi.engine.search.search import Search
from yomi.engine.search.types import Limits, SearchSettings
from yomi.native.bound_kernels import NO_CALLS, Calls
from yomi.native.spec import Inputs
from yomi.native.tree.arrays import Batch
from yomi.native.tree.searcher import Searcher


class SleepingEvaluator(Evaluator):
    """An evaluator on a SimulatedGpu that writes nothing. A batch holds Python's lock for `python` seconds."""

    inputs = Inputs.BITS
    description = "a simulated GPU"

    def __init__(self, gpu: SimulatedGpu, rows: int, python: float) -> None:
        self.batch_size = rows
        self._gpu, self._python = gpu, python

    def evaluate(self, batch: Batch, rows: int) -> None:
        end = time.thread_time() + self._python
        while time.thread_time() < end:
            pass
        self._gpu.compute()


class SleepingSearcher:
    """A searcher that always finds as many leaves as it may, and takes `seconds` for each."""

    def __init__(self, search: "SleepingSearch", batch: Batch) -> None:
        self.batch = batch
        self._search = search

    def advance(self, used: int, calls: Calls = NO_CALLS, rounds: int = 1, most: int | None = None) -> int:
        search = self._search
        rows = 0 if search.has_stopped else len(self.batch.node) if most is None else most
        # Half of a leaf's time is for gathering, half for backing up.
        time.sleep(search.seconds_a_leaf * (used + rows) / 2)
        search.counted += used
        return rows


class SleepingSearch(Search):
    seconds_a_leaf = 0.0
    counted = 0

    def _searcher(self, number: int, batch: Batch) -> Searcher:
        return SleepingSearcher(self, batch)  # type: ignore[return-value]  # without a tree

    @property
    def has_stopped(self) -> bool:
        return bool(self._counters.stop)

    @property
    def root_visits(self) -> int:
        return 1 << 24  # a grown tree, which may have all its batches in flight


def measure(game: str, args: argparse.Namespace, workers: int) -> float:
    """Return the share of the device's possible evaluations that a search with `workers` workers reaches."""
    subject = GAMES[game].benchmark_positions(Options(size=9))
    gpu = SimulatedGpu(args.milliseconds / 1e3)
    make = functools.partial(SleepingEvaluator, gpu, args.rows, args.python / 1e6)
    queue = EvaluationWorkers([make] * WORKERS_PER_DEVICE)
    try:
        settings = SearchSettings(workers=workers, memory=1 << 26, batches_in_flight=args.in_flight, seed=1)
        search = SleepingSearch(subject.spec, queue, settings)
        search.seconds_a_leaf = args.microseconds / 1e6
        search.set_position(subject.games[0])
        report = search.run(Limits(seconds=args.seconds))
        return float(search.counted / report.seconds / (args.rows / args.milliseconds * 1e3))
    finally:
        queue.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=256, help="rows of a batch (256)")
    parser.add_argument("--milliseconds", type=float, default=1.0, help="time of a batch on the GPU (1)")
    parser.add_argument("--microseconds", type=float, default=17.0, help="of a core, to search a leaf (17)")
    parser.add_argument("--python", type=float, default=100.0, help="µs of Python in the evaluation of a batch (100)")
    parser.add_argument("--workers", type=int, nargs="+", default=[2, 4, 6, 8, 12, 16], help="search threads")
    parser.add_argument("--in-flight", type=int, default=2, help="batches in flight of a search thread (2)")
    parser.add_argument("--seconds", type=float, default=2.0, help="seconds of each search (2)")
    parser.add_argument("--turns", type=int, default=5, help="searches of each number of threads, in turns (5)")
    args = parser.parse_args()
    for game in GAMES:
        shares: dict[int, list[float]] = {workers: [] for workers in args.workers}
        for _ in range(args.turns):
            for workers, found in shares.items():
                found.append(measure(game, args, workers))
        for workers, found in shares.items():
            print(f"{game}, {workers} workers: {statistics.median(found):.2f} ({min(found):.2f} to {max(found):.2f})")


if __name__ == "__main__":
    main()

"""Labels for positions of Go by a network: its own outputs, or those of a short search with it."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import numpy.typing as npt

from engine.datasets.go_rows import Columns, Row, Scratch
from engine.evaluators.factory import chooses_cpu, make_katago_evaluator
from engine.evaluators.queue import InlineQueue, Job
from engine.games.go.game import KO_RULES, SCORINGS
from engine.search.parameters import SearchSettings
from engine.search.report import Limits
from engine.search.search import Search
from native.go.board import MAX_AREA, PASS
from native.go.planes import GLOBALS, PLANES, policy_index, symmetry_table, write_planes
from native.go.rules import legal_moves
from nets.data.shards import OWNER_SCALE
from nets.katago.outputs import Outputs, has_no_result, post_process

if TYPE_CHECKING:
    from engine.evaluators.katago import KataGoEvaluator
    from engine.search.report import SearchReport
    from native.calls import Calls
    from native.spec import GameSpec
    from native.tree.arrays import Batch

T = TypeVar("T")

TOP_MOVES = 32
"""Moves of a policy target that are kept: the others of a strong network's policy sum to less than a percent."""
SEARCH_MEMORY = 64 * 2**20
KO_NAMES = {code: name for name, code in KO_RULES.items()}
SCORING_NAMES = {code: name for name, code in SCORINGS.items()}


class NetworkTeacher:
    """Labels with policy, value, score and ownership of a network of KataGo's kind."""

    top_moves = TOP_MOVES

    def __init__(self, path: Path, visits: int, device: str, precision: str, seed: int) -> None:
        """Load nothing yet: an evaluator is made for each board size that comes up.

        Args:
            path: the network.
            visits: of the search for each position; 1 for the network alone, under a random symmetry.
            device: auto, cpu, cuda or tensorrt.
            precision: fp32, int16 or auto.
            seed: of symmetries and searches.
        """
        self.path = path
        self.visits = visits
        self.device = device
        self.precision = precision
        self.seed = seed
        self._evaluators: dict[int, KataGoEvaluator] = {}
        # An evaluator on a GPU is bound to the thread that makes it; one on a processor serves all threads.
        self._thread = None if chooses_cpu(device) else ThreadPoolExecutor(1, "teacher")
        self._lock = threading.Lock()
        self._scratch = Scratch()
        self._searches = Searches()

    def evaluator(self, size: int) -> KataGoEvaluator:
        """Return the evaluator for boards of `size`.

        Raises:
            NetworkError: the file cannot be used.
            EvaluatorError: the device cannot.
        """
        with self._lock:
            if size not in self._evaluators:
                make = functools.partial(make_katago_evaluator, self.path, size, self.device, precision=self.precision)
                self._evaluators[size] = self.on_device(make)
            return self._evaluators[size]

    @property
    def is_free(self) -> bool:
        """Whether any thread may call the evaluators."""
        return self._thread is None

    def on_device(self, call: Callable[[], T]) -> T:
        """Return what `call` returns, called in the thread that the device is bound to."""
        return call() if self._thread is None else self._thread.submit(call).result()

    def label(self, rows: list[Row], columns: Columns, first: int) -> None:
        """Write the labels of `rows`, all on boards of one size, into `columns` from row `first` on."""
        size = int(rows[0].position["size"])
        evaluator = self.evaluator(size)
        if self.visits > 1:
            for index, row in enumerate(rows, first):
                self.search(row.position, row.history, columns, index)
            return
        step = evaluator.batch_size
        for begin in range(0, len(rows), step):
            self._evaluate(rows[begin : begin + step], size, evaluator, columns, first + begin)

    def search(self, position: Any, history: npt.NDArray[np.uint64], columns: Columns, index: int) -> None:
        """Write what a search of `visits` says of a position, as it stands, into row `index`."""
        size = int(position["size"])
        settings = SearchSettings(workers=1, memory=SEARCH_MEMORY, cache_size=0, seed=self.seed)
        network = self.evaluator(size)
        search = self._searches.get(network.spec(size), DeviceQueue(self, network), settings)
        search.clear()
        search.set_position(Searchable(position, history))
        report = search.run(Limits(visits=self.visits))
        _write_report(report, size, columns, index)

    def close(self) -> None:
        """Release the evaluators."""
        for evaluator in self._evaluators.values():
            self.on_device(evaluator.close)
        if self._thread is not None:
            self._thread.shutdown()

    def _evaluate(self, rows: list[Row], size: int, evaluator: KataGoEvaluator, columns: Columns, first: int) -> None:
        count, area = len(rows), size * size
        planes = np.empty((count, PLANES, size, size), np.float32)
        globals_ = np.empty((count, GLOBALS), np.float32)
        legal = np.zeros((count, area + 1), np.bool_)
        moves = np.zeros(MAX_AREA + 1, np.uint16)
        symmetries = [int(row.position["hash"] ^ np.uint64(self.seed)) >> 7 & 7 for row in rows]
        spec = evaluator.spec(size)
        for index, (row, symmetry) in enumerate(zip(rows, symmetries, strict=True)):
            shown = spec.marked(row.position)
            write_planes(shown, row.history, symmetry, self._scratch.go, planes[index], globals_[index])
            for move in moves[: legal_moves(row.position, row.history, moves)]:
                legal[index, policy_index(size, int(move), symmetry)] = True
        names = [(KO_NAMES[row.position["ko_rule"]], SCORING_NAMES[row.position["scoring"]]) for row in rows]
        possible = np.array([has_no_result(*pair) for pair in names])
        raw = self.on_device(lambda: evaluator.run(planes, globals_))
        outputs = post_process(raw, legal, possible, evaluator.info)
        seen = np.array([symmetry_table(size, symmetry) for symmetry in symmetries])
        write_outputs(outputs, columns, slice(first, first + count), seen)


class Searchable:
    """A position as the search wants it."""

    search_key = None

    def __init__(self, position: Any, history: npt.NDArray[np.uint64]) -> None:
        """Make it of the game's arrays."""
        self.position = position
        self.history = history
        self.moves: list[tuple[int, int]] = []


class DeviceQueue(InlineQueue):
    """Evaluates in the thread that the teacher's device is bound to."""

    def __init__(self, teacher: NetworkTeacher, evaluator: KataGoEvaluator) -> None:
        super().__init__(evaluator)
        self._teacher = teacher

    def submit(self, job: Job) -> None:
        evaluate = functools.partial(super().submit, job)
        self._teacher.on_device(evaluate)

    def bind(self, batch: Batch) -> Calls | None:
        return super().bind(batch) if self._teacher.is_free else None


class Searches(threading.local):
    """The searches of one thread, by what they know of the game: one for each board size."""

    def __init__(self) -> None:
        self._searches: dict[GameSpec, Search] = {}

    def get(self, spec: GameSpec, queue: InlineQueue, settings: SearchSettings) -> Search:
        """Return the one for `spec`, made with this queue and these settings if it is the first time."""
        if spec not in self._searches:
            self._searches[spec] = Search(spec, queue, settings)
        return self._searches[spec]


def write_outputs(outputs: Outputs, columns: Columns, rows: slice, seen: npt.NDArray[np.int64] | None = None) -> None:
    """Write what a network says of positions as their labels.

    Args:
        outputs: for B positions.
        columns: of the shard.
        rows: B rows of it.
        seen: where the network saw each point, the pass last [B, A + 1]; None where labels are to lie as it saw them.
    """
    policy, ownership = outputs.policy, outputs.ownership
    if seen is not None:
        policy, ownership = np.take_along_axis(policy, seen, 1), np.take_along_axis(ownership, seen[:, :-1], 1)
    _write_policy(policy, columns, rows)
    columns["value"][rows] = outputs.win - outputs.loss
    columns["lead"][rows] = outputs.lead
    columns["score_mean"][rows] = outputs.score_mean
    columns["score_stdev"][rows] = outputs.score_stdev
    columns["ownership"][rows] = np.rint(ownership * OWNER_SCALE)


def _write_policy(shares: npt.NDArray[np.float32], columns: Columns, rows: slice) -> None:
    """Write the largest shares of policies [B, A + 1]."""
    best = np.argsort(-shares, axis=1, kind="stable")[:, :TOP_MOVES]
    largest = np.take_along_axis(shares, best, 1)
    columns["policy_moves"][rows, : best.shape[1]] = best
    columns["policy_weights"][rows, : best.shape[1]] = largest / largest.sum(1, keepdims=True)


def _write_report(report: SearchReport, size: int, columns: Columns, index: int) -> None:
    """Write what a search found; a game that is over has no moves and keeps its labels."""
    if not report.moves:
        return
    shares = np.zeros(size * size + 1, np.float32)
    for move in report.moves:
        shares[policy_index(size, move.move, 0) if move.move != PASS else size * size] = move.visits
    _write_policy(shares[None], columns, slice(index, index + 1))
    columns["value"][index] = 2.0 * report.winrate - 1.0
    columns["lead"][index] = columns["score_mean"][index] = report.score_lead
    columns["score_stdev"][index] = report.score_stdev
    if report.ownership is not None:
        columns["ownership"][index] = np.rint(report.ownership * OWNER_SCALE)

"""Labels for positions of Go by a network: its own outputs, or those of a short search with it."""

from __future__ import annotations

import copy
import functools
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import numpy.typing as npt

from yomi.engine.datasets.making import Columns
from yomi.engine.evaluators.load import load
from yomi.engine.evaluators.providers import chooses_cpu
from yomi.engine.evaluators.queue import InlineQueue, Job
from yomi.engine.go.datasets.rows import Row, Scratch
from yomi.engine.go.game import KO_RULES, SCORINGS
from yomi.engine.go.networks import FORMATS
from yomi.engine.go.networks.katago import raw_outputs
from yomi.engine.go.players.setup import go_sampling
from yomi.engine.go.rules import PRESETS
from yomi.engine.players.precision import with_suitable_precision
from yomi.engine.search.limits import Limits
from yomi.engine.search.parameters import SearchSettings
from yomi.engine.search.search import Search
from yomi.native.go.board import MAX_AREA, PASS
from yomi.native.go.planes import GLOBALS, PLANES, policy_index, symmetry_table, write_planes
from yomi.native.go.rules import legal_moves
from yomi.nets.data.shards import OWNER_SCALE
from yomi.nets.katago.outputs import Outputs, has_no_result, post_process

if TYPE_CHECKING:
    from yomi.engine.evaluators.network import NetworkEvaluator
    from yomi.engine.search.report import SearchReport
    from yomi.native.bound_kernels import Calls
    from yomi.native.tree.arrays import Batch

T = TypeVar("T")

LABELS_VERSION = 1
"""Of what labels mean. It rises when that changes: a set goes on only with labels of the version it was begun with."""
TOP_MOVES = 32
"""Moves of a policy target that are kept: the others of a strong network's policy sum to less than a percent."""
LEAST_MEMORY, PLAYOUT_BYTES = 2**20, 4096
"""Bytes of a search's memory, at least, and twice what a playout takes on 19×19. Each position has a search of its own,
and memory that is not needed takes time: 1.6 ms for 64 MiB."""
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
            precision: fp32, int16, int8, bf16, or auto: the fastest that agrees with fp32, as when it plays.
            seed: of symmetries and searches.
        """
        self.path = path
        self.visits = visits
        self.device = device
        self.precision = precision
        self.seed = seed
        self._evaluators: dict[int, tuple[NetworkEvaluator, NetworkEvaluator]] = {}
        """By board size: one for rules under which all games have a result, and one for the others."""
        # An evaluator on a GPU is bound to the thread that makes it; one on a processor serves all threads.
        self._thread = None if chooses_cpu(device) else ThreadPoolExecutor(1, "teacher")
        self._lock = threading.Lock()
        self._scratch = Scratch()

    def evaluator(self, size: int, *, may_have_no_result: bool = False) -> NetworkEvaluator:
        """Return the evaluator for boards of `size`; a search has to say whether the rules know games without a result.

        Raises:
            NetworkError: the file cannot be used.
            EvaluatorError: the device cannot.
        """
        with self._lock:
            if size not in self._evaluators:
                evaluator = self.on_device(functools.partial(self._make, size))
                other = copy.copy(evaluator)  # with the same network
                other.format = copy.copy(evaluator.format)
                other.format.may_have_no_result = True
                self._evaluators[size] = evaluator, other
            return self._evaluators[size][may_have_no_result]

    def _make(self, size: int) -> NetworkEvaluator:
        """Return an evaluator in the precision in which the network plays."""

        def make(precision: str) -> NetworkEvaluator:
            return load(FORMATS, self.path, size, self.device, precision=precision)

        return with_suitable_precision(make, self.precision, lambda it: go_sampling(size, PRESETS["chinese"], it))

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
        step = evaluator.batch_size
        for begin in range(0, len(rows), step):
            self._evaluate(rows[begin : begin + step], size, evaluator, columns, first + begin)
        if self.visits > 1:
            for index, row in enumerate(rows, first):
                self.search(row.position, row.history, columns, index)

    def search(self, position: Any, history: npt.NDArray[np.uint64], columns: Columns, index: int) -> None:
        """Write what a search of `visits` says of a position, as it stands, over the network's own labels in a row.

        The mean of the final score stays the network's: searches add up leads alone.
        """
        settings = SearchSettings(memory=memory_for(self.visits), cache_size=0, seed=seed_of(position, self.seed))
        search = self.new_search(position, settings)
        search.set_position(Searchable(position, history))
        _write_report(search.run(Limits(visits=self.visits)), int(position["size"]), columns, index)

    def new_search(self, position: Any, settings: SearchSettings) -> Search:
        """Return a search for positions of the board size and the rules of one."""
        size = int(position["size"])
        network = self.evaluator(size, may_have_no_result=no_result_possible(position))
        return Search(network.spec, DeviceQueue(self, network), settings)

    def close(self) -> None:
        """Release the evaluators."""
        for evaluator, _ in self._evaluators.values():
            self.on_device(evaluator.close)
        if self._thread is not None:
            self._thread.shutdown()

    def _evaluate(self, rows: list[Row], size: int, evaluator: NetworkEvaluator, columns: Columns, first: int) -> None:
        count, area = len(rows), size * size
        planes = np.empty((count, PLANES, size, size), np.float32)
        globals_ = np.empty((count, GLOBALS), np.float32)
        legal = np.zeros((count, area + 1), np.bool_)
        moves = np.zeros(MAX_AREA + 1, np.uint16)
        symmetries = [seed_of(row.position, self.seed) >> 7 & 7 for row in rows]
        spec = evaluator.spec
        for index, (row, symmetry) in enumerate(zip(rows, symmetries, strict=True)):
            shown = spec.with_flags(row.position)
            write_planes(shown, row.history, symmetry, self._scratch.go, planes[index], globals_[index])
            for move in moves[: legal_moves(row.position, row.history, moves)]:
                legal[index, policy_index(size, int(move), symmetry)] = True
        possible = np.array([no_result_possible(row.position) for row in rows])
        raw = self.on_device(lambda: raw_outputs(evaluator, planes, globals_))
        outputs = post_process(raw, legal, possible, evaluator.info)
        seen = np.array([symmetry_table(size, symmetry) for symmetry in symmetries])
        write_outputs(outputs, columns, slice(first, first + count), seen)


def no_result_possible(position: Any) -> bool:
    """Whether the rules of a position know games without a result."""
    return has_no_result(KO_NAMES[position["ko_rule"]], SCORING_NAMES[position["scoring"]])


def memory_for(playouts: int) -> int:
    """Return the bytes that a search of so many playouts needs."""
    return max(LEAST_MEMORY, PLAYOUT_BYTES * playouts)


def seed_of(position: Any, seed: int) -> int:
    """Return the seed for a position's labels: they do not depend on what else the thread has labelled before."""
    return int(position["hash"]) ^ seed


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

    def __init__(self, teacher: NetworkTeacher, evaluator: NetworkEvaluator) -> None:
        super().__init__(evaluator)
        self._teacher = teacher

    def submit(self, job: Job) -> None:
        evaluate = functools.partial(super().submit, job)
        self._teacher.on_device(evaluate)

    def bind(self, batch: Batch) -> Calls | None:
        return super().bind(batch) if self._teacher.is_free else None


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
    columns["lead"][index] = report.score_lead
    columns["score_stdev"][index] = report.score_stdev
    if report.ownership is not None:
        columns["ownership"][index] = np.rint(report.ownership * OWNER_SCALE)

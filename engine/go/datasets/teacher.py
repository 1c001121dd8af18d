"""Labels positions by a network: by its own outputs, or by results of searches.

`KomiScorer` labels points with the komi at which both sides win equally often (as in COSUMI). The komi moves in steps
until a search's winrate for Black has crossed one half, then is interpolated between the last two steps. Each stage
continues from the stage before, with smaller steps and more playouts.
"""

import copy
import functools
import math
import re
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

from yomi.engine.color import BLACK
from yomi.engine.datasets.shards import Columns
from yomi.engine.evaluators.devices import Device, parse_device
from yomi.engine.evaluators.network import NetworkEvaluator, open_network
from yomi.engine.evaluators.queue import InlineQueue, Job
from yomi.engine.go.datasets.games import Row
from yomi.engine.go.game import KO_RULES, SCORINGS, GoGame
from yomi.engine.go.networks import FORMATS, RolloutEvaluator, encode, raw_outputs
from yomi.engine.go.players.setup import ROLLOUT_BATCH, ROLLOUT_C_PUCT, ROLLOUT_SETTINGS, ROLLOUTS_PER_LEAF
from yomi.engine.go.points import Board, square
from yomi.engine.go.rules import PRESETS
from yomi.engine.go.settings import MakeGoSettings, PlayGoDataSettings
from yomi.engine.players.precision import with_suitable_precision
from yomi.engine.search.search import Search
from yomi.engine.search.types import Limits, SearchReport, SearchSettings
from yomi.native.bound_kernels import Calls
from yomi.native.go.planes import symmetry_table
from yomi.native.go.spec import go_spec
from yomi.native.tree.arrays import Batch
from yomi.nets.data.columns import OWNER_SCALE
from yomi.nets.errors import NetworkError
from yomi.nets.katago.outputs import Outputs, has_no_result, post_process

T = TypeVar("T")

TOP_MOVES = 32  # Moves of a policy target that are kept. The rest of a strong network's policy sums to less than 1%.
# Minimum bytes of a search's memory, and bytes for each playout (twice the need on 19×19). Each position gets its own
# search, and 64 MiB would cost it 1.6 ms.
MIN_MEMORY, PLAYOUT_BYTES = 2**20, 4096
KO_NAMES = {code: name for name, code in KO_RULES.items()}
SCORING_NAMES = {code: name for name, code in SCORINGS.items()}


class NetworkTeacher:
    """Labels positions with a KataGo network's policy, value, score and ownership."""

    top_moves = TOP_MOVES

    def __init__(self, path: Path, visits: int, device: Device, precision: str, seed: int) -> None:
        """Store the arguments. An evaluator is made for each board size on demand.

        Args:
            path: the network.
            visits: visits of the search for each position; 1 for the network alone, under a random symmetry.
            device: where the network is computed.
            precision: fp32, int16, int8, bf16, or auto: the fastest that agrees with fp32.
            seed: seed of symmetries and searches.
        """
        self.path = path
        self.visits = visits
        self.device = device
        self.precision = precision
        self.seed = seed
        # By board size: (for rules under which every game has a result, for the others).
        self._evaluators: dict[int, tuple[NetworkEvaluator, NetworkEvaluator]] = {}
        # An evaluator on a GPU is bound to the thread that makes it; one on a processor serves all threads.
        self._thread = None if device.is_cpu else ThreadPoolExecutor(1, "teacher")
        self._lock = threading.Lock()

    def __reduce__(self) -> tuple[Any, ...]:
        return NetworkTeacher, (self.path, self.visits, self.device, self.precision, self.seed)

    def evaluator(self, size: int, *, may_have_no_result: bool = False) -> NetworkEvaluator:
        """Return the evaluator for a board size, under rules with or without games that end without a result."""
        with self._lock:
            if size not in self._evaluators:
                evaluator = self.on_device(functools.partial(self._make, size))
                other = copy.copy(evaluator)  # with the same network
                other.format = copy.copy(evaluator.format)
                other.format.may_have_no_result = True
                self._evaluators[size] = evaluator, other
            return self._evaluators[size][may_have_no_result]

    def _make(self, size: int) -> NetworkEvaluator:
        """Return an evaluator in the precision that is also used for playing."""
        network = open_network(FORMATS, self.path, size)

        def load(precision: str) -> NetworkEvaluator:
            return network.load(self.device, precision=precision)

        return with_suitable_precision(load, self.precision, lambda: GoGame(square(size), PRESETS["chinese"]))

    @property
    def is_free(self) -> bool:
        """Whether every thread may call the evaluators."""
        return self._thread is None

    def on_device(self, call: Callable[[], T]) -> T:
        """Run `call` in the thread that owns the device, and return its result."""
        return call() if self._thread is None else self._thread.submit(call).result()

    def label(self, rows: list[Row], columns: Columns, first: int) -> None:
        """Write the labels of `rows`, all of one board size, into `columns` from row `first` on.

        Several threads may call this at once.
        """
        size = int(rows[0].position["size"])
        evaluator = self.evaluator(size)
        step = evaluator.batch_size
        for begin in range(0, len(rows), step):
            self._evaluate(rows[begin : begin + step], size, evaluator, columns, first + begin)
        if self.visits > 1:
            for index, row in enumerate(rows, first):
                self.search(row.position, row.history, columns, index)

    def search(self, position: Any, history: npt.NDArray[np.uint64], columns: Columns, index: int) -> None:
        """Replace a row's labels with a search's results. `score_mean` stays the network's, because searches only
        average leads.
        """
        settings = SearchSettings(memory=memory_for(self.visits), cache_size=0, seed=seed_of(position, self.seed))
        search = self.new_search(position, settings)
        search.set_position(Searchable(position, history))
        _write_report(search.run(Limits(visits=self.visits)), square(int(position["size"])), columns, index)

    def new_search(self, position: Any, settings: SearchSettings) -> Search:
        """Return a search for positions of this board size and rules."""
        size = int(position["size"])
        network = self.evaluator(size, may_have_no_result=no_result_possible(position))
        return Search(network.spec, DeviceQueue(self, network), settings)

    def close(self) -> None:
        for evaluator, _ in self._evaluators.values():
            self.on_device(evaluator.close)
        if self._thread is not None:
            self._thread.shutdown()

    def _evaluate(self, rows: list[Row], size: int, evaluator: NetworkEvaluator, columns: Columns, first: int) -> None:
        symmetries = [seed_of(row.position, self.seed) >> 7 & 7 for row in rows]
        shown = [(row.position, row.history, symmetry) for row, symmetry in zip(rows, symmetries, strict=True)]
        planes, globals_, legal = encode(evaluator.spec, shown)
        possible = np.array([no_result_possible(row.position) for row in rows])
        raw = self.on_device(lambda: raw_outputs(evaluator, planes, globals_))
        outputs = post_process(raw, legal, possible, evaluator.info)
        seen = np.array([symmetry_table(size, size, symmetry) for symmetry in symmetries])
        write_outputs(outputs, columns, slice(first, first + len(rows)), seen)


def make_teacher(settings: MakeGoSettings | PlayGoDataSettings, path: Path, visits: int) -> NetworkTeacher:
    return NetworkTeacher(path, visits, parse_device(settings.device), settings.precision, settings.seed)


def no_result_possible(position: Any) -> bool:
    """Return whether a game can end without a result under the rules of a position."""
    return has_no_result(KO_NAMES[position["ko_rule"]], SCORING_NAMES[position["scoring"]])


def memory_for(playouts: int) -> int:
    """Return the bytes of memory for a search of `playouts` playouts."""
    return max(MIN_MEMORY, PLAYOUT_BYTES * playouts)


def seed_of(position: Any, seed: int) -> int:
    """Return the seed for labeling a position. It does not depend on the order in which positions are labeled."""
    return int(position["hash"]) ^ seed


class Searchable:
    """A position with the attributes that a search needs of a game."""

    search_key = None

    def __init__(self, position: Any, history: npt.NDArray[np.uint64]) -> None:
        self.position = position
        self.history = history
        self.moves: list[tuple[int, int]] = []


class DeviceQueue(InlineQueue):
    """A queue whose evaluations run in the thread that owns the teacher's device."""

    def __init__(self, teacher: NetworkTeacher, evaluator: NetworkEvaluator) -> None:
        super().__init__(evaluator)
        self._teacher = teacher

    def submit(self, job: Job) -> None:
        evaluate = functools.partial(super().submit, job)
        self._teacher.on_device(evaluate)

    def bind(self, batch: Batch) -> Calls | None:
        return super().bind(batch) if self._teacher.is_free else None


def write_outputs(outputs: Outputs, columns: Columns, rows: slice, seen: npt.NDArray[np.int64] | None = None) -> None:
    """Write a network's outputs as labels.

    `seen` contains the index of each point (pass last) in the outputs [B, A + 1]. None: labels keep their symmetry.
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
    """Write the largest shares of policies [B, A + 1] into these rows, scaled so that their sum is 1."""
    best = np.argsort(-shares, axis=1, kind="stable")[:, :TOP_MOVES]
    largest = np.take_along_axis(shares, best, 1)
    columns["policy_moves"][rows, : best.shape[1]] = best
    columns["policy_weights"][rows, : best.shape[1]] = largest / largest.sum(1, keepdims=True)


def _write_report(report: SearchReport, board: Board, columns: Columns, index: int) -> None:
    """Write the results of a search as labels. If it has no moves, as at the end of a game, the labels stay."""
    if not report.moves:
        return
    shares = np.zeros(board.area + 1, np.float32)
    for move in report.moves:
        shares[board.index(move.move)] = move.visits
    _write_policy(shares[None], columns, slice(index, index + 1))
    columns["value"][index] = 2.0 * report.winrate - 1.0
    columns["lead"][index] = report.score_lead
    columns["score_stdev"][index] = report.score_stdev
    if report.ownership is not None:
        columns["ownership"][index] = np.rint(report.ownership * OWNER_SCALE)


STAGES = "10:2000,4:20000,2:50000"  # COSUMI's stages
START_KOMI = 6.5

Winrate = Callable[[float], float]  # Black's winrate in [0, 1] at a komi


# step of the komi in points, and playouts of each search with such steps
Stage: TypeAlias = tuple[int, int]


def parse_stages(text: str) -> tuple[Stage, ...]:
    """Parse `POINTS:PLAYOUTS,...`, or raise NetworkError."""
    if not re.fullmatch(r"[1-9]\d{0,2}:[1-9]\d{0,8}(,[1-9]\d{0,2}:[1-9]\d{0,8})*", text):
        raise NetworkError(f"score stages '{text}' found, expected POINTS:PLAYOUTS,... such as {STAGES}")
    pairs = (word.split(":") for word in text.split(","))
    return tuple((int(points), int(playouts)) for points, playouts in pairs)


def fair_komi(winrate: Callable[[int, float], float], stages: Sequence[Stage], area: int) -> float:
    """Return the komi at which Black's winrate is one half, at most `area`. `winrate` takes playouts and komi."""
    komi = START_KOMI
    for points, playouts in stages:
        # No draws: a komi of n + 1/2.
        begin = math.floor(komi) + 0.5
        komi = crossing(functools.partial(winrate, playouts), begin, points, area)
    return komi


def crossing(winrate: Winrate, komi: float, step: float, area: int) -> float:
    """Return the komi at which the winrate is one half, searched from `komi` on in steps; ±`area` if there is none."""
    share = winrate(komi)
    while share != 0.5:
        following = komi + (step if share > 0.5 else -step)
        if abs(following) > area + step:
            return math.copysign(area, following)
        other = winrate(following)
        if (share - 0.5) * (other - 0.5) <= 0.0:
            return komi + (following - komi) * (share - 0.5) / (share - other)
        komi, share = following, other
    return komi


class KomiScorer:
    """Labels positions with the lead in points, found by searches. Several threads may use it."""

    def __init__(self, teacher: NetworkTeacher | None, stages: Sequence[Stage], seed: int) -> None:
        """Score with the network of a teacher, or with rollouts if it is None."""
        self.teacher = teacher
        self.stages = tuple(stages)
        self.seed = seed
        self._settings = _settings(teacher is not None, max(playouts for _, playouts in stages))

    def black_lead(self, row: Row) -> float:
        """Return Black's lead in points without komi."""
        position = row.position.copy()
        search = self._new_search(position)
        black = int(position["side_to_move"]) == BLACK

        def winrate(playouts: int, komi: float) -> float:
            position["komi"] = komi
            search.clear()
            search.set_position(Searchable(position, row.history))
            share = search.run(Limits(visits=playouts)).winrate
            return share if black else 1.0 - share

        return fair_komi(winrate, self.stages, int(position["size"]) ** 2)

    def label(self, row: Row, sign: float, columns: Columns, index: int) -> None:
        """Write the lead, with komi, into a row of `columns`. For `sign` see `RowWriter.sign`."""
        lead = sign * (self.black_lead(row) - float(row.position["komi"]))
        columns["lead"][index] = columns["score_mean"][index] = lead

    def _new_search(self, position: Any) -> Search:
        settings = replace(self._settings, seed=seed_of(position, self.seed))
        if self.teacher is not None:
            return self.teacher.new_search(position, settings)
        rollouts = RolloutEvaluator(ROLLOUTS_PER_LEAF, ROLLOUT_BATCH, settings.seed)
        return Search(go_spec(int(position["size"])), InlineQueue(rollouts), settings)


def _settings(has_network: bool, playouts: int) -> SearchSettings:
    """Return the settings of a search that counts wins only, not points."""
    settings = SearchSettings(
        memory=memory_for(playouts), cache_size=0, score_utility=0.0, dynamic_score_utility=0.0, ownership=False
    )
    return settings if has_network else replace(settings, c_puct=ROLLOUT_C_PUCT, **ROLLOUT_SETTINGS)

"""Decides whether a lower precision is good enough for a network, by comparing it with fp32 on games that it plays
itself.

The cache keeps verdicts; yomi contains those for its own networks. The first use of a network on a board size prints
the choice and its reason to stderr.
"""

import contextlib
import json
import logging
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TypeVar

import numpy as np

from yomi.engine.evaluators.base import Evaluator, notices
from yomi.engine.evaluators.network import FileEvaluator, OnNetwork
from yomi.engine.evaluators.queue import InlineQueue
from yomi.engine.players.request import PlayableGame
from yomi.engine.search.read_tree import root_priors
from yomi.engine.search.root import evaluate_root
from yomi.engine.search.types import SearchSettings
from yomi.errors import one_line
from yomi.language import tr
from yomi.native.game_calls import BoundBoard
from yomi.native.tree.arrays import VALUE, Batch
from yomi.native.tree.buffers import make_board, make_worker
from yomi.nets.files import default_cache_dir, write_atomically
from yomi.nets.models import PRECISION_DIR
from yomi.nets.text import parse_json

_log = logging.getLogger("yomi.networks")


# Requirements for fewer bits: share of positions with the same best move, and mean difference of the values
MIN_SAME_MOVE, MAX_VALUE_ERROR = 0.95, 0.02
POSITIONS, MIN_POSITIONS = 400, 100
SECONDS = 6.0  # after this time with the reference MIN_POSITIONS are enough; the candidate is faster
SLOWER = {"bf16": "int16", "int8": "int16"}  # next candidate; fp32 follows all others
GAME_PLIES = 240
SEED = 1
VERSION = 2  # of the comparison; verdicts of other versions are not read
# the workers of a device start together: the second waits here for the first one's verdict
_COMPARING = threading.Lock()


E = TypeVar("E", bound=FileEvaluator)


@dataclass(frozen=True, slots=True)
class Agreement:
    """How well a precision agrees with its reference, fp32."""

    positions: int
    same_move: float  # Share of positions in which the policies have the same best legal move
    value_error: float  # Mean absolute difference of the values, which are in [-1, 1]

    @property
    def is_enough(self) -> bool:
        return self.same_move >= MIN_SAME_MOVE and self.value_error <= MAX_VALUE_ERROR

    def __str__(self) -> str:
        return tr(
            "same best move in {share} of {positions} positions, mean value error {error}",
            share=f"{self.same_move:.1%}",
            positions=self.positions,
            error=f"{self.value_error:.4f}",
        )


class _Recorder(OnNetwork):
    """Copies each evaluated batch of one row."""

    def __init__(self, network: Evaluator) -> None:
        super().__init__(network)
        self.batches: list[Batch] = []

    def evaluate(self, batch: Batch, rows: int) -> None:
        super().evaluate(batch, rows)
        if batch.move_count[0]:
            self.batches.append(Batch(*map(np.copy, batch)))


def record(
    reference: FileEvaluator,
    begin: Callable[[], PlayableGame],
    positions: int = POSITIONS,
    seconds: float = SECONDS,
) -> list[Batch]:
    """Play games whose moves are drawn from the policy, and return their evaluated batches of one row each.

    `begin` returns the start of a game. Stop after `positions` batches, or after `seconds` if there are MIN_POSITIONS
    by then.
    """
    spec, recorder = reference.spec, _Recorder(reference)
    queue = InlineQueue(recorder)
    settings = SearchSettings(ownership=False, symmetry="none", seed=SEED)
    board = BoundBoard(make_board(spec, spec.positions(1)))
    worker = make_worker(spec, board.board, SEED)
    random = np.random.default_rng(SEED)
    end = time.perf_counter() + seconds

    def is_enough() -> bool:
        wanted = positions if time.perf_counter() < end else min(positions, MIN_POSITIONS)
        return len(recorder.batches) >= wanted

    while not is_enough():
        game = begin()
        for _ in range(GAME_PLIES):
            if is_enough() or game.is_over:
                break
            board.board.root[0] = spec.with_flags(game.position)
            length = int(game.position["history_length"])
            board.board.history[:length] = game.history[:length]
            priors = root_priors(evaluate_root(queue, spec, settings, worker, board))
            if not priors:
                break
            weights = np.array(list(priors.values()))
            game.push(int(random.choice(list(priors), p=weights / weights.sum())))
    return recorder.batches


def compare(recorded: Sequence[Batch], candidate: Evaluator) -> Agreement:
    same, errors = [], []
    for batch in recorded:
        written = {name: np.zeros_like(getattr(batch, name)) for name in ("logits", "values", "ownership")}
        other = batch._replace(**written)
        candidate.evaluate(other, 1)
        legal = batch.indices[0, : batch.move_count[0]]
        same.append(bool(batch.logits[0, legal].argmax() == other.logits[0, legal].argmax()))
        errors.append(abs(float(batch.values[0, VALUE] - other.values[0, VALUE])))
    return Agreement(len(same), float(np.mean(same)), float(np.mean(errors)))


def with_suitable_precision(make: Callable[[str], E], precision: str, begin: Callable[[], PlayableGame]) -> E:
    """Return an evaluator in a precision. `auto` is the fastest precision that agrees with fp32 on games from `begin`.

    `make` returns an evaluator in a given precision. Its `auto` is the machine's fastest precision.
    """
    evaluator = make(precision)
    if evaluator.precision != precision != "auto":
        _tell(evaluator, f"because {precision} has no effect on this network")
    if precision != "auto" or evaluator.precision == "fp32" or evaluator.is_exact:
        if (precision == "auto" and not evaluator.is_exact) or evaluator.fallback_reason:
            _tell_once(evaluator)
        return evaluator
    recorded: list[Batch] = []
    while evaluator.precision != "fp32":
        with _COMPARING:
            verdict = _known(_file_name(evaluator))
            if verdict is None:
                candidate = evaluator.precision
                notices.get()(f"comparing {candidate} with fp32, once for this network{_on_board(evaluator)} ...")
                if not recorded:
                    # Only one of the two is in memory at a time: a large network takes about 250 and 500 MB.
                    evaluator.close()
                    del evaluator
                    reference = make("fp32")
                    with contextlib.closing(reference):
                        recorded = record(reference, begin)
                    del reference
                    evaluator = make(candidate)
                with contextlib.ExitStack() as on_failure:
                    on_failure.callback(evaluator.close)
                    verdict = compare(recorded, evaluator)
                    on_failure.pop_all()
                _keep(evaluator, verdict)
                if verdict.is_enough:
                    _tell(evaluator, f"as good as fp32: {verdict}")
        _log.info("%s against fp32: %s", evaluator.precision, verdict)
        if verdict.is_enough:
            evaluator.agreement = str(verdict)
            return evaluator
        name, slower = evaluator.info.source_file, SLOWER.get(evaluator.precision, "fp32")
        _log.warning("%s: %s is replaced by %s (%s): %s", name, evaluator.precision, slower, evaluator.backend, verdict)
        evaluator.close()
        del evaluator
        evaluator = make(slower)
    return evaluator


def _on_board(evaluator: FileEvaluator) -> str:
    """Return the board size for a message; empty if the game has one size only (shogi)."""
    size = evaluator.info.board_size
    if evaluator.spec.area == 0:
        return ""
    return f" on {size}x{size}" if size else " on boards of any size"


def _tell(evaluator: FileEvaluator, why: str) -> None:
    chosen = f"{evaluator.info.source_file}{_on_board(evaluator)}: {evaluator.precision} by {evaluator.backend}"
    notices.get()(f"{chosen}, {why}")


def _tell_once(evaluator: FileEvaluator) -> None:
    """Print the choice and its reason, unless the cache contains a file that marks them as printed."""
    info = evaluator.info
    backend = evaluator.backend.partition(",")[0].replace(" ", "-")
    told = default_cache_dir() / "told" / f"{info.source_sha256[:32]}-{info.board_size}-{backend}"
    try:
        if told.exists():
            return
        told.parent.mkdir(parents=True, exist_ok=True)
        told.touch()
    except OSError as error:  # it is printed again next time
        _log.info("%s cannot be written: %s", told, error)
    reason = evaluator.fallback_reason
    why = f"not by native kernels: {reason}" if reason else "for which there is nothing faster on this machine"
    _tell(evaluator, why)


def _file_name(evaluator: FileEvaluator) -> str:
    info, device = evaluator.info, evaluator.device
    # Half precision differs between devices: providers use kernels and accumulators of their own.
    kind = "" if device.is_cpu else device.kind.replace(":", "-") + "-"
    return f"{info.source_sha256[:32]}-{info.board_size}-{kind}{evaluator.precision}-{VERSION}.json"


def _cache_dir() -> Path:
    return default_cache_dir() / "precision"


def _known(file_name: str) -> Agreement | None:
    """Return a verdict from the cache or from yomi's own files; None if there is no readable verdict."""
    for folder in (PRECISION_DIR, _cache_dir()):
        path = folder / file_name
        try:
            found = parse_json(path.read_text(encoding="utf-8"))
            return Agreement(int(found["positions"]), float(found["same_move"]), float(found["value_error"]))
        except FileNotFoundError:
            continue
        except (OSError, ValueError, TypeError, KeyError) as error:
            _log.warning("%s cannot be read (%s): yomi compares again", path, one_line(str(error)))
    return None


def _keep(evaluator: FileEvaluator, verdict: Agreement) -> None:
    path = _cache_dir() / _file_name(evaluator)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, json.dumps(asdict(verdict)).encode())
    except OSError as error:
        _log.warning("%s cannot be written (%s): yomi compares again next time", path, error)

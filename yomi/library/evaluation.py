"""Networks' opinions of many positions, without search."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from yomi.engine.color import BLACK, WHITE
from yomi.engine.evaluators.base import EvaluatorError
from yomi.engine.evaluators.queue import Job
from yomi.native.bound_kernels import Calls
from yomi.native.game_calls import BoundBoard
from yomi.native.tree import evaluation as kernels
from yomi.native.tree.buffers import make_batch, make_board, without_positions

if TYPE_CHECKING:
    from yomi.engine.evaluators.queue import EvaluationQueue
    from yomi.engine.search.search import Search
    from yomi.engine.search.types import SearchableGame
    from yomi.native.spec import GameSpec

FloatArray = npt.NDArray[np.float32]

MIN_ROWS = 64
"""Positions of a thread's share: threads take shares until none is left, so that all of them end together."""
SHARES = 8
"""Shares of each thread, if there are enough positions."""


@dataclass(frozen=True, eq=False)
class Evaluation:
    """Opinion of a network on B positions. Row i belongs to position i."""

    side: npt.NDArray[np.uint8]
    """uint8[B]: the side that value, score and ownership are for, BLACK or WHITE; the side to move at first."""
    policy: FloatArray
    """float32[B, moves]: probabilities of the legal moves; `Position.move_at` names the move of a column."""
    value: FloatArray
    """float32[B]: win minus loss, in [-1, 1]."""
    score: FloatArray | None
    """Go: float32[B]: expected lead in points. None in shogi."""
    ownership: FloatArray | None
    """Go: float32[B, size, size]: expected owner in [-1, 1], +1 `side` owns the point. None in shogi."""

    def __len__(self) -> int:
        """Number of positions."""
        return len(self.side)

    @property
    def winrate(self) -> FloatArray:
        """float32[B]: winrate in [0, 1]."""
        return 0.5 + 0.5 * self.value

    def pov(self, side: int) -> Evaluation:
        """Return value, score and ownership from the point of view of BLACK or WHITE in all rows."""
        if side not in (BLACK, WHITE):
            raise ValueError(f"side {side!r} found, expected yomi.BLACK or yomi.WHITE")
        sign = np.where(self.side == side, np.float32(1.0), np.float32(-1.0))
        return Evaluation(
            np.full_like(self.side, side),
            self.policy,
            sign * self.value,
            None if self.score is None else sign * self.score,
            None if self.ownership is None else sign[:, None, None] * self.ownership,
        )

    @property
    def black(self) -> Evaluation:
        """All rows from Black's point of view."""
        return self.pov(BLACK)

    @property
    def white(self) -> Evaluation:
        """All rows from White's point of view."""
        return self.pov(WHITE)


class Evaluator:
    """Evaluates positions on the network of a search, with as many threads and rows in a batch as the search."""

    def __init__(self, search: Search) -> None:
        """Prepare for the network of a search."""
        self.search = search
        self._lanes = [_Lane(search) for _ in range(search.settings.workers)]

    def evaluate(self, games: Sequence[SearchableGame], size: int | None) -> Evaluation:
        """Return the opinion on positions.

        Args:
            games: the positions, of one board size.
            size: length of the board's side in a game with ownership, otherwise None.

        Raises:
            EvaluatorError: the network failed.
        """
        task = _Task(self.search.spec, games)
        step = max(MIN_ROWS, -(-len(games) // (SHARES * len(self._lanes))))
        shares: SimpleQueue[int] = SimpleQueue()
        for begin in range(0, len(games), step):
            shares.put(begin)
        self._run(task, shares, step)
        if not np.isfinite(task.values).all():
            name = self.search.queue.evaluator.description
            raise EvaluatorError(f"{name}: a value or logit that is not finite found, expected numbers")
        return Evaluation(
            task.side,
            task.policy,
            task.values[:, 0].copy(),
            task.values[:, 1].copy() if size else None,
            task.ownership.reshape(-1, size, size) if size else None,
        )

    def _run(self, task: _Task, shares: SimpleQueue[int], step: int) -> None:
        errors: list[BaseException] = []

        def work(lane: _Lane) -> None:
            try:
                while not shares.empty() and not errors:
                    begin = shares.get_nowait()
                    lane.evaluate(task, begin, min(begin + step, len(task.side)))
            except Empty:
                pass  # another thread took the last share
            except BaseException as error:  # raised in the calling thread
                errors.append(error)

        lanes = self._lanes[: max(1, shares.qsize())]
        threads = [threading.Thread(target=work, args=(lane,), daemon=True) for lane in lanes]
        for thread in threads:
            thread.start()
        try:
            for thread in threads:
                thread.join()
        except BaseException as error:  # Ctrl-C: the threads end after their share, and leave the buffers then
            errors.append(error)
            for thread in threads:
                thread.join()
            raise
        if errors:
            raise errors[0]


class _Task:
    """Positions as arrays, and the arrays of their opinions."""

    def __init__(self, spec: GameSpec, games: Sequence[SearchableGame]) -> None:
        count = len(games)
        records = spec.positions(count)
        for index, game in enumerate(games):
            records[index] = game.position
        for name, value in spec.position_flags:
            records[name] = value
        lengths = records["history_length"].astype(np.int64)
        self.ends = np.concatenate((np.zeros(1, np.int64), np.cumsum(lengths)))
        parts = [game.history[:length] for game, length in zip(games, lengths.tolist(), strict=True)]
        self.histories = np.concatenate(parts) if parts else np.zeros(0, np.uint64)
        self.side = records["side_to_move"].copy()
        self.positions = records.view(np.uint8).reshape(count, spec.position_dtype.itemsize)
        self.policy = np.zeros((count, spec.policy_size), np.float32)
        self.values = np.zeros((count, 2), np.float32)
        self.ownership = np.zeros((count, spec.area), np.float32)

    @property
    def given(self) -> tuple[Any, ...]:
        """Arguments of `fill`."""
        return self.positions, self.histories, self.ends

    @property
    def wanted(self) -> tuple[Any, ...]:
        """Arguments of `read`."""
        return self.policy, self.values, self.ownership


class _Slot:
    """A board and a batch bound to the game's kernels."""

    def __init__(self, search: Search) -> None:
        spec = search.spec
        root = spec.positions(1)
        bound = BoundBoard(make_board(spec, root))
        self.batch = make_batch(spec, search.batch_rows, search.queue.evaluator.inputs)
        calls, self._kept = bound.with_batch(self.batch)
        board = bound.board
        self.position = (
            *(calls.board, calls.rows, root.view(np.uint8), board.history, board.facts, board.moves, board.indices),
        )
        self.plain = without_positions(self.batch)


class _Lane:
    """The batch and buffers of one thread."""

    def __init__(self, search: Search) -> None:
        self._search = search
        self._slots: list[_Slot] = []
        self._calls: Calls | None = None

    def evaluate(self, task: _Task, begin: int, end: int) -> None:
        """Evaluate positions `begin` to `end`, by kernels alone if the evaluator consists of kernels."""
        queue = self._search.queue
        if not self._slots:
            self._slots.append(_Slot(self._search))
            self._calls = queue.bind(self._slots[0].batch)
        if self._calls is None:
            self._submit(queue, task, begin, end)
            return
        slot = self._slots[0]
        arguments = *slot.position, *task.given, begin, end, slot.plain, self._calls.table, *task.wanted
        kernels.evaluate(*arguments)

    def _submit(self, queue: EvaluationQueue, task: _Task, begin: int, end: int) -> None:
        """Evaluate by the queue, with several batches in flight."""
        while len(self._slots) < self._search.settings.batches_in_flight:
            self._slots.append(_Slot(self._search))
        idle, self._slots = self._slots, []  # after an error batches may still be in flight: they are not used again
        flying: deque[tuple[_Slot, int, SimpleQueue[Job]]] = deque()
        while begin < end or flying:
            if begin < end and idle:
                slot, done = idle.pop(), SimpleQueue[Job]()
                count = min(len(slot.batch.node), end - begin)
                arguments = *slot.position, *task.given, begin, count, slot.plain
                kernels.fill(*arguments)
                queue.submit(Job(slot.batch, count, done))
                flying.append((slot, begin, done))
                begin += count
                continue
            slot, first, done = flying.popleft()
            job = done.get()
            if job.error is not None:
                raise job.error
            kernels.read(without_positions(job.batch), job.rows, first, *task.wanted)
            # A device that hangs keeps the batch: the queue took a copy of it.
            idle.append(slot if job.batch is slot.batch else _Slot(self._search))
        self._slots = idle

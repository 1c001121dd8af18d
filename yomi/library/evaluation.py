"""Evaluates many positions with a network, without search."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from queue import Empty, SimpleQueue
from typing import Any

import numpy as np
import numpy.typing as npt

from yomi.engine.color import BLACK, WHITE
from yomi.engine.evaluators.base import EvaluatorError
from yomi.engine.evaluators.queue import EvaluationQueue, Job
from yomi.engine.search.base import PositionSearch
from yomi.engine.search.types import SearchableGame
from yomi.library.arguments import side as checked_side
from yomi.native.bound_kernels import Calls
from yomi.native.game_calls import BoundBoard
from yomi.native.spec import Inputs
from yomi.native.tree import evaluation as kernels
from yomi.native.tree.buffers import make_batch, make_board, without_positions

FloatArray = npt.NDArray[np.float32]

MIN_ROWS = 64
"""Positions in a share of the work, at least. Threads take shares until none is left, so that all end together."""
SHARES = 8
"""Shares for each thread, if there are enough positions."""
POSITION_ROWS = 32
"""Minimum rows of a batch for networks that read positions. Calls with fewer rows are slower."""


@dataclass(frozen=True, eq=False)
class Evaluation:
    """A network's evaluations of B positions. Row i belongs to position i."""

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
        checked_side("side", side)
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
    """Evaluates positions with the network of a search, with the search's number of threads and rows per batch."""

    def __init__(self, search: PositionSearch) -> None:
        self.search = search
        self._lanes = [_Lane(search) for _ in range(search.settings.workers)]

    def evaluate(self, games: Sequence[SearchableGame]) -> Evaluation:
        """Return the network's evaluations of positions, all on boards of one size.

        Raises:
            EvaluatorError: the network failed.
        """
        spec, count = self.search.spec, len(games)
        side, policy = np.zeros(count, np.uint8), np.zeros((count, spec.policy_size), np.float32)
        values, ownership = np.zeros((count, 2), np.float32), np.zeros((count, spec.area), np.float32)

        def evaluate(lane: _Lane, share: slice) -> None:
            lane.evaluate(games[share], side[share], (policy[share], values[share], ownership[share]))

        self._in_shares(evaluate, count)
        if not np.isfinite(values).all():
            name = self.search.queue.evaluator.description
            raise EvaluatorError(f"{name}: a value or logit that is not finite found, expected numbers")
        return Evaluation(
            side,
            policy,
            values[:, 0].copy(),
            values[:, 1].copy() if spec.area else None,
            ownership.reshape(-1, *spec.planes_shape[1:]) if spec.area else None,
        )

    def _in_shares(self, evaluate: Callable[[_Lane, slice], None], count: int) -> None:
        """Divide `count` positions into shares, and make each lane evaluate shares until none is left."""
        step = max(MIN_ROWS, -(-count // (SHARES * len(self._lanes))))
        shares: SimpleQueue[slice] = SimpleQueue()
        for begin in range(0, count, step):
            shares.put(slice(begin, begin + step))
        errors: list[BaseException] = []

        def work(lane: _Lane) -> None:
            try:
                while not shares.empty() and not errors:
                    evaluate(lane, shares.get_nowait())
            except Empty:
                pass  # another thread took the last share
            except BaseException as error:  # raised in the calling thread
                errors.append(error)

        if shares.qsize() <= 1 or len(self._lanes) == 1:
            work(self._lanes[0])  # a thread takes longer to start than a small network for a position
        else:
            threads = [threading.Thread(target=work, args=(lane,), daemon=True) for lane in self._lanes]
            for thread in threads:
                thread.start()
            try:
                for thread in threads:
                    thread.join()
            except BaseException as error:  # Ctrl-C: the threads end after their share, and leave the buffers then
                errors.append(error)
                for thread in threads:
                    thread.join()
        if errors:
            raise errors[0]


class _Slot:
    """Memory for a batch of positions, and the game's kernels that write positions into it."""

    def __init__(self, search: PositionSearch) -> None:
        spec = search.spec
        root = spec.positions(1)
        bound = BoundBoard(make_board(spec, root))
        inputs = search.queue.evaluator.inputs
        # Networks that read positions compute each row by itself. A search takes few rows, for the sake of the tree.
        rows = max(search.batch_rows, POSITION_ROWS) if inputs & Inputs.POSITIONS else search.batch_rows
        self.batch = make_batch(spec, rows, inputs)
        calls, self._kept = bound.with_batch(self.batch)
        board = bound.board
        self.position = (
            *(calls.board, calls.rows, root.view(np.uint8), board.history, board.facts, board.moves, board.indices),
        )
        self.plain = without_positions(self.batch)


class _Lane:
    """The batch and buffers of one thread."""

    def __init__(self, search: PositionSearch) -> None:
        self._search = search
        self._slots: list[_Slot] = []
        self._calls: Calls | None = None

    def evaluate(self, games: Sequence[SearchableGame], side: npt.NDArray[np.uint8], wanted: tuple[Any, ...]) -> None:
        """Evaluate positions, by kernels alone if the evaluator consists of kernels.

        Args:
            games: the positions.
            side: receives the sides to move.
            wanted: arrays for the results: `policy`, `values` and `ownership` of the kernel `read`.
        """
        records = np.frombuffer(_joined([game.position for game in games]), self._search.spec.position_dtype)
        for name, value in self._search.spec.position_flags:
            records[name] = value
        side[:] = records["side_to_move"]
        lengths = records["history_length"].tolist()
        histories = [game.history[:length] for game, length in zip(games, lengths, strict=True)]
        given = (
            records.view(np.uint8).reshape(len(games), records.itemsize),
            np.frombuffer(_joined(histories), np.uint64),
            np.cumsum([0, *lengths]),
        )
        queue = self._search.queue
        if not self._slots:
            self._slots.append(_Slot(self._search))
            self._calls = queue.bind(self._slots[0].batch)
        if self._calls is None:
            self._submit(queue, given, wanted)
            return
        slot = self._slots[0]
        arguments = *slot.position, *given, 0, len(games), slot.plain, self._calls.table, *wanted
        kernels.evaluate(*arguments)

    def _submit(self, queue: EvaluationQueue, given: tuple[Any, ...], wanted: tuple[Any, ...]) -> None:
        """Evaluate positions through the queue, with several batches in flight."""
        while len(self._slots) < self._search.settings.batches_in_flight:
            self._slots.append(_Slot(self._search))
        idle, self._slots = self._slots, []  # after an error batches may still be in flight: they are not used again
        flying: deque[tuple[_Slot, int, SimpleQueue[Job]]] = deque()
        begin, end = 0, len(given[0])
        while begin < end or flying:
            if begin < end and idle:
                slot, done = idle.pop(), SimpleQueue[Job]()
                count = min(len(slot.batch.node), end - begin)
                arguments = *slot.position, *given, begin, count, slot.plain
                kernels.fill(*arguments)
                queue.submit(Job(slot.batch, count, done))
                flying.append((slot, begin, done))
                begin += count
                continue
            slot, first, done = flying.popleft()
            job = done.get()
            if job.error is not None:
                raise job.error
            kernels.read(without_positions(job.batch), job.rows, first, *wanted)
            # A device that hangs keeps the batch: the queue took a copy of it.
            idle.append(slot if job.batch is slot.batch else _Slot(self._search))
        self._slots = idle


def _joined(parts: Sequence[Any]) -> bytearray:
    # Arrays and records are buffers. Joining them is ten times as fast as to assign each to an element of an array.
    return bytearray().join(parts)

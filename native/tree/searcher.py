"""One search thread's hold on a tree: its board and batch, bound to the kernels of the search."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from yomi.native.bits import U
from yomi.native.calls import NO_CALLS, Calls, ask, call_all, store
from yomi.native.game_calls import BoundBoard
from yomi.native.jit import inlined, kernel
from yomi.native.tree.arrays import Batch, Tree, Worker
from yomi.native.tree.buffers import without_positions
from yomi.native.tree.search import ARGUMENTS, are_numbers, gather, good_rows, scatter

TASK = 5
"""Integers of a task: addresses of the arguments, and of gather, scatter, good_rows and are_numbers."""


@inlined
def _gather(task, row, end):  # type: ignore[no-untyped-def]
    return ask(task[U(1)], task[U(0)], row, end)


@inlined
def _scatter(task, row, end):  # type: ignore[no-untyped-def]
    ask(task[U(2)], task[U(0)], row, end)


@inlined
def _good_rows(task):  # type: ignore[no-untyped-def]
    return ask(task[U(3)], task[U(0)], 0, 0)


@inlined
def _are_numbers(task, rows):  # type: ignore[no-untyped-def]
    return ask(task[U(4)], task[U(0)], rows, 0) != 0


@kernel
def advance(task, used, most, calls, rounds):  # type: ignore[no-untyped-def]
    """Put an evaluated batch into the tree, then fill it again; return its rows in use, 0 if nothing was to do.

    Args:
        task: int64[TASK], a Searcher's.
        used: rows of the batch that were evaluated; 0 if there is nothing to put into the tree.
        most: rows to fill at most.
        calls: the table of the Calls that evaluate the batch, so that the rows returned are evaluated; or an empty one.
            If they write something that is not finite, the rows come back negative, at once.
        rounds: how often to do all of this, if there are calls.
    """
    while True:
        if used > 0:
            _scatter(task, 0, used)
        used = _gather(task, 0, min(most, _good_rows(task)))
        if used == 0 or calls.shape[0] == 0:
            return used
        call_all(calls, used)
        if not _are_numbers(task, used):
            return -used
        rounds -= 1
        if rounds <= 0:
            return used


@kernel
def advance_all(tasks, owners, used, leaf_rows, wanted, idle, calls, rounds):  # type: ignore[no-untyped-def]
    """Put an evaluated batch into the trees that its rows come from, then fill it again; return its rows in use.

    Args:
        tasks: int64[trees, TASK], of Searchers that share one batch of at least one leaf's rows for each tree.
        owners: int64[rows]: the tree of each row; written here.
        used: rows of the batch that were evaluated.
        leaf_rows: rows of a leaf.
        wanted: bool[trees]: the trees that are searched.
        idle: bool[trees]: set for those of them that had no leaf to evaluate: their search is over, or has no memory.
        calls: as in advance.
        rounds: how often to do all of this, if there are calls and no tree becomes idle.
    """
    while True:
        row = np.int64(0)
        while row < used:
            number = owners[U(row)]
            end = row + 1
            while end < used and owners[U(end)] == number:
                end += 1
            _scatter(tasks[U(number)], row, end)
            row = end
        row = np.int64(0)
        has_idle = False
        for number in range(U(wanted.size)):
            idle[number] = False
            if not wanted[number]:
                continue
            end = _gather(tasks[number], row, row + leaf_rows)
            for i in range(row, end):
                owners[U(i)] = number
            if end == row:
                idle[number] = True
                has_idle = True
            row = end
        used = row
        if used == 0 or calls.shape[0] == 0:
            return used
        call_all(calls, used)
        if not _are_numbers(tasks[U(0)], used):
            return -used
        rounds -= 1
        if rounds <= 0 or has_idle:
            return used


class Searcher:
    """A tree, a worker, its board and a batch, bound to the kernels that search with them. One thread uses it."""

    def __init__(self, tree: Tree, worker: Worker, board: BoundBoard, batch: Batch) -> None:
        """Bind them; kernels that are not compiled yet are compiled now."""
        self.batch = batch
        calls, kept = board.with_batch(batch)
        stored = store(ARGUMENTS, tree, worker, without_positions(batch), calls)
        self._kept = (board, kept, stored)
        entries = (gather, scatter, good_rows, are_numbers)
        self.task: npt.NDArray[np.int64] = np.array([stored.address, *(entry.address for entry in entries)], np.int64)

    def advance(self, used: int, calls: Calls = NO_CALLS, rounds: int = 1, most: int | None = None) -> int:
        """Put evaluated rows into the tree and gather the next; see the kernel. `most` is all of the batch's rows."""
        return int(advance(self.task, used, len(self.batch.node) if most is None else most, calls.table, rounds))

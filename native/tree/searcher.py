"""A search thread's tree, board and batch, bound to the kernels of the search."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from yomi.native.bits import U
from yomi.native.bound_kernels import NO_CALLS, Calls, ask, call_all, store
from yomi.native.game_calls import BoundBoard
from yomi.native.jit import inlined, kernel
from yomi.native.tree.arrays import Batch, Tree, Worker
from yomi.native.tree.buffers import without_positions
from yomi.native.tree.search import ARGUMENTS, are_numbers, gather, good_rows, scatter

# integers of a task: addresses of the arguments, and of gather, scatter, good_rows and are_numbers
TASK = 5


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
    """Back up an evaluated batch, and fill it with new leaves. Return the number of rows; 0 if there are no leaves.

    Args:
        task: int64[TASK] of a Searcher.
        used: evaluated rows of the batch; 0 for none.
        most: maximum number of rows to fill.
        calls: the table of Calls that evaluate the batch, or an empty table. With calls, rows are evaluated
            before the return. A value that is not finite ends the loop: the number of rows is returned, negative, and
            nothing is backed up.
        rounds: maximum number of batches that `calls` evaluate before the return.
    """
    while True:
        if used > 0:
            _scatter(task, 0, used)
        used = _gather(task, 0, min(most, _good_rows(task)))
        if used == 0 or calls.shape[0] == 0:
            return used
        call_all(calls, used)
        if not _are_numbers(task, used):
            # Nothing of a faulty evaluation enters the tree. The caller reports it.
            return -used
        rounds -= 1
        if rounds <= 0:
            return used


@kernel
def advance_all(tasks, owners, used, leaf_rows, wanted, idle, calls, rounds):  # type: ignore[no-untyped-def]
    """Put an evaluated batch into the trees of its rows and fill it again; return its number of rows.

    Args:
        tasks: int64[trees, TASK] of Searchers that share one batch with rows for at least one leaf per tree.
        owners: int64[rows]: the tree of each row; written here.
        used: evaluated rows of the batch.
        leaf_rows: rows of a leaf.
        wanted: bool[trees]: the trees to search.
        idle: bool[trees]: written; set for searched trees that have no leaf to evaluate: the search is over, or memory
            is used up.
        calls: see advance.
        rounds: maximum number of repetitions with calls; ends when a tree becomes idle.
    """
    while True:
        # Rows of one tree are adjacent.
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
        # Python must decide what an idle tree does next.
        if rounds <= 0 or has_idle:
            return used


class Searcher:
    """A tree, a worker, its board and a batch, bound to the kernels of the search, for one thread."""

    def __init__(self, tree: Tree, worker: Worker, board: BoundBoard, batch: Batch) -> None:
        """Bind the arguments; compile kernels that are not in the cache."""
        self.batch = batch
        calls, kept = board.with_batch(batch)
        stored = store(ARGUMENTS, tree, worker, without_positions(batch), calls)
        self._kept = (board, kept, stored)
        entries = (gather, scatter, good_rows, are_numbers)
        self.task: npt.NDArray[np.int64] = np.array([stored.address, *(entry.address for entry in entries)], np.int64)

    def advance(self, used: int, calls: Calls = NO_CALLS, rounds: int = 1, most: int | None = None) -> int:
        """Put evaluated rows into the tree and gather the next; see the kernel. By default `most` is all rows of the
        batch.
        """
        return int(advance(self.task, used, len(self.batch.node) if most is None else most, calls.table, rounds))

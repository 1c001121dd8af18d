"""Many small trees searched side by side, whose leaves share batches: for games that are played at the same time.

A forest is a `Tree` whose arrays have one axis more, the first: the number of the tree. What works on a tree works on
`tree_of(forest, number)`.
"""

from typing import TYPE_CHECKING

import numpy as np

from native.bits import U
from native.calls import call_all
from native.jit import inlined, kernel
from native.tree.arrays import Tree, Worker, bytes_a_node, make_tree
from native.tree.search import are_numbers, gather, scatter

if TYPE_CHECKING:
    from native.spec import GameSpec


def make_forest(spec: "GameSpec", count: int, playouts: int) -> Tree:
    """Return `count` empty trees without a cache, each with room for `playouts` playouts."""
    one = make_tree(int((playouts + 1) * bytes_a_node(spec.mean_moves)), spec.mean_moves, 0, spec.policy_size)
    arrays = {name: np.repeat(array[None], count, 0) for name, array in one._asdict().items()}
    arrays["locks"] = arrays["nodes"].view(np.uint8)
    return Tree(**arrays)


@inlined
def tree_of(forest, number):  # type: ignore[no-untyped-def]
    """Return one tree of a forest; its arrays are the forest's."""
    i = U(number)
    return Tree(
        forest.nodes[i],
        forest.locks[i],
        forest.edges[i],
        forest.stats[i],
        forest.counters[i],
        forest.parameters[i],
        forest.banned[i],
        forest.shared[i],
        forest.biases[i],
        forest.cache_keys[i],
        forest.cache_locks[i],
        forest.cache_values[i],
        forest.cache_priors[i],
        forest.cache_moves[i],
    )


@inlined
def _of_tree(worker, history, rng):  # type: ignore[no-untyped-def]
    return Worker(
        worker.positions,
        history,
        worker.moves,
        worker.priors,
        worker.weights,
        worker.indices,
        worker.values,
        rng,
        worker.scratch,
        worker.ownership,
        worker.groups,
        worker.line,
        worker.path,
        worker.slots,
    )


@kernel
def advance_all(forest, roots, histories, rngs, worker, batch, owners, used, wanted, idle, calls, rounds):  # type: ignore[no-untyped-def]
    """Put an evaluated batch into the trees it came from, then fill it anew; return its rows in use.

    Args:
        forest: the trees.
        roots: records[trees], their roots' positions.
        histories: uint64[trees, H]: what came before these; what lies behind is overwritten.
        rngs: uint64[trees, 1]: states of what draws the symmetries of each, so that no tree depends on the others.
        worker: the calling thread's.
        batch: of at least one leaf's rows for each tree.
        owners: int64[rows]: the tree of each row; written here.
        used: rows of the batch that were evaluated.
        wanted: bool[trees]: those that are searched.
        idle: bool[trees]: set for those that are and had no leaf to evaluate: their search is over, or has no memory.
        calls: as in native.tree.search.advance.
        rounds: how often to do all of this, if there are calls and no tree becomes idle.
    """
    while True:
        row = np.int64(0)
        while row < used:
            number = owners[U(row)]
            end = row + 1
            while end < used and owners[U(end)] == number:
                end += 1
            own = _of_tree(worker, histories[U(number)], rngs[U(number)])
            scatter(tree_of(forest, number), roots[U(number)], own, batch, row, end)
            row = end
        row = np.int64(0)
        has_idle = False
        for number in range(wanted.size):
            idle[U(number)] = False
            if not wanted[U(number)]:
                continue
            tree = tree_of(forest, number)
            own = _of_tree(worker, histories[U(number)], rngs[U(number)])
            end = gather(tree, roots[U(number)], own, batch, row, row + tree.parameters[0].rows_per_leaf)
            for i in range(row, end):
                owners[U(i)] = number
            if end == row:
                idle[U(number)] = True
                has_idle = True
            row = end
        used = row
        if used == 0 or calls.shape[0] == 0:
            return used
        call_all(calls, used)
        if not are_numbers(batch, used):
            return -used
        rounds -= 1
        if rounds <= 0 or has_idle:
            return used

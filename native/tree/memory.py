"""Allocation in a tree's pools, and compaction: dropping what a new root or a memory bound leaves behind.

Nodes and edges are taken from the top of their pools with one atomic addition. Blocks of statistics grow by doubling
and go back to a free list by size. `compact` slides everything that stays to the bottom of its pool, in place, so that
there is no other collector and no fragmentation; it runs while no search thread does.
"""

from typing import TYPE_CHECKING

import numpy as np

from native.bits import U, atomic_add, atomic_exchange, atomic_store, cpu_pause
from native.jit import inlined, kernel
from native.tree.arrays import (
    EDGE_TOP,
    FREE_STATS,
    FULL,
    MAX_DEPTH,
    NODE_TOP,
    NONE,
    PENDING,
    ROOT,
    STATS_CLASSES,
    STATS_TOP,
    UNTOUCHED,
)

if TYPE_CHECKING:
    from native.tree.arrays import Tree


@kernel
def lock(tree, node):  # type: ignore[no-untyped-def]
    """Take the lock of `node`, spinning."""
    while atomic_exchange(tree.locks, U(node), 1) != 0:
        cpu_pause()


@kernel
def unlock(tree, node):  # type: ignore[no-untyped-def]
    """Release the lock of `node`."""
    atomic_store(tree.locks, U(node), 0)


@kernel
def new_node(tree, parent, slot):  # type: ignore[no-untyped-def]
    """Return a new pending node, or NONE (and set FULL) where the pool is used up."""
    index = atomic_add(tree.counters, U(NODE_TOP), 1)
    if index >= tree.nodes.size:
        atomic_add(tree.counters, U(NODE_TOP), -1)
        tree.counters[FULL] = 1
        return np.int64(NONE)
    node = tree.nodes[U(index)]
    node.utility_sum = 0.0
    node.utility_variance = 0.0
    node.value_sum = 0.0
    node.score_sum = 0.0
    node.score_variance = 0.0
    node.parent = parent
    node.parent_slot = slot
    node.edges = NONE
    node.stats = NONE
    node.visits = 0
    node.tried_prior = 0.0
    node.own_utility = 0.0
    node.edge_count = 0
    node.tried = 0
    node.state = PENDING
    node.stats_class = 0
    tree.locks[U(index)] = 0
    return np.int64(index)


@kernel
def new_edges(tree, count):  # type: ignore[no-untyped-def]
    """Return the first of `count` adjacent edges, or NONE (and set FULL)."""
    first = atomic_add(tree.counters, U(EDGE_TOP), np.int64(count))
    if first + count > tree.edges.size:
        atomic_add(tree.counters, U(EDGE_TOP), -np.int64(count))
        tree.counters[FULL] = 1
        return np.int64(NONE)
    return np.int64(first)


@kernel
def _new_stats(tree, size_class):  # type: ignore[no-untyped-def]
    """Return a block of 2 ** (size_class - 1) statistics records, or NONE (and set FULL)."""
    guard = tree.nodes.size
    lock(tree, guard)
    head = tree.counters[FREE_STATS + size_class]
    if head != NONE:
        tree.counters[FREE_STATS + size_class] = np.int64(tree.stats[U(head)].child)
        unlock(tree, guard)
        return head
    count = np.int64(1) << np.int64(size_class - 1)
    first = tree.counters[STATS_TOP]
    if first + count > tree.stats.size:
        tree.counters[FULL] = 1
        unlock(tree, guard)
        return np.int64(NONE)
    tree.counters[STATS_TOP] = first + count
    unlock(tree, guard)
    return first


@kernel
def _free_stats(tree, block, size_class):  # type: ignore[no-untyped-def]
    guard = tree.nodes.size
    lock(tree, guard)
    tree.stats[U(block)].child = np.uint32(tree.counters[FREE_STATS + size_class])
    tree.counters[FREE_STATS + size_class] = np.int64(block)
    unlock(tree, guard)


@inlined
def _copy_stat(new, old):  # type: ignore[no-untyped-def]
    """Copy one statistics record."""
    new.child = old.child
    new.visits = old.visits
    new.utility = old.utility
    new.in_flight = old.in_flight


@kernel
def add_stats(tree, node):  # type: ignore[no-untyped-def]
    """Make room for one more statistics record of the locked `node`; False (and FULL set) where there is none."""
    size_class = np.int64(node.stats_class)
    if size_class > 0 and np.int64(node.tried) < (np.int64(1) << (size_class - 1)):
        return True
    block = _new_stats(tree, size_class + 1)
    if block == NONE:
        return False
    for i in range(U(node.tried)):
        _copy_stat(tree.stats[U(block) + i], tree.stats[U(node.stats) + i])
    if size_class > 0:
        _free_stats(tree, node.stats, size_class)
    node.stats = block
    node.stats_class = size_class + 1
    return True


@kernel
def clear_tree(tree):  # type: ignore[no-untyped-def]
    """Forget everything but the parameters and the evaluation cache; the root is a new pending node."""
    tree.counters[NODE_TOP] = 0
    tree.counters[EDGE_TOP] = 0
    tree.counters[STATS_TOP] = 0
    tree.counters[FULL] = 0
    tree.counters[MAX_DEPTH] = 0
    for i in range(STATS_CLASSES):
        tree.counters[FREE_STATS + i] = NONE
    tree.counters[ROOT] = new_node(tree, NONE, 0)
    tree.nodes[U(tree.counters[ROOT])].state = UNTOUCHED


def compact(tree: "Tree", root: int, min_visits: int) -> int:
    """Keep the subtree of `root` without the nodes that have fewer than `min_visits` visits; return the nodes kept.

    An edge whose child is dropped keeps its visits and its utility. No search thread may run.
    """
    top = int(tree.counters[NODE_TOP])
    forward = np.full(top, NONE, np.uint32)
    live = np.empty(top, np.uint32)
    live = live[: _mark_live(tree, root, min_visits, forward, live)]
    # numpy sorts: numba would compile a sort of its own for two seconds
    _slide_edges(tree, live[np.argsort(tree.nodes["edges"][live])])
    _slide_stats(tree, live[np.argsort(tree.nodes["stats"][live])])
    _slide_nodes(tree, forward, root)
    tree.counters[FULL] = 0
    return len(live)


@kernel
def _mark_live(tree, root, min_visits, forward, queue):  # type: ignore[no-untyped-def]
    """Set forward[i] to 0 for each node i that stays, list them in `queue` and return their number."""
    queue[0] = root
    forward[U(root)] = 0
    tail = U(1)
    head = U(0)
    while head < tail:
        node = tree.nodes[U(queue[head])]
        head += U(1)
        for i in range(U(node.tried)):
            stat = tree.stats[U(node.stats) + i]
            if stat.child == NONE:
                continue
            child = tree.nodes[U(stat.child)]
            if child.visits < min_visits or child.state == PENDING:
                stat.child = NONE
            else:
                forward[U(stat.child)] = 0
                queue[tail] = stat.child
                tail += U(1)
    return np.int64(tail)


@kernel
def _slide_edges(tree, live):  # type: ignore[no-untyped-def]
    """Move the edges of the nodes `live`, sorted by where these stand, to the bottom of their pool."""
    top = U(0)
    for k in range(U(live.size)):
        node = tree.nodes[U(live[k])]
        if node.edges != NONE:
            source = U(node.edges)
            for i in range(U(node.edge_count)):
                tree.edges[top + i] = tree.edges[source + i]
            node.edges = top
            top += U(node.edge_count)
    tree.counters[EDGE_TOP] = np.int64(top)


@kernel
def _slide_stats(tree, live):  # type: ignore[no-untyped-def]
    """Move the statistics of the nodes `live`, sorted by where these stand, to the bottom of their pool."""
    top = U(0)
    for k in range(U(live.size)):
        node = tree.nodes[U(live[k])]
        if node.stats_class > 0:
            source = U(node.stats)
            for i in range(U(node.tried)):
                _copy_stat(tree.stats[top + i], tree.stats[source + i])
            node.stats = top
            top += U(1) << U(node.stats_class - 1)
    tree.counters[STATS_TOP] = np.int64(top)
    for i in range(STATS_CLASSES):
        tree.counters[FREE_STATS + i] = NONE


@kernel
def _slide_nodes(tree, forward, root):  # type: ignore[no-untyped-def]
    """Move the nodes marked in `forward` to the bottom of the pool and correct every reference to them."""
    top = U(0)
    for i in range(U(forward.size)):
        if forward[i] != NONE:
            forward[i] = top
            top += U(1)
    for i in range(U(forward.size)):
        if forward[i] == NONE:
            continue
        old = tree.nodes[i]
        for k in range(U(old.tried)):
            stat = tree.stats[U(old.stats) + k]
            if stat.child != NONE:
                stat.child = forward[U(stat.child)]
        new = tree.nodes[U(forward[i])]
        parent = old.parent
        new.parent = NONE if i == U(root) or parent == NONE else forward[U(parent)]
        new.utility_sum = old.utility_sum
        new.utility_variance = old.utility_variance
        new.value_sum = old.value_sum
        new.score_sum = old.score_sum
        new.score_variance = old.score_variance
        new.edges = old.edges
        new.stats = old.stats
        new.visits = old.visits
        new.tried_prior = old.tried_prior
        new.own_utility = old.own_utility
        new.parent_slot = old.parent_slot
        new.edge_count = old.edge_count
        new.tried = old.tried
        new.state = old.state
        new.stats_class = old.stats_class
    tree.counters[NODE_TOP] = np.int64(top)
    tree.counters[ROOT] = np.int64(forward[U(root)])

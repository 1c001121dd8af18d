"""Allocates nodes, edges and statistics in a tree's pools, and compacts the pools."""

from typing import TYPE_CHECKING

import numpy as np

from yomi.native.bits import U, atomic_compare_exchange, free_lock, lowest_bit, take_lock
from yomi.native.jit import inlined, inlined_early, kernel
from yomi.native.tree.arrays import (
    LOCK_BYTE,
    NODE_BYTES,
    NONE,
    PENDING,
    STATS_CLASSES,
    TERMINAL,
    UNTOUCHED,
)
from yomi.native.tree.bias import forget
from yomi.native.tree.child_weights import add_edge
from yomi.native.tree.transpositions import clear_transpositions, insert_all

if TYPE_CHECKING:
    from yomi.native.tree.arrays import Tree

ALMOST_WON = 0.995  # mean value of a finished game that is won


# Nodes and edges come from the top of their pools by one atomic operation. Blocks of statistics have 2 ** c records;
# they double when full and return to a free list per size. `compact` moves all remaining records to the bottom of their
# pool, in place, while no search thread runs.


@kernel
def lock(tree, node):  # type: ignore[no-untyped-def]
    take_lock(tree.locks, U(node) * U(NODE_BYTES) + U(LOCK_BYTE))


@kernel
def unlock(tree, node):  # type: ignore[no-untyped-def]
    free_lock(tree.locks, U(node) * U(NODE_BYTES) + U(LOCK_BYTE))


@inlined_early
def _take_from_top(tree, pool, count, capacity):  # type: ignore[no-untyped-def]
    """Return the first of `count` adjacent places of a pool, or NONE (and set `full`) if fewer are left.

    Args:
        tree: the Tree.
        pool: name of the counter that is the pool's top.
        count: number of places.
        capacity: size of the pool.
    """
    # Compare and exchange: adding first and returning the excess could return another thread's places.
    counters = tree.counters[0]
    top = np.int64(counters[pool])
    while top + count <= capacity:
        seen = atomic_compare_exchange(counters, pool, top, top + count)
        if seen == top:
            return top
        top = seen
    counters.full = 1
    return np.int64(NONE)


@kernel
def new_node(tree):  # type: ignore[no-untyped-def]
    """Return a new pending node, or NONE (and set `full`) if the pool is used up."""
    index = _take_from_top(tree, "node_top", np.int64(1), np.int64(tree.nodes.size))
    if index == NONE:
        return index
    node = tree.nodes[U(index)]
    node.weight_sum = 0.0
    node.utility_sum = 0.0
    node.value_sum = 0.0
    node.score_sum = 0.0
    node.weight_squares = 0.0
    node.utility_variance = 0.0
    node.score_variance = 0.0
    node.key = 0
    node.edges = NONE
    node.stats = NONE
    node.visits = 0
    node.tried_prior = 0.0
    node.own_utility = 0.0
    node.own_weight = 0.0
    node.own_bias = 0.0
    node.bucket = NONE
    node.bucket_sum = 0.0
    node.bucket_weight = 0.0
    node.next = 0
    node.weigh_at = 0
    node.proof = 0
    node.edge_count = 0
    node.legal = 0
    node.tried = 0
    node.state = PENDING
    node.lock = 0
    return index


@kernel
def new_edges(tree, count):  # type: ignore[no-untyped-def]
    """Return the first of `count` adjacent edges, or NONE (and set `full`)."""
    return _take_from_top(tree, "edge_top", np.int64(count), np.int64(tree.edges.size))


@kernel
def _new_stats(tree, size_class):  # type: ignore[no-untyped-def]
    """Return the first record of a block of 2 ** size_class statistics records, or NONE (and set `full`)."""
    counters = tree.counters[0]
    take_lock(counters, "stats_lock")
    block = counters.free_stats[U(size_class)]
    if block != NONE:
        # Free blocks of a size form a list. The first record's `child` is the next block.
        counters.free_stats[U(size_class)] = np.int64(tree.stats[U(block)].child)
    else:
        count = np.int64(1) << np.int64(size_class)
        if counters.stats_top + count <= tree.stats.size:
            block = counters.stats_top
            counters.stats_top = block + count
        else:
            counters.full = 1
    free_lock(counters, "stats_lock")
    return block


@kernel
def _free_stats(tree, block, size_class):  # type: ignore[no-untyped-def]
    counters = tree.counters[0]
    take_lock(counters, "stats_lock")
    tree.stats[U(block)].child = np.uint32(counters.free_stats[U(size_class)])
    counters.free_stats[U(size_class)] = np.int64(block)
    free_lock(counters, "stats_lock")


@inlined
def _copy_stat(new, old):  # type: ignore[no-untyped-def]
    new.child = old.child
    new.visits = old.visits
    new.utility = old.utility
    new.value = old.value
    new.score = old.score
    new.weight = old.weight
    new.share = old.share
    new.in_flight = old.in_flight


@kernel
def add_stats(tree, node):  # type: ignore[no-untyped-def]
    """Make room for one more statistics record of the locked `node`; False (and `full` set) if there is none."""
    tried = U(node.tried)
    if tried & (tried - U(1)) != U(0):  # not a power of two: the block has room
        return True
    size_class = np.int64(lowest_bit(tried)) if tried > U(0) else np.int64(-1)  # of the full block
    block = _new_stats(tree, size_class + 1)
    if block == NONE:
        return False
    # The block doubles.
    for i in range(tried):
        _copy_stat(tree.stats[U(block) + i], tree.stats[U(node.stats) + i])
    if tried > U(0):
        _free_stats(tree, node.stats, size_class)
    node.stats = block
    return True


@kernel
def clear_tree(tree):  # type: ignore[no-untyped-def]
    """Reset the tree to a new pending root; keep parameters and evaluation cache."""
    counters = tree.counters[0]
    clear_transpositions(tree)
    counters.node_top = 0
    counters.edge_top = 0
    counters.stats_top = 0
    counters.full = 0
    counters.broken = 0
    counters.max_depth = 0
    for i in range(STATS_CLASSES):
        counters.free_stats[i] = NONE
    for i in range(U(tree.biases.size)):
        bucket = tree.biases[i]
        if bucket.weight != 0.0 or bucket.sum != 0.0:  # a page that was never written takes no memory
            bucket.sum = 0.0
            bucket.weight = 0.0
    counters.root = new_node(tree)
    tree.nodes[U(counters.root)].state = UNTOUCHED


def compact(tree: "Tree", root: int, min_visits: int, *, drop_draws: bool = False) -> int:
    """Keep the nodes below `root` that have at least `min_visits` visits; return the number of nodes kept.

    `drop_draws`: forget finished games that are neither won nor lost, with their visits.
    """
    # An edge keeps its visits and means when its child is dropped otherwise. No search thread may run.
    top = int(tree.counters[0].node_top)
    forward = np.full(top, NONE, np.uint32)
    live = np.empty(top, np.uint32)
    # Slides go from low to high places: nothing is overwritten before it has moved.
    live = live[: _mark_live(tree, root, min_visits, drop_draws, forward, live)]
    # numpy sorts: numba would spend two seconds on compiling its own sort
    _slide_edges(tree, live[np.argsort(tree.nodes["edges"][live])])
    _slide_stats(tree, live[np.argsort(tree.nodes["stats"][live])])
    _slide_nodes(tree, forward, root)
    tree.counters[0].full = 0
    return len(live)


@kernel
def _mark_live(tree, root, min_visits, drop_draws, forward, queue):  # type: ignore[no-untyped-def]
    """Set forward[i] to 0 for each node i to keep, list these nodes in `queue` and return their number."""
    # Breadth first. A node with several parents is listed once.
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
            if drop_draws and child.state == TERMINAL and abs(child.value_sum) < ALMOST_WON * child.weight_sum:
                add_edge(node, stat, -1.0)
                node.visits -= stat.visits
                stat.visits = 0
                stat.weight = 0.0
                stat.child = NONE
            elif child.visits < min_visits or child.state == PENDING:
                stat.child = NONE
            elif forward[U(stat.child)] == NONE:
                forward[U(stat.child)] = 0
                queue[tail] = stat.child
                tail += U(1)
    return np.int64(tail)


@kernel
def _slide_edges(tree, live):  # type: ignore[no-untyped-def]
    """Move the edges of the nodes `live`, sorted by the place of their edges, to the bottom of the pool."""
    top = U(0)
    for k in range(U(live.size)):
        node = tree.nodes[U(live[k])]
        if node.edges != NONE:
            source = U(node.edges)
            for i in range(U(node.edge_count)):
                tree.edges[top + i] = tree.edges[source + i]
            node.edges = top
            top += U(node.edge_count)
    tree.counters[0].edge_top = np.int64(top)


@kernel
def _slide_stats(tree, live):  # type: ignore[no-untyped-def]
    """Move the statistics of the nodes `live`, sorted by the place of their statistics, to the bottom of the pool."""
    top = U(0)
    for k in range(U(live.size)):
        node = tree.nodes[U(live[k])]
        tried = U(node.tried)
        if tried > U(0):
            source = U(node.stats)
            for i in range(tried):
                _copy_stat(tree.stats[top + i], tree.stats[source + i])
            node.stats = top
            # Blocks keep sizes of powers of two, as add_stats expects.
            room = U(1)
            while room < tried:
                room += room
            top += room
    counters = tree.counters[0]
    counters.stats_top = np.int64(top)
    for i in range(STATS_CLASSES):
        counters.free_stats[i] = NONE


@kernel
def _slide_nodes(tree, forward, root):  # type: ignore[no-untyped-def]
    """Move the nodes marked in `forward` to the bottom of the pool and update all references to them."""
    # The hash table contains old indexes.
    clear_transpositions(tree)
    top = U(0)
    for i in range(U(forward.size)):
        if forward[i] != NONE:
            # Nodes keep their order, so each moves down or stays.
            forward[i] = top
            top += U(1)
    for i in range(U(forward.size)):
        if forward[i] == NONE:
            # A dropped node leaves a part of its bias.
            forget(tree, tree.nodes[i])
            continue
        old = tree.nodes[i]
        for k in range(U(old.tried)):
            stat = tree.stats[U(old.stats) + k]
            if stat.child != NONE:
                stat.child = forward[U(stat.child)]
        new = tree.nodes[U(forward[i])]
        new.key = old.key
        new.weight_sum = old.weight_sum
        new.utility_sum = old.utility_sum
        new.value_sum = old.value_sum
        new.score_sum = old.score_sum
        new.weight_squares = old.weight_squares
        new.utility_variance = old.utility_variance
        new.score_variance = old.score_variance
        new.edges = old.edges
        new.stats = old.stats
        new.visits = old.visits
        new.tried_prior = old.tried_prior
        new.own_utility = old.own_utility
        new.own_weight = old.own_weight
        new.own_bias = old.own_bias
        new.bucket = old.bucket
        new.bucket_sum = old.bucket_sum
        new.bucket_weight = old.bucket_weight
        new.weigh_at = old.weigh_at
        new.proof = old.proof
        new.edge_count = old.edge_count
        new.legal = old.legal
        new.tried = old.tried
        new.state = old.state
    counters = tree.counters[0]
    counters.node_top = np.int64(top)
    counters.root = np.int64(forward[U(root)])
    insert_all(tree)

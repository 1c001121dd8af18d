"""Reads the tree: children of the root, and best lines. Safe while search threads run."""

import math

import numpy as np

from yomi.native.bits import U
from yomi.native.jit import inlined, kernel
from yomi.native.tree.arrays import EXPANDED, IN_FLIGHT, LOST_EDGE, NONE, RESERVED, WON_EDGE
from yomi.native.tree.child_weights import edge_share
from yomi.native.tree.edges import edge_move, edge_prior
from yomi.native.tree.memory import lock, unlock
from yomi.native.tree.selection import ASSUMED_STDEV, expected_stdev, exploration, prior_factor, raise_candidate

CHILD_DTYPE = np.dtype(
    [
        ("move", np.uint32),
        ("visits", np.uint32),
        ("node_visits", np.uint32),  # of the child's node, which other lines may share
        ("node_weight", np.float64),  # of all evaluations of this node
        ("weight", np.float64),  # that counts for the move; equals visits for equal weights, without shared nodes
        ("evidence", np.float64),  # effective number of visits: weight ** 2 / sum of squares
        ("node", np.uint32),
        ("prior", np.float32),
        ("proven", np.int32),  # +1 the move wins, -1 it loses, 0 open
        ("utility_stdev", np.float64),  # selection.expected_stdev
        # For the side to move at the root. NaN if the move was never tried, or if pruning lost the value.
        ("utility", np.float64),
        ("value", np.float64),
        ("score", np.float64),
        ("score_stdev", np.float64),
    ],
    align=True,
)


@kernel
def root_children(tree, children):  # type: ignore[no-untyped-def]
    """Write every legal root move into `children` (CHILD_DTYPE[>= edges]), tried moves first; return their number."""
    root = tree.counters[0].root
    lock(tree, root)
    node = tree.nodes[U(root)]
    count = U(node.edge_count)
    if node.state != EXPANDED:
        unlock(tree, root)
        return 0
    # First the edges' statistics, under the root's lock. Afterwards each child is locked alone.
    for i in range(count):
        edge = tree.edges[U(node.edges) + i]
        child = children[i]
        child.move = edge_move(edge)
        child.prior = edge_prior(edge)
        child.visits = child.node_visits = 0
        child.weight = child.node_weight = 0.0
        child.evidence = 0.0
        child.node = NONE
        child.proven = 0
        child.utility = np.nan
        child.utility_stdev = ASSUMED_STDEV
        child.value = np.nan
        child.score = np.nan
        child.score_stdev = np.nan
        if i < U(node.tried):
            stat = tree.stats[U(node.stats) + i]
            child.visits = child.node_visits = stat.visits
            child.node = NONE if stat.child == RESERVED else stat.child
            if stat.in_flight > IN_FLIGHT:
                child.proven = 1 if stat.in_flight & WON_EDGE != 0 else -1
            if child.visits > 0:  # of the edge; the loop below replaces it by the node's if the node exists
                child.weight = float(stat.visits) if child.proven < 0 else float(stat.weight)
                child.node_weight = child.weight
                child.evidence = float(stat.visits)
                child.utility = float(child.proven) if child.proven != 0 else float(stat.utility)
                child.value = float(child.proven) if child.proven != 0 else float(stat.value)
                child.score = float(stat.score)
    unlock(tree, root)
    for i in range(count):
        child = children[i]
        if child.node != NONE and child.visits > 0:
            lock(tree, np.int64(child.node))
            below = tree.nodes[U(child.node)]
            total = below.weight_sum
            if not (total > 0.0 and math.isfinite(below.utility_sum + below.value_sum + below.score_sum)):
                unlock(tree, np.int64(child.node))  # a fault: the edge keeps the last sound means
                continue
            share = edge_share(float(child.visits), float(below.visits))
            child.node_visits = below.visits
            child.node_weight = total
            child.weight = total * share
            child.evidence = total * total / below.weight_squares * share
            child.utility = -below.utility_sum / total
            child.utility_stdev = expected_stdev(below.utility_variance, float(below.visits))
            child.value = -below.value_sum / total
            child.score = -below.score_sum / total
            child.score_stdev = np.sqrt(below.score_variance)
            unlock(tree, np.int64(child.node))
    return np.int64(count)


@inlined
def _line_slot(tree, node):  # type: ignore[no-untyped-def]
    """Return the slot of the edge that a line follows: a proven win, otherwise the most visited; -1 for none."""
    best = np.int64(-1)
    best_rank = np.int64(0)
    for i in range(U(node.tried)):
        stat = tree.stats[U(node.stats) + i]
        # A lost edge is chosen only if all are lost.
        rank = np.int64(stat.visits)
        if rank > 0 and stat.in_flight & LOST_EDGE == 0:
            rank += np.int64(1) << (62 if stat.in_flight & WON_EDGE != 0 else 40)
        if rank > best_rank:
            best_rank = rank
            best = np.int64(i)
    return best


@kernel
def most_visited_path(tree, start, moves, visits, node_visits):  # type: ignore[no-untyped-def]
    """Follow the best line from node `start`; write moves (uint16), visits of edges and nodes; return the length."""
    index = np.int64(start)
    length = U(0)
    while length < U(moves.size) and index != NONE:
        lock(tree, index)
        node = tree.nodes[U(index)]
        slot = _line_slot(tree, node) if node.state == EXPANDED else np.int64(-1)
        if slot < 0:
            unlock(tree, index)
            break
        stat = tree.stats[U(node.stats) + U(slot)]
        moves[length] = edge_move(tree.edges[U(node.edges) + U(slot)])
        visits[length] = node_visits[length] = stat.visits
        child = np.int64(NONE if stat.child == RESERVED else stat.child)
        unlock(tree, index)
        if child != NONE:
            node_visits[length] = tree.nodes[U(child)].visits
        length += U(1)
        index = child
    return np.int64(length)


@kernel
def find_child(tree, move):  # type: ignore[no-untyped-def]
    """Return the root's child after `move`, or -1 if it has no node."""
    node = tree.nodes[U(tree.counters[0].root)]
    if node.state != EXPANDED:
        return np.int64(-1)
    for i in range(U(node.tried)):
        if edge_move(tree.edges[U(node.edges) + i]) == move:
            child = np.int64(tree.stats[U(node.stats) + i].child)
            return np.int64(-1) if child == NONE else child
    return np.int64(-1)


@kernel
def restore_root_order(tree):  # type: ignore[no-untyped-def]
    """Put the right candidate after the root's tried edges, when priors or bans have changed."""
    root = tree.counters[0].root
    lock(tree, root)
    node = tree.nodes[U(root)]
    if node.state == EXPANDED:
        raise_candidate(tree, node, True)
    unlock(tree, root)


@kernel
def root_exploration(tree, playouts):  # type: ignore[no-untyped-def]
    """Return the factor of prior / (1 + visits) in the root's PUCT, with `playouts` visits of its children."""
    root = tree.nodes[U(tree.counters[0].root)]
    return exploration(tree, root, True, playouts) * prior_factor(tree, root, True)

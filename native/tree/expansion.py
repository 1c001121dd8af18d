"""Expansion: a node gets edges for its likely moves. When one of the other moves is to be tried, all of them get edges.

The unlikely moves have priors below MAX_DROPPED_PRIOR, and a total prior of at most DROPPED. When they get edges, they
share the remaining prior equally. A root always has all of its edges.
"""

import numpy as np

from yomi.native.bits import U
from yomi.native.jit import inlined, kernel
from yomi.native.tree.arrays import NONE
from yomi.native.tree.edges import PRIOR_SCALE, edge_move, edge_quantized, pack_edge
from yomi.native.tree.memory import new_edges
from yomi.native.tree.restrictions import is_banned_below
from yomi.native.tree.selection import raise_candidate

# A policy gives most moves a tiny prior, and few of these are ever tried: five sixths of all moves on 19×19.

DROPPED = 0.02  # maximum total prior of the moves without an edge
# Maximum prior of a move without an edge. Such a move is tried after some ten thousand visits.
MAX_DROPPED_PRIOR = 1.0 / 1024.0


@inlined
def _least_prior(priors, count):  # type: ignore[no-untyped-def]
    """Return a bound such that the priors below it sum to DROPPED at most."""
    bound = np.float32(MAX_DROPPED_PRIOR)
    while True:
        below = np.float32(0.0)
        for i in range(U(count)):
            below += priors[i] if priors[i] < bound else np.float32(0.0)
        if below <= np.float32(DROPPED):
            return bound
        bound *= np.float32(0.5)


@inlined
def expand(tree, index, moves, priors, count):  # type: ignore[no-untyped-def]
    """Give the pending node `index` its edges; False if the pool is used up."""
    is_root = index == np.int64(tree.counters[0].root)
    least = np.float32(0.0)
    kept = np.int64(count)
    if not is_root:
        least = _least_prior(priors, count)
        kept = np.int64(0)
        for i in range(U(count)):
            kept += np.int64(priors[i] >= least)
    first = new_edges(tree, kept)
    if first == NONE:
        return False
    top = U(first)
    for i in range(U(count)):
        if priors[i] >= least:
            tree.edges[top] = pack_edge(priors[i], moves[i])
            top += U(1)
    # The node stays pending: other threads may not see its edges before back_up has added its evaluation.
    node = tree.nodes[U(index)]
    node.edges = first
    node.edge_count = kept
    node.legal = count
    raise_candidate(tree, node, is_root)
    return True


@kernel
def complete(tree, node, moves, count, depth):  # type: ignore[no-untyped-def]
    """Give the locked `node`, `depth` moves below the root, edges for all legal moves that are not banned there.

    False (and no change) if the pool is used up.
    """
    first = new_edges(tree, count)
    if first == NONE:
        return False
    new = tree.edges[U(first) : U(first) + U(count)]
    kept = U(node.edge_count)
    left = np.int64(PRIOR_SCALE)
    for i in range(kept):
        new[i] = tree.edges[U(node.edges) + i]
        left -= np.int64(edge_quantized(new[i]))
    prior = np.float32(max(left, np.int64(0))) / np.float32(PRIOR_SCALE) / np.float32(U(count) - kept)
    top = kept
    # Edges for the legal moves without one.
    for i in range(U(count)):
        is_new = depth >= tree.counters[0].ban_depth or not is_banned_below(tree, moves[i], depth)
        for k in range(kept):
            is_new &= edge_move(new[k]) != moves[i]
        if is_new:
            new[top] = pack_edge(prior, moves[i])
            top += U(1)
    node.edges = first
    node.edge_count = np.int64(top)
    node.legal = np.int64(top)
    return True


@kernel
def complete_root(tree, moves, count):  # type: ignore[no-untyped-def]
    """Give an expanded node that has become the root all of its edges; False if the pool is used up.

    Args:
        tree: the Tree; no search thread may run.
        moves: uint16[M]: legal moves of the root.
        count: their number.
    """
    node = tree.nodes[U(tree.counters[0].root)]
    if node.edge_count == node.legal:
        return True
    if not complete(tree, node, moves, count, 0):
        return False
    raise_candidate(tree, node, True)
    return True

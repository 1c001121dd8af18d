"""Giving a node its edges: those that matter, and the others once one of them is to be tried.

A policy gives most moves next to nothing, and hardly any of these is ever tried. So a node has no edges for the moves
of least prior, each less than GREATEST_DROPPED, and DROPPED together at most: on 19×19 those are five sixths of all.
They get edges, with equal shares of what is left of the priors, where the search wants to try one of them. A root has
all of its edges: each of its moves may be asked for.
"""

import numpy as np

from yomi.native.bits import U
from yomi.native.jit import inlined, kernel
from yomi.native.tree.arrays import NONE
from yomi.native.tree.edges import PRIOR_SCALE, edge_move, edge_quantized, pack_edge
from yomi.native.tree.memory import new_edges
from yomi.native.tree.selection import raise_candidate

DROPPED = 0.02
"""What the moves of a node that have no edge hold of the priors together, at most."""
GREATEST_DROPPED = 1.0 / 1024.0
"""Prior that each of them is smaller than; with so little, a move is tried in nodes of some ten thousand visits."""


@inlined
def _least_prior(priors, count):  # type: ignore[no-untyped-def]
    """Return a bound such that the priors below it add up to DROPPED at most."""
    bound = np.float32(GREATEST_DROPPED)
    while True:
        below = np.float32(0.0)
        for i in range(U(count)):
            below += priors[i] if priors[i] < bound else np.float32(0.0)
        if below <= np.float32(DROPPED):
            return bound
        bound *= np.float32(0.5)


@inlined
def expand(tree, index, moves, priors, count):  # type: ignore[no-untyped-def]
    """Give the pending node `index` its edges; False if the pool is used up.

    The node stays pending: no other thread may look at the edges before the evaluation is in the sums (see back_up).
    """
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
    node = tree.nodes[U(index)]
    node.edges = first
    node.edge_count = kept
    node.legal = count
    raise_candidate(tree, node, is_root)
    return True


@kernel
def complete(tree, node, moves, count):  # type: ignore[no-untyped-def]
    """Give the locked `node` edges for all of its legal moves; False if the pool is used up (all stays as it was)."""
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
    for i in range(U(count)):
        is_new = True
        for k in range(kept):
            is_new &= edge_move(new[k]) != moves[i]
        if is_new:
            new[top] = pack_edge(prior, moves[i])
            top += U(1)
    node.edges = first
    node.edge_count = count
    return True


@kernel
def complete_root(tree, moves, count):  # type: ignore[no-untyped-def]
    """Give an expanded root that was expanded further down the tree all of its edges; False if there is no room.

    Args:
        tree: the Tree; no search thread may run.
        moves: uint16[M]: legal moves of the root.
        count: their number.
    """
    node = tree.nodes[U(tree.counters[0].root)]
    if node.edge_count == node.legal:
        return True
    if not complete(tree, node, moves, count):
        return False
    raise_candidate(tree, node, True)
    return True

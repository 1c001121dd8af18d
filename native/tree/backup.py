"""Carrying a playout's result up the tree, and what is proven with it.

Proofs work as in an MCTS solver (Winands, Björnsson, Saito: Monte-Carlo Tree Search Solver, 2008). They stand on the
edges: an edge is proven won where the node below is lost for its side to move, and lost where that is won. One won
edge makes a node won, none but lost ones make it lost; then its mean is exact and stays so, whatever playouts come back
that were under way. While others remain, a lost edge is left out of its node's mean: nobody would play it, however
often it was tried before it was refuted. Its visits are counted on, with the mean that the others have when an edge is
lost; so are those that come back through it later.
"""

import numpy as np

from native.bits import U, atomic_add
from native.jit import inlined, kernel
from native.tree.arrays import CLAIMED, LOST_EDGE, NONE, PLAYOUTS, VARIANCE_PLAYOUTS, WON_EDGE
from native.tree.memory import lock, unlock
from native.tree.selection import all_lost, has_won_edge


@inlined
def _prove(tree, node, stat, proof):  # type: ignore[no-untyped-def]
    """Mark the edge `stat` of the locked `node`, to a child of which `proof` is known.

    Returns (what is so proven of the node, whether the edge has just been lost with others remaining).
    """
    if proof < 0:
        stat.in_flight |= WON_EDGE
        return np.int64(1), False
    if stat.in_flight & LOST_EDGE != 0:
        return np.int64(0), False
    stat.in_flight |= LOST_EDGE
    if all_lost(tree, node):
        return np.int64(-1), False
    return np.int64(0), True


@inlined
def _mean_of_the_rest(tree, node):  # type: ignore[no-untyped-def]
    """Return the mean of the locked `node` without the playouts through edges that are proven lost.

    Visits that no edge tells of are those of a node that was pruned and made anew; they keep the mean of all.
    """
    total = float(node.own_utility)
    visits = 1.0
    untold = float(node.visits) - 1.0
    for i in range(U(node.tried)):
        stat = tree.stats[U(node.stats) + i]
        n = float(stat.visits)
        untold -= n
        if stat.in_flight & LOST_EDGE == 0:
            total += float(stat.utility) * n
            visits += n
    untold = max(0.0, untold)
    return (total + untold * node.utility_sum / float(node.visits)) / (visits + untold)


@inlined
def _add(node, visits, utility, value, score, own_variance):  # type: ignore[no-untyped-def]
    """Add a result to the sums and variances of the locked `node`, which has `visits` visits with it."""
    node.utility_sum += utility
    node.value_sum += value
    node.score_sum += score
    share = 1.0 / float(visits)
    utility_off = utility - node.utility_sum * share
    score_off = score - node.score_sum * share
    # From the new mean a result is off by (visits - 1) / visits of what it is off from the old one.
    unbiased = float(visits) / max(1.0, float(visits) - 1.0)
    share = max(share, 1.0 / float(VARIANCE_PLAYOUTS))
    node.utility_variance += np.float32((utility_off * utility_off * unbiased - node.utility_variance) * share)
    spread = score_off * score_off * unbiased + own_variance
    node.score_variance += np.float32((spread - node.score_variance) * share)


@kernel
def back_up(tree, leaf, utility, value, score, stdev, proof):  # type: ignore[no-untyped-def]
    """Add one playout's result, for the side to move at `leaf`, to the leaf and everything above it.

    Where there are proofs, value and utility are one (SearchSettings.solver).

    Args:
        tree: the Tree.
        leaf: node that the playout ended at.
        utility: what the search maximises.
        value: win minus loss.
        score: expected score.
        stdev: the evaluator's uncertainty of the score.
        proof: +1 where the leaf is proven won for its side to move, -1 lost, 0 open.
    """
    own_variance = stdev * stdev
    index = np.int64(leaf)
    known = np.int64(proof)  # of the node at hand
    is_left_out = False  # the child that we come from: its edge has just been lost
    shift = 0.0  # change of the sums beyond this playout's own part
    lock(tree, index)
    node = tree.nodes[U(index)]
    while True:
        # The sum of a node that is won already tells it, so that the others' edges need not be looked at.
        if known == 0 and node.utility_sum == float(node.visits) and has_won_edge(tree, node):
            known = np.int64(1)
        if known != 0:
            utility = float(known)
            value = float(known)
        node.visits += 1
        visits = np.int64(node.visits)
        _add(node, visits, utility, value, score, own_variance)
        if known != 0:
            node.utility_sum = float(known) * float(visits)
            node.value_sum = node.utility_sum
            node.utility_variance = 0.0
        elif proof != 0:
            node.utility_sum += shift
            node.value_sum += shift
            if is_left_out:
                total = _mean_of_the_rest(tree, node) * float(visits)
                shift += total - node.utility_sum
                node.utility_sum = total
                node.value_sum = total
        mean = -node.utility_sum / float(visits)
        parent = np.int64(node.parent)
        slot = U(node.parent_slot)
        unlock(tree, index)
        if parent == NONE:
            break
        utility = -utility
        value = -value
        score = -score
        shift = -shift
        index = parent
        lock(tree, index)
        node = tree.nodes[U(index)]
        stat = tree.stats[U(node.stats) + slot]
        # Threads may pass each other between the two locks: what the later one saw of the child stands.
        if visits > stat.visits:
            stat.visits = visits
            stat.utility = mean
        stat.in_flight -= 1
        is_left_out = False
        if stat.in_flight & LOST_EDGE != 0:  # the node's sums hold nothing of this child any more
            shift = 0.0
            utility = node.utility_sum / float(node.visits)
            value = node.value_sum / float(node.visits)
        if known != 0:
            known, is_left_out = _prove(tree, node, stat, known)
    atomic_add(tree.counters, U(PLAYOUTS), 1)


@kernel
def take_back(tree, leaf):  # type: ignore[no-untyped-def]
    """Undo the in-flight marks of a playout that ended at `leaf` without a result, and its claim."""
    index = np.int64(leaf)
    while True:
        parent = np.int64(tree.nodes[U(index)].parent)
        if parent == NONE:
            break
        lock(tree, parent)
        node = tree.nodes[U(parent)]
        tree.stats[U(node.stats) + U(tree.nodes[U(index)].parent_slot)].in_flight -= 1
        unlock(tree, parent)
        index = parent
    atomic_add(tree.counters, U(CLAIMED), -1)

"""Carrying a playout's result up the tree, and what is proven with it.

Proofs work as in an MCTS solver (Winands, Björnsson, Saito: Monte-Carlo Tree Search Solver, 2008). They stand on the
edges: an edge is proven won if the node below is lost for its side to move, and lost if that is won. One won
edge makes a node won, none but lost ones make it lost; then its mean is exact and stays so, whatever playouts come back
that were under way. While others remain, a lost edge is left out of its node's mean: nobody would play it, however
often it was tried before it was refuted. Its visits are counted on, with the mean that the others have when an edge is
lost; so are those that come back through it later.
"""

import numpy as np

from native.bits import U, atomic_add
from native.jit import inlined, kernel
from native.tree.arrays import LOST_EDGE, NONE, VARIANCE_PLAYOUTS, WON_EDGE
from native.tree.memory import lock, unlock
from native.tree.selection import all_lost, has_won_edge


@inlined
def _mark_edge(tree, node, stat, child_proof):  # type: ignore[no-untyped-def]
    """Mark the edge `stat` of the locked `node`, whose child is proven won (+1) or lost (-1) for its side to move.

    Returns (what is so proven of the node, whether the edge has just been lost with others remaining).
    """
    if child_proof < 0:
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

    A node that was pruned and made anew has visits that no edge accounts for; they keep the mean of all.
    """
    total = float(node.own_utility)
    visits = 1.0
    unaccounted = float(node.visits) - 1.0
    for i in range(U(node.tried)):
        stat = tree.stats[U(node.stats) + i]
        n = float(stat.visits)
        unaccounted -= n
        if stat.in_flight & LOST_EDGE == 0:
            total += float(stat.utility) * n
            visits += n
    unaccounted = max(0.0, unaccounted)
    return (total + unaccounted * node.utility_sum / float(node.visits)) / (visits + unaccounted)


@inlined
def _correct_sums(tree, node, proof, correction, has_refuted):  # type: ignore[no-untyped-def]
    """Make the sums of the locked `node`, to which a playout has been added, agree with what is proven.

    Args:
        tree: the Tree.
        node: the node.
        proof: +1 if it is proven won for its side to move, -1 lost, 0 open.
        correction: what its child's sums were changed by beyond the playout's own result, for the side to move here.
        has_refuted: an edge of the node has just been proven lost, and others remain.

    Returns the correction of this node's own sums.
    """
    visits = float(node.visits)
    if proof != 0:
        node.utility_sum = float(proof) * visits
        node.value_sum = node.utility_sum
        node.utility_variance = 0.0
        return correction
    node.utility_sum += correction
    node.value_sum += correction
    if has_refuted:
        total = _mean_of_the_rest(tree, node) * visits
        correction += total - node.utility_sum
        node.utility_sum = total
        node.value_sum = total
    return correction


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

    If there are proofs, value and utility are one (SearchSettings.solver).

    Args:
        tree: the Tree.
        leaf: node that the playout ended at.
        utility: what the search maximises.
        value: win minus loss.
        score: expected score.
        stdev: the evaluator's uncertainty of the score.
        proof: +1 if the leaf is proven won for its side to move, -1 lost, 0 open.
    """
    own_variance = stdev * stdev
    index = np.int64(leaf)
    proven = np.int64(proof)  # of the node at hand
    has_refuted = False
    correction = 0.0
    lock(tree, index)
    node = tree.nodes[U(index)]
    while True:
        # The sum of a node that is won already tells it, so that the others' edges need not be looked at.
        if proven == 0 and node.utility_sum == float(node.visits) and has_won_edge(tree, node):
            proven = np.int64(1)
        if proven != 0:
            utility = float(proven)
            value = float(proven)
        node.visits += 1
        visits = np.int64(node.visits)
        _add(node, visits, utility, value, score, own_variance)
        if proven != 0 or has_refuted or correction != 0.0:
            correction = _correct_sums(tree, node, proven, correction, has_refuted)
        mean = -node.utility_sum / float(visits)
        parent = np.int64(node.parent)
        slot = U(node.parent_slot)
        unlock(tree, index)
        if parent == NONE:
            break
        utility = -utility
        value = -value
        score = -score
        correction = -correction
        index = parent
        lock(tree, index)
        node = tree.nodes[U(index)]
        stat = tree.stats[U(node.stats) + slot]
        # Threads may pass each other between the two locks: what the later one saw of the child stands.
        if visits > stat.visits:
            stat.visits = visits
            stat.utility = mean
        stat.in_flight -= 1
        has_refuted = False
        if stat.in_flight & LOST_EDGE != 0:  # the node's sums hold nothing of this child any more
            correction = 0.0
            utility = node.utility_sum / float(node.visits)
            value = node.value_sum / float(node.visits)
        if proven != 0:
            proven, has_refuted = _mark_edge(tree, node, stat, proven)
    atomic_add(tree.counters[0], "playouts", 1)


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
    atomic_add(tree.counters[0], "claimed", -1)

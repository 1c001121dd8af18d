"""Carrying a playout's result up the tree, and what is proven with it.

The sums of a node are made of its own evaluation and of what its edges say: each edge keeps the means of its child and
their weight. When a playout comes back, what the edge has said is taken out of the parent's sums and what it says now
is put in; so whatever has changed below, corrected or proven, arrives above with the next playout.

Proofs work as in an MCTS solver (Winands, Björnsson, Saito: Monte-Carlo Tree Search Solver, 2008). They stand on the
edges: an edge is proven won if the node below is lost for its side to move, and lost if that is won. One won
edge makes a node won, none but lost ones make it lost; then its mean is exact and stays so, whatever playouts come back
that were under way. While others remain, a lost edge has no weight in its node's sums: nobody would play it, however
often it was tried before it was refuted.
"""

import numpy as np

from native.bits import U, atomic_add
from native.jit import inlined, kernel
from native.tree.arrays import EXPANDED, LOST_EDGE, NONE, VARIANCE_PLAYOUTS, WON_EDGE
from native.tree.bias import correct
from native.tree.memory import lock, unlock
from native.tree.selection import all_lost
from native.tree.weighing import add_edge, weigh


@inlined
def _add_own(tree, node, weight, utility, value, score):  # type: ignore[no-untyped-def]
    """Add an evaluation of the locked leaf `node` itself to its sums."""
    node.own_weight = weight
    node.own_bias = 0.0
    node.weight_sum += weight
    node.utility_sum += weight * utility
    node.value_sum += weight * value
    node.score_sum += weight * score
    if node.state == EXPANDED:
        correct(tree, node)


@inlined
def _add_spread(node, weight, utility, score, own_variance):  # type: ignore[no-untyped-def]
    """Add a playout's result to the variances of the locked `node`, whose sums and visits it is part of."""
    visits = float(node.visits)
    utility_off = utility - node.utility_sum / node.weight_sum
    score_off = score - node.score_sum / node.weight_sum
    # From the new mean a result is off by (visits - 1) / visits of what it is off from the old one.
    unbiased = visits / max(1.0, visits - 1.0)
    share = min(1.0, weight / node.weight_sum)  # less where moves were proven lost, or taken for noise
    share = max(share, 1.0 / float(VARIANCE_PLAYOUTS))
    node.utility_variance += np.float32((utility_off * utility_off * unbiased - node.utility_variance) * share)
    spread = score_off * score_off * unbiased + own_variance
    node.score_variance += np.float32((spread - node.score_variance) * share)


@inlined
def _prove(node, proof):  # type: ignore[no-untyped-def]
    """Make the locked `node` a proven one: +1 won for its side to move, -1 lost."""
    node.proof = proof
    node.utility_sum = float(proof) * node.weight_sum
    node.value_sum = node.utility_sum
    node.utility_variance = 0.0


@inlined
def _mark_edge(tree, node, stat, child_proof):  # type: ignore[no-untyped-def]
    """Mark the edge `stat` of the locked `node`, whose child is proven, and return what is so proven of the node."""
    if child_proof < 0:
        stat.in_flight |= WON_EDGE
        return np.int64(1)
    stat.in_flight |= LOST_EDGE
    add_edge(node, stat, -1.0)
    stat.weight = 0.0
    return np.int64(-1) if all_lost(tree, node) else np.int64(0)


@kernel
def back_up(tree, leaf, utility, value, score, stdev, weight, proof):  # type: ignore[no-untyped-def]
    """Add one playout's result, for the side to move at `leaf`, to the leaf and everything above it.

    If there are proofs, value and utility are one (SearchSettings.solver).

    Args:
        tree: the Tree.
        leaf: node that the playout ended at.
        utility: what the search maximises.
        value: win minus loss.
        score: expected score.
        stdev: the evaluator's uncertainty of the score.
        weight: of this evaluation among others.
        proof: +1 if the leaf is proven won for its side to move, -1 lost, 0 open.
    """
    own_variance = stdev * stdev
    index = np.int64(leaf)
    proof = np.int64(proof)  # of the node at hand
    lock(tree, index)
    node = tree.nodes[U(index)]
    _add_own(tree, node, weight, utility, value, score)
    utility += float(node.own_bias)
    while True:
        node.visits += 1
        node.weight_squares += weight * weight
        _add_spread(node, weight, utility, score, own_variance)
        if proof != 0:
            _prove(node, proof)
            utility = float(proof)
        visits = np.int64(node.visits)
        total = node.weight_sum
        mean_utility = node.utility_sum / total
        mean_value = node.value_sum / total
        mean_score = node.score_sum / total
        parent = np.int64(node.parent)
        slot = U(node.parent_slot)
        unlock(tree, index)
        if parent == NONE:
            break
        utility = -utility
        score = -score
        index = parent
        lock(tree, index)
        node = tree.nodes[U(index)]
        stat = tree.stats[U(node.stats) + slot]
        stat.in_flight -= 1
        is_lost = stat.in_flight & LOST_EDGE != 0  # the node's sums hold nothing of this child any more
        # Threads may pass each other between the two locks: what the later one saw of the child stands.
        if visits > stat.visits:
            stat.visits = visits
            if not is_lost:
                add_edge(node, stat, -1.0)
                stat.weight = total
                stat.utility = -mean_utility
                stat.value = -mean_value
                stat.score = -mean_score
                add_edge(node, stat, 1.0)
        if is_lost:
            utility = node.utility_sum / node.weight_sum
            proof = np.int64(0)
        elif proof != 0:
            proof = _mark_edge(tree, node, stat, proof)
        if node.proof != 0:
            proof = np.int64(node.proof)
        elif proof == 0 and not is_lost:
            weigh(tree, node)
            correct(tree, node)
    atomic_add(tree.counters[0], "playouts", 1)


@kernel
def take_back(tree, leaf, visits):  # type: ignore[no-untyped-def]
    """Undo the in-flight marks of playouts that ended at `leaf` without a result, and their claims."""
    index = np.int64(leaf)
    while True:
        parent = np.int64(tree.nodes[U(index)].parent)
        if parent == NONE:
            break
        lock(tree, parent)
        node = tree.nodes[U(parent)]
        tree.stats[U(node.stats) + U(tree.nodes[U(index)].parent_slot)].in_flight -= visits
        unlock(tree, parent)
        index = parent
    atomic_add(tree.counters[0], "claimed", -visits)

"""Carrying a playout's result up the tree, and what is proven with it.

The sums of a node are made of its own evaluation and of what its edges say: each edge keeps the means of its child and
their weight, as far as the visits through the edge make it up where lines share the child (native/tree/sharing.py).
When a playout comes back, what the edge has said is taken out of the parent's sums and what it says now is put in; so
whatever has changed below, corrected, proven or found by another line, arrives above with the next playout.

Proofs work as in an MCTS solver (Winands, Björnsson, Saito: Monte-Carlo Tree Search Solver, 2008). They stand on the
edges: an edge is proven won if the node below is lost for its side to move, and lost if that is won. One won
edge makes a node won, none but lost ones make it lost; then its mean is exact and stays so, whatever playouts come back
that were under way. While others remain, a lost edge has no weight in its node's sums: nobody would play it, however
often it was tried before it was refuted.
"""

import math

import numpy as np

from yomi.native.bits import U, atomic_add
from yomi.native.jit import inlined, kernel
from yomi.native.tree.arrays import EXPANDED, LOST_EDGE, SUMS_BROKEN, VARIANCE_PLAYOUTS, WON_EDGE
from yomi.native.tree.bias import correct
from yomi.native.tree.memory import lock, unlock
from yomi.native.tree.selection import all_lost
from yomi.native.tree.weighing import add_edge, weigh


@inlined
def _add_own(tree, node, state, weight, utility, value, score):  # type: ignore[no-untyped-def]
    """Add an evaluation of the locked leaf `node` itself to its sums, and let other threads use the node."""
    node.state = state
    node.own_utility = utility
    node.own_weight = weight
    node.own_bias = 0.0
    node.weight_sum += weight
    node.utility_sum += weight * utility
    node.value_sum += weight * value
    node.score_sum += weight * score
    if state == EXPANDED:
        correct(tree, node)


@inlined
def _add_spread(node, weight, utility, score, variances):  # type: ignore[no-untyped-def]
    """Add a playout's result to the variances of the locked `node`, whose sums and visits it is part of."""
    of_utility, of_score = variances
    visits = float(node.visits)
    utility_off = utility - node.utility_sum / node.weight_sum
    score_off = score - node.score_sum / node.weight_sum
    # From the new mean a result is off by (visits - 1) / visits of what it is off from the old one.
    unbiased = visits / max(1.0, visits - 1.0)
    share = min(1.0, weight / node.weight_sum)  # less where moves were proven lost, or taken for noise
    share = max(share, 1.0 / float(VARIANCE_PLAYOUTS))
    of_utility += utility_off * utility_off * unbiased
    of_score += score_off * score_off * unbiased
    node.utility_variance += np.float32((of_utility - node.utility_variance) * share)
    node.score_variance += np.float32((of_score - node.score_variance) * share)


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


@inlined
def _seen(node):  # type: ignore[no-untyped-def]
    """Return what the locked `node` says to an edge that leads to it: visits, weight, mean utility, value and score."""
    total = node.weight_sum
    return np.int64(node.visits), total, node.utility_sum / total, node.value_sum / total, node.score_sum / total


@inlined
def report_fault(tree, fault):  # type: ignore[no-untyped-def]
    """Stop the search because of a fault of the tree, SUMS_BROKEN or KEYS_BROKEN."""
    tree.counters[0].broken = fault
    tree.counters[0].stop = 1


@inlined
def _is_sound(seen):  # type: ignore[no-untyped-def]
    """Whether the means that `_seen` returned are numbers, made of evaluations that have a weight."""
    _, total, utility, value, score = seen
    return total > 0.0 and math.isfinite(utility + value + score)


@inlined
def _tell_edge(node, stat, seen):  # type: ignore[no-untyped-def]
    """Let the edge `stat` of the locked `node` say what was seen of its child."""
    visits, total, utility, value, score = seen
    add_edge(node, stat, -1.0)
    edge_visits = np.int64(stat.visits)
    stat.weight = total if edge_visits >= visits else total * (float(edge_visits) / float(visits))
    stat.utility = -utility
    stat.value = -value
    stat.score = -score
    add_edge(node, stat, 1.0)


@inlined
def _count(node, utility, score, variances, weight, proof):  # type: ignore[no-untyped-def]
    """Count a playout's result, of which the sums of the locked `node` tell already."""
    node.visits += 1
    node.weight_squares += weight * weight
    _add_spread(node, weight, utility, score, variances)
    if proof != 0:
        _prove(node, proof)


@kernel
def take_back(tree, path, slots, depth, visits):  # type: ignore[no-untyped-def]
    """Undo the in-flight marks of playouts that ended at the end of a path without a result, and their claims."""
    for level in range(U(depth)):
        index = np.int64(path[level])
        lock(tree, index)
        tree.stats[U(tree.nodes[U(index)].stats) + U(slots[level])].in_flight -= visits
        unlock(tree, index)
    atomic_add(tree.counters[0], "claimed", -visits)


@inlined
def _climb(tree, path, slots, depth, utility, score, variances, weight, proof, seen):  # type: ignore[no-untyped-def]
    """Carry a playout's result from the locked node at the end of a path to all above it.

    A node stays locked until the one above is: what its edge hears comes in the order in which it became true.
    If the node's sums are broken the search is stopped, and the nodes above keep the means that they have.

    Args:
        tree: the Tree.
        path: see back_up.
        slots: see back_up.
        depth: see back_up.
        utility: of the result, for the side to move at the node.
        score: likewise.
        variances: of utility and score, which the result leaves open.
        weight: of the result.
        proof: of the node.
        seen: what the node says.
    """
    level = U(depth)
    below = np.int64(path[level])
    while level > U(0):
        if not _is_sound(seen):
            unlock(tree, below)
            report_fault(tree, SUMS_BROKEN)
            take_back(tree, path, slots, np.int64(level), 1)
            return
        level -= U(1)
        utility = -utility
        score = -score
        index = np.int64(path[level])
        lock(tree, index)
        unlock(tree, below)
        below = index
        node = tree.nodes[U(index)]
        stat = tree.stats[U(node.stats) + U(slots[level])]
        stat.in_flight -= 1
        stat.visits += 1
        is_lost = stat.in_flight & LOST_EDGE != 0  # the node's sums hold nothing of this child any more
        if is_lost:
            utility = node.utility_sum / node.weight_sum
            proof = np.int64(0)
        else:
            _tell_edge(node, stat, seen)
            if proof != 0:
                proof = _mark_edge(tree, node, stat, proof)
        if node.proof != 0:
            proof = np.int64(node.proof)
        elif proof == 0 and not is_lost:
            weigh(tree, node)
            correct(tree, node)
        _count(node, utility, score, variances, weight, proof)
        if proof != 0:
            utility = float(proof)
        seen = _seen(node)
    unlock(tree, below)
    if not _is_sound(seen):
        report_fault(tree, SUMS_BROKEN)
    atomic_add(tree.counters[0], "playouts", 1)


@kernel
def back_up(tree, path, slots, depth, state, utility, value, score, stdev, weight, proof):  # type: ignore[no-untyped-def]
    """Add one playout's result, for the side to move at the leaf, to the leaf and everything above it.

    A new leaf gets its state here, under the same lock as its first evaluation: no thread sees one without the other.
    If there are proofs, value and utility are one (SearchSettings.solver).

    Args:
        tree: the Tree.
        path: uint32[> depth], the nodes from the root to the leaf that the playout ended at.
        slots: uint16[>= depth], the edges between them.
        depth: how many edges.
        state: of the leaf, EXPANDED or TERMINAL.
        utility: what the search maximises.
        value: win minus loss.
        score: expected score.
        stdev: the evaluator's uncertainty of the score.
        weight: of this evaluation among others.
        proof: +1 if the leaf is proven won for its side to move, -1 lost, 0 open.
    """
    variances = 0.0, stdev * stdev
    proof = np.int64(proof)  # of the node at hand
    leaf = np.int64(path[U(depth)])
    lock(tree, leaf)
    node = tree.nodes[U(leaf)]
    _add_own(tree, node, state, weight, utility, value, score)
    utility += float(node.own_bias)
    _count(node, utility, score, variances, weight, proof)
    if proof != 0:
        utility = float(proof)
    _climb(tree, path, slots, depth, utility, score, variances, weight, proof, _seen(node))


@kernel
def join(tree, path, slots, depth):  # type: ignore[no-untyped-def]
    """Count a visit to the end of a path, a node of which the last edge has not heard all: the others tell it now."""
    index = np.int64(path[U(depth)])
    lock(tree, index)
    node = tree.nodes[U(index)]
    seen = _seen(node)
    visits, total, utility, _, score = seen
    variances = float(node.utility_variance), float(node.score_variance)
    _climb(tree, path, slots, depth, utility, score, variances, total / float(visits), np.int64(node.proof), seen)

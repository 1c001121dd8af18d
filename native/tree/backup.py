"""Backing up: the result of a visit goes from the leaf to the root.

The sums of a node are its own evaluation plus the statistics of its edges. With m a mean of the child's (utility,
value, score; for the other side to move) and W the child's weight:

    sum(node) = own_weight * (own + own_bias) - sum over edges of share * weight * m
    weight(edge) = W * edge_share(edge visits, child visits)

Proofs (Winands, Björnsson, Saito: Monte-Carlo Tree Search Solver, 2008): one won edge makes a node won, and only lost
edges make it lost.
"""

import math

import numpy as np

from yomi.native.bits import U, atomic_add
from yomi.native.jit import inlined, kernel
from yomi.native.tree.arrays import EXPANDED, LOST_EDGE, SUMS_BROKEN, VARIANCE_PLAYOUTS, WON_EDGE
from yomi.native.tree.bias import correct
from yomi.native.tree.child_weights import add_edge, edge_share, weigh
from yomi.native.tree.memory import lock, unlock
from yomi.native.tree.selection import all_lost

# At each node above the leaf, under its lock: remove the edge's old contribution from the sums, copy the child's
# statistics to the edge, add the new contribution. So every change below (a correction, a proof, visits of another
# line) reaches the node with its next visit.
#
# An edge is won if its child is lost for the side to move there, and lost if the child is won. A proven node keeps its
# exact mean. A lost edge counts nothing in its node's sums.


@inlined
def _add_own(tree, node, state, weight, utility, value, score):  # type: ignore[no-untyped-def]
    """Add the evaluation of the locked leaf `node` to its sums."""
    # From now on other threads may use the node.
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
    """Update the variances of the locked `node` by a result that its sums and visits include already."""
    of_utility, of_score = variances
    visits = float(node.visits)
    utility_off = utility - node.utility_sum / node.weight_sum
    score_off = score - node.score_sum / node.weight_sum
    # The distance from the new mean is (visits - 1) / visits of the distance from the old mean.
    unbiased = visits / max(1.0, visits - 1.0)
    share = min(1.0, weight / node.weight_sum)  # a proven loss or noise pruning may have taken weight away
    share = max(share, 1.0 / float(VARIANCE_PLAYOUTS))
    of_utility += utility_off * utility_off * unbiased
    of_score += score_off * score_off * unbiased
    node.utility_variance += np.float32((of_utility - node.utility_variance) * share)
    node.score_variance += np.float32((of_score - node.score_variance) * share)


@inlined
def _prove(node, proof):  # type: ignore[no-untyped-def]
    """Set the proof of the locked `node`: +1 won for its side to move, -1 lost."""
    node.proof = proof
    node.utility_sum = float(proof) * node.weight_sum
    node.value_sum = node.utility_sum
    node.utility_variance = 0.0


@inlined
def _mark_edge(tree, node, stat, child_proof):  # type: ignore[no-untyped-def]
    """Mark the edge `stat` of the locked `node` by its child's proof; return the node's own proof."""
    if child_proof < 0:
        stat.in_flight |= WON_EDGE
        return np.int64(1)
    # Nobody would play it, however often it was visited before its refutation.
    stat.in_flight |= LOST_EDGE
    add_edge(node, stat, -1.0)
    stat.weight = 0.0
    return np.int64(-1) if all_lost(tree, node) else np.int64(0)


@inlined
def _node_stats(node):  # type: ignore[no-untyped-def]
    """Return the statistics that a parent edge copies: visits, weight, mean utility, value and score."""
    total = node.weight_sum
    return np.int64(node.visits), total, node.utility_sum / total, node.value_sum / total, node.score_sum / total


@inlined
def report_fault(tree, fault):  # type: ignore[no-untyped-def]
    """Stop the search with a fault, SUMS_BROKEN or KEYS_BROKEN."""
    tree.counters[0].broken = fault
    tree.counters[0].stop = 1


@inlined
def _is_sound(stats):  # type: ignore[no-untyped-def]
    """Return whether the statistics are finite and have a weight."""
    _, total, utility, value, score = stats
    return total > 0.0 and math.isfinite(utility + value + score)


@inlined
def _update_edge(node, stat, stats):  # type: ignore[no-untyped-def]
    """Replace the statistics of the edge `stat` of the locked `node` by its child's."""
    visits, total, utility, value, score = stats
    add_edge(node, stat, -1.0)
    stat.weight = total * edge_share(float(stat.visits), float(visits))
    stat.utility = -utility
    stat.value = -value
    stat.score = -score
    add_edge(node, stat, 1.0)


@inlined
def _count(node, utility, score, variances, weight, proof):  # type: ignore[no-untyped-def]
    """Count a visit at the locked `node`, whose sums include its result already."""
    node.visits += 1
    node.weight_squares += weight * weight
    _add_spread(node, weight, utility, score, variances)
    if proof != 0:
        _prove(node, proof)


@kernel
def cancel_visits(tree, path, slots, depth, visits):  # type: ignore[no-untyped-def]
    """Cancel visits at the end of a path: reduce its edges' visits in flight, and the number of started playouts."""
    for level in range(U(depth)):
        index = np.int64(path[level])
        lock(tree, index)
        tree.stats[U(tree.nodes[U(index)].stats) + U(slots[level])].in_flight -= visits
        unlock(tree, index)
    atomic_add(tree.counters[0], "claimed", -visits)


@inlined
def _climb(tree, path, slots, depth, utility, score, variances, weight, proof, stats):  # type: ignore[no-untyped-def]
    """Carry the result of a visit from the locked last node of a path to the root."""
    # `utility`, `score`, `variances` (of both, within the result) and `weight` describe the result, for the side to
    # move at the last node. `proof` and `stats` (_node_stats) are the last node's.
    level = U(depth)
    below = np.int64(path[level])
    while level > U(0):
        # A fault: the nodes above keep their means.
        if not _is_sound(stats):
            unlock(tree, below)
            report_fault(tree, SUMS_BROKEN)
            cancel_visits(tree, path, slots, np.int64(level), 1)
            return
        level -= U(1)
        utility = -utility
        score = -score
        index = np.int64(path[level])
        # The child is locked until its parent is, so that an edge gets its child's statistics in order.
        lock(tree, index)
        unlock(tree, below)
        below = index
        node = tree.nodes[U(index)]
        stat = tree.stats[U(node.stats) + U(slots[level])]
        stat.in_flight -= 1
        stat.visits += 1
        # The result of a lost edge is ignored: the node keeps its mean.
        is_lost = stat.in_flight & LOST_EDGE != 0
        if is_lost:
            utility = node.utility_sum / node.weight_sum
            proof = np.int64(0)
        else:
            _update_edge(node, stat, stats)
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
        stats = _node_stats(node)
    unlock(tree, below)
    if not _is_sound(stats):
        report_fault(tree, SUMS_BROKEN)
    atomic_add(tree.counters[0], "playouts", 1)


@kernel
def back_up(tree, path, slots, depth, state, utility, value, score, variance, weight, proof):  # type: ignore[no-untyped-def]
    """Add the result of a visit to the leaf and to all nodes above it.

        leaf:  weight_sum += weight, utility_sum += weight * utility, ... ; visits += 1
        above: see the module's formulas; visits += 1

    All results are for the side to move at the leaf. With `solver`, value and utility are equal.

    Args:
        tree: the Tree.
        path: uint32[> depth], nodes from the root to the leaf.
        slots: uint16[>= depth], the edges between them.
        depth: number of edges.
        state: new state of the leaf, EXPANDED or TERMINAL.
        utility: see leaf_utility.
        value: win minus loss.
        score: expected score.
        variance: the evaluator's variance of the score.
        weight: of this evaluation.
        proof: of the leaf: +1 won for its side to move, -1 lost, 0 open.

    All callers pass float64: numba compiles this and all that it calls again for other types.
    """
    variances = 0.0, variance
    proof = np.int64(proof)
    leaf = np.int64(path[U(depth)])
    lock(tree, leaf)
    node = tree.nodes[U(leaf)]
    # State and first evaluation change under one lock: no thread sees one without the other.
    _add_own(tree, node, state, weight, utility, value, score)
    utility += float(node.own_bias)
    _count(node, utility, score, variances, weight, proof)
    if proof != 0:
        utility = float(proof)
    _climb(tree, path, slots, depth, utility, score, variances, weight, proof, _node_stats(node))


@kernel
def visit_shared(tree, path, slots, depth):  # type: ignore[no-untyped-def]
    """Count a visit to a shared node that has more visits than its last edge has seen: copy its statistics."""
    index = np.int64(path[U(depth)])
    lock(tree, index)
    node = tree.nodes[U(index)]
    stats = _node_stats(node)
    visits, total, utility, _, score = stats
    variances = np.float64(node.utility_variance), np.float64(node.score_variance)
    _climb(tree, path, slots, depth, utility, score, variances, total / float(visits), np.int64(node.proof), stats)

"""Weights of the children in a node's mean: bad moves count less than they were visited.

For the tried edges i by falling prior, with weight w_i, utility u_i, and W, U, P the weight, mean utility and total
prior of the edges before i:

    excess_i = w_i - LENIENCE * W * prior_i / P
    w_i -= excess_i * (1 - exp(-(U - u_i) / noise_pruning))         if excess_i > 0 and U > u_i
    z_i = (u_i - mean) * sqrt(PRECISION * sqrt(w_i))
    w_i *= (P(t_3 < z_i) + MIN_CHANCE) ** value_weighting           scaled to the same total

`share` of an edge is the new weight over the old. `edge_share` comes before: it gives an edge its part of the weight
of a node that several edges share. Source of the formulas above: KataGo's noise pruning and value weighting (docs of
v1.17), with its numbers.
"""

import math

import numpy as np

from yomi.native.bits import U
from yomi.native.jit import inlined, kernel
from yomi.native.tree.edges import edge_prior

# A search visits moves that prove bad, more so if noise made them look good. A player would not play them.

LENIENCE = 2.0  # multiple of the weight by prior that is not noise
PRECISION = 1.5
MIN_CHANCE = 1e-4


@inlined
def edge_share(edge_visits, child_visits):  # type: ignore[no-untyped-def]
    """Return the share of a child's weight that counts for an edge: sqrt(edge_visits / child_visits), 1 at most.

    Args:
        edge_visits: visits through the edge.
        child_visits: visits of the child, through all of its parents.
    """
    return math.sqrt(edge_visits / child_visits) if edge_visits < child_visits else 1.0


@inlined
def add_edge(node, stat, sign):  # type: ignore[no-untyped-def]
    """Add `sign` times the weighted statistics of an edge to the sums of the locked `node`."""
    weight = sign * float(stat.weight) * float(stat.share)
    node.weight_sum += weight
    node.utility_sum += weight * float(stat.utility)
    node.value_sum += weight * float(stat.value)
    node.score_sum += weight * float(stat.score)


@inlined
def _chance_below(z):  # type: ignore[no-untyped-def]
    """Return P(t < z) for Student's t with three degrees of freedom."""
    x = z / math.sqrt(3.0)
    return 0.5 + (x / (1.0 + x * x) + math.atan(x)) / math.pi


@kernel
def weigh(tree, node):  # type: ignore[no-untyped-def]
    """Recompute the shares of the tried edges of the locked `node`, if it has enough visits since the last time."""
    p = tree.parameters[0]
    if (p.noise_pruning == 0.0 and p.value_weighting == 0.0) or node.visits < node.weigh_at:
        return
    # The loop reads all tried edges: it runs only when the visits have grown by an eighth.
    node.weigh_at = node.visits + np.uint32(1) + node.visits // np.uint32(8)
    weight_sum = 0.0
    utility_sum = 0.0
    prior_sum = 0.0
    for i in range(U(node.tried)):  # by falling prior
        stat = tree.stats[U(node.stats) + i]
        if stat.weight == 0.0:  # not backed up yet, or proven lost
            continue
        # The edge's old share leaves the node's sums. The last loop adds the new one.
        add_edge(node, stat, -1.0)
        prior = edge_prior(tree.edges[U(node.edges) + i])
        weight = float(stat.weight)
        if prior_sum > 0.0 and p.noise_pruning > 0.0:
            gap = utility_sum / weight_sum - float(stat.utility)
            excess = weight - LENIENCE * weight_sum * prior / prior_sum
            if gap > 0.0 and excess > 0.0:
                weight -= excess * (1.0 - math.exp(-gap / p.noise_pruning))
        stat.share = weight / float(stat.weight)
        weight_sum += weight
        utility_sum += weight * float(stat.utility)
        prior_sum += prior
    if weight_sum == 0.0:
        return
    mean = utility_sum / weight_sum
    total = 0.0
    for i in range(U(node.tried)):
        stat = tree.stats[U(node.stats) + i]
        if stat.weight == 0.0:
            continue
        weight = float(stat.weight) * float(stat.share)
        z = (float(stat.utility) - mean) * math.sqrt(PRECISION * math.sqrt(weight))
        share = (_chance_below(z) + MIN_CHANCE) ** p.value_weighting
        stat.share *= np.float32(share)
        total += weight * share
    # The total weight of the children stays as it was.
    factor = np.float32(weight_sum / total)
    for i in range(U(node.tried)):
        stat = tree.stats[U(node.stats) + i]
        if stat.weight == 0.0:
            continue
        stat.share *= factor
        add_edge(node, stat, 1.0)

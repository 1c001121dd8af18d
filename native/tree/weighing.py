"""How much each move of a node counts in the node's mean: bad ones less than they were searched.

A search looks at moves that turn out to be bad, more so where noise or few visits made them look good; a player would
not play them. Two corrections take weight away from them. Where a move has more than twice the weight that its prior
would give it, beside those of greater prior, and yet looks worse than they do, the excess is noise. And the less likely
a move seems to be better than their mean, the less it counts. Source: KataGo's noise pruning and value weighting
(docs of v1.17), with its numbers.

Both look at all tried moves of a node. That is done where the visits have grown by an eighth; in between each edge
keeps the share of its weight that counts.
"""

import math

import numpy as np

from yomi.native.bits import U
from yomi.native.jit import inlined, kernel
from yomi.native.tree.edges import edge_prior

LENIENCE = 2.0
"""Of what the prior would give a move: so much is no noise."""
PRECISION = 1.5
"""The precision of a move's utility is this times the root of its weight."""
LEAST_CHANCE = 1e-4


@inlined
def add_edge(node, stat, sign):  # type: ignore[no-untyped-def]
    """Add to the sums of the locked `node` what one of its edges says; take it out if the sign is -1."""
    weight = sign * float(stat.weight) * float(stat.share)
    node.weight_sum += weight
    node.utility_sum += weight * float(stat.utility)
    node.value_sum += weight * float(stat.value)
    node.score_sum += weight * float(stat.score)


@inlined
def _chance_below(z):  # type: ignore[no-untyped-def]
    """Return the probability of less than z for Student's t with three degrees of freedom."""
    x = z / math.sqrt(3.0)
    return 0.5 + (x / (1.0 + x * x) + math.atan(x)) / math.pi


@kernel
def weigh(tree, node):  # type: ignore[no-untyped-def]
    """Decide anew what share of its weight each tried edge of the locked `node` counts with, if it is time."""
    p = tree.parameters[0]
    if (p.noise_pruning == 0.0 and p.value_weighting == 0.0) or node.visits < node.weigh_at:
        return
    node.weigh_at = node.visits + np.uint32(1) + node.visits // np.uint32(8)
    weight_sum = 0.0
    utility_sum = 0.0
    prior_sum = 0.0
    for i in range(U(node.tried)):  # by falling prior
        stat = tree.stats[U(node.stats) + i]
        if stat.weight == 0.0:  # nothing has come back, or it is proven lost
            continue
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
        share = (_chance_below(z) + LEAST_CHANCE) ** p.value_weighting
        stat.share *= np.float32(share)
        total += weight * share
    factor = np.float32(weight_sum / total)
    for i in range(U(node.tried)):
        stat = tree.stats[U(node.stats) + i]
        if stat.weight == 0.0:
            continue
        stat.share *= factor
        add_edge(node, stat, 1.0)

"""Correcting the evaluator where a search has found it wrong before.

An evaluator that misjudges some local situation does so wherever it arises: below every such node the search finds
something else than the node's own evaluation says. Nodes that the same two moves with the same surroundings led to
(yomi.native.game.pattern_key) share a bucket. It holds the mean of these differences, each weighted by a power of what
was searched; a share of it corrects the own evaluations of all nodes of the bucket. Source: KataGo's subtree value bias
correction (docs/KataGoMethods.md).
"""

import math

import numpy as np

from yomi.native.bits import U, free_lock, take_lock
from yomi.native.jit import inlined, kernel
from yomi.native.tree.arrays import LEAST_WEIGHT, NONE

KEPT_SHARE = 0.2
"""What a node that leaves the tree leaves in its bucket (KataGo's value)."""


@inlined
def bucket_of(tree, key):  # type: ignore[no-untyped-def]
    """Return the place of the bucket for a key; different keys may share one."""
    return np.uint32(U(key) & U(tree.biases.size - 1))


@kernel
def correct(tree, node):  # type: ignore[no-untyped-def]
    """Put what was found below the locked `node` into its bucket, and correct the node's sums by the bucket's mean."""
    if node.bucket == NONE:
        return
    own_weight = float(node.own_weight)
    weight = node.weight_sum - own_weight  # of what lies below
    spread_sum = 0.0
    spread_weight = 0.0
    if weight > LEAST_WEIGHT:
        own = float(node.own_utility)
        found = (node.utility_sum - own_weight * (own + float(node.own_bias))) / weight
        root = math.sqrt(weight)
        spread_weight = float(np.float32(root * math.sqrt(root)))  # KataGo's exponent is 0.85; roots are quicker
        spread_sum = float(np.float32((found - own) * spread_weight))
    bucket = tree.biases[U(node.bucket)]
    take_lock(bucket, "lock")
    bucket.sum += spread_sum - float(node.bucket_sum)
    bucket.weight += spread_weight - float(node.bucket_weight)
    mean = bucket.sum / bucket.weight if bucket.weight > LEAST_WEIGHT else 0.0
    free_lock(bucket, "lock")
    node.bucket_sum = spread_sum
    node.bucket_weight = spread_weight
    bias = np.float32(tree.parameters[0].bias_correction * mean)
    change = own_weight * float(bias - node.own_bias)
    node.own_bias = bias
    node.utility_sum += change
    if tree.parameters[0].solver:  # value and utility are one
        node.value_sum += change


@kernel
def forget(tree, node):  # type: ignore[no-untyped-def]
    """Take most of what a node that leaves the tree has put into its bucket out again."""
    if node.bucket != NONE and node.bucket_weight > 0.0:
        bucket = tree.biases[U(node.bucket)]
        bucket.sum -= (1.0 - KEPT_SHARE) * float(node.bucket_sum)
        bucket.weight -= (1.0 - KEPT_SHARE) * float(node.bucket_weight)

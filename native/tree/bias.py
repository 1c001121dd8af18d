"""Correction of systematic errors of the evaluator, as KataGo's subtree value bias correction (docs/KataGoMethods.md).

Nodes reached by the same two moves in the same surroundings (yomi.native.game.pattern_key) share a bucket. With, for
each node n,

    error(n) = mean utility below n - own utility of n,    w(n) = (weight below n) ** 0.75

a bucket contains sum(w * error) and sum(w). `bias_correction` times their quotient is added to the own utility of each
node.
"""

import math

import numpy as np

from yomi.native.bits import U, free_lock, take_lock
from yomi.native.jit import inlined, kernel
from yomi.native.tree.arrays import MIN_WEIGHT, NONE

# An evaluator that misjudges a local pattern does so wherever the pattern occurs.

# Share of its part that a dropped node leaves in its bucket (KataGo's value).
KEPT_SHARE = 0.2


@inlined
def bucket_of(tree, key):  # type: ignore[no-untyped-def]
    """Return the index of a key's bucket. Different keys may share a bucket."""
    return np.uint32(U(key) & U(tree.biases.size - 1))


@kernel
def correct(tree, node):  # type: ignore[no-untyped-def]
    """Update the part of the locked `node` in its bucket and correct the node's sums by the bucket's mean."""
    if node.bucket == NONE:
        return
    own_weight = float(node.own_weight)
    weight = node.weight_sum - own_weight  # of the nodes below
    spread_sum = 0.0
    spread_weight = 0.0
    if weight > MIN_WEIGHT:
        own = float(node.own_utility)
        found = (node.utility_sum - own_weight * (own + float(node.own_bias))) / weight
        root = math.sqrt(weight)
        spread_weight = float(np.float32(root * math.sqrt(root)))  # KataGo's exponent is 0.85; square roots are faster
        spread_sum = float(np.float32((found - own) * spread_weight))
    # Only the difference from the node's former part is added, so that a node counts once.
    bucket = tree.biases[U(node.bucket)]
    take_lock(bucket, "lock")
    bucket.sum += spread_sum - float(node.bucket_sum)
    bucket.weight += spread_weight - float(node.bucket_weight)
    mean = bucket.sum / bucket.weight if bucket.weight > MIN_WEIGHT else 0.0
    free_lock(bucket, "lock")
    node.bucket_sum = spread_sum
    node.bucket_weight = spread_weight
    bias = np.float32(tree.parameters[0].bias_correction * mean)
    change = own_weight * float(bias - node.own_bias)
    node.own_bias = bias
    node.utility_sum += change
    if tree.parameters[0].solver:  # value and utility are equal
        node.value_sum += change


@kernel
def forget(tree, node):  # type: ignore[no-untyped-def]
    """Take 1 - KEPT_SHARE of the part of a dropped node out of its bucket."""
    if node.bucket != NONE and node.bucket_weight > 0.0:
        bucket = tree.biases[U(node.bucket)]
        bucket.sum -= (1.0 - KEPT_SHARE) * float(node.bucket_sum)
        bucket.weight -= (1.0 - KEPT_SHARE) * float(node.bucket_weight)

"""The evaluation cache: what an evaluator said of a position, by the position's key."""

import numpy as np

from native.bits import U, atomic_exchange, atomic_store
from native.jit import kernel


@kernel
def probe_cache(tree, key, policy_indices, count, priors, values):  # type: ignore[no-untyped-def]
    """Read the evaluation under `key` into `priors` (normalised over the given policy indices) and `values`."""
    slot = U(key) & U(tree.cache_keys.size - 1)
    if tree.cache_keys.size < 2 or tree.cache_keys[slot] != key:
        return False
    while atomic_exchange(tree.cache_locks, slot, 1) != 0:
        pass
    found = tree.cache_keys[slot] == key
    total = np.float32(0.0)
    if found:
        for i in range(U(count)):
            prior = np.float32(tree.cache_priors[slot, U(policy_indices[i])])
            priors[i] = prior
            total += prior
        for i in range(4):
            values[i] = tree.cache_values[slot, U(i)]
    atomic_store(tree.cache_locks, slot, 0)
    if not found or total <= np.float32(0.0):
        return False
    for i in range(U(count)):
        priors[i] /= total
    return True


@kernel
def store_cache(tree, key, policy_indices, count, priors, values):  # type: ignore[no-untyped-def]
    """Keep an evaluation, replacing whatever stands in its place."""
    if tree.cache_keys.size < 2:
        return
    slot = U(key) & U(tree.cache_keys.size - 1)
    while atomic_exchange(tree.cache_locks, slot, 1) != 0:
        pass
    tree.cache_keys[slot] = key
    for i in range(U(tree.cache_priors.shape[1])):
        tree.cache_priors[slot, i] = 0
    for i in range(U(count)):
        prior = min(np.float32(65535.0), priors[i] * np.float32(65535.0) + np.float32(0.5))
        tree.cache_priors[slot, U(policy_indices[i])] = np.uint16(prior)
    for i in range(4):
        tree.cache_values[slot, U(i)] = values[i]
    atomic_store(tree.cache_locks, slot, 0)

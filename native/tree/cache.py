"""The evaluation cache: stores the priors and values of positions by their keys."""

import numpy as np

from yomi.native.bits import U, free_lock, take_lock
from yomi.native.jit import inlined, kernel
from yomi.native.tree.arrays import NO_INDEX, VALUES
from yomi.native.tree.edges import quantized_prior

# Priors are stored by policy index, or in the order of the position's moves with their indices (`Tree.cache_moves`).


@inlined
def _has_moves(tree, slot, policy_indices, count):  # type: ignore[no-untyped-def]
    """Return whether the entry contains priors of exactly these moves, in this order."""
    room = U(tree.cache_moves.shape[1])
    if U(count) > room or (U(count) < room and tree.cache_moves[slot, U(count)] != NO_INDEX):
        return False
    for i in range(U(count)):
        if tree.cache_moves[slot, i] != policy_indices[i]:
            return False
    return True


@kernel
def probe_cache(tree, key, policy_indices, count, priors, values):  # type: ignore[no-untyped-def]
    """Read the evaluation of `key`; return whether it was found.

    `priors` are normalised over the given policy indices, `values` is float32[VALUES].
    """
    slot = U(key) & U(tree.cache_keys.size - 1)
    # A look without the lock: most probes miss.
    if tree.cache_keys.size < 2 or tree.cache_keys[slot] != key:
        return False
    in_order = tree.cache_moves.shape[1] > 0
    take_lock(tree.cache_locks, slot)
    found = tree.cache_keys[slot] == key
    if found and in_order:
        found = _has_moves(tree, slot, policy_indices, count)
    total = np.float32(0.0)
    if found:
        for i in range(U(count)):
            prior = np.float32(tree.cache_priors[slot, i if in_order else U(policy_indices[i])])
            priors[i] = prior
            total += prior
        for i in range(VALUES):
            values[i] = tree.cache_values[slot, U(i)]
    free_lock(tree.cache_locks, slot)
    # Equal keys with other moves: nothing to normalise.
    if not found or total <= np.float32(0.0):
        return False
    for i in range(U(count)):
        priors[i] /= total
    return True


@kernel
def store_cache(tree, key, policy_indices, count, priors, values):  # type: ignore[no-untyped-def]
    """Store an evaluation, over the older one in its entry. Do nothing if it has more moves than an entry can hold."""
    room = U(tree.cache_moves.shape[1])
    if tree.cache_keys.size < 2 or (room > U(0) and U(count) > room):
        return
    # One entry for each slot: the newest evaluation replaces any older one.
    slot = U(key) & U(tree.cache_keys.size - 1)
    take_lock(tree.cache_locks, slot)
    tree.cache_keys[slot] = key
    if room > U(0):
        for i in range(U(count)):
            tree.cache_moves[slot, i] = policy_indices[i]
            tree.cache_priors[slot, i] = np.uint16(quantized_prior(priors[i]))
        if U(count) < room:
            tree.cache_moves[slot, U(count)] = NO_INDEX
    else:
        # Moves that are not legal get prior 0.
        for i in range(U(tree.cache_priors.shape[1])):
            tree.cache_priors[slot, i] = 0
        for i in range(U(count)):
            tree.cache_priors[slot, U(policy_indices[i])] = np.uint16(quantized_prior(priors[i]))
    for i in range(VALUES):
        tree.cache_values[slot, U(i)] = values[i]
    free_lock(tree.cache_locks, slot)

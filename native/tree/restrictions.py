"""Moves that are banned some moves below the root (Tree.banned_until). They get no edges.

A position of the same stones has other edges at another depth, so its key depends on the depth there.
"""

import numpy as np

from yomi.native.bits import U, mixed
from yomi.native.jit import inlined


@inlined
def is_banned_below(tree, move, depth):  # type: ignore[no-untyped-def]
    """Return whether a move is banned in positions `depth` moves below the root. The root has bans of its own."""
    return depth > 0 and depth < np.int64(tree.banned_until[U(depth) & U(1), U(move)])


@inlined
def restricted_key(tree, key, depth):  # type: ignore[no-untyped-def]
    """Return the key of a position `depth` moves below the root: its usual `key` where no moves are banned."""
    counters = tree.counters[0]
    if depth >= counters.ban_depth:
        return U(key)
    return mixed(U(key) ^ mixed(U(counters.ban_key) + U(depth)))

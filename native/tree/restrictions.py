"""Moves that are banned some moves below the root (Tree.banned_until). They get no edges.

The same board has different edges at different depths. Its key therefore depends on the depth.
"""

import numpy as np

from yomi.native.bits import U, mixed
from yomi.native.jit import inlined


@inlined
def is_banned_below(tree, move, depth):  # type: ignore[no-untyped-def]
    """Return whether a move is banned in positions `depth` moves below the root. The root's bans are in Tree.banned."""
    return depth > 0 and depth < np.int64(tree.banned_until[U(depth) & U(1), U(move)])


@inlined
def restricted_key(tree, key, depth):  # type: ignore[no-untyped-def]
    """Return the key of a position `depth` moves below the root: its usual `key` if no move is banned there."""
    counters = tree.counters[0]
    if depth >= counters.ban_depth:
        return U(key)
    return mixed(U(key) ^ mixed(U(counters.ban_key) + U(depth)))

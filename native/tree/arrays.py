"""The arrays that a tree and a batch of leaves consist of.

A tree has two tiers. Every legal move of an expanded node is an edge of 4 bytes: prior and move. Only edges that were
tried have statistics (16 bytes), in the same order as the edges: edges[0:tried] of a node belong to stats[0:tried], and
the edge after them always has the greatest prior of the untried. Selection so scans the tried edges and one candidate.

Several threads work on one tree. Each node has a lock that guards its record, its edges and its statistics; it is a
byte of the record, which fills a cache line, so that to take a lock is to fetch the node, and no two share a line.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from yomi.native.tree.parameters import PARAMETERS_DTYPE

CACHE_LINE = 64
"""Bytes."""
NONE = 0xFFFFFFFF
"""No node, no block."""
RESERVED = 0xFFFFFFFE
"""Child of an edge whose node one thread is making or looking up; no other thread can follow the edge until then."""

PENDING, EXPANDED, TERMINAL, UNTOUCHED = 0, 1, 2, 3
"""States of a node: waiting for its evaluation; has edges; the game is over here; a root nobody has descended to."""


def _of_size(fields: Sequence[tuple[str, type[np.generic]]], size: int) -> np.dtype[Any]:
    """Return a record of these fields that takes `size` bytes, so that none lies across cache lines."""
    packed = np.dtype(list(fields), align=True)
    offsets = [packed.fields[name][1] for name, _ in fields]  # type: ignore[index]  # it has fields
    names, kinds = zip(*fields, strict=True)
    return np.dtype({"names": names, "formats": kinds, "offsets": offsets, "itemsize": size}, align=True)


NODE_DTYPE = _of_size(
    [
        # of all evaluations below and at this node, each by its weight, for the side to move here; what lies below
        # edges that are proven lost is left out
        ("weight_sum", np.float64),
        ("utility_sum", np.float64),
        ("value_sum", np.float64),  # expected win minus loss, each in [-1, 1]
        ("score_sum", np.float64),
        ("weight_squares", np.float64),
        ("key", np.uint64),  # under which lines share the node: see native/tree/sharing.py
        ("utility_variance", np.float32),  # of about the last VARIANCE_PLAYOUTS
        ("score_variance", np.float32),  # likewise; the evaluator's uncertainty is part of it
        ("edges", np.uint32),  # first edge in the pool
        ("stats", np.uint32),  # first record in the pool, of as many as the next power of two from `tried` on
        ("visits", np.uint32),
        ("tried_prior", np.float32),  # sum of the priors of the tried edges
        ("own_utility", np.float32),  # what the evaluator said of this node
        ("own_weight", np.float32),  # weight of this evaluation
        ("own_bias", np.float32),  # what its utility is corrected by: see native/tree/bias.py
        ("bucket", np.uint32),  # place in Tree.biases; NONE for none
        ("bucket_sum", np.float32),  # what this node has put there
        ("bucket_weight", np.float32),
        ("next", np.uint32),  # the next of the nodes in one place of Tree.shared, from 1 on; 0 for none
        ("weigh_at", np.uint32),  # visits at which the shares of the edges are decided anew
        ("edge_count", np.uint16),  # edges that there are: see native/tree/expansion.py
        ("legal", np.uint16),  # legal moves
        ("tried", np.uint16),
        ("state", np.uint8),
        ("lock", np.uint8),
        ("proof", np.int8),  # +1 proven won for the side to move, -1 lost, 0 open
    ],
    2 * CACHE_LINE,
)
NODE_BYTES = NODE_DTYPE.itemsize
LOCK_BYTE = NODE_DTYPE.fields["lock"][1]  # type: ignore[index]  # it has fields
"""Place of the lock in a node."""
VARIANCE_PLAYOUTS = 1 << 20
"""Playouts after which a node's variances begin to forget: one in so many is what a 32-bit mean still takes in."""
STATS_DTYPE = _of_size(
    [
        ("child", np.uint32),
        ("visits", np.uint32),
        # as its child's sums were when a playout last came back: means, for the side to move at the parent
        ("utility", np.float32),
        ("value", np.float32),
        ("score", np.float32),
        ("weight", np.float32),  # of the child's evaluations; 0 if the edge is proven lost
        ("share", np.float32),  # of this weight that counts in the parent's sums: see native/tree/weighing.py
        ("in_flight", np.uint32),  # playouts that have passed and are not backed up yet; and WON_EDGE, LOST_EDGE
    ],
    CACHE_LINE // 2,
)
LEAST_WEIGHT = 1e-3
"""Less than this is the rounding of sums."""
IN_FLIGHT = np.uint32(0x3FFFFFFF)
"""The part of `in_flight` that counts."""
WON_EDGE = np.uint32(0x40000000)
"""Mark in `in_flight`: the child is proven lost for its side to move, so that this edge wins."""
LOST_EDGE = np.uint32(0x80000000)
"""Mark in `in_flight`: the child is proven won for its side to move."""
NO_INDEX = 0xFFFF
"""No index of the policy."""
BIAS_DTYPE = np.dtype([("sum", np.float64), ("weight", np.float64), ("lock", np.uint32)], align=True)
NODES_A_BUCKET = 4
"""Nodes of a large tree for which there is one bucket of corrections."""
LEAST_BUCKETS = 1 << 14
EDGE_BYTES = 4
"""An edge is a uint32: see native/tree/edges.py."""
SPARE_EDGES = 4096
"""Edges that a pool has beyond the mean: one node may have many."""

STATS_CLASSES = 12
STATS_A_NODE = 2.0


def _apart(*groups: dict[str, Any]) -> np.dtype[Any]:
    """Return a record of the fields named; groups lie two cache lines apart.

    Threads that read a field must not wait for each other because its neighbor was written.
    """
    names, kinds, offsets = [], [], []
    for number, group in enumerate(groups):
        offset = number * 2 * CACHE_LINE
        for name, kind in group.items():
            names.append(name)
            kinds.append(kind)
            offsets.append(offset)
            offset += np.dtype(kind).itemsize
    record = np.dtype({"names": names, "formats": kinds, "offsets": offsets}, align=True)
    return np.dtype((np.record, record))  # so that Python reads fields as kernels do


COUNTERS_DTYPE = _apart(
    {
        "root": np.int64,
        "full": np.int64,  # an allocation has failed: the tree must be pruned before it can grow
        "broken": np.int64,  # SUMS_BROKEN or KEYS_BROKEN: a fault of the search was found, which has stopped it
        "stop": np.int64,  # search threads return as soon as they see it
        "claim_limit": np.int64,  # playouts that may be begun
        "bans": np.int64,  # whether any root move is banned
        "max_depth": np.int64,
        "most_weight": np.float64,  # of an evaluation: that of a finished game
        "score_center": np.float64,  # what dynamic_score_utility is measured from, for the side to move at the root
    },
    {"claimed": np.int64},  # playouts begun since the search started
    {"playouts": np.int64},  # playouts backed up since the search started
    {"node_top": np.int64},
    {"edge_top": np.int64},
    {
        "moves_made": np.int64,
        "evaluated": np.int64,  # positions that came back from the evaluator since the search started
    },
    {
        "stats_lock": np.int64,  # guards what follows
        "stats_top": np.int64,
        # heads of the free lists of statistics blocks, by class: those of class c hold 2 ** c records
        "free_stats": (np.int64, (STATS_CLASSES,)),
    },
)
"""What changes while a tree grows."""
SUMS_BROKEN, KEYS_BROKEN = 1, 2
"""Faults in `broken`: a node's sums are not finite or have no weight; a node stands for another position (the checked
build alone looks for that: CHECKED)."""

VALUE, SCORE, STDEV, LEAD, VALUE_ERROR, SCORE_ERROR = range(6)
"""Columns of Batch.values. Utility is made of the score that the game would end with and its deviation; what is carried
up the tree and reported as the score is the lead, the points that would make the game even."""
VALUES = 6


class Tree(NamedTuple):
    """The arrays of one tree. Sizes are fixed when it is made; see `make_tree`."""

    nodes: Any
    """NODE_DTYPE[node_capacity]"""
    locks: Any
    """uint8[node_capacity * NODE_BYTES]: the bytes of the nodes, of which LOCK_BYTE of each is its lock"""
    edges: Any
    """uint32[edge_capacity]: see native/tree/edges.py"""
    stats: Any
    """STATS_DTYPE[stats_capacity]"""
    counters: Any
    """COUNTERS_DTYPE[1]"""
    parameters: Any
    """PARAMETERS_DTYPE[1]; kernels only read them"""
    banned: Any
    """uint8[65536]: moves not to be tried at the root, by move"""
    shared: Any
    """uint32[a power of two]: the first node of each place, from 1 on: see native/tree/sharing.py"""
    biases: Any
    """BIAS_DTYPE[a power of two]: see native/tree/bias.py"""
    cache_keys: Any
    """uint64[cache_capacity]; 0 is an empty entry. The capacity is a power of two"""
    cache_locks: Any
    """uint32[cache_capacity]"""
    cache_values: Any
    """float32[cache_capacity, VALUES]: as Batch.values"""
    cache_priors: Any
    """uint16[cache_capacity, policy_size]: priors, quantised to PRIOR_SCALE, by policy index without symmetry; or
    [cache_capacity, K]: in the order of the position's moves"""
    cache_moves: Any
    """uint16[cache_capacity, K]: policy index of each prior, NO_INDEX after the last; K is 0 where these stand by it"""


class Batch(NamedTuple):
    """One batch of leaves on its way from gather through the evaluator to scatter. B rows, P the policy's length.

    A leaf takes one row, or eight where symmetries are averaged.
    """

    node: Any
    """uint32[B]: the leaf of each row"""
    path: Any
    """uint32[B, D]: the nodes from the root to the leaf of each leaf's first row, both included"""
    slots: Any
    """uint16[B, D]: the edge that leads on from each of them"""
    depth: Any
    """int32[B]: edges of this path"""
    is_root: Any
    """uint8[B]: 1 where the leaf is the root itself"""
    symmetry: Any
    """int32[B]: how the network sees the row"""
    keys: Any
    """uint64[B]"""
    moves: Any
    """uint16[B, M]: legal moves of the leaf"""
    move_count: Any
    """int32[B]"""
    indices: Any
    """uint16[B, M]: policy index of each legal move under the row's symmetry"""
    plain_indices: Any
    """uint16[B, M]: the same without symmetry, in a leaf's first row, where there is a cache"""
    planes: Any
    """float32[B, ...]: the network's first input; float32[B, 0, ...] if nobody reads it"""
    extras: Any
    """float32[B, E]: the network's second input; float32[B, 0] if nobody reads it"""
    bits: Any
    """uint64[B, W]: GameSpec.bits of each row, from bit 0 of word 0 on; uint64[B, 0] if nobody reads them"""
    positions: Any
    """records[B] where the evaluator wants positions, else records[0]"""
    logits: Any
    """float32[B, P]: written by the evaluator, in the row's symmetry"""
    values: Any
    """float32[B, VALUES]: written by the evaluator for the side to move: win minus loss in [-1, 1] at VALUE, expected
    score at SCORE, the score's standard deviation at STDEV, lead at LEAD; at VALUE_ERROR and SCORE_ERROR how far value
    and score are expected to be from what a search would find, both 0 if the evaluator does not say"""
    ownership: Any
    """float32[B, A]: written by the evaluator for the side to move, in the row's symmetry, in [-1, 1]"""


GOES_ON, IS_NEW, JOINS, WAITS = 0, 1, 2, 3
"""Kinds of groups of visits. GOES_ON: the node is in the tree. IS_NEW: the node was allocated for this group, which has
reserved the edge to it. JOINS: the node has more visits than the edge has seen. WAITS: another thread has reserved the
edge, so that these visits are cancelled."""
GROUP_DTYPE = np.dtype(
    [
        ("node", np.uint32),
        ("depth", np.int32),
        ("visits", np.int32),
        ("move", np.uint16),  # that leads to the node
        ("slot", np.uint16),  # of the edge that does
        ("kind", np.uint8),  # GOES_ON, IS_NEW, JOINS or WAITS
    ],
    align=True,
)
"""Visits that go down the tree together: see native/tree/descent.py."""
MOST_GROUPS = 256
"""Visits of one descent, at most."""
LEAST_PATH = 1024
"""Nodes that a path has room for at least: games that keep no history end before."""


class Worker(NamedTuple):
    """What one search thread needs for itself."""

    moves: Any
    """uint16[M]: the Board's (yomi.native.game_calls)"""
    priors: Any
    """float32[M]"""
    weights: Any
    """float32[M]: one row's part of `priors`, before it is scaled"""
    indices: Any
    """uint16[M]: the Board's"""
    facts: Any
    """FACTS_DTYPE[1]: the Board's"""
    values: Any
    """float32[VALUES]: one leaf's evaluation, as Batch.values"""
    rng: Any
    """uint64[1]"""
    ownership: Any
    """float64[A + 1]: the Board's; the last entry is the number of leaves"""
    groups: Any
    """GROUP_DTYPE[MOST_GROUPS]: a stack of those that are still to go on"""
    line: Any
    """uint16[D]: the Board's; the moves from the root to the current group"""
    path: Any
    """uint32[D]: the nodes that they lead through, the root first"""
    slots: Any
    """uint16[D]: the edges"""


def bytes_a_node(mean_edges: float) -> float:
    """Return the bytes that a node takes with its edges, their statistics and what it may be found by."""
    found_by = BIAS_DTYPE.itemsize / NODES_A_BUCKET + np.dtype(np.uint32).itemsize
    return NODE_BYTES + mean_edges * EDGE_BYTES + STATS_A_NODE * STATS_DTYPE.itemsize + found_by


def make_tree(memory: int, mean_edges: float, cache_size: int, policy_size: int, cached_moves: int = 0) -> Tree:
    """Make a tree of at most `memory` bytes and its evaluation cache.

    Args:
        memory: bytes for nodes, edges and statistics. The system hands out pages as the tree grows. No more is
            used than 2 ** 32 edges need (17 GiB on 19x19).
        mean_edges: expected number of legal moves of a node; decides how the memory is shared out.
        cache_size: bytes for the cache; 0 for none.
        policy_size: length of the policy vector.
        cached_moves: see GameSpec.
    """
    capacity = max(64, int(memory / bytes_a_node(mean_edges)))
    capacity = min(capacity, int((NONE - SPARE_EDGES) / max(mean_edges, STATS_A_NODE)))  # what 32 bits can name
    entry_bytes = 4 * cached_moves + 32 if cached_moves else 2 * policy_size + 32
    entries = 1 << max(0, (cache_size // entry_bytes).bit_length() - 1)  # a power of two; 1 is no cache
    priors = cached_moves or policy_size
    nodes = _at_cache_line(capacity, NODE_DTYPE)
    tree = Tree(
        nodes=nodes,
        locks=nodes.view(np.uint8),
        edges=np.zeros(int(capacity * mean_edges) + SPARE_EDGES, np.uint32),
        stats=_at_cache_line(int(capacity * STATS_A_NODE) + 64, STATS_DTYPE),
        counters=np.zeros(1, COUNTERS_DTYPE),
        parameters=np.zeros(1, PARAMETERS_DTYPE),
        banned=np.zeros(65536, np.uint8),
        shared=np.zeros(1 << capacity.bit_length() - 1, np.uint32),
        biases=np.zeros(max(LEAST_BUCKETS, 1 << (capacity // NODES_A_BUCKET).bit_length() - 1), BIAS_DTYPE),
        cache_keys=np.zeros(entries, np.uint64),
        cache_locks=np.zeros(entries, np.uint32),
        cache_values=np.zeros((entries, VALUES), np.float32),
        cache_priors=np.zeros((entries, priors if entries > 1 else 1), np.uint16),
        cache_moves=np.zeros((entries, cached_moves), np.uint16),
    )
    tree.counters[0].free_stats[:] = NONE
    return tree


def _at_cache_line(count: int, dtype: np.dtype[Any]) -> npt.NDArray[Any]:
    """Return zeros that begin at a cache line, of which a node fills one."""
    spare = np.zeros(count * dtype.itemsize + CACHE_LINE, np.uint8)
    first = -spare.ctypes.data % CACHE_LINE
    return spare[first : first + count * dtype.itemsize].view(dtype)

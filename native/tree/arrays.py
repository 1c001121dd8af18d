"""The arrays of a search tree and of a batch of leaves. The lock of a node guards its record, its edges and its
statistics.

Every legal move of an expanded node is an edge of 4 bytes: prior and move. Only tried edges have statistics, 32 bytes
each. edges[0:tried] of a node belong to stats[0:tried].
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from yomi.native.spec import GameSpec

# The edge after the tried edges has the greatest prior of the untried edges, so that selection reads the tried edges
# and one candidate. Several threads work on one tree.

# The search parameters that kernels read as `tree.parameters[0].NAME`. A field has the name of its setting. To add one,
# add it here and to the options (engine/options.py).
PARAMETERS_DTYPE = np.dtype(
    (
        # A np.record, so that Python reads fields as kernels do.
        np.record,
        np.dtype(
            [
                ("c_puct", np.float64),
                ("c_puct_log", np.float64),
                ("c_puct_base", np.float64),
                ("root_c_puct", np.float64),
                ("root_c_puct_base", np.float64),
                ("fpu_reduction", np.float64),
                ("root_fpu_reduction", np.float64),
                ("fpu_from_mean", np.bool_),  # first-play urgency: from the mean utility alone
                ("forced_playouts", np.float64),  # a tried root move gets at least sqrt(this * prior * playouts)
                ("halving", np.bool_),  # the root distributes playouts evenly
                ("virtual_loss", np.float64),
                ("graph", np.bool_),  # transpositions share a node
                ("wide_root_noise", np.float64),  # widens exploration at the root
                # Share of the root's visits that follow Tree.human; the report ignores extra visits of the first kind.
                ("human_root_weightless", np.float64),
                ("human_root_weightful", np.float64),
                ("human_c_puct", np.float64),  # exploration of these visits
                ("human_c_puct_permanent", np.float64),  # times the square root of the visits
                ("uncertainty", np.bool_),  # weight evaluations by the evaluator's predicted error
                ("bias_correction", np.float64),  # share of the mean error that is corrected: native/tree/bias.py
                ("noise_pruning", np.float64),  # native/tree/child_weights.py
                ("value_weighting", np.float64),
                ("spread_scale", np.float64),  # how strongly the spread of utilities scales exploration
                ("score_utility", np.float64),
                ("dynamic_score_utility", np.float64),
                ("score_unit", np.float64),  # points; scale of the score utility
                ("policy_temperature", np.float64),
                ("root_policy_temperature", np.float64),
                ("symmetry", np.int64),  # a symmetry or RANDOM_SYMMETRY; unused if rows_per_leaf is 8
                ("rows_per_leaf", np.int64),  # 1, or 8 to average all symmetries
                ("ownership", np.bool_),  # sum up ownership
                ("move_ownership", np.bool_),  # also its squares, and both for each root move
                ("solver", np.bool_),  # prove nodes from finished games of value 1 or -1
            ],
            align=True,
        ),
    )
)
RANDOM_SYMMETRY = -1


CACHE_LINE = 64  # bytes
NONE = 0xFFFFFFFF  # no node, or no block of statistics
# Child of an edge whose node a thread is creating. No other thread can follow the edge until it is done.
RESERVED = 0xFFFFFFFE

# States of a node: awaits its evaluation; has edges; the game is over; a root without any visit.
PENDING, EXPANDED, TERMINAL, UNTOUCHED = 0, 1, 2, 3


def _of_size(fields: Sequence[tuple[str, type[np.generic]]], size: int) -> np.dtype[Any]:
    """Return an aligned record type of `size` bytes with these fields."""
    # The size divides or is a multiple of a cache line: no field lies across two lines.
    packed = np.dtype(list(fields), align=True)
    offsets = [packed.fields[name][1] for name, _ in fields]  # type: ignore[index]  # it has fields
    names, kinds = zip(*fields, strict=True)
    return np.dtype({"names": names, "formats": kinds, "offsets": offsets, "itemsize": size}, align=True)


# The lock is a byte of the record, and a record fills two cache lines: taking the lock fetches the node.
NODE_DTYPE = _of_size(
    [
        # Sums over all evaluations in the subtree, times their weights, for the side to move. Subtrees of lost edges
        # are left out.
        ("weight_sum", np.float64),
        ("utility_sum", np.float64),
        ("value_sum", np.float64),  # expected win minus loss, each in [-1, 1]
        ("score_sum", np.float64),
        ("weight_squares", np.float64),
        ("key", np.uint64),  # position and history: native/tree/transpositions.py
        ("utility_variance", np.float32),  # of about the last VARIANCE_PLAYOUTS playouts
        ("score_variance", np.float32),  # of the same playouts; includes the evaluator's uncertainty
        ("edges", np.uint32),  # first edge in the pool
        ("stats", np.uint32),  # first record in the pool; the block's size is a power of two
        ("visits", np.uint32),
        ("tried_prior", np.float32),  # sum of the priors of the tried edges
        ("own_utility", np.float32),  # the evaluation of the node itself
        ("own_weight", np.float32),  # its weight
        ("own_bias", np.float32),  # its correction: native/tree/bias.py
        ("bucket", np.uint32),  # index into Tree.biases, or NONE
        ("bucket_sum", np.float32),  # this node's part of the bucket
        ("bucket_weight", np.float32),
        ("next", np.uint32),  # next node of the same place of Tree.shared, counted from 1; 0: none
        ("weigh_at", np.uint32),  # visits at which child_weights.weigh runs next
        ("edge_count", np.uint16),  # may be less than `legal`: native/tree/expansion.py
        ("legal", np.uint16),  # legal moves
        ("tried", np.uint16),
        ("state", np.uint8),
        ("lock", np.uint8),
        ("proof", np.int8),  # for the side to move: +1 won, -1 lost, 0 open
    ],
    2 * CACHE_LINE,
)
NODE_BYTES = NODE_DTYPE.itemsize
# Offset of the lock in a node's record.
LOCK_BYTE = NODE_DTYPE.fields["lock"][1]  # type: ignore[index]  # it has fields
# Playouts over which the variances of a node average. A float32 mean ignores smaller weights.
VARIANCE_PLAYOUTS = 1 << 20
STATS_DTYPE = _of_size(
    [
        ("child", np.uint32),
        ("visits", np.uint32),
        # The child's means at this edge's last visit, for the side to move at the parent.
        ("utility", np.float32),
        ("value", np.float32),
        ("score", np.float32),
        ("weight", np.float32),  # of the child's evaluations; 0 if the edge is proven lost
        ("share", np.float32),  # part of the weight that counts at the parent: native/tree/child_weights.py
        ("in_flight", np.uint32),  # visits that are not backed up yet, and the bits WON_EDGE and LOST_EDGE
    ],
    CACHE_LINE // 2,
)
MIN_WEIGHT = 1e-3  # smaller weights are rounding errors of sums
IN_FLIGHT = np.uint32(0x3FFFFFFF)  # mask of the number in `in_flight`
# Bit of `in_flight`: the child is proven lost for its side to move, so this edge wins.
WON_EDGE = np.uint32(0x40000000)
# Bit of `in_flight`: the child is proven won for its side to move.
LOST_EDGE = np.uint32(0x80000000)
NO_INDEX = 0xFFFF  # fills unused places of Tree.cache_moves
BIAS_DTYPE = np.dtype([("sum", np.float64), ("weight", np.float64), ("lock", np.uint32)], align=True)
NODES_PER_BUCKET = 4  # nodes per bucket of corrections
MIN_BUCKETS = 1 << 14
EDGE_BYTES = 4  # see native/tree/edges.py
SPARE_EDGES = 4096  # extra edges of a pool: one node may have many more than the mean

STATS_CLASSES = 12
STATS_PER_NODE = 2.0


def _apart(*groups: dict[str, Any]) -> np.dtype[Any]:
    """Return a record type with the fields of all groups. Each group starts two cache lines after the one before."""
    names, kinds, offsets = [], [], []
    # Threads that read a field must not wait because another thread writes its neighbor.
    for number, group in enumerate(groups):
        offset = number * 2 * CACHE_LINE
        for name, kind in group.items():
            names.append(name)
            kinds.append(kind)
            offsets.append(offset)
            offset += np.dtype(kind).itemsize
    record = np.dtype({"names": names, "formats": kinds, "offsets": offsets}, align=True)
    # A np.record, so that Python reads fields as kernels do.
    return np.dtype((np.record, record))


# State that changes while a tree grows.
COUNTERS_DTYPE = _apart(
    {
        "root": np.int64,
        "full": np.int64,  # an allocation failed: the tree cannot grow until it is pruned
        "broken": np.int64,  # 0, SUMS_BROKEN or KEYS_BROKEN; a fault stops the search
        "stop": np.int64,  # search threads return when it is set
        "claim_limit": np.int64,  # playouts that may start
        "bans": np.int64,  # 1 if any root move is banned
        "prior_left": np.float64,  # if so: the sum of the priors of the root's untried moves that are not banned
        "goals": np.int64,  # 1 if any root move has a goal (Tree.goals)
        "human": np.int64,  # 1 if some visits of the root follow Tree.human
        # Positions fewer moves below the root have restricted moves (Tree.banned_until); 0: none.
        "ban_depth": np.int64,
        "ban_key": np.uint64,  # hash of Tree.banned_until
        "max_depth": np.int64,
        "most_weight": np.float64,  # weight of a finished game, the most of all evaluations
        "score_center": np.float64,  # zero of dynamic_score_utility, for the side to move at the root
    },
    {"claimed": np.int64},  # playouts started in this search
    {"playouts": np.int64},  # playouts backed up in this search
    {"node_top": np.int64},
    {"edge_top": np.int64},
    {
        "moves_made": np.int64,
        "evaluated": np.int64,  # positions evaluated in this search
    },
    {
        "stats_lock": np.int64,  # guards the fields below
        "stats_top": np.int64,
        # Heads of the free lists of statistics blocks. Blocks of class c hold 2 ** c records.
        "free_stats": (np.int64, (STATS_CLASSES,)),
    },
)
# Faults: the sums of a node are not finite or have no weight; a node belongs to another position (found by the checked
# build only).
SUMS_BROKEN, KEYS_BROKEN = 1, 2

# Columns of Batch.values. The utility is computed from SCORE, the expected final score, and STDEV. The score that the
# tree carries up and reports is LEAD, the points that would make the game even.
VALUE, SCORE, STDEV, LEAD, VALUE_ERROR, SCORE_ERROR, NO_RESULT = range(7)
VALUES = 7
# Rows of Worker.ownership: the whole search, the leaf that is being read, and the first root move.
ALL_LEAVES, ONE_LEAF, FIRST_SLOT = 0, 1, 2


class Tree(NamedTuple):
    """The arrays of one tree. `make_tree` fixes their sizes."""

    nodes: Any  # NODE_DTYPE[node_capacity]
    # uint8[node_capacity * NODE_BYTES], a view of `nodes`. The lock of node i is at i * NODE_BYTES + LOCK_BYTE.
    locks: Any
    edges: Any  # uint32[edge_capacity]: see native/tree/edges.py
    stats: Any  # STATS_DTYPE[stats_capacity]
    counters: Any  # COUNTERS_DTYPE[1]
    parameters: Any  # PARAMETERS_DTYPE[1]; kernels only read it
    banned: Any  # uint8[65536], by move: 1 if it is banned at the root
    goals: Any  # uint32[65536], by root move: every second visit goes to moves that have fewer visits than this
    human: Any  # float32[65536], by root move: the policy of people
    # int32[2, 65536], by 0 for the side to move at the root, and move: the depth from which the move is allowed. The
    # root itself has `banned`.
    banned_until: Any
    # uint32[a power of two]: hash table of nodes (native/tree/transpositions.py), counted from 1; 0 is empty
    shared: Any
    biases: Any  # BIAS_DTYPE[a power of two]: see native/tree/bias.py
    cache_keys: Any  # uint64[cache_capacity, a power of two]; 0 is an empty entry
    cache_locks: Any  # uint32[cache_capacity]
    cache_values: Any  # float32[cache_capacity, VALUES]: rows of Batch.values
    # uint16[cache_capacity, policy_size]: priors in steps of 1 / PRIOR_SCALE, by policy index without symmetry; or
    # [cache_capacity, K]: in the order of the position's moves
    cache_priors: Any
    # uint16[cache_capacity, K]: policy index of each prior, NO_INDEX after the last. K is 0 if priors are stored by
    # policy index.
    cache_moves: Any


class Batch(NamedTuple):
    """One batch of B leaf rows: gather fills it, the evaluator adds its outputs, scatter reads them. P is the length of
    the policy. A leaf has one row, or eight if symmetries are averaged.
    """

    node: Any  # uint32[B]: the leaf
    # uint32[B, D]: the nodes from the root to the leaf, both included; first row of a leaf only, as slots and depth
    path: Any
    slots: Any  # uint16[B, D]: the edge that the path follows at each node
    depth: Any  # int32[B]: number of edges of the path
    is_root: Any  # uint8[B]: 1 if the leaf is the root
    symmetry: Any  # int32[B]: symmetry of the network's input
    keys: Any  # uint64[B]
    moves: Any  # uint16[B, M]: legal moves
    move_count: Any  # int32[B]
    indices: Any  # uint16[B, M]: policy index of each legal move in the row's symmetry
    # uint16[B, M]: policy indices without symmetry; set in the first row of a leaf if there is a cache
    plain_indices: Any
    planes: Any  # float32[B, ...]: the network's first input; float32[B, 0, ...] if unused
    extras: Any  # float32[B, E]: the network's second input; float32[B, 0] if unused
    bits: Any  # uint64[B, W]: GameSpec.bits of each row; uint64[B, 0] if unused
    positions: Any  # records[B], or records[0] if unused
    logits: Any  # float32[B, P]: output of the evaluator, in the row's symmetry
    # float32[B, VALUES]: output of the evaluator for the side to move. VALUE: win minus loss in [-1, 1]. SCORE:
    # expected score. STDEV: its standard deviation. LEAD: lead. VALUE_ERROR, SCORE_ERROR: expected distance from the
    # result of a search, 0 if the evaluator does not predict it. NO_RESULT: probability of a game without result.
    values: Any
    ownership: Any  # float32[B, A]: output of the evaluator for the side to move, in the row's symmetry, in [-1, 1]


# Kinds of groups of visits. DESCENDS: the node is in the tree. NEW_NODE: this group allocated the node and reserved the
# edge to it. COPIES: the node has more visits than the edge has seen. BLOCKED: another thread has reserved the edge, so
# these visits are cancelled.
DESCENDS, NEW_NODE, COPIES, BLOCKED = 0, 1, 2, 3
# Visits that descend together (native/tree/descent.py).
GROUP_DTYPE = np.dtype(
    [
        ("node", np.uint32),
        ("depth", np.int32),
        ("visits", np.int32),
        ("move", np.uint16),  # leads to the node
        ("slot", np.uint16),  # number of the parent's edge to the node
        ("kind", np.uint8),  # DESCENDS, NEW_NODE, COPIES or BLOCKED
    ],
    align=True,
)
MAX_GROUPS = 256  # maximum visits of one descent
MIN_PATH = 1024  # Minimum length of a path. Games without a history end earlier.


class Worker(NamedTuple):
    """The private arrays of one search thread. Some belong to its Board (yomi.native.game_calls)."""

    moves: Any  # uint16[M]; the Board's
    priors: Any  # float32[M]
    weights: Any  # float32[M]: the part of `priors` that comes from one row
    indices: Any  # uint16[M]; the Board's
    facts: Any  # FACTS_DTYPE[1]; the Board's
    values: Any  # float32[VALUES]: evaluation of one leaf, as in Batch.values
    rng: Any  # uint64[1]
    # float64[2 + M, 2, A + 2]; the Board's. Rows: ALL_LEAVES, ONE_LEAF, and from FIRST_SLOT on one for each tried root
    # move. [0] are sums over leaves for the side to move at the root, [1] sums of squares. Behind the points come the
    # number of leaves and the sum of NO_RESULT. Without ownership there are no rows for moves.
    ownership: Any
    groups: Any  # GROUP_DTYPE[MAX_GROUPS]: a stack of the groups still to process
    line: Any  # uint16[D]; the Board's. Moves from the root to the current group.
    path: Any  # uint32[D]: the nodes on this line, beginning with the root
    slots: Any  # uint16[D]: the edges between these nodes


def bytes_per_node(mean_edges: float) -> float:
    """Return the bytes per node: record, edges, statistics, and shares of the hash table and the buckets."""
    found_by = BIAS_DTYPE.itemsize / NODES_PER_BUCKET + np.dtype(np.uint32).itemsize
    return NODE_BYTES + mean_edges * EDGE_BYTES + STATS_PER_NODE * STATS_DTYPE.itemsize + found_by


def make_tree(memory: int, mean_edges: float, cache_size: int, policy_size: int, cached_moves: int = 0) -> Tree:
    """Make a tree of at most `memory` bytes, and its evaluation cache.

    Args:
        memory: bytes for nodes, edges and statistics. More than 2 ** 32 edges need (17 GiB on 19x19) is not used.
        mean_edges: expected number of edges of a node; decides how memory is divided.
        cache_size: bytes of the cache; 0 for none.
        policy_size: length of the policy vector.
        cached_moves: see GameSpec.
    """
    # The system hands out pages as the tree grows, so that a large tree costs nothing at first.
    capacity = max(64, int(memory / bytes_per_node(mean_edges)))
    capacity = min(capacity, int((NONE - SPARE_EDGES) / max(mean_edges, STATS_PER_NODE)))  # what 32 bits can name
    entry_bytes = 4 * cached_moves + 32 if cached_moves else 2 * policy_size + 32
    entries = 1 << max(0, (cache_size // entry_bytes).bit_length() - 1)  # a power of two; 1 is no cache
    priors = cached_moves or policy_size
    nodes = _at_cache_line(capacity, NODE_DTYPE)
    tree = Tree(
        nodes=nodes,
        locks=nodes.view(np.uint8),
        edges=np.zeros(int(capacity * mean_edges) + SPARE_EDGES, np.uint32),
        stats=_at_cache_line(int(capacity * STATS_PER_NODE) + 64, STATS_DTYPE),
        counters=np.zeros(1, COUNTERS_DTYPE),
        parameters=np.zeros(1, PARAMETERS_DTYPE),
        banned=np.zeros(65536, np.uint8),
        goals=np.zeros(65536, np.uint32),
        human=np.zeros(65536, np.float32),
        banned_until=np.zeros((2, 65536), np.int32),
        shared=np.zeros(1 << capacity.bit_length() - 1, np.uint32),
        biases=np.zeros(max(MIN_BUCKETS, 1 << (capacity // NODES_PER_BUCKET).bit_length() - 1), BIAS_DTYPE),
        cache_keys=np.zeros(entries, np.uint64),
        cache_locks=np.zeros(entries, np.uint32),
        cache_values=np.zeros((entries, VALUES), np.float32),
        cache_priors=np.zeros((entries, priors if entries > 1 else 1), np.uint16),
        cache_moves=np.zeros((entries, cached_moves), np.uint16),
    )
    tree.counters[0].free_stats[:] = NONE
    return tree


def _at_cache_line(count: int, dtype: np.dtype[Any]) -> npt.NDArray[Any]:
    """Return zeros that begin at a cache line."""
    spare = np.zeros(count * dtype.itemsize + CACHE_LINE, np.uint8)
    first = -spare.ctypes.data % CACHE_LINE
    return spare[first : first + count * dtype.itemsize].view(dtype)


# A forest is a `Tree` whose arrays have one more axis, the first: the number of the tree. It serves parallel games.
def make_forest(spec: GameSpec, count: int, playouts: int, cache_size: int = 0) -> Tree:
    """Return `count` empty trees, each for `playouts` playouts and with a cache of its own; see `make_tree`."""
    memory = int((playouts + 1) * bytes_per_node(spec.mean_moves))
    one = make_tree(memory, spec.mean_moves, cache_size, spec.policy_size, spec.cached_moves)
    arrays = {name: np.repeat(array[None], count, 0) for name, array in one._asdict().items()}
    arrays["locks"] = arrays["nodes"].view(np.uint8)
    return Tree(**arrays)


def tree_of(forest: Tree, number: int) -> Tree:
    return Tree(*(array[number] for array in forest))

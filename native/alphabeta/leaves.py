"""Values of a tree's leaves by an alpha-beta search of a few nodes each."""

import math
from typing import Any, NamedTuple

import numpy as np

from yomi.native.alphabeta.node import INFINITE, WON
from yomi.native.alphabeta.quiescence import quiesce
from yomi.native.alphabeta.search import search
from yomi.native.alphabeta.table import make_table
from yomi.native.alphabeta.thread import (
    ARGUMENTS,
    DEPTH,
    EXAMPLE,
    GENERATION,
    IS_STOPPED,
    LIMIT,
    MAY_STOP,
    NODES,
    WINDOW,
    make_thread,
)
from yomi.native.bits import U
from yomi.native.bound_kernels import Calls, Stored, entry, load, store, types_of
from yomi.native.jit import kernel
from yomi.native.shogi.position import copy
from yomi.native.shogi.spec import shogi_spec
from yomi.native.sparse.nnue import NnueNetwork, begin
from yomi.native.spec import Inputs
from yomi.native.tree import arrays
from yomi.native.tree.arrays import Batch
from yomi.native.tree.buffers import make_batch

MAX_DEPTH = 24
SURE = 0.998  # maximum value: a search at a leaf may miss what the tree finds
TABLE_MEMORY = 2 * 2**20  # bytes; fits the cache of a core


class LeafSettings(NamedTuple):
    integers: Any  # int64[2]: ADDRESS, MAX_NODES
    numbers: Any  # float32[3]: SCALE, WEIGHT, BOOST


# Address of network, thread and table; maximum nodes of a search.
ADDRESS, MAX_NODES = range(2)
# Value that maps to tanh(1 / 2); weight of the search's value against the batch's value; increase of the best move's
# logit.
SCALE, WEIGHT, BOOST = range(3)

LEAF_ARGUMENTS = types_of(
    make_batch(shogi_spec(), 1, Inputs.POSITIONS),
    LeafSettings(np.zeros(2, np.int64), np.zeros(3, np.float32)),
)


class LeafSearch:
    """The search at leaves, for one thread of the tree's search."""

    def __init__(self, network: NnueNetwork, nodes: int, scale: float, weight: float, boost: float) -> None:
        """Allocate memory. The numbers are those of `LeafSettings`."""
        self._stored: Stored = store(
            ARGUMENTS, network, make_thread(network, np.zeros(1, np.int64)), make_table(TABLE_MEMORY)
        )
        self.settings = LeafSettings(
            np.array([self._stored.address, nodes], np.int64), np.array([scale, weight, boost], np.float32)
        )

    def bind(self, batch: Batch, *, alone: bool) -> Calls:
        """Return the calls that mix the search's values into a batch. `alone`: without other values and priors."""
        calls = evaluate_leaves.bind(batch, self.settings)
        calls = Calls(calls.table, (*calls.kept, self._stored))
        return clear_rows.bind(batch, self.settings) + calls if alone else calls


@kernel
def search_leaf(address, pos, nodes):  # type: ignore[no-untyped-def]
    """Search a position by iterative deepening up to a number of nodes; return its value and best move, or 0."""
    network, thread, _ = load(address, ARGUMENTS)
    root = thread.positions[U(0)]
    copy(root, pos)
    # Only repetitions after the leaf are found.
    root.history_length = 2
    thread.history[U(0)] = pos.board_key
    thread.history[U(1)] = pos.hands
    begin(network, thread.network, root)
    counters = thread.counters
    counters[U(NODES)] = 0
    counters[U(LIMIT)] = nodes
    counters[U(IS_STOPPED)] = 0
    counters[U(MAY_STOP)] = 0  # there is a value even if the limit is small
    counters[U(GENERATION)] = 0
    counters[U(WINDOW)] = 2 * INFINITE
    value = quiesce(address, 0, -INFINITE, INFINITE)
    counters[U(MAY_STOP)] = 1
    move = 0
    for depth in range(1, MAX_DEPTH):
        counters[U(DEPTH)] = depth
        found = search(address, 0, depth, -INFINITE, INFINITE, 0)
        if counters[U(IS_STOPPED)] != 0:
            break
        value = found
        move = np.int64(thread.lines[U(0), U(0)])
        if abs(value) >= WON or counters[U(NODES)] >= nodes:
            break
    return value, move


@entry(LEAF_ARGUMENTS)
def evaluate_leaves(address, rows):  # type: ignore[no-untyped-def]
    """Mix the search's values into a batch's values, and raise the logits of its best moves."""
    batch, settings = load(address, LEAF_ARGUMENTS)
    weight = settings.numbers[U(WEIGHT)]
    for row in range(U(rows)):
        score, best = search_leaf(settings.integers[U(ADDRESS)], batch.positions[row], settings.integers[U(MAX_NODES)])
        # The winrate's logistic function, on the scale of -1 to 1.
        value = math.tanh(0.5 * score / settings.numbers[U(SCALE)])
        value = min(max(value, -SURE), SURE)
        before = batch.values[row, U(arrays.VALUE)]
        batch.values[row, U(arrays.VALUE)] = np.float32(weight * value + (1.0 - weight) * before)
        for i in range(U(batch.move_count[row])):
            if batch.moves[row, i] == best:
                batch.logits[row, U(batch.indices[row, i])] += settings.numbers[U(BOOST)]


@entry(LEAF_ARGUMENTS)
def clear_rows(address, rows):  # type: ignore[no-untyped-def]
    """Write equal logits and values of zero into a batch's first `rows` rows."""
    batch, _ = load(address, LEAF_ARGUMENTS)
    for row in range(U(rows)):
        for i in range(U(arrays.VALUES)):
            batch.values[row, i] = 0.0
        for i in range(U(batch.move_count[row])):
            batch.logits[row, U(batch.indices[row, i])] = 0.0


def example_calls() -> Calls:
    """Return calls with a network of one row, to compile the kernels."""
    batch = make_batch(shogi_spec(), 1, Inputs.POSITIONS)
    return LeafSearch(EXAMPLE, 1, 1.0, 1.0, 0.0).bind(batch, alone=True)

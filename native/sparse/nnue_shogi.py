"""Evaluation of leaves by an NNUE network, with a search at each leaf."""

import math

import numpy as np

from yomi.native.bits import U
from yomi.native.bound_kernels import entry, load
from yomi.native.sparse.nnue_leaf import ARGUMENTS, BEST, BOOST, SCALE, WEIGHT
from yomi.native.sparse.nnue_search import search_leaf
from yomi.native.tree import arrays

SURE = 0.998  # maximum value: a search at a leaf may miss what the tree finds


@entry(ARGUMENTS)
def evaluate_leaves(address, rows):  # type: ignore[no-untyped-def]
    """Mix the search's values into a batch's values, and raise the logits of its best moves.

    Args:
        address: of a Batch with positions, values and logits, an NnueNetwork, a LeafScratch and LeafSettings.
        rows: number of rows.
    """
    batch, _, leaf, settings = load(address, ARGUMENTS)
    weight = settings.numbers[U(WEIGHT)]
    for row in range(U(rows)):
        score = search_leaf(address, batch.positions[row])
        value = math.tanh(0.5 * score / settings.numbers[U(SCALE)])
        value = min(max(value, -SURE), SURE)
        before = batch.values[row, U(arrays.VALUE)]
        batch.values[row, U(arrays.VALUE)] = np.float32(weight * value + (1.0 - weight) * before)
        best = leaf.counters[U(BEST)]
        for i in range(U(batch.move_count[row])):
            if batch.moves[row, i] == best:
                batch.logits[row, U(batch.indices[row, i])] += settings.numbers[U(BOOST)]


@entry(ARGUMENTS)
def clear_rows(address, rows):  # type: ignore[no-untyped-def]
    """Write equal logits and values of zero into a batch's first `rows` rows."""
    batch, _, _, _ = load(address, ARGUMENTS)
    for row in range(U(rows)):
        for i in range(U(arrays.VALUES)):
            batch.values[row, i] = 0.0
        for i in range(U(batch.move_count[row])):
            batch.logits[row, U(batch.indices[row, i])] = 0.0

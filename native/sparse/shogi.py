"""Evaluation of shogi positions by a sparse network."""

import numpy as np

from yomi.native.bits import U
from yomi.native.bound_kernels import entry, load, types_of
from yomi.native.shogi import sparse
from yomi.native.shogi.spec import shogi_spec
from yomi.native.sparse.network import SparseNetwork, first_layer, make_scratch, move_logits, value_logit
from yomi.native.spec import Inputs
from yomi.native.tree import arrays
from yomi.native.tree.buffers import make_batch

_BYTES, _SHORTS, _FLOATS = (np.zeros((1, 1), kind) for kind in (np.int8, np.int16, np.float32))
# A network of the types that `evaluate_rows` takes.
EXAMPLE = SparseNetwork(
    rows=_BYTES,
    bias=_SHORTS[0],
    direct=_FLOATS[0],
    hidden=_SHORTS[None],
    hidden_bias=_FLOATS[0],
    last=_FLOATS,
    last_bias=_FLOATS[0],
    out=_FLOATS[0],
    moves=_BYTES,
    move_bias=_FLOATS[0],
    scales=_FLOATS[0],
)
_ARGUMENTS = types_of(
    make_batch(shogi_spec(), 1, Inputs.POSITIONS),
    EXAMPLE,
    make_scratch(EXAMPLE, 1),
    np.zeros(1, sparse.SCRATCH_DTYPE)[0],
)


@entry(_ARGUMENTS)
def evaluate_rows(address, rows):  # type: ignore[no-untyped-def]
    """Write logits and values of a batch; scores are zero.

    `address` points to a Batch with positions, a SparseNetwork, its scratch and a record of SCRATCH_DTYPE.
    """
    batch, network, scratch, seen = load(address, _ARGUMENTS)
    for row in range(U(rows)):
        pos = batch.positions[row]
        count = sparse.find_rows(pos, seen)
        first_layer(network, seen.rows, count, scratch)
        for i in range(U(arrays.VALUES)):
            batch.values[row, i] = 0.0
        logit = value_logit(network, seen.rows, count, scratch)
        batch.values[row, U(arrays.VALUE)] = np.float32(np.tanh(np.float32(0.5) * logit))
        sparse.find_threats(pos, seen)
        moves = U(batch.move_count[row])
        for i in range(moves):
            sparse.find_move_rows(pos, seen, batch.moves[row, i], i * U(sparse.PARTS))
        if moves != U(0):
            move_logits(network, seen.move_rows, sparse.PARTS, moves, scratch)
        for i in range(moves):
            batch.logits[row, U(batch.indices[row, i])] = scratch.logits[i]

"""Decodes a network's policy and value into a batch."""

import numpy as np

from yomi.native.bits import U
from yomi.native.bound_kernels import entry, load, types_of
from yomi.native.jit import kernel
from yomi.native.packing import widened
from yomi.native.tree.arrays import VALUE, VALUES

_MATRIX = np.zeros((1, 1), np.float32)
_ARGUMENTS = types_of(_MATRIX, _MATRIX, True, _MATRIX, _MATRIX)


@kernel
def decode_rows(rows, policy, raw, is_chance, logits, values):  # type: ignore[no-untyped-def]
    """Write logits and values of a batch for the side to move, without scores and ownership.

    Args:
        rows: number of rows.
        policy: [B, P], float32 or float16 (as uint16).
        raw: [B, 1], same type: values.
        is_chance: whether values are chances to win in [0, 1]; otherwise they are in [-1, 1].
        logits: float32[B, P], written.
        values: float32[B, VALUES] of a Batch, written.
    """
    for row in range(U(rows)):
        for i in range(U(policy.shape[1])):
            logits[row, i] = widened(policy[row, i])
        for i in range(U(VALUES)):
            values[row, i] = 0.0
        value = widened(raw[row, U(0)])
        values[row, U(VALUE)] = np.float32(2.0) * value - np.float32(1.0) if is_chance else value


@entry(_ARGUMENTS)
def decode(address, rows):  # type: ignore[no-untyped-def]
    """Call `decode_rows` with the other arguments stored at `address`; the network's are float32."""
    policy, raw, is_chance, logits, values = load(address, _ARGUMENTS)
    decode_rows(rows, policy, raw, is_chance, logits, values)

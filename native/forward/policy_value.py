"""From a policy and a value that a network says to what the search wants of a batch."""

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
    """Write logits and values of a batch for the side to move; there are no scores and no owners.

    Args:
        rows: rows in use.
        policy: [B, P], float32, or float16 seen as uint16.
        raw: [B, 1], as policy: values.
        is_chance: whether these are chances to win, 0 to 1; else they are in [-1, 1] already.
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
    """Call `decode_rows` with what lies at an address: the other arguments, those of the network float32."""
    policy, raw, is_chance, logits, values = load(address, _ARGUMENTS)
    decode_rows(rows, policy, raw, is_chance, logits, values)

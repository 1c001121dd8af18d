"""From the value that a network for shogi ends with to what the search wants of a batch."""

import math

import numpy as np

from native.bits import U
from native.calls import entry, load, types_of
from native.jit import kernel
from native.packing import widened
from native.tree.arrays import VALUE, VALUES

IDENTITY, SIGMOID, TANH = 0, 1, 2
"""What remains to be done to a value."""

_MATRIX = np.zeros((1, 1), np.float32)
_ARGUMENTS = types_of(_MATRIX, 0, True, _MATRIX)


@entry(_ARGUMENTS)
def write_values(address, rows):  # type: ignore[no-untyped-def]
    """Write a batch's values for the side to move; shogi has no scores.

    Args:
        address: of
            raw: float32[B, 1], as the network leaves them.
            squash: IDENTITY, SIGMOID or TANH: what makes them values.
            is_chance: whether these are chances to win, 0 to 1; else they are in [-1, 1] already.
            values: float32[B, VALUES] of a Batch, written.
        rows: rows in use.
    """
    raw, squash, is_chance, values = load(address, _ARGUMENTS)
    for row in range(U(rows)):
        value = raw[row, U(0)]
        if squash == TANH:
            value = math.tanh(value)
        elif squash == SIGMOID:
            value = math.tanh(value * np.float32(0.5)) * np.float32(0.5) + np.float32(0.5)
        for i in range(U(VALUES)):
            values[row, i] = 0.0
        values[row, U(VALUE)] = np.float32(2.0) * value - np.float32(1.0) if is_chance else value


@kernel
def decode_rows(rows, policy, raw, is_chance, logits, values):  # type: ignore[no-untyped-def]
    """Write logits and values of a batch for the side to move; shogi has no scores.

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

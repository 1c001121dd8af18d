"""What a graph does last to its value, where a program leaves that."""

import math

import numpy as np

from yomi.native.bits import U
from yomi.native.bound_kernels import entry, load, types_of

IDENTITY, SIGMOID, TANH = 0, 1, 2
SQUASHES = {"none": IDENTITY, "sigmoid": SIGMOID, "tanh": TANH}
"""By the names of yomi.nets.onnx_program.Squash."""

_ARGUMENTS = types_of(0, np.zeros((1, 1), np.float32))


@entry(_ARGUMENTS)
def squash(address, rows):  # type: ignore[no-untyped-def]
    """Replace values by their sigmoid or tanh.

    Args:
        address: of SIGMOID or TANH, and of float32[B, n].
        rows: rows in use.
    """
    kind, values = load(address, _ARGUMENTS)
    for row in range(U(rows)):
        for i in range(U(values.shape[1])):
            value = values[row, i]
            if kind == TANH:
                values[row, i] = math.tanh(value)
            elif kind == SIGMOID:
                values[row, i] = math.tanh(value * np.float32(0.5)) * np.float32(0.5) + np.float32(0.5)

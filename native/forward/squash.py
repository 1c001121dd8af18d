"""The final activation of a value output that a program leaves out."""

import math

import numpy as np

from yomi.native.bits import U
from yomi.native.bound_kernels import entry, load, types_of

IDENTITY, SIGMOID, TANH = 0, 1, 2
# By the names of yomi.nets.onnx_program.Squash.
SQUASHES = {"none": IDENTITY, "sigmoid": SIGMOID, "tanh": TANH}

_ARGUMENTS = types_of(0, np.zeros((1, 1), np.float32))


@entry(_ARGUMENTS)
def squash(address, rows):  # type: ignore[no-untyped-def]
    """Replace values by their sigmoid or tanh. `address` points to the kind (SIGMOID or TANH) and float32[B, n]."""
    kind, values = load(address, _ARGUMENTS)
    for row in range(U(rows)):
        for i in range(U(values.shape[1])):
            value = values[row, i]
            if kind == TANH:
                values[row, i] = math.tanh(value)
            elif kind == SIGMOID:
                # sigmoid(x) = tanh(x / 2) / 2 + 1/2
                values[row, i] = math.tanh(value * np.float32(0.5)) * np.float32(0.5) + np.float32(0.5)

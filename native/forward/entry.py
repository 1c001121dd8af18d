"""The forward pass and the decoding of its outputs, as entries that a search calls without Python."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from yomi.native.bits import U
from yomi.native.bound_kernels import Calls, entry, load, types_of
from yomi.native.forward.program import OP_DTYPE, PLAN_DTYPE, forward
from yomi.native.jit import kernel
from yomi.native.packing import widened
from yomi.native.tree.arrays import VALUE, VALUES

if TYPE_CHECKING:
    from yomi.native.forward.builder import Program, Scratch
    from yomi.native.forward.gemm import FloatArray

# Final activations of a value output that a program leaves out.
IDENTITY, SIGMOID, TANH = 0, 1, 2
# By the names of yomi.nets.onnx_program.Squash.
SQUASHES = {"none": IDENTITY, "sigmoid": SIGMOID, "tanh": TANH}

_VECTOR = np.zeros(1, np.float32)
_MATRIX = np.zeros((1, 1), np.float32)
_CUBE = np.zeros((1, 1, 1), np.float32)
_ARGUMENTS = types_of(
    1,
    np.zeros(1, PLAN_DTYPE)[0],
    np.zeros(1, OP_DTYPE),
    _VECTOR,
    _VECTOR,
    np.zeros(1, np.int64),
    _VECTOR,
    _CUBE,
    _MATRIX,
    _CUBE,
    _MATRIX,
    _MATRIX,
    _MATRIX,
)
_SQUASH_ARGUMENTS = types_of(0, _MATRIX)
_DECODE_ARGUMENTS = types_of(_MATRIX, _MATRIX, True, _MATRIX, _MATRIX)


@entry(_ARGUMENTS)
def _run(address, rows):  # type: ignore[no-untyped-def]
    """Run a program for `rows` rows, at most max_rows at a time."""
    (most, plan, ops, weights, floats, lists, values, planes, extras, policy, value, misc, ownership) = load(
        address, _ARGUMENTS
    )
    for begin in range(0, rows, most):
        end = min(begin + most, rows)
        forward(
            plan,
            ops,
            weights,
            floats,
            lists,
            values,
            planes[begin:end],
            extras[begin:end],
            policy[begin:end],
            value[begin:end],
            misc[begin:end],
            ownership[begin:end],
        )


@entry(_SQUASH_ARGUMENTS)
def squash(address, rows):  # type: ignore[no-untyped-def]
    """Replace values by their sigmoid or tanh. `address` points to the kind (SIGMOID or TANH) and float32[B, n]."""
    kind, values = load(address, _SQUASH_ARGUMENTS)
    for row in range(U(rows)):
        for i in range(U(values.shape[1])):
            value = values[row, i]
            if kind == TANH:
                values[row, i] = math.tanh(value)
            elif kind == SIGMOID:
                # sigmoid(x) = tanh(x / 2) / 2 + 1/2
                values[row, i] = math.tanh(value * np.float32(0.5)) * np.float32(0.5) + np.float32(0.5)


def bind_program(
    program: Program,
    scratch: Scratch,
    planes: FloatArray,
    extras: FloatArray,
    policy: FloatArray,
    value: FloatArray,
    misc: FloatArray,
    ownership: FloatArray,
) -> Calls:
    """Return calls that do the same as `Program.run`, for the first rows of these arrays."""
    inputs = planes.reshape(*planes.shape[:2], -1)
    work = (scratch.floats, scratch.lists, scratch.values)
    outputs = (policy, value, misc, ownership)
    calls = _run.bind(program.max_rows, program.plan, program.ops, program.weights, *work, inputs, extras, *outputs)
    return calls if program.squash == IDENTITY else calls + squash.bind(program.squash, value)


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


@entry(_DECODE_ARGUMENTS)
def decode(address, rows):  # type: ignore[no-untyped-def]
    """Call `decode_rows` with the other arguments stored at `address`; the network's are float32."""
    policy, raw, is_chance, logits, values = load(address, _DECODE_ARGUMENTS)
    decode_rows(rows, policy, raw, is_chance, logits, values)

"""The forward pass as an entry that a search calls without Python."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from yomi.native.bound_kernels import Calls, entry, load, types_of
from yomi.native.forward.program import OP_DTYPE, PLAN_DTYPE, forward
from yomi.native.forward.squash import IDENTITY, squash

if TYPE_CHECKING:
    from yomi.native.forward.builder import Program, Scratch
    from yomi.native.forward.gemm import FloatArray

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
    """Return the calls that do what `Program.run` does, for the first rows of the same arrays."""
    inputs = planes.reshape(*planes.shape[:2], -1)
    work = (scratch.floats, scratch.lists, scratch.values)
    outputs = (policy, value, misc, ownership)
    calls = _run.bind(program.max_rows, program.plan, program.ops, program.weights, *work, inputs, extras, *outputs)
    return calls if program.squash == IDENTITY else calls + squash.bind(program.squash, value)

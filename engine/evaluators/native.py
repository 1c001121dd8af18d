"""Networks on the CPU, in yomi's own kernels."""

from __future__ import annotations

import weakref
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from yomi.engine.evaluators.base import EvaluatorError
from yomi.native.forward.builder import PRECISIONS
from yomi.native.forward.emit import WIDTH
from yomi.native.forward.entry import bind_program

if TYPE_CHECKING:
    from yomi.engine.evaluators.network import Array, FloatArray, Format
    from yomi.native.bound_kernels import Calls
    from yomi.native.forward.builder import Program, Scratch

ROWS = 4
"""Rows in a batch. On 9x9 a batch of four is 10% faster a row than a single row for small networks, and 33% for large
ones, on 19x19 no faster. In shogi a row of 10 blocks x 192 takes 6.4 ms alone, 4.2 ms in a batch of 4, 8 or 16."""
NO_OUTPUTS = ((0, 0), (0,), (0,), (0,))  # shapes of absent policy, value, misc and ownership, for a row


def native_precision(asked: str) -> str:
    """Return the precision, or for auto the fastest of the processor.

    Raises:
        EvaluatorError: the processor, or the operating system, does not support it.
    """
    if asked == "auto":
        return PRECISIONS[0]
    if asked not in PRECISIONS:
        raise EvaluatorError(f"precision {asked} is not for this processor: expected auto or {' or '.join(PRECISIONS)}")
    return asked


class NativeBackend:
    """One program that all calling threads share. Each call computes in its own thread."""

    name = f"native kernels, vectors of {WIDTH}"
    device = "cpu"
    takes_bits = False

    def __init__(self, program: Program, form: Format, batch_size: int | None = None) -> None:
        """`batch_size` is the rows of a batch; None: ROWS."""
        self.precision = program.precision
        self.batch_size = batch_size or ROWS
        self._program = program
        self._form = form
        self._idle: list[Scratch] = []  # scratch memory that no thread uses; list.pop and append are atomic

    def run(self, inputs: Sequence[Array]) -> Iterator[tuple[slice, list[Array]]]:
        calls, outputs = self.bind([np.ascontiguousarray(array, np.float32) for array in inputs])
        calls.run(len(outputs[0]))
        yield slice(0, len(outputs[0])), list(outputs)

    def bind(self, inputs: Sequence[FloatArray]) -> tuple[Calls, list[FloatArray]]:
        """Return the calls that evaluate these arrays, with scratch memory of their own."""
        planes, extras = inputs
        rows = len(planes)
        outputs = [np.empty((rows, *shape), np.float32) for shape in self._form.output_shapes]
        all_outputs: list[Any] = [np.empty((rows, *shape), np.float32) for shape in NO_OUTPUTS]
        for place, output in zip(self._form.output_slots, outputs, strict=False):
            all_outputs[place] = output
        try:
            scratch = self._idle.pop()
        except IndexError:
            scratch = self._program.make_scratch()
        calls = bind_program(self._program, scratch, planes, extras, *all_outputs)
        weakref.finalize(calls, self._idle.append, scratch)
        return calls, outputs

    def close(self) -> None:
        self._idle.clear()

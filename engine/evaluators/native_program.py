"""A network as a program of our own kernels, for all threads that evaluate with it."""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING

from engine.evaluators.spares import Spares
from native.forward.emit import WIDTH
from native.forward.entry import bind_program

if TYPE_CHECKING:
    from native.calls import Calls
    from native.forward.builder import Program
    from native.forward.gemm import FloatArray

BACKEND = f"native kernels, vectors of {WIDTH}"
"""What evaluators with such a program call their backend."""


class NativeProgram:
    """A program, and working memory for each thread that runs it.

    The arrays are those of `native.forward.builder.Program.run`: planes and extras, then policy, value, misc and
    ownership, which are written.
    """

    def __init__(self, program: Program) -> None:
        """Begin without working memory; it is made as it is needed."""
        self._program = program
        self._scratch = Spares(program.make_scratch)

    def run(self, *arrays: FloatArray) -> None:
        """Evaluate all rows in the calling thread."""
        scratch = self._scratch.take()
        self._program.run(scratch, *arrays)
        self._scratch.give_back(scratch)

    def bind(self, *arrays: FloatArray) -> Calls:
        """Return the call that evaluates the first rows of these arrays, with working memory of its own."""
        scratch = self._scratch.take()
        calls = bind_program(self._program, scratch, *arrays)
        weakref.finalize(calls, self._scratch.give_back, scratch)
        return calls

    def close(self) -> None:
        """Drop the working memory."""
        self._scratch.clear()

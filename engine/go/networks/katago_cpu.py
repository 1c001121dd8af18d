"""KataGo's networks on the CPU, in kernels of our own."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from engine.evaluators.base import EvaluatorError
from engine.evaluators.native_program import BACKEND, NativeProgram
from engine.go.networks.katago import KataGoEvaluator
from native.forward.builder import MAX_SIZE, MIN_SIZE, ProgramBuilder
from nets.katago.cpu_program import write_program
from nets.katago.network import GLOBAL_CHANNELS, SPATIAL_CHANNELS
from nets.katago.outputs import RawOutputs

if TYPE_CHECKING:
    from native.calls import Calls
    from native.forward.builder import Program
    from native.tree.arrays import Batch
    from nets.katago.network import FloatArray, KataGoNetwork
    from nets.metadata import NetworkInfo


def make_program(network: KataGoNetwork, size: int, precision: str) -> Program:
    """Return a network as a program for boards of `size`, its weights transformed and packed.

    Args:
        network: the parsed file; `nets.katago.cpu_program.unsupported` must have returned None.
        size: N.
        precision: fp32, or int16 where the processor has it.

    Raises:
        EvaluatorError: the size is out of range.
    """
    if not MIN_SIZE <= size <= MAX_SIZE:
        raise EvaluatorError(f"board size {size} found, expected {MIN_SIZE} to {MAX_SIZE}")
    builder = ProgramBuilder(size, SPATIAL_CHANNELS, GLOBAL_CHANNELS, narrow=precision == "int16")
    write_program(network, size, builder)
    return builder.build()


class NativeKataGoEvaluator(KataGoEvaluator):
    """Evaluates batches with one program, shared by all threads that call; each call computes in its own thread."""

    backend = BACKEND

    def __init__(self, program: Program, info: NetworkInfo, precision: str, *, batch_size: int | None = None) -> None:
        """Begin without working memory.

        Args:
            program: what `make_program` or `load_program` has returned.
            info: what the network says of itself.
            precision: fp32 or int16: what the program was made for.
            batch_size: rows of a batch; None for what suits the network.
        """
        # On 9x9 four rows are a tenth faster than one with few weights, a third with many; on 19x19 they are not.
        super().__init__(info, "cpu", batch_size or 4, precision)
        self._program = NativeProgram(program)

    def run(self, planes: FloatArray, extras: FloatArray) -> RawOutputs:
        """Return the raw outputs for B inputs: planes [B, 22, N, N] and extras [B, 19]."""
        raw = self._make_outputs(len(planes))
        self._program.run(
            np.ascontiguousarray(planes, np.float32),
            np.ascontiguousarray(extras, np.float32),
            raw.policy,
            raw.value,
            raw.misc,
            raw.ownership,
        )
        return raw

    def bind(self, batch: Batch) -> Calls:
        """Return the calls that evaluate this batch in the calling thread."""
        raw = self._make_outputs(len(batch.planes))
        outputs = (raw.policy, raw.value, raw.misc, raw.ownership)
        calls = self._program.bind(batch.planes, batch.extras, *outputs)
        return calls + self.bind_outputs(raw, batch)

    def _make_outputs(self, rows: int) -> RawOutputs:
        area = self.info.board_size**2
        return RawOutputs(
            policy=np.empty((rows, self.info.policy_channels, area + 1), np.float32),
            value=np.empty((rows, 3), np.float32),
            misc=np.empty((rows, self.info.misc_channels), np.float32),
            ownership=np.empty((rows, area), np.float32),
        )

    def close(self) -> None:
        """Drop the working memory."""
        self._program.close()

"""Networks for shogi on the CPU, in kernels of our own."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from engine.evaluators.base import UnsupportedError
from engine.evaluators.native_precision import native_precision
from engine.evaluators.native_program import BACKEND, NativeProgram
from engine.shogi.networks.shogi import FloatArray, ShogiEvaluator
from native.forward.builder import ProgramBuilder
from native.shogi.outputs import IDENTITY, SIGMOID, TANH, write_values
from nets.dlshogi.cpu_program import Squash, write_program
from nets.dlshogi.network import AREA, SIDE
from nets.onnx_graph import UnsupportedGraphError, read_onnx_graph

if TYPE_CHECKING:
    from native.calls import Calls
    from native.tree.arrays import Batch
    from nets.dlshogi.network import ShogiNetwork
    from nets.metadata import NetworkInfo

_SQUASHES = {Squash.NONE: IDENTITY, Squash.SIGMOID: SIGMOID, Squash.TANH: TANH}


class NativeShogiEvaluator(ShogiEvaluator):
    """Evaluates batches with one program, shared by all threads that call; each call computes in its own thread."""

    backend = BACKEND

    def __init__(
        self,
        path: Path,
        network: ShogiNetwork,
        info: NetworkInfo,
        *,
        batch_size: int | None = None,
        precision: str = "fp32",
    ) -> None:
        """Read the graph, transform and pack its weights.

        Args:
            path: an ONNX file that nets.load.prepare_shogi knows.
            network: the outside of the file.
            info: what is known of it.
            batch_size: rows of a batch; None for what suits the network.
            precision: fp32, int16, or auto: int16 where the processor gains from it.

        Raises:
            NetworkError: the file is damaged.
            EvaluatorError: the graph has parts that the kernels cannot compute or is no network for shogi, or the
                processor does not have the precision.
        """
        # A row of 10 blocks x 192 takes 6.4 ms alone, 4.2 ms in batches of 4, 8 or 16.
        super().__init__(network, info, "cpu", batch_size or 4, native_precision(precision))
        builder = ProgramBuilder(SIDE, network.planes, network.extras, narrow=self.precision == "int16")
        try:
            self._squash = write_program(read_onnx_graph(path), network, builder)
        except UnsupportedGraphError as error:
            raise UnsupportedError(path, str(error)) from error
        self._program = NativeProgram(builder.build())
        self.check()

    def run(self, planes: FloatArray, extras: FloatArray, logits: FloatArray) -> FloatArray:
        """Write the logits and return the values; see the base class."""
        rows = len(planes)
        values = np.empty((rows, 1), np.float32)
        nothing = np.empty((rows, 0), np.float32)
        policy = logits.reshape(rows, self.network.directions, AREA)
        self._program.run(planes, extras, policy, values, nothing, nothing)
        if self._squash is Squash.TANH:
            np.tanh(values, out=values)
        elif self._squash is Squash.SIGMOID:
            values[...] = np.tanh(values * np.float32(0.5)) * np.float32(0.5) + np.float32(0.5)
        return values[:, 0]

    def bind(self, batch: Batch) -> Calls:
        """Return the calls that evaluate this batch in the calling thread."""
        rows = len(batch.planes)
        raw = np.empty((rows, 1), np.float32)
        nothing = np.empty((rows, 0), np.float32)
        policy = batch.logits.reshape(rows, self.network.directions, AREA)
        calls = self._program.bind(batch.planes, batch.extras, policy, raw, nothing, nothing)
        return calls + write_values.bind(raw, _SQUASHES[self._squash], self.network.is_chance, batch.values)

    def close(self) -> None:
        """Drop the working memory."""
        self._program.close()

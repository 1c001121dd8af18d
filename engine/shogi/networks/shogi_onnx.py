"""Networks for shogi on the CPU, by onnxruntime."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from engine.evaluators.onnx_session import make_session, run_error
from engine.evaluators.spares import Spares
from engine.shogi.networks.shogi import FloatArray, ShogiEvaluator

if TYPE_CHECKING:
    from nets.dlshogi.network import ShogiNetwork
    from nets.metadata import NetworkInfo
    from nets.onnx_header import TensorInfo


class OnnxShogiEvaluator(ShogiEvaluator):
    """Evaluates batches with one session, shared by all threads that call."""

    backend = "onnxruntime"

    def __init__(
        self,
        path: Path,
        network: ShogiNetwork,
        info: NetworkInfo,
        *,
        batch_size: int | None = None,
    ) -> None:
        """Load a file that nets.load.prepare_shogi knows.

        Args:
            path: the ONNX file.
            network: the outside of the file.
            info: what is known of it.
            batch_size: rows of a batch; None for what the file is made for, or 8.

        Raises:
            EvaluatorError: the file cannot be used.
        """
        precision = "fp16" if network.board.element_type == "float16" else "fp32"
        super().__init__(network, info, "cpu", batch_size or network.fixed_rows or 8, precision)
        self._session = make_session(path, "cpu")
        self._rows = network.fixed_rows or self.batch_size
        self._inputs = Spares(self._make_inputs)
        self.check()

    def run(self, planes: FloatArray, extras: FloatArray, logits: FloatArray) -> FloatArray:
        """Write the logits and return the values; see the base class."""
        values = np.empty(len(planes), np.float32)
        inputs = self._inputs.take()
        for begin in range(0, len(planes), self._rows):
            part = slice(begin, begin + self._rows)
            self._run_part(inputs, planes[part], extras[part], logits[part], values[part])
        self._inputs.give_back(inputs)
        return values

    def _run_part(
        self,
        inputs: dict[str, npt.NDArray[Any]],
        planes: FloatArray,
        extras: FloatArray,
        logits: FloatArray,
        values: FloatArray,
    ) -> None:
        """Evaluate at most as many rows as the inputs hold."""
        rows, network = len(planes), self.network
        # A file for batches of one size gets whole batches, whose last rows may hold what was there before.
        given = self._rows if network.fixed_rows else rows
        inputs[network.board.name][:rows] = planes
        if network.hands is not None:
            inputs[network.hands.name][:rows] = extras[:, :, None, None]
        fed = {name: array[:given] for name, array in inputs.items()}
        try:
            policy, value = self._session.run([network.policy.name, network.value.name], fed)
        except Exception as error:  # onnxruntime raises its own kinds, all below Exception
            raise run_error(self.info.source_file, error) from error
        logits[...] = policy[:rows].reshape(rows, network.policy_size)
        values[...] = value[:rows].reshape(rows)

    def _make_inputs(self) -> dict[str, npt.NDArray[Any]]:
        tensors = [self.network.board, *([self.network.hands] if self.network.hands is not None else [])]
        return {tensor.name: _blank(tensor, self._rows) for tensor in tensors}

    def close(self) -> None:
        """Drop the session."""
        self._session = None
        self._inputs.clear()


def _blank(tensor: TensorInfo, rows: int) -> npt.NDArray[Any]:
    assert tensor.shape is not None
    return np.zeros((rows, *tensor.shape[1:]), np.dtype(tensor.element_type))

"""KataGo's networks on the CPU, by onnxruntime."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from engine.evaluators.katago import KataGoEvaluator
from engine.evaluators.onnx_session import make_session
from nets.katago.outputs import RawOutputs

if TYPE_CHECKING:
    from nets.katago.network import FloatArray
    from nets.metadata import NetworkInfo


class OnnxKataGoEvaluator(KataGoEvaluator):
    """Evaluates batches with one session, shared by all threads that call."""

    def __init__(
        self,
        path: Path,
        info: NetworkInfo,
        *,
        batch_size: int | None = None,
        threads: int = 1,
    ) -> None:
        """Load an ONNX file that nets.load.prepare has returned.

        Args:
            path: the ONNX file.
            info: what nets.load.prepare says of it.
            batch_size: rows of a batch; None for 8.
            threads: threads that one evaluation uses.

        Raises:
            EvaluatorError: the file cannot be used.
        """
        super().__init__(info, "cpu", batch_size or 8)
        self.precision = "fp32"
        self._session = make_session(path, "cpu", threads)
        self._names = ["policy", "value", "misc", "ownership"]

    @property
    def description(self) -> str:
        """The network's name, the device and the backend."""
        return f"{self.info.name} on {self.device} (onnxruntime, {self.precision})"

    def run(self, planes: FloatArray, extras: FloatArray) -> RawOutputs:
        """Return the raw outputs for B inputs: planes [B, 22, N, N] and extras [B, 19]."""
        inputs = {"spatial": planes, "global": extras}
        if self.info.meta_input:
            inputs["meta"] = np.zeros((planes.shape[0], 192), np.float32)
        policy, value, misc, ownership = self._session.run(self._names, inputs)
        return RawOutputs(policy=policy, value=value, misc=misc, ownership=ownership)

    def close(self) -> None:
        """Drop the session."""
        self._session = None

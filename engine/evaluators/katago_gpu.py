"""KataGo's networks on a GPU."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from engine.evaluators.gpu import fill, open_engine
from engine.evaluators.katago import KataGoEvaluator
from nets.katago.outputs import RawOutputs
from nets.packed import Variant

if TYPE_CHECKING:
    from nets.katago.network import FloatArray
    from nets.metadata import NetworkInfo

OUTPUTS = ("policy", "value", "misc", "ownership")
BATCH_SIZE = 64


class GpuKataGoEvaluator(KataGoEvaluator):
    """Evaluates batches in the one thread that made it; planes travel as bits."""

    def __init__(
        self,
        path: Path,
        info: NetworkInfo,
        device: str,
        backend: str = "auto",
        *,
        batch_size: int | None = None,
        precision: str = "auto",
    ) -> None:
        """Load an ONNX file that nets.load.prepare has returned.

        Args:
            path: the ONNX file.
            info: what nets.load.prepare says of it.
            device: auto, cuda or tensorrt, the latter two with or without a number.
            backend: onnx, tensorrt or auto.
            batch_size: rows of a batch; None for BATCH_SIZE.
            precision: auto, fp32 or fp16.

        Raises:
            EvaluatorError: the device or the file cannot be used.
        """
        device = "cuda" if device == "auto" else device
        precision = "fp32" if precision == "fp32" else "fp16"
        super().__init__(info, device, batch_size or BATCH_SIZE, precision)
        variant = Variant(half=self.precision == "fp16", packed=("spatial",))
        self._engine, self.backend = open_engine(path, device, backend, self.batch_size, OUTPUTS, variant)

    def run(self, planes: FloatArray, extras: FloatArray) -> RawOutputs:
        """Return the raw outputs for B inputs: planes [B, 22, N, N] and extras [B, 19]."""
        parts = []
        for begin in range(0, len(planes), self._engine.rows):
            part = planes[begin : begin + self._engine.rows]
            fill(self._engine, "spatial", part)
            fill(self._engine, "global", extras[begin : begin + len(part)])
            parts.append([output.astype(np.float32) for output in self._engine.run(len(part))])
        policy, value, misc, ownership = (np.concatenate(each) for each in zip(*parts, strict=True))
        return RawOutputs(policy=policy, value=value, misc=misc, ownership=ownership)

    def close(self) -> None:
        """Release the device."""
        self._engine.close()

"""KataGo's networks on the CPU, by onnxruntime."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from engine.evaluators.base import EvaluatorError
from engine.evaluators.onnx_session import make_session, run_error
from engine.go.networks.katago import KataGoEvaluator
from nets.katago.network import META_CHANNELS
from nets.katago.outputs import RawOutputs
from nets.onnx_header import read_onnx_header

if TYPE_CHECKING:
    from nets.katago.network import FloatArray
    from nets.metadata import NetworkInfo


class OnnxKataGoEvaluator(KataGoEvaluator):
    """Evaluates batches with one session, shared by all threads that call."""

    backend = "onnxruntime"

    def __init__(self, path: Path, info: NetworkInfo, *, batch_size: int | None = None) -> None:
        """Load an ONNX file that nets.load.prepare has returned.

        Args:
            path: the ONNX file.
            info: what nets.load.prepare says of it.
            batch_size: rows of a batch; None for 8.

        Raises:
            EvaluatorError: the file cannot be used.
        """
        super().__init__(info, "cpu", batch_size or 8, "fp32")
        _check_inputs(path)
        self._session = make_session(path, "cpu")
        self._names = ["policy", "value", "misc", "ownership"]

    def run(self, planes: FloatArray, extras: FloatArray) -> RawOutputs:
        """Return the raw outputs for B inputs: planes [B, 22, N, N] and extras [B, 19]."""
        inputs = {"spatial": planes, "global": extras}
        if self.info.meta_input:
            inputs["meta"] = np.zeros((planes.shape[0], META_CHANNELS), np.float32)
        try:
            policy, value, misc, ownership = self._session.run(self._names, inputs)
        except Exception as error:  # onnxruntime raises its own kinds, all below Exception
            raise run_error(self.info.source_file, error) from error
        return RawOutputs(policy=policy, value=value, misc=misc, ownership=ownership)

    def close(self) -> None:
        """Drop the session."""
        self._session = None


def _check_inputs(path: Path) -> None:
    """See that a file takes what `run` feeds.

    Raises:
        EvaluatorError: it does not.
    """
    header = read_onnx_header(path)
    for tensor in () if header is None else header.input_tensors:
        if tensor.element_type != "float32" or (tensor.shape is not None and tensor.shape[:1] > (0,)):
            raise EvaluatorError(f"{path}: input {tensor} found, expected float32 for batches of any size")

"""KataGo's networks on onnxruntime."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from engine.evaluators.base import EvaluatorError
from engine.evaluators.katago import KataGoEvaluator
from nets.katago.outputs import RawOutputs

if TYPE_CHECKING:
    from nets.katago.network import FloatArray
    from nets.metadata import NetworkInfo

PROVIDERS = {"cpu": "CPUExecutionProvider", "cuda": "CUDAExecutionProvider", "tensorrt": "TensorrtExecutionProvider"}


def choose_device(asked: str) -> str:
    """Return the device to use for `asked` (auto, cpu, cuda, tensorrt).

    Raises:
        EvaluatorError: it was asked for by name and this onnxruntime cannot use it.
    """
    import onnxruntime

    available = onnxruntime.get_available_providers()
    if asked == "auto":
        return "cuda" if PROVIDERS["cuda"] in available and onnxruntime.get_device() == "GPU" else "cpu"
    if PROVIDERS[asked] not in available:
        raise EvaluatorError(
            f"device {asked}: this onnxruntime offers {', '.join(available)}; expected {PROVIDERS[asked]} "
            "(pip install onnxruntime-gpu in place of onnxruntime)"
        )
    return asked


def make_session(path: Path, device: str, threads: int) -> Any:
    """Open an onnxruntime session and check that it really runs on `device`.

    Raises:
        EvaluatorError: onnxruntime fell back to another provider, or cannot load the file.
    """
    import onnxruntime

    settings = onnxruntime.SessionOptions()
    settings.intra_op_num_threads = threads
    settings.inter_op_num_threads = 1
    settings.log_severity_level = 3
    settings.add_session_config_entry("session.intra_op.allow_spinning", "0")
    providers = [PROVIDERS[device]]
    try:
        session = onnxruntime.InferenceSession(os.fspath(path), settings, providers=providers)
    except Exception as error:  # onnxruntime raises its own kinds, all below Exception
        raise EvaluatorError(f"{path}: onnxruntime cannot load it: {str(error).splitlines()[0]}") from error
    if session.get_providers()[0] != PROVIDERS[device]:
        raise EvaluatorError(f"device {device}: onnxruntime fell back to {session.get_providers()[0]}")
    return session


class OnnxKataGoEvaluator(KataGoEvaluator):
    """Evaluates batches with one session, shared by all threads that call."""

    def __init__(
        self,
        path: Path,
        info: NetworkInfo,
        *,
        device: str = "auto",
        batch_size: int | None = None,
        threads: int = 1,
    ) -> None:
        """Load an ONNX file that nets.load.prepare has returned.

        Args:
            path: the ONNX file.
            info: what nets.load.prepare says of it.
            device: auto, cpu, cuda or tensorrt.
            batch_size: rows of a batch; None for what suits the device.
            threads: threads that one evaluation uses on a CPU.

        Raises:
            EvaluatorError: the device or the file cannot be used.
        """
        device = choose_device(device)
        super().__init__(info, device, batch_size or (8 if device == "cpu" else 64))
        self._session = make_session(path, device, threads)
        self._names = ["policy", "value", "misc", "ownership"]

    @property
    def description(self) -> str:
        """The network's name, the device and the backend."""
        return f"{self.info.name} on {self.device} (onnxruntime, fp32)"

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

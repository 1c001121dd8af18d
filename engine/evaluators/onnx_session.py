"""Sessions of onnxruntime: which device, and whether it is really the one that computes."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from engine.evaluators.base import EvaluatorError

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

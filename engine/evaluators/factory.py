"""From the file that a user names to the evaluator that is fastest for it here."""

from __future__ import annotations

import importlib.util
import logging
from pathlib import Path
from typing import TYPE_CHECKING

from engine.evaluators.base import EvaluatorError
from nets.errors import NetworkError
from nets.load import NetworkKind, identify, prepare, source_digest

if TYPE_CHECKING:
    from engine.evaluators.katago import KataGoEvaluator

_log = logging.getLogger(__name__)

BACKENDS = ("auto", "native", "onnx")


def make_katago_evaluator(
    path: str | Path,
    size: int,
    device: str = "auto",
    backend: str = "auto",
    batch_size: int | None = None,
    precision: str = "fp32",
) -> KataGoEvaluator:
    """Return an evaluator of a network with KataGo's features for boards of `size`.

    Args:
        path: a KataGo network file, or an ONNX file made by yomi.
        size: N.
        device: auto, cpu, cuda or tensorrt.
        backend: native (our kernels, on the CPU, for convolutional KataGo networks), onnx (onnxruntime), or auto:
            native where it can, which the evaluator's description tells.
        batch_size: rows of a batch; None for what suits the network and the device.
        precision: fp32, bf16 (backend native only), or auto: the fastest there is.

    Raises:
        NetworkError: the file cannot be used.
        EvaluatorError: the device, the backend or the precision cannot.
    """
    if backend not in BACKENDS:
        raise EvaluatorError(f"backend {backend} found, expected one of {', '.join(BACKENDS)}")
    path = Path(path)
    if backend == "native" and device not in ("auto", "cpu"):
        raise EvaluatorError(f"backend native computes on the CPU: expected device cpu, not {device}")
    if backend == "native" or (backend == "auto" and chooses_cpu(device)):
        evaluator = _native(path, size, batch_size, precision, required=backend == "native")
        if evaluator is not None:
            return evaluator
    check_onnx_precision(precision)
    from engine.evaluators.katago_onnx import OnnxKataGoEvaluator

    onnx_path, info = prepare(path, size)
    if info.game != "go":
        raise NetworkError(f"{path}: a network for {info.game} found, expected one for Go")
    return OnnxKataGoEvaluator(onnx_path, info, device=device, batch_size=batch_size)


def check_onnx_precision(precision: str) -> None:
    """Refuse what only our own kernels compute.

    Raises:
        EvaluatorError: the precision is bf16.
    """
    if precision == "bf16":
        raise EvaluatorError("precision bf16 is computed by backend native only: expected precision auto or fp32")


def chooses_cpu(device: str) -> bool:
    """Whether onnxruntime would compute on the CPU; imports it only if it was built for more, since that takes long."""
    if device != "auto":
        return device == "cpu"
    spec = importlib.util.find_spec("onnxruntime")
    if spec is None or spec.origin is None:
        return True
    if not any((Path(spec.origin).parent / "capi").glob("*onnxruntime_providers_cuda*")):
        return True
    from engine.evaluators.onnx_session import choose_device

    return choose_device("auto") == "cpu"


def _native(path: Path, size: int, batch_size: int | None, precision: str, *, required: bool) -> KataGoEvaluator | None:
    """Return an evaluator of our own kernels, or None where they cannot compute the network and need not."""
    if identify(path) is not NetworkKind.KATAGO:
        if required:
            raise EvaluatorError(f"{path}: an ONNX file found, expected a KataGo network for backend native")
        return None
    from nets.katago.cpu_program import unsupported
    from nets.katago.description import describe
    from nets.katago.file import read_network

    network = read_network(path)
    reason = unsupported(network)
    if reason is not None:
        if required:
            raise EvaluatorError(f"{path}: {reason}: expected backend onnx (or auto)")
        _log.info("%s: %s: computed by onnxruntime", path, reason)
        return None
    # Imports numba, which the other backends need as late as the search does.
    from engine.evaluators.katago_cpu import NativeKataGoEvaluator

    return NativeKataGoEvaluator(
        network, describe(network, size, path.name, source_digest(path)), batch_size=batch_size, precision=precision
    )

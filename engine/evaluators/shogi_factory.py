"""From the file that a user names to the evaluator of shogi that is fastest for it here."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import TYPE_CHECKING

from engine.evaluators.base import EvaluatorError
from engine.evaluators.factory import BACKENDS, check_onnx_precision, chooses_cpu
from nets.load import prepare_shogi

if TYPE_CHECKING:
    from engine.evaluators.shogi import ShogiEvaluator

_log = logging.getLogger(__name__)


def make_shogi_evaluator(
    path: str | Path,
    device: str = "auto",
    backend: str = "auto",
    batch_size: int | None = None,
    precision: str = "fp32",
) -> ShogiEvaluator:
    """Return an evaluator of a network for shogi.

    Args:
        path: an ONNX file of dlshogi's or AlphaZero's form.
        device: auto, cpu, cuda or tensorrt.
        backend: native (our kernels, on the CPU), onnx (onnxruntime), or auto: native where it can, which the
            evaluator's description tells.
        batch_size: rows of a batch; None for what suits the network and the device.
        precision: fp32, bf16 (backend native only), or auto: the fastest there is.

    Raises:
        NetworkError: the file cannot be used.
        EvaluatorError: the device, the backend or the precision cannot.
    """
    if backend not in BACKENDS:
        raise EvaluatorError(f"backend {backend} found, expected one of {', '.join(BACKENDS)}")
    if backend == "native" and device not in ("auto", "cpu"):
        raise EvaluatorError(f"backend native computes on the CPU: expected device cpu, not {device}")
    path = Path(path)
    network, info = prepare_shogi(path)
    if backend == "native" or (backend == "auto" and chooses_cpu(device)):
        # Imports numba, which onnxruntime needs as late as the search does.
        from engine.evaluators.shogi_cpu import NativeShogiEvaluator

        try:
            return NativeShogiEvaluator(path, network, info, batch_size=batch_size, precision=precision)
        except EvaluatorError as error:
            if backend == "native":
                raise
            _log.info("%s; computed by onnxruntime", error)
    from engine.evaluators.shogi_onnx import OnnxShogiEvaluator

    check_onnx_precision(precision)
    return OnnxShogiEvaluator(path, network, info, device=device, batch_size=batch_size)

"""From the file that a user names to the evaluator of shogi that is fastest for it here."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Protocol

from engine.evaluators.base import Evaluator, EvaluatorError
from engine.evaluators.factory import BACKENDS, chooses_cpu
from nets.load import prepare_shogi

_log = logging.getLogger(__name__)


class ShogiJudge(Evaluator, Protocol):
    """An evaluator that says what the search has to show it."""

    spec_features: tuple[int, int]
    """Form (FORM_DLSHOGI or FORM_ALPHAZERO) and number of extras, for `native.shogi.spec.shogi_spec`."""


def make_shogi_evaluator(
    path: str | Path | None,
    device: str = "auto",
    backend: str = "auto",
    batch_size: int | None = None,
) -> ShogiJudge:
    """Return an evaluator of shogi positions.

    Args:
        path: an ONNX file of dlshogi's or AlphaZero's form; None for material and piece activity.
        device: auto, cpu, cuda or tensorrt.
        backend: native (our kernels, on the CPU), onnx (onnxruntime), or auto: native where it can, which the
            evaluator's description tells.
        batch_size: rows of a batch; None for what suits the network and the device.

    Raises:
        NetworkError: the file cannot be used.
        EvaluatorError: the device or the backend cannot.
    """
    if backend not in BACKENDS:
        raise EvaluatorError(f"backend {backend} found, expected one of {', '.join(BACKENDS)}")
    if path is None:
        return _material(batch_size)
    if backend == "native" and device not in ("auto", "cpu"):
        raise EvaluatorError(f"backend native computes on the CPU: expected device cpu, not {device}")
    path = Path(path)
    network, info = prepare_shogi(path)
    if backend == "native" or (backend == "auto" and chooses_cpu(device)):
        # Imports numba, which onnxruntime needs as late as the search does.
        from engine.evaluators.shogi_cpu import NativeShogiEvaluator

        try:
            return NativeShogiEvaluator(path, network, info, batch_size=batch_size)
        except EvaluatorError as error:
            if backend == "native":
                raise
            _log.info("%s; computed by onnxruntime", error)
    from engine.evaluators.shogi_onnx import OnnxShogiEvaluator

    return OnnxShogiEvaluator(path, network, info, device=device, batch_size=batch_size)


def _material(batch_size: int | None) -> ShogiJudge:
    from engine.evaluators.material import MaterialEvaluator

    evaluator: ShogiJudge = MaterialEvaluator() if batch_size is None else MaterialEvaluator(batch_size)
    return evaluator

"""From the file that a user names to the evaluator of shogi that is fastest for it here."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

from engine.evaluators.base import Evaluator, EvaluatorError
from nets.load import prepare_shogi


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
        backend: onnx (onnxruntime) or auto.
        batch_size: rows of a batch; None for what suits the network and the device.

    Raises:
        NetworkError: the file cannot be used.
        EvaluatorError: the device or the backend cannot.
    """
    if backend not in ("auto", "onnx"):
        raise EvaluatorError(f"backend {backend} found, expected auto or onnx")
    if path is None:
        return _material(batch_size)
    path = Path(path)
    network, info = prepare_shogi(path)
    from engine.evaluators.shogi_onnx import OnnxShogiEvaluator

    return OnnxShogiEvaluator(path, network, info, device=device, batch_size=batch_size)


def _material(batch_size: int | None) -> ShogiJudge:
    from engine.evaluators.material import MaterialEvaluator

    evaluator: ShogiJudge = MaterialEvaluator() if batch_size is None else MaterialEvaluator(batch_size)
    return evaluator

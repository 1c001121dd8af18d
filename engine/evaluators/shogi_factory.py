"""From the file that a user names to the evaluator of shogi that is fastest for it here."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Protocol

from engine.evaluators.base import Evaluator, EvaluatorError
from engine.evaluators.factory import check_backend, chooses_cpu
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
    precision: str = "auto",
) -> ShogiJudge:
    """Return an evaluator of shogi positions.

    Args:
        path: an ONNX file of dlshogi's or AlphaZero's form; None for material and piece activity.
        device: auto, cpu, cuda or tensorrt; a number behind a colon names the GPU.
        backend: native (our kernels, on the CPU), onnx (onnxruntime), tensorrt (TensorRT itself), or auto: the fastest
            that can, which the evaluator's description tells.
        batch_size: rows of a batch; None for what suits the network and the device.
        precision: auto, fp32 or fp16 (GPUs only, where auto means it).

    Raises:
        NetworkError: the file cannot be used.
        EvaluatorError: the device or the backend cannot.
    """
    check_backend(device, backend, precision)
    if path is None:
        return _material(batch_size)
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
    if not chooses_cpu(device):
        from engine.evaluators.shogi_gpu import GpuShogiEvaluator

        return GpuShogiEvaluator(path, network, info, device, backend, batch_size=batch_size, precision=precision)
    from engine.evaluators.shogi_onnx import OnnxShogiEvaluator

    return OnnxShogiEvaluator(path, network, info, batch_size=batch_size)


def _material(batch_size: int | None) -> ShogiJudge:
    from engine.evaluators.material import MaterialEvaluator

    evaluator: ShogiJudge = MaterialEvaluator() if batch_size is None else MaterialEvaluator(batch_size)
    return evaluator

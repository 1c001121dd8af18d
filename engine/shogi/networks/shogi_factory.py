"""From the file that a user names to the evaluator of shogi that is fastest for it here."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from engine.evaluators.base import EvaluatorError, UnsupportedError
from engine.evaluators.providers import check_backend, chooses_cpu, expect_packages
from nets.load import prepare_shogi

if TYPE_CHECKING:
    from engine.shogi.networks.shogi import ShogiEvaluator


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
        device: auto, cpu, cuda or tensorrt; a number behind a colon names the GPU.
        backend: native (our kernels, on the CPU), onnx (onnxruntime), tensorrt (TensorRT itself), or auto: the fastest
            that can, which the evaluator's description tells.
        batch_size: rows of a batch; None for what suits the network and the device.
        precision: fp32, fp16 (GPUs only), int16 (backend native only), or auto: the fastest there is.

    Raises:
        NetworkError: the file cannot be used.
        EvaluatorError: the device, the backend or the precision cannot.
    """
    check_backend(device, backend, precision)
    path = Path(path)
    network, info = prepare_shogi(path)
    why = ""
    if backend == "native" or (backend == "auto" and chooses_cpu(device)):
        # Imports numba, which onnxruntime needs as late as the search does.
        from engine.shogi.networks.shogi_cpu import NativeShogiEvaluator

        try:
            return NativeShogiEvaluator(path, network, info, batch_size=batch_size, precision=precision)
        except EvaluatorError as error:
            if backend == "native" or precision == "int16":
                raise
            why = error.reason if isinstance(error, UnsupportedError) else str(error)
    expect_packages(path, device)
    if not chooses_cpu(device):
        from engine.shogi.networks.shogi_gpu import GpuShogiEvaluator

        return GpuShogiEvaluator(path, network, info, device, backend, batch_size=batch_size, precision=precision)
    from engine.shogi.networks.shogi_onnx import OnnxShogiEvaluator

    evaluator = OnnxShogiEvaluator(path, network, info, batch_size=batch_size)
    evaluator.why = why
    return evaluator

"""From the file that a user names to the evaluator of Go that is fastest for it here."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING

from engine.evaluators.base import UnsupportedError
from engine.evaluators.providers import check_backend, chooses_cpu, expect_packages
from nets.errors import NetworkError
from nets.files import known_digest
from nets.load import NetworkKind, identify, prepare
from nets.metadata import KATAGO_FEATURES

if TYPE_CHECKING:
    from engine.go.networks.katago import KataGoEvaluator


def make_katago_evaluator(
    path: str | Path,
    size: int,
    device: str = "auto",
    backend: str = "auto",
    batch_size: int | None = None,
    precision: str = "fp32",
    *,
    keep: bool = True,
) -> KataGoEvaluator:
    """Return an evaluator of a network with KataGo's features for boards of `size`.

    Args:
        path: a KataGo network file, or an ONNX file made by yomi.
        size: N.
        device: auto, cpu, cuda or tensorrt; a number behind a colon names the GPU.
        backend: native (our kernels, on the CPU), onnx (onnxruntime), tensorrt
            (TensorRT itself), or auto: the fastest that can, which the evaluator's description tells.
        batch_size: rows of a batch; None for what suits the network and the device.
        precision: fp32, fp16 (GPUs only), int16 (backend native only), or auto: the fastest there is.
        keep: whether what a big network is packed into is kept for the next start.

    Raises:
        NetworkError: the file cannot be used.
        EvaluatorError: the device, the backend or the precision cannot.
    """
    check_backend(device, backend, precision)
    path = Path(path)
    why = ""
    if backend == "native" or (backend == "auto" and chooses_cpu(device)):
        try:
            return _native(path, size, batch_size, precision, keep=keep)
        except UnsupportedError as error:
            if backend == "native" or precision == "int16":
                raise
            why = error.reason
    expect_packages(path, device)
    onnx_path, info = prepare(path, size)
    if info.feature_set != KATAGO_FEATURES:
        raise NetworkError(f"{path}: feature set {info.feature_set} found, expected {KATAGO_FEATURES}")
    if not chooses_cpu(device):
        from engine.go.networks.katago_gpu import GpuKataGoEvaluator

        return GpuKataGoEvaluator(onnx_path, info, device, backend, batch_size=batch_size, precision=precision)
    from engine.go.networks.katago_onnx import OnnxKataGoEvaluator

    evaluator = OnnxKataGoEvaluator(onnx_path, info, batch_size=batch_size)
    evaluator.why = why
    return evaluator


def _native(path: Path, size: int, batch_size: int | None, precision: str, *, keep: bool) -> KataGoEvaluator:
    """Return an evaluator of our own kernels.

    Raises:
        NetworkError, EvaluatorError: see `make_katago_evaluator`; UnsupportedError where they cannot compute it.
    """
    if identify(path) is not NetworkKind.KATAGO:
        raise UnsupportedError(path, "it is an ONNX file")
    # Imports numba, which the other backends need as late as the search does.
    from engine.evaluators.native_precision import native_precision
    from engine.evaluators.stored_program import keep_program, load_program
    from engine.go.networks.katago_cpu import NativeKataGoEvaluator, make_program
    from nets.katago.cpu_program import unsupported
    from nets.katago.description import describe
    from nets.katago.file import read_network

    precision = native_precision(precision)
    digest = known_digest(path)
    stored = load_program(digest, size, precision)
    if stored is not None:
        program, info = stored
        info = dataclasses.replace(info, source_file=path.name)
        return NativeKataGoEvaluator(program, info, precision, batch_size=batch_size)
    network = read_network(path)
    reason = unsupported(network)
    if reason is not None:
        raise UnsupportedError(path, reason)
    info = describe(network, size, path.name, digest)
    program = make_program(network, size, precision)
    if keep:
        keep_program(program, info, precision)
    return NativeKataGoEvaluator(program, info, precision, batch_size=batch_size)

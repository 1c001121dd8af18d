"""Load a network's file as the fastest evaluator of this machine."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import overload

from yomi.engine.evaluators.base import UnsupportedError
from yomi.engine.evaluators.network import Backend, FileEvaluator, FileFormat, Format, NetworkEvaluator, recognise
from yomi.engine.evaluators.providers import NATIVE_PRECISIONS, check_backend, chooses_cpu, expect_packages
from yomi.engine.evaluators.sparse import KernelEvaluator, KernelFormat, SparseEvaluator, SparseFormat


@overload
def load(
    formats: Sequence[type[Format]],
    path: str | Path,
    size: int,
    device: str = ...,
    backend: str = ...,
    batch_size: int | None = ...,
    precision: str = ...,
    *,
    keep: bool = ...,
) -> NetworkEvaluator: ...
@overload
def load(
    formats: Sequence[type[FileFormat]],
    path: str | Path,
    size: int,
    device: str = ...,
    backend: str = ...,
    batch_size: int | None = ...,
    precision: str = ...,
    *,
    keep: bool = ...,
) -> FileEvaluator: ...
def load(
    formats: Sequence[type[FileFormat]],
    path: str | Path,
    size: int,
    device: str = "auto",
    backend: str = "auto",
    batch_size: int | None = None,
    precision: str = "fp32",
    *,
    keep: bool = True,
) -> FileEvaluator:
    """Return an evaluator of a network.

    Args:
        formats: of the game's networks.
        path: the network's file.
        size: board size.
        device: auto, cpu, or a kind of GPU such as cuda, webgpu or cuda:1.
        backend: native (yomi's kernels on the CPU), onnx (onnxruntime), tensorrt (TensorRT itself), or auto: the
            fastest.
        batch_size: rows of a batch; None: suits the network and the device.
        precision: fp32, fp16 (GPUs only), int16, int8 or bf16 (native only), or auto: the fastest.
        keep: whether the packed weights of a large network are cached for the next start.

    Raises:
        NetworkError: the file cannot be used.
        EvaluatorError: the device, the backend or the precision cannot be used.
    """
    check_backend(device, backend, precision)
    path = Path(path)
    form = recognise(formats, path, size)
    if isinstance(form, SparseFormat):
        return SparseEvaluator(form, device, backend, batch_size, precision)
    if isinstance(form, KernelFormat):
        return KernelEvaluator(form, device, backend, batch_size, precision)
    assert isinstance(form, Format)
    why = ""
    if backend == "native" or (backend == "auto" and chooses_cpu(device)):
        from yomi.engine.evaluators.native import NativeBackend, native_precision

        try:
            program = form.program(native_precision(precision), keep=keep)
            return made(form, NativeBackend(program, form, batch_size))
        except UnsupportedError as error:
            if backend == "native" or precision in NATIVE_PRECISIONS:
                raise
            why = error.reason
    expect_packages(path, device)
    evaluator = made(form, _backend(form, device, backend, batch_size, precision))
    evaluator.fallback_reason = why
    return evaluator


def fastest_precision(
    formats: Sequence[type[FileFormat]], path: str | Path, size: int, device: str, backend: str
) -> str:
    """Return the fastest precision of a processor for a network, without a comparison with fp32. See `load`."""
    evaluator = load(formats, path, size, device, backend, precision="auto", keep=False)
    try:
        return "auto" if evaluator.is_exact else evaluator.precision
    finally:
        evaluator.close()


def made(form: Format, backend: Backend) -> NetworkEvaluator:
    """Return the evaluator of a network on a backend. The backend is closed if it does not compute."""
    try:
        evaluator = NetworkEvaluator(form, backend)
        if form.is_checked or backend.device != "cpu":
            evaluator.check()
    except BaseException:
        backend.close()
        raise
    return evaluator


def _backend(form: Format, device: str, backend: str, batch_size: int | None, precision: str) -> Backend:
    path = form.onnx_file()
    if chooses_cpu(device):
        from yomi.engine.evaluators.onnx_session import OnnxBackend

        return OnnxBackend(path, form, batch_size)
    from yomi.engine.evaluators.gpu import GpuBackend

    return GpuBackend(path, form, device, backend, batch_size=batch_size, precision=precision)

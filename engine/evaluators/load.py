"""Load a network's file as the fastest evaluator of a device."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import overload

from yomi.engine.evaluators.backends import GpuBackend, NativeBackend, OnnxBackend, native_precision
from yomi.engine.evaluators.base import UnsupportedError
from yomi.engine.evaluators.devices import CPU, NATIVE_PRECISIONS, Device, check_backend, expect_packages
from yomi.engine.evaluators.kernel_evaluators import KernelEvaluator, KernelFormat, SparseEvaluator, SparseFormat
from yomi.engine.evaluators.network import Backend, FileEvaluator, FileFormat, Format, NetworkEvaluator, recognise
from yomi.nets.board_size import BoardSize


@overload
def load(
    formats: Sequence[type[Format]],
    path: str | Path,
    size: BoardSize,
    device: Device = ...,
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
    size: BoardSize,
    device: Device = ...,
    backend: str = ...,
    batch_size: int | None = ...,
    precision: str = ...,
    *,
    keep: bool = ...,
) -> FileEvaluator: ...
def load(
    formats: Sequence[type[FileFormat]],
    path: str | Path,
    size: BoardSize,
    device: Device = CPU,
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
        device: where the network is computed.
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
    form = recognise(formats, Path(path), size)
    if isinstance(form, KernelFormat):
        kind = SparseEvaluator if isinstance(form, SparseFormat) else KernelEvaluator
        return kind(form, device, backend, batch_size, precision)
    assert isinstance(form, Format)
    why = ""
    if backend == "native" or (backend == "auto" and device.is_cpu):
        try:
            program = form.program(native_precision(precision), keep=keep)
            return made(form, NativeBackend(program, form, batch_size))
        except UnsupportedError as error:
            if backend == "native" or precision in NATIVE_PRECISIONS:
                raise
            why = error.reason
    expect_packages(Path(path), device)
    if device.is_cpu:
        evaluator = made(form, OnnxBackend(form, batch_size))
    else:
        evaluator = made(form, GpuBackend(form, device, batch_size=batch_size, precision=precision))
    evaluator.fallback_reason = why
    return evaluator


def made(form: Format, backend: Backend) -> NetworkEvaluator:
    """Return the evaluator of a network on a backend. Close the backend if that fails.

    The outputs are checked on a GPU, and for formats with `is_checked`.
    """
    try:
        evaluator = NetworkEvaluator(form, backend)
        if form.is_checked or not backend.device.is_cpu:
            evaluator.check()
    except BaseException:
        backend.close()
        raise
    return evaluator


def fastest_precision(
    formats: Sequence[type[FileFormat]], path: str | Path, size: BoardSize, device: Device, backend: str
) -> str:
    """Return the fastest precision of a processor for a network, without a comparison with fp32. See `load`."""
    evaluator = load(formats, path, size, device, backend, precision="auto", keep=False)
    try:
        return "auto" if evaluator.is_exact else evaluator.precision
    finally:
        evaluator.close()

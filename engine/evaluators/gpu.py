"""What computes a batch on a GPU: onnxruntime or TensorRT itself, behind one small interface."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from engine.evaluators.onnx_session import GpuSession
from engine.evaluators.providers import choose_backend
from native.packing import packed_bytes
from nets.packed import SUFFIX, Variant, variant_file


class GpuEngine(Protocol):
    """A network on a GPU, bound to the thread that made it."""

    rows: int
    """Greatest batch."""
    inputs: dict[str, npt.NDArray[Any]]
    """By name, [rows, ...]; written before `run`."""

    def run(self, rows: int) -> list[npt.NDArray[Any]]:
        """Evaluate the first `rows` rows; the outputs, [rows, ...] each, are valid until the next call."""

    def close(self) -> None:
        """Release the device, in the thread that took it."""


def open_engine(
    path: Path,
    device: str,
    backend: str,
    rows: int,
    outputs: Sequence[str],
    variant: Variant,
    *,
    fixed: bool = False,
) -> tuple[GpuEngine, str]:
    """Return a network on a GPU, and what computes it, in a word.

    Args:
        path: the ONNX file.
        device: cuda or tensorrt, with or without a number.
        backend: onnx, tensorrt or auto.
        rows: greatest batch.
        outputs: what to compute.
        variant: precision, and the inputs that come as bits.
        fixed: the file is for batches of exactly `rows` rows.

    Raises:
        EvaluatorError: the device or the backend cannot be used; the message says what mends that.
        NetworkError: the file cannot be used.
    """
    if choose_backend(device, backend) == "tensorrt":
        from engine.evaluators.tensorrt_session import TensorRtSession

        whole = variant_file(path, Variant(half=variant.half))
        return TensorRtSession(whole, device, rows, outputs, variant, fixed=fixed), "TensorRT"
    session = GpuSession(variant_file(path, variant), device, rows, outputs, half=variant.half, fixed=fixed)
    return session, "onnxruntime"


def pack(numbers: npt.NDArray[np.float32]) -> npt.NDArray[np.uint64]:
    """Return zeros and ones [B, ...] as bits [B, words], which a search writes itself."""
    flat = numbers.reshape(len(numbers), -1)
    packed = np.zeros((len(flat), packed_bytes(flat.shape[1])), np.uint8)
    bits = np.packbits(flat != 0.0, axis=1, bitorder="little")
    packed[:, : bits.shape[1]] = bits
    return packed.view(np.uint64)


def fill(engine: GpuEngine, name: str, values: npt.NDArray[Any]) -> None:
    """Write the first rows of an input: bits (uint64[rows, words]) if the engine takes them packed, else numbers."""
    packed = engine.inputs.get(name + SUFFIX)
    if packed is not None:
        packed.view(np.uint64)[: len(values)] = values
    else:
        engine.inputs[name][: len(values)] = values


def for_kernels(output: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return an output as kernels read it: halves as uint16."""
    return output.view(np.uint16) if output.dtype == np.float16 else output

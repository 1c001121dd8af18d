"""What computes a batch on a GPU: onnxruntime or TensorRT itself, behind one small interface."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from engine.evaluators.onnx_session import GpuSession
from engine.evaluators.providers import choose_backend
from native.packing import pack_rows
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
    pack_rows(np.zeros((1, 8), np.float32), 1, np.zeros((1, 4), np.uint8))  # compiled here, not in a game
    if choose_backend(device, backend) == "tensorrt":
        from engine.evaluators.tensorrt_session import TensorRtSession

        whole = variant_file(path, Variant(half=variant.half))
        return TensorRtSession(whole, device, rows, outputs, variant, fixed=fixed), "TensorRT"
    session = GpuSession(variant_file(path, variant), device, rows, outputs, half=variant.half, fixed=fixed)
    return session, "onnxruntime"


def fill(engine: GpuEngine, name: str, values: npt.NDArray[np.float32]) -> None:
    """Write an input's rows, as bits where the engine wants it so."""
    packed = engine.inputs.get(name + SUFFIX)
    if packed is not None:
        pack_rows(values.reshape(len(values), -1), len(values), packed)
    else:
        engine.inputs[name][: len(values)] = values

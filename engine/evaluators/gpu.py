"""Networks on a GPU, computed by onnxruntime or by TensorRT itself."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import numpy.typing as npt

from yomi.engine.evaluators.onnx_session import GpuSession
from yomi.engine.evaluators.plugin_session import PluginSession
from yomi.engine.evaluators.plugins import PLUGINS, plugin_gpus
from yomi.engine.evaluators.providers import choose_backend, split_device
from yomi.native.spec import Inputs
from yomi.nets.packed import SUFFIX, Variant, variant_file

if TYPE_CHECKING:
    from yomi.engine.evaluators.network import Array, Format


class GpuEngine(Protocol):
    """A network on a GPU, bound to the thread that made it."""

    rows: int  # greatest batch
    inputs: dict[str, npt.NDArray[Any]]  # by name, [rows, ...]; written before `run`

    def run(self, rows: int) -> list[npt.NDArray[Any]]:
        """Evaluate the first `rows` rows. The outputs, [rows, ...], are valid until the next call."""

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
    """Return a network on a GPU, and the name of the library that computes it.

    The variant names the inputs that are sent as bits. A `fixed` file is for batches of exactly `rows` rows.

    Raises:
        EvaluatorError: the device or the backend cannot be used. The message contains the remedy.
        NetworkError: the file cannot be used.
    """
    if choose_backend(device, backend) == "tensorrt":
        from yomi.engine.evaluators.tensorrt_session import TensorRtSession

        whole = variant_file(path, Variant(half=variant.half, side=variant.side))
        return TensorRtSession(whole, device, rows, outputs, variant, fixed=fixed), "TensorRT"
    kind, number = split_device(device)
    if kind in PLUGINS:
        plugin = PluginSession(variant_file(path, variant), kind, number, rows, outputs, fixed=fixed)
        return plugin, plugin.name
    session = GpuSession(variant_file(path, variant), device, rows, outputs, half=variant.half, fixed=fixed)
    return session, "onnxruntime"


class GpuBackend:
    """A network on a GPU, used only in the thread that made it.

    Zeros and ones are sent as bits, except to TensorRT for RTX, whose 8-bit inputs are untested.
    """

    def __init__(
        self,
        path: Path,
        form: Format,
        device: str,
        backend: str = "auto",
        *,
        batch_size: int | None = None,
        precision: str = "auto",
    ) -> None:
        """Load a file. Batches have `batch_size` rows; None: the file's fixed size, or `Format.gpu_rows`.

        Raises:
            EvaluatorError: the device or the file cannot be used.
        """
        self.device = "cuda" if device == "auto" else device
        plugin = PLUGINS.get(split_device(self.device)[0])
        self.takes_bits = takes_bits(self.device)
        if precision == "auto" and not has_half(self.device):
            precision = "fp32"
        is_half = precision != "fp32" or form.feeds[0].dtype == "float16"
        self.precision = "fp16" if is_half else "fp32"
        self.batch_size = form.fixed_rows or batch_size or (plugin and plugin.rows) or form.gpu_rows
        self._feeds = form.feeds
        packed = form.feeds[: len(form.spec.bits)] if self.takes_bits and form.reads is Inputs.NUMBERS else ()
        variant = Variant(
            half=is_half,
            packed=tuple(feed.name for feed in packed),
            constant=tuple(feed.name for feed in packed if feed.constant),
            side=form.feeds[0].shape[-1] if form.any_size else 0,
            replayed=plugin is not None and plugin.captures,
        )
        is_fixed = form.fixed_rows is not None
        self._engine, self.name = open_engine(
            path, self.device, backend, self.batch_size, form.outputs, variant, fixed=is_fixed
        )

    def run(self, inputs: Sequence[Array]) -> Iterator[tuple[slice, list[Array]]]:
        """Yield the outputs of as many rows at a time as the engine takes."""
        most, count = self._engine.rows, len(inputs[0])
        for begin in range(0, count, most):
            part = slice(begin, min(begin + most, count))
            for feed, array in zip(self._feeds, inputs, strict=False):
                fill(self._engine, feed.name, array[part])
            yield part, self._engine.run(part.stop - begin)

    def bind(self, inputs: Sequence[Array]) -> None: ...

    def close(self) -> None:
        self._engine.close()


def takes_bits(device: str) -> bool:
    """Whether a GPU's inputs of zeros and ones are sent as bits."""
    plugin = PLUGINS.get(split_device(device)[0])
    return plugin is None or plugin.takes_bits


def has_half(device: str) -> bool:
    """Whether a GPU computes in float16; all of NVIDIA's do."""
    kind, number = split_device(device)
    return kind not in PLUGINS or plugin_gpus(kind)[number].has_half


def fill(engine: GpuEngine, name: str, values: npt.NDArray[Any]) -> None:
    """Write the first rows of an input: bits (uint64[rows, words]) if the engine unpacks them, otherwise numbers.

    Numbers may be [rows, channels] for an input that is constant over the board.
    """
    packed = engine.inputs.get(name + SUFFIX)
    if packed is not None:
        packed.view(np.uint64)[: len(values)] = values
        return
    target = engine.inputs[name]
    target[: len(values)] = values.reshape(*values.shape, *[1] * (target.ndim - values.ndim))

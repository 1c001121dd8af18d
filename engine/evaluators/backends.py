"""Backends that compute networks with layers: yomi's kernels, onnxruntime on the processor, or a session on a GPU."""

from __future__ import annotations

import weakref
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import numpy.typing as npt

from yomi.engine.evaluators.base import EvaluatorError
from yomi.engine.evaluators.devices import CPU, Device, first_line
from yomi.native.forward.builder import PRECISIONS
from yomi.native.forward.emit import WIDTH
from yomi.native.forward.entry import bind_program
from yomi.native.spec import Inputs

if TYPE_CHECKING:
    from yomi.engine.evaluators.network import Array, FloatArray, Format
    from yomi.native.bound_kernels import Calls
    from yomi.native.forward.builder import Program, Scratch
    from yomi.nets.gpu_variants import Variant

NATIVE_ROWS = 4
"""Rows in a batch. On 9x9 a batch of four is 10% faster a row than a single row for small networks, and 33% for large
ones, on 19x19 no faster. In shogi a row of 10 blocks x 192 takes 6.4 ms alone, 4.2 ms in a batch of 4, 8 or 16."""
ONNX_ROWS = 8  # of a batch by onnxruntime on the processor
NO_OUTPUTS = ((0, 0), (0,), (0,), (0,))  # shapes of absent policy, value, misc and ownership, for a row


def native_precision(asked: str) -> str:
    """Return `asked`, or the processor's fastest precision if `asked` is auto.

    Raises:
        EvaluatorError: the processor or the operating system does not support the precision.
    """
    if asked == "auto":
        return PRECISIONS[0]
    if asked not in PRECISIONS:
        raise EvaluatorError(f"precision {asked} is not for this processor: expected auto or {' or '.join(PRECISIONS)}")
    return asked


class Backend(Protocol):
    """Computes a network with layers. Subclasses use yomi's kernels, onnxruntime, or a GPU."""

    name: str  # native kernels, onnxruntime, TensorRT
    device: Device
    precision: str  # fp32, int16, int8, bf16, fp16
    batch_size: int  # fastest number of rows
    takes_bits: bool  # whether inputs of zeros and ones are bits

    def run(self, inputs: Sequence[Array]) -> Iterator[tuple[slice, list[Array]]]:
        """Yield the outputs for the inputs' rows, part by part. Each part is valid until the next one.

        Thread-safe, except on a GPU: there only the thread that made the backend may call this.
        """

    def bind(self, inputs: Sequence[FloatArray]) -> tuple[Calls, list[FloatArray]] | None:
        """Return calls that evaluate the first rows of `inputs` without Python, and the output arrays.

        Return None if this backend has no such calls. Then use `run`.
        """
        return None

    def close(self) -> None:
        """Release the device. No method may be called afterwards."""


class NativeBackend(Backend):
    """A program for yomi's kernels. All threads share it, and each call computes in its own thread."""

    name = f"native kernels, vectors of {WIDTH}"
    device = CPU
    takes_bits = False

    def __init__(self, program: Program, form: Format, batch_size: int | None = None) -> None:
        """Use batches of `batch_size` rows; None means NATIVE_ROWS."""
        self.precision = program.precision
        self.batch_size = batch_size or NATIVE_ROWS
        self._program = program
        self._form = form
        self._idle: list[Scratch] = []  # scratch memory that no thread uses; list.pop and append are atomic

    def run(self, inputs: Sequence[Array]) -> Iterator[tuple[slice, list[Array]]]:
        calls, outputs = self.bind([np.ascontiguousarray(array, np.float32) for array in inputs])
        calls.run(len(outputs[0]))
        yield slice(0, len(outputs[0])), list(outputs)

    def bind(self, inputs: Sequence[FloatArray]) -> tuple[Calls, list[FloatArray]]:
        """Return the calls that evaluate these arrays. The calls have their own scratch memory."""
        planes, extras = inputs
        rows = len(planes)
        outputs = [np.empty((rows, *shape), np.float32) for shape in self._form.output_shapes]
        all_outputs: list[Any] = [np.empty((rows, *shape), np.float32) for shape in NO_OUTPUTS]
        for place, output in zip(self._form.output_slots, outputs, strict=False):
            all_outputs[place] = output
        try:
            scratch = self._idle.pop()
        except IndexError:
            scratch = self._program.make_scratch()
        calls = bind_program(self._program, scratch, planes, extras, *all_outputs)
        weakref.finalize(calls, self._idle.append, scratch)
        return calls, outputs

    def close(self) -> None:
        self._idle.clear()


class OnnxBackend(Backend):
    """A session of onnxruntime on the processor. All threads share it."""

    name = "onnxruntime"
    device = CPU
    takes_bits = False

    def __init__(self, form: Format, batch_size: int | None = None) -> None:
        """Load the file. Batches have `batch_size` rows; None: the file's fixed size, or ONNX_ROWS.

        Raises:
            EvaluatorError: the file cannot be used.
        """
        from yomi.engine.evaluators.onnx_session import make_session

        self._session = make_session(form.onnx_file())
        self.precision = "fp16" if form.feeds[0].dtype == "float16" else "fp32"
        self.batch_size = batch_size or form.fixed_rows or ONNX_ROWS
        self._form = form

    def run(self, inputs: Sequence[Array]) -> Iterator[tuple[slice, list[Array]]]:
        """Evaluate all rows, in batches of the file's fixed size if it has one."""
        form, count = self._form, len(inputs[0])
        step = form.fixed_rows or count
        for begin in range(0, count, step):
            part = slice(begin, min(begin + step, count))
            given: list[Array | None] = [array[part] for array in inputs]
            given += [None] * (len(form.feeds) - len(given))
            fed = {feed.name: feed.fill(step, array) for feed, array in zip(form.feeds, given, strict=False)}
            try:
                outputs = self._session.run(list(form.outputs), fed)
            except Exception as error:  # onnxruntime raises its own kinds, all below Exception
                raise EvaluatorError(f"{form.info.source_file}: onnxruntime: {first_line(error)}") from error
            yield part, [output[: part.stop - begin] for output in outputs]

    def close(self) -> None:
        self._session = None


class GpuEngine(Protocol):
    """A network on a GPU: a session of onnxruntime or TensorRT. It belongs to the thread that made it."""

    name: str  # what computes
    rows: int  # greatest batch
    inputs: dict[str, npt.NDArray[Any]]  # by name, [rows, ...]; written before `run`

    def run(self, rows: int) -> list[npt.NDArray[Any]]:
        """Evaluate the first `rows` rows. The outputs, [rows, ...], are valid until the next call.

        Raises:
            EvaluatorError: the device failed, or the calling thread has lost its GPU context.
        """

    def close(self) -> None:
        """Release the device. Call this in the thread that made the engine."""


def open_engine(
    path: Path, device: Device, rows: int, outputs: Sequence[str], variant: Variant, *, fixed: bool = False
) -> GpuEngine:
    """Return a network on a GPU.

    The variant names the inputs that are sent as bits. A `fixed` file is for batches of exactly `rows` rows.

    Raises:
        EvaluatorError: the device cannot be used. The message contains the remedy.
        NetworkError: the file cannot be used.
    """
    from yomi.nets.gpu_variants import Variant, variant_file

    device.check()
    if "tensorrt" in device.row.backends:
        from yomi.engine.evaluators.tensorrt_session import TensorRtSession

        whole = variant_file(path, Variant(half=variant.half, side=variant.side))
        return TensorRtSession(whole, device, rows, outputs, variant, fixed=fixed)
    from yomi.engine.evaluators.onnx_session import GpuSession

    return GpuSession(variant_file(path, variant), device, rows, outputs, half=variant.half, fixed=fixed)


class GpuBackend(Backend):
    """A network on a GPU. Only the thread that made it may use it.

    Zeros and ones are sent as bits if the device can unpack them.
    """

    def __init__(self, form: Format, device: Device, batch_size: int | None = None, precision: str = "auto") -> None:
        """Load the file. Batches have `batch_size` rows; None: the file's fixed size, or a size for the device.

        Raises:
            EvaluatorError: the device or the file cannot be used.
        """
        from yomi.nets.gpu_variants import Variant

        path, row = form.onnx_file(), device.row
        self.device, self.takes_bits = device, row.takes_bits
        has_half = precision == "fp16" or (precision == "auto" and device.gpu.has_half)
        has_half = has_half or form.feeds[0].dtype == "float16"
        self.precision = "fp16" if has_half else "fp32"
        self.batch_size = form.fixed_rows or batch_size or row.rows or form.gpu_rows
        self._feeds = form.feeds
        packed = form.feeds[: len(form.spec.bits)] if self.takes_bits and form.reads is Inputs.NUMBERS else ()
        variant = Variant(
            half=has_half,
            packed=tuple(feed.name for feed in packed),
            constant=tuple(feed.name for feed in packed if feed.constant),
            side=form.feeds[0].shape[-1] if form.any_size else 0,
            webgpu=row.provider == "WebGpuExecutionProvider",
            fused=row.provider == "CUDAExecutionProvider",
        )
        is_fixed = form.fixed_rows is not None
        self._engine = open_engine(path, device, self.batch_size, form.outputs, variant, fixed=is_fixed)
        self.name = self._engine.name

    def run(self, inputs: Sequence[Array]) -> Iterator[tuple[slice, list[Array]]]:
        """Evaluate the inputs in batches of the engine's size. Yield the rows and the outputs of each batch."""
        most, count = self._engine.rows, len(inputs[0])
        for begin in range(0, count, most):
            part = slice(begin, min(begin + most, count))
            for feed, array in zip(self._feeds, inputs, strict=False):
                fill(self._engine, feed.name, array[part])
            yield part, self._engine.run(part.stop - begin)

    def close(self) -> None:
        self._engine.close()


def fill(engine: GpuEngine, name: str, values: npt.NDArray[Any]) -> None:
    """Write the first rows of an input: bits (uint64[rows, words]) if the engine unpacks them, otherwise numbers.

    Numbers may be [rows, channels] for an input that is constant over the board.
    """
    from yomi.nets.gpu_variants import SUFFIX

    packed = engine.inputs.get(name + SUFFIX)
    if packed is not None:
        packed.view(np.uint64)[: len(values)] = values
        return
    target = engine.inputs[name]
    target[: len(values)] = values.reshape(*values.shape, *[1] * (target.ndim - values.ndim))

"""A GPU as one evaluation worker uses it without onnxruntime: its context, its stream, its memory; by pycuda."""

from __future__ import annotations

import threading
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from engine.evaluators.base import EvaluatorError

Array = npt.NDArray[Any]

BLOCK = 256
"""Threads of a CUDA block of the unpacking kernel."""

_contexts: dict[int, Any] = {}
"""Primary contexts by GPU. They are kept: pycuda leaves a context that is released on its thread's stack."""
_contexts_lock = threading.Lock()


class Driver(Protocol):
    """One GPU, bound to the thread that opened it until `close`. Copies and kernels run in order, on one stream."""

    name: str
    """The GPU's name."""
    version: str
    """The driver's version."""
    stream: int
    """Handle of the stream."""

    def check(self) -> None:
        """See that the calling thread has this GPU's context.

        Raises:
            EvaluatorError: it has another, or none.
        """

    def host_array(self, shape: tuple[int, ...], dtype: npt.DTypeLike) -> Array:
        """Return a page-locked array of zeros."""

    def allocate(self, size: int) -> int:
        """Return the address of `size` bytes on the GPU, which live until `close`."""

    def upload(self, address: int, source: Array) -> None:
        """Copy a contiguous page-locked array to the GPU; returns before it is done."""

    def unpack(self, source: int, target: int, rows: int, words: int, bits: int, repeat: int, dtype: str) -> None:
        """Turn rows of bits into numbers: `native/cuda/unpack.cu`; returns before it is done.

        Args:
            source: address of the bits, `words` words of 32 bits a row.
            target: address of the numbers, bits * repeat a row.
            rows: how many.
            words: see `source`.
            bits: of a row.
            repeat: numbers made of each bit.
            dtype: float32 or float16.
        """

    def download(self, target: Array, address: int) -> None:
        """Copy to a contiguous page-locked array from the GPU; returns before it is done."""

    def synchronize(self) -> None:
        """Wait until all is done; without the GIL.

        Raises:
            EvaluatorError: some of it failed.
        """

    def close(self) -> None:
        """Free all memory and take the context off the thread, whatever state the GPU is in."""


class PycudaDriver:
    """See `Driver`. The context is the GPU's primary one, which TensorRT uses as well."""

    def __init__(self, number: int) -> None:
        """Push the context of GPU `number` in this thread.

        Raises:
            EvaluatorError: pycuda cannot be imported, or there is no such GPU.
        """
        try:
            import pycuda.driver as cuda
        except ImportError as error:  # its extension wants the driver's library
            raise EvaluatorError(f"pycuda cannot be imported: {error}") from error
        from native.cuda import read_ptx

        self._cuda = cuda
        self._memory: list[Any] = []
        self._kernels: dict[str, Any] = {}
        self._stream: Any = None
        self.name = f"GPU {number}"
        try:
            cuda.init()
            self._device = cuda.Device(number)
            with _contexts_lock:
                if number not in _contexts:
                    _contexts[number] = self._device.retain_primary_context()
            _contexts[number].push()
        except cuda.Error as error:
            raise EvaluatorError(f"GPU {number}: {error}") from error
        try:
            self.name = self._device.name()
            self.version = str(cuda.get_driver_version())
            self._stream = cuda.Stream()
            self.stream = int(self._stream.handle)
            module = cuda.module_from_buffer(read_ptx())
            self._kernels = {
                dtype: module.get_function(f"unpack_{dtype}").prepare("PPiii") for dtype in ("float32", "float16")
            }
        except BaseException as error:
            self.close()
            if isinstance(error, cuda.Error):
                raise EvaluatorError(f"GPU {number}: {error}") from error
            raise

    def check(self) -> None:
        """Compare the device of the thread's context, as the driver tells it, with this one."""
        try:
            found = self._cuda.Context.get_device()
        except self._cuda.Error as error:
            raise EvaluatorError(f"this thread has lost its GPU ({self.name}): {error}") from error
        if found != self._device:
            raise EvaluatorError(f"this thread has another GPU: {found.name()} found, expected {self.name}")

    def host_array(self, shape: tuple[int, ...], dtype: npt.DTypeLike) -> Array:
        """Return a page-locked array of zeros."""
        array: Array = self._cuda.pagelocked_zeros(shape, np.dtype(dtype))
        return array

    def allocate(self, size: int) -> int:
        """Allocate; pycuda frees what nobody holds."""
        self._memory.append(self._guarded(self._cuda.mem_alloc, max(1, size)))
        return int(self._memory[-1])

    def upload(self, address: int, source: Array) -> None:
        """Copy on the stream."""
        self._guarded(self._cuda.memcpy_htod_async, address, source, self._stream)

    def unpack(self, source: int, target: int, rows: int, words: int, bits: int, repeat: int, dtype: str) -> None:
        """Launch the kernel on the stream."""
        grid, block = (-(-bits * repeat // BLOCK), rows), (BLOCK, 1, 1)
        launch = self._kernels[dtype].prepared_async_call
        self._guarded(launch, grid, block, self._stream, source, target, words, bits, repeat)

    def download(self, target: Array, address: int) -> None:
        """Copy on the stream."""
        self._guarded(self._cuda.memcpy_dtoh_async, target, address, self._stream)

    def synchronize(self) -> None:
        """Wait for the stream; pycuda lets the GIL go meanwhile."""
        self._guarded(self._stream.synchronize)

    def close(self) -> None:
        """Release what needs the context, then pop it; a GPU in disorder refuses the former."""
        try:
            for block in self._memory:
                self._guarded(block.free)
        finally:
            self._memory.clear()
            self._kernels.clear()
            self._stream = None
            self._cuda.Context.pop()

    def _guarded(self, function: Any, *arguments: Any) -> Any:
        try:
            return function(*arguments)
        except self._cuda.Error as error:
            raise EvaluatorError(f"{self.name}: {error}") from error

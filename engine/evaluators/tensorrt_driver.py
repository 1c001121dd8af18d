"""A GPU as one evaluation worker uses it without onnxruntime: context, stream, memory.

There are two implementations. pycuda is used if it is installed; pip compiles it with a C++ compiler and CUDA's
headers. yomi's own binding of the driver (yomi.engine.evaluators.cuda) needs neither.
"""

from __future__ import annotations

import contextlib
import ctypes
import importlib.util
import threading
from collections.abc import Callable
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from yomi.engine.evaluators.base import EvaluatorError
from yomi.engine.evaluators.cuda import (
    BLOCK,
    NON_BLOCKING,
    CudaDriver,
    capture_graph,
    expect_alive,
    launch_graph,
    load_driver,
    prepare_context,
)

Array = npt.NDArray[Any]

# pycuda's primary contexts by GPU; never released, because a released context returns to its thread's stack
_contexts: dict[int, Any] = {}
_contexts_lock = threading.Lock()


class Driver(Protocol):
    """One GPU, bound to the thread that opened it until `close`. Copies and kernels run in order, on one stream."""

    name: str  # of the GPU
    version: str  # of the driver
    stream: int  # handle

    def check(self) -> None:
        """Raise EvaluatorError if the calling thread has another context, or none."""

    def pinned(self, shape: tuple[int, ...], dtype: npt.DTypeLike) -> Array: ...

    def allocate(self, size: int) -> int:
        """Return the address of `size` bytes on the GPU, which live until `close`."""

    def upload(self, address: int, source: Array) -> None:
        """Start to copy a contiguous page-locked array to the GPU."""

    def unpack(self, source: int, target: int, rows: int, words: int, bits: int, repeat: int, dtype: str) -> None:
        """Start to convert rows of bits to numbers of `dtype`: `native/cuda/unpack.cu`.

        A row has `words` words of 32 bits at the address `source`, and bits * repeat numbers at `target`.
        """

    def download(self, target: Array, address: int) -> None:
        """Start to copy from the GPU to a contiguous page-locked array."""

    def capture(self, work: Callable[[], None]) -> int:
        """Return a CUDA graph of the commands that `work` puts on the stream. They do not run now. It lives until
        `close`.

        Raises:
            EvaluatorError: something cannot be captured.
        """

    def launch(self, graph: int) -> None:
        """Start a captured graph on the stream."""

    def synchronize(self) -> None:
        """Wait until all commands are done, without the GIL, or raise EvaluatorError if one failed."""

    def expect_alive(self) -> None:
        """After an error of TensorRT, which has no reason, raise DeviceLostError if the GPU cannot be used any more."""

    def close(self) -> None:
        """Free all memory and pop the thread's context, whatever state the GPU is in."""


def driver_class() -> type[CudaDriver | PycudaDriver]:
    return CudaDriver if importlib.util.find_spec("pycuda") is None else PycudaDriver


def open_driver(number: int) -> Driver:
    return driver_class()(number)


def driver_name() -> str:
    """Return the driver's binding, in words."""
    return "pycuda" if driver_class() is PycudaDriver else "yomi's own binding of NVIDIA's driver"


class PycudaDriver:
    """Implements `Driver`. The context is the GPU's primary one, which TensorRT uses, too."""

    def __init__(self, number: int) -> None:
        """Push the context of GPU `number` in this thread.

        Raises:
            EvaluatorError: pycuda cannot be imported, or there is no such GPU.
        """
        try:
            import pycuda.driver as cuda
        except ImportError as error:  # it was compiled for another CUDA or Python
            raise EvaluatorError(
                f"pycuda cannot be imported ({error}): expected one that was compiled for this machine, or none: "
                "yomi's own binding of the driver takes its place once it is uninstalled"
            ) from error
        from yomi.native.cuda import read_ptx

        self._cuda = cuda
        self._memory: list[Any] = []
        self._graphs: list[int] = []
        self._kernels: dict[str, Any] = {}
        self._stream: Any = None
        self._number, self.name = number, f"GPU {number}"
        prepare_context(number)
        try:
            cuda.init()
            self._device = cuda.Device(number)
            with _contexts_lock:
                if number not in _contexts:
                    _contexts[number] = self._device.retain_primary_context()
                self._context = _contexts[number]
            self._context.push()
        except cuda.Error as error:
            raise EvaluatorError(f"GPU {number}: {error}") from error
        try:
            self.name = self._device.name()
            self.version = str(cuda.get_driver_version())
            self._stream = cuda.Stream(NON_BLOCKING)
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
        try:
            found = self._cuda.Context.get_device()
        except self._cuda.Error as error:
            raise EvaluatorError(f"this thread has lost its GPU ({self.name}): {error}") from error
        if found != self._device:
            raise EvaluatorError(f"this thread has another GPU: {found.name()} found, expected {self.name}")

    def pinned(self, shape: tuple[int, ...], dtype: npt.DTypeLike) -> Array:
        array: Array = self._guarded(self._cuda.pagelocked_zeros, shape, np.dtype(dtype))
        return array

    def allocate(self, size: int) -> int:
        self._memory.append(self._guarded(self._cuda.mem_alloc, size))
        return int(self._memory[-1])

    def upload(self, address: int, source: Array) -> None:
        self._guarded(self._cuda.memcpy_htod_async, address, source, self._stream)

    def unpack(self, source: int, target: int, rows: int, words: int, bits: int, repeat: int, dtype: str) -> None:
        grid, block = (-(-bits * repeat // BLOCK), rows), (BLOCK, 1, 1)
        launch = self._kernels[dtype].prepared_async_call
        self._guarded(launch, grid, block, self._stream, source, target, words, bits, repeat)

    def download(self, target: Array, address: int) -> None:
        self._guarded(self._cuda.memcpy_dtoh_async, target, address, self._stream)

    def capture(self, work: Callable[[], None]) -> int:
        self._graphs.append(capture_graph(self.stream, work))
        return self._graphs[-1]

    def launch(self, graph: int) -> None:
        launch_graph(graph, self.stream)

    def synchronize(self) -> None:
        self._guarded(self._stream.synchronize)

    def expect_alive(self) -> None:
        expect_alive(self.name)

    def close(self) -> None:
        """Release everything that needs the context, then pop pycuda's stack: a thread that ends with a context is
        aborted.

        pycuda's `pop` asks the driver first, which refuses after a fault. `detach` only warns. A detached context
        leaves a thread's stack when the stack is used next; the GPU's other threads lose their context, too.
        """
        for graph in self._graphs:
            load_driver().cuGraphExecDestroy(ctypes.c_void_p(graph))
        self._graphs.clear()
        for block in self._memory:
            with contextlib.suppress(self._cuda.Error):  # whoever used the GPU last was told
                block.free()
        self._memory.clear()
        self._kernels.clear()
        self._stream = None
        try:
            self._cuda.Context.pop()
        except self._cuda.Error:
            with _contexts_lock:
                if _contexts.get(self._number) is self._context:
                    del _contexts[self._number]
            with contextlib.suppress(self._cuda.Error):  # another thread may have done it
                self._context.detach()
            self._cuda.Context.get_current()
            load_driver().cuCtxSetCurrent(ctypes.c_void_p())

    def _guarded(self, function: Any, *arguments: Any) -> Any:
        try:
            return function(*arguments)
        except self._cuda.Error as error:
            self.expect_alive()
            raise EvaluatorError(f"{self.name}: {error}") from error

"""NVIDIA's driver through ctypes: the GPUs, and one GPU as a thread uses it. Only the driver must be installed.

It supplies what onnxruntime lacks, and everything that TensorRT needs.
"""

from __future__ import annotations

import ctypes
import functools
import logging
import sys
import uuid
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from yomi.engine.evaluators.base import DeviceLostError, EvaluatorError
from yomi.engine.machine import usable_cores

_log = logging.getLogger("yomi.evaluators")

Array = npt.NDArray[Any]

NO_DEVICE = 100  # CUDA_ERROR_NO_DEVICE: a driver without a GPU
LOST = frozenset((700, 702, *range(714, 720), 721, 810))
"""Errors after which, according to cuda.h, every further call fails until the process ends."""
PAGE = 4096
BLOCK = 256  # threads in a CUDA block of the unpacking kernel
SPINNING_CORES = 8
"""Cores from which a thread may spin while it waits for a GPU. With fewer it sleeps, because the search needs the
cores.

This many cores hold a GPU's two evaluation workers, four search workers and the protocol. CUDA itself spins unless it
has more contexts than processors. The gain of this rule has not been measured."""
BLOCKING_SYNC = 4  # CU_CTX_SCHED_BLOCKING_SYNC
# CU_STREAM_NON_BLOCKING: work on the default stream, even of other threads, does not disturb a capture
NON_BLOCKING = 1
THREAD_LOCAL = 1  # CU_STREAM_CAPTURE_MODE_THREAD_LOCAL: other threads may allocate during a capture


@functools.cache
def load_driver(*, keeps_gil: bool = False) -> Any:
    """Return NVIDIA's driver library, initialized.

    Args:
        keeps_gil: whether calls keep the GIL. Short calls should: otherwise they wait for the GIL behind other threads.
            Calls that wait for the GPU must release it.

    Raises:
        EvaluatorError: there is no working driver.
    """
    name = "nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1"
    try:
        driver = ctypes.PyDLL(name) if keeps_gil else ctypes.CDLL(name)
    except OSError:
        raise EvaluatorError(f"{name}, NVIDIA's driver, is not found") from None
    status = driver.cuInit(0)
    if status not in (0, NO_DEVICE):
        raise EvaluatorError(f"{name}: cuInit failed with CUDA error {status}")
    return driver


def driver_cuda() -> int:
    """Return the major version of the newest CUDA that the driver runs, or raise EvaluatorError without a driver."""
    version = ctypes.c_int()
    _check(load_driver().cuDriverGetVersion(ctypes.byref(version)), "cuDriverGetVersion")
    return version.value // 1000


def gpu_names() -> list[str]:
    """Return the names of the GPUs by number, or raise EvaluatorError without a driver."""
    driver, count = load_driver(), ctypes.c_int()
    if driver.cuDeviceGetCount(ctypes.byref(count)):
        return []
    names = []
    for number in range(count.value):
        name = ctypes.create_string_buffer(256)
        _check(driver.cuDeviceGetName(name, len(name), _device(number)), "cuDeviceGetName")
        names.append(name.value.decode())
    return names


def compute_capability(number: int) -> tuple[int, int]:
    """Return the major and minor compute capability of a GPU, or raise EvaluatorError."""
    driver, device, found = load_driver(), _device(number), []
    for attribute in (75, 76):  # CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR and _MINOR
        value = ctypes.c_int()
        _check(driver.cuDeviceGetAttribute(ctypes.byref(value), attribute, device), "cuDeviceGetAttribute")
        found.append(value.value)
    return found[0], found[1]


def gpu_uuid(number: int) -> str:
    """Return nvidia-smi's `uuid` of a GPU, or raise EvaluatorError.

    nvidia-smi numbers GPUs differently from CUDA, which begins with the fastest GPU.
    """
    found = ctypes.create_string_buffer(16)
    _check(load_driver().cuDeviceGetUuid(found, _device(number)), f"GPU {number}")
    return f"GPU-{uuid.UUID(bytes=found.raw)}"


def prepare_context(number: int) -> None:
    """Set how threads wait for a GPU. Call this before its primary context exists.

    Raises:
        EvaluatorError: there is no such GPU.
    """
    device = _device(number)
    if usable_cores() < SPINNING_CORES:
        flags = ctypes.c_uint(BLOCKING_SYNC)
        _check(load_driver().cuDevicePrimaryCtxSetFlags_v2(device, flags), f"GPU {number}")


def _check(status: int, what: str) -> None:
    """Raise EvaluatorError if a call to the driver failed; DeviceLostError if all later calls fail, too."""
    if status in LOST:
        raise DeviceLostError(f"{what}: CUDA error {status} found: this process cannot use the GPU any more")
    if status:
        raise EvaluatorError(f"{what}: CUDA error {status} found, expected none")


def expect_alive(name: str) -> None:
    """After an error, wait until the GPU of this thread's context is idle, or raise DeviceLostError.

    Args:
        name: of the GPU, for the message.
    """
    status = load_driver().cuCtxSynchronize()
    if status in LOST:
        _check(status, name)


def capture_graph(stream: int, work: Callable[[], None]) -> int:
    """Return the handle of a CUDA graph of the commands that `work` puts on a stream. They do not run now.

    Raises:
        EvaluatorError: the driver, or `work`, failed.
    """
    driver, graph, executable = load_driver(), ctypes.c_void_p(), ctypes.c_void_p()
    begun = driver.cuStreamBeginCapture_v2(ctypes.c_void_p(stream), ctypes.c_int(THREAD_LOCAL))
    _check(begun, "capturing a CUDA graph")
    try:
        work()
    finally:
        ended = driver.cuStreamEndCapture(ctypes.c_void_p(stream), ctypes.byref(graph))
    _check(ended, "capturing a CUDA graph")
    made = driver.cuGraphInstantiateWithFlags(ctypes.byref(executable), graph, ctypes.c_ulonglong(0))
    driver.cuGraphDestroy(graph)
    _check(made, "making a CUDA graph")
    assert executable.value is not None
    return executable.value


def launch_graph(graph: int, stream: int) -> None:
    """Put a CUDA graph on a stream, or raise EvaluatorError."""
    status = load_driver(keeps_gil=True).cuGraphLaunch(ctypes.c_void_p(graph), ctypes.c_void_p(stream))
    _check(status, "starting a CUDA graph")


class ThreadDevice:
    """A GPU that is bound to the thread that makes this object, from `__init__` to `close`."""

    def __init__(self, number: int) -> None:
        """Push the GPU's primary context, which onnxruntime and TensorRT use, too.

        Captures of other threads no longer affect this thread. onnxruntime captures in CUDA's global mode. During such
        a capture a thread in that mode, the default, may neither allocate nor page-lock: it fails, and so does the
        capture.

        Raises:
            EvaluatorError: the driver refuses.
        """
        self._driver, self._quick = load_driver(), load_driver(keeps_gil=True)
        self._capture_mode = ctypes.c_int(THREAD_LOCAL)
        self._device = _device(number)
        self._pinned: list[Array] = []
        self.name = f"GPU {number}"
        context = ctypes.c_void_p()
        prepare_context(number)
        _check(self._exchange_capture_mode(), "cuThreadExchangeStreamCaptureMode")
        _check(self._driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), self._device), self.name)
        status = self._driver.cuCtxPushCurrent_v2(context)
        if status:
            self._driver.cuDevicePrimaryCtxRelease_v2(self._device)
        _check(status, self.name)
        self._context = context

    def check(self) -> None:
        """Raise EvaluatorError if this thread has another device, or none."""
        current = ctypes.c_void_p()
        _check(self._quick.cuCtxGetCurrent(ctypes.byref(current)), "cuCtxGetCurrent")
        if current.value != self._context.value:
            raise EvaluatorError("this thread has lost its GPU: expected the context that it was started with")

    def pinned(self, shape: tuple[int, ...], dtype: npt.DTypeLike) -> Array:
        """Return a page-locked array of zeros, which the device copies directly, or raise EvaluatorError."""
        array = aligned_zeros(shape, dtype)
        if array.nbytes:
            size = -(-array.nbytes // PAGE) * PAGE
            status = self._driver.cuMemHostRegister_v2(
                ctypes.c_void_p(array.ctypes.data), ctypes.c_size_t(size), ctypes.c_uint(0)
            )
            _check(status, f"page-locking {size} bytes")
            self._pinned.append(array)
        return array

    def fetch(self, address: int, target: Array) -> None:
        """Copy from the device to a contiguous array. Earlier computations must have ended.

        Raises:
            EvaluatorError: the driver failed, for example after a fault of the device.
        """
        status = self._driver.cuMemcpyDtoH_v2(
            ctypes.c_void_p(target.ctypes.data), ctypes.c_uint64(address), ctypes.c_size_t(target.nbytes)
        )
        _check(status, f"copying {target.nbytes} bytes from the GPU")

    def expect_alive(self) -> None:
        expect_alive(self.name)

    def close(self) -> None:
        """Release memory and context, in the thread that took them, whatever state the GPU is in."""
        self._release()
        for array in self._pinned:
            self._try(self._driver.cuMemHostUnregister, ctypes.c_void_p(array.ctypes.data))
        self._pinned.clear()
        if not self._try(self._driver.cuCtxPopCurrent_v2, ctypes.byref(ctypes.c_void_p())):
            self._try(self._driver.cuCtxSetCurrent, ctypes.c_void_p())  # takes the topmost off as well
        self._try(self._driver.cuDevicePrimaryCtxRelease_v2, self._device)
        self._try(self._exchange_capture_mode)

    def _exchange_capture_mode(self) -> int:
        status: int = self._driver.cuThreadExchangeStreamCaptureMode(ctypes.byref(self._capture_mode))
        return status

    def _release(self) -> None:
        """Release everything that needs the context; for subclasses."""

    def _try(self, function: Callable[..., int], *arguments: Any) -> bool:
        """Call a function that may fail after a fault of the GPU, which has been reported before."""
        status = function(*arguments)
        if status:
            _log.info("%s: CUDA error %d while it was given back", self.name, status)
        return status == 0


class CudaDriver(ThreadDevice):
    def __init__(self, number: int) -> None:
        """Push the context of GPU `number` in this thread, or raise EvaluatorError."""
        from yomi.native.cuda import read_ptx

        super().__init__(number)
        self._memory: list[int] = []
        self._graphs: list[int] = []
        self._stream, self._module = ctypes.c_void_p(), ctypes.c_void_p()
        self._kernels: dict[str, Any] = {}
        try:
            self.name = gpu_names()[number]
            version = ctypes.c_int()
            _check(self._driver.cuDriverGetVersion(ctypes.byref(version)), self.name)
            self.version = str(version.value)
            status = self._driver.cuStreamCreate(ctypes.byref(self._stream), ctypes.c_uint(NON_BLOCKING))
            _check(status, self.name)
            assert self._stream.value is not None
            self.stream = self._stream.value
            status = self._driver.cuModuleLoadData(ctypes.byref(self._module), ctypes.c_char_p(read_ptx()))
            _check(status, f"{self.name}: loading the kernels")
            for dtype in ("float32", "float16"):
                self._kernels[dtype] = ctypes.c_void_p()
                entry = ctypes.c_char_p(f"unpack_{dtype}".encode())
                status = self._driver.cuModuleGetFunction(ctypes.byref(self._kernels[dtype]), self._module, entry)
                _check(status, f"{self.name}: loading the kernels")
        except BaseException:
            self.close()
            raise

    def allocate(self, size: int) -> int:
        address = ctypes.c_uint64()
        _check(self._driver.cuMemAlloc_v2(ctypes.byref(address), ctypes.c_size_t(size)), f"{size} bytes")
        self._memory.append(address.value)
        return address.value

    def upload(self, address: int, source: Array) -> None:
        status = self._quick.cuMemcpyHtoDAsync_v2(
            ctypes.c_uint64(address), ctypes.c_void_p(source.ctypes.data), ctypes.c_size_t(source.nbytes), self._stream
        )
        _check(status, f"copying {source.nbytes} bytes to the GPU")

    def unpack(self, source: int, target: int, rows: int, words: int, bits: int, repeat: int, dtype: str) -> None:
        grid, block = (-(-bits * repeat // BLOCK), rows, 1), (BLOCK, 1, 1)
        arguments = (ctypes.c_uint64(source), ctypes.c_uint64(target), *map(ctypes.c_int, (words, bits, repeat)))
        pointers = (ctypes.c_void_p * len(arguments))(*map(ctypes.addressof, arguments))
        status = self._quick.cuLaunchKernel(
            self._kernels[dtype], *map(ctypes.c_uint, (*grid, *block, 0)), self._stream, pointers, None
        )
        _check(status, "starting the unpacking")

    def download(self, target: Array, address: int) -> None:
        status = self._quick.cuMemcpyDtoHAsync_v2(
            ctypes.c_void_p(target.ctypes.data), ctypes.c_uint64(address), ctypes.c_size_t(target.nbytes), self._stream
        )
        _check(status, f"copying {target.nbytes} bytes from the GPU")

    def capture(self, work: Callable[[], None]) -> int:
        self._graphs.append(capture_graph(self.stream, work))
        return self._graphs[-1]

    def launch(self, graph: int) -> None:
        launch_graph(graph, self.stream)

    def synchronize(self) -> None:
        _check(self._driver.cuStreamSynchronize(self._stream), self.name)

    def _release(self) -> None:
        if self._stream.value is not None:
            self._try(self._driver.cuStreamSynchronize, self._stream)
        for graph in self._graphs:
            self._try(self._driver.cuGraphExecDestroy, ctypes.c_void_p(graph))
        for address in self._memory:
            self._try(self._driver.cuMemFree_v2, ctypes.c_uint64(address))
        if self._module.value is not None:
            self._try(self._driver.cuModuleUnload, self._module)
        if self._stream.value is not None:
            self._try(self._driver.cuStreamDestroy_v2, self._stream)


def aligned_zeros(shape: tuple[int, ...], dtype: npt.DTypeLike) -> Array:
    """Return an array of zeros that shares no memory page with other data."""
    size = int(np.prod(shape)) * np.dtype(dtype).itemsize
    memory = np.zeros(-(-size // PAGE) * PAGE + PAGE, np.uint8)
    start = -memory.ctypes.data % PAGE
    return memory[start : start + size].view(dtype).reshape(shape)


def _device(number: int) -> ctypes.c_int:
    device = ctypes.c_int()
    _check(load_driver().cuDeviceGet(ctypes.byref(device), number), f"GPU {number}")
    return device

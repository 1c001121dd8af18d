"""NVIDIA's driver, called through ctypes: lists the GPUs, and lets a thread use one. Only the driver must be installed.

It supplies what onnxruntime lacks, and everything that TensorRT needs. If pycuda is installed, TensorRT's contexts come
from it, so that yomi and other users of pycuda in this process find each other's.
"""

import contextlib
import ctypes
import functools
import importlib.util
import logging
import sys
import threading
import uuid
from collections.abc import Callable
from typing import Any, ClassVar

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
SPINNING_CORES = 10
"""Cores from which a thread may spin while it waits for a GPU. With fewer it sleeps, because the search needs the
cores.

This many cores hold a GPU's two evaluation workers, six search workers and the protocol. CUDA itself spins unless it
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
    """Return the major version of the newest CUDA that the driver supports. Raises EvaluatorError without a driver."""
    return _driver_version() // 1000


def _driver_version() -> int:
    """Return the newest CUDA that the driver supports, such as 13020 for 13.2."""
    version = ctypes.c_int()
    _check(load_driver().cuDriverGetVersion(ctypes.byref(version)), "cuDriverGetVersion")
    return version.value


def gpu_names() -> list[str]:
    """Return the names of the GPUs in CUDA's order. Raises EvaluatorError without a driver."""
    driver, count = load_driver(), ctypes.c_int()
    if driver.cuDeviceGetCount(ctypes.byref(count)):
        return []
    names = []
    for number in range(count.value):
        name = ctypes.create_string_buffer(256)
        _check(driver.cuDeviceGetName(name, len(name), _device(number)), "cuDeviceGetName")
        names.append(name.value.decode())
    return names


def gpu_descriptions() -> list[str]:
    """Return name and driver of each GPU, in CUDA's order. Raises EvaluatorError without a driver."""
    names, version = gpu_names(), _driver_version()
    return [f"{name}, driver for CUDA {version // 1000}.{version % 1000 // 10}" for name in names]


def compute_capability(number: int) -> tuple[int, int]:
    """Return a GPU's compute capability as (major, minor). Raises EvaluatorError."""
    driver, device, found = load_driver(), _device(number), []
    for attribute in (75, 76):  # CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR and _MINOR
        value = ctypes.c_int()
        _check(driver.cuDeviceGetAttribute(ctypes.byref(value), attribute, device), "cuDeviceGetAttribute")
        found.append(value.value)
    return found[0], found[1]


def gpu_uuid(number: int) -> str:
    """Return the `uuid` that nvidia-smi shows for a GPU. Raises EvaluatorError.

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
    """Raise EvaluatorError if a call to the driver failed. If all later calls will fail, too, raise DeviceLostError."""
    if status in LOST:
        raise DeviceLostError(f"{what}: CUDA error {status} found: this process cannot use the GPU any more")
    if status:
        raise EvaluatorError(f"{what}: CUDA error {status} found, expected none")


class _Context:
    """Makes a GPU's primary context the current context of the calling thread.

    onnxruntime and TensorRT use the primary context, too.
    """

    def __init__(self, number: int) -> None:
        self._driver, self._device = load_driver(), _device(number)
        self._handle = ctypes.c_void_p()
        status = self._driver.cuDevicePrimaryCtxRetain(ctypes.byref(self._handle), self._device)
        _check(status, f"GPU {number}")
        status = self._driver.cuCtxPushCurrent_v2(self._handle)
        if status:
            self._driver.cuDevicePrimaryCtxRelease_v2(self._device)
        _check(status, f"GPU {number}")

    def check(self) -> None:
        """Raise EvaluatorError if the calling thread has another context, or none."""
        current = ctypes.c_void_p()
        _check(load_driver(keeps_gil=True).cuCtxGetCurrent(ctypes.byref(current)), "cuCtxGetCurrent")
        if current.value != self._handle.value:
            raise EvaluatorError("this thread has lost its GPU: expected the context that it was started with")

    def close(self) -> None:
        """Remove the context from the thread, whatever state the GPU is in."""
        if not _try(self._driver.cuCtxPopCurrent_v2, ctypes.byref(ctypes.c_void_p())):
            _try(self._driver.cuCtxSetCurrent, ctypes.c_void_p())  # takes the topmost off as well
        _try(self._driver.cuDevicePrimaryCtxRelease_v2, self._device)


class PycudaContext:
    """A context like `_Context`, made by pycuda, which keeps its own stack of contexts for each thread.

    pycuda aborts a thread that ends with a context on its stack.
    """

    # primary contexts by GPU; never released, because a released context returns to its thread's stack
    _contexts: ClassVar[dict[int, Any]] = {}
    _lock = threading.Lock()

    def __init__(self, number: int) -> None:
        """Push the context. Raises EvaluatorError if pycuda cannot be imported or there is no such GPU."""
        try:
            import pycuda.driver as cuda
        except ImportError as error:  # it was compiled for another CUDA or Python
            raise EvaluatorError(
                f"pycuda cannot be imported ({error}): expected one that was compiled for this machine, or none: "
                "yomi's own binding of the driver takes its place once it is uninstalled"
            ) from error
        self._cuda, self._number = cuda, number
        try:
            cuda.init()
            self._device = cuda.Device(number)
            with self._lock:
                if number not in self._contexts:
                    self._contexts[number] = self._device.retain_primary_context()
                self._context = self._contexts[number]
            self._context.push()
        except cuda.Error as error:
            raise EvaluatorError(f"GPU {number}: {error}") from error

    def check(self) -> None:
        try:
            found = self._cuda.Context.get_device()
        except self._cuda.Error as error:
            raise EvaluatorError(f"this thread has lost its GPU: {error}") from error
        if found != self._device:
            raise EvaluatorError(f"this thread has another GPU: {found.name()} found, expected {self._device.name()}")

    def close(self) -> None:
        """Remove the context from the thread.

        After a fault of the GPU the driver refuses pycuda's `pop`, while `detach` only warns. pycuda drops a detached
        context from its stack when it uses the stack next. The GPU's other threads lose their context, too.
        """
        try:
            self._cuda.Context.pop()
        except self._cuda.Error:
            with self._lock:
                if self._contexts.get(self._number) is self._context:
                    del self._contexts[self._number]
            with contextlib.suppress(self._cuda.Error):  # another thread may have done it
                self._context.detach()
            self._cuda.Context.get_current()
            load_driver().cuCtxSetCurrent(ctypes.c_void_p())


def has_pycuda() -> bool:
    return importlib.util.find_spec("pycuda") is not None


class ThreadDevice:
    """The use of one GPU by one thread. It begins with `__init__` and ends with `close`."""

    def __init__(self, number: int, context: type[_Context | PycudaContext] = _Context) -> None:
        """Make the GPU's context current in this thread, and separate the thread from captures of other threads.

        onnxruntime captures graphs in CUDA's global mode. Without the separation, an allocation in this thread during
        such a capture fails, and so does the capture.

        Raises:
            EvaluatorError: the driver refuses.
        """
        self._driver, self._quick = load_driver(), load_driver(keeps_gil=True)
        self._capture_mode = ctypes.c_int(THREAD_LOCAL)
        self._pinned: list[Array] = []
        self.name = f"GPU {number}"
        prepare_context(number)
        _check(self._exchange_capture_mode(), "cuThreadExchangeStreamCaptureMode")
        self._context = context(number)

    def check(self) -> None:
        """Raise EvaluatorError if this thread has another device, or none."""
        self._context.check()

    def pinned(self, shape: tuple[int, ...], dtype: npt.DTypeLike) -> Array:
        """Return a page-locked array of zeros, which the device can copy directly. Raises EvaluatorError."""
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
        """After an error in a library, wait until the GPU is idle. Raise DeviceLostError if it cannot be used again."""
        status = self._driver.cuCtxSynchronize()
        if status in LOST:
            _check(status, self.name)

    def close(self) -> None:
        """Release memory and context, whatever state the GPU is in. Call this in the thread that took them."""
        self._release()
        for array in self._pinned:
            _try(self._driver.cuMemHostUnregister, ctypes.c_void_p(array.ctypes.data))
        self._pinned.clear()
        self._context.close()
        _try(self._exchange_capture_mode)

    def _exchange_capture_mode(self) -> int:
        status: int = self._driver.cuThreadExchangeStreamCaptureMode(ctypes.byref(self._capture_mode))
        return status

    def _release(self) -> None:
        """Release everything that needs the context. Subclasses override this."""


class CudaDriver(ThreadDevice):
    """A GPU for TensorRT's sessions. Copies and kernels run in their order on one stream."""

    def __init__(self, number: int) -> None:
        """Push the context of GPU `number` in this thread. Raises EvaluatorError."""
        from yomi.native.cuda import PTX

        super().__init__(number, PycudaContext if has_pycuda() else _Context)
        self._memory: list[int] = []
        self._graphs: list[int] = []
        self._stream, self._module = ctypes.c_void_p(), ctypes.c_void_p()
        self._kernels = {dtype: ctypes.c_void_p() for dtype in ("float32", "float16")}
        try:
            self.name = gpu_names()[number]
            self.version = str(_driver_version())
            status = self._driver.cuStreamCreate(ctypes.byref(self._stream), ctypes.c_uint(NON_BLOCKING))
            _check(status, self.name)
            assert self._stream.value is not None
            self.stream = self._stream.value  # its handle
            status = self._driver.cuModuleLoadData(ctypes.byref(self._module), ctypes.c_char_p(PTX.read_bytes()))
            _check(status, f"{self.name}: loading the kernels")
            for dtype, kernel in self._kernels.items():
                entry = ctypes.c_char_p(f"unpack_{dtype}".encode())
                status = self._driver.cuModuleGetFunction(ctypes.byref(kernel), self._module, entry)
                _check(status, f"{self.name}: loading the kernels")
        except BaseException:
            self.close()
            raise

    def allocate(self, size: int) -> int:
        """Allocate `size` bytes on the GPU until `close`. Return their address."""
        address = ctypes.c_uint64()
        _check(self._driver.cuMemAlloc_v2(ctypes.byref(address), ctypes.c_size_t(size)), f"{size} bytes")
        self._memory.append(address.value)
        return address.value

    def upload(self, address: int, source: Array) -> None:
        """Start to copy a contiguous page-locked array to the GPU."""
        status = self._quick.cuMemcpyHtoDAsync_v2(
            ctypes.c_uint64(address), ctypes.c_void_p(source.ctypes.data), ctypes.c_size_t(source.nbytes), self._stream
        )
        _check(status, f"copying {source.nbytes} bytes to the GPU")

    def unpack(self, source: int, target: int, rows: int, words: int, bits: int, repeat: int, dtype: str) -> None:
        """Start to convert rows of bits to numbers of `dtype`: `native/cuda/unpack.cu`.

        A row has `words` words of 32 bits at the address `source`, and bits * repeat numbers at `target`.
        """
        grid, block = (-(-bits * repeat // BLOCK), rows, 1), (BLOCK, 1, 1)
        arguments = (ctypes.c_uint64(source), ctypes.c_uint64(target), *map(ctypes.c_int, (words, bits, repeat)))
        pointers = (ctypes.c_void_p * len(arguments))(*map(ctypes.addressof, arguments))
        status = self._quick.cuLaunchKernel(
            self._kernels[dtype], *map(ctypes.c_uint, (*grid, *block, 0)), self._stream, pointers, None
        )
        _check(status, "starting the unpacking")

    def download(self, target: Array, address: int) -> None:
        """Start to copy from the GPU to a contiguous page-locked array."""
        status = self._quick.cuMemcpyDtoHAsync_v2(
            ctypes.c_void_p(target.ctypes.data), ctypes.c_uint64(address), ctypes.c_size_t(target.nbytes), self._stream
        )
        _check(status, f"copying {target.nbytes} bytes from the GPU")

    def capture(self, work: Callable[[], None]) -> int:
        """Return a CUDA graph of the commands that `work` puts on the stream, without running them. `close` frees the
        graph.

        Raises:
            EvaluatorError: the driver, or `work`, failed.
        """
        driver, graph, executable = self._driver, ctypes.c_void_p(), ctypes.c_void_p()
        _check(driver.cuStreamBeginCapture_v2(self._stream, ctypes.c_int(THREAD_LOCAL)), "capturing a CUDA graph")
        try:
            work()
        finally:
            ended = driver.cuStreamEndCapture(self._stream, ctypes.byref(graph))
        _check(ended, "capturing a CUDA graph")
        made = driver.cuGraphInstantiateWithFlags(ctypes.byref(executable), graph, ctypes.c_ulonglong(0))
        driver.cuGraphDestroy(graph)
        _check(made, "making a CUDA graph")
        assert executable.value is not None
        self._graphs.append(executable.value)
        return executable.value

    def launch(self, graph: int) -> None:
        """Start a captured graph on the stream."""
        _check(self._quick.cuGraphLaunch(ctypes.c_void_p(graph), self._stream), "starting a CUDA graph")

    def synchronize(self) -> None:
        """Wait without the GIL until all commands are done. Raises EvaluatorError if one of them failed."""
        _check(self._driver.cuStreamSynchronize(self._stream), self.name)

    def _release(self) -> None:
        if self._stream.value is not None:
            _try(self._driver.cuStreamSynchronize, self._stream)
        for graph in self._graphs:
            _try(self._driver.cuGraphExecDestroy, ctypes.c_void_p(graph))
        for address in self._memory:
            _try(self._driver.cuMemFree_v2, ctypes.c_uint64(address))
        if self._module.value is not None:
            _try(self._driver.cuModuleUnload, self._module)
        if self._stream.value is not None:
            _try(self._driver.cuStreamDestroy_v2, self._stream)


def _try(function: Callable[..., int], *arguments: Any) -> bool:
    """Call a function that may fail after a fault of the GPU. Such a fault has been reported before."""
    status = function(*arguments)
    if status:
        _log.info("CUDA error %d while a GPU was given back", status)
    return status == 0


def aligned_zeros(shape: tuple[int, ...], dtype: npt.DTypeLike) -> Array:
    """Return an array of zeros on memory pages that contain no other data."""
    size = int(np.prod(shape)) * np.dtype(dtype).itemsize
    memory = np.zeros(-(-size // PAGE) * PAGE + PAGE, np.uint8)
    start = -memory.ctypes.data % PAGE
    return memory[start : start + size].view(dtype).reshape(shape)


def _device(number: int) -> ctypes.c_int:
    device = ctypes.c_int()
    _check(load_driver().cuDeviceGet(ctypes.byref(device), number), f"GPU {number}")
    return device

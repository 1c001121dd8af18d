"""NVIDIA's driver through ctypes: which GPUs there are, this thread's device, and page-locked memory.

No more than what onnxruntime leaves out; nothing has to be installed for it but the driver.
"""

from __future__ import annotations

import ctypes
import functools
import sys
from typing import Any

import numpy as np
import numpy.typing as npt

from engine.evaluators.base import EvaluatorError

NO_DEVICE = 100
"""CUDA_ERROR_NO_DEVICE: a driver without a GPU."""
THREAD_LOCAL = 1
"""CU_STREAM_CAPTURE_MODE_THREAD_LOCAL."""
PAGE = 4096


@functools.cache
def load_driver() -> Any:
    """Return NVIDIA's driver library, initialised.

    Raises:
        EvaluatorError: there is none, or it does not work.
    """
    name = "nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1"
    try:
        driver = ctypes.CDLL(name)
    except OSError:
        raise EvaluatorError(f"{name}, NVIDIA's driver, is not found") from None
    status = driver.cuInit(0)
    if status not in (0, NO_DEVICE):
        raise EvaluatorError(f"{name}: cuInit failed with CUDA error {status}")
    return driver


def driver_cuda() -> int:
    """Return the newest CUDA that the driver can run, major version alone.

    Raises:
        EvaluatorError: there is no driver.
    """
    version = ctypes.c_int()
    _check(load_driver().cuDriverGetVersion(ctypes.byref(version)), "cuDriverGetVersion")
    return version.value // 1000


def gpu_names() -> list[str]:
    """Return the names of the GPUs by number; none where there is a driver without a GPU.

    Raises:
        EvaluatorError: there is no driver.
    """
    driver, count = load_driver(), ctypes.c_int()
    if driver.cuDeviceGetCount(ctypes.byref(count)):
        return []
    names = []
    for number in range(count.value):
        device, name = ctypes.c_int(), ctypes.create_string_buffer(256)
        _check(driver.cuDeviceGet(ctypes.byref(device), number), "cuDeviceGet")
        _check(driver.cuDeviceGetName(name, len(name), device), "cuDeviceGetName")
        names.append(name.value.decode())
    return names


class ThreadDevice:
    """A GPU as the thread that makes this is bound to it, from `__init__` to `close`."""

    def __init__(self, number: int) -> None:
        """Make the GPU's primary context, which onnxruntime uses too, this thread's own.

        From then on what other threads capture does not concern this one. onnxruntime captures in CUDA's global mode,
        during which threads in that mode, the default, may neither allocate nor page-lock: they fail, and so does the
        capture.

        Raises:
            EvaluatorError: the driver refuses.
        """
        self._driver = load_driver()
        self._capture_mode = ctypes.c_int(THREAD_LOCAL)
        self._exchange_capture_mode()
        self._device = ctypes.c_int()
        self._pinned: list[npt.NDArray[Any]] = []
        context = ctypes.c_void_p()
        _check(self._driver.cuDeviceGet(ctypes.byref(self._device), number), f"GPU {number}")
        _check(self._driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), self._device), f"GPU {number}")
        _check(self._driver.cuCtxPushCurrent_v2(context), f"GPU {number}")
        self._context = context

    def check(self) -> None:
        """See that this thread still has the device.

        Raises:
            EvaluatorError: it has another, or none.
        """
        current = ctypes.c_void_p()
        _check(self._driver.cuCtxGetCurrent(ctypes.byref(current)), "cuCtxGetCurrent")
        if current.value != self._context.value:
            raise EvaluatorError("this thread has lost its GPU: expected the context that it was started with")

    def pinned(self, shape: tuple[int, ...], dtype: npt.DTypeLike) -> npt.NDArray[Any]:
        """Return a page-locked array of zeros, which the device copies without a detour.

        Raises:
            EvaluatorError: the driver refuses.
        """
        array = aligned_zeros(shape, dtype)
        if array.nbytes:
            size = -(-array.nbytes // PAGE) * PAGE
            status = self._driver.cuMemHostRegister_v2(
                ctypes.c_void_p(array.ctypes.data), ctypes.c_size_t(size), ctypes.c_uint(0)
            )
            _check(status, f"page-locking {size} bytes")
            self._pinned.append(array)
        return array

    def fetch(self, address: int, target: npt.NDArray[Any]) -> None:
        """Copy from the device into a contiguous array; what was computed before must have ended.

        Raises:
            EvaluatorError: the driver refuses, for instance after a fault of the device.
        """
        status = self._driver.cuMemcpyDtoH_v2(
            ctypes.c_void_p(target.ctypes.data), ctypes.c_uint64(address), ctypes.c_size_t(target.nbytes)
        )
        _check(status, f"copying {target.nbytes} bytes from the GPU")

    def close(self) -> None:
        """Give the memory and the context back, in the thread that took them."""
        for array in self._pinned:
            self._driver.cuMemHostUnregister(ctypes.c_void_p(array.ctypes.data))
        self._pinned.clear()
        self._driver.cuCtxPopCurrent_v2(ctypes.byref(ctypes.c_void_p()))
        self._driver.cuDevicePrimaryCtxRelease_v2(self._device)
        self._exchange_capture_mode()

    def _exchange_capture_mode(self) -> None:
        """Give the thread the mode that is kept here, and keep the one it had."""
        status = self._driver.cuThreadExchangeStreamCaptureMode(ctypes.byref(self._capture_mode))
        _check(status, "cuThreadExchangeStreamCaptureMode")


def aligned_zeros(shape: tuple[int, ...], dtype: npt.DTypeLike) -> npt.NDArray[Any]:
    """Return an array of zeros that has its pages for itself."""
    size = int(np.prod(shape)) * np.dtype(dtype).itemsize
    memory = np.zeros(-(-size // PAGE) * PAGE + PAGE, np.uint8)
    start = -memory.ctypes.data % PAGE
    return memory[start : start + size].view(dtype).reshape(shape)


def _check(status: int, what: str) -> None:
    if status:
        raise EvaluatorError(f"{what}: CUDA error {status} found, expected none")

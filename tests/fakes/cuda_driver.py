"""NVIDIA's driver library as engine.evaluators.cuda calls it: remembers every call and who made it."""

from __future__ import annotations

import ctypes
import threading
from typing import Any

INVALID = 201
CAPTURE_UNSUPPORTED = 900


class FakeDriver:
    """Contexts are the GPU's number plus 1000; each thread has its stack of them, as the real driver has.

    Args:
        gpus: how many there are.
    """

    def __init__(self, gpus: int = 2) -> None:
        self.gpus = gpus
        self.version = 13020
        self.calls: list[tuple[str, int, int]] = []
        """(function, its number or size, thread)"""
        self.stacks: dict[int, list[int]] = {}
        self.registered: set[int] = set()
        self.retained: dict[int, int] = {}
        self.capture_modes: dict[int, int] = {}
        """By thread; 0, global, where it has not been exchanged."""
        self.capturing: int | None = None
        """The thread that captures, in the global mode as onnxruntime does."""

    def _is_prohibited(self) -> bool:
        """Whether the calling thread may not do what is unsafe while another captures."""
        thread = threading.get_ident()
        return self.capturing not in (None, thread) and self.capture_modes.get(thread, 0) == 0

    def cuThreadExchangeStreamCaptureMode(self, mode: Any) -> int:  # noqa: N802
        thread = threading.get_ident()
        before = self.capture_modes.get(thread, 0)
        self.capture_modes[thread], mode._obj.value = mode._obj.value, before
        return 0

    def cuDriverGetVersion(self, version: Any) -> int:  # noqa: N802
        version._obj.value = self.version
        return 0

    def _note(self, name: str, value: int = 0) -> None:
        self.calls.append((name, value, threading.get_ident()))

    def names(self) -> list[str]:
        """Return the calls in order."""
        return [name for name, _, _ in self.calls]

    @property
    def _stack(self) -> list[int]:
        return self.stacks.setdefault(threading.get_ident(), [])

    def cuDeviceGet(self, device: Any, number: int) -> int:  # noqa: N802
        device._obj.value = number
        return 0 if number < self.gpus else 101

    def cuDevicePrimaryCtxRetain(self, context: Any, device: ctypes.c_int) -> int:  # noqa: N802
        if self._is_prohibited():
            return CAPTURE_UNSUPPORTED
        self._note("retain", device.value)
        self.retained[device.value] = self.retained.get(device.value, 0) + 1
        context._obj.value = 1000 + device.value
        return 0

    def cuCtxPushCurrent_v2(self, context: ctypes.c_void_p) -> int:  # noqa: N802
        assert context.value is not None
        self._note("push", context.value - 1000)
        self._stack.append(context.value)
        return 0

    def cuCtxGetCurrent(self, context: Any) -> int:  # noqa: N802
        self._note("check")
        context._obj.value = self._stack[-1] if self._stack else None
        return 0

    def cuMemHostRegister_v2(self, address: ctypes.c_void_p, size: ctypes.c_size_t, flags: Any) -> int:  # noqa: N802
        assert address.value is not None
        if self._is_prohibited():
            return CAPTURE_UNSUPPORTED
        if not self._stack or address.value % 4096 or size.value % 4096 or address.value in self.registered:
            return INVALID
        self._note("pin", size.value)
        self.registered.add(address.value)
        return 0

    def cuMemHostUnregister(self, address: ctypes.c_void_p) -> int:  # noqa: N802
        assert address.value is not None
        self._note("unpin")
        self.registered.remove(address.value)
        return 0

    def cuMemcpyDtoH_v2(self, target: ctypes.c_void_p, source: ctypes.c_uint64, size: ctypes.c_size_t) -> int:  # noqa: N802
        if not self._stack:
            return INVALID
        self._note("fetch", size.value)
        assert target.value is not None
        ctypes.memmove(target.value, source.value, size.value)
        return 0

    def cuCtxPopCurrent_v2(self, context: Any) -> int:  # noqa: N802
        self._note("pop", self._stack.pop() - 1000)
        return 0

    def cuDevicePrimaryCtxRelease_v2(self, device: ctypes.c_int) -> int:  # noqa: N802
        self._note("release", device.value)
        self.retained[device.value] -= 1
        return 0

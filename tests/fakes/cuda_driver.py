"""NVIDIA's driver library as yomi.engine.evaluators.cuda calls it: remembers calls, and computes in numpy's memory."""

import ctypes
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from tests.fakes.gpu_driver import unpack_rows

INVALID = 201
CAPTURE_UNSUPPORTED = 900
Work = Callable[[], object]


class FakeDriver:
    """Contexts are the GPU's number plus 1000; each thread has its stack of them, as the real driver has.

    What is put on a stream is put off until it is synchronised, or belongs to a graph while the stream is captured.

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
        self.flags: dict[int, int] = {}
        """Of the GPUs' primary contexts."""
        self.memory: dict[int, npt.NDArray[np.uint8]] = {}
        self.streams: dict[int, list[Work]] = {}
        self.graphs: dict[int, list[Work]] = {}
        self.handles = 7000
        """The last that was given out, of streams, graphs and modules."""
        self.modules = 0
        """How many are loaded."""
        self.error = 0
        """What every call says that needs a context, for instance after a fault of the GPU; nothing is done then."""

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

    def _give(self, place: Any) -> int:
        self.handles += 1
        place._obj.value = self.handles
        return self.handles

    def _put(self, stream: ctypes.c_void_p, work: Work) -> int:
        """Put work on a stream."""
        if not self._stack:
            return INVALID
        assert stream.value is not None
        if not self.error:
            self.streams[stream.value].append(work)
        return self.error

    def _allocation(self, address: int, size: int) -> npt.NDArray[np.uint8]:
        block = self.memory[address]
        assert size <= block.nbytes
        return block[:size]

    # -- devices and contexts --------------------------------------------------------------------------------------

    def cuDeviceGetCount(self, count: Any) -> int:  # noqa: N802
        count._obj.value = self.gpus
        return 0

    def cuDeviceGet(self, device: Any, number: int) -> int:  # noqa: N802
        device._obj.value = number
        return 0 if number < self.gpus else 101

    def cuDeviceGetName(self, name: Any, size: int, device: ctypes.c_int) -> int:  # noqa: N802
        name.value = f"NVIDIA {device.value}".encode()
        return 0

    def cuDeviceGetUuid(self, found: Any, device: ctypes.c_int) -> int:  # noqa: N802
        found.raw = bytes([device.value, *range(1, 16)])
        return 0

    def cuDevicePrimaryCtxSetFlags_v2(self, device: ctypes.c_int, flags: ctypes.c_uint) -> int:  # noqa: N802
        self.flags[device.value] = flags.value
        return 0

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

    def cuCtxSetCurrent(self, context: ctypes.c_void_p) -> int:  # noqa: N802
        assert context.value is None
        self._note("unbind")
        del self._stack[-1:]
        return 0

    def cuCtxSynchronize(self) -> int:  # noqa: N802
        return self.error

    def cuCtxPopCurrent_v2(self, context: Any) -> int:  # noqa: N802
        self._note("pop", self._stack[-1] - 1000)
        if not self.error:
            self._stack.pop()
        return self.error

    def cuDevicePrimaryCtxRelease_v2(self, device: ctypes.c_int) -> int:  # noqa: N802
        self._note("release", device.value)
        self.retained[device.value] -= 1
        return 0

    # -- memory ----------------------------------------------------------------------------------------------------

    def cuMemHostRegister_v2(self, address: ctypes.c_void_p, size: ctypes.c_size_t, flags: Any) -> int:  # noqa: N802
        assert address.value is not None
        if self._is_prohibited():
            return CAPTURE_UNSUPPORTED
        if not self._stack or address.value % 4096 or size.value % 4096 or address.value in self.registered:
            return INVALID
        self._note("pin", size.value)
        self.registered.add(address.value)
        return self.error

    def cuMemHostUnregister(self, address: ctypes.c_void_p) -> int:  # noqa: N802
        assert address.value is not None
        self._note("unpin")
        self.registered.remove(address.value)
        return self.error

    def cuMemAlloc_v2(self, address: Any, size: ctypes.c_size_t) -> int:  # noqa: N802
        if not self._stack or not size.value:
            return INVALID
        block = np.full(size.value, 255, np.uint8)
        self.memory[block.ctypes.data] = block
        address._obj.value = block.ctypes.data
        return self.error

    def cuMemFree_v2(self, address: ctypes.c_uint64) -> int:  # noqa: N802
        del self.memory[address.value]
        return self.error

    def cuMemcpyDtoH_v2(self, target: ctypes.c_void_p, source: ctypes.c_uint64, size: ctypes.c_size_t) -> int:  # noqa: N802
        if not self._stack:
            return INVALID
        self._note("fetch", size.value)
        assert target.value is not None
        ctypes.memmove(target.value, source.value, size.value)
        return self.error

    def cuMemcpyHtoDAsync_v2(self, target: Any, source: Any, size: ctypes.c_size_t, stream: Any) -> int:  # noqa: N802
        block = self._allocation(target.value, size.value)
        return self._put(stream, lambda: ctypes.memmove(block.ctypes.data, source.value, size.value))

    def cuMemcpyDtoHAsync_v2(self, target: Any, source: Any, size: ctypes.c_size_t, stream: Any) -> int:  # noqa: N802
        block = self._allocation(source.value, size.value)
        return self._put(stream, lambda: ctypes.memmove(target.value, block.ctypes.data, size.value))

    # -- streams, kernels and graphs -------------------------------------------------------------------------------

    def cuStreamCreate(self, stream: Any, flags: ctypes.c_uint) -> int:  # noqa: N802
        assert flags.value == 1
        self.streams[self._give(stream)] = []
        return self.error

    def cuStreamDestroy_v2(self, stream: ctypes.c_void_p) -> int:  # noqa: N802
        assert stream.value is not None
        del self.streams[stream.value]
        return self.error

    def cuStreamSynchronize(self, stream: ctypes.c_void_p) -> int:  # noqa: N802
        assert stream.value is not None
        if not self.error:
            for work in self.streams[stream.value]:
                work()
        self.streams[stream.value].clear()
        return self.error

    def cuModuleLoadData(self, module: Any, image: ctypes.c_char_p) -> int:  # noqa: N802
        assert image.value is not None
        assert b".entry unpack_float32" in image.value
        self._give(module)
        self.modules += 1
        return self.error

    def cuModuleUnload(self, module: ctypes.c_void_p) -> int:  # noqa: N802
        self.modules -= 1
        return self.error

    def cuModuleGetFunction(self, function: Any, module: ctypes.c_void_p, name: ctypes.c_char_p) -> int:  # noqa: N802
        function._obj.value = {b"unpack_float32": 32, b"unpack_float16": 16}[name.value or b""]
        return self.error

    def cuLaunchKernel(self, function: Any, *arguments: Any) -> int:  # noqa: N802
        *sizes, stream, pointers, extra = arguments
        assert extra is None
        blocks, rows, *others = (size.value for size in sizes)
        kinds = (ctypes.c_uint64, ctypes.c_uint64, ctypes.c_int, ctypes.c_int, ctypes.c_int)
        source, target, words, bits, repeat = (
            kind.from_address(pointer).value for kind, pointer in zip(kinds, pointers, strict=True)
        )
        assert others == [1, 256, 1, 1, 0]
        assert (blocks - 1) * 256 < bits * repeat <= blocks * 256
        packed = self._allocation(source, rows * words * 4).reshape(rows, -1)

        def unpack() -> None:
            numbers = unpack_rows(packed, bits, repeat).astype(f"float{function.value}")
            self._allocation(target, numbers.nbytes)[:] = numbers.reshape(-1).view(np.uint8)

        return self._put(stream, unpack)

    def cuStreamBeginCapture_v2(self, stream: ctypes.c_void_p, mode: ctypes.c_int) -> int:  # noqa: N802
        assert stream.value is not None
        assert mode.value == 1
        assert not self.streams[stream.value]
        return self.error

    def cuStreamEndCapture(self, stream: ctypes.c_void_p, graph: Any) -> int:  # noqa: N802
        assert stream.value is not None
        self.graphs[self._give(graph)] = self.streams[stream.value]
        self.streams[stream.value] = []
        return self.error

    def cuGraphInstantiateWithFlags(self, executable: Any, graph: ctypes.c_void_p, flags: Any) -> int:  # noqa: N802
        assert graph.value is not None
        self.graphs[self._give(executable)] = self.graphs[graph.value]
        return self.error

    def cuGraphLaunch(self, graph: ctypes.c_void_p, stream: ctypes.c_void_p) -> int:  # noqa: N802
        assert graph.value is not None
        assert stream.value is not None
        self._note("launch")
        self.streams[stream.value] += self.graphs[graph.value]
        return self.error

    def cuGraphDestroy(self, graph: ctypes.c_void_p) -> int:  # noqa: N802
        assert graph.value is not None
        del self.graphs[graph.value]
        return self.error

    cuGraphExecDestroy = cuGraphDestroy  # noqa: N815

"""A GPU as TensorRT's workers use it, in a context of our own binding or of pycuda's, against fakes of both."""

import sys
import threading
import types
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.fakes.cuda_driver import FakeDriver
from yomi.engine.evaluators import cuda
from yomi.engine.evaluators.base import DeviceLostError, EvaluatorError
from yomi.engine.evaluators.cuda import BLOCKING_SYNC, CudaDriver, PycudaContext, gpu_uuid
from yomi.native.packing import pack


@pytest.fixture
def driver(monkeypatch: pytest.MonkeyPatch) -> FakeDriver:
    fake = FakeDriver()
    monkeypatch.setattr(cuda, "load_driver", lambda **_: fake)
    monkeypatch.setattr(cuda, "usable_cores", lambda: 64)
    return fake


# -- our own binding ---------------------------------------------------------------------------------------------------


def test_our_binding_copies_unpacks_and_captures(driver: FakeDriver) -> None:
    gpu = CudaDriver(1)
    assert (gpu.name, gpu.version) == ("NVIDIA 1", "13020")
    values = (np.random.default_rng(1).random((3, 57)) < 0.4).astype(np.float32)
    packed, found = gpu.pinned((3, 8), np.uint8), gpu.pinned((3, 57 * 81), np.float16)
    source, target = gpu.allocate(packed.nbytes), gpu.allocate(found.nbytes)

    def work() -> None:
        gpu.upload(source, packed)
        gpu.unpack(source, target, 3, 2, 57, 81, "float16")
        gpu.download(found, target)

    packed[...] = pack(values).view(np.uint8)
    work()
    gpu.check()
    gpu.synchronize()
    assert (found == values.repeat(81, axis=1)).all()
    graph = gpu.capture(work)
    packed[...] = pack(1.0 - values).view(np.uint8)
    assert (found == values.repeat(81, axis=1)).all()
    gpu.launch(graph)
    gpu.synchronize()
    assert (found == 1.0 - values.repeat(81, axis=1)).all()
    gpu.close()
    assert driver.retained == {1: 0}
    assert not any((*driver.stacks.values(), driver.registered, driver.memory, driver.streams, driver.graphs))
    assert driver.modules == 0


def test_what_cannot_be_captured_leaves_the_stream_usable(driver: FakeDriver) -> None:
    gpu = CudaDriver(0)
    with pytest.raises(ZeroDivisionError):
        gpu.capture(lambda: 1 // 0)  # type: ignore[arg-type, return-value]
    gpu.launch(gpu.capture(lambda: None))
    gpu.close()


@pytest.mark.parametrize("error", [2, 700, 719])
def test_a_gpu_in_disorder_leaves_no_context_behind(driver: FakeDriver, error: int) -> None:
    gpu = CudaDriver(1)
    address = gpu.allocate(64)
    driver.error = error
    calls: list[Callable[[], object]] = [
        gpu.synchronize,
        lambda: gpu.launch(gpu.capture(lambda: None)),
        lambda: gpu.allocate(64),
        lambda: gpu.upload(address, np.zeros(8, np.uint8)),
    ]
    for call in calls:
        with pytest.raises(EvaluatorError, match=f"CUDA error {error} found") as caught:
            call()
        assert isinstance(caught.value, DeviceLostError) == (error != 2)
    gpu.close()
    assert not any(driver.stacks.values())
    assert driver.retained == {1: 0}


def test_a_driver_that_refuses_at_once_leaves_no_context_behind(driver: FakeDriver) -> None:
    driver.error = 2
    with pytest.raises(EvaluatorError, match="NVIDIA 1: CUDA error 2"):
        CudaDriver(1)
    assert not any(driver.stacks.values())
    assert driver.retained == {1: 0}


@pytest.mark.parametrize(("cores", "flags"), [(4, {1: BLOCKING_SYNC}), (16, {})])
def test_threads_sleep_while_they_wait_on_small_machines(
    driver: FakeDriver, monkeypatch: pytest.MonkeyPatch, cores: int, flags: dict[int, int]
) -> None:
    monkeypatch.setattr(cuda, "usable_cores", lambda: cores)
    CudaDriver(1).close()
    assert driver.flags == flags


def test_a_gpu_is_known_to_nvidia_smi_by_its_uuid(driver: FakeDriver) -> None:
    assert gpu_uuid(1) == "GPU-01010203-0405-0607-0809-0a0b0c0d0e0f"


# -- pycuda ------------------------------------------------------------------------------------------------------------


class CudaError(Exception):
    """pycuda.driver.Error."""


class FakePycuda:
    """The part of pycuda.driver that is used, with its stack of contexts for each thread, above the driver's own.

    As in pycuda's cuda.hpp: `push` and `pop` first take the driver's topmost context off, and do nothing more where the
    driver refuses; a detached context leaves a thread's stack when it is next looked at.
    """

    Error = CudaError

    def __init__(self, driver: FakeDriver) -> None:
        self.driver = driver
        self.log: list[Any] = []
        self.stacks: dict[int, list[Any]] = {}
        self.Context = types.SimpleNamespace(get_device=self._get_device, pop=self._pop, get_current=self._current)

    @property
    def stack(self) -> list[Any]:
        return self.stacks.setdefault(threading.get_ident(), [])

    def _call(self, name: str, *arguments: Any) -> None:
        if self.driver.error:
            raise CudaError(f"{name} failed: an illegal memory access was encountered")
        self.log.append((name, *arguments))

    def _current(self) -> Any:
        while self.stack and not self.stack[-1].is_valid:
            self.stack.pop()
        return self.stack[-1] if self.stack else None

    def _pop(self) -> None:
        if self.stack:
            self._call("pop")
        if not self._current():
            raise CudaError("m_stack::pop failed: invalid device context - cannot pop context from empty stack")
        self.stack.pop()
        self.driver._stack.pop()

    def _get_device(self) -> Any:
        if not self.stack:
            raise CudaError("cuCtxGetDevice failed: invalid device context")
        return self.Device(self.stack[-1].number)

    def Device(self, number: int) -> Any:  # noqa: N802
        if number > 1:
            raise CudaError("cuDeviceGet failed: invalid device ordinal")

        def retain() -> Any:
            self._call("retain", number)
            context = types.SimpleNamespace(number=number, is_valid=True)

            def push() -> None:
                self._call("push", number)
                self.stack.append(context)
                self.driver._stack.append(1000 + number)

            def detach() -> None:
                if not context.is_valid:
                    raise CudaError("context::detach failed: invalid device context")
                context.is_valid = False
                self._current()

            context.push, context.detach = push, detach
            return context

        class Device:
            retain_primary_context = staticmethod(retain)

            def __eq__(self, other: object) -> bool:
                return getattr(other, "number", None) == number

            __hash__ = None  # type: ignore[assignment]

            def name(self) -> str:
                return f"NVIDIA {number}"

        device = Device()
        device.number = number  # type: ignore[attr-defined]
        return device

    def init(self) -> None:
        pass


@pytest.fixture
def pycuda(monkeypatch: pytest.MonkeyPatch, driver: FakeDriver) -> FakePycuda:
    fake = FakePycuda(driver)
    monkeypatch.setitem(sys.modules, "pycuda", types.SimpleNamespace(driver=fake, __spec__=object()))  # type: ignore[arg-type]
    monkeypatch.setitem(sys.modules, "pycuda.driver", fake)  # type: ignore[arg-type]
    monkeypatch.setattr("yomi.engine.evaluators.cuda.PycudaContext._contexts", {})
    return fake


def test_contexts_come_from_pycuda_if_it_is_installed(pycuda: FakePycuda, monkeypatch: pytest.MonkeyPatch) -> None:
    gpu = CudaDriver(1)
    assert gpu.name == "NVIDIA 1"
    gpu.check()
    packed, found = gpu.pinned((3, 8), np.uint8), gpu.pinned((3, 57), np.float32)
    source, target = gpu.allocate(packed.nbytes), gpu.allocate(found.nbytes)
    gpu.upload(source, packed)
    gpu.unpack(source, target, 3, 2, 57, 1, "float32")
    gpu.download(found, target)
    gpu.synchronize()
    gpu.close()
    assert pycuda.log == [("retain", 1), ("push", 1), ("pop",)]
    assert not any((*pycuda.driver.stacks.values(), pycuda.driver.memory, pycuda.driver.registered))
    with pytest.raises(EvaluatorError, match="this thread has lost its GPU"):
        gpu.check()
    pycuda.log.clear()
    again, other = CudaDriver(1), CudaDriver(0)
    assert pycuda.log == [("push", 1), ("retain", 0), ("push", 0)]  # the primary context is the same
    with pytest.raises(EvaluatorError, match="NVIDIA 0 found, expected NVIDIA 1"):
        again.check()
    other.close()
    again.check()
    again.close()
    pycuda.log.clear()
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    CudaDriver(1).close()
    assert not pycuda.log


@pytest.mark.parametrize("error", [201, 715])
def test_pycudas_stack_is_empty_after_a_pop_that_fails(pycuda: FakePycuda, error: int) -> None:
    """A thread that ends with a context on pycuda's stack aborts the process."""
    mine, other = CudaDriver(1), CudaDriver(1)
    theirs: list[CudaDriver] = []
    opened, closes = threading.Event(), threading.Event()

    def run() -> None:
        theirs.append(CudaDriver(1))
        opened.set()
        closes.wait(60)
        theirs[0].close()

    thread = threading.Thread(target=run)
    thread.start()
    assert opened.wait(60)
    mine.allocate(64)
    pycuda.driver.error = error
    with pytest.raises(EvaluatorError) as caught:
        mine.synchronize()
    assert isinstance(caught.value, DeviceLostError) == (error == 715)
    other.close()
    mine.close()
    closes.set()
    thread.join()
    assert len(pycuda.stacks) == 2
    assert not any(pycuda.stacks.values())
    pycuda.driver.error = 0
    CudaDriver(1).close()
    assert pycuda.log[-3:] == [("retain", 1), ("push", 1), ("pop",)]


def test_a_gpu_that_pycuda_does_not_find(pycuda: FakePycuda, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(EvaluatorError, match="GPU 5: CUDA error 101"):
        CudaDriver(5)
    assert not pycuda.log
    monkeypatch.setitem(sys.modules, "pycuda", None)
    with pytest.raises(EvaluatorError, match=r"pycuda cannot be imported .* yomi's own binding .* once it is uninstal"):
        PycudaContext(0)

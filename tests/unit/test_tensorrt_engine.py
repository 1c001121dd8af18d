"""pycuda and TensorRT as yomi calls them, against modules that stand in for them."""

from __future__ import annotations

import functools
import sys
import threading
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from engine.evaluators import tensorrt_engine
from engine.evaluators.base import EvaluatorError
from engine.evaluators.tensorrt_driver import PycudaDriver

# -- pycuda ------------------------------------------------------------------------------------------------------------


class CudaError(Exception):
    """pycuda.driver.Error."""


def fake_pycuda(log: list[Any]) -> Any:
    """Return a module that is used as pycuda.driver is: contexts on a stack, and calls that are remembered."""
    stack: list[int] = []

    class Device:
        def __init__(self, number: int) -> None:
            if number > 1:
                raise CudaError("cuDeviceGet failed: invalid device ordinal")
            self.number = number

        def __eq__(self, other: object) -> bool:
            return isinstance(other, Device) and other.number == self.number

        __hash__ = None  # type: ignore[assignment]

        def name(self) -> str:
            return f"NVIDIA {self.number}"

        def retain_primary_context(self) -> Any:
            log.append(("retain", self.number))
            return types.SimpleNamespace(push=lambda: (log.append(("push", self.number)), stack.append(self.number)))

    def get_device() -> Device:
        if not stack:
            raise CudaError("cuCtxGetDevice failed: invalid device context")
        return Device(stack[-1])

    def pop() -> None:
        log.append(("pop", stack.pop()))

    class Block:
        def __int__(self) -> int:
            return 4096

        def free(self) -> None:
            log.append(("free", stack[-1]))

    class Function:
        def prepare(self, types: str) -> Function:
            assert types == "PPiii"
            return self

        def prepared_async_call(self, *arguments: Any) -> None:
            log.append(("launch", *(arguments[:2] + arguments[3:])))

    def module_from_buffer(ptx: bytes) -> Any:
        assert b".entry unpack_float32" in ptx
        return types.SimpleNamespace(get_function=lambda name: Function())

    return types.SimpleNamespace(
        Error=CudaError,
        init=lambda: None,
        Device=Device,
        Context=types.SimpleNamespace(get_device=get_device, pop=pop),
        Stream=lambda: types.SimpleNamespace(handle=77, synchronize=lambda: log.append(("synchronize",))),
        get_driver_version=lambda: 13000,
        module_from_buffer=module_from_buffer,
        pagelocked_zeros=lambda shape, dtype: np.zeros(shape, dtype),
        mem_alloc=lambda size: Block(),
        memcpy_htod_async=lambda address, source, stream: log.append(("upload", address)),
        memcpy_dtoh_async=lambda target, address, stream: log.append(("download", address)),
    )


@pytest.fixture
def pycuda(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    log: list[Any] = []
    driver = fake_pycuda(log)
    monkeypatch.setitem(sys.modules, "pycuda", types.SimpleNamespace(driver=driver))
    monkeypatch.setitem(sys.modules, "pycuda.driver", driver)
    monkeypatch.setattr("engine.evaluators.tensorrt_driver._contexts", {})
    return log


def test_pycuda_is_used_in_order(pycuda: list[Any]) -> None:
    driver = PycudaDriver(1)
    assert (driver.name, driver.version, driver.stream) == ("NVIDIA 1", "13000", 77)
    driver.check()
    address = driver.allocate(100)
    driver.upload(address, driver.host_array((4, 4), np.uint8))
    driver.unpack(address, 8192, 3, 2, 57, 81, "float32")
    driver.download(driver.host_array((4,), np.float32), address)
    driver.synchronize()
    driver.close()
    assert pycuda == [
        ("retain", 1),
        ("push", 1),
        ("upload", 4096),
        ("launch", (19, 3), (256, 1, 1), 4096, 8192, 2, 57, 81),
        ("download", 4096),
        ("synchronize",),
        ("free", 1),
        ("pop", 1),
    ]
    with pytest.raises(EvaluatorError, match="this thread has lost its GPU"):
        driver.check()
    pycuda.clear()
    again, other = PycudaDriver(1), PycudaDriver(0)
    assert pycuda == [("push", 1), ("retain", 0), ("push", 0)]  # the primary context is the same
    with pytest.raises(EvaluatorError, match="NVIDIA 0 found, expected NVIDIA 1"):
        again.check()
    other.close()
    again.check()
    again.close()


def test_a_gpu_that_pycuda_does_not_find(pycuda: list[Any]) -> None:
    with pytest.raises(EvaluatorError, match="GPU 5: cuDeviceGet failed: invalid device ordinal"):
        PycudaDriver(5)
    assert not pycuda


def test_pycuda_without_a_driver(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pycuda", None)
    with pytest.raises(EvaluatorError, match="pycuda cannot be imported"):
        PycudaDriver(0)


# -- engines -----------------------------------------------------------------------------------------------------------


class FakeTensorRt:
    """The part of TensorRT's module that builds and reads engines; an engine is its ONNX file behind a magic word."""

    __version__ = "11.4.0"
    NetworkDefinitionCreationFlag = types.SimpleNamespace(STRONGLY_TYPED=1)
    TensorIOMode = types.SimpleNamespace(INPUT="in", OUTPUT="out")

    class Logger:
        ERROR = 1

        def __init__(self, level: int) -> None:
            pass

    class IProgressMonitor:
        pass

    def __init__(self) -> None:
        self.built: list[dict[str, Any]] = []
        self.given_timings: list[bytes] = []
        self.parse_errors: list[str] = []
        self.fails = False

    def nptype(self, dtype: Any) -> Any:
        return dtype

    def Builder(self, logger: Any) -> Any:  # noqa: N802
        def create_network(flags: int) -> Any:
            assert flags == 2
            tensor = types.SimpleNamespace(name="input1", shape=(-1, 62, 9, 9))
            return types.SimpleNamespace(num_inputs=1, get_input=lambda index: tensor)

        return types.SimpleNamespace(
            create_network=create_network,
            create_builder_config=self._config,
            create_optimization_profile=lambda: types.SimpleNamespace(
                set_shape=lambda *shape: self.built.append({"shape": shape})
            ),
            build_serialized_network=self._build,
        )

    def OnnxParser(self, network: Any, logger: Any) -> Any:  # noqa: N802
        errors = self.parse_errors
        return types.SimpleNamespace(
            parse=lambda content: not errors, num_errors=len(errors), get_error=lambda i: errors[i]
        )

    def _config(self) -> Any:
        def create_timing_cache(content: bytes) -> Any:
            self.given_timings.append(content)
            return types.SimpleNamespace(serialize=lambda: content + b"t")

        config = types.SimpleNamespace(add_optimization_profile=lambda profile: None, progress_monitor=None)
        config.create_timing_cache = create_timing_cache
        config.set_timing_cache = lambda cache, ignore_mismatch: setattr(config, "cache", cache)
        config.get_timing_cache = lambda: config.cache
        return config

    def _build(self, network: Any, config: Any) -> bytes | None:
        config.progress_monitor.phase_start("Tactics", None, 40)
        for step in range(3):
            assert config.progress_monitor.step_complete("Tactics", step)
        config.progress_monitor.phase_finish("Tactics")
        return None if self.fails else b"ENGINE"

    def Runtime(self, logger: Any) -> Any:  # noqa: N802
        def deserialize_cuda_engine(content: bytes) -> Any:
            return FakeEngine() if content == b"ENGINE" else None

        return types.SimpleNamespace(deserialize_cuda_engine=deserialize_cuda_engine)


class FakeEngine:
    """An engine with one input and one output."""

    num_io_tensors = 2

    def __init__(self) -> None:
        self.calls: list[Any] = []
        self.starts = True

    def create_execution_context(self) -> Any:
        def note(name: str, result: bool = True) -> Callable[..., bool]:
            return lambda *arguments: self.calls.append((name, *arguments)) or result  # type: ignore[func-returns-value]

        return types.SimpleNamespace(
            set_input_shape=note("shape"),
            set_tensor_address=note("address"),
            execute_async_v3=lambda stream: self.calls.append(("execute", stream)) or self.starts,  # type: ignore[func-returns-value]
        )

    def get_tensor_name(self, index: int) -> str:
        return ("input1", "value")[index]

    def get_tensor_mode(self, name: str) -> str:
        return "in" if name == "input1" else "out"

    def get_tensor_dtype(self, name: str) -> Any:
        return np.float32

    def get_tensor_shape(self, name: str) -> tuple[int, ...]:
        return (-1, 62, 9, 9) if name == "input1" else (-1, 1)


@pytest.fixture
def tensorrt(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> FakeTensorRt:
    fake = FakeTensorRt()
    monkeypatch.setitem(sys.modules, "tensorrt", fake)  # type: ignore[arg-type]
    monkeypatch.setenv("YOMI_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(tensorrt_engine, "INTERVAL", 0.0)
    return fake


def test_an_engine_is_built_once_for_all_that_it_depends_on(
    tensorrt: FakeTensorRt, tmp_path: Path, capsys: pytest.CaptureFixture[str], shogi_net: Path
) -> None:
    load = functools.partial(tensorrt_engine.load_network, shogi_net)
    load("H100", "13000", [8, 16, 64])
    assert tensorrt.built == [{"shape": ("input1", (8, 62, 9, 9), (64, 62, 9, 9), (64, 62, 9, 9))}]
    printed = capsys.readouterr()
    assert printed.out == ""
    assert "yomi: building a TensorRT engine of net.onnx for H100, batches of 8 to 64: once, minutes" in printed.err
    assert "yomi: building: Tactics, 3 of 40 ..." in printed.err
    load("H100", "13000", [8, 16, 64])
    assert len(tensorrt.built) == 1
    assert capsys.readouterr().err == ""
    load("A100", "13000", [8, 16, 64])
    load("H100", "12080", [8, 16, 64])
    load("H100", "13000", [8, 16, 32])
    tensorrt.__version__ = "11.5.0"
    load("H100", "13000", [8, 16, 64])
    assert len(tensorrt.built) == 5
    assert len(list(tmp_path.glob("tensorrt/*.engine"))) == 5
    # timings are kept by device, driver and version; the third build of the first set found the first's
    assert tensorrt.given_timings == [b"", b"", b"", b"t", b""]


def test_workers_of_one_gpu_build_one_engine(tensorrt: FakeTensorRt, shogi_net: Path) -> None:
    threads = [
        threading.Thread(target=tensorrt_engine.load_network, args=(shogi_net, "H100", "13000", [8])) for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(tensorrt.built) == 1


def test_an_engine_that_cannot_be_read_is_built_anew(tensorrt: FakeTensorRt, tmp_path: Path, shogi_net: Path) -> None:
    tensorrt_engine.load_network(shogi_net, "H100", "13000", [8])
    (entry,) = tmp_path.glob("tensorrt/*.engine")
    entry.write_bytes(b"half an eng")
    tensorrt_engine.load_network(shogi_net, "H100", "13000", [8])
    assert entry.read_bytes() == b"ENGINE"
    assert len(tensorrt.built) == 2


def test_what_tensorrt_refuses(tensorrt: FakeTensorRt, shogi_net: Path) -> None:
    tensorrt.parse_errors = ["no importer for\n  Frobnicate"]
    with pytest.raises(EvaluatorError, match=r"net\.onnx: TensorRT cannot read it: no importer for Frobnicate"):
        tensorrt_engine.load_network(shogi_net, "H100", "13000", [8])
    tensorrt.parse_errors, tensorrt.fails = [], True
    with pytest.raises(EvaluatorError, match="cannot build an engine for H100"):
        tensorrt_engine.load_network(shogi_net, "H100", "13000", [8])


def test_an_engine_runs_at_the_addresses_it_is_given(tensorrt: FakeTensorRt) -> None:
    engine = FakeEngine()
    network = tensorrt_engine.TensorRtNetwork(None, engine)
    assert network.inputs == {"input1": ((62, 9, 9), np.dtype(np.float32))}
    assert network.outputs == {"value": ((1,), np.dtype(np.float32))}
    for rows in (8, 8, 16):
        network.enqueue(rows, {"input1": 1, "value": 2}, 77)
    once = [("address", "input1", 1), ("address", "value", 2), ("execute", 77)]
    first, second = ("shape", "input1", (8, 62, 9, 9)), ("shape", "input1", (16, 62, 9, 9))
    assert engine.calls == [first, *once, *once, second, *once]
    engine.starts = False
    with pytest.raises(EvaluatorError, match="could not start a batch"):
        network.enqueue(16, {"input1": 1}, 77)
    network.close()

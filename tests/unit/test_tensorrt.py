"""TensorRT with pycuda, proved without a GPU: contexts, copies, engines that are kept, and the unpacking kernel."""

from __future__ import annotations

import ctypes
import functools
import random
import shutil
import subprocess
import sys
import threading
import types
from collections.abc import Callable, Iterator
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import numpy as np
import pytest

from engine.evaluators import tensorrt_engine
from engine.evaluators.base import EvaluatorError
from engine.evaluators.katago_gpu import GpuKataGoEvaluator
from engine.evaluators.katago_onnx import OnnxKataGoEvaluator
from engine.evaluators.queue import Job
from engine.evaluators.shogi_gpu import GpuShogiEvaluator
from engine.evaluators.shogi_onnx import OnnxShogiEvaluator
from engine.evaluators.tensorrt_driver import PycudaDriver
from engine.evaluators.tensorrt_session import TensorRtSession
from engine.evaluators.workers import EvaluationWorkers
from native import cuda
from native.packing import pack_rows, packed_bytes
from nets.dlshogi.definition import NetworkShape, write_network
from nets.load import prepare, prepare_shogi
from nets.packed import Variant
from tests.contract.networks import write_small_network
from tests.contract.test_evaluators import batch_of, games
from tests.fakes.gpu_driver import OnnxNetwork, RecordingDriver, unpack_rows

SIZE = 9
Log = list[tuple[str, int, int]]


class Machine:
    """Some GPUs; opens sessions on them as TensorRtSession wants it."""

    def __init__(self) -> None:
        self.log: Log = []
        self.drivers: list[RecordingDriver] = []
        self.dead: set[int] = set()

    def open_driver(self, number: int) -> RecordingDriver:
        if number in self.dead:
            raise EvaluatorError(f"GPU {number}: no device")
        self.drivers.append(RecordingDriver(number, self.log))
        return self.drivers[-1]

    def open_network(self, path: Path, gpu: str, version: str, sizes: Any) -> OnnxNetwork:
        mine = [driver for driver in self.drivers if driver.thread == threading.get_ident()]
        return OnnxNetwork(path, mine[-1], sizes)

    def names(self, number: int | None = None) -> list[str]:
        """Return the calls in order, of one GPU or all."""
        return [name for name, gpu, _ in self.log if number in (None, gpu)]


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Machine:
    """Give GPUs, and an installed TensorRT."""
    machine = Machine()
    monkeypatch.setenv("YOMI_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr("engine.evaluators.gpu.choose_backend", lambda device, backend: "tensorrt")
    session = functools.partial(TensorRtSession, open_driver=machine.open_driver, open_network=machine.open_network)
    monkeypatch.setattr("engine.evaluators.tensorrt_session.TensorRtSession", session)
    return machine


@pytest.fixture(scope="module")
def shogi_net(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_network(tmp_path_factory.mktemp("net") / "net.onnx", NetworkShape(blocks=2, channels=16, extras=119))


@pytest.fixture(scope="module")
def go_net(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_small_network(tmp_path_factory.mktemp("net"))


# -- numbers -----------------------------------------------------------------------------------------------------------


def test_go_is_the_same_as_by_onnxruntime(machine: Machine, go_net: Path) -> None:
    path, info = prepare(go_net, SIZE)
    evaluator = GpuKataGoEvaluator(path, info, "tensorrt:1", batch_size=8, precision="fp32")
    assert evaluator.description == f"{info.name} on tensorrt:1 (TensorRT, fp32)"
    plain = OnnxKataGoEvaluator(path, info)
    positions = games()
    assert len(positions) > 8
    for symmetry in (0, 6):
        found, wanted = batch_of(evaluator, positions, symmetry), batch_of(plain, positions, symmetry)
        evaluator.evaluate(found, len(positions))
        plain.evaluate(wanted, len(positions))
        for name in ("logits", "values", "ownership"):
            a, b = (getattr(batch, name)[: len(positions)] for batch in (found, wanted))
            assert a == pytest.approx(b, abs=1e-4)
    evaluator.close()


@pytest.mark.parametrize(("precision", "tolerance"), [("fp32", 1e-5), ("fp16", 3e-2)])
def test_shogi_is_the_same_as_by_onnxruntime(
    machine: Machine, shogi_net: Path, precision: str, tolerance: float
) -> None:
    network, info = prepare_shogi(shogi_net)
    evaluator = GpuShogiEvaluator(shogi_net, network, info, "tensorrt", batch_size=8, precision=precision)
    plain = OnnxShogiEvaluator(shogi_net, network, info)
    rng = np.random.default_rng(3)
    planes = (rng.random((13, 62, 9, 9)) < 0.2).astype(np.float32)
    extras = (rng.random((13, 119)) < 0.3).astype(np.float32)
    logits = np.zeros((2, 13, network.policy_size), np.float32)
    found = evaluator.run(planes, extras, logits[0])
    wanted = plain.run(planes, extras, logits[1])
    assert found == pytest.approx(wanted, abs=tolerance)
    assert logits[0] == pytest.approx(logits[1], abs=tolerance)
    evaluator.close()


# -- the device's context ----------------------------------------------------------------------------------------------


def open_session(machine: Machine, path: Path, number: int = 0, rows: int = 4) -> TensorRtSession:
    return TensorRtSession(
        path,
        f"tensorrt:{number}",
        rows,
        ["output_policy", "output_value"],
        Variant(packed=("input1", "input2"), constant=("input2",)),
        open_driver=machine.open_driver,
        open_network=machine.open_network,
    )


def test_a_batch_from_start_to_end(machine: Machine, shogi_net: Path) -> None:
    session = open_session(machine, shogi_net)
    one_batch = ["check", *["upload", "unpack"] * 2, "enqueue", "download", "download", "synchronize"]
    assert machine.names() == ["push", *one_batch * 3]  # batches of 1, 2 and 4 rows
    machine.log.clear()
    session.run(3)
    assert machine.names() == one_batch
    machine.log.clear()
    session.close()
    assert machine.names() == ["release", "pop"]


def test_a_lost_context_stops_the_batch_before_anything_is_copied(machine: Machine, shogi_net: Path) -> None:
    session = open_session(machine, shogi_net)
    machine.drivers[0].is_stolen = True
    machine.log.clear()
    with pytest.raises(EvaluatorError, match="this thread has another GPU"):
        session.run(2)
    assert machine.names() == ["check"]
    session.close()
    assert machine.names() == ["check", "release", "pop"]


@pytest.mark.parametrize("when", ["engine", "first batch"])
def test_a_session_that_cannot_be_made_pops_its_context(machine: Machine, shogi_net: Path, when: str) -> None:
    def fail(*_: Any) -> OnnxNetwork:
        raise EvaluatorError("no memory")

    def broken(number: int) -> RecordingDriver:
        driver = Machine.open_driver(machine, number)
        driver.is_broken = when == "first batch"
        return driver

    network = fail if when == "engine" else machine.open_network
    with pytest.raises(EvaluatorError):
        TensorRtSession(shogi_net, "tensorrt", 4, ["output_value"], Variant(), open_driver=broken, open_network=network)
    assert machine.names()[0] == "push"
    assert machine.names()[-1] == "pop"
    assert machine.names().count("pop") == 1


def shogi_workers(machine: Machine, path: Path, devices: list[str]) -> EvaluationWorkers:
    network, info = prepare_shogi(path)

    def make(device: str) -> GpuShogiEvaluator:
        return GpuShogiEvaluator(path, network, info, device, batch_size=4, precision="fp32")

    return EvaluationWorkers([functools.partial(make, device) for device in devices])


class Row:
    """A batch of shogi positions made up at random, with what must come out of it."""

    def __init__(self, path: Path) -> None:
        network, info = prepare_shogi(path)
        self.plain = OnnxShogiEvaluator(path, network, info)
        self.network = network
        rng = np.random.default_rng(1)
        self.planes = (rng.random((3, 62, 9, 9)) < 0.2).astype(np.float32)
        self.extras = (rng.random((3, 119)) < 0.3).astype(np.float32)
        self.logits = np.zeros((3, network.policy_size), np.float32)
        self.values = 2.0 * self.plain.run(self.planes, self.extras, self.logits) - 1.0

    def job(self, done: SimpleQueue[Job]) -> Job:
        blank = types.SimpleNamespace(
            planes=self.planes,
            extras=self.extras,
            logits=np.zeros_like(self.logits),
            values=np.zeros((3, 4), np.float32),
        )
        return Job(blank, 3, done)  # type: ignore[arg-type]  # what the evaluators read of a batch

    def check(self, job: Job) -> None:
        assert job.error is None, job.error
        assert job.batch.logits == pytest.approx(self.logits, abs=1e-5)
        assert job.batch.values[:, 0] == pytest.approx(self.values, abs=1e-5)


def lives(log: Log) -> Iterator[tuple[int, int, list[str]]]:
    """Yield (GPU, thread, calls) from each push to its pop, which must be in one thread; every life must have ended."""
    open_lives: dict[int, tuple[int, list[str]]] = {}
    for name, number, thread in log:
        if name == "push":
            assert thread not in open_lives, "a second context was pushed in this thread"
            open_lives[thread] = (number, [])
        owner, calls = open_lives[thread]
        assert owner == number
        calls.append(name)
        if name == "pop":
            yield number, thread, calls
            del open_lives[thread]
    assert not open_lives


def check_life(calls: list[str]) -> None:
    """A context is pushed first, checked before every batch, and popped last, once the network is released."""
    assert calls[0] == "push"
    assert calls[-2:] == ["release", "pop"]
    at = [i for i, name in enumerate(calls) if name == "check"]
    batches = [calls[begin:end] for begin, end in zip(at, [*at[1:], len(calls) - 2], strict=True)]
    for batch in batches:
        assert batch[0] == "check"
        assert batch.index("enqueue") > max(i for i, name in enumerate(batch) if name in ("upload", "unpack"))
        assert batch[-1] == "synchronize"


def test_start_second_device_and_shutdown(machine: Machine, shogi_net: Path) -> None:
    queue = shogi_workers(machine, shogi_net, ["tensorrt:0", "tensorrt:1", "tensorrt:0"])
    row, done = Row(shogi_net), SimpleQueue[Job]()
    for _ in range(30):
        queue.submit(row.job(done))
    for _ in range(30):
        row.check(done.get(timeout=60))
    assert queue.call(lambda evaluator: evaluator.evaluate(row.job(done).batch, 3)) is None
    queue.close()
    ended = list(lives(machine.log))
    assert sorted(number for number, _, _ in ended) == [0, 0, 1]
    assert len({thread for _, thread, _ in ended}) == 3
    for _, _, calls in ended:
        check_life(calls)


def test_restart_after_a_failure(machine: Machine, shogi_net: Path) -> None:
    queue = shogi_workers(machine, shogi_net, ["tensorrt:1"])
    row, done = Row(shogi_net), SimpleQueue[Job]()
    machine.drivers[0].is_broken = True
    queue.submit(row.job(done))
    row.check(done.get(timeout=60))
    queue.close()
    first, second = lives(machine.log)
    assert first[:2] == second[:2]  # the same GPU in the same thread
    assert first[2][0] == "push"
    assert first[2][-2:] == ["release", "pop"]
    check_life(second[2])


def test_a_device_that_does_not_come_back(machine: Machine, shogi_net: Path) -> None:
    queue = shogi_workers(machine, shogi_net, ["tensorrt:0", "tensorrt:1"])
    row, done = Row(shogi_net), SimpleQueue[Job]()
    machine.dead.add(0)
    next(driver for driver in machine.drivers if driver.number == 0).is_broken = True
    for _ in range(20):
        queue.submit(row.job(done))
    for _ in range(20):
        row.check(done.get(timeout=60))
    assert queue.worker_count == 1
    queue.close()
    assert sorted(number for number, _, _ in lives(machine.log)) == [0, 1]


def test_workers_that_fail_at_random_give_the_results_of_one(machine: Machine, shogi_net: Path) -> None:
    rng = random.Random(2)
    queue = shogi_workers(machine, shogi_net, ["tensorrt:0", "tensorrt:1"])
    row, done = Row(shogi_net), SimpleQueue[Job]()
    for _ in range(60):
        if rng.random() < 0.2:
            driver = rng.choice([driver for driver in machine.drivers if driver.memory])
            driver.is_broken, driver.is_stolen = rng.choice([(True, False), (False, True)])
        queue.submit(row.job(done))
        row.check(done.get(timeout=60))
    assert queue.worker_count == 2
    queue.close()
    assert len(list(lives(machine.log))) > 4


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


# -- the kernel --------------------------------------------------------------------------------------------------------

HOST = """
#define __device__
#define __global__
struct Three {{ unsigned x, y, z; }};
static Three blockIdx, threadIdx, blockDim, gridDim;
#include "{source}"
extern "C" void run(int half, int blocks, int rows, int threads, const unsigned *packed, void *numbers, int words,
                    int bits, int repeat) {{
    gridDim = {{(unsigned)blocks, (unsigned)rows, 1}};
    blockDim = {{(unsigned)threads, 1, 1}};
    for (blockIdx.y = 0; blockIdx.y < gridDim.y; blockIdx.y++)
        for (blockIdx.x = 0; blockIdx.x < gridDim.x; blockIdx.x++)
            for (threadIdx.x = 0; threadIdx.x < blockDim.x; threadIdx.x++)
                if (half)
                    unpack_float16(packed, (unsigned short *)numbers, words, bits, repeat);
                else
                    unpack_float32(packed, (float *)numbers, words, bits, repeat);
}}
"""


@pytest.fixture(scope="module")
def on_the_processor(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Give the CUDA source as a function of this processor, thread after thread."""
    if shutil.which("c++") is None:
        pytest.skip("no C++ compiler to run the kernel's source with")
    library = tmp_path_factory.mktemp("kernel") / "unpack.so"
    command = ["c++", "-shared", "-fPIC", "-O1", "-x", "c++", "-", "-o", str(library)]
    subprocess.run(command, input=HOST.format(source=cuda.SOURCE).encode(), check=True, capture_output=True)
    return ctypes.CDLL(str(library)).run


@pytest.mark.parametrize("dtype", ["float32", "float16"])
@pytest.mark.parametrize(
    ("bits", "repeat", "blocks"), [(22 * 81, 1, 7), (22 * 361, 1, 32), (62 * 81, 1, 20), (57, 81, 19), (119, 81, 3)]
)
def test_the_kernels_source_is_numpys(on_the_processor: Any, bits: int, repeat: int, blocks: int, dtype: str) -> None:
    rng = np.random.default_rng(bits)
    values = (rng.random((5, bits)) < 0.3).astype(np.float32)
    packed = np.zeros((5, packed_bytes(bits)), np.uint8)
    pack_rows(values, 5, packed)
    numbers = np.full((6, bits * repeat), 9, dtype)
    on_the_processor(
        int(dtype == "float16"), blocks, 5, 256, packed.ctypes.data_as(ctypes.c_void_p),
        numbers.ctypes.data_as(ctypes.c_void_p), packed.shape[1] // 4, bits, repeat,
    )  # fmt: skip
    assert (numbers[:5] == values.repeat(repeat, axis=1)).all()
    assert (numbers[:5] == unpack_rows(packed, bits, repeat)).all()
    assert (numbers[5] == 9).all()


def test_the_shipped_ptx_is_that_of_the_source() -> None:
    text = cuda.read_ptx().decode()
    for name in ("unpack_float32", "unpack_float16"):
        assert f".visible .entry {name}(" in text
    assert ".target sm_70" in text
    nvcc = shutil.which("nvcc")
    if nvcc is None:
        pytest.skip("no nvcc to compile the source anew")
    version = subprocess.run([nvcc, "--version"], capture_output=True, text=True, check=True).stdout
    if "release 13.0" not in version:
        pytest.skip("another nvcc than the one that made the PTX: its registers are numbered otherwise")
    assert cuda.compile_ptx(nvcc) == text


def test_the_shipped_ptx_assembles(tmp_path: Path) -> None:
    ptxas = shutil.which("ptxas")
    if ptxas is None:
        pytest.skip("no ptxas")
    for architecture in ("sm_75", "sm_90"):
        subprocess.run([ptxas, f"-arch={architecture}", str(cuda.PTX), "-o", str(tmp_path / "x")], check=True)

"""TensorRT itself, proved without a GPU: what it computes, contexts and copies, graphs, failures."""

import functools
import re
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import numpy as np
import pytest

from tests.contract.networks import load_go, load_shogi, raw_shogi, write_small_network
from tests.contract.test_evaluators import batch_of, games
from tests.fakes.cuda_driver import FakeDriver
from tests.fakes.gpu_driver import OnnxNetwork, RecordingDriver
from yomi.engine.evaluators import cuda, tensorrt_session
from yomi.engine.evaluators.backends import GpuBackend
from yomi.engine.evaluators.base import EvaluatorError
from yomi.engine.evaluators.cuda import CudaDriver
from yomi.engine.evaluators.devices import Device, Gpu, parse_device
from yomi.engine.evaluators.network import NetworkEvaluator, open_network
from yomi.engine.evaluators.queue import Job
from yomi.engine.evaluators.tensorrt_session import TensorRtSession
from yomi.engine.evaluators.workers import EvaluationWorkers
from yomi.engine.go.networks import FORMATS as GO
from yomi.engine.shogi.networks import FORMATS as SHOGI
from yomi.native.packing import pack
from yomi.native.shogi.spec import shogi_spec
from yomi.native.spec import Inputs
from yomi.native.tree.arrays import VALUE
from yomi.native.tree.buffers import make_batch
from yomi.nets.gpu_variants import Variant

SIZE = 9
Log = list[tuple[str, int, int]]


class Machine:
    """Some GPUs; opens sessions on them as TensorRtSession wants it."""

    def __init__(self) -> None:
        self.log: Log = []
        self.drivers: list[RecordingDriver] = []
        self.bad_graphs = ""
        self.make: Callable[[int, Log], Any] = RecordingDriver

    def open_driver(self, number: int) -> RecordingDriver:
        self.drivers.append(self.make(number, self.log))
        self.drivers[-1].bad_graphs = self.bad_graphs
        return self.drivers[-1]

    def open_network(self, path: Path, gpu: str, version: str, sizes: Any, stream: int) -> OnnxNetwork:
        mine = [driver for driver in self.drivers if driver.thread == threading.get_ident()]
        assert stream == mine[-1].stream
        return OnnxNetwork(path, mine[-1], sizes)

    def names(self, number: int | None = None) -> list[str]:
        """Return the calls in order, of one GPU or all."""
        return [name for name, gpu, _ in self.log if number in (None, gpu)]


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Machine:
    """Give GPUs, and an installed TensorRT."""
    machine = Machine()
    monkeypatch.setenv("YOMI_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr("yomi.engine.evaluators.devices.find_fault", lambda kind: None)
    monkeypatch.setattr("yomi.engine.evaluators.devices.find_gpus", lambda kind: [Gpu("0"), Gpu("1")])
    monkeypatch.setattr(tensorrt_session, "CudaDriver", machine.open_driver)
    monkeypatch.setattr(tensorrt_session, "load_network", machine.open_network)
    return machine


@pytest.fixture(scope="module")
def go_net(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_small_network(tmp_path_factory.mktemp("net"))


def on_gpu(formats: Any, path: Path, device: str, **how: Any) -> NetworkEvaluator:
    form = open_network(formats, path, SIZE)
    return NetworkEvaluator(form, GpuBackend(form, parse_device(device), **how))


# -- numbers -----------------------------------------------------------------------------------------------------------


def test_go_is_the_same_as_by_onnxruntime(machine: Machine, go_net: Path) -> None:
    evaluator = on_gpu(GO, go_net, "tensorrt:1", batch_size=8, precision="fp32")
    assert evaluator.description == f"{evaluator.info.name} on tensorrt:1 (TensorRT, 1, fp32)"
    plain = load_go(go_net, SIZE, "cpu", "onnx")
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


class OverFake(CudaDriver):
    """Our own binding on a fake of NVIDIA's library, as what computes on it wants to see it."""

    def __init__(self, number: int, fake: FakeDriver) -> None:
        super().__init__(number)
        self.fake, self.memory, self.thread = fake, fake.memory, threading.get_ident()

    @property
    def queued(self) -> list[Any]:
        return self.fake.streams[self.stream]

    def _note(self, name: str) -> None:
        """Drop it."""


@pytest.mark.parametrize("binds", [False, True])
@pytest.mark.parametrize(("precision", "tolerance"), [("fp32", 1e-5), ("fp16", 3e-2)])
def test_shogi_is_the_same_as_by_onnxruntime(
    machine: Machine, monkeypatch: pytest.MonkeyPatch, shogi_net: Path, precision: str, tolerance: float, binds: bool
) -> None:
    if binds:
        fake = FakeDriver()
        monkeypatch.setattr(cuda, "load_driver", lambda **_: fake)
        machine.make = lambda number, log: OverFake(number, fake)
    evaluator = on_gpu(SHOGI, shogi_net, "tensorrt", batch_size=8, precision=precision)
    plain = load_shogi(shogi_net, "cpu", "onnx")
    rng = np.random.default_rng(3)
    planes = (rng.random((13, 62, 9, 9)) < 0.2).astype(np.float32)
    extras = (rng.random((13, 119)) < 0.3).astype(np.float32)
    for found, wanted in zip(evaluator.run(planes, extras), plain.run(planes, extras), strict=True):
        assert found == pytest.approx(wanted, abs=tolerance)
    evaluator.close()


# -- the device's context ----------------------------------------------------------------------------------------------


def open_session(path: Path) -> TensorRtSession:
    return TensorRtSession(
        path,
        Device("tensorrt"),
        4,
        ["output_policy", "output_value"],
        Variant(packed=("input1", "input2"), constant=("input2",)),
    )


def test_a_batch_from_start_to_end(machine: Machine, shogi_net: Path) -> None:
    session = open_session(shogi_net)
    alone = ["check", *["upload", "unpack"] * 2, "enqueue", "download", "download", "synchronize"]
    graph = ["check", "launch", "synchronize"]
    # batches of 1 to 4 rows, three times each, before and after they are captured
    assert machine.names() == ["push", *alone * 12, *["capture"] * 4, *graph * 12]
    machine.log.clear()
    session.run(3)
    assert machine.names() == graph
    machine.log.clear()
    session.close()
    assert machine.names() == ["release", "pop"]


@pytest.mark.parametrize(("fault", "reason"), [("capture", "CUDA error 900"), ("result", "a graph's batch of . rows")])
def test_graphs_that_go_wrong_are_left_out(
    machine: Machine, shogi_net: Path, caplog: pytest.LogCaptureFixture, fault: str, reason: str
) -> None:
    machine.bad_graphs = fault
    queue = shogi_workers(machine, shogi_net, ["tensorrt"])
    assert re.search(f"net.onnx: computed without CUDA graphs: .*{reason}", caplog.text)
    machine.log.clear()
    row, done = Row(shogi_net), SimpleQueue[Job]()
    queue.submit(row.job(done))
    row.check(done.get(timeout=60))
    queue.close()
    assert "enqueue" in machine.names()
    assert "launch" not in machine.names()


def test_a_lost_context_stops_the_batch_before_anything_is_copied(machine: Machine, shogi_net: Path) -> None:
    session = open_session(shogi_net)
    machine.drivers[0].is_stolen = True
    machine.log.clear()
    with pytest.raises(EvaluatorError, match="this thread has another GPU"):
        session.run(2)
    assert machine.names() == ["check"]
    session.close()
    assert machine.names() == ["check", "release", "pop"]


@pytest.mark.parametrize("when", ["engine", "first batch"])
def test_a_session_that_cannot_be_made_pops_its_context(
    machine: Machine, shogi_net: Path, when: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any) -> OnnxNetwork:
        raise EvaluatorError("no memory")

    def broken(number: int, log: Log) -> RecordingDriver:
        driver = RecordingDriver(number, log)
        driver.is_broken = True
        return driver

    if when == "engine":
        monkeypatch.setattr(tensorrt_session, "load_network", fail)
    else:
        machine.make = broken
    with pytest.raises(EvaluatorError):
        open_session(shogi_net)
    assert machine.names()[0] == "push"
    assert machine.names()[-1] == "pop"
    assert machine.names().count("pop") == 1


def shogi_workers(machine: Machine, path: Path, devices: list[str]) -> EvaluationWorkers:
    make = functools.partial(on_gpu, SHOGI, path, batch_size=4, precision="fp32")
    return EvaluationWorkers([functools.partial(make, device) for device in devices])


class Row:
    """A batch of shogi positions made up at random, with what must come out of it."""

    def __init__(self, path: Path) -> None:
        rng = np.random.default_rng(1)
        self.planes = (rng.random((3, 62, 9, 9)) < 0.2).astype(np.float32)
        self.extras = (rng.random((3, 119)) < 0.3).astype(np.float32)
        self.logits, values = raw_shogi(load_shogi(path, "cpu", "onnx"), self.planes, self.extras)
        self.values = 2.0 * values - 1.0

    def job(self, done: SimpleQueue[Job]) -> Job:
        batch = make_batch(shogi_spec(0, 119), 3, Inputs.BITS)
        batch.bits[...] = np.concatenate((pack(self.planes), pack(self.extras)), axis=1)
        return Job(batch, 3, done)

    def check(self, job: Job) -> None:
        assert job.error is None, job.error
        assert job.batch.logits == pytest.approx(self.logits, abs=1e-5)
        assert job.batch.values[:, VALUE] == pytest.approx(self.values, abs=1e-5)


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
    for begin, end in zip(at, [*at[1:], len(calls) - 2], strict=True):
        batch = [name for name in calls[begin:end] if name != "capture"]
        assert batch in (["check", "launch", "synchronize"], ["check", *batch[1:-1], "synchronize"])
        if "launch" not in batch:
            assert batch.index("enqueue") > max(i for i, name in enumerate(batch) if name in ("upload", "unpack"))


@pytest.mark.slow
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


def test_a_gpu_that_is_lost_is_given_up_at_once(
    machine: Machine, shogi_net: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Its two workers end, though the driver refuses to take their contexts back; the batches go on to the other."""
    queue = shogi_workers(machine, shogi_net, ["tensorrt:0", "tensorrt:0", "tensorrt:1"])
    row, done = Row(shogi_net), SimpleQueue[Job]()
    for driver in machine.drivers:
        driver.is_lost = driver.number == 0
    end = time.monotonic() + 60
    while queue.worker_count > 1:
        assert time.monotonic() < end
        for _ in range(3):
            queue.submit(row.job(done))
        for _ in range(3):
            row.check(done.get(timeout=60))
    assert "net on tensorrt:0 (TensorRT, 0, fp32) is given up (GPU 0: CUDA error 700)" in caplog.text
    machine.drivers[0].is_lost = machine.drivers[1].is_lost = machine.drivers[2].is_lost = True
    for _ in range(2):
        queue.submit(row.job(done))
        assert "failed and no other device is left: GPU 1: CUDA error 700" in str(done.get(timeout=60).error)
    queue.close()
    assert len(machine.drivers) == 3
    assert sorted(number for number, _, _ in lives(machine.log)) == [0, 0, 1]

"""`bench gpu` without a GPU: it refuses in one line; with the processor in a GPU's place, every part has its rows."""

import contextlib
import dataclasses
import functools
import json
import math
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tests.contract.networks import write_small_network
from tests.fakes.gpu_driver import RecordingDriver
from tests.naive.shogi_networks import NetworkShape, write_network
from yomi.bench import cli, gpu, gpu_proofs
from yomi.engine.calibration import search_counts
from yomi.engine.cli.main import main
from yomi.engine.evaluators import devices, onnx_session
from yomi.engine.evaluators.base import EvaluatorError, Fault
from yomi.engine.evaluators.devices import CPU, Device, Gpu
from yomi.engine.options import Options
from yomi.engine.registry import GO, SHOGI
from yomi.nets.errors import NetworkError
from yomi.nets.gpu_variants import variant_file
from yomi.nets.load import open_file, prepare

CUDA = Device("cuda")


@pytest.fixture
def processor(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[list[tuple[str, int, int]]]:
    """Put the processor in a GPU's place, with small networks; give the log of the drivers."""
    log: list[tuple[str, int, int]] = []
    nets = {"shogi": write_network(tmp_path / "net.onnx", NetworkShape(blocks=1, channels=16))}
    nets["go"] = write_small_network(tmp_path)

    def on_processor(path: Path, device: Device, rows: int, outputs: Any, variant: Any, **how: Any) -> Any:
        return onnx_session.GpuSession(variant_file(path, variant), CPU, rows, outputs, **how)

    monkeypatch.setenv("YOMI_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr("yomi.engine.evaluators.backends.open_engine", on_processor)
    for module in (gpu, gpu_proofs):
        monkeypatch.setattr(module, "default_network", nets.__getitem__)
    show_gpus(monkeypatch)
    monkeypatch.setattr(gpu_proofs, "CudaDriver", lambda number: RecordingDriver(number, log))
    monkeypatch.setattr(gpu_proofs, "ROWS", 4)
    monkeypatch.setattr(gpu_proofs, "POSITIONS", 12)
    monkeypatch.setattr(gpu_proofs, "BATCHES", 3)
    gpu_proofs.reference.cache_clear()
    yield log
    gpu_proofs.reference.cache_clear()


def show_gpus(monkeypatch: pytest.MonkeyPatch, fault: Fault | None = None) -> None:
    """Pretend that every kind of device works and has two GPUs, or that each has a fault."""
    for module in (devices, gpu):
        monkeypatch.setattr(module, "find_fault", lambda kind: fault)
    monkeypatch.setattr(devices, "find_gpus", lambda kind: [Gpu("GeForce")] * 2)


def test_it_refuses_without_a_gpu(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    show_gpus(monkeypatch, Fault("no GPU", "buy one"))
    begin = time.monotonic()
    assert main(["bench", "gpu"]) == 2
    assert time.monotonic() - begin < 60
    captured = capsys.readouterr()
    assert captured.out == ""
    skipped = "unpack kernel, contexts, sessions, fp16 agreement, speed, profile, workers stopped, deliberate fault"
    assert captured.err == f"yomi: error: device cuda:0: no GPU; to mend it: buy one; skipped: {skipped}\n"
    assert main(["bench", "gpu", "--device", "cpu"]) == 2
    assert "expected a GPU" in capsys.readouterr().err


def test_networks_of_a_size(tmp_path: Path) -> None:
    path = gpu.write_go_network(tmp_path / "net.onnx", 9, 2, 16)
    found, info = prepare(open_file(path), 9)
    assert found == path
    assert (info.game, info.board_size) == ("go", 9)
    session = onnx_session.make_session(path)
    rng = np.random.default_rng(0)
    outputs = session.run(
        ["policy", "value", "misc", "ownership"],
        {
            "spatial": (rng.random((3, 22, 9, 9)) < 0.2).astype(np.float32),
            "global": rng.random((3, 19)).astype(np.float32),
        },
    )
    assert [output.shape for output in outputs] == [(3, 1, 82), (3, 3), (3, 4), (3, 81)]
    assert all(np.isfinite(output).all() and np.abs(output).max() < 100 for output in outputs)


@pytest.mark.slow
def test_every_part_has_its_rows_whatever_another_does(
    processor: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    def break_down(*_: Any) -> Any:
        raise RuntimeError("the bus\nis gone")

    marks = (gpu.Mark(SHOGI, 9, (1, 16), 10), gpu.Mark(GO, 9, (1, 16), 10**9), gpu.Mark(GO, 9, None))
    monkeypatch.setattr(gpu, "MARKS", marks)
    monkeypatch.setattr(gpu, "BATCHES", (2, 4))
    for game in (GO, SHOGI):
        monkeypatch.setattr(game, "benchmark_setup", functools.partial(_first_game, game.benchmark_setup))
    monkeypatch.setattr(gpu_proofs, "prove_fault", break_down)
    monkeypatch.setattr(gpu_proofs, "prove_stopping", lambda *_: [])
    searched: list[int] = []  # rows of a batch in each search

    def counts(search: Any, *how: Any) -> dict[str, float]:
        searched.append(search.batch_rows)
        return search_counts(search, *how)

    monkeypatch.setattr(gpu, "search_counts", counts)
    options = Options(device="cuda", precision="fp32", memory=2**24, workers=2)
    plan = gpu.Plan(options, 0.05, 1.0, tmp_path, math.inf)
    rows = [row for proof in plan.parts() for row in plan.rows(proof)]
    assert all(tuple(row) == gpu.COLUMNS for row in rows)
    assert gpu.failed(rows)
    by_part: dict[str, list[Any]] = {}
    for row in rows:
        by_part.setdefault(row["part"], []).append(row)
    names = "device, unpack kernel, contexts, sessions, fp16 agreement, speed, workers stopped, deliberate fault"
    assert ", ".join(by_part) == names
    assert by_part["device"][0]["result"] == "GeForce"
    assert [row["result"] for row in by_part["unpack kernel"]] == ["ok"]
    assert [row["result"] for row in by_part["contexts"]] == ["ok"]
    for part, result in (("sessions", "ok, grea"), ("fp16 agreement", "ok, same")):
        assert [row["result"][:8] for row in by_part[part]] == [result] * 2
    assert by_part["deliberate fault"][0]["result"] == "failed: the bus is gone"
    speeds = by_part["speed"]
    assert [row["what"] for row in speeds] == [*["shogi, 1x16"] * 3, *["Go 9x9, 1x16"] * 3, *["Go 9x9, own"] * 3]
    assert [row["batch"] for row in speeds[:2]] == [2, 4]
    shogi, go, own = speeds[2::3]
    for search, alone in ((shogi, speeds[:2]), (go, speeds[3:5]), (own, speeds[6:8])):
        best = max(alone, key=lambda row: row["per_second"])
        assert search["batch"] in (2, 4)
        assert plan.best[search["what"]] == best["batch"]
        assert search["share"] == pytest.approx(search["per_second"] / best["per_second"])
        assert alone[0]["result"] == "alone: cuda:0 (onnxruntime, fp32)"
    assert searched == [rows for search in (shogi, go, own) for rows in (2, 2, 4, 4, search["batch"])]
    assert go["result"] == "search, 2 workers: not reached"
    assert own["result"] == "search, 2 workers: ok"
    told = capsys.readouterr().err.splitlines()
    assert "yomi: cuda: deliberate fault, in a process of its own: failed: the bus is gone" in told
    monkeypatch.setattr(gpu, "run", lambda *_: rows)
    monkeypatch.setattr("yomi.native.precompile.compile_names", lambda names, report: None)
    assert main(["bench", "gpu"]) == 1
    monkeypatch.setattr(gpu, "run", lambda *_: [row for row in rows if row["part"] != "deliberate fault"])
    assert main(["bench", "gpu"]) == 0


@pytest.mark.parametrize(
    ("rate", "alone", "verdict"),
    [(20_000, 25_000, "reached"), (19_999, 25_000, "not reached"), (20_000, 25_001, "not reached"),
     (24_000, 24_999, "not reached")],
)  # fmt: skip
def test_verdicts(rate: float, alone: float, verdict: str) -> None:
    assert gpu._verdict(gpu.Mark(GO, 19, None, 20_000, alone=25_000, share=0.8), rate, alone) == verdict


def profile_batches(folder: Path, batches: int) -> list[dict[str, Any]]:
    """Return onnxruntime's own profile of a network with three convolutions in its blocks and heads."""
    path = write_network(folder / "net.onnx", NetworkShape(blocks=1, channels=16))
    session = onnx_session.make_session(path)
    inputs = {each.name: np.zeros((2, *each.shape[1:]), np.float32) for each in session.get_inputs()}
    for _ in range(batches):
        session.run(None, inputs)
    del session  # writes the file
    events: list[dict[str, Any]] = json.loads(next(folder.glob("profile*.json")).read_text(encoding="utf-8"))
    return events


def test_a_profile_is_summed_up_by_operator(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(onnx_session.PROFILE, str(tmp_path / "profile"))
    events = profile_batches(tmp_path, 5)
    monkeypatch.setattr(gpu, "PROFILED", 3)
    begin = [event["ts"] for event in events if event["name"] == "model_run"][2]
    nodes = [event for event in events if event["name"].endswith("_kernel_time")]
    for node in nodes:  # of the first batches, which prepare the session
        node["dur"] = 10**9 if node["ts"] < begin else 10
    gemm = [node for node in nodes if node["args"]["op_name"] == "FusedGemm" and node["ts"] > begin]
    assert len(gemm) == 6
    for node in gemm:
        node["dur"] = 500
        node["args"]["provider"] = "CUDAExecutionProvider"
    longest, *others, whole = gpu.summarize(events)
    assert longest == {"result": "2 FusedGemm on CUDA", "milliseconds": 1.0, "share": pytest.approx(1.0, abs=0.5)}
    count = len(nodes) / 5
    assert whole["result"].startswith(f"{count:g} operators; on the processor: ")
    assert whole["milliseconds"] == pytest.approx(1.0 + (count - 2) * 0.01)
    assert longest["share"] == pytest.approx(1.0 / whole["milliseconds"])
    assert sum(row["share"] for row in (longest, *others)) == pytest.approx(whole["share"]) == 1.0
    convolutions = sum(node["args"]["op_name"] == "Conv" for node in nodes) // 5
    assert f"{convolutions} Conv on CPU" in [row["result"] for row in others]
    assert f"{convolutions} Conv" in whole["result"]
    assert "FusedGemm" not in whole["result"]
    for broken in ([], [event for event in events if event not in nodes]):
        with pytest.raises(EvaluatorError, match="no operator found"):
            gpu.summarize(broken)


@pytest.mark.slow
def test_a_profile_is_made_in_a_process_that_waits_for_each_operator(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mark = gpu.Mark(GO, 9, (1, 16))
    plan = gpu.Plan(Options(device="cpu", backend="onnx"), 1.0, 1.0, tmp_path, math.inf, {mark.name: 4})
    rows = plan._profile(mark)  # on the processor, in a real process
    assert {row["batch"] for row in rows} == {4}
    assert rows[-1]["share"] == 1.0
    assert " on CPU" in rows[0]["result"]
    environment: dict[str, str] = {}
    monkeypatch.setattr(gpu.os, "environ", environment)
    with pytest.raises(NetworkError):
        gpu.compute("profile", plan.options, "go", 9, tmp_path / "none.onnx", 4)
    assert environment == {onnx_session.PROFILE: "profile", "CUDA_LAUNCH_BLOCKING": "1"}
    monkeypatch.setattr(gpu, "compute", os._exit)
    with pytest.raises(EvaluatorError, match="status 1 and 0 profiles found after 120 s at most, expected 0 and 1"):
        plan._profile(mark)
    show_gpus(monkeypatch)
    with pytest.raises(gpu.NotInstalledError, match="onnxruntime does not compute on device tensorrt"):
        dataclasses.replace(plan, options=Options(device="tensorrt"))._profile(mark)


def test_a_recording_is_not_profiled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    prepared: list[bool] = []
    monkeypatch.setattr(onnx_session.GpuSession, "_prepare", lambda *_, records: prepared.append(records))
    monkeypatch.setattr(onnx_session.GpuSession, "_compare", lambda _: None)
    for name in ("", onnx_session.PROFILE):
        if name:
            monkeypatch.setenv(name, str(tmp_path))
        onnx_session.GpuSession(tmp_path, Device("webgpu"), 1, [])
    assert prepared == [True, False]


class Parts(gpu.Plan):
    """Parts of a benchmark: a measurement, one that ends its process but not its child, and one that shows the plan."""

    def parts(self) -> list[gpu_proofs.Proof]:
        works = {"first": self._first, "broken": self._broken, "last": self._last}
        return [gpu_proofs.Proof(part, "net", work) for part, work in works.items()]

    def _first(self) -> list[gpu.Row]:
        return [
            {"result": f"alone: {rows}", "batch": rows, "per_second": rate} for rows, rate in ((64, 2.0), (256, 1.0))
        ]

    def _broken(self) -> list[gpu.Row]:
        child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
        (self.folder / "child").write_text(str(child.pid), encoding="utf-8")
        os._exit(7)

    def _last(self) -> list[gpu.Row]:
        return [{"batch": self.best.get("net")}]


def plan_of(kind: type[gpu.Plan], end: float = math.inf, folder: Path = Path()) -> gpu.Plan:
    return kind(Options(device="cuda"), 1.0, 1.0, folder, end)


@pytest.mark.slow
def test_a_process_that_ends_costs_one_part(tmp_path: Path) -> None:
    rows = [row for rows in gpu.run_parts(plan_of(Parts, time.monotonic() + 300.0, tmp_path)) for row in rows]
    assert [(row["part"], row["result"], row["batch"]) for row in rows] == [
        ("first", "alone: 64", 64),
        ("first", "alone: 256", 256),
        ("broken", "failed: the process ended with status 7", None),
        ("last", "ok", 64),  # the fastest, also in another process
    ]
    status = Path("/proc") / (tmp_path / "child").read_text(encoding="utf-8") / "stat"
    if Path("/proc/self").exists():
        assert not status.exists() or status.read_text(encoding="utf-8").split()[2] in "ZX"


@pytest.mark.parametrize(
    ("most", "result"), [(300.0, "left out: the time ended 0 s after it began"), (0.0, "failed: no result after 0 s")]
)
def test_a_process_that_hangs_costs_one_part(most: float, result: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gpu, "PART_SECONDS", most)
    plan = plan_of(Parts, 1.0)
    waits: list[float] = []
    killed: list[int] = []

    class Hanging:
        """A process that sends the rows of its first part, then nothing."""

        pid = None

        def __init__(self, target: Any, args: Any) -> None:
            self.first = args[1]
            messages.append(plan.rows(plan.parts()[self.first], "sent"))

        def kill(self) -> None:
            killed.append(self.first)

        def start(self) -> None: ...

        join = start

    messages: list[Any] = []
    pipe = SimpleNamespace(
        poll=lambda seconds: waits.append(seconds) or bool(messages), recv=messages.pop, close=lambda: None
    )
    context = SimpleNamespace(Pipe=lambda duplex: (pipe, pipe), Process=Hanging)
    monkeypatch.setattr(gpu, "CONTEXT", context)
    rows = [row for rows in gpu.run_parts(plan) for row in rows]
    assert [(row["part"], row["result"]) for row in rows] == [("first", "sent"), ("broken", result), ("last", "sent")]
    assert killed == [0, 2]
    assert set(waits) == {60.0}  # the time of this device has ended long ago


def test_parts_without_time_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = plan_of(Parts, 10.0)
    clock = iter((9.0, 9.5, 11.0, 11.5))
    monkeypatch.setattr(gpu, "time", SimpleNamespace(monotonic=lambda: next(clock)))
    rows = [plan.rows(proof)[0] for proof in plan.parts()[::2]]
    assert [row["result"] for row in rows] == ["alone: 64", "left out: no time is left, see --minutes"]
    assert [row["seconds"] for row in rows] == [0.5, 0.5]
    assert not gpu.failed(rows)


def test_all_kinds_share_the_time_and_every_part_is_written_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    show_gpus(monkeypatch)
    faults = {"rtx": Fault("no RTX", "buy one"), "openvino": Fault("none of Intel", "buy one")}
    for module in (devices, gpu):
        monkeypatch.setattr(module, "find_fault", faults.get)
    clock = [0.0]
    monkeypatch.setattr(gpu, "time", SimpleNamespace(monotonic=lambda: clock[0]))
    ends: dict[str, float] = {}

    def run_parts(plan: gpu.Plan) -> Iterator[list[Any]]:
        ends[plan.options.device] = plan.end
        yield plan.rows(gpu_proofs.Proof("sessions", "go", list))
        clock[0] += 60.0
        if plan.options.device == "webgpu":
            raise KeyboardInterrupt

    monkeypatch.setattr(gpu, "run_parts", run_parts)
    monkeypatch.setattr("yomi.native.precompile.compile_names", lambda names, report: None)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(KeyboardInterrupt):
        cli.run(["gpu", "--all", "--minutes", "9"])
    assert ends == {"cuda": 180.0, "tensorrt": 60.0 + 240.0, "webgpu": 540.0}
    document = json.loads((tmp_path / "bench-gpu.json").read_text(encoding="utf-8"))
    assert document["command"] == ["yomi", "bench", "gpu", "--all", "--minutes", "9"]
    assert [(row["device"], row["part"], row["result"]) for row in document["results"]] == [
        ("rtx", "device", "left out: device rtx:0: no RTX; to mend it: buy one"),
        ("openvino", "device", "left out: device openvino:0: none of Intel; to mend it: buy one"),
        *((kind, "sessions", "ok") for kind in ("cuda", "tensorrt", "webgpu")),
    ]
    assert gpu.list_kinds(Options(), every=False) == ["tensorrt"]
    assert gpu.list_kinds(Options(device="webgpu"), every=True) == ["webgpu"]


def test_a_kernel_that_unpacks_wrongly_is_found(processor: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    class Wrong(RecordingDriver):
        def unpack(self, source: int, target: int, rows: int, words: int, bits: int, repeat: int, dtype: str) -> None:
            super().unpack(source, target, rows, words, bits, repeat, dtype)
            self.queued.append(lambda: self.memory[target].__setitem__(0, 9))

    monkeypatch.setattr(gpu_proofs, "CudaDriver", lambda number: Wrong(number, processor))
    with pytest.raises(EvaluatorError, match="31 bits, float32: 1 of 217 numbers differ"):
        gpu_proofs.prove_unpacking(0, (31,))
    with pytest.raises(EvaluatorError, match="31 bits, float32: 1 of 217 numbers differ"):
        gpu_proofs.prove_contexts(0)


def test_contexts_are_opened_by_four_threads(processor: list[tuple[str, int, int]]) -> None:
    gpu_proofs.prove_contexts(1)
    pushes = [thread for name, number, thread in processor if name == "push"]
    assert len(pushes) == len([name for name, _, _ in processor if name == "pop"]) == 40
    assert len(set(pushes)) == 4
    assert threading.get_ident() not in pushes


@pytest.mark.slow
def test_a_session_with_other_outputs_is_found(processor: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = gpu_proofs.prove_session(SHOGI, CUDA, "fp32")
    assert rows[0]["result"].startswith("ok, greatest difference ")
    wanted = gpu_proofs.reference(SHOGI)
    wanted.values[...] += 0.1
    with pytest.raises(EvaluatorError, match=r"outputs 0\.1 from the processor's found, expected 0\.005"):
        gpu_proofs.prove_session(SHOGI, CUDA, "fp32")
    with pytest.raises(EvaluatorError, match=r"mean value error 0\.10"):
        gpu_proofs.prove_session(SHOGI, CUDA, "fp16")
    wanted.values[...] = np.nan
    with pytest.raises(EvaluatorError, match="outputs nan"):
        gpu_proofs.prove_session(SHOGI, CUDA, "fp32")


@pytest.mark.slow
def test_workers_are_stopped_and_every_batch_comes_back_right(processor: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    clock, make = iter(range(10**6)), gpu_proofs._make

    def make_slowly(*how: Any) -> Any:
        for _ in range(200):
            next(clock)
        return make(*how)

    monkeypatch.setattr(gpu_proofs, "_make", make_slowly)
    monkeypatch.setattr(gpu_proofs, "time", SimpleNamespace(monotonic=lambda: next(clock)))
    rows = gpu_proofs.prove_stopping(CUDA, 150)  # of the clock's ticks, one for each batch
    assert rows[0]["result"].startswith("ok, ")
    with pytest.raises(EvaluatorError, match="2 workers left after 0 stops in 4 batches"):
        gpu_proofs.prove_stopping(CUDA, 5)


@pytest.mark.parametrize("is_lost", [True, False])
def test_the_deliberate_fault_gives_the_gpu_up(processor: Any, monkeypatch: pytest.MonkeyPatch, is_lost: bool) -> None:
    assert gpu_proofs.fail(0) == 1  # nothing happens
    processor.clear()

    def broken(number: int) -> RecordingDriver:
        driver = RecordingDriver(number, processor)
        driver.is_broken, driver.is_lost = not is_lost, is_lost
        return driver

    monkeypatch.setattr(gpu_proofs, "CudaDriver", broken)
    assert gpu_proofs.fail(0) == 0
    opened = [name for name, _, _ in processor if name == "push"]
    assert len(opened) == (1 if is_lost else 3)


@pytest.mark.parametrize(
    ("status", "lines", "is_right"), [(0, 1, True), (0, 0, False), (0, 2, False), (-6, 1, False), (1, 0, False)]
)
def test_a_child_that_does_not_survive_is_told(
    status: int, lines: int, is_right: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = "yomi: ERROR: GPU 0 failed and no other device is left: CUDA error 700\n" * lines
    ended = subprocess.CompletedProcess([], status, "", said)
    monkeypatch.setattr(gpu_proofs.subprocess, "run", lambda *_, **__: ended)
    if is_right:
        assert "CUDA error 700" in gpu_proofs.prove_fault(0)[0]["result"]
    else:
        with pytest.raises(EvaluatorError, match=f"status {status}, {lines} lines that give the GPU up found"):
            gpu_proofs.prove_fault(0)


@contextlib.contextmanager
def _first_game(measured: Any, options: Options) -> Iterator[Any]:
    with measured(options) as (subject, queue, settings):
        yield dataclasses.replace(subject, games=subject.games[:1]), queue, settings

"""`bench gpu` without a GPU: it refuses in one line; with the processor in a GPU's place, every part has its rows."""

import contextlib
import dataclasses
import functools
import subprocess
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
from yomi.engine.evaluators import devices, onnx_session
from yomi.engine.evaluators.base import EvaluatorError, Fault
from yomi.engine.evaluators.devices import CPU, Device, Gpu
from yomi.engine.options import Options
from yomi.engine.registry import GO, SHOGI
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
    assert cli.main(["gpu"]) == 2
    assert time.monotonic() - begin < 60
    captured = capsys.readouterr()
    assert captured.out == ""
    skipped = "unpack kernel, contexts, sessions, fp16 agreement, workers stopped, deliberate fault, speed"
    assert captured.err == f"yomi: error: device cuda:0: no GPU; to mend it: buy one; skipped: {skipped}\n"
    assert cli.main(["gpu", "--device", "cpu"]) == 2
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
    processor: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
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
    absent = {"tensorrt": Fault("tensorrt not installed", "pip install it")}
    for module in (devices, gpu):
        monkeypatch.setattr(module, "find_fault", absent.get)
    searched: list[int] = []  # rows of a batch in each search

    def counts(search: Any, *how: Any) -> dict[str, float]:
        searched.append(search.batch_rows)
        return search_counts(search, *how)

    monkeypatch.setattr(gpu, "search_counts", counts)
    rows = gpu.run(Options(precision="fp32", memory=2**24, workers=2), 0.05, 1.0)
    assert all(tuple(row) == gpu.COLUMNS for row in rows)
    assert gpu.failed(rows)
    by_part: dict[str, list[Any]] = {}
    for row in rows:
        by_part.setdefault(row["part"], []).append(row)
    assert list(by_part) == gpu.parts()
    assert [row["result"] for row in by_part["unpack kernel"]] == ["ok"] * 8
    assert [row["result"] for row in by_part["contexts"]] == ["ok"]
    for part in ("sessions", "fp16 agreement"):
        assert [row["result"][:8] for row in by_part[part]] == [*["ok, grea" if part == "sessions" else "ok, same"] * 2,
                                                               *["left out"] * 2]  # fmt: skip
        assert (
            by_part[part][-1]["result"]
            == "left out: device tensorrt:0: tensorrt not installed; to mend it: pip install it"
        )
    assert by_part["deliberate fault"][0]["result"] == "failed: the bus is gone"
    speeds = by_part["speed"]
    assert [row["what"] for row in speeds] == [*["shogi, 1x16"] * 3, *["Go 9x9, 1x16"] * 3, *["Go 9x9, own"] * 3]
    assert [row["batch"] for row in speeds[:2]] == [2, 4]
    shogi, go, own = speeds[2::3]
    for search, alone in ((shogi, speeds[:2]), (go, speeds[3:5]), (own, speeds[6:8])):
        best = max(alone, key=lambda row: row["per_second"])
        assert search["batch"] in (2, 4)
        assert search["share"] == pytest.approx(search["per_second"] / best["per_second"])
        assert alone[0]["result"] == "alone: cuda:0 (onnxruntime, fp32)"
    assert searched == [rows for search in (shogi, go, own) for rows in (2, 2, 4, 4, search["batch"])]
    assert go["result"] == "search, 2 workers: not reached"
    assert own["result"] == "search, 2 workers: ok"
    told = capsys.readouterr().err.splitlines()
    assert "yomi: deliberate fault, in a process of its own: failed: the bus is gone" in told
    monkeypatch.setattr(gpu, "run", lambda *_: rows)
    monkeypatch.setattr("yomi.native.precompile.compile_names", lambda names, report: None)
    assert cli.main(["gpu"]) == 1
    monkeypatch.setattr(gpu, "run", lambda *_: [row for row in rows if row["part"] != "deliberate fault"])
    assert cli.main(["gpu"]) == 0


def test_a_kernel_that_unpacks_wrongly_is_found(processor: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    class Wrong(RecordingDriver):
        def unpack(self, source: int, target: int, rows: int, words: int, bits: int, repeat: int, dtype: str) -> None:
            super().unpack(source, target, rows, words, bits, repeat, dtype)
            self.queued.append(lambda: self.memory[target].__setitem__(0, 9))

    monkeypatch.setattr(gpu_proofs, "CudaDriver", lambda number: Wrong(number, processor))
    with pytest.raises(EvaluatorError, match="1 of 217 numbers differ"):
        gpu_proofs.prove_unpacking(0, 31, "float32")
    with pytest.raises(EvaluatorError, match="1 of 217 numbers differ"):
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

"""`bench gpu` without a GPU: it refuses in one line; and with the processor in a GPU's place, its table is whole."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bench import cli, gpu
from bench.go_network import write_go_network
from engine.evaluators import katago_gpu, onnx_session, shogi_gpu
from engine.evaluators.base import EvaluatorError
from engine.options import Options
from nets.load import prepare
from nets.packed import variant_file


def test_it_refuses_without_a_gpu(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def none(device: str, backend: str) -> str:
        raise EvaluatorError(f"device {device}: no GPU; to mend it: buy one")

    monkeypatch.setattr("engine.evaluators.devices.choose_backend", none)
    monkeypatch.setattr(gpu, "choose_backend", none)
    begin = time.monotonic()
    assert cli.main(["gpu"]) == 2
    assert time.monotonic() - begin < 60
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err == "yomi bench: device cuda:0: no GPU; to mend it: buy one\n"
    assert cli.main(["gpu", "--device", "cpu"]) == 2
    assert "expected a GPU" in capsys.readouterr().err


def test_networks_of_a_size(tmp_path: Path) -> None:
    path = write_go_network(tmp_path / "net.onnx", 9, 2, 16)
    found, info = prepare(path, 9)
    assert found == path
    assert (info.game, info.board_size) == ("go", 9)
    session = onnx_session.make_session(path, "cpu")
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


def test_the_table(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Small networks, and sessions that run on the processor where they would on a GPU."""
    monkeypatch.setenv("YOMI_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(gpu, "MARKS", (gpu.Mark("shogi", 9, 1, 16, 10), gpu.Mark("go", 9, 1, 16, 10**9)))
    monkeypatch.setattr(gpu, "TREE_PLAYOUTS", 300)
    monkeypatch.setattr(gpu, "TREE_WORKERS", (1, 2))
    monkeypatch.setattr(gpu, "choose_backend", lambda device, backend: "onnx")
    monkeypatch.setattr("engine.evaluators.devices.choose_backend", lambda device, backend: "onnx")
    one_game = functools.partial(_first_game, gpu.measured)
    monkeypatch.setattr(gpu, "measured", one_game)

    def on_processor(path: Path, device: str, backend: str, rows: int, outputs: Any, variant: Any, **how: Any) -> Any:
        session = onnx_session.GpuSession(variant_file(path, variant), "cpu", rows, outputs, **how)
        return session, "onnxruntime"

    monkeypatch.setattr(katago_gpu, "open_engine", on_processor)
    monkeypatch.setattr(shogi_gpu, "open_engine", on_processor)
    rows = gpu.run(Options(batch_size=4, precision="fp32", memory=2**24, workers=2), 0.05)
    assert len({tuple(row) for row in rows}) == 1  # the same columns in every row
    shogi, go, *trees = rows
    assert (shogi["what"], go["what"]) == ("shogi 1x16", "Go 9x9 1x16")
    assert shogi["how"] == "tensorrt:0 (onnxruntime, fp32)"
    for row in (shogi, go):
        assert row["per_second"] > 0
        assert row["share"] == pytest.approx(row["per_second"] / row["alone_per_second"])
    assert not go["reached"]
    assert [row["workers"] for row in trees] == [1, 2] * 3
    assert [row["share"] for row in trees[::2]] == [1.0, 1.0, 1.0]


@contextlib.contextmanager
def _first_game(measured: Any, options: Options, game: str) -> Iterator[Any]:
    with measured(options, game) as (subject, queue, settings):
        yield dataclasses.replace(subject, games=subject.games[:1]), queue, settings

"""Games by GTP and USI on a real graphics driver in software: WebGPU on SwiftShader."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.contract.networks import write_small_network
from tests.naive.shogi_networks import NetworkShape, write_network
from tests.process.engine_process import GtpProcess, UsiProcess
from yomi.engine.evaluators.devices import find_fault

pytestmark = pytest.mark.slow

DEVICE = "webgpu:software"
BACKEND = r"\(WebGPU, [^,]+, a software adapter, fp32\)"
SHADERS = 240.0  # seconds until the first move: the driver compiles shaders on the processor


@pytest.fixture(autouse=True)
def adapter() -> None:
    if fault := find_fault(DEVICE):
        pytest.skip(f"no software adapter for WebGPU: {fault}")


def on_adapter(workers: int) -> tuple[str, ...]:
    return ("--device", DEVICE, "--device-workers", str(workers), "--precision", "fp32", "--batch-size", "4")


@pytest.mark.parametrize("workers", [1, 2])
def test_a_game_of_go(tmp_path: Path, workers: int) -> None:
    net = write_small_network(tmp_path)
    options = (*on_adapter(workers), "--visits", "6")
    with GtpProcess("yomi", "gtp", "--net", str(net), *options) as engine:
        engine.write("boardsize 5\n")
        assert engine.answer(SHADERS).startswith("=")
        for color in "bwbw":
            engine.write(f"genmove {color}\n")
            assert re.fullmatch("= (pass|[A-E][1-5])", engine.answer(SHADERS))
        engine.write("quit\n")
        assert engine.end(SHADERS) == 0
        said = b"".join(engine.errors).decode()
    # The only line: every node of the network runs on the adapter, and nothing fails.
    assert re.fullmatch(rf"yomi: random-net on {DEVICE}:0 {BACKEND}\n", said), said


@pytest.mark.parametrize("workers", [1, 2])
def test_a_game_of_shogi(tmp_path: Path, workers: int) -> None:
    net = write_network(tmp_path / "net.onnx", NetworkShape(blocks=1, channels=16))
    with UsiProcess("yomi", "usi", "--net", str(net), *on_adapter(workers)) as engine:
        engine.send("usi")
        engine.until("usiok")
        engine.send("isready")
        lines = engine.until("readyok", SHADERS)
        assert any(
            re.fullmatch(rf"info string .*net on {DEVICE}:0 {BACKEND}, tree search.*", line) for line in lines
        ), lines
        moves: list[str] = []
        for _ in range(4):
            engine.send(f"position startpos moves {' '.join(moves)}".removesuffix(" moves "), "go nodes 6")
            answer = engine.until("bestmove", SHADERS)[-1].split()
            assert answer[1] != "resign"
            moves.append(answer[1])

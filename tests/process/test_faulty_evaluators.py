"""Evaluators that raise, hang or return nonsense in mid-search: the game goes on, or ends with a clear message."""

from __future__ import annotations

import time

import pytest

from tests.process.engine_process import GtpProcess, UsiProcess

pytestmark = pytest.mark.slow

FAULTY = "tests.process.faulty_engine"
FAULTS = ["raise", "nan", "hang"]
IN_TIME = 60.0
"""Seconds in which an engine that has one for a move answers on a busy machine; the evaluator hangs for ten minutes."""


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("place", ["inline", "workers"])
def test_gtp_in_mid_search(place: str, fault: str) -> None:
    with GtpProcess(FAULTY, "gtp", place, fault, "6") as engine:
        assert engine.ask("showboard").startswith("=")
        begin = time.monotonic()
        move = engine.ask("genmove b")
        assert time.monotonic() - begin < IN_TIME
        assert move.startswith("= ")
        assert move[2:] not in ("pass", "resign", "PASS")
        assert engine.ask("name") == "= yomi"
        if place == "workers":
            assert engine.ask("genmove w").startswith("= ")
            engine.write("quit\n")
            assert engine.end(60) == 0
            said = b"".join(engine.errors).decode()
            reason = {"raise": "the device is gone", "nan": "not finite", "hang": "has not answered"}[fault]
            assert "faulty" in said
            assert reason in said


@pytest.mark.parametrize("fault", ["raise", "nan"])
def test_gtp_without_any_evaluation(fault: str) -> None:
    with GtpProcess(FAULTY, "gtp", "inline", fault, "1") as engine:
        for _ in range(2):
            answer = engine.ask("genmove b")
            assert answer.startswith("? ")
            assert ("the device is gone" if fault == "raise" else "not finite") in answer
        assert engine.ask("name") == "= yomi"


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("place", ["inline", "workers"])
def test_usi_in_mid_search(place: str, fault: str) -> None:
    with UsiProcess(FAULTY, "usi", place, fault, "6") as engine:
        engine.ready()
        engine.send("position startpos")
        begin = time.monotonic()
        engine.send("go byoyomi 1000")
        lines = engine.until("bestmove")
        assert time.monotonic() - begin < IN_TIME
        assert lines[-1] != "bestmove resign"
        if place == "workers":
            # the second go meets the fault again, or a device that was given up
            engine.send("position startpos moves 7g7f", "go byoyomi 1000")
            lines += engine.until("bestmove")
            assert lines[-1] != "bestmove resign"
            told = [line for line in lines if line.startswith("info string warning") or "error" in line]
            assert told, lines


@pytest.mark.parametrize("fault", ["raise", "nan"])
def test_usi_without_any_evaluation(fault: str) -> None:
    with UsiProcess(FAULTY, "usi", "inline", fault, "1") as engine:
        engine.ready()
        for _ in range(2):
            engine.send("position startpos", "go byoyomi 1000")
            lines = engine.until("bestmove")
            assert lines[-1] == "bestmove resign"
            assert any("Error!" in line and ("the device is gone" in line or "not finite" in line) for line in lines)
        engine.send("isready")
        assert engine.until("readyok")

"""How compiling shows its progress."""

from __future__ import annotations

import io
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from engine.cli.main import main
from native import compile_progress, warmup
from native.compile_progress import Display, Progress

STEPS = {"a": (("heavy", 20.0), ("a", 10.0)), "b": (("b", 10.0),)}


@pytest.fixture(autouse=True)
def steps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compile_progress, "STEPS", STEPS)


def test_the_time_left_follows_the_speed_of_the_machine() -> None:
    progress = Progress(("a", "b"), 100.0)
    assert progress.total == progress.left(100.0) == 40.0
    assert progress.left(110.0) == 30.0
    assert progress.left(200.0) == 40.0 - 19.0  # never past a kernel that is not finished
    progress.finish("unknown", 200.0)
    progress.finish("heavy", 140.0)  # 20 s took 40 s
    assert progress.left(140.0) == 40.0
    progress.finish("b", 141.0)  # the first group was in the cache
    assert progress.left(141.0) == 0.0


def test_an_ended_process_has_no_time_left() -> None:
    progress = Progress(("a", "b"), 0.0)
    progress.end(1.0)
    assert progress.left(2.0) == 0.0
    assert Progress(("a",), 0.0, 0.5).left(0.0) == 60.0  # the machine was half as fast in the stage before
    assert Progress(("--check", "a"), 0.0).total == compile_progress.SECONDS_TO_CHECK


class Clock:
    """A clock that stands until it is moved."""

    def __init__(self) -> None:
        self.now = 0.0

    def monotonic(self) -> float:
        return self.now


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_lines_come_every_15_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, lines = Clock(), list[str]()
    monkeypatch.setattr(compile_progress, "time", clock)
    display = Display(lines.append, [40.0, 10.0])
    display.begin_stage()
    progress = Progress(("a", "b"), 0.0)
    for second in range(40):
        clock.now = float(second)
        display.show([progress])
    assert lines == ["compiling: 30%, about 35 s left", "compiling: 49%, about 31 s left"]
    assert display.begin_stage() == 40.0 / 39.0
    assert display.close() == 39.0


def test_a_terminal_gets_a_bar_that_never_goes_back(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, lines, terminal = Clock(), list[str](), Terminal()
    monkeypatch.setattr(compile_progress, "time", clock)
    monkeypatch.setattr(sys, "stderr", terminal)
    display = Display(lines.append, [40.0])
    display.begin_stage()
    progress = Progress(("a", "b"), 0.0)
    shown = []
    for second in range(0, 40, 4):
        clock.now = float(second)
        display.show([progress])
        shown.append(display._bar.n)
    assert shown == sorted(shown)
    assert shown[-1] > 50
    assert "left" in terminal.getvalue()
    assert "%" in terminal.getvalue()
    display.close()
    assert terminal.getvalue().endswith("\r")  # the bar is gone
    assert not lines


def test_times_are_short() -> None:
    assert [compile_progress.time_text(seconds) for seconds in (0.0, 40.4, 89.0, 150.0)] == [
        "1 s",
        "40 s",
        "89 s",
        "2 min",
    ]


@pytest.fixture
def fake_compiler(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """Compile nothing, but print the names of kernels as compiling processes do."""
    started: list[list[str]] = []
    popen = subprocess.Popen

    def start(command: list[str], **how: Any) -> subprocess.Popen[bytes]:
        started.append(command[3:])
        return popen([sys.executable, "-c", "print('heavy'); print('a')"], **how)

    monkeypatch.setattr(warmup, "CACHE_DIRECTORY", tmp_path)
    monkeypatch.setattr(warmup, "ROOT", tmp_path)
    monkeypatch.setattr(subprocess, "Popen", start)
    return started


def test_lines_elsewhere_are_two_if_it_is_quick(fake_compiler: list[list[str]]) -> None:
    lines: list[str] = []
    warmup.compile_all("go", lines.append)
    assert len(lines) == 2
    assert lines[0] == f"compiling the engine for go. {warmup.WHEN_AGAIN}"
    assert lines[1].startswith("compiled in ")
    warmup.compile_all("go", lines.append)
    assert len(lines) == 2


@pytest.mark.parametrize(
    ("words", "games"),
    [("go", ["go", "learning-go"]), ("all", list(warmup.PROCESSES)), ("", list(warmup.PROCESSES))],
)
def test_setup_compiles_a_game(
    words: str, games: list[str], fake_compiler: list[list[str]], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["setup", *words.split()]) == 0
    assert fake_compiler == [list(groups) for game in games for groups in warmup.PROCESSES[game]]
    assert all(warmup.is_compiled(game) for game in games)
    captured = capsys.readouterr()
    assert captured.err.count("\n") == 2
    assert captured.out.endswith("ready to play\n")
    assert main(["setup", *words.split()]) == 0
    assert capsys.readouterr() == (captured.out.replace("ready to play", "everything is compiled"), "")


def test_setup_knows_its_games(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["setup", "chess"]) == 2
    assert "invalid choice: 'chess'" in capsys.readouterr().err

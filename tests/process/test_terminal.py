"""`yomi play` and `yomi selfplay shogi` as real processes, with the real engine and no network."""

import os
import re
import select
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.process.engine_process import ROOT
from tests.process.prepared import prepared
from tests.waiting import wait_until
from yomi.engine import screen
from yomi.engine.go.record_files import load_record
from yomi.engine.screen import BLACK_INK, CLEAR, LAST, WHITE_INK, WOOD
from yomi.engine.shogi.records.files import load_records

pytestmark = pytest.mark.slow

COMPILING = 400
"""Seconds that a first start may take on a busy machine."""


def yomi(*words: str, typed: str = "", utf8: bool = True) -> "subprocess.CompletedProcess[str]":
    """Run a command with the lines of the user."""
    environment = os.environ | {"PYTHONIOENCODING": "utf-8" if utf8 else "ascii"}
    return subprocess.run(
        prepared("yomi", *words, "--workers", "1", "--memory", "32M", "--seed", "1"),
        cwd=ROOT,
        input=typed,
        env=environment,
        capture_output=True,
        encoding="utf-8",
        timeout=COMPILING,
    )


def test_a_game_in_the_terminal(tmp_path: Path) -> None:
    path = tmp_path / "game.kifu"
    typed = f"７六歩\nhint\n7776FU\nundo\n2g2f\nsave {path}\nresign\nquit\n"
    done = yomi("play", "shogi", "--no-save", "--playouts", "40", typed=typed)
    assert done.returncode == 0
    assert "|v香v桂v銀v金v玉v金v銀v桂v香|一" in done.stdout
    assert re.search(r"△\S+ \([1-9PLNSGBR][a-i1-9*]*\+?\): White's winrate [\d.]+%, \d+ nodes", done.stdout)
    assert "no piece of the side to move on 77" in done.stdout
    assert "Result: White wins by resignation" in done.stdout
    assert "\x1b" not in done.stdout
    record = load_records(path)[0]
    assert (record.black, record.white, len(record.moves)) == ("you", "yomi", 2)


def test_a_board_that_is_not_square(tmp_path: Path) -> None:
    path = tmp_path / "game.sgf"
    fast = "--no-save", "--evaluator", "uniform", "--playouts", "20"
    done = yomi("play", "go", "--size", "7x5", *fast, typed=f"G5\nA6\nsave {path}\nquit\n")
    assert done.returncode == 0, done.stderr
    assert "expected A1 to G5 or pass" in done.stdout
    assert str(load_record(path).board) == "7x5"
    done = yomi("play", "go", "--resume", str(path), *fast, typed="quit\n")
    assert done.returncode == 0, done.stderr
    assert "A B C D E F G" in done.stdout


def test_a_terminal_without_japanese() -> None:
    done = yomi("play", "shogi", "--no-save", "--playouts", "10", "--color", "white", typed="quit\n", utf8=False)
    assert done.returncode == 0
    assert "   l  n  s  g  k  g  s  n  l a" in done.stdout
    assert "White 2> " in done.stdout


@pytest.mark.parametrize(
    ("words", "move", "ending", "load"),
    [
        (["go", "--size", "5", "--evaluator", "rollouts"], "C3", ".sgf", lambda path: load_record(path).game()),
        (["shogi", "--evaluator", "material"], "7g7f", ".kifu", lambda path: load_records(path)[0].game()),
    ],
)
def test_a_game_whose_process_is_killed_goes_on(
    words: list[str], move: str, ending: str, load: Callable[[Path], Any], tmp_path: Path
) -> None:
    path = tmp_path / f"game{ending}"
    words = [*words, "--playouts", "10", "--workers", "1", "--memory", "32M"]
    command = [sys.executable, "-m", "yomi", "play", *words, "--save", str(path)]
    with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL) as process:
        assert process.stdin is not None
        process.stdin.write(f"{move}\n".encode())
        process.stdin.flush()
        wait_until(lambda: path.exists() and len(load(path).moves) == 2, COMPILING)
        process.kill()
    played = load(path).moves
    done = yomi("play", *words[:1], *words[3 if "go" in words else 1 :], "--resume", str(path), typed="undo\nquit\n")
    assert done.returncode == 0, done.stderr
    assert f"saved {path}" in done.stdout
    assert len(played) == 2
    assert load(path).moves == []


class Person:
    """Types at a terminal, a real pseudo-terminal, and reads from it."""

    def __init__(self, *words: str, **environment: str) -> None:
        self.master, slave = os.openpty()
        settings = {"TERM": "xterm-256color", "PYTHONIOENCODING": "utf-8", "NO_COLOR": ""} | environment
        words = ("play", *words, "--no-save", "--workers", "1", "--memory", "32M", "--seed", "1")
        command = [sys.executable, "-m", "yomi", *words]
        self.process = subprocess.Popen(
            command,
            cwd=ROOT,
            stdin=slave,
            stdout=slave,
            stderr=slave,
            env=os.environ | settings,
            start_new_session=True,
        )
        os.close(slave)

    def read(self, end: str) -> str:
        """Return the output until a text ends it."""
        found = b""
        while not found.endswith(end.encode()):
            assert select.select([self.master], [], [], COMPILING)[0], found
            found += os.read(self.master, 1)
        return found.decode().replace("\r\n", "\n")

    def answer(self, line: str, end: str) -> str:
        """Type a line, and return the output until a text ends it."""
        os.write(self.master, f"{line}\n".encode())
        return self.read(end)

    def leave(self, word: str = "quit") -> None:
        os.write(self.master, f"{word}\n".encode())
        assert self.process.wait(COMPILING) == 0
        os.close(self.master)


@pytest.fixture
def at_terminal() -> Iterator[Callable[..., Person]]:
    persons: list[Person] = []

    def begin(*words: str, **environment: str) -> Person:
        persons.append(Person(*words, **environment))
        return persons[-1]

    yield begin
    for person in persons:
        if person.process.poll() is None:
            person.process.kill()
            person.process.wait()
            os.close(person.master)


BLUNDER = "(;GM[1]SZ[5]KM[0.5]AB[cc]AW[cd];W[dc];B[cb])"  # if White now plays at A1


def test_go_at_a_terminal(at_terminal: Callable[..., Person], tmp_path: Path) -> None:
    (tmp_path / "game.sgf").write_text(BLUNDER)
    person = at_terminal("go", "--resume", str(tmp_path / "game.sgf"), "--color", "white", "--level", "1")
    person.read("W> ")
    asked = person.answer("A1", "Take it back? (yes or no) ").split(CLEAR)
    assert re.search(r"A1 may lose \d\d% of the winrate and [\d.]+ points\.\n", asked[-1])
    assert f"{screen.column(5)}{LAST}{WHITE_INK}●" in asked[-1], "the last move is marked"
    assert "W A1" in asked[-1]
    taken = person.answer("y", "W> ").split(CLEAR)[-1]
    assert "2 played, last move B C4" in taken
    assert f"{screen.column(9)}{LAST}{BLACK_INK}●" in taken
    hinted = person.answer("hint", "W> ").split(CLEAR)[-1]
    assert re.search(r"\nwinrate    lead   visits  line\n +[\d.]+%  ", hinted)
    person.answer("A1", "Take it back? (yes or no) ")
    assert "yomi is thinking ...\n" in person.answer("n", "W> ")
    assert "Result: B+R, Black wins by resignation\n" in person.answer("resign", "quit> ")
    person.leave()


def test_shogi_at_a_terminal(at_terminal: Callable[..., Person]) -> None:
    person = at_terminal("shogi", "--playouts", "10", "--no-warn")
    board = person.read("Black 1> ")
    assert f"|{WOOD}{WHITE_INK}v香" in board
    frames = person.answer("7g7f", "Black 3> ").split(CLEAR)
    assert f"{LAST}{BLACK_INK} 歩" in frames[1]
    assert f"{LAST}{WHITE_INK}v" in frames[2]
    person.leave()


@pytest.mark.parametrize(("environment", "in_place"), [({"NO_COLOR": "1"}, True), ({"TERM": "dumb"}, False)])
def test_terminals_without_colors(
    environment: dict[str, str], in_place: bool, at_terminal: Callable[..., Person]
) -> None:
    person = at_terminal("go", "--size", "5", "--playouts", "10", "--no-warn", **environment)
    shown = person.read("B> ") + person.answer("C3", "B> ")
    assert ".(X)." in shown
    assert (CLEAR in shown) == in_place
    assert "\x1b" not in shown.replace(CLEAR, "")
    person.leave()


def test_warnings_through_pipes(tmp_path: Path) -> None:
    (tmp_path / "game.sgf").write_text(BLUNDER)
    words = ("go", "--resume", str(tmp_path / "game.sgf"), "--color", "white", "--no-save", "--visits", "20")
    done = yomi("play", *words, "--warn", typed="A1\nn\nquit\n")
    assert re.search(
        r"A1 may lose \d\d% of the winrate and [\d.]+ points\.\nTake it back\? \(yes or no\) ", done.stdout
    )
    assert "4 played" in done.stdout
    assert "\x1b" not in done.stdout
    assert "may lose" not in yomi("play", *words, typed="A1\nquit\n").stdout

"""The commands that people use most, as they use them, on every system: Linux, Windows, macOS.

A GUI sends a line, waits for the answer, and keeps its end of the pipe open. Scripts that end their input do not show
an engine that hangs while a pipe is read.
"""

from __future__ import annotations

import json
import queue
import subprocess
import sys
import threading
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from yomi.system import OWN_GROUP, Family

YOMI = [sys.executable, "-m", "yomi"]
PATIENCE = 600.0  # seconds; the first start compiles
END = "end of output"
KIF = """手合割：平手
先手：山田
後手：鈴木
手数----指手---------消費時間--
   1 ７六歩(77)
   2 ３四歩(33)
   3 ２六歩(27)
   4 ４四歩(43)
   5 投了
まで4手で後手の勝ち
"""


class Talk:
    """A process, and its lines on stdout."""

    def __init__(self, *words: str) -> None:
        self.process = subprocess.Popen(
            [*YOMI, *words], stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0, **OWN_GROUP
        )
        self._lines: queue.Queue[str] = queue.Queue()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self._lines.put(line.decode().rstrip())
        self._lines.put(END)

    def line(self, is_wanted: Callable[[str], bool]) -> str:
        """Return the next wanted line. Raises queue.Empty after PATIENCE seconds of silence."""
        while not is_wanted(line := self._lines.get(timeout=PATIENCE)):
            assert line != END, "the process has ended"
        return line

    def ask(self, line: str, *starts: str) -> str:
        """Send a line, and return the next line that starts with one of these words."""
        assert self.process.stdin is not None
        self.process.stdin.write(f"{line}\n".encode())
        return self.line(lambda answer: answer.startswith(starts))


@contextmanager
def talk(*words: str) -> Iterator[Talk]:
    running = Talk(*words)
    family = Family(running.process)
    try:
        yield running
    finally:
        family.kill()
        assert running.process.stdin is not None
        assert running.process.stdout is not None
        running.process.stdin.close()
        running._reader.join()
        running.process.stdout.close()


def test_gtp() -> None:
    with talk("gtp", "--visits", "8") as engine:
        assert engine.ask("name", "=", "?") == "= yomi"
        assert engine.ask("boardsize 9", "=", "?") == "="
        assert engine.ask("genmove b", "=", "?")[2:] in {
            f"{column}{row}" for column in "ABCDEFGHJ" for row in range(1, 10)
        }
        assert engine.ask("quit", "=", "?") == "="
        assert engine.process.wait(PATIENCE) == 0


def test_usi() -> None:
    with talk("usi", "--seconds", "0.5") as engine:
        engine.ask("usi", "usiok")
        engine.ask("isready", "readyok")
        assert engine.ask("position startpos\ngo", "bestmove").split()[1] != "resign"
        engine.ask("go infinite", "info")
        assert engine.ask("stop", "bestmove").split()[1] != "resign"


@pytest.mark.slow
def test_analysis() -> None:
    query = {"id": "a", "moves": [], "rules": "chinese", "komi": 7, "boardXSize": 9, "boardYSize": 9, "maxVisits": 8}
    with talk("analysis") as engine:
        assert json.loads(engine.ask(json.dumps(query), "{"))["rootInfo"]["visits"] >= 8


def run(*words: str, folder: Path) -> str:
    found = subprocess.run([*YOMI, *words], cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, check=False)
    assert found.returncode == 0, found.stderr.decode(errors="replace")
    return found.stdout.decode()


@pytest.mark.slow
def test_a_match(tmp_path: Path) -> None:
    engine = f'"{sys.executable}" -m yomi gtp --net fast --visits 4'  # on Windows with backslashes
    run("match", engine, "yomi:net=fast,visits=2", "--size", "7", "--games", "2", "--max-moves", "20", folder=tmp_path)
    assert len(list(tmp_path.glob("match/**/*.sgf"))) == 2


@pytest.mark.slow
def test_a_review_in_a_folder_with_foreign_letters(tmp_path: Path) -> None:
    folder = tmp_path / "dir ü" / "棋譜"
    folder.mkdir(parents=True)
    (folder / "対局.kif").write_bytes(KIF.encode("cp932"))
    told = run("review", str(folder / "対局.kif"), "--seconds", "0.1", "--html", folder=tmp_path)
    assert "山田" in told, "output into a pipe is UTF-8 on every system"
    assert {path.name for path in folder.iterdir()} >= {"対局.kif", "対局.yomi.html"}


def test_the_page() -> None:
    pytest.importorskip(
        "fastapi", exc_type=ImportError, reason="the extra web is not installed, or this system lacks its parts"
    )
    with talk("serve", "--port", "0") as server:
        address = server.line(lambda line: line.startswith("http"))
        with urllib.request.urlopen(address, timeout=PATIENCE) as page:
            assert b"yomi" in page.read()

"""Engines as processes: what the runner of matches waits for comes, or its time is up."""

import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.waiting import wait_until
from yomi.engine.clients import client as process_module
from yomi.engine.clients.client import EngineError, EngineProcess

pytestmark = pytest.mark.linux  # the engines are sh, cat and sleep


@pytest.fixture
def echo() -> Iterator[EngineProcess]:
    process = EngineProcess(["cat"])
    yield process
    process.close()


def is_there(pid: int) -> bool:
    """Whether a process runs; a zombie does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][0] not in "ZX"
    except OSError:
        return False


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="this system has no /proc")
@pytest.mark.parametrize("end", ["kill", "close", "farewell", "last words"])
@pytest.mark.parametrize("output", ["", ">/dev/null 2>&1 </dev/null"], ids=["holds pipes", "holds none"])
def test_grandchildren_end_although_the_leader_has_ended(
    end: str, output: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process_module, "PATIENCE_AT_END", 0.1)
    engine = EngineProcess(["sh", "-c", f"sleep 1000 {output} & echo $!"])
    pid = int(engine.line(time.monotonic() + 300.0)[1])
    wait_until(lambda: not engine.is_running)
    assert is_there(pid)
    if end == "kill":
        engine.kill()
    elif end == "last words":
        assert engine.last_words() == "exited with status 0"
    else:
        engine.close("quit" if end == "farewell" else "")
    wait_until(lambda: not is_there(pid))
    engine.close()
    assert engine.last_words() == "exited with status 0"


def test_an_engine_that_another_thread_has_closed_is_an_error(echo: EngineProcess) -> None:
    echo.close("quit")
    with pytest.raises(EngineError, match="exited with status 0"):
        echo.send("a line")


def test_how_an_engine_ended_is_known_after_its_children_were_killed() -> None:
    engine = EngineProcess(["sh", "-c", "echo gone >&2; kill -9 $$"])
    with pytest.raises(EngineError, match=r"^killed by signal 9 \(SIGKILL\); stderr: gone$"):
        engine.line(time.monotonic() + 300.0)
    engine.close("quit")


def test_lines_come_with_their_time(echo: EngineProcess) -> None:
    sent = echo.send("one", "two")
    first, second = echo.line(sent + 300.0), echo.line(sent + 300.0)
    assert (first[1], second[1]) == ("one", "two")
    assert sent <= first[0] <= second[0] <= time.monotonic()


def test_a_wait_ends_however_short_it_is(echo: EngineProcess) -> None:
    def wait() -> None:
        for count in range(2000):
            sent = echo.send("line")
            time.sleep(3e-4)  # the line is there before it is asked for
            echo.line(sent + 300.0)
            with pytest.raises(TimeoutError):
                echo.line(time.monotonic() + 1e-6 * (count % 10))
        ended.set()

    ended = threading.Event()
    threading.Thread(target=wait, daemon=True).start()
    assert ended.wait(300.0)

"""Engines as processes: what the runner of matches waits for comes, or its time is up."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator

import pytest

from engine.clients.process import EngineProcess


@pytest.fixture
def echo() -> Iterator[EngineProcess]:
    process = EngineProcess(["cat"])
    yield process
    process.close()


def test_lines_come_with_their_time(echo: EngineProcess) -> None:
    sent = echo.send("one", "two")
    first, second = echo.line(sent + 30.0), echo.line(sent + 30.0)
    assert (first[1], second[1]) == ("one", "two")
    assert sent <= first[0] <= second[0] <= time.monotonic()


def test_a_wait_ends_however_short_it_is(echo: EngineProcess) -> None:
    def wait() -> None:
        for count in range(2000):
            sent = echo.send("line")
            time.sleep(3e-4)  # the line is there before it is asked for
            echo.line(sent + 30.0)
            with pytest.raises(TimeoutError):
                echo.line(time.monotonic() + 1e-6 * (count % 10))
        ended.set()

    ended = threading.Event()
    threading.Thread(target=wait, daemon=True).start()
    assert ended.wait(60.0)

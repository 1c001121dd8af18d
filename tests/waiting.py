"""Waiting for what other threads do."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def wait_until(condition: Callable[[], object], seconds: float = 300.0) -> None:
    """Return as soon as a condition holds; a test in which it never does fails."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "timeout"
        time.sleep(0.005)


def in_background(function: Callable[..., T], *arguments: object) -> Callable[[], T]:
    """Call a function in a thread of its own; return what waits for its result."""
    results: list[T] = []
    thread = threading.Thread(target=lambda: results.append(function(*arguments)), daemon=True)
    thread.start()

    def wait() -> T:
        thread.join(300)
        assert results, "no result"
        return results[0]

    return wait

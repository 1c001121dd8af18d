"""The thread of a client's engine. The loop stays free for the socket."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Done:
    """Finished work of the engine."""

    tag: Any
    """The tag given to `submit`."""
    result: object = None
    error: Exception | None = None


class Worker:
    """Runs one call after the other in a thread of its own, and posts a `Done` for each."""

    def __init__(self, post: Callable[[object], None], name: str) -> None:
        self._post = post
        self._work: queue.SimpleQueue[tuple[object, Callable[[], object]] | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def submit(self, tag: object, call: Callable[[], object]) -> None:
        """Queue a call."""
        self._work.put((tag, call))

    def close(self, timeout: float) -> bool:
        """End the thread after the queued calls. Return False if this takes longer than `timeout` seconds."""
        self._work.put(None)
        self._thread.join(timeout)
        return not self._thread.is_alive()

    def _run(self) -> None:
        while (item := self._work.get()) is not None:
            tag, call = item
            try:
                done = Done(tag, call())
            except Exception as error:  # handed to the loop, which knows what it means
                done = Done(tag, error=error)
            self._post(done)

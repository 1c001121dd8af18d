"""The thread in which a client's engine works, so that the loop is never kept from its socket."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Done:
    """A piece of work that has ended."""

    tag: Any
    """What it was submitted under."""
    result: object = None
    error: Exception | None = None
    """What it raised."""


class Worker:
    """Does one thing after the other in a thread of its own and tells the loop of each."""

    def __init__(self, post: Callable[[object], None], name: str) -> None:
        """Start the thread; `post` takes a `Done` for each piece of work."""
        self._post = post
        self._work: queue.SimpleQueue[tuple[object, Callable[[], object]] | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def submit(self, tag: object, call: Callable[[], object]) -> None:
        """Have `call` called after all that was submitted before."""
        self._work.put((tag, call))

    def close(self, timeout: float) -> bool:
        """End the thread after the work in hand; False where it takes longer than `timeout` seconds."""
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

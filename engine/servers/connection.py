"""Parts of a client's loop: socket, lines, mailbox, the engine's thread, pauses between attempts, lag.

A client's loop alone reads and writes the socket. Other threads (the engine, Ctrl-C) post to a `Mailbox`.
"""

import contextlib
import queue
import random
import select
import socket
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from yomi.engine.protocols.streams import LineSplitter, decode, encode
from yomi.errors import reraised

CHUNK = 65536
CONNECT_TIMEOUT = 15.0
SEND_TIMEOUT = 10.0
# Seconds and counts after which the system considers a silent peer gone: 40 s in all.
KEEPALIVE = {"TCP_KEEPIDLE": 20, "TCP_KEEPINTVL": 5, "TCP_KEEPCNT": 4}
UNACKNOWLEDGED = 30_000  # milliseconds without acknowledgement of sent data after which the system closes a connection
MAX_LINE = 2**16  # Bytes. A game of 1,000 moves with clocks takes 20,000. A longer line is dropped as a whole.
FIRST_PAUSE, PAUSE_FACTOR, MAX_PAUSE = 0.5, 2.0, 30.0  # seconds, before the random factor
MAX_PAUSE_IN_GAME = 5.0  # maximum while the clock of a game may run
JITTER = 0.5  # a pause is multiplied by a factor from 1 - JITTER to 1 + JITTER
FORGET = 0.95  # factor by which the longest lag shrinks with every move, unless a longer one comes
SMOOTH = 0.125  # weight of the newest measurement in the mean (TCP's own constant)


class ConnectionLostError(Exception):
    """A connection cannot be made, or is lost. The message is one line."""


class OutOfStepError(ConnectionLostError):
    """A line from the server contradicts the game. The client ends the session and connects again."""

    def __init__(self, why: str) -> None:
        super().__init__(f"out of step with the server: {why}")


@dataclass(frozen=True, slots=True)
class Line:
    text: str
    at: float


class Connection:
    def __init__(self, link: socket.socket) -> None:
        self.dropped_lines = 0  # lines that were too long
        self._socket = link
        self._splitter = LineSplitter(MAX_LINE)
        link.settimeout(SEND_TIMEOUT)
        link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # a move must not wait for further data
        link.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        for name, value in KEEPALIVE.items():
            # Not every system has them, and Windows has some from later versions on.
            with contextlib.suppress(AttributeError, OSError):
                link.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
        if hasattr(socket, "TCP_USER_TIMEOUT"):
            link.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, UNACKNOWLEDGED)

    @classmethod
    def open(cls, host: str, port: int) -> "Connection":
        try:
            return cls(socket.create_connection((host, port), CONNECT_TIMEOUT))
        except OSError as error:
            raise ConnectionLostError(f"cannot connect to {host}:{port}: {error.strerror or error}") from None
        except UnicodeError:  # empty or overlong parts of the name
            raise ConnectionLostError(f"cannot connect to {host}:{port}: this is no name of a host") from None

    def fileno(self) -> int:
        # For `select`.
        return self._socket.fileno()

    def send(self, text: str) -> None:
        """Send one line at once. Raises ConnectionLostError."""
        with reraised(OSError, ConnectionLostError, "connection lost: "):
            self._socket.sendall(encode(text + "\n"))

    def read(self) -> list[Line]:
        """Return the lines that have arrived. Call this when the socket is readable."""
        with reraised(OSError, ConnectionLostError, "connection lost: "):
            data = self._socket.recv(CHUNK)
        if not data:
            raise ConnectionLostError("the server has closed the connection")
        now, found = time.monotonic(), self._splitter.feed(data)
        lines = [line for line in found if len(line) <= MAX_LINE]
        self.dropped_lines += len(found) - len(lines)
        return [Line(decode(line, "replace"), now) for line in lines]  # names in them go into logs and records

    def close(self) -> None:
        with contextlib.suppress(OSError):  # it may be gone already
            self._socket.close()


class Mailbox:
    def __init__(self) -> None:
        self._items: deque[object] = deque()
        self._inner, self._outer = socket.socketpair()
        self._inner.setblocking(False)
        self._outer.setblocking(False)

    def post(self, item: object) -> None:
        """Add an item and wake the loop. Thread-safe, also in signal handlers."""
        # A byte on a socket wakes `select`. Appending to a deque is safe in signal handlers, a lock would not be.
        self._items.append(item)
        with contextlib.suppress(BlockingIOError, OSError):  # full: it wakes up anyway; closed: nobody listens
            self._outer.send(b"!")

    def take(self) -> object | None:
        """Return and remove the oldest item; None if there is none."""
        return self._items.popleft() if self._items else None

    def wait(self, connection: Connection | None, timeout: float) -> bool:
        """Sleep until an item or a line comes, or `timeout` seconds have passed. Return whether a line has come."""
        sources: list[socket.socket | Connection] = [self._inner] if connection is None else [self._inner, connection]
        ready, _, _ = select.select(sources, [], [], 0.0 if self._items else max(timeout, 0.0))
        if self._inner in ready:
            with contextlib.suppress(BlockingIOError):
                self._inner.recv(4096)
        return connection is not None and connection in ready

    def close(self) -> None:
        self._inner.close()
        self._outer.close()


@dataclass(frozen=True, slots=True)
class Done:
    tag: Any  # the tag given to `submit`
    result: object = None
    error: Exception | None = None


class Worker:
    """Runs one call after the other in its own thread, and posts a `Done` for each."""

    def __init__(self, post: Callable[[object], None], name: str) -> None:
        self._post = post
        self._work: queue.SimpleQueue[tuple[object, Callable[[], object]] | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def submit(self, tag: object, call: Callable[[], object]) -> None:
        self._work.put((tag, call))

    def close(self, timeout: float) -> bool:
        """End the thread after the queued calls. Return False if it has not ended after `timeout` seconds."""
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


class Backoff:
    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        self.failures = 0

    def next(self, in_game: bool = False) -> float:
        pause = min(FIRST_PAUSE * PAUSE_FACTOR ** min(self.failures, 30), MAX_PAUSE_IN_GAME if in_game else MAX_PAUSE)
        self.failures += 1
        return pause * self._rng.uniform(1.0 - JITTER, 1.0 + JITTER)

    def reset(self) -> None:
        self.failures = 0


class Lag:
    """Measures the seconds that moves lose on the way to the server and back."""

    def __init__(self) -> None:
        self.mean = 0.0
        self.expected = 0.0  # to reserve for the next move
        self.count = 0

    def note(self, seconds: float) -> None:
        """Add a measured delay. Negative delays, from a server that gives time back, count as 0."""
        seconds = max(seconds, 0.0)
        self.mean = seconds if not self.count else self.mean + SMOOTH * (seconds - self.mean)
        self.count += 1
        # A clock is lost by the longest delay, not by the mean.
        self.expected = max(FORGET * self.expected, seconds)

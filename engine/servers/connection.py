"""The socket of a server connection, and the mailbox that wakes a client's loop.

A client's loop alone reads and writes the socket. Other threads (the engine, Ctrl-C) post to a `Mailbox`.
"""

from __future__ import annotations

import contextlib
import select
import socket
import time
from collections import deque
from dataclasses import dataclass

from yomi.engine.protocols.text import encode
from yomi.engine.servers.lines import LineReader

CHUNK = 65536
CONNECT_TIMEOUT = 15.0
SEND_TIMEOUT = 10.0
KEEPALIVE = {"TCP_KEEPIDLE": 20, "TCP_KEEPINTVL": 5, "TCP_KEEPCNT": 4}
"""Seconds and counts after which the system considers a silent peer gone: 40 s in all."""
UNACKNOWLEDGED = 30_000
"""Milliseconds without acknowledgement of sent data after which the system closes a connection."""


class ConnectionLostError(Exception):
    """The connection cannot be made or is gone. The message is one line."""


class OutOfStepError(ConnectionLostError):
    """A line from the server does not fit the game. The session ends, and the server is asked again later."""

    def __init__(self, why: str) -> None:
        super().__init__(f"out of step with the server: {why}")


@dataclass(frozen=True, slots=True)
class Line:
    text: str
    at: float
    """time.monotonic() of its arrival."""


class Connection:
    def __init__(self, link: socket.socket) -> None:
        self._socket = link
        self._reader = LineReader()
        link.settimeout(SEND_TIMEOUT)
        link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        link.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        for name, value in KEEPALIVE.items():
            if hasattr(socket, name):  # not every system has them
                link.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
        if hasattr(socket, "TCP_USER_TIMEOUT"):
            link.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, UNACKNOWLEDGED)

    @classmethod
    def open(cls, host: str, port: int) -> Connection:
        """Connect to a server. Raises ConnectionLostError."""
        try:
            return cls(socket.create_connection((host, port), CONNECT_TIMEOUT))
        except OSError as error:
            raise ConnectionLostError(f"cannot connect to {host}:{port}: {reason(error)}") from None
        except UnicodeError:  # empty or overlong parts of the name
            raise ConnectionLostError(f"cannot connect to {host}:{port}: this is no name of a host") from None

    def fileno(self) -> int:
        """Return the descriptor, for `select`."""
        return self._socket.fileno()

    @property
    def dropped_lines(self) -> int:
        """Number of lines that were too long."""
        return self._reader.dropped

    def send(self, text: str) -> None:
        """Send one line at once. Raises ConnectionLostError."""
        try:
            self._socket.sendall(encode(text + "\n"))
        except OSError as error:
            raise ConnectionLostError(f"connection lost: {reason(error)}") from None

    def read(self) -> list[Line]:
        """Return the lines that have arrived. Call it if there is something to read.

        Raises:
            ConnectionLostError: the server has closed the connection, or it is gone.
        """
        try:
            data = self._socket.recv(CHUNK)
        except OSError as error:
            raise ConnectionLostError(f"connection lost: {reason(error)}") from None
        if not data:
            raise ConnectionLostError("the server has closed the connection")
        now = time.monotonic()
        return [Line(text, now) for text in self._reader.feed(data)]

    def close(self) -> None:
        with contextlib.suppress(OSError):  # it may be gone already
            self._socket.close()


def reason(error: OSError) -> str:
    """Return the message of an error without its number."""
    return error.strerror or str(error) or type(error).__name__


class Mailbox:
    """Items that other threads send to a loop."""

    def __init__(self) -> None:
        self._items: deque[object] = deque()
        self._inner, self._outer = socket.socketpair()
        self._inner.setblocking(False)
        self._outer.setblocking(False)

    def post(self, item: object) -> None:
        """Add an item and wake the loop. Any thread and signal handlers may call it."""
        self._items.append(item)
        with contextlib.suppress(BlockingIOError, OSError):  # full: it wakes up anyway; closed: nobody listens
            self._outer.send(b"!")

    def take(self) -> object | None:
        """Return the oldest item, or None."""
        return self._items.popleft() if self._items else None

    def wait(self, connection: Connection | None, timeout: float) -> bool:
        """Sleep until an item is there, the connection has something to read, or `timeout` seconds have passed.

        Returns:
            Whether the connection has something to read.
        """
        sources: list[socket.socket | Connection] = [self._inner] if connection is None else [self._inner, connection]
        ready, _, _ = select.select(sources, [], [], 0.0 if self._items else max(timeout, 0.0))
        if self._inner in ready:
            with contextlib.suppress(BlockingIOError):
                self._inner.recv(4096)
        return connection is not None and connection in ready

    def close(self) -> None:
        self._inner.close()
        self._outer.close()

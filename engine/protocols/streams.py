"""Lines from the controller and the descriptor that answers go to."""

from __future__ import annotations

import errno
import io
import logging
import os
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Any

from yomi.engine.protocols.text import MAX_LINE, encode

CHUNK = 65536


GONE = (errno.EPIPE, errno.ECONNRESET, errno.EIO)
"""Errors of a write to a pipe, socket or terminal whose other end was closed."""


class OutputClosedError(Exception):
    """Nobody reads the answers any more, or they cannot be written."""


class CheckedStdout(io.FileIO):
    """Stdout of a command. Its errors are OutputClosedError: argparse and others swallow an OSError of a print."""

    def write(self, data: Any, /) -> int:
        """Write bytes.

        Raises:
            BrokenPipeError: the reader has gone.
            OutputClosedError: the bytes cannot be written; the message is one line.
        """
        try:
            return super().write(data)
        except BrokenPipeError:
            raise
        except OSError as error:
            raise OutputClosedError(cannot_write(error)) from error


def cannot_write(error: OSError) -> str:
    """Return the message for the user of a failed write to stdout."""
    return f"cannot write to stdout: {error.strerror or error}: expected a pipe, a terminal, or a file with space left"


class Inbox:
    """Lines that wait to be handled; one thread puts, another takes."""

    def __init__(self) -> None:
        """Make an empty one."""
        self._lines: deque[tuple[bytes, float]] = deque()
        self._changed = threading.Condition()
        self._closed = False

    def put(self, line: bytes) -> None:
        """Add a line."""
        with self._changed:
            self._lines.append((line, time.monotonic()))
            self._changed.notify_all()

    def close(self) -> None:
        """Say that no more lines will come."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until there is a line, or the end of input; False when `timeout` seconds passed before."""
        with self._changed:
            return self._changed.wait_for(lambda: bool(self._lines) or self._closed, timeout)

    def take(self) -> tuple[bytes, float] | None:
        """Return the next line and when it came (time.monotonic()), waiting for it; None at the end of input."""
        self.wait()
        with self._changed:
            return self._lines.popleft() if self._lines else None

    @property
    def is_closed(self) -> bool:
        """Whether the end of input has come; lines may still wait."""
        return self._closed

    def lines_waiting(self) -> list[bytes]:
        """Return the lines that wait, oldest first; they stay."""
        with self._changed:
            return [line for line, _ in self._lines]


def read_lines(descriptor: int, on_line: Callable[[bytes], None], on_end: Callable[[], None]) -> None:
    """Read a descriptor to its end and hand on each line, without its line feed. Blocks; runs in a thread of its own.

    A line longer than MAX_LINE bytes is handed on cut to one byte more than that.
    """
    rest = b""
    dropping = False
    while True:
        try:
            chunk = os.read(descriptor, CHUNK)
        except OSError:
            chunk = b""  # the terminal or the pipe is gone: the end of input
        if not chunk:
            break
        *lines, rest = (rest + chunk).split(b"\n")
        for line in lines:
            if not dropping:
                on_line(line[: MAX_LINE + 1])
            dropping = False
        if len(rest) > MAX_LINE:
            if not dropping:
                on_line(rest[: MAX_LINE + 1])
            dropping, rest = True, b""
    if rest and not dropping:
        on_line(rest)
    on_end()


def log_line(log: logging.Logger, line: bytes) -> None:
    """Log a line from the controller at level debug."""
    if log.isEnabledFor(logging.DEBUG):
        log.debug("< %s", line.decode("utf-8", "backslashreplace"))


class Output:
    """The private descriptor of the protocol."""

    def __init__(self, descriptor: int) -> None:
        """Write to `descriptor`, which nobody else uses."""
        self._descriptor = descriptor
        self.failure: str | None = None
        """Why answers cannot be written; None if they can, or if the controller has closed its end."""

    def write(self, text: str) -> None:
        """Write at once.

        Raises:
            OutputClosedError: The controller has closed its end, or `failure` says why this cannot be written.
        """
        data = memoryview(encode(text))
        try:
            while data:
                data = data[os.write(self._descriptor, data) :]
        except OSError as error:
            if error.errno not in GONE:
                self.failure = cannot_write(error)
            raise OutputClosedError(str(error)) from error


def logged(write: Callable[[str], None], log: logging.Logger) -> Callable[[str], None]:
    """Return what writes text and logs each of its lines at level debug."""

    def write_and_log(text: str) -> None:
        if log.isEnabledFor(logging.DEBUG):
            for line in filter(None, text.split("\n")):
                log.debug("> %s", line)
        write(text)

    return write_and_log


def claim_stdout() -> int:
    """Return a private copy of stdout's descriptor and point stdout at stderr.

    Libraries print to stdout (onnxruntime its banners, from C), which would break the protocol.
    """
    private = os.dup(1)
    os.dup2(2, 1)
    return private

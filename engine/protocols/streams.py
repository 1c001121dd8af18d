"""Lines of text protocols: their bytes, input from the controller, and the output stream for answers."""

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

MAX_LINE = 2**20

_REMOVED = bytes(c for c in range(32) if c not in (9, 10)) + b"\x7f"
CHUNK = 65536


GONE = (errno.EPIPE, errno.ECONNRESET, errno.EIO)
"""Errors of a write to a pipe, socket or terminal whose other end was closed."""


def decode(line: bytes, errors: str = "surrogateescape") -> str:
    """Return a line without control characters and with spaces for tabs.

    `errors` is that of `bytes.decode`. As surrogates, bytes that are not UTF-8 survive in file names and echoes.
    """
    line = line.translate(None, _REMOVED).replace(b"\t", b" ")
    return line.decode("utf-8", errors).strip(" \n")


def encode(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


class OutputClosedError(Exception):
    """The controller has closed its end, or answers cannot be written."""


class CheckedStdout(io.FileIO):
    """Stdout of a command. Failed writes raise OutputClosedError, because argparse and others ignore an OSError.

    A closed reader raises BrokenPipeError.
    """

    def write(self, data: Any, /) -> int:
        try:
            return super().write(data)
        except BrokenPipeError:
            raise
        except OSError as error:
            raise OutputClosedError(cannot_write(error)) from error


def cannot_write(error: OSError) -> str:
    return f"cannot write to stdout: {error.strerror or error}: expected a pipe, a terminal, or a file with space left"


class Inbox:
    """Queue of lines between the reader's thread and the session's thread."""

    def __init__(self) -> None:
        self._lines: deque[tuple[bytes, float]] = deque()
        self._changed = threading.Condition()
        self._closed = False

    def put(self, line: bytes) -> None:
        with self._changed:
            self._lines.append((line, time.monotonic()))
            self._changed.notify_all()

    def close(self) -> None:
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def wait(self, timeout: float | None = None) -> bool:
        """Wait for a line or the end of input. Return False after `timeout` seconds."""
        with self._changed:
            return self._changed.wait_for(lambda: bool(self._lines) or self._closed, timeout)

    def take(self) -> tuple[bytes, float] | None:
        """Wait for the next line, and return it with its time (time.monotonic()), or None at the end of input."""
        self.wait()
        with self._changed:
            return self._lines.popleft() if self._lines else None

    @property
    def is_closed(self) -> bool:
        """Whether the end of input has come. Lines may still wait."""
        return self._closed

    def lines_waiting(self) -> list[bytes]:
        """Return the waiting lines, oldest first, without removing them."""
        with self._changed:
            return [line for line, _ in self._lines]


def read_lines(descriptor: int, on_line: Callable[[bytes], None], on_end: Callable[[], None]) -> None:
    """Read a descriptor to its end and pass on each line, without its line feed. Blocks.

    A line longer than MAX_LINE bytes is cut to one byte more than that.
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
    if log.isEnabledFor(logging.DEBUG):
        log.debug("< %s", line.decode("utf-8", "backslashreplace"))


class Output:
    """The protocol's private output descriptor."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self.failure: str | None = None  # stays None if the controller has closed its end

    def write(self, text: str) -> None:
        """Write at once. Raises OutputClosedError; `failure` is set unless the controller has closed its end."""
        data = memoryview(encode(text))
        try:
            while data:
                data = data[os.write(self._descriptor, data) :]
        except OSError as error:
            if error.errno not in GONE:
                self.failure = cannot_write(error)
            raise OutputClosedError(str(error)) from error


def logged(write: Callable[[str], None], log: logging.Logger) -> Callable[[str], None]:
    def write_and_log(text: str) -> None:
        if log.isEnabledFor(logging.DEBUG):
            for line in filter(None, text.split("\n")):
                log.debug("> %s", line)
        write(text)

    return write_and_log


def claim_stdout() -> int:
    """Return a private copy of stdout's descriptor and point stdout at stderr."""
    # Libraries print to stdout (onnxruntime its banners, from C), which would break the protocol.
    private = os.dup(1)
    os.dup2(2, 1)
    return private

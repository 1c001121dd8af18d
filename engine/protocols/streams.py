"""Lines of text protocols: their bytes, the input from the controller, and the output stream for answers."""

import io
import os
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Any

from yomi.system import CLOSED_PIPE, GONE, IS_WINDOWS

MAX_LINE = 2**20  # bytes of a line of input

_REMOVED = bytes(c for c in range(32) if c not in (9, 10)) + b"\x7f"
CHUNK = 65536
WAIT_SLICE = 0.2 if IS_WINDOWS else None  # seconds; Ctrl-C does not interrupt a longer wait on Windows


def decode(line: bytes, errors: str = "surrogateescape") -> str:
    """Return a line as text without control characters; tabs become spaces. `errors` as for `bytes.decode`."""
    line = line.translate(None, _REMOVED).replace(b"\t", b" ")
    return line.decode("utf-8", errors).strip(" \n")


def encode(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


class OutputClosedError(Exception):
    """The controller has closed its end of the output, or answers cannot be written."""


class CheckedStdout(io.FileIO):
    """The stdout of a command. A failed write raises OutputClosedError, or BrokenPipeError if the reader is gone."""

    def write(self, data: Any, /) -> int:
        try:
            return super().write(data)
        except OSError as error:
            if error.errno in CLOSED_PIPE:
                raise BrokenPipeError(error.errno, error.strerror) from error
            raise OutputClosedError(cannot_write(error)) from error


def cannot_write(error: OSError) -> str:
    return f"cannot write to stdout: {error.strerror or error}: expected a pipe, a terminal, or a file with space left"


class Inbox:
    """The queue of lines between the reader's thread and the session's thread."""

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
        while not self.wait(WAIT_SLICE):
            pass
        with self._changed:
            return self._lines.popleft() if self._lines else None

    @property
    def is_closed(self) -> bool:
        return self._closed

    def lines_waiting(self) -> list[bytes]:
        """Return the waiting lines, oldest first, without removing them."""
        with self._changed:
            return [line for line, _ in self._lines]


class LineSplitter:
    """Splits bytes into lines. Of an overlong line only the first `limit` + 1 bytes are kept."""

    def __init__(self, limit: int) -> None:
        self.rest = b""  # the beginning of the next line
        self._limit = limit
        self._is_cut = False  # the next line has been returned already, cut

    def feed(self, data: bytes) -> list[bytes]:
        """Return the lines, without line feeds, that end in `data` or have become too long."""
        # A sender that never ends its line must not fill the memory, so `rest` is dropped once the line is too long.
        *lines, self.rest = (self.rest + data).split(b"\n")
        found = [line[: self._limit + 1] for line in lines[self._is_cut :]]
        self._is_cut = self._is_cut and not lines
        if len(self.rest) > self._limit and not self._is_cut:
            found.append(self.rest[: self._limit + 1])
            self._is_cut = True
        if self._is_cut:
            self.rest = b""
        return found


def read_lines(descriptor: int, on_line: Callable[[bytes], None], on_end: Callable[[], None]) -> None:
    """Read a descriptor to its end. Pass on each line, cut to MAX_LINE + 1 bytes. Blocks."""
    splitter = LineSplitter(MAX_LINE)
    while True:
        try:
            chunk = os.read(descriptor, CHUNK)
        except OSError:
            chunk = b""  # the terminal or the pipe is gone: the end of input
        for line in splitter.feed(chunk):
            on_line(line)
        if not chunk:
            break
    if splitter.rest:
        on_line(splitter.rest)
    on_end()


class Output:
    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self.failure: str | None = None  # stays None if the controller has closed its end

    def write(self, text: str) -> None:
        """Write the text at once, without a buffer.

        Raises:
            OutputClosedError: nothing can be written. `failure` contains the reason, unless the controller has closed
                its end.
        """
        data = memoryview(encode(text))
        # Without a buffer, because the controller waits for the answer.
        try:
            while data:
                data = data[os.write(self._descriptor, data) :]
        except OSError as error:
            if error.errno not in GONE:
                self.failure = cannot_write(error)
            raise OutputClosedError(str(error)) from error


def claim_stdout() -> int:
    # Libraries print to stdout (onnxruntime its banners, from C), which would break the protocol.
    private = os.dup(1)
    os.dup2(2, 1)
    return private

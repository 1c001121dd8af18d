"""Commands in processes of their own, driven through pipes; engines of GTP and USI among them."""

from __future__ import annotations

import contextlib
import os
import queue
import subprocess
import sys
import threading
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.process.prepared import ROOT, fresh, prepared

PATIENCE = 300.0
"""Seconds after which a process that says nothing counts as hanging; it may have to compile kernels first."""


class PipedProcess:
    """One engine process; leaves nothing behind at the end of a `with` block."""

    def __init__(self, *arguments: str, folder: Path = ROOT) -> None:
        """Start `python -m ARGUMENTS` in a folder."""
        start = prepared if folder == ROOT else fresh  # another folder is there to be imported from, or not to be
        self.process = subprocess.Popen(
            start(*arguments),
            cwd=folder,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
            env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))},
        )
        self._lines: queue.Queue[bytes | None] = queue.Queue()
        self.errors: list[bytes] = []
        self._readers = [
            threading.Thread(target=target, daemon=True) for target in (self._read_output, self._read_errors)
        ]
        for reader in self._readers:
            reader.start()

    def _read_output(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self._lines.put(line)
        self._lines.put(None)

    def _read_errors(self) -> None:
        assert self.process.stderr is not None
        self.errors += list(self.process.stderr)

    def write(self, text: str | bytes) -> None:
        """Send bytes as they are."""
        assert self.process.stdin is not None
        self.process.stdin.write(text if isinstance(text, bytes) else text.encode())

    def line(self, timeout: float = PATIENCE) -> str:
        """Return the next line of output without its line feed."""
        line = self._lines.get(timeout=timeout)
        assert line is not None, f"unexpected end of output; stderr: {b''.join(self.errors).decode()}"
        return line.decode(errors="replace").removesuffix("\n")

    def close_input(self) -> None:
        """Send the end of input."""
        assert self.process.stdin is not None
        self.process.stdin.close()

    def rest(self) -> str:
        """Return all output up to its end."""
        lines: list[bytes] = []
        while (line := self._lines.get(timeout=PATIENCE)) is not None:
            lines.append(line)
        return b"".join(lines).decode(errors="replace")

    def end(self, timeout: float) -> int:
        """Return the exit status, which must come in time; `errors` is complete then."""
        status = self.process.wait(timeout)
        self._readers[1].join()
        return status

    def __enter__(self) -> Self:
        """Return the process."""
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """End the process."""
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        for reader in self._readers:
            reader.join()
        for stream in (self.process.stdin, self.process.stdout, self.process.stderr):
            if stream is not None and not stream.closed:
                with contextlib.suppress(BrokenPipeError):  # unsent input of a test that closed the other end
                    stream.close()


class GtpProcess(PipedProcess):
    """One engine process; leaves nothing behind at the end of a `with` block."""

    def answer(self, timeout: float = PATIENCE) -> str:
        """Return the next answer up to the empty line that ends it."""
        lines: list[str] = []
        while True:
            line = self.line(timeout)
            if not line:
                return "\n".join(lines)
            lines.append(line)

    def ask(self, command: str) -> str:
        """Send a command and return its answer."""
        self.write(command + "\n")
        return self.answer()


class UsiProcess(PipedProcess):
    """One engine process; leaves nothing behind at the end of a `with` block."""

    def until(self, start: str, timeout: float = PATIENCE) -> list[str]:
        """Return the lines up to the first that begins with `start`, that one included."""
        lines = [self.line(timeout)]
        while not lines[-1].startswith(start):
            lines.append(self.line(timeout))
        return lines

    def send(self, *lines: str) -> None:
        """Send lines."""
        self.write("".join(line + "\n" for line in lines))

    def bestmove(self, *lines: str) -> str:
        """Send lines and return the next answer to a `go`."""
        self.send(*lines)
        return self.until("bestmove")[-1]

    def ready(self) -> None:
        """Wait until the engine has loaded."""
        self.send("isready")
        self.until("readyok")


def check_end_without_reader(module: str, *words: str, hello: bytes, answer: bytes, last: bytes) -> None:
    """Close the output of `python -m MODULE WORDS` after the answer to `hello`: it must end without a word."""
    with subprocess.Popen(
        [sys.executable, "-m", module, *words],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        bufsize=0,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdin.write(hello)
        while process.stdout.readline() != answer:
            pass
        process.stdout.close()
        process.stdin.write(last)
        assert process.wait(PATIENCE) == 0
        assert process.stderr.read() == b""

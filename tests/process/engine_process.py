"""The real command in a process of its own, driven through pipes."""

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

ROOT = Path(__file__).parents[2]
PATIENCE = 300.0
"""Seconds after which a process that says nothing counts as hanging; it may have to compile kernels first."""


class PipedProcess:
    """One engine process; leaves nothing behind at the end of a `with` block."""

    def __init__(self, *arguments: str, folder: Path = ROOT) -> None:
        """Start `python -m ARGUMENTS` in a folder."""
        self.process = subprocess.Popen(
            [sys.executable, "-m", *arguments],
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

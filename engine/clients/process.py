"""An engine as a process: sends lines, reads lines up to a deadline, keeps its last words, ends it for certain.

Two threads read the engine's stdout and stderr all the time, so that no engine ever blocks on a full pipe. Of stderr
only the end is kept, which tells why it died.
"""

from __future__ import annotations

import contextlib
import os
import queue
import signal
import subprocess
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import IO

from yomi.errors import Error

CHUNK = 1 << 16
MAX_LINE = 1 << 22
"""Bytes; an engine that writes a longer line is broken."""
MAX_PENDING = 100_000
"""Lines that wait to be read; an engine that writes more is broken."""
TAIL = 4000
"""Bytes of stderr that are kept."""
TIMEOUT = 60.0
"""Seconds that an engine may take to start or to answer, beyond its time for a move."""
PATIENCE_AT_END = 3.0
"""Seconds that an engine has to end after it was told to."""


class EngineError(Error):
    """An engine failed: it died, fell silent, or gave an answer that makes no sense. The message is one line."""


class RefusedError(EngineError):
    """An engine has no command or option for what it was asked, or answered with an error."""


class EngineProcess:
    """One engine that runs. One thread reads its lines and closes it; any thread may `send` and `kill`."""

    def __init__(
        self,
        command: Sequence[str],
        *,
        folder: str | None = None,
        environment: Mapping[str, str] | None = None,
        cpus: frozenset[int] = frozenset(),
    ) -> None:
        """Start an engine.

        Args:
            command: program and arguments.
            folder: it runs in; None for the present one.
            environment: variables in addition to those of this process.
            cpus: processors that it may use (Linux only); empty for all.

        Raises:
            EngineError: the program cannot be started.
        """
        self.errors = bytearray()
        # Not a SimpleQueue: before Python 3.13 its `get` waits for ever if time is up between two of its steps.
        self._lines: queue.Queue[tuple[float, str] | None] = queue.Queue()
        self._fault = ""
        self._killing = threading.Lock()
        self._is_killed = False
        try:
            with _pinned(cpus):
                self._process = subprocess.Popen(
                    list(command),
                    cwd=folder,
                    env=None if environment is None else os.environ | dict(environment),
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE,
                    bufsize=0,
                    start_new_session=True,  # its children end with it, and Ctrl-C at the terminal is ours alone
                )
        except (OSError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) else str(error)
            raise EngineError(f"cannot be started: {command[0]}: {reason}") from None
        stdout, stderr = self._process.stdout, self._process.stderr
        assert stdout is not None
        assert stderr is not None
        self._readers = [
            threading.Thread(target=self._read_lines, args=(stdout,), daemon=True),
            threading.Thread(target=self._read_errors, args=(stderr,), daemon=True),
        ]
        for reader in self._readers:
            reader.start()

    # -- talking -----------------------------------------------------------------------------------------------------

    def send(self, *lines: str) -> float:
        """Send lines and return when that began (`time.monotonic`): no answer comes before it.

        Raises:
            EngineError: the engine has gone.
        """
        data = "".join(f"{line}\n" for line in lines).encode("utf-8", "backslashreplace")
        assert self._process.stdin is not None
        begin = time.monotonic()
        try:
            self._process.stdin.write(data)
        except OSError:
            raise EngineError(self.last_words()) from None
        return begin

    def line(self, deadline: float) -> tuple[float, str]:
        """Return when the next line came (`time.monotonic`), and the line without its end.

        Raises:
            EngineError: the engine has gone, or has written what no engine writes.
            TimeoutError: there is none at the deadline.
        """
        try:
            found = self._lines.get(timeout=min(max(deadline - time.monotonic(), 0.0), threading.TIMEOUT_MAX))
        except queue.Empty:
            raise TimeoutError from None
        if found is None:
            self._lines.put(None)  # for the next call
            raise EngineError(self._fault or self.last_words())
        return found

    def last_words(self) -> str:
        """Say in one line how the process ended, and what it wrote to stderr last; its children end now, if it has."""
        has_ended = self._wait(time.monotonic() + 1.0)
        self._readers[1].join(1.0)
        if has_ended:
            self.kill()
        status = self._process.returncode
        if status is None:
            text = "closed its output"
        elif status < 0:
            text = f"killed by signal {-status} ({signal.Signals(-status).name})"
        else:
            text = f"exited with status {status}"
        words = " | ".join(line.strip() for line in self.error_tail().splitlines()[-3:] if line.strip())
        return f"{text}; stderr: {words[-400:]}" if words else text

    def error_tail(self) -> str:
        """Return the end of what the engine wrote to stderr."""
        return bytes(self.errors).decode("utf-8", "replace")

    @property
    def is_running(self) -> bool:
        """Whether the process is there; its children may live on without it, until `kill` or `close`.

        A process that has ended is left to `kill`, if the system can tell without collecting it: as long as it is
        there no other process and no other group gets its number.
        """
        if self._process.returncode is not None:
            return False
        if not hasattr(os, "waitid"):
            return self._process.poll() is None
        try:
            return os.waitid(os.P_PID, self._process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None
        except ChildProcessError:  # `kill` has collected it meanwhile
            return False

    # -- ending ------------------------------------------------------------------------------------------------------

    def close(self, farewell: str = "") -> None:
        """End the process: by a last line and the end of its input, and what is left of it by force.

        With a last line it has PATIENCE_AT_END seconds, and so have children that hold its output open.
        """
        deadline = time.monotonic() + (PATIENCE_AT_END if farewell else 0.0)
        if farewell and self.is_running:
            with contextlib.suppress(EngineError):
                self.send(farewell)
        stdin = self._process.stdin
        if stdin is not None:
            with contextlib.suppress(OSError):
                stdin.close()
        self._wait(deadline)
        for reader in self._readers:
            reader.join(max(deadline - time.monotonic(), 0.0))
        self.kill()
        for reader in self._readers:
            reader.join(1.0)  # a child in a session of its own may hold a pipe open: it is left to the daemon thread

    def kill(self) -> None:
        """End the process and its children at once, if it has ended already its children; callable from any thread."""
        with self._killing:
            if self._is_killed:
                return
            self._is_killed = True
            with contextlib.suppress(ProcessLookupError, PermissionError):
                if hasattr(os, "killpg"):
                    os.killpg(self._process.pid, signal.SIGKILL)
                else:
                    self._process.kill()
            self._process.wait()

    def _wait(self, deadline: float) -> bool:
        """Wait until the process has ended; False if it still runs at the deadline."""
        pause = 0.0005
        while self.is_running:
            left = deadline - time.monotonic()
            if left <= 0.0:
                return False
            pause = min(2.0 * pause, 0.05)
            time.sleep(min(pause, left))
        return True

    # -- the readers' threads ----------------------------------------------------------------------------------------

    def _read_lines(self, stream: IO[bytes]) -> None:
        """Put every line into the queue with the time it came at, and None at the end."""
        rest = b""
        with stream:
            while chunk := _read(stream):
                now = time.monotonic()
                *lines, rest = (rest + chunk).split(b"\n")
                for line in lines:
                    self._lines.put((now, line.decode("utf-8", "backslashreplace").rstrip("\r")))
                if len(rest) > MAX_LINE or self._lines.qsize() > MAX_PENDING:
                    self._fault = "floods stdout: a line too long" if len(rest) > MAX_LINE else "floods stdout"
                    break
        self._lines.put(None)

    def _read_errors(self, stream: IO[bytes]) -> None:
        """Keep the end of stderr."""
        with stream:
            while chunk := _read(stream):
                self.errors += chunk
                del self.errors[:-TAIL]


def _read(stream: IO[bytes]) -> bytes:
    try:
        return os.read(stream.fileno(), CHUNK)
    except (OSError, ValueError):
        return b""


@contextlib.contextmanager
def _pinned(cpus: frozenset[int]) -> Iterator[None]:
    """Tie this thread to `cpus` within the block; a process that it starts there stays tied, with all its threads."""
    if not cpus or not hasattr(os, "sched_setaffinity"):
        yield
        return
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, cpus)
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)

"""An engine as a process that exchanges lines, and the base of its clients for GTP and USI: start, moves, evaluations,
end.

Two threads read the engine's stdout and stderr all the time, so that the engine never blocks on a full pipe.
"""

import abc
import contextlib
import os
import queue
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import IO, TypeAlias

from yomi import children
from yomi.engine.clients.spec import OWN, EngineSpec, SpecError
from yomi.engine.clock import Clock, Clocks
from yomi.errors import Error, reraised
from yomi.system import OWN_GROUP, Family

CHUNK = 1 << 16
MAX_LINE = 1 << 22  # Bytes. An engine that writes a longer line is broken.
MAX_PENDING = 100_000  # Unread lines. An engine that writes more is broken.
TAIL = 4000  # bytes of stderr that are kept for error messages
TIMEOUT = 60.0  # seconds that an engine may take to start or to answer, beyond its time for a move
PATIENCE_AT_END = 3.0  # seconds that an engine has to end after `quit`
STOP_TIMEOUT = 10.0  # seconds that an engine may take to end a search or an analysis
DETECTION_LINES = 200  # lines that an engine may write before its protocol is known
RESIGN, WIN = "resign", "win"


class EngineError(Error):
    """An engine has died, does not answer, or gave a meaningless answer. The message is one line."""


class RefusedError(EngineError):
    """An engine lacks a command or option, or has answered with an error."""


class EngineProcess:
    """A running engine. One thread reads its lines and closes it. `send` and `kill` are thread-safe."""

    def __init__(
        self,
        command: Sequence[str],
        *,
        folder: str | None = None,
        environment: Mapping[str, str] | None = None,
        cpus: frozenset[int] = frozenset(),
    ) -> None:
        self.errors = bytearray()
        # Not a SimpleQueue: before Python 3.13 its `get` waits for ever if time is up between two of its steps.
        self._lines: queue.Queue[tuple[float, str] | None] = queue.Queue()
        self._fault = ""
        self._killing = threading.Lock()
        self._is_killed = False
        is_own = tuple(command[: len(OWN)]) == OWN
        inherited = children.environment() if is_own else children.foreign_environment()
        with reraised((OSError, ValueError), EngineError, f"cannot be started: {command[0]}: "), _pinned(cpus):
            self._process = subprocess.Popen(
                list(command),
                cwd=folder,
                env=inherited | dict(environment or {}),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                bufsize=0,
                **OWN_GROUP,
            )
        self._family = Family(self._process)
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
        """Send lines. Return the time (`time.monotonic()`) just before, which is earlier than any answer."""
        data = "".join(f"{line}\n" for line in lines).encode("utf-8", "backslashreplace")
        assert self._process.stdin is not None
        begin = time.monotonic()
        try:
            self._process.stdin.write(data)
        except (OSError, ValueError):  # ValueError: another thread has closed the engine
            raise EngineError(self.last_words()) from None
        return begin

    def line(self, deadline: float) -> tuple[float, str]:
        """Return the next line, and the time (`time.monotonic()`) when it came.

        Raises EngineError if the engine has ended or floods its output, TimeoutError at the deadline.
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
        """Return a line on how the engine ended, and its last stderr. If it has ended, kill its children."""
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
        return bytes(self.errors).decode("utf-8", "replace")

    @property
    def is_running(self) -> bool:
        """Whether the process runs. After its end its children may run until `kill` or `close`."""
        if self._process.returncode is not None:
            return False
        if not hasattr(os, "waitid"):
            return self._process.poll() is None
        try:
            # WNOWAIT leaves the process uncollected: until then no other process or group gets its number, so that
            # `kill` cannot hit a stranger.
            return os.waitid(os.P_PID, self._process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None
        except ChildProcessError:  # `kill` has collected it in the meantime
            return False

    # -- ending ------------------------------------------------------------------------------------------------------

    def close(self, farewell: str = "") -> None:
        """End the process: send `farewell` as a last line, close its input, and kill the rest.

        After a last line, the process and children that hold its output open get PATIENCE_AT_END seconds.
        """
        # Wrapper scripts may end before their engine, so the readers are awaited as well as the process.
        deadline = time.monotonic() + (PATIENCE_AT_END if farewell else 0.0)
        if farewell and self.is_running:
            with contextlib.suppress(EngineError):
                self.send(farewell)
        self.close_input()
        self._wait(deadline)
        for reader in self._readers:
            reader.join(max(deadline - time.monotonic(), 0.0))
        self.kill()
        for reader in self._readers:
            reader.join(1.0)  # a child in a separate session may hold a pipe open: it is left to the daemon thread

    def close_input(self) -> None:
        if self._process.stdin is not None:
            with contextlib.suppress(OSError):
                self._process.stdin.close()

    def kill(self) -> None:
        """Kill the process and its children. Thread-safe."""
        with self._killing:
            if self._is_killed:
                return
            self._is_killed = True
            self._family.kill()

    def _wait(self, deadline: float) -> bool:
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
    # A process that is started in the block stays pinned, with all its threads.
    if not cpus or not hasattr(os, "sched_setaffinity"):
        yield
        return
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, cpus)
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


# Called with the process of an engine before the first command, so that another thread can kill it.
OnStart: TypeAlias = Callable[[EngineProcess], None]


@dataclass(frozen=True, slots=True)
class Evaluation:
    """An engine's evaluation of the position in which it chose its move, for the side to move."""

    winrate: float | None = None
    score: float | None = None  # Go: points of lead; shogi: centipawns
    visits: int | None = None  # visits or nodes, as the engine counts them
    pv: tuple[str, ...] = ()
    # Shogi: plies to the mate, negative if the side to move is mated, None if the engine reports none.
    mate: int | None = None
    # GTP: the move's prior, its rank in an analysis, and the move that was searched instead.
    prior: float = 0.0
    rank: int = 1
    symmetry_of: str = ""

    def __str__(self) -> str:
        """Return the text for a record of Go."""
        parts = []
        if self.winrate is not None:
            parts.append(f"{100 * self.winrate:.1f}%")
        if self.score is not None:
            parts.append(f"{self.score:+.1f}")
        if self.visits is not None:
            parts.append(f"{self.visits} visits")
        return " ".join(parts)


@dataclass(frozen=True, slots=True)
class EngineMove:
    move: str  # in the protocol's notation; also RESIGN and WIN
    seconds: float  # from the command to the answer
    evaluation: Evaluation | None = None
    reply: str = ""  # USI: the opponent's move that the engine expects, or empty
    report: str = ""  # GTP: the last line before the move, as the engine wrote it, or empty


class EngineClient(abc.ABC):
    """A running engine, used by one thread. All methods raise EngineError if the engine fails."""

    increment_first = False  # whether increments are added before each move, including the first, instead of after it
    decimals = 2  # decimals of a second that the protocol can express

    def __init__(
        self,
        spec: EngineSpec,
        *,
        timeout: float = TIMEOUT,
        cpus: frozenset[int] = frozenset(),
        on_start: OnStart | None = None,
    ) -> None:
        """Start the engine, ask for its name and options, and send the options and limits of `spec`.

        The engine may take `timeout` seconds beyond its time. Raises RefusedError if it lacks an option or a limit.
        """
        self.spec, self.timeout = spec, timeout
        self.title = spec.name  # until the engine reports its own
        self.process = EngineProcess(spec.command, folder=spec.folder, environment=spec.environment, cpus=cpus)
        if on_start is not None:
            on_start(self.process)
        try:
            self._greet()
        except EngineError:
            self.process.close()
            raise

    @abc.abstractmethod
    def _greet(self) -> None: ...

    @abc.abstractmethod
    def choose(self, start: str, moves: Sequence[str], color: int, clocks: Clocks) -> EngineMove:
        """Make the engine choose a move for `color`, the side to move.

        `moves` were played since the initial position `start` (USI only), by both sides in turn. The client sends the
        moves that the engine does not know yet.
        """

    def search(self, start: str, moves: Sequence[str], color: int, clocks: Clocks) -> None:
        """Make the engine search as `choose` does, without playing. It may use what it found in later positions."""
        self.choose(start, moves, color, clocks)

    @abc.abstractmethod
    def game_over(self, result: str) -> None:
        """Send the result (win, lose or draw) if the protocol has a command for that."""

    def clock(self) -> Clock:
        """Return the engine's clock at the start of a game."""
        return Clock.full(self.spec.limits.clock(increment_first=self.increment_first))

    def close(self) -> None:
        self.process.close("quit")

    def _line(self, command: str, begin: float, timeout: float) -> tuple[float, str]:
        """Return the next line of an answer to a command sent at `begin`, and the time when it came."""
        try:
            return self.process.line(begin + timeout)
        except TimeoutError:
            raise EngineError(no_answer(command, timeout)) from None

    def _allowed(self, clock: Clock) -> float:
        """Return the seconds that the engine may take for its next move; 0 without clock and limits."""
        return clock.allowed if clock.settings.is_limited else self.spec.limits.seconds or 0.0


def no_answer(command: str, seconds: float) -> str:
    return f"no answer to '{command}' within {seconds:.0f} s"


def detect_protocol(spec: EngineSpec) -> str:
    """Start an engine to find its protocol, gtp or usi. Raises SpecError if it speaks neither."""
    process: EngineProcess | None = None
    try:
        process = EngineProcess(spec.command, folder=spec.folder, environment=spec.environment)
        # An engine of GTP answers `? unknown command`.
        deadline = process.send("usi") + TIMEOUT
        for _ in range(DETECTION_LINES):
            _, line = process.line(deadline)
            if line.startswith(("?", "=")):
                return "gtp"
            if line.startswith(("id ", "option ", "usiok")):
                return "usi"
        fault = "what it writes is neither"
    except TimeoutError:
        fault = f"no answer within {TIMEOUT:.0f} s"
    except EngineError as error:
        fault = str(error)
    finally:
        if process is not None:
            process.close("quit")
    raise SpecError(f"player {spec.name}: {fault}; expected an engine that speaks GTP or USI")

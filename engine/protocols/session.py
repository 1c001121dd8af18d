"""Parts that all protocols share: the table of commands, the session that answers lines, and its process."""

import abc
import importlib
import logging
import os
import stat
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from yomi.engine.protocols.streams import Inbox, Output, OutputClosedError, claim_stdout, read_lines
from yomi.errors import Error
from yomi.system import IS_WINDOWS

FAILED = 2  # exit status

# Effect of a command on the search in the background: pondering, an analysis, or `go` of USI.
KEEPS = "keeps"  # the search continues: the command needs neither the player nor another position
PAUSES = "pauses"  # the search ends; pondering resumes after the answer, because the side to move is the same
ENDS = "ends"

H = TypeVar("H", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class CommandRow(Generic[H]):
    handler: H
    background: str  # KEEPS, PAUSES or ENDS
    usage: str | None  # the arguments; None if the handler checks them


class CommandTable(Generic[H]):
    """The commands of a protocol. A command is one function with the decorator `command`."""

    def __init__(self, *modules: str) -> None:
        """Create a table. `modules` register further commands. They are imported when one of these is needed."""
        self._modules = modules
        self._rows: dict[str, CommandRow[H]] = {}
        self._importing = threading.Lock()

    def command(self, *names: str, background: str = ENDS, usage: str | None = None) -> Callable[[H], H]:
        """Register the decorated function as the handler of `names`."""

        def register(handler: H) -> H:
            for name in names:
                if name in self._rows:
                    raise ValueError(f"{name} has a handler")
                self._rows[name] = CommandRow(handler, background, usage)
            return handler

        return register

    def load(self) -> None:
        with self._importing:  # an import that fails in two threads at once gives the wrong error
            for module in self._modules:
                importlib.import_module(module)

    def find(self, name: str) -> CommandRow[H] | None:
        """Return the row of a command, or None if it is unknown. This may import modules."""
        # The commands that clients send first are registered by light modules: only others wait for imports.
        if name not in self._rows:
            self.load()
        return self._rows.get(name)

    def names(self) -> tuple[str, ...]:
        """Import all modules, and return the names of all commands in the order of their registration."""
        self.load()
        return tuple(self._rows)


class LoadError(Exception):
    """The player cannot be loaded. The message is one line."""


def internal_error(log: logging.Logger, where: str, error: BaseException) -> str:
    """Log an error with its traceback. Return a message for the controller. `where`: such as `while loading`."""
    log.error("internal error %s", where, exc_info=error)
    return f"internal error: {type(error).__name__}: {error}"


class BaseSession(abc.ABC):
    """Answers the lines of a controller: the reader's thread queues lines, `run` answers them in the main thread."""

    def __init__(self, write: Callable[[str], None], log: logging.Logger) -> None:
        """Store the arguments. `write` writes text to the controller at once, and raises OutputClosedError."""
        self._log = log
        self.inbox = Inbox()
        self.arrival = time.monotonic()  # when the current line arrived
        self.write = self._logged(write)
        self.failure: Exception | None = None  # why loading failed, or what else ended the session
        self.loaded = threading.Event()  # loading has ended, perhaps with a failure
        self._quitting = False

    def _logged(self, write: Callable[[str], None]) -> Callable[[str], None]:
        def write_and_log(text: str) -> None:
            if self._log.isEnabledFor(logging.DEBUG):
                for line in filter(None, text.split("\n")):
                    self._log.debug("> %s", line)
            write(text)

        return write_and_log

    def start(self) -> None:
        """Prepare for the first line, and return at once."""
        self.start_loading()

    def start_loading(self) -> threading.Thread:
        """Load in the background. At the end `loaded` is set, and after an error `failure`."""
        self.loaded.clear()
        thread = threading.Thread(target=self._load, name="load", daemon=True)
        thread.start()
        return thread

    def _load(self) -> None:
        from yomi.native.cache_folder import check_cache

        try:
            check_cache()  # here, before several threads import kernels
            self.load()
        except (LoadError, OutputClosedError) as error:
            self.fail(error)
        except BaseException as error:  # handed to the thread that needs the player
            self.fail(self.load_error(error))
        self.loaded.set()

    @abc.abstractmethod
    def load(self) -> None:
        """Make the player. The loading thread calls this."""

    def load_error(self, error: BaseException) -> LoadError:
        """Convert an error while loading to a LoadError. Internal errors are logged with their traceback."""
        from yomi.engine.machine import memory_fault

        if why := memory_fault(error):
            return LoadError(why)
        if isinstance(error, Error):
            return LoadError(str(error))
        return LoadError(internal_error(self._log, "while loading", error))

    def fail(self, error: Exception) -> None:
        """End the session with an error. Thread-safe."""
        self.failure = self.failure or error
        self.inbox.close()

    def receive(self, line: bytes) -> None:
        """Queue a line. The reader's thread calls this."""
        self.inbox.put(line)

    def receive_end(self, is_script: bool) -> None:
        """Close the queue of lines. The reader's thread calls this. `is_script`: the input was a file."""
        self.inbox.close()

    def quit(self) -> None:
        self._quitting = True

    def handle(self, line: bytes) -> bool:
        """Answer one line. Return False if the session is over. Raises OutputClosedError or LoadError."""
        if self._log.isEnabledFor(logging.DEBUG):
            self._log.debug("< %s", line.decode("utf-8", "backslashreplace"))
        self.answer(line)
        return not self._quitting

    @abc.abstractmethod
    def answer(self, line: bytes) -> None: ...

    def run(self) -> None:
        """Answer lines until `quit` or the end of input. Raises OutputClosedError or LoadError."""
        while (item := self.inbox.take()) is not None:
            line, self.arrival = item
            if not self.handle(line):
                break
        self.finish()

    def finish(self) -> None:
        """End everything that still runs. Raises the failure of the session, except after `quit`."""
        if self.failure is not None and not self._quitting:
            raise self.failure

    @abc.abstractmethod
    def close(self) -> None: ...


def run_session(make_session: Callable[[Callable[[str], None]], BaseSession]) -> int:
    """Serve the controller on stdin and stdout. At the end of the session, end the process without returning."""
    output = Output(claim_stdout())
    session = make_session(output.write)
    session.start()
    if IS_WINDOWS:
        # numpy's library waits at its load until nobody reads a pipe at stdin: github.com/numpy/numpy/issues/24290
        import numpy  # noqa: F401
    is_script = stat.S_ISREG(os.fstat(0).st_mode)
    threading.Thread(
        target=read_lines,
        args=(0, session.receive, lambda: session.receive_end(is_script)),
        name="input",
        daemon=True,
    ).start()
    # The main thread runs the session, because Ctrl-C interrupts only the main thread.
    status = 0
    try:
        session.run()
        session.close()
    except OutputClosedError:
        pass  # the controller has gone, or `output.failure` says why not
    except LoadError as error:
        print(f"yomi: error: {error}", file=sys.stderr)
        status = FAILED
    except KeyboardInterrupt:
        status = 130
    if output.failure is not None:
        print(f"yomi: error: {output.failure}", file=sys.stderr)
        status = FAILED
    sys.stderr.flush()
    # Threads that compile kernels or search cannot be stopped from here; the interpreter's own end would wait for them.
    os._exit(status)

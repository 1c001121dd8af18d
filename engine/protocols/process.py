"""The process around a session of any protocol: descriptors, the reader's thread, and an orderly end."""

from __future__ import annotations

import contextlib
import logging
import os
import stat
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Protocol

from yomi.engine.evaluators.base import EvaluatorError
from yomi.engine.machine import memory_fault
from yomi.engine.option_row import OptionError
from yomi.engine.protocols.streams import Output, OutputClosedError, claim_stdout, read_lines
from yomi.native.cache_folder import check_cache
from yomi.native.errors import CompileError

FAILED = 2


class LoadError(Exception):
    """The player cannot be loaded. The message is one line."""


def internal_error(log: logging.Logger, where: str, error: BaseException) -> str:
    """Log an internal error with its traceback, and return the message for the controller.

    `where` completes the log line, such as `while loading`.
    """
    log.error("internal error %s", where, exc_info=error)
    return f"internal error: {type(error).__name__}: {error}"


@contextlib.contextmanager
def loading(log: logging.Logger) -> Iterator[None]:
    """Raise errors of the block as LoadError, except OutputClosedError."""
    try:
        check_cache()  # here, since modules that fail to be imported by two threads at once give the wrong error
        yield
    except (LoadError, OutputClosedError):
        raise
    except BaseException as error:  # handed over to the thread that asks for the player
        raise load_error(log, error) from error


def load_error(log: logging.Logger, error: BaseException) -> LoadError:
    """Return the LoadError for an error while loading. Internal errors are logged with their traceback."""
    if why := memory_fault(error):
        return LoadError(why)
    if isinstance(error, (CompileError, EvaluatorError, OptionError)):
        return LoadError(str(error))
    return LoadError(internal_error(log, "while loading", error))  # a fault of ours


class ServedSession(Protocol):
    """A session, as the process uses it."""

    def receive(self, line: bytes) -> None: ...

    def receive_end(self, is_script: bool) -> None:
        """Take the end of input. Called by the reader's thread. A script is input from a file."""

    def run(self) -> None:
        """Answer lines until the session is over. Raises OutputClosedError or LoadError."""

    def close(self) -> None: ...


def run_session(make_session: Callable[[Callable[[str], None]], ServedSession]) -> int:
    """Serve the controller on stdin and stdout until it ends, then end the process without returning.

    `make_session` gets a function that writes text to the controller at once.
    """
    output = Output(claim_stdout())
    session = make_session(output.write)
    is_script = stat.S_ISREG(os.fstat(0).st_mode)
    threading.Thread(
        target=read_lines,
        args=(0, session.receive, lambda: session.receive_end(is_script)),
        name="input",
        daemon=True,
    ).start()
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

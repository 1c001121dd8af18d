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

from yomi.engine.machine import memory_fault
from yomi.engine.protocols.streams import Output, OutputClosedError, claim_stdout, read_lines
from yomi.native.cache_folder import check_cache
from yomi.native.errors import CompileError

FAILED = 2


class LoadError(Exception):
    """The player could not be made; the message is one line."""


def internal_error(log: logging.Logger, where: str, error: BaseException) -> str:
    """Log a fault of ours with its traceback, and return what the controller is told of it.

    Args:
        log: of the protocol.
        where: it happened, such as `while loading`.
        error: what was raised.
    """
    log.error("internal error %s", where, exc_info=error)
    return f"internal error: {type(error).__name__}: {error}"


@contextlib.contextmanager
def loading(log: logging.Logger, *known: type[Exception]) -> Iterator[None]:
    """Turn whatever goes wrong while a player is made into a LoadError.

    Args:
        log: of the protocol.
        known: errors beside LoadError whose message is for the user.

    Raises:
        OutputClosedError: Nobody is there any more.
        LoadError: Anything else.
    """
    try:
        check_cache()  # here, since modules that fail to be imported by two threads at once give the wrong error
        yield
    except (LoadError, OutputClosedError):
        raise
    except BaseException as error:  # handed over to the thread that asks for the player
        raise load_error(log, error, *known) from error


def load_error(log: logging.Logger, error: BaseException, *known: type[Exception]) -> LoadError:
    """Return the error for the user of what failed while loading; the arguments are those of `loading`."""
    if why := memory_fault(error):
        return LoadError(why)
    if isinstance(error, (CompileError, *known)):
        return LoadError(str(error))
    return LoadError(internal_error(log, "while loading", error))  # a fault of ours


class ServedSession(Protocol):
    """A session as the process sees it."""

    def receive(self, line: bytes) -> None:
        """Take a line from the reader's thread."""

    def receive_end(self, is_script: bool) -> None:
        """Take the end of input from the reader's thread; a script is input from a file."""

    def run(self) -> None:
        """Answer lines until the session is over.

        Raises:
            OutputClosedError: Nobody reads the answers.
            LoadError: The player could not be made.
        """

    def close(self) -> None:
        """End what runs, as far as it can be ended soon."""


def run_session(make_session: Callable[[Callable[[str], None]], ServedSession]) -> int:
    """Serve the controller on stdin and stdout until it ends. Does not return: the process ends.

    Args:
        make_session: Gets what writes text to the controller at once, and returns the session.
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

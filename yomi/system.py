"""Differences between Windows and other systems: locks, replaced files, command lines, groups of processes."""

from __future__ import annotations

import contextlib
import errno
import os
import shlex
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

IS_WINDOWS = sys.platform == "win32"
# Errors of a write to a pipe whose other end was closed, and to a pipe, socket or terminal.
CLOSED_PIPE = (errno.EPIPE, *((errno.EINVAL,) if IS_WINDOWS else ()))
GONE = (*CLOSED_PIPE, errno.ECONNRESET, errno.EIO)

# Offset of the byte that Windows locks. It is after all content, since other processes cannot read a locked byte.
LOCKED_AT = 2**40
REPLACING_SECONDS = 2.0


def lock_file(descriptor: int, *, wait: bool) -> bool:
    """Lock an open file until it is closed or the process ends, however it ends.

    Args:
        descriptor: of a file that is open for writing.
        wait: wait until no other process has the lock.

    Returns:
        Whether this process has the lock; with `wait` always True.
    """
    if sys.platform == "win32":
        import msvcrt

        while True:
            position = os.lseek(descriptor, 0, os.SEEK_CUR)
            os.lseek(descriptor, LOCKED_AT, os.SEEK_SET)
            try:
                msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
                return True
            except OSError:
                if not wait:
                    return False
            finally:
                os.lseek(descriptor, position, os.SEEK_SET)
            # Windows's own waiting lock gives up after ten seconds.
            time.sleep(0.05)
    import fcntl

    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except BlockingIOError:
        return False
    return True


def patiently(action: Callable[[], Any]) -> Any:
    """Run an action on files and return its result. On Windows, repeat it while another process has a file open.

    Raises:
        OSError: the action failed, on Windows for REPLACING_SECONDS.
    """
    # Windows refuses to replace or rename a file that anybody reads, and to open a file that is being replaced. Virus
    # scanners open every new file for some milliseconds.
    end = time.monotonic() + REPLACING_SECONDS
    while True:
        try:
            return action()
        except PermissionError:
            if not IS_WINDOWS or time.monotonic() > end:
                raise
            time.sleep(0.005)


def replace(source: str | Path, target: str | Path) -> None:
    """Rename a file or folder, and replace an existing one. Errors: see `patiently`."""
    patiently(lambda: os.replace(source, target))


def read_bytes(path: Path) -> bytes:
    """Read a file that another process may replace at any time; see `patiently`. Raises OSError."""
    content: bytes = patiently(path.read_bytes)
    return content


def split_command(text: str, *, escapes: bool = not IS_WINDOWS) -> list[str]:
    """Split a command line into words. Quotes work as in a shell. On Windows a backslash is a part of a path.

    Raises:
        ValueError: a quote is not closed.
    """
    words = shlex.shlex(text, posix=True, punctuation_chars=False)
    words.whitespace_split = True
    words.commenters = ""
    if not escapes:
        words.escape = ""
    return list(words)


@contextlib.contextmanager
def changed_environment(values: Mapping[str, str]) -> Iterator[None]:
    """Set environment variables inside the block, and restore them afterwards."""
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


# Arguments of Popen for a program whose children end with it, and that Ctrl-C at the terminal does not reach.
OWN_GROUP: dict[str, Any] = {"start_new_session": True}
if sys.platform == "win32":
    OWN_GROUP = {"creationflags": subprocess.CREATE_NEW_PROCESS_GROUP}


class Family:
    """A process that was started with OWN_GROUP, together with its children."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process
        self._job = _new_job(process) if IS_WINDOWS else None

    def kill(self) -> None:
        """Kill the process and its children. Call it once, and before the process has been waited for."""
        if sys.platform == "win32":
            self._process.kill()
            _kernel32().CloseHandle(self._job)  # kills all processes of the job
        else:
            with contextlib.suppress(ProcessLookupError, PermissionError):  # all have ended
                os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()


def _kernel32() -> Any:
    import ctypes

    library = ctypes.WinDLL("kernel32", use_last_error=True)  # type: ignore[attr-defined]
    library.CreateJobObjectW.restype = ctypes.c_void_p
    library.SetInformationJobObject.argtypes = [ctypes.c_void_p, ctypes.c_int, ctypes.c_void_p, ctypes.c_uint32]
    library.AssignProcessToJobObject.argtypes = [ctypes.c_void_p, ctypes.c_void_p]
    library.CloseHandle.argtypes = [ctypes.c_void_p]
    library.GetStdHandle.restype = ctypes.c_void_p
    library.GetConsoleMode.argtypes = [ctypes.c_void_p, ctypes.c_void_p]
    library.SetConsoleMode.argtypes = [ctypes.c_void_p, ctypes.c_uint32]
    return library


# Constants of Windows: winnt.h, consoleapi.h
_EXTENDED_LIMITS, _KILL_ON_CLOSE = 9, 0x2000
_FLAGS_AT = 16  # offset of LimitFlags in JOBOBJECT_EXTENDED_LIMIT_INFORMATION
_LIMITS_SIZE = 144
_STDOUT, _SEQUENCES = -11, 0x4


def _new_job(process: subprocess.Popen[bytes]) -> Any:
    """Return the handle of a new job of Windows with the process and its later children. Closing it kills all."""
    import ctypes

    library = _kernel32()
    job = library.CreateJobObjectW(None, None)
    limits = ctypes.create_string_buffer(bytes(_FLAGS_AT) + _KILL_ON_CLOSE.to_bytes(4, "little"), _LIMITS_SIZE)
    library.SetInformationJobObject(job, _EXTENDED_LIMITS, limits, _LIMITS_SIZE)
    library.AssignProcessToJobObject(job, int(process._handle))  # type: ignore[attr-defined]
    return job


def enable_sequences() -> bool:
    """Return whether the terminal obeys escape sequences. On Windows, switch them on first."""
    if not IS_WINDOWS:
        return os.environ.get("TERM", "dumb") != "dumb"
    import ctypes

    library, mode = _kernel32(), ctypes.c_uint32()
    stdout = library.GetStdHandle(_STDOUT)
    return bool(
        library.GetConsoleMode(stdout, ctypes.byref(mode)) and library.SetConsoleMode(stdout, mode.value | _SEQUENCES)
    )

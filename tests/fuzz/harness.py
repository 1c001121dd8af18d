"""Reads mutants of files, and reports faults: undocumented exceptions, too much time, too much memory."""

from __future__ import annotations

import contextlib
import logging
import random
import resource
import signal
import time
import traceback
import unicodedata
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any

from tests.fuzz.mutation import mutant

SECONDS = 5.0
"""Processor time for a mutant: a busy machine must not fail a reader."""
MEMORY = 1 << 30
"""Bytes of address space that a reader may take beyond those of the process."""
MAX_LINE = 2000
"""Characters of an error."""

Files = Mapping[str, bytes]


@dataclass(frozen=True)
class Reader:
    """A reader of files, and what it documents."""

    name: str
    read: Callable[[Path], object]
    """Reads the file at a path. Files that belong together lie in one folder."""
    errors: tuple[type[Exception], ...]
    """The documented errors."""
    files: Callable[[], Files]
    """Returns good files by name. In each mutant one of them is changed."""
    fixed: tuple[str, ...] = ()
    """Files that are never changed."""
    cost: float = 1.0
    """Mutants of the test suite are divided by it."""


@dataclass
class Outcome:
    """Counts of a run."""

    accepted: int = 0
    refused: int = 0
    slowest: float = 0.0
    faults: list[str] = field(default_factory=list)


class TooSlowError(BaseException):
    """A reader takes longer than SECONDS. No reader may catch it."""


class _Lines(logging.Handler):
    """Collects what readers of caches log."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(record.getMessage())


def fuzz(reader: Reader, folder: Path, numbers: range, seed: int = 1, max_faults: int = 5) -> Outcome:
    """Read mutants of a reader's files.

    Args:
        reader: the reader.
        folder: an empty folder for the files.
        numbers: of the mutants. Each depends on the seed, the reader's name and its number alone.
        seed: of the mutants.
        max_faults: the run ends with this many.
    """
    files = dict(reader.files())
    changed = [name for name in files if name not in reader.fixed]
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    outcome = Outcome()
    handler = _Lines()
    with _quiet(handler):
        for name in changed:  # imports modules and compiles kernels before time and memory count
            with contextlib.suppress(*reader.errors):
                reader.read(folder / name)
            (folder / name).write_bytes(files[name])
        with _bounded():
            for number in numbers:
                name, content = make_mutant(files, changed, reader.name, seed, number)
                _write(folder / name, content)
                fault = _try(reader, folder / name, handler, outcome)
                if fault:
                    outcome.faults.append(f"{reader.name}, mutant {number} of {name} ({len(content)} bytes): {fault}")
                    if len(outcome.faults) >= max_faults:
                        break
                _write(folder / name, files[name])
    return outcome


def _write(path: Path, content: bytes) -> None:
    """Write a new file. Some file systems write to disk first when an old file is cut, which takes milliseconds."""
    path.unlink(missing_ok=True)
    path.write_bytes(content)


def make_mutant(files: Files, changed: list[str], reader: str, seed: int, number: int) -> tuple[str, bytes]:
    """Return the name of the file that a mutant changes, and its content."""
    rng = random.Random(f"{seed} {reader} {number}")
    name = rng.choice(changed)
    others = [files[each] for each in changed if Path(each).suffix == Path(name).suffix]
    return name, mutant(rng, name, files[name], others)


def _try(reader: Reader, path: Path, handler: _Lines, outcome: Outcome) -> str:
    """Read a file and return what is wrong with the reader, empty if nothing is."""
    handler.lines.clear()
    begin = time.process_time()
    signal.setitimer(signal.ITIMER_PROF, SECONDS)
    fault = ""
    try:
        reader.read(path)
        outcome.accepted += 1
    except reader.errors as error:
        outcome.refused += 1
        fault = _wrong_line(str(error))
        if fault:
            fault = f"{type(error).__name__}: {fault}"
    except TooSlowError:
        fault = f"more than {SECONDS} s: " + traceback.format_exc(limit=-3)
    except (Exception, MemoryError, RecursionError) as error:
        place = "".join(traceback.format_tb(error.__traceback__, limit=-3))
        fault = f"{type(error).__name__}: {str(error)[:300]}\n{place}"
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
    outcome.slowest = max(outcome.slowest, time.process_time() - begin)
    return fault or next(filter(None, map(_wrong_line, handler.lines)), "")


def _wrong_line(text: str) -> str:
    """Return why a text is no error of one line."""
    if not text.strip():
        return "an empty message"
    if len(text) > MAX_LINE:
        return f"a message of {len(text)} characters: {text[:200]!r}"
    if any(unicodedata.category(character) in ("Cc", "Zl", "Zp", "Cs") for character in text):
        return f"a message that is not one printable line: {text[:300]!r}"
    return ""


@contextlib.contextmanager
def _quiet(handler: logging.Handler) -> Iterator[None]:
    """Give what is logged to the handler alone, and make warnings errors."""
    root = logging.getLogger("yomi")
    before, propagates = root.handlers[:], root.propagate
    root.handlers, root.propagate = [handler], False
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            yield
    finally:
        root.handlers, root.propagate = before, propagates


@contextlib.contextmanager
def _bounded() -> Iterator[None]:
    """Bound memory, and raise TooSlowError when the timer runs out."""

    def stop(_number: int, _frame: FrameType | None) -> Any:
        raise TooSlowError

    pages = int(Path("/proc/self/statm").read_text().split()[0])
    limits = resource.getrlimit(resource.RLIMIT_AS)
    before = signal.signal(signal.SIGPROF, stop)
    resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + MEMORY, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, limits)
        signal.signal(signal.SIGPROF, before)

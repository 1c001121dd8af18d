"""Compiling kernels before they are needed, with progress, in several processes.

numba compiles a kernel when it is first called. A first start would so spend half a minute in the middle of a move,
without a word; `compile_names` does it beforehand. Each group of kernels (yomi.native.kernel_groups) that is compiled
has a mark in the cache, and later starts return at once.
"""

import contextlib
import functools
import hashlib
import os
import queue
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Any

from yomi.native import jit
from yomi.native.cache_folder import COMPLETE, locked, write_json
from yomi.native.compile_progress import Display, Progress, time_text
from yomi.native.errors import CompileError
from yomi.native.jit import CACHE_DIRECTORY, CHOICE, IS_PLAIN, LEVEL, PACKAGED, kernel_facts, kernel_key
from yomi.native.kernel_groups import GROUPS, NAMES
from yomi.native.levels import NATIVE, ROOT, SETTING
from yomi.native.speed import compare

MISTAKE = "a mistake in a kernel: "
"""Prefix of a compiling process's message for the person who edited a kernel."""
WHEN_AGAIN = (
    "This happens again after an update or edit of yomi, after an update of numba or Python, and on another processor"
)
CHECK = "--check"
"""Argument of this module's processes that find the line of a mistake and compile nothing."""
LATER = "--later"
"""Argument of the process that compiles in the background; names follow."""
COMPARE = "--compare"
"""Argument of the process that compiles native kernels and compares them with those of a level, which follows."""
MAX_PROCESSES = 4
"""More would wait for the longest group."""
LOW_PRIORITY = 19
"""Niceness of compiling in the background."""


def is_compiled(name: str) -> bool:
    """Whether the kernels of a name of NAMES of this version, for this processor, are in the cache."""
    return not _missing([name])


def _missing(names: Iterable[str]) -> list[str]:
    """Return the groups of some names that are not compiled."""
    groups = dict.fromkeys(group for name in names for group in NAMES[name])
    folders = [CACHE_DIRECTORY, *([] if PACKAGED is None else [PACKAGED])]
    return [group for group in groups if not any((folder / mark_of(group).name).exists() for folder in folders)]


def compile_names(names: Sequence[str], report: Callable[[str], None]) -> None:
    """Compile all kernels of names of NAMES that are not in the cache, with a bar on a terminal.

    Args:
        names: of NAMES.
        report: receives a line before and after, and every 15 seconds in between if stderr is no terminal.

    Raises:
        CompileError: a compiling process failed, or the kernels cannot be kept. The message is that of the mistake in a
            kernel, or the last line of the process.
    """
    if IS_PLAIN or not _missing(names):
        return
    try:
        with _alone(names, report):
            if groups := _missing(names):
                _compile(" and ".join(names), groups, report)
    except OSError as error:
        raise CompileError(f"compiling failed: {_no_room(f'{CACHE_DIRECTORY}: {error.strerror or error}')}") from None


@contextlib.contextmanager
def _alone(names: Sequence[str], report: Callable[[str], None]) -> Iterator[None]:
    """Wait until no other process compiles kernels of these names, and keep others waiting."""
    with contextlib.ExitStack() as stack:
        for name in NAMES:  # in one order, so that two starts never wait for each other
            if name in names:
                text = f"another start compiles the engine for {name}: waiting for it"
                stack.enter_context(locked(CACHE_DIRECTORY / f"{name}.lock", functools.partial(report, text)))
        yield


def compile_later(names: Sequence[str]) -> None:
    """Compile the kernels of some names at low priority in a process that ends with this one, and return at once.

    A failure is not reported: whoever needs these kernels compiles them with a report.
    """
    if not IS_PLAIN and _missing(names):
        _begin_background((LATER, *names), {})


def compile_natively_later() -> None:
    """If the kernels in use are those of a level that came with yomi, compile native ones in the background.

    Once all are compiled they are compared, and the next start uses the faster ones.
    """
    if PACKAGED is not None and not CHOICE.exists() and not IS_PLAIN:
        _begin_background((COMPARE, str(LEVEL)), {SETTING: NATIVE})


def _begin_background(words: Sequence[str], settings: Mapping[str, str]) -> None:
    if _background:
        return
    command = ["nice", "-n", str(LOW_PRIORITY)] if os.name == "posix" else []
    command += [sys.executable, "-m", "yomi.native.warmup", *words]
    with contextlib.suppress(OSError):  # there is no such command, or no more process
        _background.append(_start(command, subprocess.DEVNULL, subprocess.DEVNULL, settings))


_background: list["subprocess.Popen[bytes]"] = []
"""The process that compiles in the background; its stdin stays open as long as this process lives."""


def _no_room(fault: str) -> str:
    return f"{fault}: expected room for compiled kernels (some 100 MB), or YOMI_CACHE_DIR to name a folder with room"


def _compile(what: str, groups: Sequence[str], report: Callable[[str], None]) -> None:
    """Compile groups whose locks this process has."""
    report(f"compiling the engine for {what}. {WHEN_AGAIN}")
    display = Display(report)
    try:
        _run(groups, display)
    finally:
        seconds = display.close()
    if left := [group for group in groups if not mark_of(group).exists()]:
        raise CompileError(
            f"compiling failed: no kernels of {', '.join(left)} found, expected them in {CACHE_DIRECTORY}"
        )
    report(f"compiled in {time_text(seconds)}; kept in {CACHE_DIRECTORY}")


def _processors() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _run(groups: Sequence[str], display: Display) -> None:
    """Compile groups in processes of this module; if one fails, end the others.

    Raises:
        CompileError: one failed.
    """
    waiting = queue.SimpleQueue[str]()
    for group in sorted(groups, key=lambda group: -GROUPS[group].seconds):
        waiting.put(group)
    count = max(1, min(_processors(), len(groups), MAX_PROCESSES))
    progress = Progress({group: GROUPS[group].seconds for group in groups}, count)
    with contextlib.ExitStack() as stack:
        # Files, since a pipe that nobody reads holds a process up when it is full.
        errors = [stack.enter_context(tempfile.TemporaryFile()) for _ in range(count)]
        running = [stack.enter_context(_spawn((), file)) for file in errors]
        for process in running:
            thread = threading.Thread(target=_feed, args=(process, waiting, progress), daemon=True)
            thread.start()
            stack.callback(thread.join)  # after the process has been ended, and before its pipes are closed
        for process in running:
            stack.callback(process.kill)  # before it is waited for; nothing happens to one that has ended
        while not all(process.poll() == 0 for process in running):
            for process, file in zip(running, errors, strict=True):
                if process.poll():
                    file.seek(0)
                    raise CompileError(f"compiling failed: {_reason(file.read().decode(errors='replace'))}")
            display.show(progress)
            time.sleep(0.1)


def _feed(process: "subprocess.Popen[bytes]", waiting: "queue.SimpleQueue[str]", progress: Progress) -> None:
    """Let a process compile groups, one after another, until none is left."""
    assert process.stdin is not None
    assert process.stdout is not None
    with contextlib.suppress(BrokenPipeError, queue.Empty):  # the process has failed; all is done
        while True:
            group = waiting.get_nowait()
            progress.begin(group)
            process.stdin.write(f"{group}\n".encode())
            process.stdin.flush()
            if process.stdout.readline().strip() != group.encode():
                return  # it has failed
            progress.finish(group)
    with contextlib.suppress(BrokenPipeError):
        process.stdin.write(b"\n")  # so that it ends
        process.stdin.flush()


def _reason(text: str) -> str:
    """Return what a failed process reported of a mistake in a kernel, or its last line."""
    _, is_known, mistake = text.rpartition(MISTAKE)
    return mistake.strip() if is_known else (text.strip().splitlines() or ["no message"])[-1]


def mark_of(group: str) -> Path:
    """Return the file that exists once the kernels of a group are compiled."""
    keys = "".join(kernel_key(package) for package in GROUPS[group].packages)
    return CACHE_DIRECTORY / f"{group}-{hashlib.sha256(keys.encode()).hexdigest()[:16]}{COMPLETE}"


def _write_mark(group: str, seconds: float) -> None:
    """Note that the kernels of a group are compiled: by which facts, in which folders, and how long it took."""
    packages = GROUPS[group].packages
    folders = [f"{package}-{kernel_key(package)}" for package in packages]
    write_json(mark_of(group), {**kernel_facts(packages[0]), "folders": folders, "seconds": round(seconds, 1)})


def _spawn(words: Sequence[str], errors: IO[bytes]) -> "subprocess.Popen[bytes]":
    """Start a process of this module, in the folder that this one reads from; it writes to `errors`."""
    return _start([sys.executable, "-m", "yomi.native.warmup", *words], subprocess.PIPE, errors)


def _start(
    command: Sequence[str], output: Any, errors: Any, settings: Mapping[str, str] | None = None
) -> "subprocess.Popen[bytes]":
    # The process ends itself when the pipe to its stdin is closed: also if this process is killed and can end nothing.
    environment = {**os.environ, "YOMI_CACHE_DIR": str(CACHE_DIRECTORY.parent), **(settings or {})}
    return subprocess.Popen(command, cwd=ROOT, env=environment, stdin=subprocess.PIPE, stdout=output, stderr=errors)


def _read_groups() -> Iterator[str]:
    """Yield the groups that stdin names, a line each, up to an empty line."""
    lines: queue.SimpleQueue[bytes] = queue.SimpleQueue()
    _watch_stdin(lines)
    while line := lines.get():
        yield line.decode()


def _watch_stdin(lines: "queue.SimpleQueue[bytes]") -> None:
    """Put the lines of stdin into a queue, and end this process when nobody holds the other end any more."""

    def watch() -> None:  # not through sys.stdin, whose lock would be in the way of a regular end
        rest = b""
        while piece := os.read(0, 4096):
            *whole, rest = (rest + piece).split(b"\n")
            for line in whole:
                lines.put(line)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def main(words: Sequence[str]) -> None:
    """Compile the groups that stdin names, or after LATER those of some names; print each that is done.

    After CHECK only infer the types of some groups, to find the line of a mistake. A mistake is printed on stderr. A
    kernel that cannot be kept ends the process with a line, since others would compile it again.
    """
    from yomi.native import typecheck

    try:
        if words[:1] == [CHECK]:
            typecheck.check(GROUPS[group].compile for group in words[1:])
        elif words[:1] == [COMPARE]:
            _watch_stdin(queue.SimpleQueue())
            with _alone(list(NAMES), lambda line: None):
                _compile_here(_missing(NAMES))
            compare(words[1])
        elif words[:1] == [LATER]:
            _watch_stdin(queue.SimpleQueue())
            with _alone(words[1:], lambda line: None):
                _compile_here(_missing(words[1:]))
        else:
            _compile_here(_read_groups())
    except OSError as error:  # the disk may also be too full to make a folder or a file
        raise SystemExit(_no_room(f"{CACHE_DIRECTORY}: {error.strerror or error}")) from None
    except Exception as error:
        if (text := typecheck.describe(error)) is None:
            raise
        raise SystemExit(f"{MISTAKE}{text}") from None


def _compile_here(groups: Iterable[str]) -> None:
    """Compile groups in this process; print each that is done."""
    for group in groups:
        begin = time.monotonic()
        try:
            GROUPS[group].compile()
        except Exception:
            _check(group)  # which knows the line
            raise
        if jit.UNSAVED:
            raise SystemExit(_no_room(jit.UNSAVED[0]))
        _write_mark(group, time.monotonic() - begin)
        print(group, flush=True)


def _check(group: str) -> None:
    """End this process with the line of a mistake in a group's kernels, if types show it."""
    command = [sys.executable, "-m", "yomi.native.warmup", CHECK, group]
    found = subprocess.run(command, cwd=ROOT, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    if MISTAKE in found.stderr:
        raise SystemExit(found.stderr.strip())


if __name__ == "__main__":
    main(sys.argv[1:])

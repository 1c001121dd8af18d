"""Compiles kernels before they are needed, in several processes, with progress."""

import contextlib
import functools
import hashlib
import json
import os
import queue
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from pathlib import Path
from typing import Any

from yomi import children
from yomi.errors import CompileError
from yomi.language import tr
from yomi.native import jit
from yomi.native.cache_folder import COMPLETE, FACTS, locked, write_json
from yomi.native.jit import CACHE_DIRECTORY, CHOICE, IS_PLAIN, PACKAGED, kernel_facts, kernel_key
from yomi.native.kernel_groups import GROUPS, NAMES
from yomi.native.levels import NATIVE, ROOT, SETTING
from yomi.time_left import MIN_SAMPLE, SECONDS_BETWEEN_UPDATES, TimeLeft, duration

# Otherwise numba would compile at the first call: half a minute in the middle of a move. Each compiled group
# (yomi.native.kernel_groups) has a mark in the cache, so that later starts return at once.

# Prefix of a process's message about an error in a kernel's source.
MISTAKE = "a mistake in a kernel: "
COMMAND = [sys.executable, "-m", "yomi.native.precompile"]  # a process of `main`
MAX_PROCESSES = 4  # more would only wait for the slowest group
LOW_PRIORITY = 19  # niceness of the background process
# Whether a terminal shows a bar; programs that use the library turn it off.
has_bar: ContextVar[bool] = ContextVar("has_bar", default=True)
SECONDS_BETWEEN_LINES = 15.0  # of progress, without a bar


class Progress:
    """Finished share and remaining time of groups that parallel processes compile. Thread-safe."""

    def __init__(self, seconds: Mapping[str, float], processes: int) -> None:
        self._seconds = dict(seconds)
        self._total = sum(seconds.values())
        self._processes = processes
        self._begun: dict[str, float] = {}
        self._took = self._done = 0.0
        self._lock = threading.Lock()

    def begin(self, group: str) -> None:
        with self._lock:
            self._begun[group] = time.monotonic()

    def finish(self, group: str) -> None:
        with self._lock:
            self._took += time.monotonic() - self._begun.pop(group)
            self._done += self._seconds.pop(group)

    def share(self) -> float:
        """Return the finished share of the work, from 0 to 1."""
        return self._done / self._total if self._total else 1.0

    def left(self) -> float | None:
        """Return the estimated seconds left; None until finished groups have shown how fast this machine is."""
        with self._lock:
            now = time.monotonic()
            if self._took < MIN_SAMPLE:
                return None
            speed = max(self._done / self._took, 0.02)
            for group, begin in self._begun.items():  # one that takes ten times as long shows a speed of a tenth
                speed = min(speed, self._seconds[group] / max(now - begin, 1e-9))
            left = dict(self._seconds)
            for group, begin in self._begun.items():
                left[group] -= min(0.95 * left[group], (now - begin) * speed)
            return max([*left.values(), sum(left.values()) / self._processes]) / speed


class Waiting:
    """Groups to compile, the slowest first. Thread-safe."""

    def __init__(self, groups: Iterable[str]) -> None:
        self._groups = sorted(groups, key=lambda group: -GROUPS[group].seconds)
        self._begun: set[str] = set()  # packages
        self._lock = threading.Lock()

    def take(self, last: str | None) -> str | None:
        """Return the next group of a process that compiled the group `last`, or None if no group is left."""
        # Groups of a package share parts, which a process compiles only once. So a process stays with its package, and
        # then prefers a package that no process has begun.
        package = GROUPS[last].packages[0] if last else None
        with self._lock:
            if not self._groups:
                return None
            places = [GROUPS[group].packages[0] for group in self._groups]
            best = min(range(len(places)), key=lambda i: (places[i] != package, places[i] in self._begun))
            self._begun.add(places[best])
            return self._groups.pop(best)


class Display:
    """Shows a bar if stderr is a terminal; otherwise `report` receives a line every 15 seconds."""

    def __init__(self, report: Callable[[str], None]) -> None:
        self._report = report
        self._begin = self._last = time.monotonic()
        self._left = TimeLeft()
        self._time = ""
        self._bar: Any = None
        if has_bar.get() and sys.stderr is not None and sys.stderr.isatty():
            from tqdm import tqdm

            form = "{desc} {percentage:3.0f}%|{bar}| {unit}"
            width = min(shutil.get_terminal_size().columns - 1, 100)
            self._bar = tqdm(
                total=100,
                unit="",
                desc=tr("yomi: compiling"),
                bar_format=form,
                file=sys.stderr,
                leave=False,
                ncols=width,
            )

    def show(self, progress: Progress) -> None:
        now = time.monotonic()
        percent = int(100 * progress.share())
        if self._bar is not None:
            if now - self._last >= SECONDS_BETWEEN_UPDATES:
                self._last, left = now, self._left.report(progress.left())
                self._time = "" if left is None else tr("{time} left", time=duration(left))
            shown = percent, self._time
            if shown != (self._bar.n, self._bar.unit):
                self._bar.n, self._bar.unit = shown
                self._bar.refresh()
        elif now - self._last >= SECONDS_BETWEEN_LINES:
            self._last = now
            left = self._left.report(progress.left())
            if left is None:
                self._report(tr("compiling: {percent}%", percent=percent))
            else:
                self._report(tr("compiling: {percent}%, about {time} left", percent=percent, time=duration(left)))

    def close(self) -> float:
        if self._bar is not None:
            self._bar.close()
        return time.monotonic() - self._begin


def is_compiled(name: str) -> bool:
    """Return whether the kernels of a key of NAMES are in the cache, for this version and processor."""
    return not _missing([name])


def _missing(names: Iterable[str]) -> list[str]:
    groups = dict.fromkeys(group for name in names for group in NAMES[name])
    folders = [CACHE_DIRECTORY, *([] if PACKAGED is None else [PACKAGED])]
    return [group for group in groups if not any((folder / mark_of(group).name).exists() for folder in folders)]


def compile_names(names: Sequence[str], report: Callable[[str], None]) -> None:
    """Compile the kernels of `names` that are not in the cache, with a bar on a terminal.

    Args:
        names: keys of NAMES.
        report: receives a line before and after, and every 15 seconds in between if there is no bar.

    Raises:
        CompileError: a process failed, or kernels cannot be stored.
    """
    if IS_PLAIN or not _missing(names):
        return
    try:
        with _alone(names, report):
            if groups := _missing(names):
                _compile(_games(names), groups, report)
    except OSError as error:
        why = _no_room(f"{CACHE_DIRECTORY}: {error.strerror or error}")
        raise CompileError(tr("compiling failed: {why}", why=why)) from None


@contextlib.contextmanager
def _alone(names: Sequence[str], report: Callable[[str], None]) -> Iterator[None]:
    """Hold the locks of these names; wait while another process compiles them."""
    with contextlib.ExitStack() as stack:
        for name in NAMES:  # always in the same order: two starts never wait for each other
            if name in names:
                text = tr("another start compiles the engine for {name}: waiting for it", name=_games([name]))
                stack.enter_context(locked(CACHE_DIRECTORY / f"{name}.lock", functools.partial(report, text)))
        yield


def _games(names: Iterable[str]) -> str:
    """Return the games of some keys of NAMES as text, each game once: `go` for `go-more`."""
    return tr(" and ").join(dict.fromkeys(name.partition("-")[0] for name in names))


def compile_later(names: Sequence[str]) -> None:
    """Compile kernels at low priority in a process that ends with this one.

    If the kernels in use came with yomi, compile native kernels of all names. Otherwise compile the kernels of `names`.
    """
    # A failure is not reported: compile_names reports it when the kernels are needed.
    if IS_PLAIN or _background or (PACKAGED is None and not _missing(names)):
        return
    words, settings = (names, {}) if PACKAGED is None else (tuple(NAMES), {SETTING: NATIVE})
    command = ["nice", "-n", str(LOW_PRIORITY)] if os.name == "posix" else []
    flags = getattr(subprocess, "BELOW_NORMAL_PRIORITY_CLASS", 0)  # Windows
    with contextlib.suppress(OSError):  # no such command, or no more processes
        output = subprocess.DEVNULL
        _background.append(_start([*command, *COMMAND, *words], output, output, settings, flags))


# The background process. Its stdin stays open while this process lives.
_background: list["subprocess.Popen[bytes]"] = []


def _no_room(fault: str) -> str:
    return tr(
        "{fault}: expected room for compiled kernels (some 100 MB), or YOMI_CACHE_DIR to name a folder with room",
        fault=fault,
    )


def _compile(what: str, groups: Sequence[str], report: Callable[[str], None]) -> None:
    report(
        tr(
            "compiling the engine for {what}. This happens again after an update or edit of yomi, after an update of "
            "numba or Python, and on another processor",
            what=what,
        )
    )
    display = Display(report)
    try:
        _run(groups, display)
    finally:
        seconds = display.close()
    if left := [group for group in groups if not mark_of(group).exists()]:
        raise CompileError(
            f"compiling failed: no kernels of {', '.join(left)} found, expected them in {CACHE_DIRECTORY}"
        )
    report(tr("compiled in {time}; kept in {folder}", time=duration(seconds), folder=CACHE_DIRECTORY))


def _processors() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _run(groups: Sequence[str], display: Display) -> None:
    """Compile groups in processes of this module. If one fails, end the others."""
    waiting = Waiting(groups)
    count = max(1, min(_processors(), len(groups), MAX_PROCESSES))
    progress = Progress({group: GROUPS[group].seconds for group in groups}, count)
    with contextlib.ExitStack() as stack:
        # Files: a full pipe that nobody reads would block a process.
        errors = [stack.enter_context(tempfile.TemporaryFile()) for _ in range(count)]
        running = [stack.enter_context(_start(COMMAND, subprocess.PIPE, file, {})) for file in errors]
        for process in running:
            thread = threading.Thread(target=_feed, args=(process, waiting, progress), daemon=True)
            thread.start()
            stack.callback(thread.join)  # after the process has ended, and before its pipes are closed
        for process in running:
            stack.callback(process.kill)  # before it is waited for; harmless if it has ended
        while not all(process.poll() == 0 for process in running):
            for process, file in zip(running, errors, strict=True):
                if process.poll():
                    file.seek(0)
                    raise CompileError(f"compiling failed: {_reason(file.read().decode(errors='replace'))}")
            display.show(progress)
            time.sleep(0.1)


def _feed(process: "subprocess.Popen[bytes]", waiting: Waiting, progress: Progress) -> None:
    """Make a process compile groups one by one until none is left."""
    assert process.stdin is not None
    assert process.stdout is not None
    group = None
    with contextlib.suppress(OSError):  # the process failed
        while group := waiting.take(group):
            progress.begin(group)
            process.stdin.write(f"{group}\n".encode())
            process.stdin.flush()
            if process.stdout.readline().strip() != group.encode():
                return  # the process failed
            progress.finish(group)
    with contextlib.suppress(OSError):
        process.stdin.write(b"\n")  # ends it
        process.stdin.flush()


def _reason(text: str) -> str:
    """Return a failed process's message about a kernel's source, or its last line."""
    _, is_known, mistake = text.rpartition(MISTAKE)
    return mistake.strip() if is_known else (text.strip().splitlines() or ["no message"])[-1]


def mark_of(group: str) -> Path:
    keys = "".join(kernel_key(package) for package in GROUPS[group].packages)
    return CACHE_DIRECTORY / f"{group}-{hashlib.sha256(keys.encode()).hexdigest()[:16]}{COMPLETE}"


def _write_mark(group: str) -> None:
    write_json(mark_of(group), kernel_facts(GROUPS[group].packages[0]))


def _start(
    command: Sequence[str], output: Any, errors: Any, settings: Mapping[str, str], flags: int = 0
) -> "subprocess.Popen[bytes]":
    # The process ends itself when its stdin is closed: also if this process is killed.
    environment = {**children.environment(), "YOMI_CACHE_DIR": str(CACHE_DIRECTORY.parent), **settings}
    # bufsize=0: closing the buffer of a process that has ended would raise an error.
    how: Any = {"cwd": ROOT, "env": environment, "stdin": subprocess.PIPE, "creationflags": flags}
    return subprocess.Popen(command, bufsize=0, stdout=output, stderr=errors, **how)


def _read_groups() -> Iterator[str]:
    lines: queue.SimpleQueue[bytes] = queue.SimpleQueue()
    _watch_stdin(lines)
    while line := lines.get():
        yield line.decode()


def _watch_stdin(lines: "queue.SimpleQueue[bytes]") -> None:
    """Put the lines of stdin into a queue; end this process when the other end closes."""

    def watch() -> None:  # not through sys.stdin, whose lock would block a regular exit
        rest = b""
        while piece := os.read(0, 4096):
            *whole, rest = (rest + piece).split(b"\n")
            for line in whole:
                lines.put(line)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def main(words: Sequence[str]) -> None:
    """Compile groups of kernels: with `words` the missing groups of these names, otherwise the groups named on stdin.

    Print each group when it is compiled. The process ends when its parent does. Once all names are compiled in this
    way, later starts prefer their kernels to packaged kernels.
    """
    try:
        if words:
            _watch_stdin(queue.SimpleQueue())
            with _alone(words, lambda line: None):
                _compile_here(_missing(words))
            if set(words) == set(NAMES):
                CHOICE.touch()
        else:
            _compile_here(_read_groups())
    except OSError as error:  # a full disk may also prevent a folder or a file
        raise SystemExit(_no_room(f"{CACHE_DIRECTORY}: {error.strerror or error}")) from None


def _compile_here(groups: Iterable[str]) -> None:
    for group in groups:
        try:
            GROUPS[group].compile()
        except OSError:
            raise
        except Exception as error:
            text = f"{type(error).__name__}: {error}"
            raise SystemExit(f"{MISTAKE}{text}\npython -m tests.typecheck {group} names its line") from None
        # Otherwise other processes would compile the kernel again.
        if jit.UNSAVED:
            raise SystemExit(_no_room(jit.UNSAVED[0]))
        _write_mark(group)
        print(group, flush=True)


# Folders of kernels and marks of groups: name, hash of their facts.
_STORED = re.compile(rf"(?P<name>[a-z-]+)-[0-9a-f]{{16}}(?P<mark>{re.escape(COMPLETE)})?")


def unused_kernels() -> list[Path]:
    """Return kernel folders and group marks that this version of yomi never uses, whatever its settings.

    Raises:
        OSError: the cache cannot be read.
    """
    found = ((path, _STORED.fullmatch(path.name)) for path in sorted(CACHE_DIRECTORY.iterdir()))
    return [
        path
        for path, match in found
        if match and path.is_dir() != bool(match["mark"]) and not _is_used(path, match["name"])
    ]


def _is_used(path: Path, name: str) -> bool:
    try:
        content = json.loads((path / FACTS if path.is_dir() else path).read_text(encoding="utf-8"))
    except (FileNotFoundError, ValueError):
        return False
    package = GROUPS[name].packages[0] if name in GROUPS else name
    wanted = {**kernel_facts(package), "settings": ""}.items()
    return isinstance(content, dict) and wanted <= {**content, "settings": ""}.items()


if __name__ == "__main__":
    main(sys.argv[1:])

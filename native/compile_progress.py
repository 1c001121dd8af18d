"""Progress of compilation: a bar on a terminal, a few lines elsewhere."""

import shutil
import sys
import threading
import time
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from typing import Any

from yomi.language import tr
from yomi.time_left import MIN_SAMPLE, SECONDS_BETWEEN_UPDATES, TimeLeft, duration

# whether a terminal shows a bar; programs that use the library turn it off
has_bar: ContextVar[bool] = ContextVar("has_bar", default=True)
SECONDS_BETWEEN_LINES = 15.0


class Progress:
    """Share done and time left of groups that parallel processes compile. Thread-safe."""

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
        """Return the seconds left, or None until finished groups show the speed of this machine."""
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

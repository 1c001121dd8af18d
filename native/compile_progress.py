"""Progress of compilation: a bar on a terminal, a few lines elsewhere."""

import shutil
import sys
import threading
import time
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from typing import Any

from yomi.language import tr

# whether a terminal shows a bar; programs that use the library turn it off
has_bar: ContextVar[bool] = ContextVar("has_bar", default=True)
SECONDS_BETWEEN_LINES = 15.0
MIN_SAMPLE = 3.0  # seconds of work after which the measured speed replaces the estimates


class Progress:
    """Estimate of the time left to compile groups in parallel processes. Thread-safe."""

    def __init__(self, seconds: Mapping[str, float], processes: int) -> None:
        self._seconds = dict(seconds)
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

    def left(self) -> float:
        with self._lock:
            now = time.monotonic()
            speed = max(self._done / self._took, 0.02) if self._took >= MIN_SAMPLE else 1.0
            for group, begin in self._begun.items():  # one that takes ten times as long shows a speed of a tenth
                speed = min(speed, self._seconds[group] / max(now - begin, self._seconds[group], 1e-9))
            left = dict(self._seconds)
            for group, begin in self._begun.items():
                left[group] -= min(0.95 * left[group], (now - begin) * speed)
            return max([*left.values(), sum(left.values()) / self._processes]) / speed


class Display:
    """Shows a bar if stderr is a terminal; otherwise `report` receives a line every 15 seconds."""

    def __init__(self, report: Callable[[str], None]) -> None:
        self._report = report
        self._begin = self._last = time.monotonic()
        self._fraction = 0.0
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
        left = progress.left()
        elapsed = now - self._begin
        self._fraction = max(self._fraction, min(elapsed / (elapsed + left), 0.99) if elapsed + left > 0 else 0.0)
        if self._bar is not None:
            shown = int(100 * self._fraction), tr("{time} left", time=time_text(left))
            if shown != (self._bar.n, self._bar.unit):
                self._bar.n, self._bar.unit = shown
                self._bar.refresh()
        elif now - self._last >= SECONDS_BETWEEN_LINES:
            self._last = now
            percent = f"{100 * self._fraction:.0f}"
            self._report(tr("compiling: {percent}%, about {time} left", percent=percent, time=time_text(left)))

    def close(self) -> float:
        if self._bar is not None:
            self._bar.close()
        return time.monotonic() - self._begin


def time_text(seconds: float) -> str:
    """Return a duration for people: 40 s, 2 min."""
    if seconds < 90.0:
        return tr("{n} s", n=f"{max(seconds, 1.0):.0f}")
    return tr("{n} min", n=f"{seconds / 60.0:.0f}")

"""Requests to end the program that come as signals."""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Callable, Iterator

NUMBERS = tuple(getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name))
"""What ends a program: a request to terminate, and a terminal that has gone (not on Windows)."""


@contextlib.contextmanager
def ended_by_a_signal() -> Iterator[None]:
    """Let such a signal leave the block as an interrupt at the keyboard does, so that all is closed and saved.

    One that this program was started to ignore (by nohup) stays ignored. After the first the others are ignored, too,
    until the block is left: where a terminal goes, several come.

    Raises:
        SystemExit: a signal came; the status is 128 and its number.
    """
    numbers = [number for number in NUMBERS if signal.getsignal(number) is not signal.SIG_IGN]

    def end(number: int, frame: object) -> None:
        for each in numbers:
            signal.signal(each, signal.SIG_IGN)
        raise SystemExit(128 + number)

    before = {number: signal.signal(number, end) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextlib.contextmanager
def stopped_by_a_signal(report: Callable[[], None]) -> Iterator[Callable[[], int]]:
    """Let the first interrupt or such signal only be noted, for work that can stop in good order at certain points.

    Yields what returns the signal's number, or 0 while there was none. `report` is called as it comes. The second one
    ends the block at once, as it would without this.

    Raises:
        KeyboardInterrupt: a second interrupt came.
    """
    numbers = [number for number in (signal.SIGINT, *NUMBERS) if signal.getsignal(number) is not signal.SIG_IGN]
    before = {number: signal.getsignal(number) for number in numbers}
    noted = 0

    def restore() -> None:
        for number, handler in before.items():
            signal.signal(number, handler)

    def note(number: int, frame: object) -> None:
        nonlocal noted
        noted = number
        restore()
        report()

    for number in numbers:
        signal.signal(number, note)
    try:
        yield lambda: noted
    finally:
        restore()

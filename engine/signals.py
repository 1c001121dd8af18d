"""Signals that end the program: SIGTERM, and SIGHUP when the terminal closes."""

import contextlib
import signal
from collections.abc import Callable, Iterator

NUMBERS = tuple(getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name))


@contextlib.contextmanager
def ended_by_a_signal() -> Iterator[None]:
    """Make SIGTERM and SIGHUP raise SystemExit in the block, so that everything is closed and saved.

    Signals that the program was started to ignore (nohup) stay ignored. The exit status is 128 plus the signal's
    number.
    """
    numbers = [number for number in NUMBERS if signal.getsignal(number) is not signal.SIG_IGN]

    def end(number: int, frame: object) -> None:
        for later in numbers:  # a closing terminal sends several
            signal.signal(later, signal.SIG_IGN)
        raise SystemExit(128 + number)

    before = {number: signal.signal(number, end) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextlib.contextmanager
def stopped_by_a_signal(report: Callable[[], None]) -> Iterator[Callable[[], int]]:
    """Let the block continue after the first Ctrl-C, SIGTERM or SIGHUP, for work that can stop at certain points only.

    `report` is called when the signal comes. Yields a function that returns the signal's number, or 0 before it came.
    The second signal ends the block at once.
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

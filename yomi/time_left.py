"""Estimates of the time left, for people: whether to show an estimate, and its text."""

from yomi.language import tr

MIN_SAMPLE = 3.0  # seconds of work after which the speed counts as measured
SECONDS_BETWEEN_UPDATES = 2.0


class TimeLeft:
    """Estimates that people can rely on: an estimate that has grown twice in a row is not reported."""

    def __init__(self) -> None:
        self._last = float("inf")
        self._has_grown = False
        self._begun: tuple[float, float] | None = None  # time and units after the first ones

    def measure(self, now: float, done: float, left: float) -> float | None:
        """Return the seconds to report for the `left` remaining units of work, or None if nothing can be reported yet.

        The units before the first measurement do not count, because they may include the time to load kernels.
        """
        if self._begun is None and done:
            self._begun = now, done
        if self._begun is None or now - self._begun[0] < MIN_SAMPLE or done <= self._begun[1]:
            return None
        return self.report(left * (now - self._begun[0]) / (done - self._begun[1]))

    def report(self, seconds: float | None) -> float | None:
        """Return the seconds to report, or None if nothing is measured yet or the estimate keeps growing."""
        if seconds is None:
            return None
        grows, self._last = seconds > self._last, seconds
        is_reported = not (grows and self._has_grown)
        self._has_grown = grows
        return seconds if is_reported else None


def duration(seconds: float) -> str:
    """Return a time as text, with no more digits than an estimate deserves: 40 s, 2 min, 1.5 h."""
    if seconds < 60:
        return tr("{n} s", n=max(1, round(seconds)))
    if seconds < 5400:
        return tr("{n} min", n=round(seconds / 60))
    hours = seconds / 3600
    return tr("{n} h", n=f"{hours:.1f}" if hours < 10 else round(hours))

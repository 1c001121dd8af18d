"""The part of the clock that the network takes for each move."""

from __future__ import annotations

FORGET = 0.95
"""Factor by which the longest lag shrinks with every move, unless a longer one comes."""
SMOOTH = 0.125
"""Weight of the newest measurement in the mean (TCP's own constant)."""


class Lag:
    """Seconds that moves lose on their way, there and back."""

    def __init__(self) -> None:
        self.mean = 0.0
        self.count = 0
        self._longest = 0.0

    def note(self, seconds: float) -> None:
        """Add a measurement. Negative ones (a server that gives time back) count as 0."""
        seconds = max(seconds, 0.0)
        self.mean = seconds if not self.count else self.mean + SMOOTH * (seconds - self.mean)
        self.count += 1
        # A clock is lost by the longest delay, not by the mean.
        self._longest = max(FORGET * self._longest, seconds)

    @property
    def expected(self) -> float:
        """Seconds to reserve for the next move."""
        return self._longest

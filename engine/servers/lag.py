"""How much of the clock the network takes for each move."""

from __future__ import annotations

FORGET = 0.95
"""Share of the longest lag seen that is still expected one move later, unless a longer one comes."""
SMOOTH = 0.125
"""Weight of the newest measurement in the mean that is shown (TCP's own constant)."""


class Lag:
    """The time that moves lose on their way, there and back, in seconds.

    A clock is lost by the longest delay and not by the mean, so `expected` follows the longest of late.
    """

    def __init__(self) -> None:
        """Begin without a measurement."""
        self.mean = 0.0
        self.count = 0
        self._longest = 0.0

    def note(self, seconds: float) -> None:
        """Take a measurement; what is negative (a server that gives time back) counts as none."""
        seconds = max(seconds, 0.0)
        self.mean = seconds if not self.count else self.mean + SMOOTH * (seconds - self.mean)
        self.count += 1
        self._longest = max(FORGET * self._longest, seconds)

    @property
    def expected(self) -> float:
        """Seconds to keep for the next move."""
        return self._longest

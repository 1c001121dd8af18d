"""Pauses between attempts to connect: they grow, and chance keeps clients from coming back all at once."""

from __future__ import annotations

import random

FIRST, FACTOR, LONGEST = 0.5, 2.0, 30.0
"""Seconds of the first pause, its growth, and the longest one before it is drawn."""
LONGEST_IN_GAME = 5.0
"""The longest one while the clock of a game may run."""
JITTER = 0.5
"""A pause is drawn from this share below to this share above: 45 s at most."""


class Backoff:
    """The pauses of one client."""

    def __init__(self, rng: random.Random) -> None:
        """Begin with the shortest pause."""
        self._rng = rng
        self.failures = 0
        """Attempts in a row that failed."""

    def next(self, in_game: bool = False) -> float:
        """Count a failure and return the seconds to wait; fewer where a game is in hand."""
        pause = min(FIRST * FACTOR ** min(self.failures, 30), LONGEST_IN_GAME if in_game else LONGEST)
        self.failures += 1
        return pause * self._rng.uniform(1.0 - JITTER, 1.0 + JITTER)

    def reset(self) -> None:
        """Say that an attempt has succeeded."""
        self.failures = 0

"""Pauses between attempts to connect. They grow, and are random so that clients do not all return at once."""

from __future__ import annotations

import random

FIRST, FACTOR, LONGEST = 0.5, 2.0, 30.0
LONGEST_IN_GAME = 5.0
"""Maximum while the clock of a game may run."""
JITTER = 0.5
"""A pause is multiplied by a factor from 1 - JITTER to 1 + JITTER."""


class Backoff:
    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        self.failures = 0

    def next(self, in_game: bool = False) -> float:
        """Count a failure and return the seconds to wait."""
        pause = min(FIRST * FACTOR ** min(self.failures, 30), LONGEST_IN_GAME if in_game else LONGEST)
        self.failures += 1
        return pause * self._rng.uniform(1.0 - JITTER, 1.0 + JITTER)

    def reset(self) -> None:
        self.failures = 0

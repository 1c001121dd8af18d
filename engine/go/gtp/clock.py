"""The clocks of a game as a GTP controller tells of them.

The session starts the clock when a move is asked for and stops it when the move is answered; what the controller says
(`set_left`) goes before what was measured here. Without such reports each of our moves is also charged the lag, since
the controller's clock runs on while the move travels.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace

from yomi.engine.clock import MAX_TIME, Clock, Clocks, TimeSettings, TimeSystem
from yomi.engine.color import BLACK, WHITE


class GtpClocks:
    """The clocks of both sides, as the controller sets and reports them, or as they are measured here."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        """Make a clock without limits; `now` returns seconds from any start."""
        self._now = now
        self.settings = TimeSettings()
        self._is_set = False
        self._left = {BLACK: Clock(), WHITE: Clock()}
        self._started: float | None = None
        self._color = BLACK
        self._reported = {BLACK: False, WHITE: False}

    def set(self, settings: TimeSettings) -> None:
        """Take new settings; both sides have all their time."""
        self.settings = settings
        self._is_set = True
        self.reset()

    def reset(self) -> None:
        """Give both sides all their time again (a new game under the same settings)."""
        for color in (BLACK, WHITE):
            self._left[color] = Clock.full(self.settings)
            self._reported[color] = False
        self._started = None

    def left(self, color: int) -> Clock:
        """Return what the clock of `color` shows; while it runs, what it showed at its start."""
        return self._left[color]

    def set_left(self, color: int, seconds: float, stones: int) -> None:
        """Take over what the controller's clock shows (GTP `time_left`).

        Args:
            color: Whose clock.
            seconds: Main time where `stones` is 0, else the rest of the period.
            stones: Stones to play in the period; with byo-yomi the periods left, as KGS has it.
        """
        seconds = min(max(seconds, 0.0), MAX_TIME)
        if not self.settings.is_limited:
            if self._is_set:
                return  # the game was said to have no limits
            system = TimeSystem.CANADIAN if stones else TimeSystem.ABSOLUTE
            self.settings = TimeSettings(system, 0.0 if stones else seconds, seconds if stones else 0.0, stones)
            self.reset()
        s = self.settings
        has_overtime = s.system in (TimeSystem.CANADIAN, TimeSystem.BYOYOMI)
        if stones > 0 and has_overtime:
            self._left[color] = Clock(s, 0.0, seconds, stones)
        else:
            self._left[color] = Clock(s, seconds, s.period, s.count)
        self._reported[color] = True

    def start(self, color: int, at: float | None = None) -> None:
        """Start the clock of `color`: it has been asked for a move, now or at the time `at` of `now`'s scale."""
        self._color = color
        self._started = self._now() if at is None else at

    def elapsed(self) -> float:
        """Return the time since `start`; 0 where no clock runs."""
        return 0.0 if self._started is None else self._now() - self._started

    def cancel(self) -> None:
        """Stop the clock and charge nothing (no move was made)."""
        self._started = None

    def stop(self, lag: float = 0.0) -> None:
        """Stop the clock and charge the move to it; `lag` is added where the controller does not report the time."""
        if self._started is None:
            return
        used = self.elapsed() + (0.0 if self._reported[self._color] else lag)
        self._started = None
        self._reported[self._color] = False
        self._left[self._color] = self._left[self._color].after(used)

    def clocks(self) -> Clocks:
        """Return what both clocks show; while one runs, what it showed at its start."""
        return {color: replace(left, is_exact=self._reported[color]) for color, left in self._left.items()}

"""The clocks of a game: both sides have the same settings."""

from __future__ import annotations

import time
from typing import Any

import yomi
from yomi.engine.clock import Clock, TimeSystem


class Clocks:
    """Clocks before each move, so that a move that is taken back returns its time."""

    def __init__(self, game: str, *, main: float, byoyomi: float, periods: int, increment: float) -> None:
        """Start Black's clock; all times are seconds.

        Raises:
            Error: byo-yomi and increment together, or no time at all.
        """
        given = yomi.Clock(max(main, increment), byoyomi, periods if byoyomi else 1, increment=increment)
        if not given.main + byoyomi:
            raise yomi.Error("a clock without time found: set main time, byo-yomi or an increment")
        self._given = given
        self._before = [dict.fromkeys((yomi.BLACK, yomi.WHITE), given._for_engine(game))]
        self.restart()

    @property
    def used(self) -> float:
        """Seconds of the current move."""
        return time.monotonic() - self._begin

    def restart(self) -> None:
        """Start the clock of the side to move, with the time that it had before this move."""
        self._begin = time.monotonic()

    def has_run_out(self, color: int, used: float) -> bool:
        """Return whether a move of `used` seconds is too slow."""
        return used > self._before[-1][color].allowed

    def move(self, color: int, used: float) -> None:
        """Count a move, and start the next one."""
        now = self._before[-1]
        self._before.append({**now, color: now[color].after(used)})
        self.restart()

    def undo(self) -> None:
        """Return the time of the last move; the time of moves before the first clock is not known."""
        if len(self._before) > 1:
            self._before.pop()
        self.restart()

    def limit(self) -> yomi.Limit:
        """Return the limit of the engine's move."""
        return yomi.Limit(clocks={color: _left(clock) for color, clock in self._before[-1].items()})

    def state(self, *, is_running: bool) -> dict[str, Any]:
        """Return the clocks for the page: time left at the start of the current move, and seconds used since."""
        now = self._before[-1]
        return {
            "B": _shown(now[yomi.BLACK]),
            "W": _shown(now[yomi.WHITE]),
            "increment": self._given.increment,
            "used": self.used if is_running else 0.0,
        }


def _shown(clock: Clock) -> dict[str, float]:
    return {"main": clock.main, "period": clock.settings.period, "periods": clock.count}


def _left(clock: Clock) -> yomi.Clock:
    if clock.settings.system is TimeSystem.BYOYOMI:
        return yomi.Clock(clock.main, clock.settings.period, clock.count)
    return yomi.Clock(clock.main, increment=clock.settings.increment)

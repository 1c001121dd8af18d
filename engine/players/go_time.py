"""Time control of Go: what the clocks of both sides show, and how much time a move may take.

Whoever plays the moves calls `start` when it is asked for a move and `stop` when it has answered; what a controller
says (`set_left`) goes before what was measured here. Without such reports each of our moves is also charged the lag,
since the controller's clock runs on while the move travels.

How a move's budget is found (`budget`; lag is what may be lost on every move, lateness what a loaded machine may take
besides, which is kept in reserve once, for this move, and moves_left an estimate from board size and ply):

- sudden death: soft = (left - reserve) / moves_left with reserve = lag_reserve + lateness, and the estimate has a
  floor, so that the time decays geometrically and never runs out. hard = at most 3 times soft, never more than
  left - reserve.
- byo-yomi: a move may use one period, less lag and lateness (MOST_RESERVE of it at most); periods are not spent.
- Canadian: period left / stones left, less lag and lateness, likewise.
- main time followed by byo-yomi or Canadian overtime: as sudden death, but at least what a move in overtime has.
- Fischer: as sudden death, plus the increment, less the lag; lateness and lag stay on the clock.

Where nothing is left after the reserve the budget is 0: answer at once.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from engine.clock import MAX_TIME, MOST_RESERVE, Budget, Left, TimeSettings, TimeSystem, charge, lag_reserve
from engine.color import BLACK, WHITE


class Clock:
    """The clocks of both sides."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        """Make a clock without limits; `now` returns seconds from any start."""
        self._now = now
        self.settings = TimeSettings()
        self._is_set = False
        self._left = {BLACK: Left(), WHITE: Left()}
        self._started: float | None = None
        self._color = BLACK
        self._reported = {BLACK: False, WHITE: False}

    @property
    def is_limited(self) -> bool:
        """Whether there is any limit."""
        return self.settings.system is not TimeSystem.NONE

    def set(self, settings: TimeSettings) -> None:
        """Take new settings; both sides have all their time."""
        self.settings = settings
        self._is_set = True
        self.reset()

    def reset(self) -> None:
        """Give both sides all their time again (a new game under the same settings)."""
        s = self.settings
        for color in (BLACK, WHITE):
            self._left[color] = Left(s.main, s.period, s.count)
            self._reported[color] = False
        self._started = None

    def left(self, color: int) -> Left:
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
        if not self.is_limited:
            if self._is_set:
                return  # the game was said to have no limits
            system = TimeSystem.CANADIAN if stones else TimeSystem.ABSOLUTE
            self.settings = TimeSettings(system, 0.0 if stones else seconds, seconds if stones else 0.0, stones)
            self.reset()
        s = self.settings
        has_overtime = s.system in (TimeSystem.CANADIAN, TimeSystem.BYOYOMI)
        if stones > 0 and has_overtime:
            self._left[color] = Left(0.0, seconds, stones)
        else:
            self._left[color] = Left(seconds, s.period, s.count)
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
        self._left[self._color] = charge(self.settings, self._left[self._color], used)

    def budget(self, color: int, area: int, ply: int, lag: float, lateness: float = 0.0) -> Budget | None:
        """Return the time for the next move of `color`, counted from the start of its clock; None: no limit.

        Args:
            color: Who is to move.
            area: Points of the board.
            ply: Moves played so far by both sides.
            lag: Time that may be lost on each move between the search's end and the controller's clock.
            lateness: Time that may be lost besides on this move, as this process was woken up late of late.
        """
        if not self.is_limited:
            return None
        left, is_exact = self._left[color], self._reported[color]
        return find_budget(self.settings, left, moves_left(area, ply), lag, is_exact, lateness)


def moves_left(area: int, ply: int) -> float:
    """Return an estimate of the moves that one side still has to play.

    Games end (by resignation, mostly) after about 0.6 moves a point; the floor keeps time for the endgame and for
    cleaning up.
    """
    return max(10 + area / 12, (0.6 * area + 10 - ply) / 2)


def find_budget(
    settings: TimeSettings, left: Left, moves: float, lag: float, is_exact: bool = True, lateness: float = 0.0
) -> Budget:
    """Return the time for a move; the rules are at the top of this module.

    Args:
        settings: The time system.
        left: What the clock shows.
        moves: Estimate of the moves still to play.
        lag: Reserve for a move.
        is_exact: `left` is what the controller said. What was measured here may be off by some moves in the count of
            a Canadian period; every move then gets the same share of the period, which is right for any count.
        lateness: Reserve for this move besides the lag.
    """
    reserve = lag_reserve(lag, moves) + lateness
    system = settings.system
    if system is TimeSystem.FISCHER:
        usable = max(left.main - lag - lateness, 0.0)
        spare = max(left.main - reserve, 0.0)
        soft = min(spare / moves + max(settings.increment - lag, 0.0), usable)
        hard = min(max(3 * spare / moves + max(settings.increment - lag, 0.0), soft), usable)
        limit = max(settings.move_limit - lag - lateness, 0.0)
        return Budget(min(soft, limit), min(hard, limit))
    spare = max(left.main - reserve, 0.0)
    if system is TimeSystem.ABSOLUTE:
        return Budget(spare / moves, min(3 * spare / moves, spare))
    first = settings.period / max(settings.count, 1) if system is TimeSystem.CANADIAN else settings.period
    kept = lag + min(lateness, max(MOST_RESERVE * first - lag, 0.0))
    if system is TimeSystem.CANADIAN and not is_exact:
        overtime = overtime_hard = max(first - kept, 0.0)
    elif system is TimeSystem.BYOYOMI:
        overtime = overtime_hard = max((left.period if left.count else 0.0) - kept, 0.0)
    else:
        stones = max(left.count, 1)
        overtime = max(left.period / stones - kept, 0.0)
        overtime_hard = max(min(3 * overtime, left.period / 2 - lag * (stones - 1) - kept), overtime)
    if left.main <= 0:
        return Budget(overtime, overtime_hard)
    # main time comes first; when it runs out within the move, what lies beyond is charged to the first period
    in_overtime = max(first - kept, 0.0)
    soft = max(left.main / moves, min(in_overtime, left.main + in_overtime))
    hard = max(soft, min(3 * soft, left.main + in_overtime))
    return Budget(soft, hard)

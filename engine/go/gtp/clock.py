"""The clocks of a game, as set by a GTP controller or measured here, and the commands about time.

The session starts a clock when a move is requested and stops it at the answer. Reported times (`set_left`) replace
measured ones. Without reports each of our moves is also charged the lag, because the controller's clock includes the
transit.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from yomi.engine.clock import MAX_TIME, Clock, ClockError, Clocks, TimeSettings, TimeSystem
from yomi.engine.color import BLACK, COLORS, WHITE
from yomi.engine.go.gtp.codec import Command, GtpError, expect_count, integer, real
from yomi.engine.go.gtp.table import command

if TYPE_CHECKING:
    from yomi.engine.go.gtp.session import Session


class GtpClocks:
    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        """Start without limits; `now` returns seconds from any origin."""
        self._now = now
        self.settings = TimeSettings()
        self._is_set = False
        self._left = {BLACK: Clock(), WHITE: Clock()}
        self._started: float | None = None
        self._color = BLACK
        self._reported = {BLACK: False, WHITE: False}

    def set(self, settings: TimeSettings) -> None:
        """Change the settings and reset both clocks."""
        self.settings = settings
        self._is_set = True
        self.reset()

    def reset(self) -> None:
        """Reset both clocks for a new game with the same settings."""
        for color in (BLACK, WHITE):
            self._left[color] = Clock.full(self.settings)
            self._reported[color] = False
        self._started = None

    def left(self, color: int) -> Clock:
        """Return the clock of `color`. A running clock shows its value at the start."""
        return self._left[color]

    def set_left(self, color: int, seconds: float, stones: int) -> None:
        """Set a clock to the controller's (GTP `time_left`).

        Args:
            color: side.
            seconds: main time if `stones` is 0, otherwise the rest of the period.
            stones: stones left in the period; with byo-yomi the periods left, as on KGS.
        """
        seconds = min(max(seconds, 0.0), MAX_TIME)
        if not self.settings.is_limited:
            if self._is_set:
                return  # the settings specify a game without limits
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
        """Start the clock of `color`, at the time `at` (default: now)."""
        self._color = color
        self._started = self._now() if at is None else at

    def elapsed(self) -> float:
        """Return the seconds since `start`; 0 if no clock runs."""
        return 0.0 if self._started is None else self._now() - self._started

    def cancel(self) -> None:
        """Stop the clock without a charge, because no move was made."""
        self._started = None

    def stop(self, lag: float = 0.0) -> None:
        """Stop the clock and charge the move; also `lag` if the controller does not report times."""
        if self._started is None:
            return
        used = self.elapsed() + (0.0 if self._reported[self._color] else lag)
        self._started = None
        self._reported[self._color] = False
        self._left[self._color] = self._left[self._color].after(used)

    def clocks(self) -> Clocks:
        """Return both clocks. A running clock shows its value at the start."""
        return {color: replace(left, is_exact=self._reported[color]) for color, left in self._left.items()}


KGS_SYSTEMS = (TimeSystem.NONE, TimeSystem.ABSOLUTE, TimeSystem.BYOYOMI, TimeSystem.CANADIAN)


@command("time_settings")
def time_settings(session: Session, request: Command) -> None:
    """Set main time, Canadian period and stones."""
    expect_count(request, 3, 3, "MAIN_TIME BYO_YOMI_TIME BYO_YOMI_STONES")
    main, period, stones = request.arguments
    session.clock.set(
        TimeSettings.from_gtp(
            real(main, "main time"), real(period, "byo-yomi time"), integer(stones, "number of byo-yomi stones")
        )
    )


@command("kgs-time_settings", "kata-time_settings")
def named_time_settings(session: Session, request: Command) -> None:
    """Set one of KGS's or KataGo's time systems."""
    systems = KGS_SYSTEMS if request.name == "kgs-time_settings" else tuple(TimeSystem)
    session.clock.set(TimeSettings.parse(list(request.arguments), systems))


@command("kata-list_time_settings")
def kata_list_time_settings(session: Session, request: Command) -> str:
    return " ".join(system.value for system in TimeSystem)


@command("time_left")
def time_left(session: Session, request: Command) -> None:
    expect_count(request, 2, 3, "COLOR TIME [STONES]")
    color = COLORS.get(request.arguments[0].lower())
    if color is None:
        raise GtpError(f"invalid color {request.arguments[0]!r}: expected black or white")
    seconds = real(request.arguments[1], "time")
    stones = integer(request.arguments[2], "number of stones") if len(request.arguments) > 2 else 0
    if stones < 0 or seconds > MAX_TIME:
        raise ClockError(f"expected a time up to {MAX_TIME:.0f} and stones of at least 0")
    session.clock.set_left(color, seconds, stones)

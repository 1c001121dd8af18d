"""Time control of Go: what the clocks of both sides show, and how much time a move may take.

All times are float seconds. Whoever plays the moves calls `start` when it is asked for a move and `stop` when it has
answered; what a controller says (`set_left`) goes before what was measured here. Without such reports each of our
moves is also charged the lag, since the controller's clock runs on while the move travels.

How a move's budget is found (`budget`; lag is what may be lost on every move, lateness what a loaded machine may take
besides, which is kept in reserve once, for this move, and moves_left an estimate from board size and ply):

- sudden death: soft = (left - reserve) / moves_left with reserve = lag * (1 + 0.6 * moves_left) + lateness, and the
  estimate has a floor, so that the time decays geometrically and never runs out. hard = at most 3 times soft, never
  more than left - reserve.
- byo-yomi: a move may use one period, less lag and lateness (MOST_RESERVE of it at most); periods are not spent.
- Canadian: period left / stones left, less lag and lateness, likewise.
- main time followed by byo-yomi or Canadian overtime: as sudden death, but at least what a move in overtime has.
- Fischer: as sudden death, plus the increment, less the lag; lateness and lag stay on the clock.

Where nothing is left after the reserve the budget is 0: answer at once.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

from engine.color import BLACK, WHITE

RESERVE_MOVES = 25
"""Own moves that the reserve is for at least, in games that go on longer than anyone expects."""
MOST_RESERVE = 0.9
"""Share of the overtime that a move has beyond which lateness takes nothing, so that short periods can be used."""
MAX_TIME = 1e10
"""Largest number of seconds that a controller may set."""


class ClockError(ValueError):
    """Time settings that do not exist or make no sense; the message says what was expected."""


class TimeSystem(Enum):
    """How a game is timed. The values are the names in kata-time_settings."""

    NONE = "none"
    ABSOLUTE = "absolute"
    CANADIAN = "canadian"
    BYOYOMI = "byoyomi"
    FISCHER = "fischer"
    FISCHER_CAPPED = "fischer-capped"


@dataclass(frozen=True, slots=True)
class TimeSettings:
    """The time that each side has for a game."""

    system: TimeSystem = TimeSystem.NONE
    main: float = 0.0
    period: float = 0.0
    """Length of a byo-yomi or Canadian period."""
    count: int = 0
    """Byo-yomi: periods. Canadian: stones to play in a period."""
    increment: float = 0.0
    """Fischer: added after each move."""
    main_limit: float = math.inf
    """Fischer: most that the clock may show."""
    move_limit: float = math.inf
    """Most that one move may take."""

    @classmethod
    def from_gtp(cls, main: float, period: float, stones: int) -> TimeSettings:
        """Return what GTP 2's `time_settings` means.

        A period of 0 is sudden death; a period without stones means no limit at all (GTP 2, section 4.2).
        """
        for value in (main, period, stones):
            _check_time(value)
        if period > 0 and stones == 0:
            return cls()
        if period == 0:
            return cls(TimeSystem.ABSOLUTE, main)
        return cls(TimeSystem.CANADIAN, main, period, stones)

    @classmethod
    def parse(cls, words: list[str], systems: tuple[TimeSystem, ...]) -> TimeSettings:
        """Read the arguments of kgs-time_settings or kata-time_settings.

        Args:
            words: The name of a system and its numbers.
            systems: Those that the command knows.

        Raises:
            ClockError: Another system, or numbers that do not suit it.
        """
        names = ", ".join(system.value for system in systems)
        name = words[0].lower().replace("byo-yomi", "byoyomi") if words else ""
        if name not in [system.value for system in systems]:
            raise ClockError(f"expected one of {names}, found {' '.join(words) or 'nothing'}")
        system = TimeSystem(name)
        numbers = [_number(word) for word in words[1:]]
        expected = {
            TimeSystem.NONE: "",
            TimeSystem.ABSOLUTE: "MAIN",
            TimeSystem.CANADIAN: "MAIN PERIOD STONES",
            TimeSystem.BYOYOMI: "MAIN PERIOD PERIODS",
            TimeSystem.FISCHER: "MAIN INCREMENT",
            TimeSystem.FISCHER_CAPPED: "MAIN INCREMENT MAIN_LIMIT MOVE_LIMIT",
        }[system].split()
        if len(numbers) != len(expected):
            raise ClockError(f"{name}: expected {' '.join(expected) or 'nothing more'}")
        return cls._build(system, numbers)

    @classmethod
    def _build(cls, system: TimeSystem, numbers: list[float]) -> TimeSettings:
        if system is TimeSystem.FISCHER_CAPPED:
            main_limit, move_limit = (math.inf if n < 0 else n for n in numbers[2:])
            for value in numbers[:2]:
                _check_time(value)
            if main_limit < numbers[0]:
                raise ClockError("fischer-capped: expected a main time limit of at least the main time")
            return cls(
                TimeSystem.FISCHER, numbers[0], increment=numbers[1], main_limit=main_limit, move_limit=move_limit
            )
        for value in numbers:
            _check_time(value)
        if system is TimeSystem.NONE:
            return cls()
        if system is TimeSystem.ABSOLUTE:
            return cls(system, numbers[0])
        if system is TimeSystem.FISCHER:
            return cls(system, numbers[0], increment=numbers[1])
        main, period, count = numbers
        if count != int(count):
            raise ClockError(f"{system.value}: expected a whole number of stones or periods, found {count:g}")
        if period == 0 or count == 0:
            # no overtime to play in; period > 0 and no stones is GTP's "no limit" only in time_settings
            return cls(TimeSystem.ABSOLUTE, main)
        return cls(system, main, period, int(count))


@dataclass(slots=True)
class Left:
    """What the clock of one side shows."""

    main: float = 0.0
    """Main time; Fischer: all time."""
    period: float = 0.0
    """Rest of the running period; meaningful once the main time is gone."""
    count: int = 0
    """Byo-yomi: periods left, the running one included. Canadian: stones left in the period."""


@dataclass(frozen=True, slots=True)
class Budget:
    """Time for one move from now on."""

    soft: float
    """Stop here, unless the choice is unsettled."""
    hard: float
    """Stop here in any case; at least `soft`."""


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
    reserve = lag * (1 + 0.6 * max(moves, RESERVE_MOVES)) + lateness
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


def charge(settings: TimeSettings, left: Left, used: float) -> Left:
    """Return what the clock shows after a move that took `used` seconds; nothing goes below 0."""
    system = settings.system
    if system is TimeSystem.NONE:
        return left
    if system is TimeSystem.FISCHER:
        return Left(min(max(left.main - used, 0.0) + settings.increment, settings.main_limit))
    if used < left.main or system is TimeSystem.ABSOLUTE:
        return Left(max(left.main - used, 0.0), left.period, left.count)
    beyond = used - max(left.main, 0.0)
    if system is TimeSystem.BYOYOMI:
        lost = min(int(beyond // settings.period), left.count)
        return Left(0.0, settings.period, max(left.count - lost, 1))
    if left.count <= 1:
        return Left(0.0, settings.period, settings.count)
    return Left(0.0, max(left.period - beyond, 0.0), left.count - 1)


def _check_time(value: float) -> None:
    if not (math.isfinite(value) and 0 <= value <= MAX_TIME):
        raise ClockError(f"expected a time or number from 0 to {MAX_TIME:.0f}, found {value:g}")


def _number(word: str) -> float:
    try:
        value = float(word)
    except ValueError:
        raise ClockError(f"expected a number, found {word!r}") from None
    if not math.isfinite(value):
        raise ClockError(f"expected a finite number, found {word!r}")
    return value

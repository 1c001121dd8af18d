"""Clocks of both games: how a game is timed, what a clock shows after a move, and the time that lags take.

All times are float seconds. How long a move may take is up to each game: yomi.engine.go.players.timing and
yomi.engine.shogi.players.timing.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

from yomi.errors import Error

RESERVE_MOVES = 25
"""Own moves that lag is kept in reserve for at least, in games that go on longer than anyone expects."""
RESERVE_SHARE = 0.6
"""Share of the lag that is kept for each of them: few moves lose all that may be lost."""
MOST_RESERVE = 0.9
"""Share of the overtime that a move has beyond which lateness takes nothing, so that short periods can be used."""
MAX_TIME = 1e10
"""Largest number of seconds that a controller may set."""


class ClockError(Error, ValueError):
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

    @property
    def is_limited(self) -> bool:
        """Whether there is any limit."""
        return self.system is not TimeSystem.NONE

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
class Clock:
    """One side's clock when a move is asked for."""

    settings: TimeSettings
    left: Left
    is_exact: bool = True
    """It is what the controller's clock shows. Else it was measured here, without the time that moves take on the way,
    and may be off by some moves in the count of a Canadian period."""

    @classmethod
    def of(cls, main: float, byoyomi: float = 0.0, increment: float = 0.0) -> Clock:
        """Return a clock of shogi: main time, and for each move a byo-yomi or else an increment, in seconds."""
        if byoyomi > 0:
            return cls(TimeSettings(TimeSystem.BYOYOMI, main, byoyomi, 1), Left(main, byoyomi, 1))
        system = TimeSystem.FISCHER if increment > 0 else TimeSystem.ABSOLUTE
        return cls(TimeSettings(system, main, increment=increment), Left(main))


Clocks = Mapping[int, Clock]
"""The clocks of both sides, by color."""


@dataclass(frozen=True, slots=True)
class Budget:
    """Time for one move from now on."""

    soft: float
    """Stop here, unless the choice is unsettled."""
    hard: float
    """Stop here in any case; at least `soft`."""


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


def lag_reserve(lag: float, moves: float) -> float:
    """Return the time to keep on a clock for delays.

    Args:
        lag: what may be lost on each move; all of it on the next one.
        moves: estimate of the own moves still to play.
    """
    return lag * (1 + RESERVE_SHARE * max(moves, RESERVE_MOVES))


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

"""Clocks of both games: time systems, the clock after a move, and reserves for lag. All times are float seconds.

How long a move takes is decided by each game's timing module.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any

from yomi.engine.color import BLACK, WHITE
from yomi.errors import Error

RESERVE_MOVES = 25  # own moves with a reserve for lag, at least: some games are longer than expected
RESERVE_SHARE = 0.6  # share of the lag that each of these moves reserves: only few moves lose all of it
MAX_RESERVE_SHARE = 0.9  # a reserve takes at most this share of a move's overtime, so that short periods can be used
MAX_TIME = 1e10  # seconds that a controller may set


class ClockError(Error, ValueError):
    pass


class TimeSystem(Enum):
    """A way to time games. The values are the names in kata-time_settings."""

    NONE = "none"
    ABSOLUTE = "absolute"
    CANADIAN = "canadian"
    BYOYOMI = "byoyomi"
    FISCHER = "fischer"
    FISCHER_CAPPED = "fischer-capped"


ARGUMENTS = {
    TimeSystem.NONE: "",
    TimeSystem.ABSOLUTE: "MAIN",
    TimeSystem.CANADIAN: "MAIN PERIOD STONES",
    TimeSystem.BYOYOMI: "MAIN PERIOD PERIODS",
    TimeSystem.FISCHER: "MAIN INCREMENT",
    TimeSystem.FISCHER_CAPPED: "MAIN INCREMENT MAIN_LIMIT MOVE_LIMIT",
}
FIELDS = {"STONES": "count", "PERIODS": "count"}  # fields of TimeSettings that have another name


@dataclass(frozen=True, slots=True)
class TimeSettings:
    system: TimeSystem = TimeSystem.NONE
    main: float = 0.0
    period: float = 0.0  # length of a byo-yomi or Canadian period
    count: int = 0  # byo-yomi: periods; Canadian: stones in a period
    increment: float = 0.0  # Fischer: added after each move
    main_limit: float = math.inf  # Fischer: most that the clock may show
    move_limit: float = math.inf  # most for one move

    @property
    def is_limited(self) -> bool:
        return self.system is not TimeSystem.NONE

    @classmethod
    def from_gtp(cls, main: float, period: float, stones: int) -> TimeSettings:
        """Convert the arguments of GTP 2's `time_settings`.

        A period of 0 is sudden death. A period without stones is no limit (GTP 2, section 4.2).
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
            words: name of a system and its numbers.
            systems: the systems of the command.

        Raises:
            ClockError: unknown system, or wrong numbers.
        """
        names = ", ".join(system.value for system in systems)
        name = words[0].lower().replace("byo-yomi", "byoyomi") if words else ""
        if name not in [system.value for system in systems]:
            raise ClockError(f"expected one of {names}, found {' '.join(words) or 'nothing'}")
        system = TimeSystem(name)
        numbers = [_number(word) for word in words[1:]]
        expected = ARGUMENTS[system].split()
        if len(numbers) != len(expected):
            raise ClockError(f"{name}: expected {' '.join(expected) or 'nothing more'}")
        values: dict[str, Any] = {FIELDS.get(word, word.lower()): n for word, n in zip(expected, numbers, strict=True)}
        for field, value in values.items():
            if field.endswith("_limit") and value < 0:
                values[field] = math.inf
            elif not field.endswith("_limit"):
                _check_time(value)
        if values.get("main_limit", math.inf) < values.get("main", 0.0):
            raise ClockError("fischer-capped: expected a main time limit of at least the main time")
        if "count" in values:
            if values["count"] != int(values["count"]):
                raise ClockError(f"{name}: expected a whole number of stones or periods, found {values['count']:g}")
            values["count"] = int(values["count"])
            if not values["period"] or not values["count"]:
                # no overtime to play in; period > 0 and no stones is GTP's "no limit" only in time_settings
                return cls(TimeSystem.ABSOLUTE, values["main"])
        return cls(TimeSystem.FISCHER if system is TimeSystem.FISCHER_CAPPED else system, **values)


@dataclass(frozen=True, slots=True)
class Clock:
    settings: TimeSettings = TimeSettings()
    main: float = 0.0  # main time; Fischer: all time
    period: float = 0.0  # rest of the current period, once the main time is used up
    count: int = 0  # byo-yomi: periods left, including the current one; Canadian: stones left in the period
    # Whether this is the controller's reading. Otherwise it was measured here: it lacks the lag of moves, and the
    # stones of a Canadian period may be off by some moves.
    is_exact: bool = True

    @classmethod
    def full(cls, settings: TimeSettings) -> Clock:
        return cls(settings, settings.main, settings.period, settings.count)

    @classmethod
    def of(cls, main: float, byoyomi: float = 0.0, increment: float = 0.0) -> Clock:
        """Return a shogi clock: main time, and for each move a byo-yomi or otherwise an increment. All are seconds."""
        if byoyomi > 0:
            return cls.full(TimeSettings(TimeSystem.BYOYOMI, main, byoyomi, 1))
        system = TimeSystem.FISCHER if increment > 0 else TimeSystem.ABSOLUTE
        return cls.full(TimeSettings(system, main, increment=increment))

    @property
    def allowed(self) -> float:
        """Seconds that the next move may take; infinite without a limit."""
        match self.settings.system:
            case TimeSystem.NONE:
                return math.inf
            case TimeSystem.BYOYOMI:
                return self.main + self.period * self.count
            case TimeSystem.CANADIAN:
                return self.main + self.period
            case _:
                return self.main

    def after(self, used: float) -> Clock:
        """Return the clock after a move that took `used` seconds. No number is below 0."""
        settings, system = self.settings, self.settings.system
        if system is TimeSystem.NONE:
            return self
        if system is TimeSystem.FISCHER:
            return replace(self, main=min(max(self.main - used, 0.0) + settings.increment, settings.main_limit))
        if used < self.main or system is TimeSystem.ABSOLUTE:
            return replace(self, main=max(self.main - used, 0.0))
        beyond = used - max(self.main, 0.0)
        if system is TimeSystem.BYOYOMI:
            lost = min(int(beyond // settings.period), self.count)
            return replace(self, main=0.0, period=settings.period, count=max(self.count - lost, 1))
        if self.count <= 1:
            return replace(self, main=0.0, period=settings.period, count=settings.count)
        return replace(self, main=0.0, period=max(self.period - beyond, 0.0), count=self.count - 1)


Clocks = Mapping[int, Clock]  # by color
UNLIMITED: Clocks = {BLACK: Clock(), WHITE: Clock()}


@dataclass(frozen=True, slots=True)
class Budget:
    """Time for one move.

    A game's timing module returns seconds after the start of the clock. The player converts them to times of
    time.monotonic().
    """

    soft: float = math.inf  # stop here, unless the choice is unsettled; earlier if nothing can change it
    hard: float = math.inf  # stop here in any case; at least `soft`
    start: float = 0.0  # when the clock started
    free: float = 0.0  # until here a move costs no later time (byo-yomi): no reason to stop earlier

    @classmethod
    def shared(cls, spare: float, moves: float, each: float, last: float) -> Budget:
        """Return the budget of one of `moves` moves that share the time `spare`.

        Each move also has the time `each`. A hard choice takes up to three shares of `spare`. Both limits are at most
        `last`.
        """
        soft = min(spare / moves + each, last)
        return cls(soft, min(max(3 * spare / moves + each, soft), last))


def lag_reserve(lag: float, moves: float) -> float:
    """Return the time to keep on a clock for delays.

    Args:
        lag: seconds that each move may lose. The next move reserves all of it.
        moves: estimated number of own moves left.
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

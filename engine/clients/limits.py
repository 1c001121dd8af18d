"""What an engine may use for a move or a game: a clock, seconds per move, playouts, visits, nodes; and its clock."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass

from yomi.engine.clock import Clock, TimeSettings, TimeSystem
from yomi.nets.errors import LineError

TIMES = ("main", "byoyomi", "increment", "seconds")
COUNTS = ("periods", "stones", "playouts", "visits", "nodes", "depth")


class SpecError(LineError, ValueError):
    """An engine or its limits that are not well described; the message is one line."""


@dataclass(frozen=True, slots=True)
class EngineLimits:
    """The limits of one engine; None for no limit. Times are in seconds."""

    main: float | None = None
    """Main time of a game."""
    byoyomi: float | None = None
    """Time of a byo-yomi period."""
    periods: int | None = None
    """Byo-yomi periods (1)."""
    stones: int | None = None
    """Moves to play within a period; the byo-yomi is Canadian then."""
    increment: float | None = None
    """Added to the main time after each move."""
    seconds: float | None = None
    """Time per move. The engine is told it, and loses nothing if it takes longer."""
    playouts: int | None = None
    visits: int | None = None
    nodes: int | None = None
    depth: int | None = None

    def __post_init__(self) -> None:
        """Check the values."""
        for name in TIMES:
            value = getattr(self, name)
            if value is not None and not (math.isfinite(value) and 0 <= value <= 1e7):
                raise SpecError(f"{name} {value}: expected seconds from 0 on")
        for name in COUNTS:
            value = getattr(self, name)
            if value is not None and value < 1:
                raise SpecError(f"{name} {value}: expected at least 1")
        if self.increment is not None and self.byoyomi is not None:
            raise SpecError("increment and byoyomi: expected one of them")
        if self.byoyomi is None and (self.periods is not None or self.stones is not None):
            raise SpecError("periods or stones without byoyomi: expected byoyomi, too")
        if self.periods is not None and self.stones is not None:
            raise SpecError("periods and stones: expected one of them")
        if self.has_clock and self.seconds is not None:
            raise SpecError("seconds (a move) beside main, byoyomi or increment: expected one kind")

    @property
    def has_clock(self) -> bool:
        """Whether there is a clock that can run out."""
        return self.main is not None or self.byoyomi is not None or self.increment is not None

    def over(self, other: EngineLimits) -> EngineLimits:
        """Return these limits, completed by those of `other`; a clock of either kind replaces the other's as a whole.

        Raises:
            SpecError: they do not go together.
        """
        mine = {name: value for name, value in asdict(self).items() if value is not None}
        clock = ("main", "byoyomi", "periods", "stones", "increment", "seconds")
        replaced = clock if any(name in mine for name in clock) else ()
        return EngineLimits(**{name: value for name, value in asdict(other).items() if name not in replaced} | mine)

    def clock(self, *, increment_first: bool = False) -> TimeSettings:
        """Return the clock of a game.

        Args:
            increment_first: the increment is added before each move, the first one included (USI and the servers of
                shogi); else after it (Go).
        """
        main = self.main or 0.0
        if self.byoyomi is not None:
            if self.stones is not None:
                return TimeSettings(TimeSystem.CANADIAN, main, self.byoyomi, self.stones)
            return TimeSettings(TimeSystem.BYOYOMI, main, self.byoyomi, self.periods or 1)
        if self.increment is not None:
            return TimeSettings(TimeSystem.FISCHER, main + self.increment * increment_first, increment=self.increment)
        if self.main is not None:
            return TimeSettings(TimeSystem.ABSOLUTE, main)
        return TimeSettings()

    def __str__(self) -> str:
        """Return them in words, for tables and records."""
        return " ".join(f"{name} {value:g}" for name, value in asdict(self).items() if value is not None) or "no limit"


def limits_of(values: Mapping[str, object]) -> EngineLimits:
    """Return limits from texts or numbers by name.

    Raises:
        SpecError: an unknown name, no number, or limits that do not go together.
    """
    found: dict[str, float | int] = {}
    for name, value in values.items():
        if name not in (*TIMES, *COUNTS):
            raise SpecError(f"unknown limit '{name}': expected one of {', '.join((*TIMES, *COUNTS))}")
        try:
            number = float(str(value))
        except ValueError:
            raise SpecError(f"{name} '{value}': expected a number") from None
        if name in COUNTS and not number.is_integer():
            raise SpecError(f"{name} {value}: expected a whole number")
        found[name] = int(number) if name in COUNTS else number
    return EngineLimits(**found)  # type: ignore[arg-type]  # checked above


class GameClock:
    """One side's clock in one game."""

    def __init__(self, settings: TimeSettings, margin: float) -> None:
        """Set it.

        Args:
            settings: its time for the game.
            margin: seconds that a move may take beyond its time without losing the game.
        """
        self.settings = settings
        self.margin = margin
        self.left = Clock.full(settings)
        self.used = 0.0
        """All time used in the game."""

    @property
    def is_limited(self) -> bool:
        """Whether it can run out."""
        return self.settings.system is not TimeSystem.NONE

    def allowed(self) -> float:
        """Return the seconds that the next move may take."""
        left = self.left
        match self.settings.system:
            case TimeSystem.NONE:
                return math.inf
            case TimeSystem.BYOYOMI:
                return left.main + left.period * left.count
            case TimeSystem.CANADIAN:
                return left.main + left.period
            case _:
                return left.main

    def spend(self, seconds: float) -> bool:
        """Charge a move; return whether it was in time."""
        in_time = seconds <= self.allowed() + self.margin
        self.used += seconds
        self.left = self.left.after(seconds)
        return in_time

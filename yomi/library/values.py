"""Limits, clocks, scores, reports and decisions of the library. Nothing compiled is imported."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from yomi.engine.clock import Clock as EngineClock
from yomi.engine.clock import TimeSettings, TimeSystem
from yomi.engine.color import BLACK, WHITE
from yomi.engine.search.types import Limits
from yomi.errors import Error

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from yomi.engine.search.types import MoveReport as EngineMove
    from yomi.engine.search.types import SearchReport


class LimitError(Error, ValueError):
    """A limit or a clock that cannot be."""


@dataclass(frozen=True, slots=True)
class Clock:
    """Time that one side has left."""

    main: float = 0.0
    """Seconds of main time."""
    byoyomi: float = 0.0
    """Seconds of each overtime period."""
    periods: int = 1
    increment: float = 0.0
    """Seconds added after each move (Fischer). Byo-yomi and increment exclude each other."""

    def __post_init__(self) -> None:
        """Check the numbers."""
        for name in ("main", "byoyomi", "periods", "increment"):
            _check(name, getattr(self, name), 0)
        if self.byoyomi and self.increment:
            raise LimitError(f"byoyomi {self.byoyomi:g} and increment {self.increment:g} found, expected one of them")

    def _for_engine(self) -> EngineClock:
        if self.byoyomi:
            settings = TimeSettings(TimeSystem.BYOYOMI, self.main, self.byoyomi, self.periods)
            return EngineClock.full(settings)
        return EngineClock.of(self.main, increment=self.increment)


@dataclass(frozen=True, slots=True)
class Limit:
    """When a search ends: at the first limit reached. Without any limit a search takes 5 seconds."""

    seconds: float | None = None
    visits: int | None = None
    """Visits of the root, including visits kept from an earlier search."""
    playouts: int | None = None
    """Visits that this search adds."""
    depth: int | None = None
    """Moves of the principal variation."""
    clocks: Clock | Mapping[int, Clock] | None = None
    """Time left: one clock for both sides, or a clock for BLACK and for WHITE."""

    def __post_init__(self) -> None:
        """Check the numbers."""
        _check("seconds", self.seconds, 0)
        for name in ("visits", "playouts", "depth"):
            _check(name, getattr(self, name), 1)

    @property
    def _limits(self) -> Limits:
        return Limits(self.visits, self.playouts, self.seconds)

    @property
    def _clocks(self) -> dict[int, EngineClock] | None:
        if self.clocks is None:
            return None
        both = {BLACK: self.clocks, WHITE: self.clocks} if isinstance(self.clocks, Clock) else self.clocks
        return {color: clock._for_engine() for color, clock in both.items()}


def _check(name: str, value: float | None, least: int) -> None:
    if value is not None and not (least <= value < math.inf):
        raise LimitError(f"{name} {value!r} found, expected a number of at least {least}")


@dataclass(frozen=True, slots=True)
class Score:
    """Value of a position or move from the point of view of one side."""

    side: int
    """The side that `winrate`, `lead` and `mate` are for: BLACK or WHITE."""
    winrate: float
    """Expected points of a game in [0, 1]; a draw counts half."""
    lead: float | None = None
    """Go: points by which the side leads. None in shogi."""
    mate: int | None = None
    """Shogi: moves until the side mates; negative if the side is mated. None if no mate was found."""

    def pov(self, side: int) -> Score:
        """Return the score from the point of view of BLACK or WHITE."""
        if side not in (BLACK, WHITE):
            raise ValueError(f"side {side!r} found, expected yomi.BLACK or yomi.WHITE")
        if side == self.side:
            return self
        lead, mate = self.lead, self.mate
        return Score(side, 1.0 - self.winrate, None if lead is None else -lead, None if mate is None else -mate)

    @property
    def black(self) -> Score:
        """The score for Black."""
        return self.pov(BLACK)

    @property
    def white(self) -> Score:
        """The score for White."""
        return self.pov(WHITE)

    def centipawns(self, scale: float = 756.0) -> float:
        """Return the winrate as an evaluation of shogi: scale * ln(winrate / (1 - winrate))."""
        bounded = min(max(self.winrate, 1e-6), 1.0 - 1e-6)
        return scale * math.log(bounded / (1.0 - bounded))

    def __str__(self) -> str:
        """Return the score on one line, such as "Black 54.3%, +2.1"."""
        name = "Black" if self.side == BLACK else "White"
        text = f"{name} {self.winrate:.1%}"
        if self.mate is not None:
            return f"{text}, mate {self.mate:+d}"
        return text if self.lead is None else f"{text}, {self.lead:+.1f}"


@dataclass(frozen=True, slots=True)
class Names:
    """How moves and scores of a position are written."""

    move: Callable[[int], str]
    has_lead: bool
    area: tuple[int, int] | None
    """Rows and columns of the ownership; None if the game has none."""


class MoveReport:
    """One move of a report."""

    __slots__ = ("_names", "_raw", "side")

    side: int
    """Side to move in the position of the report."""

    def __init__(self, raw: EngineMove, side: int, names: Names) -> None:
        """Wrap a move of the search."""
        self._raw, self.side, self._names = raw, side, names

    @property
    def move(self) -> str:
        """The move as text: "D4" or "pass" in Go, USI such as "7g7f" in shogi."""
        return self._names.move(self._raw.move)

    @property
    def visits(self) -> int:
        """Visits of the search for this move."""
        return self._raw.visits

    @property
    def score(self) -> Score:
        """Value of the move, for the side to move."""
        return Score(
            self.side, self._raw.winrate, self._raw.score_lead if self._names.has_lead else None, self._raw.mate
        )

    @property
    def winrate(self) -> float:
        """Winrate of the side to move, in [0, 1]."""
        return self._raw.winrate

    @property
    def prior(self) -> float:
        """Probability that the network gives the move."""
        return self._raw.prior

    @property
    def lcb(self) -> float:
        """Lower confidence bound of the winrate; may leave [0, 1]."""
        return self._raw.lcb

    @property
    def variation(self) -> tuple[str, ...]:
        """The moves that the search expects, this one first."""
        return tuple(map(self._names.move, self._raw.pv))

    @property
    def symmetry_of(self) -> str | None:
        """The move that was searched instead, because a symmetry of the board leads from it to this move."""
        return None if self._raw.symmetry_of is None else self._names.move(self._raw.symmetry_of)

    def __repr__(self) -> str:
        """Return move, visits and score."""
        return f"<MoveReport {self.move}: {self.visits} visits, {self.score}>"


class Report:
    """A search: its moves, best first, and the value of the position."""

    def __init__(self, raw: SearchReport, names: Names) -> None:
        """Wrap a report of the search."""
        self._raw, self._names = raw, names

    @property
    def side_to_move(self) -> int:
        """BLACK or WHITE."""
        return self._raw.side_to_move

    @property
    def visits(self) -> int:
        """Visits of the position."""
        return self._raw.visits

    @property
    def playouts(self) -> int:
        """Visits that this search added."""
        return self._raw.playouts

    @property
    def seconds(self) -> float:
        """Duration of the search so far."""
        return self._raw.seconds

    @property
    def depth(self) -> int:
        """Length of the longest line searched."""
        return self._raw.deepest

    @property
    def score(self) -> Score:
        """Value of the position, for the side to move."""
        mate = self._raw.moves[0].mate if self._raw.moves else None
        return Score(self.side_to_move, self._raw.winrate, self._raw.score_lead if self._names.has_lead else None, mate)

    @cached_property
    def moves(self) -> tuple[MoveReport, ...]:
        """The moves that the search visited, best first."""
        return tuple(MoveReport(move, self.side_to_move, self._names) for move in self._raw.moves)

    @property
    def best(self) -> MoveReport | None:
        """The first move; None if the search visited none."""
        return self.moves[0] if self.moves else None

    @cached_property
    def ownership(self) -> npt.NDArray[np.float32] | None:
        """Go: expected owner of each point, float32[size, size], +1 Black, -1 White. None in shogi."""
        raw = self._raw.ownership
        if raw is None or self._names.area is None:
            return None
        return (raw if self.side_to_move == BLACK else -raw).reshape(self._names.area)

    def __getitem__(self, move: str) -> MoveReport:
        """Return the report of a move; KeyError if the search did not visit it."""
        for found in self.moves:
            if found.move == move:
                return found
        raise KeyError(f"move {move!r} was not searched; expected one of {', '.join(m.move for m in self.moves)}")

    def __repr__(self) -> str:
        """Return visits, score and the best move."""
        best = f", best {self.best.move}" if self.best else ""
        return f"<Report: {self.visits} visits, {self.score}{best}>"

    def _repr_html_(self) -> str:
        """Return a table of the best moves and a graph of their visits, for notebooks."""
        from yomi.library.html import report_html

        return report_html(self)


@dataclass(frozen=True)
class Decision:
    """The move that an engine chose."""

    move: str | None
    """None if there is no legal move, or `win` is set. Set even if the engine resigns."""
    ponder: str | None
    """The expected answer."""
    resign: bool
    win: bool
    """Shogi: the engine declares a win by entering king."""
    note: str
    """Source of a move that was not searched: "book" or "mate"."""
    report: Report = field(repr=False)


def read(raw: Any, names: Names) -> Decision:
    """Return a decision of a player (yomi.engine.players.request.Decision) with moves as text."""
    move = None if raw.move is None else names.move(raw.move)
    ponder = None if raw.ponder is None else names.move(raw.ponder)
    return Decision(move, ponder, raw.resign, raw.win, raw.note, Report(raw.report, names))

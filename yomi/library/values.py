"""Limits, clocks, scores, reports and decisions of the library. Nothing compiled is imported."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from yomi.engine.clock import Clock as EngineClock
from yomi.engine.clock import TimeSettings, TimeSystem
from yomi.engine.color import BLACK, WHITE
from yomi.engine.records import CENTIPAWNS, usi_centipawns
from yomi.engine.search.types import Limits
from yomi.errors import Error
from yomi.library.arguments import is_number, shown
from yomi.library.arguments import side as checked_side

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from yomi.engine.search.types import SearchReport


class LimitError(Error, ValueError):
    """A limit or a clock with impossible values."""


@dataclass(frozen=True, slots=True)
class Clock:
    """Time that one side has left."""

    main: float = 0.0
    """Seconds of main time."""
    byoyomi: float = 0.0
    """Seconds of each overtime period."""
    periods: int = 1
    """Periods left. Each lasts for one move."""
    stones: int | None = None
    """Canadian byo-yomi, in place of `periods`: moves to play within one period."""
    increment: float = 0.0
    """Seconds added after each move (Fischer). Byo-yomi and increment exclude each other."""

    def __post_init__(self) -> None:
        for name in ("main", "byoyomi", "increment"):
            _check(name, getattr(self, name), 0)
        _check("periods", self.periods, 0, is_whole=True)
        if self.stones is not None:
            _check("stones", self.stones, 1, is_whole=True)
        if self.byoyomi and self.increment:
            raise LimitError(f"byoyomi {self.byoyomi:g} and increment {self.increment:g} found, expected one of them")
        if self.stones is not None and (not self.byoyomi or self.periods != 1):
            found = f"byoyomi {self.byoyomi:g} and periods {self.periods}"
            raise LimitError(f"stones {self.stones} with {found} found, expected a byoyomi of one period")

    def _for_engine(self, game: str) -> EngineClock:
        if self.stones is not None:
            if game == "shogi":  # its players divide no period among moves
                raise LimitError(f"stones {self.stones} found, expected byo-yomi of one move for shogi")
            return EngineClock.full(TimeSettings(TimeSystem.CANADIAN, self.main, self.byoyomi, self.stones))
        if self.byoyomi:
            return EngineClock.full(TimeSettings(TimeSystem.BYOYOMI, self.main, self.byoyomi, self.periods))
        return EngineClock.of(self.main, increment=self.increment)


@dataclass(frozen=True, slots=True)
class Limit:
    """When a search ends: at the first limit reached. Without any limit a search takes 5 seconds."""

    seconds: float | None = None
    visits: int | None = None
    """Visits of the root, including visits kept from an earlier search. In an alpha-beta search: nodes."""
    playouts: int | None = None
    """Visits that this search adds."""
    depth: int | None = None
    """Moves of the principal variation."""
    clocks: Clock | Mapping[int, Clock] | None = None
    """Time left: one clock for both sides, or a clock for BLACK and for WHITE."""
    nodes: int | None = None
    """Nodes of an alpha-beta search (shogi). In a tree the same as playouts."""

    def __post_init__(self) -> None:
        if self.seconds is not None:
            _check("seconds", self.seconds, 0)
        for name in ("visits", "playouts", "depth", "nodes"):
            if (value := getattr(self, name)) is not None:
                _check(name, value, 1, is_whole=True)
        clocks = self.clocks
        if clocks is None or isinstance(clocks, Clock):
            return
        is_table = isinstance(clocks, Mapping) and set(clocks) == {BLACK, WHITE}
        if not is_table or not all(isinstance(clock, Clock) for clock in clocks.values()):
            raise LimitError(
                f"clocks {shown(clocks)} found, expected a yomi.Clock, or one for yomi.BLACK and for yomi.WHITE"
            )

    @property
    def _limits(self) -> Limits:
        limits = Limits(self.visits, self.playouts, self.seconds, self.depth)
        return limits.least(Limits(playouts=self.nodes))

    def _clocks(self, game: str) -> dict[int, EngineClock] | None:
        if self.clocks is None:
            return None
        both = {BLACK: self.clocks, WHITE: self.clocks} if isinstance(self.clocks, Clock) else self.clocks
        return {color: clock._for_engine(game) for color, clock in both.items()}


def _check(name: str, value: object, least: int, *, is_whole: bool = False) -> None:
    if not is_number(value, least, 10**12 if is_whole else math.inf, is_whole=is_whole):  # as in the options
        kind, end = ("an integer", " and at most 10**12") if is_whole else ("a number", "")
        raise LimitError(f"{name} {shown(value)} found, expected {kind} of at least {least}{end}")


@dataclass(frozen=True, slots=True)
class Score:
    """Value of a position or move from the point of view of one side."""

    side: int
    """The side that `winrate`, `lead` and `mate` are for: BLACK or WHITE."""
    winrate: float
    """Expected points of a game in [0, 1]; a draw counts half. NaN if another engine reports none."""
    lead: float | None = None
    """Go: points by which the side leads. None in shogi, and if another engine reports none."""
    mate: int | None = None
    """Shogi: moves until the side mates; negative if it is mated, 0 after the mate. None if no mate was found."""

    def pov(self, side: int) -> Score:
        """Return the score from the point of view of BLACK or WHITE."""
        checked_side("side", side)
        if side == self.side:
            return self
        lead, mate = self.lead, self.mate
        return Score(side, 1.0 - self.winrate, None if lead is None else -lead, None if mate is None else -mate)

    @property
    def black(self) -> Score:
        return self.pov(BLACK)

    @property
    def white(self) -> Score:
        return self.pov(WHITE)

    def centipawns(self, scale: float = CENTIPAWNS) -> float:
        """Return the winrate in centipawns, as USI prints it: scale * ln(winrate / (1 - winrate)). NaN stays NaN."""
        return self.winrate if math.isnan(self.winrate) else usi_centipawns(self.winrate, scale)

    def __str__(self) -> str:
        """Return the score on one line, such as "Black 54.3%, +2.1"."""
        name = "Black" if self.side == BLACK else "White"
        text = f"{name} unknown" if math.isnan(self.winrate) else f"{name} {self.winrate:.1%}"
        if self.mate is not None:
            return f"{text}, mate {self.mate:+d}" if self.mate else f"{text}, mate"
        return text if self.lead is None else f"{text}, {self.lead:+.1f}"


@dataclass(frozen=True, slots=True)
class Names:
    """The notation of moves and scores in a position."""

    move: Callable[[int], str]
    has_lead: bool
    area: tuple[int, int] | None
    """Rows and columns of the ownership; None if the game has none."""


@dataclass(frozen=True, slots=True)
class MoveReport:
    """One move of a report."""

    move: str
    """The move as text: "D4" or "pass" in Go, USI such as "7g7f" in shogi."""
    visits: int
    """Visits of the search for this move."""
    score: Score
    """Value of the move, for the side to move."""
    prior: float
    """Probability that the network gives the move."""
    lcb: float
    """Lower confidence bound of the winrate; may leave [0, 1]."""
    variation: tuple[str, ...]
    """The moves that the search expects, this one first."""
    symmetry_of: str | None
    """The move that was searched instead, because a symmetry of the board leads from it to this move."""
    unit: str = "visits"
    """Unit of `visits`: visits of a tree, or nodes of an alpha-beta search."""

    @property
    def side(self) -> int:
        """Side to move in the position of the report."""
        return self.score.side

    @property
    def winrate(self) -> float:
        """Winrate of the side to move, in [0, 1]."""
        return self.score.winrate

    def __repr__(self) -> str:
        return f"<MoveReport {self.move}: {self.visits} {self.unit}, {self.score}>"


class Report:
    """A search: its moves, best first, and the value of the position."""

    def __init__(self, raw: SearchReport, names: Names) -> None:
        # Moves are formatted when they are first read: most callers want few of them.
        self._raw, self._names = raw, names
        self.side_to_move = raw.side_to_move
        """BLACK or WHITE."""
        self.visits = raw.visits
        """Visits of the position, or nodes: see `unit`."""
        self.unit = raw.unit
        """Unit of the counts: visits of a tree, or nodes of an alpha-beta search."""
        self.playouts = raw.playouts
        """Visits that this search added."""
        self.seconds = raw.seconds
        """Duration of the search so far."""
        self.depth = raw.deepest
        """Length of the longest line searched."""

    @property
    def score(self) -> Score:
        """Value of the position, for the side to move."""
        raw = self._raw
        is_mated = not raw.moves and raw.proven < 0 and not self._names.has_lead
        mate = raw.moves[0].mate if raw.moves else 0 if is_mated else None
        return self._score(raw.winrate, raw.score_lead, mate)

    @cached_property
    def moves(self) -> tuple[MoveReport, ...]:
        """The moves that the search visited, best first."""
        name = self._names.move
        return tuple(
            MoveReport(
                name(move.move),
                move.visits,
                self._score(move.winrate, move.score_lead, move.mate),
                move.prior,
                move.lcb,
                tuple(map(name, move.pv)),
                None if move.symmetry_of is None else name(move.symmetry_of),
                self.unit,
            )
            for move in self._raw.moves
        )

    def _score(self, winrate: float, lead: float, mate: int | None) -> Score:
        has_lead = self._names.has_lead and not math.isnan(lead)
        return Score(self.side_to_move, winrate, lead if has_lead else None, mate)

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
        best = f", best {self.best.move}" if self.best else ""
        return f"<Report: {self.visits} {self.unit}, {self.score}{best}>"

    def _repr_html_(self) -> str:
        """Return a table of the best moves and a graph of their visits, for notebooks."""
        return _table(self)


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
    """Source of a move that was not searched: "book move", "mate", "try" or "declaration of the win"; otherwise ""."""
    report: Report = field(repr=False)


def read(raw: Any, names: Names) -> Decision:
    """Convert a player's decision (yomi.engine.players.request.Decision), whose moves become text."""
    move = None if raw.move is None else names.move(raw.move)
    ponder = None if raw.ponder is None else names.move(raw.ponder)
    return Decision(move, ponder, raw.resign, raw.win, raw.note, Report(raw.report, names))


# -- a report as HTML --------------------------------------------------------------------------------------------------

ROWS = 10
"""Moves in the table."""
LINE_MOVES = 8
"""Moves of a variation in the table."""
BAR_WIDTH, BAR_HEIGHT = 120, 12
BEST, OTHER = "#2563eb", "#93b4f5"


def _table(report: Report) -> str:
    """Return a table of the best moves; the bars show their shares of the visits."""
    from yomi.engine.pictures import element, escaped

    has_lead = report.score.lead is not None
    heads = ["move", "winrate", *(["lead"] if has_lead else []), "prior", report.unit, "", "variation"]
    head = element("tr", "".join(element("th", text) if text else "<th></th>" for text in heads))
    most = max((move.visits for move in report.moves), default=0)
    rows = "".join(element("tr", "".join(_cells(move, most, has_lead))) for move in report.moves[:ROWS])
    title = element("caption", escaped(f"{report.score}, {report.visits} {report.unit}, {report.seconds:.1f} s"))
    return element("table", f"{title}<thead>{head}</thead><tbody>{rows}</tbody>")


def _cells(move: MoveReport, most: int, has_lead: bool) -> Iterator[str]:
    from yomi.engine.pictures import element, escaped

    yield element("td", escaped(move.move))
    yield element("td", f"{move.winrate:.1%}" if move.score.mate is None else f"mate {move.score.mate:+d}")
    if has_lead:
        yield element("td", f"{move.score.lead:+.1f}")
    yield element("td", f"{move.prior:.1%}")
    yield element("td", str(move.visits))
    width = BAR_WIDTH * move.visits / max(most, 1)
    bar = element("rect", width=width, height=BAR_HEIGHT, fill=BEST if move.visits == most else OTHER)
    picture = element(
        "svg", bar, xmlns="http://www.w3.org/2000/svg", width=BAR_WIDTH, height=BAR_HEIGHT, role="img",
        aria_label=f"{move.visits} {move.unit}",
    )  # fmt: skip
    yield element("td", picture)
    yield element("td", escaped(" ".join(move.variation[:LINE_MOVES])))

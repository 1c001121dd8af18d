"""Requests to players, and their answers, for all games. These are plain data: nothing compiled is imported."""

import threading
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Generic, Protocol, Self, TypeVar

from yomi.engine.clock import Clock, Clocks
from yomi.engine.evaluators.base import EvaluatorError
from yomi.engine.options import Options
from yomi.engine.search.types import Limits, RootMoves, SearchableGame, SearchReport


class PlayableGame(SearchableGame, Protocol):
    @property
    def side_to_move(self) -> int: ...

    @property
    def ply(self) -> int:
        """Moves made since the start of the game."""

    @property
    def is_over(self) -> bool: ...

    def copy(self) -> Self: ...

    def push(self, move: int) -> None:
        """Play a move of the side to move, or raise ValueError if the rules forbid it."""

    def undo(self) -> None:
        """Take back the last move, or raise ValueError if there is none."""


G = TypeVar("G", bound=PlayableGame)


class LoadingError(EvaluatorError):
    """A network, a book or a device cannot be used."""


@dataclass(slots=True, eq=False)
class Request(Generic[G]):
    """A request for a move or an analysis. Its methods are thread-safe."""

    game: G  # the position and its moves; the player works on a copy
    # Settings in place of the player's. Options that take effect with `load` have no effect here.
    options: Options | None = None
    clocks: Clocks | None = None  # None: no clock
    limits: Limits = field(default_factory=Limits)  # in addition to the limits of the options and the clock
    avoid: Collection[int] = ()  # moves that may not be chosen
    # The only moves that may be chosen, all legal. With None the book may answer, too.
    allow: Collection[int] | None = None
    # Go: color -> move -> number of moves after the root before which the move may not be played. The root's moves are
    # restricted by `avoid` and `allow`.
    avoid_below: Mapping[int, Mapping[int, int]] = field(default_factory=dict)
    goals: Mapping[int, int] = field(default_factory=dict)  # Go: root move -> visits; see Search.raise_visits
    infinite: bool = False  # search until `stop`, whatever the options are
    ponder: bool = False  # the last move is a guess: neither clock nor options limit the search until `ponderhit`
    hide_history: bool = False  # hide the moves before the root from the network
    keep_tree: bool = True  # continue with the tree of an earlier search if it contains this position
    # Called every `interval` seconds in the player's thread. An exception from it ends the search.
    on_report: Callable[[SearchReport], None] | None = None
    interval: float = 1.0  # seconds
    first_report: float | None = None  # seconds until the first report; None: `interval`
    pv_length: int = 60  # maximum of moves in a principal variation after the first
    # when the clock of the side to move started (time.monotonic())
    start: float = field(default_factory=time.monotonic)
    _on_change: Callable[[], None] | None = None
    _changed: threading.Condition = field(default_factory=threading.Condition)
    _is_stopped: bool = False
    _is_hit: bool = False

    @property
    def clock(self) -> Clock | None:
        """The clock of the side to move; None without a limit."""
        clock = self.clocks[self.game.side_to_move] if self.clocks else None
        return clock if clock is not None and clock.settings.is_limited else None

    @property
    def is_stopped(self) -> bool:
        return self._is_stopped

    @property
    def is_pondering(self) -> bool:
        """Whether the opponent has not played the expected move yet."""
        return self.ponder and not self._is_hit

    @property
    def is_unlimited(self) -> bool:
        """Whether neither clock nor options limit the search now."""
        return self.infinite or self.is_pondering

    def stop(self) -> None:
        self._is_stopped = True
        self._notify()

    def ponderhit(self, clocks: Clocks | None = None, at: float | None = None) -> None:
        """Report that the opponent has played the expected move.

        Args:
            clocks: current clocks; None: as before.
            at: when our clock started; None: now.
        """
        self.start = time.monotonic() if at is None else at
        self.clocks = clocks or self.clocks
        self._is_hit = True
        self._notify()

    def wait(self, timeout: float) -> bool:
        """Wait for `stop` or `ponderhit`, at most `timeout` seconds. Return False if the time ran out."""
        with self._changed:
            return self._changed.wait_for(lambda: self._is_stopped or self._is_hit, timeout)

    def listen(self, on_change: Callable[[], None] | None) -> None:
        """Let `stop` and `ponderhit` call `on_change` in their thread, to wake the player. None ends this.

        When `listen(None)` has returned, no call is in progress: it would interrupt the search after this one.
        """
        with self._changed:
            self._on_change = on_change

    def _notify(self) -> None:
        with self._changed:
            self._changed.notify_all()
            if self._on_change is not None:
                self._on_change()


class Adviser:
    """Assists one search with knowledge of the game, such as a mate search. The base class does nothing.

    `annotate` is thread-safe.
    """

    @property
    def line(self) -> tuple[int, ...]:
        """The moves of a won line; empty if none was found."""
        return ()

    @property
    def is_done(self) -> bool:
        """Whether the search can end, because the line decides the game."""
        return False

    def start(self) -> None:
        """Start to look for a won line, beside the search."""

    def stop(self) -> None:
        """Stop looking for a line. A line that was found remains available."""

    def annotate(self, report: SearchReport) -> SearchReport:
        """Return a report of the search with the adviser's additions."""
        return report


@dataclass(slots=True)
class Turn(Generic[G]):
    """The state of a request while the player answers it."""

    request: Request[G]
    options: Options  # the request's, or the player's
    root: G  # the position to search
    begin: float  # time.monotonic(); limits in seconds count from here
    limits: Limits  # the least ones of the options and the request
    moves: RootMoves
    forced: int | None = None  # the only move, which needs no time
    adviser: Adviser = field(default_factory=Adviser)

    def has_enough(self, report: SearchReport) -> bool:
        """Return whether a proof, the depth, or (if the turn pondered) the playouts allow the search to end."""
        request, depth, playouts = self.request, self.limits.depth, self.limits.playouts
        if request.is_unlimited:
            return False
        is_deep = depth is not None and bool(report.moves) and (report.depth or len(report.moves[0].pv)) >= depth
        is_long = request.ponder and playouts is not None and report.playouts >= playouts
        return bool(report.proven) or is_deep or is_long


@dataclass(frozen=True, slots=True)
class Decision:
    move: int | None  # None: no legal move, or a declared win; with `resign` the move that it would have played
    resign: bool = False
    win: bool = False  # shogi: declares the win; goes before all other fields
    draw: bool = False  # shogi: declares the draw of the 24-point rule. Only engines of matches do
    ponder: int | None = None  # expected answer
    report: SearchReport = field(default_factory=SearchReport)  # the search
    note: str = ""  # origin of a move without a search: book, mate

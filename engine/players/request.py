"""What a player is asked for and what it answers, in every game. Plain data; nothing compiled is imported."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Generic, Protocol, Self, TypeVar

from yomi.engine.clock import Clock, Clocks
from yomi.engine.evaluators.base import EvaluatorError
from yomi.engine.search.types import Limits, SearchableGame, SearchReport

if TYPE_CHECKING:
    from yomi.engine.options import Options


class PlayableGame(SearchableGame, Protocol):
    """A game as players see it."""

    @property
    def side_to_move(self) -> int:
        """BLACK or WHITE."""

    @property
    def ply(self) -> int:
        """Moves made since the start of the game."""

    @property
    def is_over(self) -> bool:
        """Whether the rules have ended it."""

    def copy(self) -> Self:
        """Return an independent copy."""

    def push(self, move: int) -> None:
        """Play a move of the side to move.

        Raises:
            ValueError: the rules forbid it.
        """

    def undo(self) -> None:
        """Take the last move back.

        Raises:
            ValueError: there is none.
        """


G = TypeVar("G", bound=PlayableGame)


class LoadingError(EvaluatorError):
    """A network, a book or a device that cannot be used; the message is one line."""


@dataclass(slots=True, eq=False)
class Request(Generic[G]):
    """A move or an analysis that is asked for. While one thread answers it, others may call its methods."""

    game: G
    """The position and the moves that led to it. The player works on a copy."""
    options: Options | None = None
    """Settings in place of the player's, for this request only; what takes effect with `load` stays as it is."""
    clocks: Clocks | None = None
    """What the clocks show; None: no clock."""
    limits: Limits = field(default_factory=Limits)
    """Further limits, besides those of the options and the clock."""
    depth: int | None = None
    """Length of the principal variation at which the search ends."""
    avoid: Collection[int] = ()
    """Moves that may not be chosen."""
    allow: Collection[int] | None = None
    """If given, the only moves that may be chosen, legal ones; what would answer without them (a book) does not."""
    infinite: bool = False
    """Search until `stop`, whatever the options say."""
    ponder: bool = False
    """The last move of the game is a guess; neither clock nor options limit the search until `ponderhit`."""
    hide_moves: bool = False
    """Do not show the network the moves before the root."""
    keep_tree: bool = True
    """Go on with the tree of an earlier search if it holds this position."""
    on_report: Callable[[SearchReport], None] | None = None
    """Called every `interval` seconds in the player's thread. An exception that it raises ends the search."""
    interval: float = 1.0
    """Seconds."""
    first_report: float | None = None
    """Seconds until the first report; None: as between the others."""
    pv_length: int = 60
    """Moves of a principal variation after its first, at most."""
    start: float = field(default_factory=time.monotonic)
    """When the clock of the side to move started (time.monotonic())."""
    on_change: Callable[[], None] | None = None
    """Set by the player: called after `stop` and `ponderhit` in their thread, to wake the player up."""
    _changed: threading.Condition = field(default_factory=threading.Condition)
    _is_stopped: bool = False
    _is_hit: bool = False

    @property
    def clock(self) -> Clock | None:
        """The clock of the side to move; None if there is no limit."""
        clock = self.clocks[self.game.side_to_move] if self.clocks else None
        return clock if clock is not None and clock.settings.is_limited else None

    @property
    def is_stopped(self) -> bool:
        """Whether an answer is wanted at once."""
        return self._is_stopped

    @property
    def is_pondering(self) -> bool:
        """Whether the opponent has not moved yet."""
        return self.ponder and not self._is_hit

    def stop(self) -> None:
        """Ask for the answer at once."""
        self._is_stopped = True
        self._notify()

    def ponderhit(self, clocks: Clocks | None = None, at: float | None = None) -> None:
        """Say that the opponent has played the expected move.

        Args:
            clocks: what the clocks show now; None: what was said before.
            at: when our clock started; None: now.
        """
        self.start = time.monotonic() if at is None else at
        self.clocks = clocks or self.clocks
        self._is_hit = True
        self._notify()

    def wait(self, timeout: float) -> bool:
        """Wait for `stop` or `ponderhit`; False if neither comes within `timeout` seconds."""
        with self._changed:
            return self._changed.wait_for(lambda: self._is_stopped or self._is_hit, timeout)

    def _notify(self) -> None:
        with self._changed:
            self._changed.notify_all()
        on_change = self.on_change
        if on_change is not None:
            on_change()


@dataclass(frozen=True, slots=True)
class Decision:
    """What a player has chosen."""

    move: int | None
    """None if there is no legal move or a win is declared; also given with `resign` (what it would have played)."""
    resign: bool = False
    win: bool = False
    """The win is declared (shogi); goes before all else."""
    ponder: int | None = None
    """The expected answer."""
    report: SearchReport = field(default_factory=SearchReport)
    """The search behind it."""
    note: str = ""
    """Where the move comes from if not from a search: book, mate."""

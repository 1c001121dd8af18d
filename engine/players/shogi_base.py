"""What the protocol, the terminal and self-play need of a player of shogi; `engine.players.shogi` is the real one.

One thread after the other calls a player. The exception is a `Task`: while one thread thinks about it, others may stop
it or turn its pondering into thinking.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from engine.search.limits import Limits

if TYPE_CHECKING:
    from engine.games.shogi.game import ShogiGame
    from engine.options import Options


@dataclass(frozen=True, slots=True)
class Times:
    """What the clocks of a game show when a move is asked for, in seconds."""

    black: float = 0.0
    white: float = 0.0
    byoyomi: float = 0.0
    black_increment: float = 0.0
    white_increment: float = 0.0


@dataclass(slots=True, eq=False)
class Task:
    """A move that is asked for."""

    times: Times | None = None
    """None: no clock."""
    limits: Limits = field(default_factory=Limits)
    """Besides those of the options and the clock."""
    depth: int | None = None
    """Length of the principal variation at which the search ends."""
    moves: tuple[int, ...] | None = None
    """The only moves that may be chosen, legal ones; whatever else would answer without them does not."""
    infinite: bool = False
    """Search without limit, whatever the options say."""
    ponder: bool = False
    """The last move of the game is a guess; neither clock nor options limit the search until `ponderhit`."""
    start: float = field(default_factory=time.monotonic)
    """When the clock started (time.monotonic())."""
    on_change: Callable[[], None] | None = None
    """Called after `stop` and `ponderhit`, in their thread: wakes the player up."""
    _changed: threading.Condition = field(default_factory=threading.Condition)
    _is_stopped: bool = False
    _is_hit: bool = False

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

    def ponderhit(self, times: Times | None, at: float) -> None:
        """Say that the opponent has played the expected move.

        Args:
            times: What the clocks show now; None: what was said before.
            at: When the clock started.
        """
        self.start = at
        self.times = times or self.times
        self._is_hit = True
        self._notify()

    def wait(self, timeout: float) -> bool:
        """Wait for `stop` or `ponderhit`; False where neither comes within `timeout` seconds."""
        with self._changed:
            return self._changed.wait_for(lambda: self._is_stopped or self._is_hit, timeout)

    def _notify(self) -> None:
        with self._changed:
            self._changed.notify_all()
        on_change = self.on_change
        if on_change is not None:
            on_change()


@dataclass(frozen=True, slots=True)
class Line:
    """One move of the root with what the search thinks of it."""

    pv: tuple[int, ...]
    winrate: float
    """[0, 1], for the side to move."""
    mate: int | None = None
    """Plies to the mate; negative where the side to move is mated; None where none is known."""


@dataclass(frozen=True, slots=True)
class Progress:
    """A search as it stands."""

    lines: tuple[Line, ...]
    """Best first; may be empty."""
    seconds: float = 0.0
    playouts: int = 0
    seldepth: int = 0
    fullness: float = 0.0
    """Share of the tree's memory in use."""


@dataclass(frozen=True, slots=True)
class ShogiDecision:
    """What a player has chosen."""

    move: int | None
    """None where there is no legal move; also given when `resign` is set (what it would have played)."""
    resign: bool = False
    win: bool = False
    """The win is declared; goes before all else."""
    ponder: int | None = None
    """The expected answer."""
    progress: Progress = Progress(())
    """The search behind it."""
    note: str = ""
    """Where the move comes from if not from a search: book, mate, only move."""


@dataclass(frozen=True, slots=True)
class MateAnswer:
    """What a search for a mate has found."""

    moves: tuple[int, ...] = ()
    """The mate; empty where none was found."""
    is_refuted: bool = False
    """There is no mate. Neither this nor moves: the search was ended first."""


class LoadingError(Exception):
    """A network, a book or a device that cannot be used; the message is one line."""


class ShogiThinker(Protocol):
    """A player as the protocol sees it."""

    options: Options
    """The settings, which anybody may change at any time; they take effect with the next task, or `load`."""

    @property
    def description(self) -> str:
        """What plays, on one line."""

    @property
    def needs_loading(self) -> bool:
        """Whether options were changed that take effect with `load`."""

    def load(self) -> None:
        """Load what the options name, as far as it is not loaded; may take long.

        Raises:
            LoadingError: it cannot be loaded.
        """

    def set_position(self, sfen: str, moves: Sequence[str]) -> None:
        """Take up a position and the moves from it on, in USI.

        Raises:
            ValueError: a text is no position or no legal move; the game is as it was.
        """

    def think(self, task: Task, on_report: Callable[[Progress], None]) -> ShogiDecision:
        """Choose a move; block until it is chosen or the task is stopped.

        Where a task ponders or is infinite the answer may come before `stop` or `ponderhit`; the caller holds it back
        until then.
        """

    def find_mate(self, task: Task) -> MateAnswer | None:
        """Search for a mate; None where this cannot be done."""

    def diagram(self) -> str:
        """Return the position as text of several lines."""

    def legal_moves(self) -> Sequence[int]:
        """Return the legal moves."""

    def new_game(self) -> None:
        """Forget what belongs to the last game."""

    def clear(self) -> None:
        """Forget the tree and all evaluations."""

    def close(self) -> None:
        """Stop everything and release devices and threads; nothing may be called afterwards."""


class ShogiGamePlayer(Protocol):
    """A player as the terminal and self-play see it, which play on its board."""

    game: ShogiGame
    """Changed in place or replaced while nothing thinks."""
    options: Options

    @property
    def description(self) -> str:
        """What plays, on one line."""

    def go(self) -> ShogiDecision:
        """Choose a move for the side to move in `game` without playing it."""

    def new_game(self) -> None:
        """Forget what belongs to the last game."""

    def clear(self) -> None:
        """Forget the tree and all evaluations."""

    def close(self) -> None:
        """Release devices and threads."""

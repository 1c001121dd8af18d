"""What plays shogi for a client: yomi's own player."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from engine.options import OptionError
from engine.players.shogi_base import ShogiDecision, ShogiThinker, Task, Times
from engine.servers.seat import Seat, YomiSeat


@dataclass(slots=True)
class Turn:
    """A move that is asked for, or thought about ahead."""

    sfen: str
    """The initial position; `startpos` for the usual one."""
    moves: Sequence[str]
    """The moves since, in USI; with `task.ponder` the last one is a guess."""
    task: Task = field(default_factory=Task)
    """Other threads stop it here, or tell that the guess was right."""


class ShogiSeat(Seat, Protocol):
    """See engine.servers.seat.Seat; one thread after the other calls it, but for `times`."""

    @property
    def centipawns(self) -> float:
        """Centipawns of a logit of its winrates."""

    def begin(self, max_moves: int) -> None:
        """Begin a game, which is drawn after `max_moves` moves; 0 where the server tells no limit."""

    def times(self, times: Times | None, lag: float) -> Times | None:
        """Return the clocks as a task of this seat wants them; any thread may call.

        Args:
            times: as the server keeps them.
            lag: seconds that each move loses on its way.
        """

    def think(self, turn: Turn) -> ShogiDecision:
        """Choose a move; block until it is chosen or the task is stopped."""

    def end(self, result: str) -> None:
        """Take note that a game is over: win, lose or draw."""


class YomiShogiSeat(YomiSeat[ShogiThinker]):
    """yomi's own player."""

    def __init__(self, player: ShogiThinker) -> None:
        """Play with `player`; the limit of moves in its options is the user's own."""
        super().__init__(player)
        self._max_moves = player.options.max_moves

    @property
    def centipawns(self) -> float:
        """Centipawns of a logit."""
        return self._player.options.centipawns

    def begin(self, max_moves: int) -> None:
        """Begin a game; the user's own limit holds where the server's is none that the option takes."""
        options = self._player.options
        try:
            options.set("max_moves", max_moves)
        except OptionError:
            options.max_moves = self._max_moves
        self._player.new_game()

    def times(self, times: Times | None, lag: float) -> Times | None:
        """Keep the lag in reserve, and take it off a byo-yomi, of which the player keeps no more than a share."""
        self._player.options.lag = self._lag + lag
        if times is None or not times.byoyomi:
            return times
        self._player.options.lag = self._lag
        return replace(times, byoyomi=max(times.byoyomi - lag, 0.0))

    def think(self, turn: Turn) -> ShogiDecision:
        """Choose a move."""
        self._player.set_position(turn.sfen, turn.moves)
        return self._player.think(turn.task, lambda progress: None)

    def end(self, result: str) -> None:
        """Nothing has to be done."""

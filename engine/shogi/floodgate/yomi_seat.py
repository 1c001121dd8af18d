"""What plays shogi for a client: yomi's own player."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

from yomi.engine.clock import Clock, Clocks, TimeSystem
from yomi.engine.options import OptionError
from yomi.engine.players.request import Decision, Request
from yomi.engine.servers.seat import Seat, YomiSeat
from yomi.engine.shogi.game import ShogiGame
from yomi.engine.shogi.players.player import ShogiPlayer


@dataclass(slots=True)
class Turn:
    """A move that is asked for, or thought about ahead."""

    sfen: str
    """The initial position; `startpos` for the usual one."""
    moves: Sequence[str]
    """The moves since, in USI; if the request ponders the last one is a guess."""
    request: Request[Any]
    """Other threads stop it here, or tell that the guess was right. The seat puts the game in, if it needs one."""


class ShogiSeat(Seat, Protocol):
    """See yomi.engine.servers.seat.Seat; one thread after the other calls it, but for `set_clocks`."""

    @property
    def centipawns(self) -> float:
        """Centipawns of a logit of its winrates."""

    def begin(self, max_moves: int) -> None:
        """Begin a game, which is drawn after `max_moves` moves; 0 where the server tells no limit."""

    def set_clocks(self, request: Request[Any], clocks: Clocks | None, lag: float) -> None:
        """Put the clocks into a request as this seat wants them; any thread may call.

        Args:
            request: of a turn.
            clocks: as the server keeps them.
            lag: seconds that each move loses on its way.
        """

    def think(self, turn: Turn) -> Decision:
        """Choose a move; block until it is chosen or the request is stopped."""

    def end(self, result: str) -> None:
        """Take note that a game is over: win, lose or draw."""


class YomiShogiSeat(YomiSeat[ShogiPlayer]):
    """yomi's own player."""

    def __init__(self, player: ShogiPlayer) -> None:
        """Play with `player`."""
        super().__init__(player)
        self._options = player.options
        self._game = ShogiGame()

    @property
    def centipawns(self) -> float:
        """Centipawns of a logit."""
        return self._player.options.centipawns

    def begin(self, max_moves: int) -> None:
        """Begin a game; the user's own limit holds if the server's is none that the option takes."""
        self._options = self._player.options.copy()
        with contextlib.suppress(OptionError):
            self._options.set("max_moves", max_moves)
        self._player.new_game(self._game)

    def set_clocks(self, request: Request[Any], clocks: Clocks | None, lag: float) -> None:
        """Keep the lag in reserve, or take it off a byo-yomi, of which the player keeps no more than a share."""
        if clocks is not None and any(clock.settings.system is TimeSystem.BYOYOMI for clock in clocks.values()):
            clocks, lag = {color: less_byoyomi(clock, lag) for color, clock in clocks.items()}, 0.0
        request.clocks, request.options = clocks, replace(self._options, lag=self._options.lag + lag)

    def think(self, turn: Turn) -> Decision:
        """Choose a move."""
        self._game = turn.request.game = self._game.going_on(turn.sfen, turn.moves)
        return self._player.decide(turn.request)

    def end(self, result: str) -> None:
        """Nothing has to be done."""


def less_byoyomi(clock: Clock, lag: float) -> Clock:
    """Return a clock whose byo-yomi is shorter by `lag` seconds."""
    return Clock.of(clock.main, max(clock.settings.period - lag, 0.0))

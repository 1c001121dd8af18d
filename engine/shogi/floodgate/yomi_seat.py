"""The seat of yomi's own player on a server."""

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
    """A move to choose, or a position to ponder."""

    sfen: str  # the initial position or `startpos`
    moves: Sequence[str]  # moves since, in USI; the last one is a guess if the request ponders
    # Other threads stop it or confirm the guess here. The seat sets its game.
    request: Request[Any]


class ShogiSeat(Seat, Protocol):
    """An engine on a server. Its calls come one after the other, except `set_clocks`."""

    @property
    def centipawns(self) -> float:
        """Centipawns of a logit of its winrates."""

    def begin(self, max_moves: int) -> None:
        """Start a game, which is drawn after `max_moves` moves (0: unknown)."""

    def set_clocks(self, request: Request[Any], clocks: Clocks | None, lag: float) -> None:
        """Put a turn's clocks into its request; any thread may call.

        Args:
            request: the turn's request.
            clocks: the server's clocks.
            lag: seconds that each move loses on its way.
        """

    def think(self, turn: Turn) -> Decision:
        """Choose a move; block until it is chosen or the request is stopped."""

    def end(self, result: str) -> None:
        """Note that a game is over: win, lose or draw."""


class YomiShogiSeat(YomiSeat[ShogiPlayer]):
    def __init__(self, player: ShogiPlayer) -> None:
        super().__init__(player)
        self._options = player.options
        self._game = ShogiGame()

    @property
    def centipawns(self) -> float:
        return self._player.options.centipawns

    def begin(self, max_moves: int) -> None:
        # The user's own limit remains if the option does not accept the server's.
        self._options = self._player.options.copy()
        with contextlib.suppress(OptionError):
            self._options.set("max_moves", max_moves)
        self._player.new_game(self._game)

    def set_clocks(self, request: Request[Any], clocks: Clocks | None, lag: float) -> None:
        # The player reserves only a share of a byo-yomi, so the lag is taken off the byo-yomi itself.
        if clocks is not None and any(clock.settings.system is TimeSystem.BYOYOMI for clock in clocks.values()):
            clocks, lag = {color: less_byoyomi(clock, lag) for color, clock in clocks.items()}, 0.0
        request.clocks, request.options = clocks, replace(self._options, lag=self._options.lag + lag)

    def think(self, turn: Turn) -> Decision:
        self._game = turn.request.game = self._game.going_on(turn.sfen, turn.moves)
        return self._player.decide(turn.request)

    def end(self, result: str) -> None: ...


def less_byoyomi(clock: Clock, lag: float) -> Clock:
    """Return a clock whose byo-yomi is shorter by `lag` seconds."""
    return Clock.of(clock.left.main, max(clock.settings.period - lag, 0.0))

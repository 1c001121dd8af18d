"""The engine of a server account: yomi's own player, or another USI engine."""

from __future__ import annotations

import contextlib
import logging
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from yomi.engine.clients.client import TIMEOUT, EngineError, EngineMove
from yomi.engine.clients.usi import UsiClient, clock_words
from yomi.engine.clock import Clock, Clocks, TimeSystem
from yomi.engine.color import BLACK, WHITE
from yomi.engine.options import TABLE, OptionError
from yomi.engine.players.request import Decision, Request
from yomi.engine.records import CENTIPAWNS
from yomi.engine.search.types import MoveReport, SearchReport
from yomi.engine.servers.game import EngineSeat, YomiSeat
from yomi.engine.servers.settings import Account
from yomi.engine.shogi.game import ShogiGame
from yomi.engine.shogi.notation import NotationError, parse_usi, parse_usi_moves
from yomi.engine.shogi.players.player import ShogiPlayer
from yomi.engine.shogi.records.record import LINE_MOVES

log = logging.getLogger("yomi.servers")

RULE = "EnteringKingRule"  # the option of YaneuraOu and other USI engines


@dataclass(slots=True)
class MoveTask:
    """A move to choose, or a position to ponder."""

    sfen: str  # the initial position or `startpos`
    moves: Sequence[str]  # moves since, in USI; the last one is a guess if the request ponders
    # Other threads stop it or confirm the guess here. The seat sets its game.
    request: Request[Any]
    ply: int = 0  # number of moves before the move


class YomiShogiSeat(YomiSeat[ShogiPlayer]):
    """yomi's player on a server. Calls come one after the other, except `set_clocks`, which any thread may call."""

    def __init__(self, player: ShogiPlayer) -> None:
        super().__init__(player)
        self._options = player.options
        self._game = ShogiGame()

    @property
    def centipawns(self) -> float:
        return self._player.options.centipawns

    def begin(self, max_moves: int, entering_king: str | None = None) -> None:
        """Start a game by the server's rules.

        Args:
            max_moves: the game is drawn after this many moves; 0: unknown.
            entering_king: rule of the declaration win, a value of that option; None: unknown.
        """
        self._options = self._player.options.copy()
        own = self._options.entering_king
        if entering_king is not None and entering_king != own:
            log.info("the server's rule of the declaration win is %s: it replaces %s for this game", entering_king, own)
            self._options.set("entering_king", entering_king)
        # The user's own limit remains if the option does not accept the server's.
        with contextlib.suppress(OptionError):
            self._options.set("max_moves", max_moves)
        self._player.new_game(self._game)

    def set_clocks(self, request: Request[Any], clocks: Clocks | None, lag: float) -> None:
        """Put the server's clocks into a turn's request; each move loses `lag` seconds."""
        # The player reserves only a share of a byo-yomi, so the lag is taken off the byo-yomi itself.
        if clocks is not None and any(clock.settings.system is TimeSystem.BYOYOMI for clock in clocks.values()):
            clocks, lag = {color: less_byoyomi(clock, lag) for color, clock in clocks.items()}, 0.0
        request.clocks, request.options = clocks, replace(self._options, lag=self._options.lag + lag)

    def think(self, turn: MoveTask) -> Decision:
        """Choose a move; block until it is chosen or the request is stopped."""
        self._game = turn.request.game = self._game.continued(turn.sfen, turn.moves)
        return self._player.decide(turn.request)

    def end(self, result: str) -> None:
        """Do nothing: yomi needs no cleanup after a game."""


def less_byoyomi(clock: Clock, lag: float) -> Clock:
    return Clock.of(clock.main, max(clock.settings.period - lag, 0.0))


class UsiSeat(EngineSeat[UsiClient]):
    centipawns = CENTIPAWNS

    def __init__(self, account: Account) -> None:
        """Start the engine. Raises GaveUpError if it does not start, or lacks an option."""
        super().__init__(account, UsiClient, options=account.usi_options)
        self._limit = account.go
        # The user's and the current value of the engine's option; None if it has no such option.
        default = re.search(r"default (\S+)", self._client.options.get(RULE, ""))
        self._own_rule = self._rule = account.usi_options.get(RULE, default[1]) if default else None
        self.ponders = account.usi_options.get("USI_Ponder") == "true"

    def begin(self, max_moves: int, entering_king: str | None = None) -> None:
        # The engine's options decide how long a game may be.
        wanted = self._own_rule if entering_king is None else TABLE["entering_king"].format_usi(entering_king)
        if self._rule is not None and wanted is not None and wanted != self._rule:
            if wanted not in self._client.options[RULE].split():
                log.warning("%s has no %s %s, the server's rule: it plays by %s", self.name, RULE, wanted, self._rule)
            else:
                log.info("%s %s replaces %s for this game", RULE, wanted, self._rule)
                self._client.set_option(RULE, wanted)
                self._rule = wanted
        self._client.new_game()

    def set_clocks(self, request: Request[Any], clocks: Clocks | None, lag: float) -> None:
        # The engine does not know the lag, so all times are reduced.
        request.clocks = None if clocks is None else {color: _less(clock, lag) for color, clock in clocks.items()}

    def think(self, turn: MoveTask) -> Decision:
        request = turn.request
        words = go_words(request, self._limit)
        search = self._client.start(turn.sfen, turn.moves, words, allowed(request), request.start)

        def forward() -> None:
            if request.is_stopped:
                search.stop()
            elif request.ponder and not request.is_pondering:
                search.ponderhit(allowed(request), request.start)

        request.on_change = forward
        forward()  # what changed before anybody listened
        try:
            return decision_of(search.wait())
        finally:
            request.on_change = None

    def end(self, result: str) -> None:
        if result in ("win", "lose", "draw"):
            self._client.game_over(result)


ShogiSeat = YomiShogiSeat | UsiSeat


def go_words(request: Request[Any], limit: str = "") -> str:
    """Return the words after `go`: `limit`, the clocks, or without clocks a long byo-yomi."""
    clocks = request.clocks or dict.fromkeys((BLACK, WHITE), Clock.of(0.0, TIMEOUT))
    words = limit or clock_words(clocks)
    return f"ponder {words}" if request.ponder else words


def allowed(request: Request[Any]) -> float:
    """Return the seconds that the clocks allow a request; infinity without clocks or during pondering."""
    if request.clocks is None or request.is_pondering:
        return math.inf
    return max(clock.main + clock.settings.increment + clock.settings.period for clock in request.clocks.values())


def _less(clock: Clock, lag: float) -> Clock:
    times = (clock.main, clock.settings.period, clock.settings.increment)
    return Clock.of(*(max(seconds - lag, 0.0) for seconds in times))


def decision_of(found: EngineMove) -> Decision:
    """Return an engine's move as a decision. Raises EngineError if it is not a move."""
    if found.move in ("resign", "win"):
        return Decision(None, resign=found.move == "resign", win=found.move == "win")
    try:
        move = parse_usi(found.move)
    except NotationError as error:
        raise EngineError(f"bestmove: {error}") from None
    expected = parse_usi_moves([found.reply])
    report = SearchReport()
    evaluation = found.evaluation
    if evaluation is not None and evaluation.winrate is not None:
        has_line = evaluation.pv[:1] == (found.move,)
        line = parse_usi_moves(evaluation.pv[:LINE_MOVES]) if has_line else (move,)
        best = MoveReport(move, winrate=evaluation.winrate, pv=line, mate=evaluation.mate)
        report = SearchReport(winrate=evaluation.winrate, playouts=evaluation.visits or 1, moves=(best,))
    return Decision(move, ponder=expected[0] if expected else None, report=report)

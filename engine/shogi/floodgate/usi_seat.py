"""Another USI engine in yomi's place."""

from __future__ import annotations

import math
from typing import Any

from yomi.engine.clients.client import TIMEOUT, EngineError, EngineMove
from yomi.engine.clients.usi import CENTIPAWNS, UsiClient, clock_words
from yomi.engine.clock import Clock, Clocks, TimeSystem
from yomi.engine.color import BLACK, WHITE
from yomi.engine.players.request import Decision, Request
from yomi.engine.search.types import MoveReport, SearchReport
from yomi.engine.servers.seat import EngineSeat
from yomi.engine.servers.settings import Account
from yomi.engine.shogi.floodgate.yomi_seat import Turn
from yomi.engine.shogi.notation import NotationError, parse_usi, parse_usi_moves
from yomi.engine.shogi.players.notes import LINE_MOVES


class UsiSeat(EngineSeat[UsiClient]):
    """See yomi.engine.shogi.floodgate.yomi_seat.ShogiSeat for what each method promises."""

    centipawns = CENTIPAWNS

    def __init__(self, account: Account) -> None:
        """Start the engine.

        Raises:
            GaveUpError: it cannot be started, or does not have its options.
        """
        super().__init__(account, UsiClient, options=account.usi_options)
        self._limit = account.go
        self.ponders = account.usi_options.get("USI_Ponder") == "true"

    def begin(self, max_moves: int) -> None:
        """Prepare the engine for a game; how long it may be is up to its options."""
        self._client.new_game()

    def set_clocks(self, request: Request[Any], clocks: Clocks | None, lag: float) -> None:
        """Take the lag off all times: the engine knows nothing of it."""
        request.clocks = None if clocks is None else {color: _less(clock, lag) for color, clock in clocks.items()}

    def think(self, turn: Turn) -> Decision:
        """Have the engine choose a move."""
        request = turn.request
        words = go_words(request, self._limit)
        search = self._client.start(turn.sfen, turn.moves, words, allowed(request), request.start)

        def tell() -> None:
            if request.is_stopped:
                search.stop()
            elif request.ponder and not request.is_pondering:
                search.ponderhit(allowed(request), request.start)

        request.on_change = tell
        tell()  # what changed before anybody listened
        try:
            return decision_of(search.wait())
        finally:
            request.on_change = None

    def end(self, result: str) -> None:
        """Tell the engine the result."""
        if result in ("win", "lose", "draw"):
            self._client.game_over(result)


def go_words(request: Request[Any], limit: str = "") -> str:
    """Return the words after `go` for a request.

    Args:
        request: if it has no clock the engine is given a long byo-yomi.
        limit: words in place of the clocks.
    """
    clocks = request.clocks or dict.fromkeys((BLACK, WHITE), Clock.of(0.0, TIMEOUT))
    black, white = clocks[BLACK], clocks[WHITE]
    increments = black.settings.increment, white.settings.increment
    words = limit or clock_words(black.main, white.main, _byoyomi(black), *increments)
    return f"ponder {words}" if request.ponder else words


def allowed(request: Request[Any]) -> float:
    """Return the seconds that the clocks allow a request; infinity without clocks, or while it ponders."""
    if request.clocks is None or request.is_pondering:
        return math.inf
    return max(each.main + each.settings.increment + _byoyomi(each) for each in request.clocks.values())


def _byoyomi(clock: Clock) -> float:
    return clock.settings.period if clock.settings.system is TimeSystem.BYOYOMI else 0.0


def _less(clock: Clock, lag: float) -> Clock:
    """Return a clock on which each time is shorter by `lag` seconds."""
    times = (clock.main, _byoyomi(clock), clock.settings.increment)
    return Clock.of(*(max(seconds - lag, 0.0) for seconds in times))


def decision_of(found: EngineMove) -> Decision:
    """Return an engine's move as a decision.

    Raises:
        EngineError: it is no move.
    """
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
        is_its = evaluation.pv[:1] == (found.move,)
        line = parse_usi_moves(evaluation.pv[:LINE_MOVES]) if is_its else (move,)
        best = MoveReport(move, winrate=evaluation.winrate, pv=line, mate=evaluation.mate)
        report = SearchReport(winrate=evaluation.winrate, playouts=evaluation.visits or 1, moves=(best,))
    return Decision(move, ponder=expected[0] if expected else None, report=report)

"""Another USI engine in yomi's place."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

from engine.clock import Clock, Clocks, TimeSystem
from engine.color import BLACK, WHITE
from engine.games.shogi.notation import NotationError, parse_usi, parse_usi_moves
from engine.games.shogi.sfen import START_WORD
from engine.matches.answers import Evaluation
from engine.matches.process import EngineFailure
from engine.matches.usi_client import CENTIPAWNS, UsiClient, milliseconds, read_info
from engine.players.request import Decision, Request
from engine.players.shogi_notes import LINE_MOVES
from engine.search.report import MoveReport, SearchReport
from engine.servers.seat import PATIENCE, EngineSeat
from engine.servers.settings import Account
from engine.servers.shogi_seat import Turn

STOP_PATIENCE = 10.0
"""Seconds that it may take to answer `stop`."""
POLL = 0.5
"""Seconds between looks at whether it is overdue."""


class UsiSeat(EngineSeat[UsiClient]):
    """See engine.servers.shogi_seat.ShogiSeat for what each method promises."""

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
        request, process = turn.request, self._client.process
        start = turn.sfen if turn.sfen == START_WORD else f"sfen {turn.sfen}"
        position = " ".join([start, "moves", *turn.moves] if turn.moves else [start])
        process.send(f"position {position}", go_line(request, self._limit))
        words = _Words(process.send, request)
        request.on_change = words.say
        words.say()  # what changed before anybody listened
        evaluation: Evaluation | None = None
        patience = _Patience(request, words)
        try:
            while True:
                deadline = time.monotonic() + POLL
                try:
                    at, line = process.line(deadline)
                except TimeoutError:
                    at, line = deadline, ""
                if line.startswith("info "):
                    evaluation = read_info(line, evaluation)
                elif line.startswith("bestmove"):
                    return decision_of(line.split()[1:], evaluation)
                patience.check(at)
        finally:
            request.on_change = None

    def end(self, result: str) -> None:
        """Tell the engine the result."""
        if result in ("win", "lose", "draw"):
            self._client.game_over(result)


class _Words:
    """Says `stop` and `ponderhit`, each once at most, when a request has changed; the loop's thread calls."""

    def __init__(self, send: Callable[[str], object], request: Request[Any]) -> None:
        self._send, self._request = send, request
        self._lock = threading.Lock()
        self._has_hit = not request.ponder
        self.stopped_at: float | None = None
        self.failure: EngineFailure | None = None
        """Why something could not be said; `think` raises it, as its failures have the engine started again."""

    def say(self) -> None:
        with self._lock:
            try:
                if self._request.is_stopped:
                    if self.stopped_at is None:
                        self.stopped_at = time.monotonic()
                        self._send("stop")
                elif not self._request.is_pondering and not self._has_hit:
                    self._has_hit = True
                    self._send("ponderhit")
            except EngineFailure as failure:
                self.failure = failure


def go_line(request: Request[Any], limit: str = "") -> str:
    """Return the `go` of a request.

    Args:
        request: if it has no clock at all the engine is given a long byo-yomi.
        limit: words in place of the clocks.
    """
    if limit:
        return f"go {'ponder ' if request.ponder else ''}{limit}"
    clocks = request.clocks or dict.fromkeys((BLACK, WHITE), Clock.of(0.0, PATIENCE))
    black, white = clocks[BLACK], clocks[WHITE]
    words = ["go", *(["ponder"] if request.ponder else [])]
    words += [f"btime {milliseconds(black.left.main)}", f"wtime {milliseconds(white.left.main)}"]
    increments = black.settings.increment, white.settings.increment
    if any(increments):
        words += [f"binc {milliseconds(increments[0])}", f"winc {milliseconds(increments[1])}"]
    else:
        words.append(f"byoyomi {milliseconds(_byoyomi(black))}")
    return " ".join(words)


def _byoyomi(clock: Clock) -> float:
    return clock.settings.period if clock.settings.system is TimeSystem.BYOYOMI else 0.0


def _less(clock: Clock, lag: float) -> Clock:
    times = (clock.left.main, _byoyomi(clock), clock.settings.increment)
    return Clock.of(*(max(seconds - lag, 0.0) for seconds in times))


class _Patience:
    """Ends the wait for an engine that could not be told, or has no move for longer than can be.

    It is given up where it is overdue and was so POLL seconds before: where the machine stood still, its move may come
    behind a report that was late as well.
    """

    def __init__(self, request: Request[Any], words: _Words) -> None:
        self._request, self._words = request, words
        self._overdue_since: float | None = None

    def check(self, at: float) -> None:
        """Take note that there was no move up to `at`.

        Raises:
            EngineFailure: there will be none.
        """
        if self._words.failure is not None:
            raise self._words.failure
        fault = self._fault(at)
        if not fault:
            self._overdue_since = None
        elif self._overdue_since is None:
            self._overdue_since = at
        elif at >= self._overdue_since + POLL:
            raise EngineFailure(fault)

    def _fault(self, at: float) -> str:
        """Say what the engine has failed to do; empty where it still has time."""
        stopped_at = self._words.stopped_at
        if stopped_at is not None and at > stopped_at + STOP_PATIENCE:
            return f"no bestmove within {STOP_PATIENCE:.0f} s after 'stop'"
        clocks = self._request.clocks
        if self._request.is_pondering or clocks is None:
            return ""
        allowed = max(each.left.main + each.settings.increment + _byoyomi(each) for each in clocks.values())
        return f"no bestmove within {allowed + PATIENCE:.0f} s" if at > self._request.start + allowed + PATIENCE else ""


def decision_of(words: list[str], evaluation: Evaluation | None) -> Decision:
    """Return what `bestmove` and the reports before it say."""
    if words[:1] in (["resign"], ["win"]):
        return Decision(None, resign=words[0] == "resign", win=words[0] == "win")
    try:
        move = parse_usi(words[0] if words else "")
    except NotationError as error:
        raise EngineFailure(f"bestmove: {error}") from None
    expected = parse_usi_moves(words[2:3]) if words[1:2] == ["ponder"] else ()
    report = SearchReport()
    if evaluation is not None and evaluation.winrate is not None:
        is_its = evaluation.pv[:1] == (words[0],)
        line = parse_usi_moves(evaluation.pv[:LINE_MOVES]) if is_its else (move,)
        best = MoveReport(move, winrate=evaluation.winrate, pv=line, mate=evaluation.mate)
        report = SearchReport(winrate=evaluation.winrate, playouts=evaluation.visits or 1, moves=(best,))
    return Decision(move, ponder=expected[0] if expected else None, report=report)

"""One `go` command: a thread that thinks and writes the answer."""

from __future__ import annotations

import logging
import math
import threading
from typing import TYPE_CHECKING

from yomi.engine.clock import Clock
from yomi.engine.color import BLACK, WHITE
from yomi.engine.evaluators.base import EvaluatorError
from yomi.engine.players.request import Decision, Request
from yomi.engine.protocols.session import internal_error
from yomi.engine.protocols.streams import OutputClosedError
from yomi.engine.records import usi_centipawns
from yomi.engine.search.types import Limits, SearchReport
from yomi.engine.shogi.game import rules_of
from yomi.engine.shogi.notation import format_usi
from yomi.engine.shogi.usi.codec import Go, format_bestmove, format_checkmate, format_error, format_info, format_string

if TYPE_CHECKING:
    from yomi.engine.clock import Clocks
    from yomi.engine.shogi.game import ShogiGame
    from yomi.engine.shogi.players.player import ShogiPlayer
    from yomi.engine.shogi.usi.session import Session

log = logging.getLogger("yomi.usi")

MIN_INTERVAL = 0.01  # seconds between reports


class Turn:
    """The time between a `go` and its answer.

    Two threads meet here. The turn's own thread thinks, reports and answers; only it writes `info` and `bestmove`. The
    session's loop calls `stop` and `ponderhit`. `go infinite` and `go ponder` hold the answer back until it may be
    given, even if the search has ended long before.
    """

    def __init__(self, session: Session, player: ShogiPlayer, go: Go, moves: tuple[int, ...] | None) -> None:
        session.game.set_rules(**rules_of(session.options))  # USI's options are the only source of the rules
        self._session = session
        self._player = player
        self._go = go
        self._fault = session.position_fault
        self._may_answer = threading.Event()
        self._answered = threading.Event()
        self.request: Request[ShogiGame] = Request(
            session.game,
            session.level.full() if go.is_endless else None,
            clocks=clocks_of(go),
            limits=Limits(playouts=go.nodes, seconds=go.movetime, depth=go.depth),
            allow=moves,
            infinite=go.is_endless,
            ponder=go.ponder,
            on_report=self._report,
            interval=max(MIN_INTERVAL, session.options.report_interval),
            start=session.arrival,
        )
        if go.mate is not None:
            self.request.limits = Limits(seconds=None if math.isinf(go.mate) else go.mate)
        elif not (go.is_endless or go.ponder):
            self._may_answer.set()
        self._thread = threading.Thread(target=self._run, name="turn", daemon=True)

    @property
    def is_bounded(self) -> bool:
        """Whether the answer comes without a further command of the controller."""
        return self._may_answer.is_set() or (self._go.mate is not None and self.request.limits.seconds is not None)

    @property
    def is_answered(self) -> bool:
        return self._answered.is_set()

    @property
    def is_pondering(self) -> bool:
        return self._go.mate is None and self.request.is_pondering and not self.request.is_stopped

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self.request.stop()
        self._may_answer.set()

    def ponderhit(self, clocks: Clocks | None, at: float) -> None:
        self.request.ponderhit(clocks, at)
        if not self._go.is_endless:
            self._may_answer.set()

    def join(self, timeout: float | None = None) -> bool:
        """Wait until the thread has ended. Return False if it has not after `timeout` seconds."""
        self._thread.join(timeout)
        return not self._thread.is_alive()

    def _run(self) -> None:
        if self._fault is not None:
            self._give_up(f"go: the last position was refused ({self._fault})")
            return
        try:
            lines = self._mate() if self._go.mate is not None else self._move()
            self._answer(lines)
        except OutputClosedError:
            pass  # the session's loop notices it, too
        except EvaluatorError as error:
            self._give_up(str(error))
        except Exception as error:  # a fault of ours: the controller must not wait for ever
            self._give_up(internal_error(log, "while thinking", error))

    def _give_up(self, reason: str) -> None:
        """Show the error at once. Answer with `timeout` or `resign` when an answer is allowed."""
        try:
            self._session.send(format_error(reason))
        except OutputClosedError:
            return
        if self._go.mate is not None:
            self._answer([format_checkmate("timeout")])
        else:
            self._may_answer.wait()
            self._answer([format_bestmove("resign")])

    def _answer(self, lines: list[str]) -> None:
        try:
            # The session must see the turn as answered before the controller reads the answer.
            with self._session.lock:
                self._answered.set()
                self._session.send(*lines)
        except OutputClosedError:
            pass

    # -- a move ----------------------------------------------------------------------------------------------------

    def _move(self) -> list[str]:
        decision = self._player.decide(self.request)
        lines = self._info_lines(decision.report)
        if decision.note:
            lines.append(format_string(decision.note))
        if not self._may_answer.is_set():
            self._session.send(*lines)  # what was found is shown while the answer is held back
            lines = []
            self._may_answer.wait()
        return [*lines, format_decision(decision)]

    def _report(self, report: SearchReport) -> None:
        lines = self._info_lines(report)
        if lines:
            self._session.send(*lines)

    def _info_lines(self, report: SearchReport) -> list[str]:
        options = self._session.options
        return [
            format_info(
                report.depth or len(move.pv),
                max(report.deepest, len(move.pv)),
                report.seconds,
                report.playouts,
                report.fullness,
                tuple(map(format_usi, move.pv)),
                centipawns=usi_centipawns(move.winrate, options.centipawns),
                mate=move.mate,
                bound=move.bound,
                multipv=number if options.multipv > 1 else None,
            )
            for number, move in enumerate(report.moves[: options.multipv], 1)
        ]

    # -- a mate ----------------------------------------------------------------------------------------------------

    def _mate(self) -> list[str]:
        found = self._player.find_mate(self.request)
        if found.moves:
            return [format_checkmate([format_usi(move) for move in found.moves])]
        return [format_checkmate("nomate" if found.is_refuted else "timeout")]


def clocks_of(go: Go) -> Clocks | None:
    """Return the clocks of `go` or `ponderhit`, or None without clocks."""
    if not go.has_clock:
        return None
    byoyomi = go.byoyomi or 0.0
    return {
        BLACK: Clock.of(go.btime or 0.0, byoyomi, go.binc or 0.0),
        WHITE: Clock.of(go.wtime or 0.0, byoyomi, go.winc or 0.0),
    }


def format_decision(decision: Decision) -> str:
    if decision.win:
        return format_bestmove("win")
    if decision.resign or decision.move is None:
        return format_bestmove("resign")
    return format_bestmove(format_usi(decision.move), None if decision.ponder is None else format_usi(decision.ponder))

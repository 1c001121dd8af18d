"""A client of servers that speak the CSA protocol, such as floodgate. Begin reading at `on_line`.

A session is log-in, one game, log-out: the server in Ruby closes the connection after each game, and what others do
after a log-out is the same. A game that the server still holds after a break goes on from what its summary says.
"""

from __future__ import annotations

import logging
import random
import time
from collections.abc import Callable
from pathlib import Path

from yomi.engine.color import BLACK, COLOR_NAMES, WHITE, opponent
from yomi.engine.players.request import Decision, Request
from yomi.engine.servers.client import LOGIN_TIMEOUT, OPPONENT_GRACE, RESUME_TIMEOUT, Client, Due, SessionOver
from yomi.engine.servers.connection import ConnectionLostError, Line
from yomi.engine.servers.reporter import Reporter
from yomi.engine.servers.seat import Done
from yomi.engine.servers.settings import STARS, Account, Password
from yomi.engine.shogi.floodgate.codec import (
    Broken,
    KeepAlive,
    LoginAccepted,
    LoginRefused,
    LogoutDone,
    MessageReader,
    Moved,
    Other,
    Reason,
    Rejected,
    Result,
    Special,
    Started,
    Summary,
    format_login,
    format_move,
)
from yomi.engine.shogi.floodgate.game import CsaGame
from yomi.engine.shogi.floodgate.yomi_seat import ShogiSeat, Turn
from yomi.engine.shogi.notation import format_usi
from yomi.engine.shogi.players.notes import note_of
from yomi.engine.shogi.records.record import RecordedMove

log = logging.getLogger("yomi.servers")

LOGOUT_TIMEOUT = 5.0
ANSWER_TIMEOUT = 20.0
"""Seconds after which a server that has to answer (to our move, to a keep-alive that it answered before) is gone."""


class CsaClient(Client):
    """One account on a server of shogi."""

    seat: ShogiSeat

    def __init__(
        self,
        account: Account,
        password: Password,
        records: Path,
        reporter: Reporter,
        open_seat: Callable[[], ShogiSeat],
        rng: random.Random | None = None,
    ) -> None:
        """Make a client; see the base class."""
        super().__init__(account, password, records, reporter, open_seat, rng)
        self._reader = MessageReader()
        self._game: CsaGame | None = None
        self._deadline: float | None = None
        """When the server must have answered to log-in or log-out."""
        self._login_at = 0.0
        self._keepalive_due: float | None = None
        self._resume_due: float | None = None
        """When the server must have proposed to go on with the game in hand."""
        self._answers_keepalive = False

    @property
    def has_game(self) -> bool:
        """Whether there is a game in hand."""
        return self._game is not None

    # -- the session -----------------------------------------------------------------------------------------------

    def on_connected(self) -> None:
        """Log in."""
        self._reader = MessageReader()
        self._answers_keepalive = False
        self._keepalive_due = None
        self._login_at = time.monotonic()
        self._deadline = self._login_at + LOGIN_TIMEOUT
        user, game_name = self.account.user, self.server.game_name
        self.send(format_login(user, self._password.reveal(), game_name), format_login(user, STARS, game_name))

    def on_lost(self) -> None:
        """Forget what the connection held; the engine goes on thinking about the game's move."""
        self._deadline = self._keepalive_due = self._resume_due = None
        if self._game is not None:
            self._game.may_move = False
            self._game.sent_at = None
            if not self._game.is_running:
                self.drop_game("")

    def on_finish(self) -> None:
        """Log out where there is no game."""
        if self._game is None and self.is_connected and not self.is_leaving:
            self._log_out()

    def _log_out(self) -> None:
        self._deadline = time.monotonic() + LOGOUT_TIMEOUT
        self.is_leaving = True
        self.send("LOGOUT")

    def on_line(self, line: Line) -> None:
        """Take a line from the server."""
        message = self._reader.feed(line.text)
        if self._keepalive_due is not None:
            self._keepalive_due = None  # any line will do
        match message:
            case None:
                pass
            case LoginAccepted():
                self._deadline = None
                self._resume_due = None if self._game is None else line.at + RESUME_TIMEOUT
                self.lag.note(line.at - self._login_at)
                self.login_accepted()
                self.status("waiting for a game")
            case LoginRefused():
                self.refused("the password is wrong, or the server still holds this name")
            case LogoutDone():
                raise SessionOver
            case Summary():
                self._propose(message)
            case Broken():
                log.error("%s: %s", self.account.name, self.safe(message.why))
                raise ConnectionLostError(f"a game that cannot be played: {message.why}")
            case KeepAlive():
                self._answers_keepalive = True
            case Other() if message.text.startswith("##"):
                log.info("%s: the server says %s", self.account.name, self.safe(message.text))
            case Other():
                self.noise(message.text)
            case _ if self._game is None:
                self.noise(line.text)
            case _:
                self._on_game(self._game, message, line.at)

    def _on_game(self, game: CsaGame, message: object, at: float) -> None:
        """Take a message that belongs to the game in hand."""
        match message:
            case Started():
                self._start(game, at)
            case Rejected():
                self.report("rejected", f"the game was rejected: {message.text}")
                self.drop_game("")
                raise SessionOver
            case Moved() if game.is_running:
                self._moved(game, message, at)
            case Special():
                pass  # what it means follows
            case Reason():
                game.reason = message.name
            case Result():
                self._over(game, message.name)
            case _:
                self.noise(str(message))

    # -- a game ----------------------------------------------------------------------------------------------------

    def _propose(self, summary: Summary) -> None:
        """Take up a game that the server proposes, or one that it still holds."""
        self._resume_due = None
        if self._game is not None and (self._game.id, self._game.color) != (summary.game_id, summary.color):
            self.drop_game("another game was proposed")
        game = self._game
        if self.is_leaving or (self.wants_no_more and game is None):
            self.send(f"REJECT:{summary.game_id}")
            self._log_out()
            return
        if game is None:
            game = self._game = self.new_game(lambda: CsaGame(summary, self.records))
            self._begin(game)
            return  # the server hears of it when the engine is ready
        game.resume(summary)
        self.report("resume", f"the game goes on at move {game.ply + 1}", game=game.id, ply=game.ply)
        self.send(f"AGREE:{game.id}")

    def _start(self, game: CsaGame, at: float) -> None:
        game.is_running = game.may_move = True
        rule = game.clock.rules[game.color]
        color = COLOR_NAMES[game.color]
        clock = f"{rule.total:g} s" + "".join(
            f" {word} {value:g} s" for word, value in (("byo-yomi", rule.byoyomi), ("+", rule.increment)) if value
        )
        self.report(
            "game",
            f"game {game.id}: {color} against {game.opponent}, {clock}",
            game=game.id,
            color=color,
            opponent=game.opponent,
            total=rule.total,
            byoyomi=rule.byoyomi,
            increment=rule.increment,
            ply=game.ply,
        )
        self.save(game)
        game.asked_at = at
        if game.is_our_turn:
            self._our_turn(game, at)

    def _our_turn(self, game: CsaGame, at: float) -> None:
        """See to it that a move is sent: the one that is decided, the one that is thought about, or a new one."""
        if game.decided is not None and game.decided[0] == game.ply:
            self._answer(game, game.decided[1])
            return
        turn = game.turn
        if turn is None or game.turn_ply != game.ply or turn.request.is_stopped or turn.request.is_pondering:
            self._think(game, at)

    def _think(self, game: CsaGame, at: float) -> None:
        self._stop_thinking(game)
        turn = game.turn = Turn(game.sfen, tuple(game.usi), Request(None, start=at))
        self.seat.set_clocks(turn.request, game.clock.clocks(game.color), self.lag.expected)
        game.turn_ply = game.ply
        self.submit(turn, lambda: self.seat.think(turn))

    def _ponder(self, game: CsaGame, expected: str, taken: float) -> None:
        """Think about the position after the move that is expected of the opponent; our last one took `taken`."""
        self._stop_thinking(game)
        turn = game.turn = Turn(game.sfen, (*game.usi, expected), Request(None, ponder=True))
        self.seat.set_clocks(turn.request, game.clock.clocks(game.color, taken), self.lag.expected)
        game.turn_ply = game.ply + 1
        self.submit(turn, lambda: self.seat.think(turn))

    def _stop_thinking(self, game: CsaGame) -> None:
        if game.turn is not None:
            game.turn.request.stop()
            game.turn = None

    def _moved(self, game: CsaGame, message: Moved, at: float) -> None:
        color = BLACK if message.move[0] == "+" else WHITE
        if color == game.color:
            if game.sent_at is None or not game.is_last(message.move):
                raise ConnectionLostError(f"the server plays {message.move} for us, which was not sent")
            self.lag.note(at - game.sent_at)
            self.made_progress()
            game.sent_at = None
            game.charge(color, message.units)
        else:
            played = game.play_theirs(message.move)
            game.charge(color, message.units)
            game.asked_at = at
            self._after_their_move(game, played, at)
        self.save(game)
        self.report(
            "move",
            game=game.id,
            ply=game.ply,
            move=message.move,
            left={"+": game.clock.left[1], "-": game.clock.left[2]},
            score=game.record.moves[-1].score,
            lag=round(self.lag.mean, 4),
        )
        self.show_game(game, game.clock.left)

    def _after_their_move(self, game: CsaGame, played: str, at: float) -> None:
        turn = game.turn
        if turn is not None and turn.request.is_pondering and turn.moves[-1] == played and game.turn_ply == game.ply:
            self.seat.set_clocks(turn.request, game.clock.clocks(game.color), self.lag.expected)
            turn.request.ponderhit(at=at)
        else:
            self._our_turn(game, at)

    def on_done(self, done: Done) -> None:
        """Take what the engine has done."""
        game = self._game
        turn = game.turn if game is not None and done.tag is game.turn else None
        error = done.error
        if game is not None and turn is not None and error is None and not turn.request.is_pondering:
            error = _fault_of(game, done.result)
        if error is not None:
            self._start_over(game, error)
        elif game is not None and turn is not None:
            self._decided(game, turn, done.result)
        elif game is not None and done.tag == ("begin", game.id) and self.is_connected and not game.is_running:
            self.send(f"AGREE:{game.id}")

    def _start_over(self, game: CsaGame | None, error: Exception) -> None:
        """Start the engine anew; it has what is left of the clock for a move that is due."""
        self.engine_failed(error)
        self.submit("reopen", self.reopen)
        if game is None:
            return
        self._stop_thinking(game)
        self._begin(game)
        if game.is_running and game.is_our_turn and game.sent_at is None:
            self._think(game, game.asked_at)

    def _begin(self, game: CsaGame) -> None:
        self.submit(("begin", game.id), lambda: self.seat.begin(game.max_moves))

    def _decided(self, game: CsaGame, turn: Turn, decision: object) -> None:
        assert isinstance(decision, Decision)
        self.engine_worked()
        game.turn = None
        if turn.request.is_pondering:
            return  # the guess is still open: the move is thought about again when it is due
        game.decided = (game.turn_ply, decision)
        if game.may_move and game.is_our_turn and game.turn_ply == game.ply:
            self._answer(game, decision)

    def _answer(self, game: CsaGame, decision: Decision) -> None:
        """Send what was decided, and think on."""
        taken = time.monotonic() - game.asked_at
        game.max_seconds = max(game.max_seconds, taken)
        if decision.win:
            self.send("%KACHI")
        elif decision.resign or decision.move is None:
            self.send("%TORYO")
        else:
            note = note_of(decision, game.placement, taken, self.seat.centipawns)
            text = self._played(game, note)
            game.sent_at = time.monotonic()
            self.send(text)
            if self.seat.ponders and decision.ponder is not None:
                self._ponder(game, format_usi(decision.ponder), taken)

    def _played(self, game: CsaGame, note: RecordedMove) -> str:
        """Play our move on the board; return the line for the server."""
        score = note.score if self.server.comments else None
        if score is not None and game.color != BLACK:
            score = -score
        return format_move(game.play_own(note), score, note.pv)

    def _over(self, game: CsaGame, result: str) -> None:
        """Complete the game and log out."""
        self._stop_thinking(game)
        outcome = game.finish(result)
        self._game = None
        name = "ended without judgement" if result == "CENSORED" else ""
        self.completed(game, outcome, game.reason or result, result=result, reason=game.reason, name=name)
        self.submit(("end", game.id), lambda: self.seat.end(result.lower()))
        if self.is_connected:
            self._log_out()

    def drop_game(self, why: str) -> None:
        """Give up a game that will not go on."""
        game, self._game = self._game, None
        if game is None:
            return
        self._stop_thinking(game)
        if game.is_running:
            game.finish("CHUDAN")
            self.dropped(game, why)

    def resign_game(self) -> None:
        """Resign, as nothing is there to play on."""
        if self._game is not None and self._game.may_move and self._game.is_our_turn:
            self.send("%TORYO")

    # -- time ------------------------------------------------------------------------------------------------------

    def dues(self) -> list[Due]:
        """Return when to send a keep-alive, or to give up a server that is silent or a game that it no longer holds."""
        dues: list[Due] = []
        if self._deadline is not None:
            dues.append(self.timeout_at(self._deadline, "no answer to the log-in"))
        if self._resume_due is not None:
            dues.append(Due(self._resume_due, self._resume_no_game))
        if self._keepalive_due is not None:
            dues.append(self.timeout_at(self._keepalive_due, "no answer to a keep-alive"))
        if self.server.keepalive:
            dues.append(Due(self.last_sent + self.server.keepalive, self._keep_alive))
        game = self._game
        if game is not None and game.is_running:
            if game.sent_at is not None:
                dues.append(self.timeout_at(game.sent_at + ANSWER_TIMEOUT, "no answer to our move"))
            if game.clock.is_limited and not game.is_our_turn:
                begin = max(self.last_line, game.asked_at)
                patience = game.clock.allowed(opponent(game.color)) + OPPONENT_GRACE
                dues.append(self.timeout_at(begin + patience, "silence beyond the opponent's time"))
        return dues

    def _resume_no_game(self) -> None:
        """Go on without the game in hand, which the server would have proposed by now."""
        self._resume_due = None
        self.drop_game("it ended while there was no connection")
        if self.wants_no_more:
            self._log_out()

    def _keep_alive(self) -> None:
        self.send("")
        if self._answers_keepalive and self._keepalive_due is None:
            self._keepalive_due = time.monotonic() + ANSWER_TIMEOUT


def _fault_of(game: CsaGame, decision: object) -> Exception | None:
    """Return what is wrong with the move of a decision; None where nothing is, or its turn is over."""
    assert isinstance(decision, Decision)
    if decision.move is None or decision.win or decision.resign or game.turn_ply != game.ply:
        return None
    why = game.placement.why_not(decision.move)
    return None if why is None else ValueError(f"illegal move {format_usi(decision.move)}: {why}")

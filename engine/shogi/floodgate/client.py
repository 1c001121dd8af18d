"""A client of CSA servers such as floodgate. Start reading at `on_line`.

A session is log-in, one game, log-out: the server in Ruby closes the connection after each game, and a log-out has the
same effect on other servers. A game that the server still holds after a lost connection is resumed from its summary.
"""

import logging
import time
from typing import Any

from yomi.engine.color import BLACK, COLOR_NAMES, WHITE, opponent
from yomi.engine.players.request import Decision
from yomi.engine.servers.client import LOGIN_TIMEOUT, OPPONENT_GRACE, RESUME_TIMEOUT, Client, Due, SessionOver
from yomi.engine.servers.connection import ConnectionLostError, Done, Line
from yomi.engine.servers.game import MoveTask
from yomi.engine.servers.settings import STARS
from yomi.engine.shogi.floodgate import codec
from yomi.engine.shogi.floodgate.game import CsaGame, ShogiSeat
from yomi.engine.shogi.notation import format_usi
from yomi.engine.shogi.records.record import note_of

log = logging.getLogger("yomi.servers")

ANSWER_TIMEOUT = 20.0  # seconds until a server that owes an answer (to our move or a keep-alive) counts as lost


class CsaClient(Client[CsaGame, ShogiSeat]):
    logout = "LOGOUT", 5.0
    resignation = "%TORYO"
    _login_at = 0.0
    _keepalive_due: float | None = None
    _answers_keepalive = False
    _reported_declaration = False  # whether an unknown `Declaration:` has been reported

    # -- the session -----------------------------------------------------------------------------------------------

    def on_connected(self) -> None:
        self._reader = codec.MessageReader()
        self._answers_keepalive = False
        self._keepalive_due = None
        self._login_at = time.monotonic()
        self.deadline = self._login_at + LOGIN_TIMEOUT
        user, game_name = self.account.user, self.server.game_name
        self.send(
            codec.format_login(user, self._password.reveal(), game_name), codec.format_login(user, STARS, game_name)
        )

    def on_lost(self) -> None:
        super().on_lost()
        self._keepalive_due = None
        if self.game is not None:
            self.game.may_move = False
            self.game.sent_at = None
            if not self.game.is_running:
                self.drop_game("")

    def on_line(self, line: Line) -> None:
        message = self._reader.feed(line.text)
        if self._keepalive_due is not None:
            self._keepalive_due = None  # any line will do
        if message is None:
            return
        if isinstance(message, codec.Summary):
            self._propose(message)
            return
        match message.kind:
            case "login":
                self.deadline = None
                self.resume_due = None if self.game is None else line.at + RESUME_TIMEOUT
                self.lag.note(line.at - self._login_at)
                self.login_accepted()
                self.status("waiting for a game")
            case "refused":
                self.refused("the password is wrong, or the server still holds this name")
            case "logout":
                raise SessionOver
            case "broken":
                log.error("%s: %s", self.account.name, self.safe(message.text))
                raise ConnectionLostError(f"a game that cannot be played: {message.text}")
            case "keepalive":
                self._answers_keepalive = True
            case "other" if message.text.startswith("##"):
                log.info("%s: the server says %s", self.account.name, self.safe(message.text))
            case "other":
                self.noise(message.text)
            case _ if self.game is None:
                self.noise(line.text)
            case _:
                self._on_game(self.game, message, line.at)

    def _on_game(self, game: CsaGame, message: codec.Message, at: float) -> None:
        match message.kind:
            case "start":
                self._start(game, at)
            case "reject":
                self.report("rejected", f"the game was rejected: {message.text}")
                self.drop_game("")
                raise SessionOver
            case "move" if game.is_running:
                self._moved(game, message, at)
            case "special":
                pass  # what it means follows
            case "reason":
                game.reason = message.text
            case "result":
                self._over(game, message.text)
            case _:
                self.noise(message.text)

    # -- a game ----------------------------------------------------------------------------------------------------

    def _propose(self, summary: codec.Summary) -> None:
        """Accept a game that the server offers, or resume a game that the server still holds."""
        self.resume_due = None
        if self.game is not None and (self.game.id, self.game.color) != (summary.game_id, summary.color):
            self.drop_game("another game was proposed")
        game = self.game
        # A game in progress is always played to its end.
        if self.is_leaving or (self.wants_no_more and game is None):
            self.send(f"REJECT:{summary.game_id}")
            self.log_out()
            return
        if game is None:
            game = self.new_game(lambda: CsaGame(summary, self.records))
            self.begin_game(game)
            return  # the game is accepted when the engine is ready
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
        game.clock_start = at
        self.our_turn(game)

    def _moved(self, game: CsaGame, message: codec.Message, at: float) -> None:
        color = BLACK if message.text[0] == "+" else WHITE
        if color == game.color:
            if game.sent_at is None or not game.is_last(message.text):
                raise ConnectionLostError(f"the server plays {message.text} for us, which was not sent")
            self.lag.note(at - game.sent_at)
            self.backoff.reset()  # after a loss of the connection the next attempt comes soon
            game.sent_at = None
            game.charge(color, message.units)
        else:
            played = game.play_theirs(message.text)
            game.charge(color, message.units)
            game.clock_start = at
            self._after_their_move(game, played, at)
        clock = game.clock.left
        left, score = {"+": clock[BLACK], "-": clock[WHITE]}, game.record.moves[-1].score
        self.moved(game, clock, move=message.text, left=left, score=score)

    def _after_their_move(self, game: CsaGame, played: str, at: float) -> None:
        turn = game.turn
        if turn is not None and turn.request.is_pondering and turn.moves[-1] == played and turn.ply == game.ply:
            self.seat.set_clocks(turn.request, game.clock.clocks(game.color), self.lag.expected)
            turn.request.ponderhit(at=at)
        else:
            self.our_turn(game)

    def on_done(self, done: Done) -> None:
        super().on_done(done)
        game = self.game
        is_ready = game is not None and done.error is None and done.tag == ("begin", game.id)
        if game is not None and is_ready and self.is_connected and not game.is_running:
            self.send(f"AGREE:{game.id}")

    def fault_of(self, game: CsaGame, turn: MoveTask, result: Any) -> Exception | None:
        assert isinstance(result, Decision)
        if turn.request.is_pondering or turn.ply != game.ply or result.move is None or result.win or result.resign:
            return None
        why = game.placement.why_not(result.move)
        return None if why is None else ValueError(f"illegal move {format_usi(result.move)}: {why}")

    def begin_game(self, game: CsaGame) -> None:
        rule = codec.DECLARATIONS.get(game.declaration)
        if rule is None and game.declaration and not self._reported_declaration:
            self._reported_declaration = True
            log.warning(
                "%s: Declaration:%s: expected %s; the engine's own rule of the declaration win holds",
                self.account.name,
                self.safe(game.declaration),
                ", ".join(codec.DECLARATIONS),
            )
        self.submit(("begin", game.id), lambda: self.seat.begin(game.max_moves, rule))

    def answer(self, game: CsaGame, decision: Decision, taken: float) -> None:
        # The server confirms %KACHI and %TORYO by ending the game.
        if decision.win:
            self.send("%KACHI")
        elif decision.resign or decision.move is None:
            self.send("%TORYO")
        else:
            note = note_of(decision, game.placement, taken, self.seat.centipawns)
            score = note.score if self.server.comments else None
            if score is not None and game.color != BLACK:
                score = -score
            text = codec.format_move(game.play_own(note), score, note.pv)
            game.sent_at = time.monotonic()
            self.send(text)
            if self.seat.ponders and decision.ponder is not None:
                self.ponder(game, format_usi(decision.ponder), spent=taken)

    def _over(self, game: CsaGame, result: str) -> None:
        self.stop_thinking(game)
        outcome = game.finish(result)
        self.game = None
        name = "ended without judgement" if result == "CENSORED" else ""
        self.completed(game, outcome, game.reason or result, result=result, reason=game.reason, name=name)
        self.submit(("end", game.id), lambda: self.seat.end(result.lower()))
        if self.is_connected:
            self.log_out()

    def dropped(self, game: CsaGame, why: str) -> None:
        if game.is_running:
            game.finish("CHUDAN")
            super().dropped(game, why)

    # -- time ------------------------------------------------------------------------------------------------------

    def dues(self) -> list[Due]:
        dues = super().dues()
        if self._keepalive_due is not None:
            dues.append(self.timeout_at(self._keepalive_due, "no answer to a keep-alive"))
        if self.server.keepalive:
            dues.append((self.last_sent + self.server.keepalive, self._keep_alive))
        game = self.game
        if game is not None and game.is_running:
            if game.sent_at is not None:
                dues.append(self.timeout_at(game.sent_at + ANSWER_TIMEOUT, "no answer to our move"))
            if game.clock.is_limited and not game.is_our_turn:
                # Any line shows that the server lives, not that the opponent moves.
                begin = max(self.last_line, game.clock_start)
                patience = game.clock.allowed(opponent(game.color)) + OPPONENT_GRACE
                dues.append(self.timeout_at(begin + patience, "silence beyond the opponent's time"))
        return dues

    def _keep_alive(self) -> None:
        self.send("")
        if self._answers_keepalive and self._keepalive_due is None:
            self._keepalive_due = time.monotonic() + ANSWER_TIMEOUT

"""A client for the Go server CGOS. Start reading at `on_line`, which handles each message of the server."""

import logging
import time
from typing import Any

from yomi.engine.color import COLOR_NAMES, LETTERS, opponent
from yomi.engine.go.cgos.codec import (
    Gameover,
    Genmove,
    Message,
    OpponentMove,
    Setup,
    format_move,
    format_protocol,
    parse_line,
)
from yomi.engine.go.cgos.game import CgosGame, GoReply, GoSeat
from yomi.engine.go.points import VertexError
from yomi.engine.servers.client import LOGIN_TIMEOUT, OPPONENT_GRACE, RESUME_TIMEOUT, Client, Due, SessionOver
from yomi.engine.servers.connection import ConnectionLostError, Line, OutOfStepError
from yomi.engine.servers.game import MoveTask
from yomi.engine.servers.settings import STARS

log = logging.getLogger("yomi.servers")

# Seconds to stay away after another client took over the login. Otherwise two clients would throw each other out for
# ever.
ANOTHER_LOGIN_PAUSE = 60.0
# A lost connection counts as a takeover for this many seconds after the server announced another login.
THROW_OUT_TIMEOUT = 5.0
WAITING_SILENCE = 1800.0  # seconds without a game after which the client logs in again: the protocol has no ping


class CgosClient(Client[CgosGame, GoSeat]):
    logout = "quit", 3.0
    resignation = "resign"
    _has_analysis = False
    _challenged_at: float | None = None  # when the server announced another login, if it has sent nothing since

    @property
    def shortest_pause(self) -> float:
        at = self._challenged_at
        return ANOTHER_LOGIN_PAUSE if at is not None and time.monotonic() < at + THROW_OUT_TIMEOUT else 0.0

    # -- the session -----------------------------------------------------------------------------------------------

    def on_connected(self) -> None:
        self.deadline = time.monotonic() + LOGIN_TIMEOUT

    def on_lost(self) -> None:
        super().on_lost()
        self._challenged_at = None
        if self.game is not None:
            self.game.due = self.game.sent = None

    def on_line(self, line: Line) -> None:
        message = parse_line(line.text)
        self._challenged_at = None  # a server that still sends lines has not thrown us out
        match message:
            case Message("protocol"):
                self._has_analysis = message.text != "" and self.server.comments
                self.send(format_protocol(self._has_analysis))
            case Message("user"):
                self.send(self.account.user)
            case Message("password"):
                self.send(self._password.reveal(), STARS)
                self.deadline, self.resume_due = None, line.at + RESUME_TIMEOUT
            case Message("info"):
                log.info("%s: the server says %s", self.account.name, self.safe(message.text))
            case Message("another login"):
                self._challenged_at = line.at
                user = self.account.user
                self.report("another_login", f"another client logs in as {user}; only one login is possible", user=user)
            case Message("refused"):
                self.refused(message.text)
            case Setup():
                self._set_up(message)
            case Message("broken"):
                raise ConnectionLostError(f"a game that cannot be played: {message.text}")
            case Message():
                self.noise(message.text)
            case _ if self.game is None:
                self.noise(line.text)
            case OpponentMove():
                self._played(self.game, message)
            case Genmove():
                self._genmove(self.game, message, line.at)
            case Gameover():
                self._over(self.game, message)

    def _welcome(self) -> None:
        # The server does not confirm logins, it only rejects them.
        if self.resume_due is not None:
            self.resume_due = None
            self.login_accepted()

    # -- a game ----------------------------------------------------------------------------------------------------

    def _set_up(self, setup: Setup) -> None:
        """Begin a new game, or resume a game that the server continues."""
        colors = [color for color, name in setup.names.items() if name == self.account.user]
        if not colors:
            raise ConnectionLostError(f"a game of {' and '.join(setup.names.values())}, not of {self.account.user}")
        game = self.game
        self._welcome()
        if game is not None and game.is_resumed_by(setup):
            if len(setup.moves) > game.resumed_at:
                game.resumed_at = len(setup.moves)
                self.backoff.reset()  # after a loss of the connection the next attempt comes soon
            if not game.resume(setup):
                self.stop_thinking(game)
                game.decided = None
            self.report("resume", f"the game continues at move {game.ply + 1}", game=game.id, ply=game.ply)
            return
        self.drop_game("the server has started another game")
        game = self.new_game(lambda: CgosGame(setup, colors[0], self.records))
        self.begin_game(game)
        self.save(game)
        self.report(
            "game",
            f"game {game.id}: {COLOR_NAMES[game.color]} against {game.opponent}"
            f" ({setup.ratings[opponent(game.color)]}),"
            f" {setup.board}, komi {setup.komi:g}, {setup.seconds:g} s"
            + (f", from move {game.ply + 1}" if game.ply else ""),
            game=game.id,
            color=LETTERS[game.color],
            opponent=game.opponent,
            rating=setup.ratings[opponent(game.color)],
            size=setup.board.side,
            komi=setup.komi,
            total=setup.seconds,
            ply=game.ply,
        )

    def begin_game(self, game: CgosGame) -> None:
        self.submit("begin", lambda: self.seat.begin(game.setup, opponent(game.color)))

    def _played(self, game: CgosGame, message: OpponentMove) -> None:
        if message.color == game.color or message.color != game.side_to_move:
            raise OutOfStepError(f"{COLOR_NAMES[message.color]} plays {message.vertex[:20]} out of turn")
        game.play(message.color, message.vertex, message.left)
        self.backoff.reset()  # after a loss of the connection the next attempt comes soon
        self._after_move(game)

    def _genmove(self, game: CgosGame, message: Genmove, at: float) -> None:
        """Answer a request for a move: send the decided move, wait for the running search, or start a search."""
        if message.color != game.color or message.color != game.side_to_move:
            raise OutOfStepError(f"a move of {COLOR_NAMES[message.color]} is requested out of turn")
        if game.sent is not None:
            left, taken = game.sent
            self.lag.note(left - message.left - taken)
            game.sent = None
        game.note_left(game.color, message.left)
        game.due = at
        self.our_turn(game)

    def fault_of(self, game: CgosGame, turn: MoveTask, result: Any) -> Exception | None:
        assert isinstance(result, GoReply)
        if turn.request.is_pondering or result.vertex == "resign" or turn.ply != game.ply:
            return None
        try:
            why = game.board.why_illegal(game.color, game.setup.board.parse_vertex(result.vertex), strict=False)
        except VertexError as error:
            return error
        return None if why is None else ValueError(f"illegal move {result.vertex}: {why}")

    def answer(self, game: CgosGame, reply: GoReply, taken: float) -> None:
        game.due, game.sent = None, (game.left[game.color], taken)
        if reply.vertex != "resign":
            game.play(game.color, reply.vertex, None, reply.comment)
        self.send(format_move(reply.vertex, reply.analysis if self._has_analysis else ""))
        if self.seat.ponders and reply.vertex != "resign":
            self.ponder(game)
        self._after_move(game)

    def _after_move(self, game: CgosGame) -> None:
        if not game.moves:
            self.save(game)
            return
        last, left = game.moves[-1], round(game.left[game.moves[-1].color], 3)
        who = LETTERS[last.color]
        self.moved(game, game.left, color=who, move=last.vertex, left=left, comment=last.comment)

    def _over(self, game: CgosGame, message: Gameover) -> None:
        outcome = game.finish(message.result)
        self.game = None
        self.stop_thinking(game)
        why = f"{message.result} {message.text}".rstrip()
        self.completed(game, outcome, why, result=message.result, reason=message.text)
        self.submit("end", lambda: self.seat.end(message.result))
        if self.wants_no_more:
            self.log_out()
        else:
            self.send("ready")
            self.status("waiting for a game")

    # -- time ------------------------------------------------------------------------------------------------------

    def dues(self) -> list[Due]:
        dues, game = super().dues(), self.game
        if game is None:
            dues.append(self.timeout_at(self.last_line + WAITING_SILENCE, "silence"))
        elif game.due is None and self.resume_due is None:
            patience = game.left[opponent(game.color)] + OPPONENT_GRACE
            dues.append(self.timeout_at(self.last_line + patience, "silence beyond the opponent's time"))
        return dues

    def resume_no_game(self) -> None:
        if self.is_leaving:
            raise SessionOver
        self._welcome()
        self.status("waiting for a game")
        super().resume_no_game()

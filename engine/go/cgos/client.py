"""A client of CGOS. Begin reading at `on_line`: whatever the server asks for is answered there or when it is ready."""

from __future__ import annotations

import logging
import random
import time
from collections.abc import Callable
from pathlib import Path

from yomi.engine.color import COLOR_NAMES, LETTERS, opponent
from yomi.engine.go.cgos.codec import (
    AnotherLogin,
    AskPassword,
    AskProtocol,
    AskUser,
    Broken,
    Gameover,
    Genmove,
    Info,
    Other,
    Played,
    Refused,
    Setup,
    format_move,
    format_protocol,
    parse_line,
)
from yomi.engine.go.cgos.game import CgosGame, Turn
from yomi.engine.go.cgos.yomi_seat import GoReply, GoSeat
from yomi.engine.go.vertex import VertexError, parse_vertex
from yomi.engine.servers.client import LOGIN_TIMEOUT, OPPONENT_GRACE, RESUME_TIMEOUT, Client, Due, SessionOver
from yomi.engine.servers.connection import ConnectionLostError, Line, OutOfStepError
from yomi.engine.servers.reporter import Reporter
from yomi.engine.servers.seat import Done
from yomi.engine.servers.settings import STARS, Account, Password

log = logging.getLogger("yomi.servers")

QUIT_TIMEOUT = 3.0
ANOTHER_LOGIN_PAUSE = 60.0
"""Seconds that a client which another one has thrown out stays away: two would throw each other out for ever."""
THROW_OUT_TIMEOUT = 5.0
"""Seconds from the word that another client logs in to the end of the connection, where that one is let in."""
WAITING_SILENCE = 1800.0
"""Seconds without a game after which the log-in is repeated; there is no way to ask a server whether it is there."""


class CgosClient(Client):
    """One account on a CGOS server."""

    seat: GoSeat

    def __init__(
        self,
        account: Account,
        password: Password,
        records: Path,
        reporter: Reporter,
        open_seat: Callable[[], GoSeat],
        rng: random.Random | None = None,
    ) -> None:
        """Make a client; see the base class."""
        super().__init__(account, password, records, reporter, open_seat, rng)
        self._game: CgosGame | None = None
        self._has_analysis = False
        self._login_due: float | None = None
        self._logged_in_at: float | None = None
        self._challenged_at: float | None = None
        """When the server said that another client logs in; None where it has said anything since."""

    @property
    def has_game(self) -> bool:
        """Whether there is a game in hand."""
        return self._game is not None

    @property
    def shortest_pause(self) -> float:
        """Seconds to stay away at least where another client has just thrown us out."""
        at = self._challenged_at
        return ANOTHER_LOGIN_PAUSE if at is not None and time.monotonic() < at + THROW_OUT_TIMEOUT else 0.0

    # -- the session -----------------------------------------------------------------------------------------------

    def on_connected(self) -> None:
        """Wait for the server to speak."""
        self._login_due = time.monotonic() + LOGIN_TIMEOUT
        self._logged_in_at = None

    def on_lost(self) -> None:
        """Forget what the connection held; the engine goes on thinking about the move that is due."""
        self._login_due = self._logged_in_at = self._challenged_at = None
        if self._game is not None:
            self._game.due = self._game.sent = None

    def on_finish(self) -> None:
        """Leave where there is no game."""
        if self._game is None and self.is_connected:
            self._quit()

    def _quit(self) -> None:
        self.is_leaving = True
        self._login_due = time.monotonic() + QUIT_TIMEOUT
        self.send("quit")

    def on_line(self, line: Line) -> None:
        """Take a line from the server."""
        message = parse_line(line.text)
        self._challenged_at = None  # a server that goes on talking has not thrown us out
        match message:
            case AskProtocol():
                self._has_analysis = message.has_analysis and self.server.comments
                self.send(format_protocol(self._has_analysis))
            case AskUser():
                self.send(self.account.user)
            case AskPassword():
                self.send(self._password.reveal(), STARS)
                self._login_due, self._logged_in_at = None, line.at
            case Info():
                log.info("%s: the server says %s", self.account.name, self.safe(message.text))
            case AnotherLogin():
                self._challenged_at = line.at
                user = self.account.user
                self.report("another_login", f"another client logs in as {user}, which only one can be", user=user)
            case Refused():
                self.refused(message.text)
            case Setup():
                self._set_up(message)
            case Broken():
                raise ConnectionLostError(f"a game that cannot be played: {message.why}")
            case Other():
                self.noise(message.text)
            case _ if self._game is None:
                self.noise(line.text)
            case Played():
                self._played(self._game, message)
            case Genmove():
                self._genmove(self._game, message, line.at)
            case Gameover():
                self._over(self._game, message)

    def _welcome(self) -> None:
        """Take note that we are in: the server does not say so, but it would have said if we were not."""
        if self._logged_in_at is not None:
            self._logged_in_at = None
            self.login_accepted()

    # -- a game ----------------------------------------------------------------------------------------------------

    def _set_up(self, setup: Setup) -> None:
        """Take up a new game, or the one that the server still holds."""
        colors = [color for color, name in setup.names.items() if name == self.account.user]
        if not colors:
            raise ConnectionLostError(f"a game of {' and '.join(setup.names.values())}, not of {self.account.user}")
        game = self._game
        self._welcome()
        if game is not None and game.is_resumed_by(setup):
            if len(setup.moves) > game.resumed_at:
                game.resumed_at = len(setup.moves)
                self.made_progress()
            if not game.resume(setup):
                self.seat.hurry()
                self._begin(game, is_new=False)
            self.report("resume", f"the game goes on at move {game.ply + 1}", game=game.id, ply=game.ply)
            return
        self.drop_game("the server has begun another one")
        game = self._game = self.new_game(lambda: CgosGame(setup, colors[0], self.records))
        self._begin(game, is_new=True)
        self.save(game)
        self.report(
            "game",
            f"game {game.id}: {COLOR_NAMES[game.color]} against {game.opponent}"
            f" ({setup.ratings[opponent(game.color)]}),"
            f" {setup.size}x{setup.size}, komi {setup.komi:g}, {setup.seconds:g} s"
            + (f", from move {game.ply + 1}" if game.ply else ""),
            game=game.id,
            color=LETTERS[game.color],
            opponent=game.opponent,
            rating=setup.ratings[opponent(game.color)],
            size=setup.size,
            komi=setup.komi,
            total=setup.seconds,
            ply=game.ply,
        )

    def _begin(self, game: CgosGame, is_new: bool) -> None:
        start = game.start(is_new)
        self.submit("begin", lambda: self.seat.begin(start))

    def _played(self, game: CgosGame, message: Played) -> None:
        if message.color == game.color or message.color != game.side_to_move:
            raise OutOfStepError(f"{COLOR_NAMES[message.color]} plays {message.vertex[:20]} out of turn")
        game.play(message.color, message.vertex, message.left)
        self.made_progress()
        self.submit("play", lambda: self.seat.play(message.color, message.vertex))
        self._after_move(game)

    def _genmove(self, game: CgosGame, message: Genmove, at: float) -> None:
        """See to it that a move is sent: the one that is decided, the one that is thought about, or a new one."""
        if message.color != game.color or message.color != game.side_to_move:
            raise OutOfStepError(f"a move of {COLOR_NAMES[message.color]} is asked for out of turn")
        if game.sent is not None:
            left, taken = game.sent
            self.lag.note(left - message.left - taken)
            game.sent = None
        game.note_left(game.color, message.left)
        game.due = at
        if game.decided is not None and game.decided[0] == game.ply:
            self._answer(game, game.decided[1])
        elif game.turn is None or game.turn.ply != game.ply:
            self._think(game)

    def _think(self, game: CgosGame) -> None:
        assert game.due is not None
        turn = game.turn = Turn(game.ply)
        color, left, at, lag = game.color, game.left[game.color], game.due, self.lag.expected
        self.submit(turn, lambda: self.seat.genmove(color, left, at, lag))

    def on_done(self, done: Done) -> None:
        """Take what the engine has done."""
        game = self._game
        turn = game.turn if game is not None and done.tag is game.turn else None
        error = done.error
        if game is not None and turn is not None and error is None:
            error = _fault_of(game, turn, done.result)
        if error is not None:
            self._start_over(game, error)
        elif game is not None and turn is not None:
            assert isinstance(done.result, GoReply)
            self.engine_worked()
            game.decided, game.turn = (turn.ply, done.result), None
            if self.is_connected and game.due is not None:
                self._answer(game, done.result)

    def _start_over(self, game: CgosGame | None, error: Exception) -> None:
        """Start the engine anew; it has what is left of the clock for a move that is due."""
        self.engine_failed(error)
        self.submit("reopen", self.reopen)
        if game is None:
            return
        game.turn = game.decided = None
        self._begin(game, is_new=True)
        if self.is_connected and game.due is not None:
            self._think(game)

    def _answer(self, game: CgosGame, reply: GoReply) -> None:
        """Send the move that is due, and think on."""
        assert game.due is not None
        taken = time.monotonic() - game.due
        game.max_seconds = max(game.max_seconds, taken)
        game.due, game.sent = None, (game.left[game.color], taken)
        if reply.vertex != "resign":
            game.play(game.color, reply.vertex, None, reply.comment)
        self.send(format_move(reply.vertex, reply.analysis if self._has_analysis else ""))
        if self.seat.ponders and reply.vertex != "resign":
            self.submit("ponder", self.seat.ponder)
        self._after_move(game)

    def _after_move(self, game: CgosGame) -> None:
        self.save(game)
        if not game.moves:
            return
        last = game.moves[-1]
        self.report(
            "move",
            game=game.id,
            ply=game.ply,
            color=LETTERS[last.color],
            move=last.vertex,
            left=round(game.left[last.color], 3),
            comment=last.comment,
            lag=round(self.lag.mean, 4),
        )
        self.show_game(game, game.left)

    def _over(self, game: CgosGame, message: Gameover) -> None:
        """Complete the game, and say whether there is to be another one."""
        outcome = game.finish(message.result)
        self._game = None
        self.seat.hurry()
        why = f"{message.result} {message.text}".rstrip()
        self.completed(game, outcome, why, result=message.result, reason=message.text)
        self.submit("end", lambda: self.seat.end(message.result))
        if self.wants_no_more:
            self._quit()
        else:
            self.send("ready")
            self.status("waiting for a game")

    def drop_game(self, why: str) -> None:
        """Give up a game that will not go on."""
        game, self._game = self._game, None
        if game is not None:
            self.seat.hurry()
            self.dropped(game, why)

    def resign_game(self) -> None:
        """Resign, as nothing is there to play on."""
        if self._game is not None and self._game.due is not None:
            self.send("resign")

    # -- time ------------------------------------------------------------------------------------------------------

    def dues(self) -> list[Due]:
        """Return when to give up a server that is silent, or a game that it no longer holds."""
        dues: list[Due] = []
        if self._login_due is not None:
            dues.append(self.timeout_at(self._login_due, "no answer to the log-in"))
        if self._logged_in_at is not None:
            dues.append(Due(self._logged_in_at + RESUME_TIMEOUT, self._resume_no_game))
        game = self._game
        if game is None:
            dues.append(self.timeout_at(self.last_line + WAITING_SILENCE, "silence"))
        elif game.due is None and self._logged_in_at is None:
            patience = game.left[opponent(game.color)] + OPPONENT_GRACE
            dues.append(self.timeout_at(self.last_line + patience, "silence beyond the opponent's time"))
        return dues

    def _resume_no_game(self) -> None:
        """Go on without the game in hand, if any, which the server would have told of by now."""
        if self.is_leaving:
            raise SessionOver
        self._welcome()
        self.status("waiting for a game")
        if self._game is not None:
            self.drop_game("it ended while there was no connection")
            if self.wants_no_more:
                self._quit()


def _fault_of(game: CgosGame, turn: Turn, reply: object) -> Exception | None:
    """Return the error of an engine that chose an illegal move; None if the move is legal, or its turn is over."""
    assert isinstance(reply, GoReply)
    if reply.vertex == "resign" or turn.ply != game.ply:
        return None
    try:
        why = game.board.why_illegal(game.color, parse_vertex(reply.vertex, game.setup.size), strict=False)
    except VertexError as error:
        return error
    return None if why is None else ValueError(f"illegal move {reply.vertex}: {why}")

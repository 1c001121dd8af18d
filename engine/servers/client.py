"""The base of the clients of both protocols: connects again and again, and runs the loop.

One thread runs a client's loop, which owns the socket and the state of the game. The engine works in a thread of its
own (`Worker`). Its moves, and Ctrl-C, reach the loop through the mailbox.
"""

from __future__ import annotations

import abc
import contextlib
import logging
import random
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeAlias, TypeVar

from yomi.engine.color import BLACK, COLOR_NAMES, WHITE
from yomi.engine.players.request import Request
from yomi.engine.servers.connection import Backoff, Connection, ConnectionLostError, Done, Lag, Line, Mailbox, Worker
from yomi.engine.servers.game import GaveUpError, MoveTask, Seat, ServerGame
from yomi.engine.servers.settings import Account, Password
from yomi.errors import reraised

if TYPE_CHECKING:
    from yomi.engine.servers.runner import Reporter

log = logging.getLogger("yomi.servers")

STEADY = 30.0  # seconds after which a connection counts as good, so that the pauses start again
LOGIN_TIMEOUT = 30.0  # seconds that a server may take for the login
RESUME_TIMEOUT = 15.0  # seconds after the login in which a server that still holds our game reports it
OPPONENT_GRACE = 60.0  # seconds beyond the opponent's time after which a silent server counts as gone
REFUSALS = 5  # consecutive refused logins before a client that was never accepted gives up
ENGINE_FAILURES = 3  # consecutive failures of the engine before a client gives up
MAX_NOISE = 200  # meaningless lines on one connection before it is closed, so that they do not fill the log
MAX_SHOWN = 300  # maximum characters of a protocol line in the log
# Range of seconds, drawn at random, between an orderly end of a connection and the next one.
BETWEEN_SESSIONS = (0.2, 1.0)
CLOSE_TIMEOUT = 5.0  # seconds that an engine may take to end its work
# Outcome of a game for us: +1 won, -1 lost, 0 drawn, None without result.
OUTCOME_NAMES = {1: "won", -1: "lost", 0: "drawn", None: "broken off"}


G = TypeVar("G", bound=ServerGame[Any])
S = TypeVar("S", bound=Seat)


class _LeaveError(Exception):
    """The user wants to end the session at once."""


class SessionOver(Exception):  # noqa: N818  (it is no error)
    """The connection has ended in the normal way."""


# (time.monotonic(), action) for later, unless an earlier event makes the action obsolete. The action raises
# ConnectionLostError if the session is useless, SessionOver if it has ended in order.
Due: TypeAlias = tuple[float, Callable[[], None]]


class Client(abc.ABC, Generic[G, S]):
    seat: S  # the engine, once the client runs
    game: G | None = None  # the current game, which the server may still hold after the connection is lost
    logout: tuple[str, float]  # the protocol's word, and seconds until the server must have answered it
    resignation: str  # the protocol's word
    deadline: float | None = None  # for the server's answer to log-in or log-out
    resume_due: float | None = None  # for the server's offer to resume the current game

    def __init__(
        self,
        account: Account,
        password: Password,
        records: Path,
        reporter: Reporter,
        open_seat: Callable[[], S],
        rng: random.Random | None = None,
    ) -> None:
        """Create a client; do not connect yet. `records` is the folder for all accounts; `rng` draws the pauses."""
        self.account = account
        self.server = account.server
        self.records = records / account.name
        self.reporter = reporter
        self.lag = Lag()
        self.won = self.lost = self.drawn = 0
        self.mailbox = Mailbox()
        self.is_finishing = False  # the user has asked for the end
        self.is_leaving = False  # the session is ending: the server may close the connection without a word
        self.games_left: float = 0
        self._password = password
        self._open_seat = open_seat
        self._rng = rng or random.Random()
        self.backoff = Backoff(self._rng)
        self._connection: Connection | None = None
        self._worker: Worker | None = None
        self.last_sent = 0.0  # time.monotonic() of the last line sent
        self.last_line = 0.0  # and received
        self._noise = 0
        self._refusals = 0
        self._was_let_in = False
        self._engine_failures = 0
        self._all_failures = 0

    # -- from other threads ----------------------------------------------------------------------------------------

    def finish(self) -> None:
        """End after the current game. Thread-safe."""
        self.mailbox.post("finish")

    def leave(self) -> None:
        """End at once. Thread-safe."""
        self.mailbox.post("leave")

    # -- what a protocol adds --------------------------------------------------------------------------------------

    @property
    def shortest_pause(self) -> float:
        """Minimum pause in seconds before connecting again, if the connection is lost now."""
        return 0.0

    @abc.abstractmethod
    def on_connected(self) -> None: ...

    @abc.abstractmethod
    def on_line(self, line: Line) -> None:
        """Handle a line from the server.

        Raises:
            ConnectionLostError: the session cannot continue; the client connects again.
            SessionOver: the session has ended in the normal way.
        """

    @abc.abstractmethod
    def fault_of(self, game: G, turn: MoveTask, result: Any) -> Exception | None:
        """Return an error if the engine chose an illegal move; None if the move is legal or no longer wanted."""

    @abc.abstractmethod
    def begin_game(self, game: G) -> None:
        """Set up a game on the engine."""

    @abc.abstractmethod
    def answer(self, game: G, decision: Any, taken: float) -> None:
        """Send our decision, which took `taken` seconds. Raises ConnectionLostError."""

    def on_lost(self) -> None:
        # The engine continues to think about a pending move.
        self.deadline = self.resume_due = None

    def dues(self) -> list[Due]:
        """Return the actions that are due later in the current state, each with its time."""
        dues = [] if self.deadline is None else [self.timeout_at(self.deadline, "no answer to the log-in")]
        return dues if self.resume_due is None else [*dues, (self.resume_due, self.resume_no_game)]

    def resume_no_game(self) -> None:
        # The server would have resumed the game, or offered it, by now.
        self.resume_due = None
        if self.game is not None:
            self.drop_game("it ended while there was no connection")
            if self.wants_no_more:
                self.log_out()

    def log_out(self) -> None:
        word, timeout = self.logout
        self.is_leaving = True
        self.deadline = time.monotonic() + timeout
        self.send(word)

    # -- the loop --------------------------------------------------------------------------------------------------

    def run(self, games: int = 0) -> None:
        self.games_left = games or float("inf")
        self._worker = Worker(self.mailbox.post, f"engine {self.account.name}")
        try:
            self.seat = self._open_seat()
            self.report("engine", f"{self.seat.name} is ready", engine=self.seat.name)
            self._take_mail()
            while not self._is_over:
                self._sleep(self._one_session())
        except _LeaveError:
            self.report("leave", "left" + (" during a game" if self.game is not None else ""))
        finally:
            self.drop_game("the client ends")
            self._close()
            self.mailbox.close()

    @property
    def wants_no_more(self) -> bool:
        return self.is_finishing or self.games_left <= 0

    @property
    def _is_over(self) -> bool:
        return self.game is None and self.wants_no_more

    def _reopen(self) -> None:
        # In the engine's thread.
        with contextlib.suppress(Exception):  # it has failed already
            self.seat.close()
        self.seat = self._open_seat()

    def drop_game(self, why: str) -> None:
        """Give up the current game, if there is one, and write its record."""
        game, self.game = self.game, None
        if game is not None:
            self.stop_thinking(game)
            self.dropped(game, why)

    def _close(self) -> None:
        assert self._worker is not None
        seat: S | None = getattr(self, "seat", None)
        if seat is not None:
            self._worker.submit(("", "close"), seat.close)
        if not self._worker.close(CLOSE_TIMEOUT) and seat is not None:
            log.warning("%s: the engine does not end by itself", self.account.name)
            seat.close()

    def _one_session(self) -> float:
        """Connect, and play until the connection ends. Return the seconds to wait before the next one."""
        begin = time.monotonic()
        self.is_leaving = False
        try:
            self.status("connecting")
            self._connection = Connection.open(self.server.host, self.server.port)
            self._noise = 0
            self.last_line = self.last_sent = time.monotonic()
            self.report("connected", host=self.server.host, port=self.server.port)
            self.on_connected()
            while True:
                self._turn()
        except (SessionOver, ConnectionLostError) as error:
            if isinstance(error, SessionOver) or self.is_leaving:
                self.backoff.reset()
                return self._rng.uniform(*BETWEEN_SESSIONS)
            if self._connection is not None and time.monotonic() - begin > STEADY:
                self.backoff.reset()
            pause = max(self.backoff.next(self.game is not None), self.shortest_pause)
            again = "" if self._is_over else f"; again in {pause:.1f} s"
            self.report("lost", f"{error}{again}", why=str(error), pause=round(pause, 3))
            return pause
        finally:
            self._disconnect()
            self.on_lost()

    def _disconnect(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _turn(self) -> None:
        connection = self._connection
        assert connection is not None
        now = time.monotonic()
        at = min((due for due, _ in self.dues()), default=now + 3600.0)
        is_ready = self.mailbox.wait(connection, at - now)
        self._take_mail()
        if is_ready:
            dropped = connection.dropped_lines
            for line in connection.read():
                self.last_line = line.at
                log.debug("%s < %s", self.account.name, self.safe(line.text)[:MAX_SHOWN])
                self.on_line(line)
            if connection.dropped_lines > dropped:
                self.noise("a line of more than 65,536 characters")
        now = time.monotonic()
        for due, act in self.dues():
            if now >= due:
                act()

    def on_done(self, done: Done) -> None:
        """Handle a finished call of the engine. There may be no connection at that time."""
        game = self.game
        turn = game.turn if game is not None and done.tag is game.turn else None
        error = done.error
        if game is not None and turn is not None and error is None:
            error = self.fault_of(game, turn, done.result)
        if error is not None:
            self._engine_failed(error)
            self.submit("reopen", self._reopen)
            if game is not None:
                self.stop_thinking(game)
                game.decided = None
                self.begin_game(game)
                if self.is_connected:
                    self.our_turn(game)
        elif game is not None and turn is not None:
            self._engine_failures = 0
            game.turn = None
            if not turn.request.is_pondering:  # otherwise the move is thought about again when it is due
                game.decided = (turn.ply, done.result)
                if self.is_connected:
                    self._answer_decided(game)

    def _take_mail(self) -> None:
        while (item := self.mailbox.take()) is not None:
            if item == "leave":
                raise _LeaveError
            if item == "finish":
                self.is_finishing = True
                words = "ends after this game" if self.game is not None else "ends"
                self.report("finish", f"{words} (again to leave at once)")
                if self.game is None and self.is_connected and not self.is_leaving:
                    self.log_out()
            elif isinstance(item, Done):
                failures, tag = item.tag
                if failures == self._all_failures:
                    self.on_done(replace(item, tag=tag))

    def _sleep(self, seconds: float) -> None:
        end = time.monotonic() + seconds
        while not self._is_over and (now := time.monotonic()) < end:
            self.mailbox.wait(None, end - now)
            self._take_mail()

    # -- the engine's work -----------------------------------------------------------------------------------------

    def our_turn(self, game: G) -> None:
        """If a move of ours is due, send the decision. Without a decision, start or continue to think."""
        if game.asked_at is None or self._answer_decided(game):
            return
        turn = game.turn
        if turn is None or turn.ply != game.ply or turn.request.is_stopped or turn.request.is_pondering:
            self._begin_task(game, game.task(Request(None, start=game.asked_at)))

    def _answer_decided(self, game: G) -> bool:
        if game.asked_at is None or game.decided is None or game.decided[0] != game.ply:
            return False
        taken = time.monotonic() - game.asked_at
        game.max_seconds = max(game.max_seconds, taken)
        self.answer(game, game.decided[1], taken)
        return True

    def ponder(self, game: G, *guess: str, spent: float = 0.0) -> None:
        """Think during the opponent's time: about the current position, or about the position after a guessed reply."""
        self._begin_task(game, game.task(Request(None, ponder=True), *guess), spent)

    def _begin_task(self, game: G, task: MoveTask, spent: float = 0.0) -> None:
        self.stop_thinking(game)
        game.turn = task
        self.seat.set_clocks(task.request, game.clocks(spent), self.lag.expected)
        self.submit(task, lambda: self.seat.think(task))

    def stop_thinking(self, game: G) -> None:
        if game.turn is not None:
            game.turn.request.stop()
            game.turn = None

    # -- for the protocols -----------------------------------------------------------------------------------------

    @property
    def is_connected(self) -> bool:
        return self._connection is not None

    def timeout_at(self, at: float, why: str) -> Due:
        """Return an action that ends the session if the server sends nothing until `at`."""

        def give_up() -> None:
            raise SessionOver if self.is_leaving else ConnectionLostError(why)

        return at, give_up

    def submit(self, tag: object, call: Callable[[], object]) -> None:
        """Call a function in the engine's thread, unless the engine fails before that."""
        assert self._worker is not None
        # Calls that were queued before a failure belong to an engine that is gone.
        failures = self._all_failures
        self._worker.submit((failures, tag), lambda: call() if failures == self._all_failures else None)

    def send(self, text: str, shown: str | None = None) -> None:
        """Send a line. The log gets `shown` instead of `text`, if that is set."""
        if self._connection is None:
            raise ConnectionLostError("there is no connection")
        log.debug("%s > %s", self.account.name, self.safe(text if shown is None else shown)[:MAX_SHOWN])
        self._connection.send(text)
        self.last_sent = time.monotonic()

    def safe(self, text: str) -> str:
        """Return a text in which the password is replaced, in case the server has sent it back."""
        return self._password.hide(text)

    def report(self, kind: str, text: str = "", **data: object) -> None:
        shown = {key: self.safe(value) if isinstance(value, str) else value for key, value in data.items()}
        self.reporter.event(self.account.name, kind, self.safe(text), **shown)

    def status(self, text: str) -> None:
        score = f" [{self.won}-{self.lost}-{self.drawn}]" if self.won + self.lost + self.drawn else ""
        self.reporter.status(self.account.name, text + score)

    def show_game(self, game: G, left: Mapping[int, float]) -> None:
        clocks = ", ".join(f"{COLOR_NAMES[color]} {left[color]:.0f} s" for color in (BLACK, WHITE))
        self.status(f"{game.opponent}, move {game.ply}, {clocks}, lag {1000 * self.lag.mean:.0f} ms")

    def moved(self, game: G, clocks: Mapping[int, float], **data: object) -> None:
        """Write the record after a move, and report that move."""
        self.save(game)
        self.report("move", "", game=game.id, ply=game.ply, **data, lag=round(self.lag.mean, 4))
        self.show_game(game, clocks)

    def noise(self, text: str) -> None:
        """Log a meaningless line. Raises ConnectionLostError after too many."""
        self._noise += 1
        log.warning("%s: ignored: %s", self.account.name, self.safe(text)[:MAX_SHOWN])
        if self._noise > MAX_NOISE:
            raise ConnectionLostError(f"more than {MAX_NOISE} meaningless lines")

    def login_accepted(self) -> None:
        self._was_let_in = True
        self._refusals = 0
        self.report("login", f"logged in as {self.account.user}", user=self.account.user)

    def refused(self, why: str) -> None:
        """Raise ConnectionLostError after a refused login, or GaveUpError if no login was ever accepted."""
        self._refusals += 1
        if not self._was_let_in and self._refusals >= REFUSALS:
            raise GaveUpError(f"{self.account.name}: refused {self._refusals} times: {self.safe(why)}")
        raise ConnectionLostError(f"refused: {why}")

    def _engine_failed(self, error: Exception) -> None:
        # Raises GaveUpError after too many failures in a row: a restart does not help such an engine.
        self._engine_failures += 1
        self._all_failures += 1
        log.error("%s: the engine failed", self.account.name, exc_info=error)
        self.report("engine_failed", f"the engine failed: {error}", why=str(error))
        if self._engine_failures >= ENGINE_FAILURES:
            if self.game is not None and self.game.asked_at is not None:
                with contextlib.suppress(ConnectionLostError):
                    self.send(self.resignation)
            raise GaveUpError(f"{self.account.name}: the engine failed {self._engine_failures} times in a row: {error}")

    def new_game(self, make: Callable[[], G]) -> G:
        with reraised(OSError, ConnectionLostError, f"cannot write a record to {self.records}: "):
            self.game = make()
            return self.game

    def save(self, game: G) -> None:
        try:
            game.save()
        except OSError as error:  # the game continues, and the next move tries again
            log.error("%s: cannot write %s: %s", self.account.name, game.path, error.strerror)

    def dropped(self, game: G, why: str) -> None:
        """Write the record of a game that was given up, and count that game."""
        self.save(game)
        self.game_over(None)
        self.report("dropped", f"game {game.id} is given up: {why}", game=game.id, record=str(game.path))

    def completed(self, game: G, outcome: int | None, why: str, *, result: str, reason: str, name: str = "") -> None:
        """Write the record of a finished game, and count that game.

        `outcome` is a key of OUTCOME_NAMES, `name` replaces its text. `why` is our explanation for people. The other
        arguments are the server's words.
        """
        self.save(game)
        self.game_over(outcome)
        self.report(
            "over",
            f"{name or OUTCOME_NAMES[outcome]} against {game.opponent}: {why}, {game.ply} moves"
            f" (lag {1000 * self.lag.mean:.0f} ms); record {game.path.name}",
            game=game.id,
            result=result,
            reason=reason,
            plies=game.ply,
            longest=round(game.max_seconds, 3),
            record=str(game.path),
            lag=round(self.lag.mean, 4),
        )

    def game_over(self, outcome: int | None) -> None:
        self.games_left -= 1
        self.won += outcome == 1
        self.lost += outcome == -1
        self.drawn += outcome == 0
        self.backoff.reset()


AnyClient: TypeAlias = Client[Any, Any]

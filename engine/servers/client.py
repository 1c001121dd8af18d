"""What the clients of both protocols share: connecting again and again, the loop, and how it ends.

One thread runs a client's loop, which owns the socket and the state of the game. The engine works in a thread of its
own (`Worker`). Everything else that happens comes through the mailbox.
"""

from __future__ import annotations

import abc
import contextlib
import logging
import random
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol, TypeVar

from yomi.engine.color import BLACK, COLOR_NAMES, WHITE
from yomi.engine.servers.backoff import Backoff
from yomi.engine.servers.connection import Connection, ConnectionLostError, Line, Mailbox
from yomi.engine.servers.lag import Lag
from yomi.engine.servers.passwords import Password
from yomi.engine.servers.recording import RecordFile
from yomi.engine.servers.reporter import Reporter
from yomi.engine.servers.seat import GaveUpError, Seat
from yomi.engine.servers.settings import Account
from yomi.engine.servers.worker import Done, Worker

log = logging.getLogger("yomi.servers")

STEADY = 30.0
"""Seconds after which a connection counts as good, so that the pauses begin anew."""
LOGIN_TIMEOUT = 30.0
"""Seconds that a server has for its part of the log-in."""
RESUME_TIMEOUT = 15.0
"""Seconds after the log-in in which a server that still holds our game says so."""
OPPONENT_GRACE = 60.0
"""Seconds beyond the opponent's time after which a silent server is gone."""
REFUSALS = 5
"""Log-ins refused in a row before a client gives up that was never let in."""
ENGINE_FAILURES = 3
"""Failures of the engine in a row that a client lives with."""
MAX_NOISE = 200
"""Lines without meaning on one connection before it is given up; more would only fill the log."""
MAX_SHOWN = 300
"""Characters of a line of the protocol that the log shows."""
BETWEEN_SESSIONS = (0.2, 1.0)
"""Seconds, drawn by chance, between an orderly end of a connection and the next one."""
CLOSE_TIMEOUT = 5.0
"""Seconds that an engine has to end what it does."""
OUTCOME_NAMES = {1: "won", -1: "lost", 0: "drawn", None: "broken off"}
"""By the outcome of a game for us: +1 won, -1 lost, 0 drawn, None without result."""


class Game(Protocol):
    """What the games of both protocols have in common."""

    @property
    def id(self) -> str:
        """The server's name for it."""

    @property
    def file(self) -> RecordFile:
        """Of the record."""

    @property
    def opponent(self) -> str:
        """The other side's name."""

    @property
    def ply(self) -> int:
        """Moves so far."""

    @property
    def max_seconds(self) -> float:
        """The longest that one of our moves took, as seen from here."""

    def save(self) -> None:
        """Write the record.

        Raises:
            OSError: it cannot be written.
        """


AnyGame = TypeVar("AnyGame", bound=Game)


class _LeaveError(Exception):
    """The user wants to leave at once."""


class SessionOver(Exception):  # noqa: N818  (it is no error)
    """A connection has come to its orderly end."""


@dataclass(frozen=True, slots=True)
class Due:
    """Something that is to be done unless what it waits for happens before."""

    at: float
    """When (time.monotonic())."""
    act: Callable[[], None]
    """Does it; raises ConnectionLostError where the session is of no use, SessionOver where it has ended in order."""


class Client(abc.ABC):
    """One account on one server."""

    seat: Seat
    """What plays, once the client runs."""

    def __init__(
        self,
        account: Account,
        password: Password,
        records: Path,
        reporter: Reporter,
        open_seat: Callable[[], Seat],
        rng: random.Random | None = None,
    ) -> None:
        """Make a client; nothing is connected yet.

        Args:
            account: who plays where.
            password: of the account.
            records: folder of the records of all accounts.
            reporter: for what happens.
            open_seat: starts the engine, which may take long; raises GaveUpError where it cannot be started.
            rng: of pauses.
        """
        self.account = account
        self.server = account.server
        self.records = records / account.name
        self.reporter = reporter
        self.lag = Lag()
        self.won = self.lost = self.drawn = 0
        self.mailbox = Mailbox()
        self.is_finishing = False
        """The user has asked for the end."""
        self.is_leaving = False
        """The session is being ended: the server may close the connection without a word."""
        self.games_left: float = 0
        self._password = password
        self._open_seat = open_seat
        self._rng = rng or random.Random()
        self._backoff = Backoff(self._rng)
        self._connection: Connection | None = None
        self._worker: Worker | None = None
        self._last_sent = 0.0
        self._last_line = 0.0
        self._noise = 0
        self._refusals = 0
        self._was_let_in = False
        self._engine_failures = 0
        self._all_failures = 0

    # -- from other threads ----------------------------------------------------------------------------------------

    def finish(self) -> None:
        """End after the game in hand."""
        self.mailbox.post("finish")

    def leave(self) -> None:
        """End at once."""
        self.mailbox.post("leave")

    # -- what a protocol adds --------------------------------------------------------------------------------------

    @property
    def shortest_pause(self) -> float:
        """Seconds to stay away at least if the connection is lost now."""
        return 0.0

    @property
    @abc.abstractmethod
    def has_game(self) -> bool:
        """Whether there is a game in hand, which the server may still hold."""

    @abc.abstractmethod
    def on_connected(self) -> None:
        """Begin a session."""

    @abc.abstractmethod
    def on_line(self, line: Line) -> None:
        """Take a line from the server.

        Raises:
            ConnectionLostError: the session is of no use.
            SessionOver: it has ended in order.
        """

    @abc.abstractmethod
    def on_done(self, done: Done) -> None:
        """Take what the engine has done; there may be no connection."""

    @abc.abstractmethod
    def on_lost(self) -> None:
        """Take note that the connection is gone."""

    @abc.abstractmethod
    def on_finish(self) -> None:
        """Log out if there is no game in hand."""

    @abc.abstractmethod
    def dues(self) -> list[Due]:
        """Return what is to be done later, as things stand."""

    # -- the loop --------------------------------------------------------------------------------------------------

    def run(self, games: int = 0) -> None:
        """Play until the games are played (0: for ever) or somebody ends it.

        Raises:
            GaveUpError: there is no use in going on.
        """
        self.games_left = games or float("inf")
        self._worker = Worker(self.mailbox.post, f"engine {self.account.name}")
        try:
            self.seat = self._open_seat()
            self.report("engine", f"{self.seat.name} is ready", engine=self.seat.name)
            self._take_mail()
            while not self._is_over:
                self._sleep(self._one_session())
        except _LeaveError:
            self.report("leave", "left" + (" in the middle of a game" if self.has_game else ""))
        finally:
            self.drop_game("the client ends")
            self._close()
            self.mailbox.close()

    @property
    def wants_no_more(self) -> bool:
        """Whether no further game is to be begun."""
        return self.is_finishing or self.games_left <= 0

    @property
    def _is_over(self) -> bool:
        return not self.has_game and self.wants_no_more

    def reopen(self) -> None:
        """Start the engine anew, in its thread."""
        with contextlib.suppress(Exception):  # it has failed already, and is to go
            self.seat.close()
        self.seat = self._open_seat()

    @abc.abstractmethod
    def resign_game(self) -> None:
        """Resign a game in hand: there is no engine to play on with.

        Raises:
            ConnectionLostError: this cannot be sent.
        """

    @abc.abstractmethod
    def drop_game(self, why: str) -> None:
        """Give up a game that will not go on, where there is one, and write its record."""

    def _close(self) -> None:
        if self._worker is not None and hasattr(self, "seat"):
            seat = self.seat
            self._worker.submit(("", "close"), seat.close)
            if not self._worker.close(CLOSE_TIMEOUT):
                log.warning("%s: the engine does not end by itself", self.account.name)
                seat.close()
        elif self._worker is not None:
            self._worker.close(CLOSE_TIMEOUT)

    def _one_session(self) -> float:
        """Connect and play until the connection ends; return the seconds to wait after it."""
        begin = time.monotonic()
        self.is_leaving = False
        try:
            self.status("connecting")
            self._connection = Connection.open(self.server.host, self.server.port)
            self._noise = 0
            self._last_line = self._last_sent = time.monotonic()
            self.report("connected", host=self.server.host, port=self.server.port)
            self.on_connected()
            while True:
                self._turn()
        except (SessionOver, ConnectionLostError) as error:
            if isinstance(error, SessionOver) or self.is_leaving:
                self._backoff.reset()
                return self._rng.uniform(*BETWEEN_SESSIONS)
            if self._connection is not None and time.monotonic() - begin > STEADY:
                self._backoff.reset()
            pause = max(self._backoff.next(self.has_game), self.shortest_pause)
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
        """Wait for something to happen and see to it."""
        connection = self._connection
        assert connection is not None
        now = time.monotonic()
        at = min((due.at for due in self.dues()), default=now + 3600.0)
        is_ready = self.mailbox.wait(connection, at - now)
        self._take_mail()
        if is_ready:
            dropped = connection.dropped_lines
            for line in connection.read():
                self._last_line = line.at
                if log.isEnabledFor(logging.DEBUG):
                    log.debug("%s < %s", self.account.name, self.safe(line.text)[:MAX_SHOWN])
                self.on_line(line)
            if connection.dropped_lines > dropped:
                self.noise("a line of more than 65,536 characters")
        now = time.monotonic()
        for due in self.dues():
            if now >= due.at:
                due.act()

    def _take_mail(self) -> None:
        while (item := self.mailbox.take()) is not None:
            if item == "leave":
                raise _LeaveError
            if item == "finish":
                self.is_finishing = True
                words = "ends after this game" if self.has_game else "ends"
                self.report("finish", f"{words} (again to leave at once)")
                self.on_finish()
            elif isinstance(item, Done):
                failures, tag = item.tag
                if failures == self._all_failures:
                    self.on_done(replace(item, tag=tag))

    def _sleep(self, seconds: float) -> None:
        """Wait between two connections; the engine may go on working for a game in hand."""
        end = time.monotonic() + seconds
        while not self._is_over and (now := time.monotonic()) < end:
            self.mailbox.wait(None, end - now)
            self._take_mail()

    # -- for the protocols -----------------------------------------------------------------------------------------

    @property
    def is_connected(self) -> bool:
        """Whether there is a connection."""
        return self._connection is not None

    @property
    def last_sent(self) -> float:
        """When something was last sent (time.monotonic())."""
        return self._last_sent

    @property
    def last_line(self) -> float:
        """When something last came (time.monotonic())."""
        return self._last_line

    def lost_at(self, at: float, why: str) -> Due:
        """Return the end of a session in which the server is silent until `at`; one that is left may end so."""

        def give_up() -> None:
            raise SessionOver if self.is_leaving else ConnectionLostError(why)

        return Due(at, give_up)

    def submit(self, tag: object, call: Callable[[], object]) -> None:
        """Have the engine's thread call something; what waits when the engine fails is not called any more."""
        assert self._worker is not None
        failures = self._all_failures
        self._worker.submit((failures, tag), lambda: call() if failures == self._all_failures else None)

    def send(self, text: str, shown: str | None = None) -> None:
        """Send a line.

        Args:
            text: the line.
            shown: what the log gets in its place.

        Raises:
            ConnectionLostError: it cannot be sent.
        """
        if self._connection is None:
            raise ConnectionLostError("there is no connection")
        if log.isEnabledFor(logging.DEBUG):
            log.debug("%s > %s", self.account.name, self.safe(text if shown is None else shown)[:MAX_SHOWN])
        self._connection.send(text)
        self._last_sent = time.monotonic()

    def safe(self, text: str) -> str:
        """Return a text that may be shown: without the password, should the server have sent it back."""
        return self._password.hide(text)

    def report(self, kind: str, text: str = "", **data: object) -> None:
        """Report an event; whatever a server has put into it, the password is not shown."""
        shown = {key: self.safe(value) if isinstance(value, str) else value for key, value in data.items()}
        self.reporter.event(self.account.name, kind, self.safe(text), **shown)

    def status(self, text: str) -> None:
        """Show how things stand."""
        score = f" [{self.won}-{self.lost}-{self.drawn}]" if self.won + self.lost + self.drawn else ""
        self.reporter.status(self.account.name, text + score)

    def show_game(self, game: Game, left: Mapping[int, float]) -> None:
        """Show how a game stands; `left` are the seconds that each color has."""
        clocks = ", ".join(f"{COLOR_NAMES[color]} {left[color]:.0f} s" for color in (BLACK, WHITE))
        self.status(f"{game.opponent}, move {game.ply}, {clocks}, lag {1000 * self.lag.mean:.0f} ms")

    def noise(self, text: str) -> None:
        """Take note of a line without meaning.

        Raises:
            ConnectionLostError: there were too many.
        """
        self._noise += 1
        log.warning("%s: passed over: %s", self.account.name, self.safe(text)[:MAX_SHOWN])
        if self._noise > MAX_NOISE:
            raise ConnectionLostError(f"more than {MAX_NOISE} lines that mean nothing")

    def let_in(self) -> None:
        """Take note that the server has accepted the log-in."""
        self._was_let_in = True
        self._refusals = 0
        self.report("login", f"logged in as {self.account.user}", user=self.account.user)

    def refused(self, why: str) -> None:
        """Take note that the server has refused the log-in, which may be because it still holds the last one.

        Raises:
            ConnectionLostError: to be tried again.
            GaveUpError: it was never accepted.
        """
        self._refusals += 1
        if not self._was_let_in and self._refusals >= REFUSALS:
            raise GaveUpError(f"{self.account.name}: refused {self._refusals} times: {self.safe(why)}")
        raise ConnectionLostError(f"refused: {why}")

    def engine_failed(self, error: Exception) -> None:
        """Take note that the engine has failed.

        Raises:
            GaveUpError: too often in a row.
        """
        self._engine_failures += 1
        self._all_failures += 1
        log.error("%s: the engine failed", self.account.name, exc_info=error)
        self.report("engine_failed", f"the engine failed: {error}", why=str(error))
        if self._engine_failures >= ENGINE_FAILURES:
            with contextlib.suppress(ConnectionLostError):
                self.resign_game()
            raise GaveUpError(f"{self.account.name}: the engine failed {self._engine_failures} times in a row: {error}")

    def engine_worked(self) -> None:
        """Take note that the engine has done what it should."""
        self._engine_failures = 0

    def made_progress(self) -> None:
        """Take note that the game goes on: a connection that is lost now is one to be quick about."""
        self._backoff.reset()

    def new_game(self, make: Callable[[], AnyGame]) -> AnyGame:
        """Return the game that is made.

        Raises:
            ConnectionLostError: there is no place for its record.
        """
        try:
            return make()
        except OSError as error:
            raise ConnectionLostError(f"no record can be written to {self.records}: {error.strerror}") from None

    def save(self, game: Game) -> None:
        """Write the record of a game as it stands."""
        try:
            game.save()
        except OSError as error:  # the game matters more; the next move tries again
            log.error("%s: cannot write %s: %s", self.account.name, game.file.path, error.strerror)

    def dropped(self, game: Game, why: str) -> None:
        """Write the record of a game that was given up, and count it."""
        self.save(game)
        self.game_over(None)
        self.report("dropped", f"game {game.id} is given up: {why}", game=game.id, record=str(game.file.path))

    def completed(self, game: Game, outcome: int | None, why: str, *, result: str, reason: str, name: str = "") -> None:
        """Write the record of a game that is over, and count it.

        Args:
            game: the game.
            outcome: as in OUTCOME_NAMES.
            why: how it ended, for people.
            result: the server's word for it.
            reason: what the server says besides.
            name: of the outcome, where it is another than in OUTCOME_NAMES.
        """
        self.save(game)
        self.game_over(outcome)
        self.report(
            "over",
            f"{name or OUTCOME_NAMES[outcome]} against {game.opponent}: {why}, {game.ply} moves"
            f" (lag {1000 * self.lag.mean:.0f} ms); record {game.file.path.name}",
            game=game.id,
            result=result,
            reason=reason,
            plies=game.ply,
            longest=round(game.max_seconds, 3),
            record=str(game.file.path),
            lag=round(self.lag.mean, 4),
        )

    def game_over(self, outcome: int | None) -> None:
        """Count a game; see OUTCOME_NAMES."""
        self.games_left -= 1
        self.won += outcome == 1
        self.lost += outcome == -1
        self.drawn += outcome == 0
        self._backoff.reset()

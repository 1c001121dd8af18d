"""The base of both protocols' clients: connects again and again, and runs the loop.

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
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol, TypeVar

from yomi.engine.color import BLACK, COLOR_NAMES, WHITE
from yomi.engine.servers.connection import Backoff, Connection, ConnectionLostError, Lag, Line, Mailbox
from yomi.engine.servers.reporter import RecordFile, Reporter
from yomi.engine.servers.seat import Done, GaveUpError, Seat, Worker
from yomi.engine.servers.settings import Account, Password

log = logging.getLogger("yomi.servers")

STEADY = 30.0
"""Seconds after which a connection counts as good, so that the pauses start again."""
LOGIN_TIMEOUT = 30.0
"""Seconds that a server may take for the login."""
RESUME_TIMEOUT = 15.0
"""Seconds after the login in which a server that still holds our game reports it."""
OPPONENT_GRACE = 60.0
"""Seconds beyond the opponent's time after which a silent server counts as gone."""
REFUSALS = 5
"""Consecutive refused logins before a client that was never accepted gives up."""
ENGINE_FAILURES = 3
"""Consecutive failures of the engine before a client gives up."""
MAX_NOISE = 200
"""Meaningless lines on one connection before it is closed, so that they do not fill the log."""
MAX_SHOWN = 300
"""Maximum characters of a protocol line in the log."""
BETWEEN_SESSIONS = (0.2, 1.0)
"""Range of seconds, drawn at random, between an orderly end of a connection and the next one."""
CLOSE_TIMEOUT = 5.0
"""Seconds that an engine may take to end its work."""
OUTCOME_NAMES = {1: "won", -1: "lost", 0: "drawn", None: "broken off"}
"""Outcome of a game for us: +1 won, -1 lost, 0 drawn, None without result."""


class Game(Protocol):
    """The game of either protocol, as the client uses it."""

    @property
    def id(self) -> str:
        """The server's name for the game."""

    @property
    def file(self) -> RecordFile: ...

    @property
    def opponent(self) -> str: ...

    @property
    def ply(self) -> int: ...

    @property
    def max_seconds(self) -> float:
        """The longest time of one of our moves, measured here."""

    def save(self) -> None: ...


AnyGame = TypeVar("AnyGame", bound=Game)


class _LeaveError(Exception):
    """The user wants to leave at once."""


class SessionOver(Exception):  # noqa: N818  (it is no error)
    """A connection has come to its orderly end."""


@dataclass(frozen=True, slots=True)
class Due:
    """An action for a later time, unless an earlier event makes it obsolete."""

    at: float
    """time.monotonic()."""
    act: Callable[[], None]
    """Raises ConnectionLostError if the session is useless, SessionOver if it has ended in order."""


class Client(abc.ABC):
    seat: Seat
    """The engine, once the client runs."""

    def __init__(
        self,
        account: Account,
        password: Password,
        records: Path,
        reporter: Reporter,
        open_seat: Callable[[], Seat],
        rng: random.Random | None = None,
    ) -> None:
        """Create a client without connecting.

        `records` is the folder for all accounts. `open_seat` starts the engine, which may take long; it raises
        GaveUpError. `rng` draws the pauses.
        """
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
        self._backoff = Backoff(self._rng)
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
        """End after the current game. Any thread may call it."""
        self.mailbox.post("finish")

    def leave(self) -> None:
        """End at once. Any thread may call it."""
        self.mailbox.post("leave")

    # -- what a protocol adds --------------------------------------------------------------------------------------

    @property
    def shortest_pause(self) -> float:
        """Minimum pause in seconds if the connection is lost now."""
        return 0.0

    @property
    @abc.abstractmethod
    def has_game(self) -> bool:
        """Whether there is a current game. The server may still hold it after the connection is lost."""

    @abc.abstractmethod
    def on_connected(self) -> None: ...

    @abc.abstractmethod
    def on_line(self, line: Line) -> None:
        """Handle a line from the server. Raises ConnectionLostError or SessionOver, as Due.act does."""

    @abc.abstractmethod
    def on_done(self, done: Done) -> None:
        """Handle finished work of the engine. There may be no connection."""

    @abc.abstractmethod
    def on_lost(self) -> None: ...

    @abc.abstractmethod
    def on_finish(self) -> None:
        """Log out if there is no current game."""

    @abc.abstractmethod
    def dues(self) -> list[Due]:
        """Return the scheduled actions for the current state."""

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
            self.report("leave", "left" + (" during a game" if self.has_game else ""))
        finally:
            self.drop_game("the client ends")
            self._close()
            self.mailbox.close()

    @property
    def wants_no_more(self) -> bool:
        return self.is_finishing or self.games_left <= 0

    @property
    def _is_over(self) -> bool:
        return not self.has_game and self.wants_no_more

    def reopen(self) -> None:
        """Start the engine again. Runs in the engine's thread."""
        with contextlib.suppress(Exception):  # it has failed already
            self.seat.close()
        self.seat = self._open_seat()

    @abc.abstractmethod
    def resign_game(self) -> None:
        """Resign the current game, because the engine is lost. Raises ConnectionLostError."""

    @abc.abstractmethod
    def drop_game(self, why: str) -> None:
        """Give up the current game, if any, and write its record."""

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
            self.last_line = self.last_sent = time.monotonic()
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
        """Wait for lines, mail or a due time, and handle them."""
        connection = self._connection
        assert connection is not None
        now = time.monotonic()
        at = min((due.at for due in self.dues()), default=now + 3600.0)
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
        """Wait between two connections. The engine may continue to work for a current game."""
        end = time.monotonic() + seconds
        while not self._is_over and (now := time.monotonic()) < end:
            self.mailbox.wait(None, end - now)
            self._take_mail()

    # -- for the protocols -----------------------------------------------------------------------------------------

    @property
    def is_connected(self) -> bool:
        return self._connection is not None

    def timeout_at(self, at: float, why: str) -> Due:
        """Return the end of the session if the server is silent until `at`."""

        def give_up() -> None:
            raise SessionOver if self.is_leaving else ConnectionLostError(why)

        return Due(at, give_up)

    def submit(self, tag: object, call: Callable[[], object]) -> None:
        """Let the engine's thread call a function. If the engine fails before, the call is dropped."""
        assert self._worker is not None
        failures = self._all_failures
        self._worker.submit((failures, tag), lambda: call() if failures == self._all_failures else None)

    def send(self, text: str, shown: str | None = None) -> None:
        """Send a line. The log gets `shown` in its place."""
        if self._connection is None:
            raise ConnectionLostError("there is no connection")
        log.debug("%s > %s", self.account.name, self.safe(text if shown is None else shown)[:MAX_SHOWN])
        self._connection.send(text)
        self.last_sent = time.monotonic()

    def safe(self, text: str) -> str:
        """Return a text without the password, in case the server sent it back."""
        return self._password.hide(text)

    def report(self, kind: str, text: str = "", **data: object) -> None:
        """Report an event. The password is hidden in all texts."""
        shown = {key: self.safe(value) if isinstance(value, str) else value for key, value in data.items()}
        self.reporter.event(self.account.name, kind, self.safe(text), **shown)

    def status(self, text: str) -> None:
        """Show the current status, with the score."""
        score = f" [{self.won}-{self.lost}-{self.drawn}]" if self.won + self.lost + self.drawn else ""
        self.reporter.status(self.account.name, text + score)

    def show_game(self, game: Game, left: Mapping[int, float]) -> None:
        """Show a game in the status; `left`: seconds of each color."""
        clocks = ", ".join(f"{COLOR_NAMES[color]} {left[color]:.0f} s" for color in (BLACK, WHITE))
        self.status(f"{game.opponent}, move {game.ply}, {clocks}, lag {1000 * self.lag.mean:.0f} ms")

    def noise(self, text: str) -> None:
        """Log a meaningless line. Raises ConnectionLostError after too many."""
        self._noise += 1
        log.warning("%s: ignored: %s", self.account.name, self.safe(text)[:MAX_SHOWN])
        if self._noise > MAX_NOISE:
            raise ConnectionLostError(f"more than {MAX_NOISE} meaningless lines")

    def login_accepted(self) -> None:
        """Note that the server has accepted the login."""
        self._was_let_in = True
        self._refusals = 0
        self.report("login", f"logged in as {self.account.user}", user=self.account.user)

    def refused(self, why: str) -> None:
        """Raise ConnectionLostError after a refused login, or GaveUpError if the server never accepted the account."""
        self._refusals += 1
        if not self._was_let_in and self._refusals >= REFUSALS:
            raise GaveUpError(f"{self.account.name}: refused {self._refusals} times: {self.safe(why)}")
        raise ConnectionLostError(f"refused: {why}")

    def engine_failed(self, error: Exception) -> None:
        """Note that the engine has failed. Raises GaveUpError after too many failures in a row."""
        self._engine_failures += 1
        self._all_failures += 1
        log.error("%s: the engine failed", self.account.name, exc_info=error)
        self.report("engine_failed", f"the engine failed: {error}", why=str(error))
        if self._engine_failures >= ENGINE_FAILURES:
            with contextlib.suppress(ConnectionLostError):
                self.resign_game()
            raise GaveUpError(f"{self.account.name}: the engine failed {self._engine_failures} times in a row: {error}")

    def engine_worked(self) -> None:
        self._engine_failures = 0

    def made_progress(self) -> None:
        """Note a move. After a loss of the connection the next attempt comes soon."""
        self._backoff.reset()

    def new_game(self, make: Callable[[], AnyGame]) -> AnyGame:
        try:
            return make()
        except OSError as error:
            raise ConnectionLostError(f"cannot write a record to {self.records}: {error.strerror}") from None

    def save(self, game: Game) -> None:
        try:
            game.save()
        except OSError as error:  # the game continues, and the next move tries again
            log.error("%s: cannot write %s: %s", self.account.name, game.file.path, error.strerror)

    def dropped(self, game: Game, why: str) -> None:
        """Write the record of a game that was given up, and count the game."""
        self.save(game)
        self.game_over(None)
        self.report("dropped", f"game {game.id} is given up: {why}", game=game.id, record=str(game.file.path))

    def completed(self, game: Game, outcome: int | None, why: str, *, result: str, reason: str, name: str = "") -> None:
        """Write the record of a finished game, and count the game.

        `outcome` is a key of OUTCOME_NAMES, and `name` its text if OUTCOME_NAMES does not fit. `why` is for people;
        `result` and `reason` are the server's words.
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
        """Count a game; `outcome` as in OUTCOME_NAMES."""
        self.games_left -= 1
        self.won += outcome == 1
        self.lost += outcome == -1
        self.drawn += outcome == 0
        self._backoff.reset()

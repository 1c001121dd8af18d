"""A USI session: the state that handlers share, and the loop that owns the streams.

The loop reads a line, finds the handler and lets it answer. It never waits for a search: `go` starts a `Turn`, a thread
that thinks and writes the one answer. A command that a turn excludes ends the turn first, so that every `go` has its
answer before the next command takes effect. The loop waits in two places only: for a turn that has been stopped, and
for a player that loads. While it waits it shows signs of life and watches for `quit` and the end of input.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from yomi.engine.levels import LevelSwitch
from yomi.engine.options import OptionError, Options
from yomi.engine.protocols.process import LoadError, internal_error, loading
from yomi.engine.protocols.streams import MAX_LINE, Inbox, OutputClosedError, log_line, logged
from yomi.engine.shogi.descriptor import GAME
from yomi.engine.shogi.usi.codec import Command, format_error, format_string, parse_line

if TYPE_CHECKING:
    from yomi.engine.shogi.game import ShogiGame
    from yomi.engine.shogi.players.player import ShogiPlayer
    from yomi.engine.shogi.usi.turn import Turn

log = logging.getLogger("yomi.usi")

KEEP_ALIVE = 5.0  # seconds between signs of life during loading; interfaces give up at 10 or more
GRACE = 0.4  # seconds that a search may continue after the controller has gone away
PATIENCE = 0.5  # seconds to wait for the last answer at the session's end

POLL = 0.05  # seconds between two looks at the input while the loop waits

MakePlayer = Callable[[Callable[[str], None]], "ShogiPlayer"]
Handler = Callable[["Session", Command], None]


class UsiError(Exception):
    """A command that cannot be executed. The message is one line for the controller."""


class SessionOverError(Exception):
    """The controller ends the session while the loop waits."""


HANDLERS: dict[str, Handler] = {}


def command(*names: str) -> Callable[[Handler], Handler]:
    """Register the decorated function as the handler of `names`."""

    def register(handler: Handler) -> Handler:
        for name in names:
            if name in HANDLERS:
                raise ValueError(f"{name} has a handler")
            HANDLERS[name] = handler
        return handler

    return register


class Session:
    def __init__(
        self, options: Options, make_player: MakePlayer, write: Callable[[str], None], level: LevelSwitch | None = None
    ) -> None:
        """Make a session with shared options; nothing is loaded yet.

        `make_player` is called once in a thread of its own, with a function that shows a line to the user. `write`
        writes text to the controller at once; it raises OutputClosedError.
        """
        self.options = options
        self.level = level or LevelSwitch(GAME, options)
        self.inbox = Inbox()
        self.arrival = time.monotonic()  # arrival of the current command
        self.lock = threading.RLock()  # held while lines are written that belong together
        self.turn: Turn | None = None  # the `go` without an answer
        self.is_patient = False  # input comes from a file: searches run to their limits
        self._write = logged(write, log)
        self._make_player = make_player
        self._player: ShogiPlayer | None = None
        self._game: ShogiGame | None = None
        self._failure: str | None = None
        self.position_fault: str | None = None  # why the last `position` was refused, or None
        self._is_output_closed = False
        self._quitting = False
        self._last_sent = 0.0

    # -- output ----------------------------------------------------------------------------------------------------

    def send(self, *lines: str) -> None:
        """Write lines at once and together. Raises OutputClosedError if nobody reads them."""
        with self.lock:
            self._last_sent = time.monotonic()
            try:
                self._write("".join(line + "\n" for line in lines))
            except OutputClosedError:
                self._is_output_closed = True
                self.inbox.close()  # the loop may be waiting there
                raise

    def note(self, text: str) -> None:
        self.send(format_string(text))

    # -- the player ------------------------------------------------------------------------------------------------

    @property
    def is_loaded(self) -> bool:
        """Whether the player is made and has loaded everything that the options name."""
        return self._player is not None and not self._player.needs_loading(self.game)

    @property
    def player(self) -> ShogiPlayer:
        """The player, made on first use. Raises LoadError, or SessionOverError if the controller goes away."""
        if self._player is None:
            self.load()
        assert self._player is not None
        return self._player

    @property
    def game(self) -> ShogiGame:
        """The current game, which belongs to the turn in progress. Errors as for `player`."""
        if self._game is None:
            self.load()
        assert self._game is not None
        return self._game

    @game.setter
    def game(self, game: ShogiGame) -> None:
        self._game = game

    def player_if_made(self) -> ShogiPlayer | None:
        """Return the player, or None before its first use."""
        return self._player

    def load(self) -> None:
        """Make the player, or load what the options name now, with signs of life. Errors as for `player`."""
        # Loading takes minutes at worst, and `quit` must end it.
        thread = threading.Thread(target=self._load, name="load", daemon=True)
        thread.start()
        begin = self._last_sent = time.monotonic()
        while thread.is_alive():
            thread.join(POLL)
            if self._wants_to_end():
                raise SessionOverError
            if time.monotonic() >= self._last_sent + KEEP_ALIVE:
                self.note(f"loading, {time.monotonic() - begin:.0f} s ...")
        if self._failure is not None:
            self.send(format_error(self._failure))
            raise LoadError(self._failure)

    def _load(self) -> None:
        try:
            with loading(log):
                from yomi.engine.shogi.players.player import BookLoadingError

                try:
                    self._make()
                except BookLoadingError as error:
                    self.send(format_error(f"{error}; the engine plays without a book"))
                    self.options.set("book_file", None)
                    self._make()
        except LoadError as error:
            self._failure = str(error)
        except OutputClosedError:
            pass  # the loop hears of it by itself

    def _make(self) -> None:
        from yomi.engine.shogi.game import ShogiGame

        player = self._player or self._make_player(self.note)
        if self._game is None:
            self._game = ShogiGame()
        player.load(self._game)
        self._player = player

    def _wants_to_end(self) -> bool:
        if self.is_patient:
            return False
        return self.inbox.is_closed or self._is_waiting("quit")

    def _is_waiting(self, name: str) -> bool:
        waiting = (parse_line(line) for line in self.inbox.lines_waiting())
        return any(request is not None and request.name == name for request in waiting)

    # -- turns -----------------------------------------------------------------------------------------------------

    def end_turn(self) -> None:
        """Let `go` answer now; a script's search runs to its limit. Raises SessionOverError."""
        turn = self.turn
        if turn is None:
            return
        if not (self.is_patient and turn.is_bounded):
            turn.stop()
        while not turn.join(POLL):
            if self._wants_to_end():
                raise SessionOverError
        self.turn = None

    # -- the loop --------------------------------------------------------------------------------------------------

    def quit(self) -> None:
        self._quitting = True

    def handle(self, line: bytes) -> bool:
        """Handle one line; return False when the session is over. Raises OutputClosedError or LoadError."""
        log_line(log, line)
        request = parse_line(line)
        if request is None:
            return True
        if self.turn is not None and self.turn.is_answered:
            self.turn = None
        try:
            if len(line) > MAX_LINE:
                raise UsiError(f"line too long: expected at most {MAX_LINE} bytes")
            handler = HANDLERS.get(request.name)
            if handler is None:
                raise UsiError("unknown command")
            handler(self, request)
        except (UsiError, OptionError) as error:
            self.send(format_error(f"{request.name[:50]}: {error}"))
        except SessionOverError:
            return False
        except (OutputClosedError, LoadError):
            raise
        except Exception as error:  # a fault of ours: the controller gets a line, the log the traceback
            message = internal_error(log, f"in {request.name}", error)
            self.send(format_error(f"{request.name[:50]}: {message}"))
        return not self._quitting

    def receive(self, line: bytes) -> None:
        self.inbox.put(line)

    def receive_end(self, is_script: bool) -> None:
        """Take the end of input from the reader's thread.

        A script (a file, or input that ended before one of its `go` was handled, as in `printf ... | yomi usi`) gets
        full searches. Otherwise the controller has gone away.
        """
        self.is_patient = is_script or self._is_waiting("go")
        self.inbox.close()

    def run(self) -> None:
        """Handle lines until quit or the end of input. Raises OutputClosedError or LoadError."""
        while (item := self.inbox.take()) is not None:
            line, self.arrival = item
            if not self.handle(line):
                break
        if self._is_output_closed:
            raise OutputClosedError
        self._finish()

    def _finish(self) -> None:
        turn = self.turn
        if turn is None:
            return
        if self.is_patient and turn.is_bounded:
            turn.join()
        elif not self._quitting and turn.is_bounded:
            turn.join(GRACE)
        turn.stop()
        turn.join(PATIENCE)

    def close(self) -> None:
        """Release the player, unless a thread still uses it."""
        if self._player is not None and (self.turn is None or self.turn.is_answered):
            self._player.close()

"""A USI session: what the handlers share, and the loop that owns the streams.

The loop takes a line, finds the handler and lets it answer. It never waits for a search: `go` starts a `Turn`, a thread
that thinks and writes the one answer to its `go`. Whatever cannot be done during a turn ends it first, so that every
`go` has its answer before the next command takes effect. The loop waits in two places only: for a turn that was told
to end, and for the player while it loads, with a line now and then, and with an eye on `quit` and the end of input.
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

KEEP_ALIVE = 5.0
"""Seconds between signs of life while the player loads; graphical interfaces give up at 10 and more."""
GRACE = 0.4
"""Seconds that a search may go on after the controller has gone away."""
PATIENCE = 0.5
"""Seconds to wait for the last answer when the session ends."""

POLL = 0.05
"""Seconds between two looks at the input while the loop waits for something."""

MakePlayer = Callable[[Callable[[str], None]], "ShogiPlayer"]
Handler = Callable[["Session", Command], None]


class UsiError(Exception):
    """A command that cannot be done; the message is one line and goes to the controller."""


class SessionOverError(Exception):
    """The controller wants the session to end while it waits for something."""


HANDLERS: dict[str, Handler] = {}
"""Every command with what handles it."""


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
    """What the handlers of one controller share."""

    def __init__(
        self, options: Options, make_player: MakePlayer, write: Callable[[str], None], level: LevelSwitch | None = None
    ) -> None:
        """Make a session; nothing is loaded yet.

        Args:
            options: Settings, shared with the player.
            make_player: Makes the player; called once, in a thread of its own; gets what shows a line to the user.
            write: Writes text to the controller at once; raises OutputClosedError.
            level: Keeps the options at their level; None: made here.
        """
        self.options = options
        self.level = level or LevelSwitch(GAME, options)
        self.inbox = Inbox()
        self.arrival = time.monotonic()
        """When the command in progress came."""
        self.lock = threading.RLock()
        """Held while lines are written that belong together."""
        self.turn: Turn | None = None
        """The `go` that has no answer yet."""
        self.is_patient = False
        """Input comes from a file: searches with a limit go on to it."""
        self._write = logged(write, log)
        self._make_player = make_player
        self._player: ShogiPlayer | None = None
        self._game: ShogiGame | None = None
        self._failure: str | None = None
        self.position_fault: str | None = None
        """Why the last `position` was refused; None if it was accepted."""
        self._is_output_closed = False
        self._quitting = False
        self._last_sent = 0.0

    # -- output ----------------------------------------------------------------------------------------------------

    def send(self, *lines: str) -> None:
        """Write lines at once and together.

        Raises:
            OutputClosedError: Nobody reads them.
        """
        with self.lock:
            self._last_sent = time.monotonic()
            try:
                self._write("".join(line + "\n" for line in lines))
            except OutputClosedError:
                self._is_output_closed = True
                self.inbox.close()  # the loop may be waiting there
                raise

    def note(self, text: str) -> None:
        """Show the user a line."""
        self.send(format_string(text))

    # -- the player ------------------------------------------------------------------------------------------------

    @property
    def is_loaded(self) -> bool:
        """Whether the player is there and has all that the options name."""
        return self._player is not None and not self._player.needs_loading(self.game)

    @property
    def player(self) -> ShogiPlayer:
        """The player; made first where there is none. What the options name since then waits for `load`.

        Raises:
            LoadError: It could not be made.
            SessionOverError: The controller went away while it was loading.
        """
        if self._player is None:
            self.load()
        assert self._player is not None
        return self._player

    @property
    def game(self) -> ShogiGame:
        """The game as it stands; it belongs to the turn in progress, if there is one.

        Raises:
            LoadError, SessionOverError: as `player`.
        """
        if self._game is None:
            self.load()
        assert self._game is not None
        return self._game

    @game.setter
    def game(self, game: ShogiGame) -> None:
        self._game = game

    def player_if_made(self) -> ShogiPlayer | None:
        """Return the player, or None where nothing has asked for it yet."""
        return self._player

    def load(self) -> None:
        """Make the player, or let it load what the options name now; show signs of life meanwhile.

        Raises:
            LoadError, SessionOverError: as `player`.
        """
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
        """Make or load the player, and the first game."""
        from yomi.engine.shogi.game import ShogiGame

        player = self._player or self._make_player(self.note)
        if self._game is None:
            self._game = ShogiGame()
        player.load(self._game)
        self._player = player

    def _wants_to_end(self) -> bool:
        if self.is_patient:
            return False
        waiting = (parse_line(line) for line in self.inbox.lines_waiting())
        return self.inbox.is_closed or any(each is not None and each.name == "quit" for each in waiting)

    # -- turns -----------------------------------------------------------------------------------------------------

    def end_turn(self) -> None:
        """Let the `go` in progress, if any, have its answer now; a script's search goes on to its limit.

        Raises:
            SessionOverError: The controller went away before the answer came.
        """
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
        """Leave the loop after this command."""
        self._quitting = True

    def handle(self, line: bytes) -> bool:
        """Handle one line; False when the session is over.

        Raises:
            OutputClosedError: Nobody reads the answers.
            LoadError: There is no player, nor will there be.
        """
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
        """Take a line from the reader's thread."""
        self.inbox.put(line)

    def receive_end(self, is_script: bool) -> None:
        """Take the end of input from the reader's thread.

        A script (a file, or input that ended before a `go` in it could be taken up, as in `printf ... | yomi usi`) gets
        its searches in full; otherwise the controller has gone away.
        """
        waiting = (parse_line(line) for line in self.inbox.lines_waiting())
        self.is_patient = is_script or any(each is not None and each.name == "go" for each in waiting)
        self.inbox.close()

    def run(self) -> None:
        """Handle lines until quit or the end of input; then end the turn in progress.

        Raises:
            OutputClosedError: Nobody reads the answers.
            LoadError: The player could not be made.
        """
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
        """Release the player, unless a thread is still at work with it."""
        if self._player is not None and (self.turn is None or self.turn.is_answered):
            self._player.close()

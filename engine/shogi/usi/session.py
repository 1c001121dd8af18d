"""A USI session: the state that handlers share, and the loop that owns the streams.

The loop reads a line, finds the handler and lets it answer. It never waits for a search: `go` starts a `Turn`, a thread
that thinks and writes the one answer. A command that a turn excludes ends the turn first, so that every `go` has its
answer before the next command takes effect. The loop waits in two places only: for a turn that has been stopped, and
for a player that loads. While it waits it shows signs of life and watches for `quit` and the end of input.
"""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, NoReturn

from yomi.engine.levels import LevelSwitch
from yomi.engine.options import Options
from yomi.engine.protocols.session import KEEPS, BaseSession, CommandTable, LoadError, internal_error, run_session
from yomi.engine.protocols.streams import MAX_LINE, OutputClosedError
from yomi.engine.shogi.descriptor import GAME
from yomi.engine.shogi.usi.codec import Command, UsiError, format_error, format_string, parse_line
from yomi.errors import Error

if TYPE_CHECKING:
    from yomi.engine.shogi.game import ShogiGame
    from yomi.engine.shogi.players.player import ShogiPlayer
    from yomi.engine.shogi.usi.turn import Turn

log = logging.getLogger("yomi.usi")

KEEP_ALIVE = 5.0  # seconds between signs of life during loading; interfaces give up at 10 or more
GRACE = 0.4  # seconds that searches may continue after input without `quit` has ended
PATIENCE = 0.5  # seconds to wait for the last answer at the session's end
SCRIPT_PATIENCE = 10.0  # the same if lines waited at the end of input: their sender may read the answers
POLL = 0.05  # seconds between two looks at the input while the loop waits

# Loggers whose warnings the user sees.
SHOWN_LOGS = ("yomi.evaluators", "yomi.networks", "yomi.player", "yomi.search", "yomi.shogi")

MakePlayer = Callable[[Callable[[str], None]], "ShogiPlayer"]


class SessionOverError(Exception):
    """The controller has ended the session while the loop waits."""


class _InfoStrings(logging.Handler):
    """Shows warnings of the player as `info string`, because a graphical interface shows no stderr."""

    def __init__(self, note: Callable[[str], None]) -> None:
        super().__init__(logging.WARNING)
        self._note = note

    def emit(self, record: logging.LogRecord) -> None:
        with contextlib.suppress(OutputClosedError):  # the session's loop notices it, too
            self._note(f"{record.levelname.lower()}: {record.getMessage()}")


COMMANDS: CommandTable[Callable[[Session, Command], None]] = CommandTable("yomi.engine.shogi.usi.commands")
command = COMMANDS.command


class Session(BaseSession):
    def __init__(
        self, options: Options, make_player: MakePlayer, write: Callable[[str], None], level: LevelSwitch | None = None
    ) -> None:
        """Store the arguments. `make_player` gets a function that shows a line, and is called later in a new thread."""
        super().__init__(write, log)
        self.options = options
        self.level = level or LevelSwitch(GAME, options)
        self.lock = threading.RLock()  # held while lines are written that belong together
        self.turn: Turn | None = None  # the `go` without an answer
        self.is_patient = False  # the input has ended, but its waiting lines get their answers
        self.has_full_searches = False  # the waiting lines also get searches up to their limits
        self._cut_at: float | None = None  # when other searches end (time.monotonic()); None before the first
        self.position_fault: str | None = None  # why the last `position` was refused, or None
        self._make_player = make_player
        self.made_player: ShogiPlayer | None = None  # None before its first use
        self._game: ShogiGame | None = None
        self._last_sent = 0.0

    def start(self) -> None:
        handler = _InfoStrings(self.note)
        for name in SHOWN_LOGS:
            logging.getLogger(name).addHandler(handler)

    # -- output ----------------------------------------------------------------------------------------------------

    def send(self, *lines: str) -> None:
        """Write lines without lines of other threads in between. Raises OutputClosedError if nobody reads them."""
        with self.lock:
            self._last_sent = time.monotonic()
            try:
                self.write("".join(line + "\n" for line in lines))
            except OutputClosedError as error:
                self.fail(error)  # the loop may be waiting for a line
                raise

    def note(self, text: str) -> None:
        self.send(format_string(text))

    # -- the player ------------------------------------------------------------------------------------------------

    @property
    def is_loaded(self) -> bool:
        """Whether the player exists and has loaded everything that the options require."""
        return self.made_player is not None and not self.made_player.needs_loading(self.game)

    @property
    def player(self) -> ShogiPlayer:
        """The player, made on first use. Raises LoadError, or SessionOverError if the controller goes away."""
        if self.made_player is None:
            self.load_now()
        assert self.made_player is not None
        return self.made_player

    @property
    def game(self) -> ShogiGame:
        """The current game. During a turn it belongs to that turn. Errors: see `player`."""
        if self._game is None:
            self.load_now()
        assert self._game is not None
        return self._game

    @game.setter
    def game(self, game: ShogiGame) -> None:
        self._game = game

    def load_now(self) -> None:
        """Make the player if needed, and load the files that the options name. Report progress meanwhile.

        Errors: see `player`.
        """
        # In a thread, since loading takes minutes at worst, and `quit` must end it.
        self.start_loading()
        begin = self._last_sent = time.monotonic()
        while not self.loaded.wait(POLL):
            if self.failure is None and self._wants_to_end():
                raise SessionOverError
            if time.monotonic() >= self._last_sent + KEEP_ALIVE:
                self.note(f"loading, {time.monotonic() - begin:.0f} s ...")
        if self.failure is not None:
            self.send(format_error(str(self.failure)))
            raise self.failure

    def load(self) -> None:
        from yomi.engine.shogi.players.player import BookLoadingError

        try:
            self._make()
        except BookLoadingError as error:
            self.send(format_error(f"{error}; the engine plays without a book"))
            self.options.set("book_file", None)
            self._make()

    def _make(self) -> None:
        from yomi.engine.shogi.game import ShogiGame

        player = self.made_player or self._make_player(self.note)
        if self._game is None:
            self._game = ShogiGame()
        player.load(self._game)
        self.made_player = player

    def _wants_to_end(self) -> bool:
        if self.is_patient:
            return False
        return self.inbox.is_closed or self._is_waiting("quit")

    def _is_waiting(self, name: str) -> bool:
        waiting = (parse_line(line) for line in self.inbox.lines_waiting())
        return any(request is not None and request.name == name for request in waiting)

    # -- turns -----------------------------------------------------------------------------------------------------

    def end_turn(self) -> None:
        """Make `go` answer now. In a script its search runs to the limit. Raises SessionOverError."""
        turn = self.turn
        if turn is None:
            return
        if self.is_patient and turn.is_bounded:
            self._let_finish(turn)
        turn.stop()
        while not turn.join(POLL):
            if self._wants_to_end():
                raise SessionOverError
        self.turn = None

    def _let_finish(self, turn: Turn) -> None:
        """Wait until a search reaches its limit. Without full searches, all searches together get GRACE seconds."""
        if self.has_full_searches:
            turn.join()
            return
        # Not from the end of input: loading may have taken longer.
        now = time.monotonic()
        if self._cut_at is None:
            self._cut_at = now + GRACE
        if not turn.join(max(0.0, self._cut_at - now)) and self.is_patient:
            self.note("the input has ended, so this search is cut short; with quit at its end searches are full")

    def refuse_position(self, fault: str) -> NoReturn:
        """Let searches answer "resign" until a position is accepted. Raises UsiError."""
        self.end_turn()
        self.position_fault = fault
        raise UsiError(f"{fault}; no move is searched until a position is accepted")

    # -- the loop --------------------------------------------------------------------------------------------------

    def handle(self, line: bytes) -> bool:
        try:
            return super().handle(line)
        except SessionOverError:
            return False

    def answer(self, line: bytes) -> None:
        request = parse_line(line)
        if request is None:
            return
        if self.turn is not None and self.turn.is_answered:
            self.turn = None
        try:
            if len(line) > MAX_LINE:
                fault = f"line too long: expected at most {MAX_LINE} bytes"
                if request.name == "position":
                    self.refuse_position(fault)
                raise UsiError(fault)
            row = COMMANDS.find(request.name)
            if row is None:
                raise UsiError("unknown command")
            if row.background != KEEPS:
                self.end_turn()
            row.handler(self, request)
        except (SessionOverError, OutputClosedError, LoadError):
            raise
        except Error as error:
            self.send(format_error(f"{request.name[:50]}: {error}"))
        except Exception as error:  # a fault of ours: the controller gets a line, the log the traceback
            message = internal_error(log, f"in {request.name}", error)
            self.send(format_error(f"{request.name[:50]}: {message}"))

    def receive_end(self, is_script: bool) -> None:
        # A file gets full searches, and so does input that ended with `quit` before one of its `go` was handled, as in
        # `printf ... | yomi usi`. Without `quit` the controller may have gone away. A `go` that waits then still gets
        # an answer, after a short search: its own limit may never be reached.
        is_patient = is_script or self._is_waiting("go")
        self.has_full_searches = is_script or (is_patient and self._is_waiting("quit"))
        self.is_patient = is_patient
        self.inbox.close()

    def finish(self) -> None:
        if isinstance(self.failure, OutputClosedError):
            raise self.failure
        turn = self.turn
        if turn is None:
            return
        if turn.is_bounded and (self.is_patient or not self._quitting):
            self._let_finish(turn)
        turn.stop()
        turn.join(SCRIPT_PATIENCE if self.is_patient else PATIENCE)

    def close(self) -> None:
        """Release the player, unless a thread still uses it."""
        if self.made_player is not None and (self.turn is None or self.turn.is_answered):
            self.made_player.close()


def serve(options: Options, make_player: MakePlayer, level: LevelSwitch | None = None) -> int:
    """Serve the controller on stdin and stdout; return the exit status."""
    return run_session(lambda write: Session(options, make_player, write, level))

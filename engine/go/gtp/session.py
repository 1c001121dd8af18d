"""A GTP session: what the handlers share, and the loop that owns the streams.

The loop takes a line, finds the handler in the table and writes its answer. A handler returns the text of the answer,
or a `Stream` for an analysis that runs until the next line of input, or raises an error that becomes `? ...`. The
player loads in the background (importing and loading kernels takes longer than a controller should wait for `name`);
whatever needs it waits.
"""

from __future__ import annotations

import logging
import math
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from yomi.engine.clock import ClockError
from yomi.engine.evaluators.base import EvaluatorError
from yomi.engine.go.descriptor import GAME
from yomi.engine.go.gtp import table
from yomi.engine.go.gtp.clock import GtpClocks
from yomi.engine.go.gtp.codec import Command, format_response, header, is_interrupt, parse_line
from yomi.engine.levels import LevelSwitch
from yomi.engine.options import OptionError, Options
from yomi.engine.players.request import Request
from yomi.engine.protocols.process import LoadError, internal_error, load_error, loading
from yomi.engine.protocols.streams import Inbox, OutputClosedError, log_line, logged
from yomi.engine.protocols.text import MAX_LINE
from yomi.nets.errors import NetworkError

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from yomi.engine.go.game import GoGame
    from yomi.engine.go.players.player import GoPlayer

log = logging.getLogger("yomi.gtp")

GRACE = 0.5
"""Seconds that a search may go on after the controller has gone away."""
HURRY = 0.02
"""Seconds between interruptions after that, of what was still asked for."""


class GtpError(Exception):
    """A command that cannot be done; the message is one line and goes to the controller."""


USER_ERRORS: list[type[Exception]] = [GtpError, OptionError, ClockError, EvaluatorError, NetworkError]
"""Errors whose message goes to the controller; the modules that can import the game add the game's."""


@dataclass(frozen=True, slots=True)
class Stream:
    """An analysis that has been started and runs until the next line of input."""

    report: Callable[[], str]
    """Returns the next line to print, or an empty text for none."""
    interval: float
    """Seconds between lines."""
    stop: Callable[[], None]


@dataclass(frozen=True, slots=True)
class Finished:
    """The end of an answer whose header has been written by `Session.begin`."""

    text: str


Answer = str | Stream | Finished | None
Handler = Callable[["Session", Command], Answer]


class Session:
    """What the handlers of one controller share."""

    def __init__(
        self,
        options: Options,
        make_player: Callable[[], GoPlayer],
        write: Callable[[str], None],
        level: LevelSwitch | None = None,
    ) -> None:
        """Make a session; nothing is loaded yet.

        Args:
            options: Settings, shared with the player.
            make_player: Makes the player; called once, in a background thread.
            write: Writes text to the controller at once; raises OutputClosedError.
            level: Keeps the options at their level; None: made here.
        """
        self.options = options
        self.level = level or LevelSwitch(GAME, options)
        self.clock = GtpClocks()
        self.inbox = Inbox()
        self.write = logged(write, log)
        self.arrival = time.monotonic()
        """When the command in progress came."""
        self.ponder_after = False
        """Set by a handler: think in the opponent's time once all is answered, until a command ends that for good."""
        self.proposed: tuple[int, int, int] | None = None
        """(ply, color, move) that `kata-search` found last: when it is played, the opponent is to move."""
        self.warned: set[str] = set()
        """Warnings that are logged once a session."""
        self.is_hurried = False
        """The controller has gone away: answer what it asked for without thinking."""
        self._has_told_hurry = False
        self._make_player = make_player
        self._player: GoPlayer | None = None
        self._game: GoGame | None = None
        self._request: Request[GoGame] | None = None
        self._failure: str | None = None
        self._loaded = threading.Event()
        self._quitting = False
        self._id: str | None = None
        self._has_begun = False
        self._is_pondering = False
        self._interrupted_at = -math.inf

    # -- the player ------------------------------------------------------------------------------------------------

    def load(self) -> threading.Thread:
        """Start making the player in the background."""
        thread = threading.Thread(target=self._load, name="load", daemon=True)
        thread.start()
        return thread

    def _load(self) -> None:
        try:
            with loading(log):
                from yomi.engine.go.game import new_game

                player = self._make_player()
                table.load_all()
                self._game, self._player = new_game(self.options), player
        except LoadError as error:
            self._failure = str(error)
            self.inbox.close()
        self._loaded.set()

    @property
    def player(self) -> GoPlayer:
        """The player; waits until it is loaded.

        Raises:
            LoadError: It could not be made.
        """
        self._loaded.wait()
        if self._player is None:
            raise LoadError(self._failure)
        return self._player

    @property
    def game(self) -> GoGame:
        """The game as it stands; waits like `player`. Commands change it in place while nothing searches."""
        if self._game is None:
            self._loaded.wait()
        if self._game is None:
            raise LoadError(self._failure)
        return self._game

    @game.setter
    def game(self, game: GoGame) -> None:
        self._game = game

    def request(self, color: int | None = None, *, is_analysis: bool = False) -> Request[GoGame]:
        """Return a request to search the game, which `interrupt` stops from now on.

        Args:
            color: who is to move, also out of turn; None for whose turn it is.
            is_analysis: whether the options of analyses decide if the moves so far are shown to the network, and how
                widely the root is explored.
        """
        game, options = self.game.copy(), self.options
        if color is not None:
            game.turn_to(color)
        hides, changed = options.ignore_pre_root_history, None
        if is_analysis:
            hides = options.analysis_ignore_pre_root_history
            changed = replace(self.level.full(), wide_root_noise=options.analysis_wide_root_noise)
        request = self._request = Request(game, changed, hide_history=hides, start=self.arrival)
        if self.is_interrupted:
            request.stop()
        return request

    def final_ownership(self) -> npt.NDArray[np.float32]:
        """Return the expected owner of each point at the end; see `GoPlayer.final_ownership`."""
        begin = time.monotonic()
        owners = self.player.final_ownership(self.game)
        if self.player.model is not None and self._interrupted_at >= begin:  # rollouts are no search, and never cut
            self.tell_hurry()
        return owners

    def stop(self) -> None:
        """End analysis or pondering, if any."""
        if self._player is not None:
            self._player.stop()

    def now(self) -> float:
        """Return the time, on the clock of `arrival`."""
        return time.monotonic()

    @property
    def is_interrupted(self) -> bool:
        """Whether the command in progress is to end soon: the controller said so after it sent it, or has gone away."""
        return self.is_hurried or self._interrupted_at >= self.arrival

    def tell_hurry(self) -> None:
        """Warn, once, where the end of input has cut the last search short: who pipes commands in may not know."""
        if self.is_hurried and not self._has_told_hurry:
            self._has_told_hurry = True
            log.warning("the input has ended, so searches are cut short; with quit at its end they get their full time")

    def interrupt(self) -> None:
        """End the move that is being searched, or that has been asked for; called by the reader's thread."""
        self._interrupted_at = time.monotonic()
        if self._request is not None:
            self._request.stop()
        if self._player is not None:
            self._player.interrupt()

    # -- answers ---------------------------------------------------------------------------------------------------

    def begin(self) -> None:
        """Write the header of an answer that comes in several lines; after it nothing may fail for the controller."""
        self._has_begun = True
        self.write(header(self._id) + "\n")

    def quit(self) -> None:
        """Leave the loop after this answer."""
        self._quitting = True

    def handle(self, line: bytes) -> bool:
        """Handle one line and write its answer; False when the session is over.

        Raises:
            OutputClosedError: Nobody reads the answers.
            LoadError: There is no player, nor will there be.
        """
        log_line(log, line)
        command = parse_line(line)
        if command is not None:
            self._answer(command, line)
        if self.ponder_after and self.options.ponder and not self._is_pondering and not self._quitting:
            self._ponder()
        return not self._quitting

    def _answer(self, command: Command, line: bytes) -> None:
        self._id, self._has_begun = command.id, False
        try:
            if len(line) > MAX_LINE:
                raise GtpError(f"line too long: expected at most {MAX_LINE} bytes")
            self._finish(self._dispatch(command))
        except tuple(USER_ERRORS) as error:
            self._fail(str(error) or "syntax error")
        except (OutputClosedError, LoadError):
            raise
        except Exception as error:  # a fault of ours: the controller gets a line, the log the traceback
            message = internal_error(log, f"in {command.name}", error)
            self._end_background()
            self._fail(message)

    def _ponder(self) -> None:
        """Think in the opponent's time unless a line waits; what keeps it from that is told at the next move."""
        if self.inbox.wait(0):
            return
        self._is_pondering = True
        try:
            request = self.request()
            request.ponder = True
            self.player.start(request)
        except EvaluatorError as error:
            log.error("no pondering: %s", error)

    def _dispatch(self, command: Command) -> Answer:
        row = table.find(command.name)
        if row is None:
            raise GtpError(
                f"unknown command {command.name}" if command.name else "unknown command: nothing after the id"
            )
        if row.background != table.QUIET:
            self.ponder_after = self.ponder_after and row.background == table.RESUMES
            self._end_background()
        try:
            handler = table.load(row)
        except Exception as error:  # a module cannot be imported: each further command would fail in the same way
            self._loaded.wait()
            if self._failure is not None:  # for the same reason
                raise LoadError(self._failure) from error
            raise load_error(log, error) from error
        return handler(self, command)

    def _end_background(self) -> None:
        """End analysis or pondering; how it failed goes to the log, for it is no answer to the command in progress."""
        self._is_pondering = False
        try:
            self.stop()
        except Exception as error:
            is_ours = not isinstance(error, EvaluatorError)
            log.error("the search in the background ended early: %s", error, exc_info=is_ours)

    def _fail(self, message: str) -> None:
        if self._has_begun:  # the header said success; the controller must still get the end of the answer
            log.error("%s", message)
            self.write("\n")
        else:
            self.write(format_response(self._id, message, ok=False))

    def _finish(self, answer: Answer) -> None:
        if isinstance(answer, Stream):
            self._run_stream(answer)
        elif isinstance(answer, Finished):
            self.write(answer.text + "\n\n")
        else:
            self.write(format_response(self._id, answer or ""))

    def _run_stream(self, stream: Stream) -> None:
        """Print reports until there is a line of input; then end the answer."""
        try:
            self.begin()
            while not self.inbox.wait(stream.interval):
                text = stream.report()
                if text:
                    self.write(text + "\n")
        finally:
            stream.stop()
        self.write("\n")

    # -- the loop --------------------------------------------------------------------------------------------------

    def receive(self, line: bytes) -> None:
        """Take a line from the reader's thread."""
        if is_interrupt(line):
            self.interrupt()
        self.inbox.put(line)

    def receive_end(self, is_script: bool) -> None:
        """Take the end of input from the reader's thread.

        What was asked before is answered. A script (a file, or input that ends with `quit`) gets its searches in
        full; otherwise the controller has gone away, and searches end after a moment.
        """
        self.inbox.close()
        commands = [parse_line(line) for line in self.inbox.lines_waiting()]
        if is_script or any(command is not None and command.name == "quit" for command in commands):
            return
        time.sleep(GRACE)
        self.is_hurried = True
        while True:  # a daemon thread: ends with the program
            self.interrupt()
            time.sleep(HURRY)

    def run(self) -> None:
        """Answer lines until quit or the end of input.

        Raises:
            OutputClosedError: Nobody reads the answers.
            LoadError: The player could not be made.
        """
        while (item := self.inbox.take()) is not None:
            line, self.arrival = item
            if not self.handle(line):
                return
        if self._failure is not None:
            raise LoadError(self._failure)

    def close(self) -> None:
        """End all that runs."""
        if self._player is not None:
            self._player.close()

"""A GTP session: the state that handlers share, and how commands are answered.

A handler returns the answer's text or a `Stream` (an analysis until the next line of input), or raises an error that
becomes `? ...`. The player loads in the background, because a controller should not wait seconds for `name`. Whatever
needs the player waits for it.
"""

from __future__ import annotations

import logging
import math
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from yomi.engine.evaluators.base import EvaluatorError
from yomi.engine.go.descriptor import GAME
from yomi.engine.go.gtp.codec import (
    COMMANDS,
    Command,
    GtpError,
    check_count,
    format_response,
    header,
    is_interrupt,
    parse_line,
)
from yomi.engine.go.gtp.engine import GtpClocks
from yomi.engine.levels import LevelSwitch
from yomi.engine.options import Options
from yomi.engine.protocols.session import KEEPS, PAUSES, BaseSession, LoadError, internal_error, run_session
from yomi.engine.protocols.streams import MAX_LINE, OutputClosedError
from yomi.errors import Error

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from yomi.engine.go.game import GoGame
    from yomi.engine.go.players.player import GoPlayer
    from yomi.engine.players.request import Request
    from yomi.engine.search.types import SearchReport

log = logging.getLogger("yomi.gtp")

SECONDS = 1.0  # time limit of the search for one answer about the position
GRACE = 0.5  # seconds that a search may continue after the controller has disconnected
BOARD_PATIENCE = 0.5  # seconds that loading waits for the first `boardsize`, unless a command needs the player
HURRY = 0.02  # seconds between interruptions of the remaining commands after that


@dataclass(frozen=True, slots=True)
class Stream:
    """An analysis that runs until the next line of input."""

    report: Callable[[], str]  # returns the next line to print; empty for none
    interval: float  # seconds between lines
    stop: Callable[[], None]


@dataclass(frozen=True, slots=True)
class Finished:
    """The last part of an answer. `Session.begin` has already written its header."""

    text: str


Answer = str | Stream | Finished | None


class Session(BaseSession):
    def __init__(
        self,
        options: Options,
        make_player: Callable[[], GoPlayer],
        write: Callable[[str], None],
        level: LevelSwitch | None = None,
    ) -> None:
        """Store the arguments. Nothing is loaded yet.

        Args:
            options: settings, shared with the player.
            make_player: called once, in a background thread.
            write: writes text to the controller at once; raises OutputClosedError.
            level: keeps the options at their level; None to make one.
        """
        super().__init__(write, log)
        self.options = options
        self.level = level or LevelSwitch(GAME, options)
        self.clock = GtpClocks()
        self.ponder_after = False  # set by a handler: ponder after this answer, until a command ends pondering for good
        # (ply, color, move) found by the last `kata-search`. If it is played, pondering may start.
        self.proposed: tuple[int, int, int | None] | None = None
        self.warned: set[str] = set()  # warnings that have been logged
        # Whether the controller has disconnected: answer the remaining commands without thinking.
        self.is_hurried = False
        self._has_told_hurry = False
        self.color: int | None = None  # of the game's last `genmove`
        self._is_counted = False  # whether the level auto knows the game's result
        self._make_player = make_player
        self._player: GoPlayer | None = None
        self._game: GoGame | None = None
        self._request: Request[GoGame] | None = None
        self._id: str | None = None
        self._has_begun = False
        self._is_needed = threading.Event()  # a command waits for the player
        self._is_pondering = False
        self._interrupted_at = -math.inf
        self._told = ""  # the last line of `_tell_setup`

    # -- the player ------------------------------------------------------------------------------------------------

    def load(self) -> None:
        COMMANDS.load()  # now, so that no module is imported while a clock runs
        from yomi.engine.go.game import new_game

        self._is_needed.wait(BOARD_PATIENCE)
        self._is_needed.set()
        player = self._make_player()
        self._game, self._player = new_game(self.options), player
        self._tell_setup()

    def expect_board(self, columns: int, rows: int) -> None:
        """Load the player for this size, unless loading has begun: packing a network for another size takes seconds."""
        if not self._is_needed.is_set():
            self.options.size, self.options.height = columns, rows

    def _tell_setup(self) -> None:
        """Report on stderr which GPU evaluates, at the start and after a change. Stdout is for answers only."""
        if self._player is not None and self._player.is_on_gpu and self._player.setup_line != self._told:
            self._told = self._player.setup_line
            print(f"yomi: {self._told}", file=sys.stderr, flush=True)

    def _wait(self) -> None:
        self._is_needed.set()
        self.loaded.wait()

    @property
    def player(self) -> GoPlayer:
        """The player, once it is loaded. Raises LoadError if it could not be made."""
        self._wait()
        if self._player is None:
            raise self.failure or LoadError
        return self._player

    @property
    def game(self) -> GoGame:
        """The current game, once the player is loaded. Commands change it in place, while no search runs."""
        if self._game is None:
            self._wait()
        if self._game is None:
            raise self.failure or LoadError
        return self._game

    @game.setter
    def game(self, game: GoGame) -> None:
        self._game, self.color, self._is_counted = game, None, False

    def request(self, color: int | None = None, *, is_analysis: bool = False, **fields: Any) -> Request[GoGame]:
        """Return a request to search the game. `interrupt` stops it from now on.

        Args:
            color: the side to move, possibly out of turn; None for the game's.
            is_analysis: use the options for analyses: hidden moves and wide root noise.
            fields: further fields of the request.
        """
        from yomi.engine.players.request import Request  # not above: the first answers would wait for it

        game, options = self.game.copy(), self.options
        if color is not None:
            game.turn_to(color)
        hides, changed = options.ignore_pre_root_history, None
        if is_analysis:
            hides = options.analysis_ignore_pre_root_history
            changed = replace(self.level.full(), wide_root_noise=options.analysis_wide_root_noise)
        fields = {"options": changed, "hide_history": hides, "start": self.arrival, **fields}
        request = self._request = Request(game, **fields)
        if self.is_interrupted:
            request.stop()
        return request

    def short_search(self, *, is_analysis: bool = False) -> SearchReport:
        """Search the game for SECONDS; see `request`."""
        from yomi.engine.search.types import Limits

        request = self.request(is_analysis=is_analysis, limits=Limits(seconds=SECONDS))
        report = self.player.decide(request).report
        self.tell_hurry()
        return report

    def final_ownership(self) -> npt.NDArray[np.float32]:
        """Return the expected owner of each point at the end; see `GoPlayer.final_ownership`."""
        begin = time.monotonic()
        owners = self.player.final_ownership(self.game)
        if self.player.models and self._interrupted_at >= begin:  # rollouts are no search, and never cut
            self.tell_hurry()
        return owners

    def now(self) -> float:
        return time.monotonic()

    @property
    def is_interrupted(self) -> bool:
        """Whether the current command should end soon: the controller has interrupted it or disconnected."""
        return self.is_hurried or self._interrupted_at >= self.arrival

    def note_winner(self, winner: int | None) -> None:
        """Pass the winner of the game to the level auto, once, and report a new level on stderr."""
        if self.color and winner and not self._is_counted:
            self._is_counted = True
            if text := self.level.note_result(winner != self.color):
                print(f"yomi: {text}", file=sys.stderr, flush=True)

    def tell_hurry(self) -> None:
        """Warn once if a search was cut short because the input has ended."""
        if self.is_hurried and not self._has_told_hurry:
            self._has_told_hurry = True
            log.warning("the input has ended, so searches are cut short; with quit at its end they are full")

    def interrupt(self) -> None:
        """End the current search. The thread that reads lines calls this."""
        self._interrupted_at = time.monotonic()
        if self._request is not None:
            self._request.stop()
        if self._player is not None:
            self._player.interrupt()

    # -- answers ---------------------------------------------------------------------------------------------------

    def begin(self) -> None:
        """Write the header of an answer of several lines. An error after this cannot be sent any more."""
        self._has_begun = True
        self.write(header(self._id) + "\n")

    def handle(self, line: bytes) -> bool:
        goes_on = super().handle(line)
        if self.loaded.is_set():  # before, the loading thread reports
            self._tell_setup()
        if self.ponder_after and self.options.ponder and not self._is_pondering and goes_on:
            self._ponder()
        return goes_on

    def answer(self, line: bytes) -> None:
        request = parse_line(line)
        if request is None:
            return
        self._id, self._has_begun = request.id, False
        try:
            if len(line) > MAX_LINE:
                raise GtpError(f"line too long: expected at most {MAX_LINE} bytes")
            answer = self._handler_of(request)(self, request)
            if isinstance(answer, Stream):
                self._run_stream(answer)
            elif isinstance(answer, Finished):
                self.write(answer.text + "\n\n")
            else:
                self.write(format_response(self._id, answer or ""))
        except (OutputClosedError, LoadError):
            raise
        except Error as error:
            self._fail(str(error) or "syntax error")
        except Exception as error:  # a fault of ours: the controller gets a line, the log the traceback
            message = internal_error(log, f"in {request.name}", error)
            self._end_background()
            self._fail(message)

    def _ponder(self) -> None:
        # A waiting line would end pondering at once.
        if self.inbox.wait(0):
            return
        self._is_pondering = True
        try:
            self.player.start(self.request(ponder=True))
        except EvaluatorError as error:
            log.error("no pondering: %s", error)

    def _handler_of(self, request: Command) -> Callable[[Session, Command], Answer]:
        """Return the handler of a command. First end the background search if the command ends it. Raises GtpError."""
        try:
            row = COMMANDS.find(request.name)
        except Exception as error:  # a module cannot be imported: each further command would fail in the same way
            self._wait()
            raise self.failure or self.load_error(error) from error
        if row is None:
            raise GtpError(f"unknown command{f' {request.name}' if request.name else ': nothing after the id'}")
        if row.background != KEEPS:
            self.ponder_after = self.ponder_after and row.background == PAUSES
            self._end_background()
        if row.usage is not None:
            check_count(request, row.usage)
        return row.handler

    def _end_background(self) -> None:
        """End analysis or pondering. Errors go to the log, since the current command did not cause them."""
        self._is_pondering = False
        try:
            if self._player is not None:
                self._player.stop()
        except Exception as error:
            is_ours = not isinstance(error, EvaluatorError)
            log.error("the background search failed: %s", error, exc_info=is_ours)

    def _fail(self, message: str) -> None:
        if self._has_begun:  # the answer has begun as a success, so it can only be ended
            log.error("%s", message)
            self.write("\n")
        else:
            self.write(format_response(self._id, message, ok=False))

    def _run_stream(self, stream: Stream) -> None:
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
        if is_interrupt(line):
            self.interrupt()
        super().receive(line)

    def receive_end(self, is_script: bool) -> None:
        # A script (a file, or input that ends with `quit`) gets full searches. Otherwise the controller has
        # disconnected, and searches are cut short.
        super().receive_end(is_script)
        commands = [parse_line(line) for line in self.inbox.lines_waiting()]
        if is_script or any(command is not None and command.name == "quit" for command in commands):
            return
        time.sleep(GRACE)
        self.is_hurried = True
        # Again and again, because the remaining commands may start further searches.
        while True:  # a daemon thread: ends with the program
            self.interrupt()
            time.sleep(HURRY)

    def close(self) -> None:
        if self._player is not None:
            self._player.close()


def serve(options: Options, make_player: Callable[[], GoPlayer], level: LevelSwitch | None = None) -> int:
    """Serve the controller on stdin and stdout; return the exit status."""
    return run_session(lambda write: Session(options, make_player, write, level))

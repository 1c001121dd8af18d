"""A session of the analysis protocol.

The main thread reads lines, answers actions and pushes turns of queries onto a heap. The thread of each analyst takes
the most urgent turn. One lock guards the shared state.
"""

from __future__ import annotations

import heapq
import itertools
import logging
import sys
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from yomi import __version__
from yomi.engine.default_network import network_file
from yomi.engine.evaluators.base import EvaluatorError
from yomi.engine.go.analysis.fields import FieldError, Fields, Settings, integers
from yomi.engine.go.analysis.query import ACTIONS, Query, QueryError, Turn, parse_line, read_query
from yomi.engine.go.analysis.results import ResponseParts, no_results, response, to_line
from yomi.engine.protocols.process import LoadError, internal_error, loading, run_session
from yomi.engine.protocols.streams import Inbox, OutputClosedError, log_line, logged

if TYPE_CHECKING:  # the analysts load in the background
    from yomi.engine.go.players.analyst import GoAnalyst
    from yomi.engine.go.players.setup import Analysis

log = logging.getLogger("yomi.analysis")


@dataclass(order=True, slots=True)
class QueuedTurn:
    """A turn that waits or is being analyzed."""

    urgency: tuple[int, int]  # smallest first: (negative priority, order of arrival)
    identity: str = field(compare=False)
    turn: Turn = field(compare=False)
    parts: ResponseParts = field(compare=False)


class Session:
    def __init__(
        self,
        settings: Settings,
        make_analysts: Callable[[], Sequence[GoAnalyst]],
        write: Callable[[str], None],
        say: Callable[[str], None] = lambda line: None,
        *,
        quit_without_waiting: bool = False,
    ) -> None:
        """Load nothing yet.

        Args:
            settings: defaults for all queries.
            make_analysts: called once, in a background thread.
            write: writes text to the client at once; raises OutputClosedError.
            say: shows the user a line.
            quit_without_waiting: at the end of input, leave open queries unanswered.
        """
        self.settings = settings
        self.inbox = Inbox()
        self._make_analysts = make_analysts
        self._write = logged(write, log)
        self._say = say
        self._quits_early = quit_without_waiting
        self._lock = threading.Condition()
        self._waiting: list[QueuedTurn] = []
        self._running: dict[int, QueuedTurn] = {}  # by number of the analyst
        self._analysts: Sequence[GoAnalyst] = ()
        self._count = itertools.count()
        self._ending = False
        self._failure: Exception | None = None
        self._threads: list[threading.Thread] = []
        self._loader = threading.Thread(target=self._load, name="load", daemon=True)

    # -- the analysts ----------------------------------------------------------------------------------------------

    def load(self) -> None:
        """Start making the analysts in the background."""
        self._loader.start()

    def _load(self) -> None:
        try:
            with loading(log):
                self._analysts = self._make_analysts()
        except LoadError as error:
            self._fail(error)
            return
        for number in range(len(self._analysts)):
            thread = threading.Thread(target=self._serve, args=(number,), name=f"analyst-{number}", daemon=True)
            self._threads.append(thread)
            thread.start()
        self._say(f"{self._analysts[0].description}: analyses {len(self._analysts)} positions at a time")
        self._say("Started, ready to begin handling requests")

    def _fail(self, error: Exception) -> None:
        """End the main loop with an error."""
        self._failure = self._failure or error
        self.inbox.close()

    def _serve(self, number: int) -> None:
        """Analyze the most urgent turns until the session ends."""
        try:
            while (task := self._take(number)) is not None:
                self._analyze(self._analysts[number], task)
                with self._lock:
                    del self._running[number]
        except OutputClosedError as error:
            self._fail(error)
        except BaseException as error:
            self._fail(LoadError(internal_error(log, "in an analyst's thread", error)))

    def _take(self, number: int) -> QueuedTurn | None:
        """Wait for the next turn and return it; None at the end of the session."""
        with self._lock:
            self._lock.wait_for(lambda: self._waiting or self._ending)
            if not self._waiting or (self._ending and self._quits_early):
                return None
            self._running[number] = heapq.heappop(self._waiting)
            return self._running[number]

    def _analyze(self, analyst: GoAnalyst, task: QueuedTurn) -> None:
        """Answer a turn, with its analysis or an error."""
        request = task.turn.request

        def tell(analysis: Analysis, *, is_during_search: bool = True) -> None:
            self._respond(
                response(
                    task.identity,
                    task.turn.number,
                    request.game,
                    analysis,
                    task.parts,
                    is_during_search=is_during_search,
                )
            )

        try:
            analysis = analyst.analyze(request, tell, moves_ownership=task.parts.moves_ownership)
            if not (self._ending and self._quits_early):
                tell(analysis, is_during_search=False)
        except OutputClosedError:
            raise
        except EvaluatorError as error:
            self._respond({"id": task.identity, "turnNumber": task.turn.number, "error": str(error)})
        except Exception as error:  # a fault of ours: the client gets a line, the log the traceback
            message = internal_error(log, f"in turn {task.turn.number} of query {task.identity}", error)
            self._respond({"id": task.identity, "turnNumber": task.turn.number, "error": message})

    # -- answers ---------------------------------------------------------------------------------------------------

    def _respond(self, fields: dict[str, Any]) -> None:
        text = to_line(fields)
        with self._lock:
            self._write(text)

    def handle(self, line: bytes) -> None:
        """Answer an action, or queue the turns of a query.

        Raises:
            OutputClosedError: the client has closed its end.
        """
        log_line(log, line)
        try:
            fields = parse_line(line)
        except QueryError as error:
            known = {} if error.identity is None else {"id": error.identity}
            self._respond({"error": str(error), **known})
            return
        if fields is None:
            return
        try:
            if isinstance(fields.get("action"), str):
                self._act(fields)
            else:
                self._enqueue(fields["id"], read_query(fields, self.settings))
        except FieldError as error:
            self._respond({"error": str(error), "field": error.field, "id": fields["id"]})
        except OutputClosedError:
            raise
        except Exception as error:  # a fault of ours: the client gets a line, the log the traceback
            self._respond({"error": internal_error(log, f"in query {fields['id']}", error), "id": fields["id"]})

    def _enqueue(self, identity: str, query: Query) -> None:
        for warning in query.warnings:
            self._respond({"warning": warning.message, "field": warning.field, "id": identity})
        with self._lock:
            for turn in query.turns:
                heapq.heappush(
                    self._waiting, QueuedTurn((-turn.priority, next(self._count)), identity, turn, query.parts)
                )
            self._lock.notify_all()

    def _act(self, fields: Fields) -> None:
        """Carry out an action and echo it."""
        answer = dict(fields)
        match fields["action"]:
            case "query_version":
                answer |= {"version": __version__, "git_hash": "<omitted>"}
            case "query_models":
                answer["models"] = self._models()
            case "clear_cache":
                for analyst in self._analysts:
                    analyst.clear_cache()
            case "terminate":
                if not isinstance(fields.get("terminateId"), str):
                    message = 'Requests for a terminate action must have a string "terminateId" field'
                    raise FieldError("terminateId", message)
                self._terminate(fields["terminateId"], _turn_numbers(fields))
            case "terminate_all":
                self._terminate(None, _turn_numbers(fields))
            case _:
                expected = " or ".join(f"'{action}'" for action in ACTIONS)
                raise FieldError("action", f"'action' field must be {expected}")
        self._respond(answer)

    def _models(self) -> list[dict[str, Any]]:
        """Return the network in KataGo's form; an empty list without a network."""
        self._loader.join()
        model = self._analysts[0].model if self._analysts else None
        return [] if model is None else [model.to_json(network_file(self.settings.options, "go"))]

    def _terminate(self, identity: str | None, turns: set[int] | None) -> None:
        """End open turns. Waiting turns are answered without results, running searches with what they have found."""

        def is_meant(task: QueuedTurn) -> bool:
            return identity in (None, task.identity) and (turns is None or task.turn.number in turns)

        with self._lock:
            ended = sorted(task for task in self._waiting if is_meant(task))
            self._waiting = [task for task in self._waiting if not is_meant(task)]
            heapq.heapify(self._waiting)
            for task in self._running.values():
                if is_meant(task):
                    task.turn.request.stop()
            for task in ended:
                self._write(to_line(no_results(task.identity, task.turn.number)))

    # -- the loop --------------------------------------------------------------------------------------------------

    def receive(self, line: bytes) -> None:
        """Queue a line. Called by the reader's thread."""
        self.inbox.put(line)

    def receive_end(self, is_script: bool) -> None:
        """Close the queue of lines. Called by the reader's thread."""
        self.inbox.close()

    def run(self) -> None:
        """Answer lines until the end of input, then finish the open queries.

        Raises:
            OutputClosedError: the client has closed its end.
            LoadError: the analysts could not be made.
        """
        while self._failure is None and (item := self.inbox.take()) is not None:
            self.handle(item[0])
        self._finish()
        if self._failure is not None:
            raise self._failure

    def _finish(self) -> None:
        """Wait until the open queries are answered, or stop them."""
        with self._lock:
            self._ending = True
            self._quits_early = self._quits_early or self._failure is not None
            self._lock.notify_all()
            if self._quits_early:
                for task in self._running.values():
                    task.turn.request.stop()
        if self._quits_early and self._loader.is_alive():
            return
        self._loader.join()
        for thread in self._threads:
            thread.join()

    def close(self) -> None:
        for analyst in self._analysts:
            analyst.close()


def _turn_numbers(fields: Fields) -> set[int] | None:
    if "turnNumbers" not in fields:
        return None
    message = "If provided, must be an array of integers indicating turns to terminate"
    return set(integers(fields, "turnNumbers", message))


def serve(settings: Settings, make_analysts: Callable[[], Sequence[GoAnalyst]], *, quit_without_waiting: bool) -> int:
    """Serve the client on stdin and stdout; return the exit status. For the arguments see `Session`."""

    def make_session(write: Callable[[str], None]) -> Session:
        session = Session(settings, make_analysts, write, _say, quit_without_waiting=quit_without_waiting)
        session.load()
        return session

    return run_session(make_session)


def _say(line: str) -> None:
    """Print a line to stderr. Clients wait for the line that begins with "Started"."""
    print(line, file=sys.stderr, flush=True)

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
from typing import Any

from yomi import __version__
from yomi.engine.evaluators.base import EvaluatorError
from yomi.engine.go.analysis.fields import FIELD, FieldError, Fields, Settings, integer, integers, vertices
from yomi.engine.go.analysis.query import MAX_VISITS, QueryError, Turn, parse_line, read_query
from yomi.engine.go.analysis.results import no_results, response, to_line
from yomi.engine.go.players.analyst import GoAnalyst
from yomi.engine.go.players.setup import Analysis
from yomi.engine.options import Options
from yomi.engine.protocols.session import BaseSession, CommandTable, LoadError, internal_error, run_session
from yomi.engine.protocols.streams import OutputClosedError

log = logging.getLogger("yomi.analysis")


ACTIONS: CommandTable[Callable[[Session, Fields], dict[str, Any] | None]] = CommandTable()


class Session(BaseSession):
    def __init__(
        self,
        settings: Settings,
        make_analysts: Callable[[], Sequence[GoAnalyst]],
        write: Callable[[str], None],
        say: Callable[[str], None] = lambda line: None,
        *,
        quit_without_waiting: bool = False,
    ) -> None:
        """Store the arguments. Nothing is loaded yet.

        Args:
            settings: defaults for all queries.
            make_analysts: called once, in a background thread.
            write: writes text to the client at once; raises OutputClosedError.
            say: shows the user a line.
            quit_without_waiting: at the end of input, leave open queries unanswered.
        """
        super().__init__(write, log)
        self.settings = settings
        self._make_analysts = make_analysts
        self._say = say
        self._quits_early = quit_without_waiting
        self._lock = threading.Condition()
        self._waiting: list[Turn] = []
        self._running: dict[int, Turn] = {}  # by number of the analyst
        self._analysts: Sequence[GoAnalyst] = ()
        self._count = itertools.count()
        self._ending = False
        self._threads: list[threading.Thread] = []

    # -- the analysts ----------------------------------------------------------------------------------------------

    def load(self) -> None:
        self._analysts = self._make_analysts()
        for number in range(len(self._analysts)):
            thread = threading.Thread(target=self._serve, args=(number,), name=f"analyst-{number}", daemon=True)
            self._threads.append(thread)
            thread.start()
        self._say(f"{self._analysts[0].setup_line}: analyses {len(self._analysts)} positions at a time")
        self._say("Started, ready to begin handling requests")

    def _serve(self, number: int) -> None:
        try:
            while (turn := self._take(number)) is not None:
                self._analyze(self._analysts[number], turn)
                with self._lock:
                    del self._running[number]
        except OutputClosedError as error:
            self.fail(error)
        except BaseException as error:
            self.fail(LoadError(internal_error(log, "in an analyst's thread", error)))

    def _take(self, number: int) -> Turn | None:
        """Wait for the most urgent turn and return it, or None at the end of the session."""
        with self._lock:
            self._lock.wait_for(lambda: self._waiting or self._ending)
            # The end of input leaves the queue to the analysts, unless the user wants to quit early.
            if not self._waiting or (self._ending and self._quits_early):
                return None
            self._running[number] = heapq.heappop(self._waiting)
            return self._running[number]

    def _analyze(self, analyst: GoAnalyst, turn: Turn) -> None:
        def on_report(analysis: Analysis) -> None:
            self._respond(response(turn, analysis, is_during_search=True))

        try:
            analysis = analyst.analyze(turn.request, on_report, all_owners=turn.parts.needs_owners)
            if not (self._ending and self._quits_early):
                self._respond(response(turn, analysis, is_during_search=False))
            return
        except OutputClosedError:
            raise
        except EvaluatorError as error:
            message = str(error)
        except Exception as error:  # an error of yomi: the client gets a line, the log the traceback
            message = internal_error(log, f"in turn {turn.number} of query {turn.identity}", error)
        self._respond({"id": turn.identity, "turnNumber": turn.number, "error": message})

    # -- answers ---------------------------------------------------------------------------------------------------

    def _respond(self, fields: dict[str, Any]) -> None:
        text = to_line(fields)
        # Analysts and the main thread write at the same time.
        with self._lock:
            self.write(text)

    def answer(self, line: bytes) -> None:
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
                self._enqueue(fields)
        except FieldError as error:
            self._respond({"error": str(error), "field": error.field, "id": fields["id"]})
        except OutputClosedError:
            raise
        except Exception as error:  # an error of yomi: the client gets a line, the log the traceback
            self._respond({"error": internal_error(log, f"in query {fields['id']}", error), "id": fields["id"]})

    def _enqueue(self, fields: Fields) -> None:
        turns, warnings = read_query(fields, self.settings)
        for turn in turns[:1]:
            self._check_profile(turn.request.options)
        for name, message in warnings:
            self._respond({"warning": message, "field": name, "id": fields["id"]})
        with self._lock:
            for turn in turns:
                turn.urgency = turn.urgency[0], next(self._count)
                heapq.heappush(self._waiting, turn)
            self._lock.notify_all()

    def _check_profile(self, options: Options | None) -> None:
        """Refuse a query's profile that no network reads."""
        if options is None or options.human_profile in (None, self.settings.options.human_profile):
            return
        self.loaded.wait()
        try:
            for analyst in self._analysts[:1]:
                analyst.check_profile(options)
        except EvaluatorError as error:
            raise FieldError(FIELD, f"Could not set settings: {error}") from None

    def _act(self, fields: Fields) -> None:
        row = ACTIONS.find(fields["action"])
        if row is None:
            expected = " or ".join(f"'{action}'" for action in ACTIONS.names())
            raise FieldError("action", f"'action' field must be {expected}")
        self._respond({**fields, **(row.handler(self, fields) or {})})

    @ACTIONS.command("query_version")
    def _query_version(self, fields: Fields) -> dict[str, Any]:
        return {"version": __version__, "git_hash": "<omitted>"}

    @ACTIONS.command("query_models")
    def _query_models(self, fields: Fields) -> dict[str, Any]:
        self.loaded.wait()
        return {"models": [model for analyst in self._analysts[:1] for model in analyst.models]}

    @ACTIONS.command("clear_cache")
    def _clear_cache(self, fields: Fields) -> None:
        for analyst in self._analysts:
            analyst.clear_cache()

    @ACTIONS.command("terminate")
    def _terminate_query(self, fields: Fields) -> None:
        if not isinstance(fields.get("terminateId"), str):
            message = 'Requests for a terminate action must have a string "terminateId" field'
            raise FieldError("terminateId", message)
        self._terminate(fields["terminateId"], fields)

    @ACTIONS.command("terminate_all")
    def _terminate_all(self, fields: Fields) -> None:
        self._terminate(None, fields)

    @staticmethod
    def _meant(identity: str | None, fields: Fields) -> Callable[[Turn], bool]:
        """Return a function that tests whether an action concerns a turn. `identity`: a query's id; None: all."""
        numbers = None
        if "turnNumbers" in fields:
            message = "If provided, must be an array of integers indicating turns to terminate"
            numbers = set(integers(fields, "turnNumbers", message))
        return lambda turn: identity in (None, turn.identity) and (numbers is None or turn.number in numbers)

    def _terminate(self, identity: str | None, fields: Fields) -> None:
        """End open turns. Waiting turns are answered without results, running searches with their latest report."""
        is_meant = self._meant(identity, fields)
        with self._lock:
            ended = sorted(filter(is_meant, self._waiting))
            self._waiting = [turn for turn in self._waiting if not is_meant(turn)]
            heapq.heapify(self._waiting)
            for turn in filter(is_meant, self._running.values()):
                turn.request.stop()
            for turn in ended:
                self.write(to_line(no_results(turn)))

    @ACTIONS.command("raise_visits")
    def _raise_visits(self, fields: Fields) -> dict[str, Any]:
        """Give moves of an open query at least `visits` visits, in the tree that is searched. Not part of KataGo."""
        if not isinstance(fields.get("targetId"), str):
            raise FieldError("targetId", "Must be the id of an open query")
        for name in ("moves", "visits"):
            if name not in fields:
                raise FieldError(name, "Must be specified")
        visits = integer(fields, "visits", 1, MAX_VISITS, "Must be an integer from 1 to 2^50")
        is_meant = self._meant(fields["targetId"], fields)
        with self._lock:
            running = {number: turn for number, turn in self._running.items() if is_meant(turn)}
            found = [*running.values(), *filter(is_meant, self._waiting)]
            for turn in found:
                goals = dict.fromkeys(vertices(fields, "moves", "moves", turn.request.game.board), visits)
                turn.request.goals = {**turn.request.goals, **goals}
        for number, turn in running.items():
            # A search that is only starting reads the request's goals.
            self._analysts[number].raise_visits(turn.request.goals)
        return {"turnNumbers": sorted(turn.number for turn in found)}

    # -- the end ---------------------------------------------------------------------------------------------------

    def handle(self, line: bytes) -> bool:
        return self.failure is None and super().handle(line)

    def finish(self) -> None:
        """Wait until the open queries are answered, or stop them."""
        with self._lock:
            self._ending = True
            self._quits_early = self._quits_early or self.failure is not None
            self._lock.notify_all()
            if self._quits_early:
                for turn in self._running.values():
                    turn.request.stop()
        if not self._quits_early or self.loaded.is_set():
            self.loaded.wait()
            for thread in self._threads:
                thread.join()
        super().finish()

    def close(self) -> None:
        for analyst in self._analysts:
            analyst.close()


def serve(settings: Settings, make_analysts: Callable[[], Sequence[GoAnalyst]], *, quit_without_waiting: bool) -> int:
    """Serve the client on stdin and stdout; return the exit status."""
    return run_session(
        lambda write: Session(settings, make_analysts, write, _say, quit_without_waiting=quit_without_waiting)
    )


def _say(line: str) -> None:
    # Clients wait for the line that begins with "Started".
    print(line, file=sys.stderr, flush=True)

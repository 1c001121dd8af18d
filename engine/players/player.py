"""A player: a search, and the decisions around it that are the same in every game.

Begin reading at `Player.decide`. What differs between games (which moves need no search, how time is divided, when to
resign) are the methods that the games' players override; they stand together at the end.
"""

from __future__ import annotations

import abc
import logging
import math
import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Generic, TypeAlias, TypeVar

import numpy as np

from yomi.engine.address_space import RESERVE, address_space_left, address_space_limit, limit_text
from yomi.engine.evaluators.base import EvaluatorError
from yomi.engine.options import OptionError
from yomi.engine.players.request import Decision, G, LoadingError, Request
from yomi.engine.players.thinking import (
    DEFAULT_SECONDS,
    PATIENCE,
    Lateness,
    LostMoves,
    Schedule,
    choose,
    end_search,
    temperature_at,
    wait_for_end,
    warm_up,
    watch,
)
from yomi.engine.search.limits import Limits
from yomi.engine.search.report import SearchReport
from yomi.engine.search.search import Search
from yomi.errors import ClosedError
from yomi.nets.errors import NetworkError

if TYPE_CHECKING:
    from yomi.engine.clock import Budget, Clock
    from yomi.engine.evaluators.queue import EvaluationQueue
    from yomi.engine.options import Options
    from yomi.engine.search.parameters import SearchSettings
    from yomi.native.spec import GameSpec

_log = logging.getLogger("yomi.player")

AS_MADE = ("workers", "batches_in_flight", "memory", "cache_size", "seed")
"""Settings that a search keeps as it was made with."""
Restrictions: TypeAlias = tuple[Collection[int], Collection[int] | None]
"""Moves of the root that are not searched, and the only ones that are (None for all)."""


class Player(abc.ABC, Generic[G]):
    """Chooses moves and analyses positions. One thread calls it, but for `interrupt` and the methods of a request."""

    options: Options
    """The settings. Anybody may change them while nothing is searched: they take effect with the next request, or with
    `load` if `needs_loading` says so."""

    def __init__(self, options: Options, game: G) -> None:
        """Load what the options name, for the board of a game.

        Raises:
            LoadingError: it cannot be loaded, or the options do not go together.
        """
        self.options = options
        self._lost = LostMoves()
        self._lateness = Lateness()
        self._loaded: object = None
        self._is_closed = False
        self._search: Search
        self.load(game)

    @property
    def description(self) -> str:
        """What plays: the network's or the evaluator's name, on one line."""
        return self._search.queue.evaluator.description

    @property
    def search(self) -> Search:
        """The search in use."""
        return self._search

    # -- loading ---------------------------------------------------------------------------------------------------

    def needs_loading(self, game: G) -> bool:
        """Whether the options, or the board of a game, name something that is not loaded."""
        return self._loading_key(game) != self._loaded

    def load(self, game: G) -> None:
        """Load what the options name and the board of a game needs, unless it is loaded; may take long.

        Raises:
            LoadingError: it cannot be loaded; what was loaded stays.
        """
        if not self.needs_loading(game):
            return
        if self._loaded is not None:
            self._end_background()
        try:
            search = self._load(game)
        except LoadingError:
            raise
        except (NetworkError, EvaluatorError, OptionError) as error:
            raise LoadingError(str(error)) from None
        except MemoryError:
            wanted = f"memory {self.options.memory} and cache_size {self.options.cache_size}"
            limit = address_space_limit()
            why = "" if limit is None else f"; {limit_text(limit)}"
            raise LoadingError(f"{wanted}: the system has not as much, expected fewer bytes{why}") from None
        if self._loaded is not None:
            self._drop_queue(self._search.queue)
        self._search = search
        self._rng = np.random.default_rng(self.options.seed)
        self._loaded = self._loading_key(game)

    def _open_search(self, queue: EvaluationQueue, spec: GameSpec, empty: G) -> Search:
        """Return a search with a queue, warmed up at the beginning of a game; the queue is dropped if it fails."""
        try:
            search = Search(spec, queue, self._search_settings(self.options, empty, queue))
            left = address_space_left()
            if left is not None and left < RESERVE:
                raise MemoryError
            self._warm_up(search, empty)
        except BaseException:
            self._drop_queue(queue)
            raise
        return search

    def _warm_up(self, search: Search, empty: G) -> None:
        warm_up(search, empty)

    def new_game(self, game: G) -> None:
        """Forget what belongs to the last game, and load what the board of this one needs.

        Raises:
            LoadingError: see `load`.
        """
        self.load(game)
        self.clear()
        self._lost = LostMoves()

    def clear(self) -> None:
        """Forget the tree and all evaluations."""
        self._search.clear()

    def close(self) -> None:
        """Stop everything and release devices and threads; nothing may be called afterwards."""
        if not self._is_closed:
            self._is_closed = True
            self._end_background()
            self._drop_queue(self._search.queue)

    # -- searches in the background --------------------------------------------------------------------------------

    def start(self, request: Request[G]) -> None:
        """Search without limit until `stop`, or until memory is full; return at once.

        Raises:
            LoadingError: see `load`.
        """
        self._prepare(request)
        root, keep = self._root(request), request.keep_tree
        self._search.set_position(root, keep_tree=keep, is_shown_otherwise=request.hide_moves)
        allow = None if request.allow is None else list(request.allow)
        self._search.start(Limits(), avoid=list(request.avoid), allow=allow, prune=self._pruned(request, root))

    def report(self) -> SearchReport:
        """Report the search that runs, or the last one; may be called at any time."""
        return self._shown(self._search.report())

    def stop(self) -> None:
        """End a search that `start` has begun, and return when it is quiet; nothing runs: no effect."""
        self._search.stop()

    def interrupt(self) -> None:
        """Make the search that runs end soon with what it has; callable from any thread."""
        self._search.interrupt()

    # -- decisions -------------------------------------------------------------------------------------------------

    def decide(self, request: Request[G]) -> Decision:
        """Choose a move without playing it; block until it is chosen or the request is stopped.

        If a request ponders or is infinite the answer may come before `stop` or `ponderhit`; the caller holds it back.

        Raises:
            LoadingError: the game is on a board for which there is no evaluator.
            Exception: what an evaluator or `on_report` raised before anything was found.
        """
        self._prepare(request)
        begin, root = time.monotonic(), self._root(request)
        try:
            return self._without_search(request, root) or self._decide_by_search(request, root, begin)
        except BaseException:
            self._end_background()
            raise
        finally:
            request.on_change = None

    def _decide_by_search(self, request: Request[G], root: G, begin: float) -> Decision:
        """Choose a move by search.

        Args:
            request: what is asked for.
            root: its position, as the search is to see it.
            begin: when the player was ready, from which on limits in seconds are counted.
        """
        search, options = self._search, self._options(request)

        def schedule() -> Schedule:
            return self._schedule(request, root, begin)

        search.set_position(root, keep_tree=request.keep_tree, is_shown_otherwise=request.hide_moves)
        avoid, allow = self._restrictions(request, root, schedule())
        self._begin_beside(request, root, allow)
        try:
            self._start(request, self._limits(request, schedule()), avoid, allow, self._pruned(request, root))
            self._watch(request, schedule, self._shown)
            report = end_search(search, max(PATIENCE, search.latency), request.pv_length)
            if not (report.moves or self._line_beside() or self._is_forced(request, root)) and search.is_running:
                report = self._wait_for_move(request)
        finally:
            self._end_beside()
        report = self._shown(report)
        line = self._line_beside()
        if line:
            return Decision(line[0], ponder=line[1] if len(line) > 1 else None, report=report, note="mate")
        if not report.moves:
            return Decision(self._likeliest(root, allow), report=report)
        heat = temperature_at(root.ply, options.temperature, options.temperature_moves)
        drawn = self._draw(report, heat)
        pv = next(move.pv for move in report.moves if move.move == drawn)
        resigns = not (request.infinite or request.is_pondering) and self._resigns(options, root, report)
        return Decision(drawn, resigns, ponder=pv[1] if len(pv) > 1 else None, report=report)

    def _start(
        self,
        request: Request[G],
        limits: Limits,
        avoid: Collection[int] = (),
        allow: Collection[int] | None = None,
        prune: Sequence[int] = (),
    ) -> None:
        """Start the search; `stop` of the request ends it from now on."""
        noise, allowed = self._options(request).root_noise > 0.0, None if allow is None else list(allow)
        self._search.start(limits, avoid=list(avoid), allow=allowed, prune=prune, noise=noise)
        request.on_change = None if request.is_pondering else self._search.interrupt

    def _watch(
        self, request: Request[G], schedule: Callable[[], Schedule], shown: Callable[[SearchReport], SearchReport]
    ) -> None:
        """Wait until the search has ended or should end; its reports are told as `shown` returns them."""
        on_report = request.on_report
        lateness = watch(
            self._search,
            schedule,
            is_stopped=lambda: request.is_stopped or self._has_answer(request),
            has_enough=self._has_enough(request),
            on_report=None if on_report is None else lambda report: on_report(shown(report)),
            first_report=request.first_report,
            interval=request.interval,
            pv_length=request.pv_length,
            depth=min(self._depths(request), default=0),
        )
        self._lateness.note(lateness)

    def _wait_for_move(self, request: Request[G]) -> SearchReport:
        """Return the report of a search that has to end before it has a move: a clock is given the time that it has."""
        clock = request.clock
        left = None if clock is None else self._time_left(clock, self._options(request))
        if left is None:
            return wait_for_end(self._search)
        return end_search(self._search, max(0.0, request.start + left - time.monotonic()))

    def _resigns(self, options: Options, game: G, report: SearchReport) -> bool:
        """Remember whether this move looks lost, and say whether enough own moves in a row did."""
        is_lost = report.moves[0].winrate < options.resign_threshold
        count = self._lost.count(game.side_to_move, game.ply, is_lost)
        return options.resign and count >= options.resign_moves and self._may_resign(game, report)

    def _draw(self, report: SearchReport, temperature: float) -> int:
        """Return the best move, or at a temperature above 0 one drawn by visits."""
        return choose(report, temperature, self._rng)

    # -- settings and limits ---------------------------------------------------------------------------------------

    def _options(self, request: Request[G]) -> Options:
        return request.options or self.options

    def _prepare(self, request: Request[G]) -> None:
        """End what runs, load what the game's board needs, and bring the search in line with the options."""
        if self._is_closed:
            raise ClosedError("the player is closed: make another one")
        self._end_background()
        self._load_board(request.game)
        settings = self._search_settings(self._options(request), request.game, self._search.queue)
        made = self._search.settings
        kept = {name: getattr(made, name) for name in AS_MADE}
        settings = replace(settings, **kept)
        if settings != made:
            self._search.configure(settings)

    def _end_background(self) -> None:
        """End a search that nobody waits for; how it failed goes to the log."""
        try:
            self._search.stop()
        except Exception as error:
            _log.error("an earlier search ended early: %s", error, exc_info=not isinstance(error, EvaluatorError))

    def _schedule(self, request: Request[G], root: G, begin: float) -> Schedule:
        """Return when the search of a request ends by time, as its clock is now."""
        if request.infinite or request.is_pondering:
            return Schedule()
        if self._is_forced(request, root):
            return Schedule(request.start, request.start, request.start)
        options, limits, clock = self._options(request), request.limits, request.clock
        base = max(begin, request.start)
        seconds = _least(options.seconds, limits.seconds)
        if clock is None:
            counts = (options.visits, options.playouts, options.depth, limits.visits, limits.playouts, request.depth)
            if seconds is None and all(each is None for each in counts):
                seconds = DEFAULT_SECONDS
            return Schedule(base, hard=math.inf if seconds is None else base + seconds)
        lag = options.lag + self._search.latency
        budget = self._budget(clock, root, options, lag, self._lateness.reserve)
        hard = request.start + budget.hard
        if seconds is not None:
            hard = min(hard, base + seconds)
        return Schedule(request.start, min(request.start + budget.soft, hard), hard)

    def _limits(self, request: Request[G], schedule: Schedule) -> Limits:
        """Return what ends the search by itself; the watch adds what may change with `ponderhit`."""
        options, limits = self._options(request), request.limits
        if request.infinite:
            return Limits()
        visits = _least(options.visits, limits.visits)
        if request.is_pondering:
            return Limits(visits)
        seconds = None if schedule.hard == math.inf else max(0.0, schedule.hard - time.monotonic())
        return Limits(visits, _least(options.playouts, limits.playouts), seconds)

    def _depths(self, request: Request[G]) -> list[int]:
        return [each for each in (request.depth, self._options(request).depth) if each is not None]

    def _has_enough(self, request: Request[G]) -> Callable[[SearchReport], bool] | None:
        """Return the test whether a search may end: at a proof, a depth, or playouts, those made while pondering too.

        None if only `stop` or the search's own limits end it.
        """
        depths = self._depths(request)
        playouts = _least(self._options(request).playouts, request.limits.playouts) if request.ponder else None
        if request.infinite or not (self._search.settings.solver or depths or playouts):
            return None

        def has_enough(report: SearchReport) -> bool:
            if request.is_pondering:
                return False
            if report.proven:
                return True
            deep = bool(depths and report.moves) and len(report.moves[0].pv) >= min(depths)
            return deep or (playouts is not None and report.playouts >= playouts)

        return has_enough

    # -- what each game says ---------------------------------------------------------------------------------------

    @abc.abstractmethod
    def _loading_key(self, game: G) -> object:
        """Return what the options name and the game's board needs: loaded anew when it differs."""

    @abc.abstractmethod
    def _load(self, game: G) -> Search:
        """Return a search as the options want it, for the board of a game, warmed up; LoadingError if there is none."""

    def _load_board(self, game: G) -> None:
        """Load what the board of a game needs, if boards differ in this game; options wait for `load`."""

    @abc.abstractmethod
    def _search_settings(self, options: Options, game: G, queue: EvaluationQueue) -> SearchSettings:
        """Return the settings of a search by the options, for the board of a game."""

    @abc.abstractmethod
    def _budget(self, clock: Clock, game: G, options: Options, lag: float, lateness: float) -> Budget:
        """Return the time of a move from the start of its clock on.

        Args:
            clock: of the side to move.
            game: as it stands.
            options: the settings.
            lag: seconds that may be lost on each move.
            lateness: seconds that may be lost besides on this move.
        """

    def _time_left(self, clock: Clock, options: Options) -> float | None:
        """Return the seconds from the start of its clock on in which a move comes in time; None: wait for it."""
        return None

    def _drop_queue(self, queue: EvaluationQueue) -> None:
        """Release the evaluators of a search that has ended."""
        queue.close()

    def _root(self, request: Request[G]) -> G:
        """Return the position to search: a copy of the request's."""
        return request.game.copy()

    def _without_search(self, request: Request[G], root: G) -> Decision | None:
        """Return a decision that takes no search of the root; None to search."""
        return None

    def _is_forced(self, request: Request[G], root: G) -> bool:
        """Whether there is one move only, for which no time is spent."""
        return False

    def _restrictions(self, request: Request[G], root: G, schedule: Schedule) -> Restrictions:
        """Return the moves of the root that are not searched, and the only ones that are (None for all)."""
        return request.avoid, request.allow

    def _pruned(self, request: Request[G], root: G) -> Sequence[int]:
        """Return further moves of the root that are not worth a search."""
        return ()

    def _begin_beside(self, request: Request[G], root: G, allow: Collection[int] | None) -> None:
        """Start what looks for a won line beside the search."""

    def _end_beside(self) -> None:
        """End it; what it has found stays."""

    def _line_beside(self) -> tuple[int, ...]:
        """Return the won line that was found beside the search, so far; empty if there is none."""
        return ()

    def _has_answer(self, request: Request[G]) -> bool:
        """Whether that line makes the search needless."""
        return False

    def _shown(self, report: SearchReport) -> SearchReport:
        """Return a report with what was found beside the search."""
        return report

    @abc.abstractmethod
    def _likeliest(self, root: G, allow: Collection[int] | None) -> int:
        """Return a move for a search that had time for nothing."""

    def _may_resign(self, game: G, report: SearchReport) -> bool:
        """Whether a game whose moves look lost may be given up."""
        return True


N = TypeVar("N", int, float)


def _least(*limits: N | None) -> N | None:
    return min((each for each in limits if each is not None), default=None)

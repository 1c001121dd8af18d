"""A player: a search, and the decisions around the search that all games share.

Start reading at `Player.decide`. The players of each game override the methods at the end: moves without a search,
time, resigning.
"""

import abc
import logging
import math
import time
from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Generic

import numpy as np

from yomi.engine.clock import Budget, Clock
from yomi.engine.evaluators.base import EvaluatorError
from yomi.engine.evaluators.network import network_in
from yomi.engine.evaluators.queue import EvaluationQueue
from yomi.engine.machine import RESERVE, address_space_left, address_space_limit, limit_text
from yomi.engine.options import TABLE, OptionError, Options, Value
from yomi.engine.players import people
from yomi.engine.players.request import Adviser, Decision, G, LoadingError, Request, Turn
from yomi.engine.players.time_management import (
    DEFAULT_SECONDS,
    PATIENCE,
    Lateness,
    LostMoves,
    choose,
    end_search,
    temperature_at,
    warm_up,
    watch,
)
from yomi.engine.search.base import SEARCH_HANG, PositionSearch
from yomi.engine.search.search import Search
from yomi.engine.search.types import Limits, RootMoves, SearchReport, SearchSettings
from yomi.language import ENGLISH, tr, within
from yomi.native.spec import GameSpec
from yomi.nets.errors import NetworkError

_log = logging.getLogger("yomi.player")

AS_MADE = ("workers", "batches_in_flight", "memory", "cache_size", "seed")  # settings that a search keeps


class Player(abc.ABC, Generic[G]):
    """Chooses moves and analyzes positions, in one thread. Only `interrupt` and a request's methods are thread-safe."""

    # The settings. They may change while no search runs, and take effect with the next request, or with `load` if
    # `needs_loading` is true.
    options: Options

    def __init__(self, options: Options, game: G) -> None:
        """Load the networks and the book that the options name, for the board of a game. Errors: see `load`."""
        self.options = options
        self._lost = LostMoves()
        self._lateness = Lateness()  # between the end of a move's time and the answer, by this machine's load
        self._loaded: object = None
        # The options are a copy: the player's may change.
        self._configured: tuple[Options, PositionSearch] | None = None
        self._is_closed = False
        self._adviser = Adviser()  # of the current or last search
        self._unused: set[str] = set()  # options that were reported to have no effect
        self._search: PositionSearch
        self.load(game)

    @property
    def description(self) -> str:
        """The evaluator and the search in English, for records and programs."""
        with within(ENGLISH):
            return self._describe()

    def _describe(self) -> str:
        return self._search.queue.evaluator.description

    @property
    def setup_line(self) -> str:
        """Line for the user: network, device, driver, precision, and how well the results agree with those in fp32."""
        network = network_in(self._search.queue.evaluator)
        if network is None or network.precision == "fp32" or network.is_exact:
            return self._describe()
        found = network.agreement or tr("not compared")
        return tr("{network}; against fp32: {found}", network=self._describe(), found=found)

    @property
    def is_on_gpu(self) -> bool:
        network = network_in(self._search.queue.evaluator)
        return network is not None and not network.device.is_cpu

    @property
    def search(self) -> PositionSearch:
        return self._search

    @property
    def policy_search(self) -> PositionSearch:
        """The search whose evaluator has a policy. An alpha-beta search has none."""
        return self._search

    # -- loading ---------------------------------------------------------------------------------------------------

    def needs_loading(self, game: G) -> bool:
        """Return whether the options or the game's board require something that is not loaded."""
        return self._loading_key(game) != self._loaded

    def load(self, game: G) -> None:
        """Load the networks and the book that the options name, for the board of a game, unless they are loaded.

        This may take minutes.

        Raises:
            LoadingError: loading failed, or options contradict each other. The loaded search stays.
        """
        if not self.needs_loading(game):
            return
        if self._loaded is not None:
            self.end_background()
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
            raise LoadingError(f"{wanted}: not enough memory, lower them{why}") from None
        if self._loaded is not None:
            self._drop_queue(self._search.queue)
        self._search = search
        self._rng = np.random.default_rng(self.options.seed)
        self._loaded = self._loading_key(game)
        self._report_unused()

    def _report_unused(self) -> None:
        """Log options that the user set but the search ignores, each option once."""
        options, search = self.options, self._search
        changed = {name for name in search.unused if options.get(name) != self._default(name)}
        if options.people_prior > 0.0:  # then a network's policy chooses among the moves
            changed -= {"policy_temperature", "root_policy_temperature"}
        if new := [name for name in TABLE if name in changed - self._unused]:
            names = ", ".join(f"{name} ({usi.names[0]})" if (usi := TABLE[name].usi) else name for name in new)
            _log.warning("%s: no effect in %s; %s", names, search.title, search.instead)
        self._unused |= changed

    def _make_search(self, spec: GameSpec, queue: EvaluationQueue, settings: SearchSettings) -> PositionSearch:
        return Search(spec, queue, settings)

    def _open_search(self, queue: EvaluationQueue, spec: GameSpec, empty: G) -> PositionSearch:
        """Return a search that uses a queue, warmed up at the start of a game. If this fails, the queue is closed."""
        try:
            search = self._make_search(spec, queue, self._search_settings(self.options, empty, queue))
            left = address_space_left()
            if left is not None and left < RESERVE:
                raise MemoryError
            self._warm_up(search, empty)
        except BaseException:
            self._drop_queue(queue)
            raise
        return search

    def _warm_up(self, search: PositionSearch, empty: G) -> None:
        warm_up(search, empty)

    def new_game(self, game: G) -> None:
        """Drop the data of the last game, and load the board of the new game. Errors: see `load`."""
        self.load(game)
        self.clear()
        self._lost = LostMoves()

    def clear(self) -> None:
        """Drop the search tree and all evaluations."""
        self._search.clear()

    def close(self) -> None:
        """Stop everything and release devices and threads. No method may be called afterwards."""
        if not self._is_closed:
            self._is_closed = True
            self.end_background()
            self._drop_queue(self._search.queue)

    # -- searches in the background --------------------------------------------------------------------------------

    def start(self, request: Request[G]) -> None:
        """Search in the background until `stop` is called or memory is full. Errors: see `load`."""
        turn = self._turn(request)
        self._place(turn, None)
        self._search.start(Limits(), replace(turn.moves, noise=False))

    def report(self) -> SearchReport:
        """Return a report of the current or last search. Thread-safe."""
        return self._adviser.annotate(self._search.report())

    def stop(self) -> None:
        """End the search of `start`, if one runs, and wait for its threads."""
        self._search.stop()

    def interrupt(self) -> None:
        """Make the current search end soon and return its result so far. Thread-safe."""
        self._search.interrupt()

    # -- decisions -------------------------------------------------------------------------------------------------

    def decide(self, request: Request[G]) -> Decision:
        """Choose a move without playing it. Return when it is chosen or the request is stopped.

        If the request ponders or is infinite, this may return before `stop` or `ponderhit`. The caller then holds the
        answer back.

        Raises:
            LoadingError: there is no evaluator for this board.
            Exception: an evaluator or `on_report` failed before the search found a move.
        """
        turn = self._turn(request)
        try:
            return self._without_search(turn) or self._by_search(turn)
        except BaseException:
            self.end_background()
            raise
        finally:
            request.listen(None)

    def choose(self, game: G) -> Decision:
        """Choose a move. Only the options limit the search. Errors: see `decide`."""
        return self.decide(Request(game, hide_history=self.options.ignore_pre_root_history))

    def _turn(self, request: Request[G]) -> Turn[G]:
        """Prepare a turn: end a background search, load the game's board, set up the search, and copy the position."""
        self.end_background()
        self._load_board(request.game)
        options, search = request.options or self.options, self._search
        if (options, search) != self._configured:
            settings = self._search_settings(options, request.game, search.queue)
            settings = replace(settings, **{name: getattr(search.settings, name) for name in AS_MADE})
            if settings != search.settings:
                search.configure(settings)
            self._configured = options.copy(), search
            self._report_unused()
        begin = time.monotonic()
        moves = RootMoves(request.allow, request.avoid, noise=options.root_noise > 0.0)
        return Turn(request, options, self._root(request), begin, request.limits.least(options), moves)

    def _place(self, turn: Turn[G], schedule: Budget | None) -> None:
        """Make the turn's position the root of the search tree, and restrict its moves (see `_restrict`)."""
        request = turn.request
        self._search.set_position(turn.root, keep_tree=request.keep_tree, hide_history=request.hide_history)
        self._restrict(turn, schedule)
        self._adviser = turn.adviser

    def _by_search(self, turn: Turn[G]) -> Decision:
        search, request, options = self._search, turn.request, turn.options
        self._place(turn, self._schedule(turn))
        adviser = turn.adviser
        adviser.start()
        try:
            search.start(self._limits(turn), turn.moves)
            # From now on the request's `stop` ends the search.
            request.listen(None if request.is_pondering else search.interrupt)
            self.raise_visits(request.goals)
            lateness = watch(search, turn, lambda: self._schedule(turn), adviser.annotate)
            end = time.monotonic() + search.latency  # the latency has a reserve of its own
            report = end_search(search, max(PATIENCE, search.latency), request.pv_length)
            self._lateness.note(lateness + max(0.0, time.monotonic() - end))
            if not (report.moves or adviser.line or turn.forced is not None) and search.is_running:
                report = self._wait_for_move(turn)
        finally:
            adviser.stop()
        report, line = adviser.annotate(report), adviser.line
        if line:
            return Decision(line[0], ponder=line[1] if len(line) > 1 else None, report=report, note="mate")
        if not report.moves:
            return Decision(self._fallback_move(turn) if turn.forced is None else turn.forced, report=report)
        temperature = temperature_at(turn.root.ply, options.temperature, options.temperature_moves)
        drawn = self._draw(turn, report, temperature)
        pv = next((move.pv for move in report.moves if move.move == drawn), (drawn,))
        resigns = not request.is_unlimited and self._resigns(turn, report)
        return Decision(drawn, resigns, ponder=pv[1] if len(pv) > 1 else None, report=report)

    def _wait_for_move(self, turn: Turn[G]) -> SearchReport:
        """Wait until the search has a move, as far as the clock has time for that."""
        request, search = turn.request, self._search
        left = None if request.clock is None else self._time_left(request.clock, turn.options)
        if left is not None:
            return end_search(search, max(0.0, request.start + left - time.monotonic()))
        search.wait(SEARCH_HANG)
        search.stop()
        return search.report()

    def _resigns(self, turn: Turn[G], report: SearchReport) -> bool:
        """Return whether to resign: enough own moves in a row, this one included, looked lost."""
        options, root = turn.options, turn.root
        is_lost = report.moves[0].winrate < options.resign_threshold
        count = self._lost.count(root.side_to_move, root.ply, is_lost)
        return options.resign and count >= options.resign_moves and self._may_resign(root, report)

    def _draw(self, turn: Turn[G], report: SearchReport, temperature: float, never: Collection[int] = ()) -> int:
        """Return the best move, or a move drawn by the model of people (which omits `never`) or by visits."""
        options = turn.options
        priors = self._priors(turn) if options.people_prior > 0.0 else {}
        chosen = {move: prior for move, prior in priors.items() if move not in never}
        if chosen:
            weights = self._people_prior(turn), options.people_loss
            chances = people.probabilities(chosen, report.moves, *weights, is_ranked=report.depth > 0)
            return people.draw(chances, self._rng)
        return choose(report, temperature, self._rng, options.temperature_only_below)

    def end_background(self) -> None:
        """End a background search, and log its error if it failed."""
        try:
            self._search.stop()
        except Exception as error:
            _log.error("an earlier search failed: %s", error, exc_info=not isinstance(error, EvaluatorError))

    # -- limits ----------------------------------------------------------------------------------------------------

    def _schedule(self, turn: Turn[G]) -> Budget:
        """Return when time ends the search of a turn, by the current clock."""
        request, options, seconds = turn.request, turn.options, turn.limits.seconds
        if request.is_unlimited:
            return Budget()
        if turn.forced is not None:
            return Budget(request.start, request.start, request.start)
        clock, base = request.clock, max(turn.begin, request.start)
        if clock is None:
            if turn.limits == Limits():
                seconds = DEFAULT_SECONDS
            return Budget(hard=math.inf if seconds is None else base + seconds, start=base)
        lag = options.lag + self._search.latency
        budget = self._budget(clock, turn.root, options, lag, self._lateness.reserve)
        hard = request.start + budget.hard
        if seconds is not None:
            hard = min(hard, base + seconds)
        return Budget(min(request.start + budget.soft, hard), hard, request.start, request.start + budget.free)

    def _limits(self, turn: Turn[G]) -> Limits:
        """Return the limits that the search enforces. `watch` enforces those that `ponderhit` can change."""
        if turn.request.infinite:
            return Limits()
        if turn.request.is_pondering:
            is_level = turn.options.people_prior > 0.0  # which is no stronger for the opponent's time
            return replace(turn.limits, playouts=turn.limits.playouts if is_level else None, seconds=None)
        hard = self._schedule(turn).hard
        return replace(turn.limits, seconds=None if hard == math.inf else max(0.0, hard - time.monotonic()))

    # -- what each game says ---------------------------------------------------------------------------------------

    @abc.abstractmethod
    def _loading_key(self, game: G) -> object: ...

    @abc.abstractmethod
    def _load(self, game: G) -> PositionSearch: ...

    def _load_board(self, game: G) -> None:
        """Load what a game's board needs, if boards differ in this game. Changed options wait for `load`."""

    @abc.abstractmethod
    def _search_settings(self, options: Options, game: G, queue: EvaluationQueue) -> SearchSettings: ...

    @abc.abstractmethod
    def _budget(self, clock: Clock, game: G, options: Options, lag: float, lateness: float) -> Budget:
        """Return the time for a move, counted from the start of its clock.

        `lag` is the time that each move may lose, `lateness` the further time that this move may lose.
        """

    def _time_left(self, clock: Clock, options: Options) -> float | None:
        """Return the seconds, from the start of the clock, in which a move is in time. None: wait for the search."""
        return None

    def _drop_queue(self, queue: EvaluationQueue) -> None:
        queue.close()

    def _default(self, name: str) -> Value:
        """Return the value that an option has if the user has not set it."""
        value: Value = TABLE[name].default
        return value

    def _root(self, request: Request[G]) -> G:
        """Return a copy of the request's position, to search."""
        return request.game.copy()

    def _without_search(self, turn: Turn[G]) -> Decision | None:
        return None

    def _restrict(self, turn: Turn[G], schedule: Budget | None) -> None:
        """Restrict a turn's moves and set its adviser. `schedule` is its time; None for a search in the background."""

    def raise_visits(self, goals: Mapping[int, int]) -> None:
        """Give root moves of the current search more visits (Go only); see Search.raise_visits. Thread-safe."""

    @abc.abstractmethod
    def _fallback_move(self, turn: Turn[G]) -> int:
        """Return a move without using the search, which had no time at all."""

    def _may_resign(self, game: G, report: SearchReport) -> bool:
        return True

    def _priors(self, turn: Turn[G]) -> dict[int, float]:
        """Return the policy of a network for the turn's moves; empty if there is none."""
        return self._search.priors()

    def _people_prior(self, turn: Turn[G]) -> float:
        """Return the exponent of the policy in the model of people."""
        return turn.options.people_prior

"""The shogi player: book, declaration of wins, mate search, pondering before the expected move, and time control."""

import contextlib
import logging
import math
import random
import time
from dataclasses import replace

from yomi.engine.clock import MAX_RESERVE_SHARE, Budget, Clock, TimeSystem, lag_reserve
from yomi.engine.color import BLACK, opponent
from yomi.engine.default_network import alpha_beta_file
from yomi.engine.evaluators.base import EvaluatorError
from yomi.engine.evaluators.queue import EvaluationQueue
from yomi.engine.options import TABLE, OptionError, Options, Value
from yomi.engine.players.player import Player
from yomi.engine.players.request import Decision, LoadingError, Request, Turn
from yomi.engine.players.setup import tuned
from yomi.engine.players.time_management import PATIENCE, POLL, Lateness, end_search, watch
from yomi.engine.records import winrate_of
from yomi.engine.search.base import PositionSearch
from yomi.engine.search.types import Limits, MoveReport, RootMoves, SearchReport, SearchSettings
from yomi.engine.shogi.book import Book, BookError
from yomi.engine.shogi.book import choose as choose_from_book
from yomi.engine.shogi.game import ShogiGame
from yomi.engine.shogi.players.mate import MateAdviser, MateAnswer, MateSearch
from yomi.engine.shogi.players.setup import (
    LOADED,
    NetworkDefaults,
    make_book,
    make_queue,
    named_search,
    policy_search,
    search_settings,
    spec_for,
)
from yomi.errors import reraised
from yomi.language import counted, tr
from yomi.native.shogi.dfpn import MAX_PLY
from yomi.native.spec import GameSpec
from yomi.nets.dlshogi.network import SIDE
from yomi.nets.errors import NetworkError

log = logging.getLogger("yomi.shogi")

MATE_NODES = 10**9  # positions of `go mate`; its time ends it long before


class BookLoadingError(LoadingError):
    """A book cannot be used. The player can be loaded without it."""


class ShogiPlayer(Player[ShogiGame]):
    def __init__(self, options: Options) -> None:
        """Load evaluator and book. Raises LoadingError."""
        self._network_defaults = NetworkDefaults()
        self._book: Book | None = None
        self._mate = MateSearch()
        self._rest = MateSearch(2**20)
        self._rules: object = None
        self._delay = Lateness()  # time that the clock loses between two moves besides that measured here
        self._reported = 0.0  # delay of the last message
        self._answered: tuple[ShogiGame, Clock, float] | None = None  # game, clock and seconds of the last move
        self._policy: PositionSearch | None = None  # beside alpha-beta, for the model of people
        super().__init__(options, ShogiGame())

    def _describe(self) -> str:
        """Return the name of the evaluation and the search, and the number of its threads."""
        known = {"tree search": tr("tree search"), "alpha-beta search": tr("alpha-beta search")}
        search, threads = self._search.title, counted("{n} thread", "{n} threads", self._search.settings.workers)
        values = {"search": known.get(search, search), "threads": threads}
        return tr("{evaluation}, {search}, {threads}", evaluation=super()._describe(), **values)

    @property
    def policy_search(self) -> PositionSearch:
        if self._search.unit == "visits":
            return self._search
        if self._policy is None:
            self._policy = policy_search(self.options)
        return self._policy

    def load(self, game: ShogiGame) -> None:
        if super().needs_loading(game):
            super().load(game)
        if self.options.people_prior > 0.0:
            with reraised((NetworkError, EvaluatorError, OptionError), LoadingError):
                _ = self.policy_search  # loaded now, not while a clock runs

    def close(self) -> None:
        self._mate.stop()
        super().close()
        self._close_policy()
        self._close_book()

    def decide(self, request: Request[ShogiGame]) -> Decision:
        self._note_delay(request)
        self._answered = None
        decision = super().decide(request)
        if request.clock is not None:
            self._answered = request.game, request.clock, time.monotonic() - request.start
        return decision

    def _note_delay(self, request: Request[ShogiGame]) -> None:
        """Measure how much time the clock has lost since the last move of the same game. This needs main time."""
        if self._answered is None or request.clock is None or request.clock.main <= 0:
            return
        game, clock, used = self._answered
        count = len(game.moves)
        if len(request.game.moves) == count + 2 and request.game.moves[:count] == game.moves:
            self._delay.note(clock.after(used).main - request.clock.main)
            if self._delay.expected > max(1.5 * self._reported, self.options.lag):
                self._reported = self._delay.expected
                log.warning("moves lose %.2f s on the way to the clock: reserved from now on", self._reported)

    def find_mate(self, request: Request[ShogiGame]) -> MateAnswer:
        """Search until a mate is found or refuted, the time is over, or the request is stopped. Return the answer."""
        seconds = request.limits.seconds
        end = math.inf if seconds is None else request.start + seconds
        self._mate.start(request.game.position, max_ply=MAX_PLY, nodes=MATE_NODES, moves=request.allow)
        request.listen(self._mate.interrupt)
        try:
            while not request.is_stopped and (now := time.monotonic()) < end:
                if self._mate.wait(min(POLL, end - now)):
                    break
        finally:
            request.listen(None)
            self._mate.stop()
        return self._mate.answer

    # -- loading ---------------------------------------------------------------------------------------------------

    def needs_loading(self, game: ShogiGame) -> bool:
        if super().needs_loading(game):
            return True
        return self.options.people_prior > 0.0 and self._policy is None and self._search.unit != "visits"

    def _loading_key(self, game: ShogiGame) -> object:
        return alpha_beta_file(self.options, "shogi"), *(self.options.get(name) for name in LOADED)

    def _make_search(self, spec: GameSpec, queue: EvaluationQueue, settings: SearchSettings) -> PositionSearch:
        make = named_search(self.options.search_engine, queue.evaluator) or super()._make_search
        return make(spec, queue, settings)

    def _load(self, game: ShogiGame) -> PositionSearch:
        # Search and mate search are made once, so that nothing is compiled while a clock runs.
        with contextlib.ExitStack() as opened:
            evaluation = alpha_beta_file(self.options, "shogi")
            self._network_defaults.apply(self.options, evaluation)
            with reraised(BookError, BookLoadingError):
                book = make_book(self.options)
            if book is not None:
                opened.callback(book.close)
            named = self.options if evaluation is None else replace(self.options, net=evaluation)
            queue = make_queue(tuned(named, "shogi", SIDE))
            search = self._open_search(queue, spec_for(queue.evaluator), ShogiGame())
            opened.callback(queue.close)
            self._mate.solve(ShogiGame().position, max_ply=1, nodes=10)
            opened.pop_all()
        self._close_policy()
        self._close_book()
        self._book, self._book_rng = book, random.Random(self.options.seed)
        self._rules = None
        return search

    def _close_book(self) -> None:
        if self._book is not None:
            self._book.close()
            self._book = None

    def _close_policy(self) -> None:
        if self._policy is not None:
            self._drop_queue(self._policy.queue)
            self._policy = None

    def _default(self, name: str) -> Value:
        return self._network_defaults.values.get(name, TABLE[name].default_for("shogi"))

    def _search_settings(self, options: Options, game: ShogiGame, queue: EvaluationQueue) -> SearchSettings:
        return search_settings(tuned(options, "shogi", SIDE), queue)

    # -- the position ----------------------------------------------------------------------------------------------

    def _root(self, request: Request[ShogiGame]) -> ShogiGame:
        """Return the request's position with the options' settings. If they or the rules have changed, the tree is
        cleared.
        """
        game, options = request.game.copy(), request.options or self.options
        draw = options.draw_value_black if game.side_to_move == BLACK else 1.0 - options.draw_value_white
        game.position["all_moves"] = options.all_legal_moves
        # `searchmoves` may ask for a move that searches skip, such as a pointless non-promotion.
        if request.allow is not None and not set(request.allow).issubset(game.searched_moves()):
            game.position["all_moves"] = True
        is_all = bool(game.position["all_moves"])
        rules = (game.entering_king, game.max_moves, options.leaf_mate_depth, is_all, draw)
        game.position["mate_depth"] = options.leaf_mate_depth
        # One value for each side, in the search's range of -1 to 1.
        game.position["draw_value"] = (2.0 * draw - 1.0, 1.0 - 2.0 * draw)
        if rules != self._rules:
            self._rules = rules
            self._search.clear()
        return game

    def _restrict(self, turn: Turn[ShogiGame], schedule: Budget | None) -> None:
        moves = turn.root.searched_moves()
        allowed = _allowed(turn.request, moves)
        turn.moves = RootMoves(allowed if len(allowed) < len(moves) else None, noise=turn.moves.noise)
        if len(moves) == 1 and not turn.request.infinite:
            turn.forced = moves[0]
        plies = turn.options.root_mate_search if schedule is not None and turn.forced is None else 0
        if turn.root.entering_king == "try":
            plies = min(plies, 1)  # in a longer mate the king may escape by a try
        nodes = turn.options.root_mate_nodes
        turn.adviser = MateAdviser(self._mate, self._rest, turn.root, turn.moves.allow, plies, nodes)

    # -- decisions without a search --------------------------------------------------------------------------------

    def _without_search(self, turn: Turn[ShogiGame]) -> Decision | None:
        request, root, options = turn.request, turn.root, turn.options
        if not root.legal_moves():
            return Decision(None, report=SearchReport(root.side_to_move, winrate=0.0, utility=-1.0, proven=-1))
        if request.infinite:
            return None
        # A declaration is no move, so it cannot be among allowed moves.
        if root.can_declare and request.allow is None:
            if root.try_move is None:
                return Decision(None, win=True, note="declaration of the win")
            # USI has no other answer that every interface understands: YaneuraOu, too, plays the king.
            move = MoveReport(root.try_move, winrate=1.0, pv=(root.try_move,), mate=1)
            report = SearchReport(root.side_to_move, winrate=1.0, moves=(move,))
            return Decision(root.try_move, report=report, note="try")
        allowed = _allowed(request, root.searched_moves())
        decision = self._from_book(options, root, allowed)
        if decision is None and request.is_pondering and options.stochastic_ponder and root.moves:
            decision = self._ponder_before(turn, allowed)
        return decision

    def _from_book(self, options: Options, root: ShogiGame, allowed: list[int]) -> Decision | None:
        """Return a move from the book, or None. A broken book is closed."""
        if self._book is None or not options.own_book or not options.book_moves:
            return None
        try:
            found = choose_from_book(self._book, root.placement, self._book_rng, lambda move: move in allowed, options)
        except BookError as error:
            log.warning("%s; the game continues without the book", error)
            self._close_book()
            return None
        if found is None:
            return None
        line = (found.move,) if found.ponder is None else (found.move, found.ponder)
        winrate = 0.5 if found.score is None else winrate_of(found.score, options.centipawns)
        move = MoveReport(found.move, winrate=winrate, pv=line)
        report = SearchReport(root.side_to_move, winrate=winrate, moves=(move,))
        return Decision(found.move, ponder=found.ponder, report=report, note="book move")

    def _ponder_before(self, turn: Turn[ShogiGame], allowed: list[int]) -> Decision | None:
        """Search the position before the expected move until `ponderhit` (returns None) or `stop`.

        The search covers all moves of the opponent, so the tree is of use after each of them. Reports contain the
        expected move's part of the tree, a line that begins with an `allowed` move.
        """
        request, root = turn.request, turn.root
        expected = root.moves[-1][1]

        def below(report: SearchReport) -> SearchReport:
            return _below(report, expected, allowed)

        # The tree of this position also serves if the opponent plays another move.
        before = root.copy()
        before.undo()
        self._search.set_position(before, keep_tree=request.keep_tree)
        try:
            self._search.start(Limits(visits=turn.options.visits), RootMoves(noise=turn.moves.noise))
        except Exception as error:  # what an evaluator raised; the position itself is tried all the same
            log.error("no pondering: %s", error, exc_info=not isinstance(error, EvaluatorError))
        request.listen(self._search.interrupt)
        if not request.is_pondering:
            self._search.interrupt()
        self._lateness.note(watch(self._search, turn, Budget, below))
        while not request.is_stopped and request.is_pondering:  # the tree is full, or the evaluator has failed
            request.wait(1.0)
        request.listen(None)
        report = SearchReport(root.side_to_move)
        try:
            report = below(end_search(self._search, PATIENCE))
        except Exception as error:  # as above; nothing was found until then
            log.error("the pondering ended early: %s", error, exc_info=not isinstance(error, EvaluatorError))
        if not request.is_stopped:
            return None
        line = report.moves[0].pv if report.moves else (allowed[0],)
        return Decision(line[0], ponder=line[1] if len(line) > 1 else None, report=report)

    # -- time and choice -------------------------------------------------------------------------------------------

    def _budget(self, clock: Clock, game: ShogiGame, options: Options, lag: float, lateness: float) -> Budget:
        budget = find_budget(clock, game.ply, lag, options.byoyomi_margin, lateness, self._excess(options))
        least = min(options.min_seconds, budget.hard)
        return replace(budget, soft=max(budget.soft, least), free=max(budget.free, least))

    def _time_left(self, clock: Clock, options: Options) -> float | None:
        return time_left(clock, options.lag, options.byoyomi_margin, self._lateness.reserve, self._excess(options))

    def _excess(self, options: Options) -> float:
        """Return the part of the clock's measured delay that exceeds the reserve in the options."""
        return max(0.0, self._delay.expected - options.lag)

    def _priors(self, turn: Turn[ShogiGame]) -> dict[int, float]:
        if self.policy_search is not self._search:
            self.policy_search.set_position(turn.root, keep_tree=False)
            self.policy_search.run(Limits(playouts=1), turn.moves)
        return self.policy_search.priors()

    def _fallback_move(self, turn: Turn[ShogiGame]) -> int:
        move = self._search.first_move()
        allowed = turn.moves.of(turn.root.searched_moves())
        return move if move in allowed else allowed[0]


def _allowed(request: Request[ShogiGame], moves: list[int]) -> list[int]:
    """Return the searched `moves` that the request allows, or all of them if it allows none."""
    allow = moves if request.allow is None else request.allow
    return [move for move in moves if move in allow and move not in request.avoid] or moves


def _below(report: SearchReport, expected: int, allowed: list[int]) -> SearchReport:
    """Convert a report on the opponent's position to our side's report after the expected move."""
    found = next((move for move in report.moves if move.move == expected), MoveReport(expected))
    # Values change sides with the point of view.
    winrate, pv = 1.0 - found.winrate, found.pv[1:]
    moves = (MoveReport(pv[0], found.visits, winrate=winrate, pv=pv),) if pv and pv[0] in allowed else ()
    side, deepest = opponent(report.side_to_move), max(0, report.deepest - 1)
    ours = replace(report, side_to_move=side, visits=found.visits, winrate=winrate, utility=-found.utility)
    return replace(ours, proven=-found.proven, moves=moves, deepest=deepest)


# -- time control ------------------------------------------------------------------------------------------------------

# No state is kept between moves: the interface sends both clocks with every `go`. M: moves_left(ply).
# Byo-yomi: soft = main / M + byo-yomi - reserves, hard = 3 * main / M + byo-yomi - reserves. The reserves are lag,
# margin and lateness. Without main time both limits are byo-yomi - reserves.
# Increments: as byo-yomi, but an increment is not spent before it is on the clock. Exception: the clock shows less than
# one increment, as before the first move of a game without main time if the interface adds it later.
# Sudden death: the time per move decays geometrically. The lag of many moves and lateness remain in reserve.
MAX_RESERVE = 0.2  # largest share of a byo-yomi for the reserves, so that periods below a second are of use


def moves_left(ply: int) -> float:
    """Return the estimated number of own moves left for the clock. Most of the time is spent before the endgame."""
    return max(18.0, 44.0 - 0.5 * ply)


def find_budget(
    clock: Clock, ply: int, lag: float, margin: float, lateness: float = 0.0, excess: float = 0.0
) -> Budget:
    """Return the limits of a move, in seconds from the start of its clock. Both are 0 if no time is left.

    Args:
        clock: main time, with byo-yomi or with an increment that the main time does not include yet.
        ply: number of plies played.
        lag: seconds between the end of the search and the moment when the interface stops the clock.
        margin: a further reserve in byo-yomi, in seconds.
        lateness: recent delay of this process, in seconds.
        excess: measured delay of the clock beyond `lag`, in seconds.
    """
    left, increment = clock.main, clock.settings.increment
    moves = moves_left(ply)
    last = time_left(clock, lag, margin, lateness, excess)
    is_byoyomi = clock.settings.system is TimeSystem.BYOYOMI
    if is_byoyomi:
        period = last - left
        spare = left
    else:
        lag += excess
        period = max(increment - lag, 0.0)
        reserve = lag_reserve(lag, moves)
        if increment > 0:  # the reserve for lag is at most a third of the main time
            reserve = min(reserve, left / 3 + lag)
        spare = max(left - reserve - lateness, 0.0)
    budget = Budget.shared(spare, moves, period, last)
    return replace(budget, free=min(period, last)) if is_byoyomi else budget


def time_left(clock: Clock, lag: float, margin: float, lateness: float, excess: float = 0.0) -> float:
    """Return the seconds in which a move arrives in time. The arguments are those of `find_budget`."""
    left, settings = clock.main, clock.settings
    if settings.system is TimeSystem.BYOYOMI:
        period = settings.period
        reserve = min(min(lag + margin, MAX_RESERVE * period) + excess + lateness, MAX_RESERVE_SHARE * period)
        return left + period - reserve
    return max(max(left, settings.increment) - lag - excess - lateness, 0.0)

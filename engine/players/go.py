"""The player of Go: a game, a clock and a search, and the decisions between them."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from engine.color import BLACK, opponent
from engine.evaluators.katago import ROOT_OPTIMISM
from engine.games.go.game import GoGame
from engine.games.go.rules import Rules
from engine.games.go.scoring import ROLLOUTS, dead_stones, ownership_by_rollouts
from engine.players.analyst import Model
from engine.players.go_base import GoDecision
from engine.players.go_network import ask_network, model_of, spec_for
from engine.players.go_resignation import may_resign
from engine.players.go_setup import evaluator_kind, make_queue, queue_key, search_settings
from engine.players.go_time import Clock
from engine.players.raw_evaluation import RawEvaluation
from engine.players.thinking import (
    DEFAULT_SECONDS,
    PATIENCE,
    Lateness,
    LostMoves,
    Schedule,
    choose,
    end_search,
    release,
    temperature_at,
    wait_for_end,
    warm_up,
    watch,
)
from engine.players.tuning import tuned
from engine.search.limits import Limits
from engine.search.report import SearchReport
from engine.search.search import Search
from native.go.board import PASS
from native.spec import Inputs

if TYPE_CHECKING:
    from engine.options import Options, Value

OWNERSHIP_SECONDS = 1.0
OWNERSHIP_LIMITS = Limits(playouts=64, seconds=OWNERSHIP_SECONDS)
"""Of the search that decides who owns what at the end."""
ROLLOUTS_A_SECOND = 10_000
"""That decide the same without a network; measured on 19×19."""
CLEANUP_SHARE = 0.1
"""Share of a move's time in which it is found out whether dead stones are left."""


class GoPlayer:
    """See engine.players.go_base.GoThinker for what each method promises."""

    def __init__(self, options: Options) -> None:
        """Load the network, or what judges without one, for the board size of the options.

        Raises:
            NetworkError: the network's file cannot be used.
            EvaluatorError: the evaluator or the device cannot.
            OptionError, SetupError: rules, komi or size are wrong.
        """
        self.options = options
        self.clock = Clock()
        self.game = GoGame(options.size, Rules.parse(options.rules), options.komi)
        self._lost = LostMoves()
        self._lateness = Lateness()
        self._rng = np.random.default_rng(options.seed)
        self._search = self._make_search()
        self._search.set_position(self.game)

    @property
    def description(self) -> str:
        """What plays."""
        return self._search.queue.evaluator.description

    @property
    def model(self) -> Model | None:
        """The network."""
        return model_of(self._search.queue.evaluator)

    @property
    def search(self) -> Search:
        """The search for the present board size."""
        return self._search

    def genmove(
        self,
        color: int,
        *,
        avoid: Sequence[int] = (),
        allow: Sequence[int] | None = None,
        limits: Limits | None = None,
        cleanup: bool = False,
        on_report: Callable[[SearchReport], None] | None = None,
        interval: float = 1.0,
        is_stopped: Callable[[], bool] = lambda: False,
    ) -> GoDecision:
        """Choose a move for `color` without playing it."""
        self._prepare(color)
        if self.game.is_full:
            return GoDecision(PASS, False, self._search.report())
        cleanup = cleanup or self.options.cleanup
        schedule, bounded = self._limits(color, limits)
        avoid = list(avoid)
        if cleanup and allow is None and len(self.game.legal_moves()) > 1:
            if self._must_clean_up(color, schedule):
                avoid.append(PASS)
            if bounded.seconds is not None:
                bounded = replace(bounded, seconds=max(0.0, schedule.hard - time.monotonic()))
        self._search.start(bounded, avoid=avoid, allow=allow, noise=self.options.root_noise > 0.0)
        try:
            if is_stopped():
                self._search.interrupt()
            self._lateness.note(watch(self._search, lambda: schedule, on_report=on_report, interval=interval))
            report = end_search(self._search, max(PATIENCE, self._search.latency))
        except BaseException:
            self._search.stop()
            raise
        if not report.moves and self._search.is_running:
            report = wait_for_end(self._search)
        resigns = limits is None and self._resigns(report, color)
        return GoDecision(self._choose(report), resigns, report)

    def start_analysis(self, color: int, *, avoid: Sequence[int] = (), allow: Sequence[int] | None = None) -> None:
        """Search without limit; return at once."""
        self.prepare()
        self._turn_search_to(color, hide_moves=self.options.analysis_ignore_pre_root_history)
        self._search.start(Limits(), avoid=avoid, allow=allow)

    def report(self) -> SearchReport:
        """Report the search that runs, or the last one."""
        return self._search.report()

    def stop(self) -> None:
        """End any search in the background."""
        self._search.stop()

    def interrupt(self) -> None:
        """Make a running `genmove` end soon."""
        self._search.interrupt()

    def ponder(self) -> None:
        """Search the game in the background until `stop`, unless passes have ended it."""
        if self.game.is_no_result or not self.game.is_over:
            self._prepare(self.game.side_to_move)
            self._search.start(Limits())

    def evaluate(
        self, symmetry: int | None, *, color: int | None = None, optimism: float | None = None
    ) -> RawEvaluation:
        """Evaluate the game once by the network.

        Raises:
            EvaluatorError: no network is in use.
        """
        self.prepare()
        game = self.game.copy()
        game.turn_to(game.side_to_move if color is None else color)
        return ask_network(self._search.queue, game, symmetry, ROOT_OPTIMISM if optimism is None else optimism)

    def final_ownership(self) -> npt.NDArray[np.float32]:
        """Return the expected owner of each point at the end, +1 Black."""
        return self._ownership(OWNERSHIP_SECONDS)

    def set_option(self, name: str, value: Value) -> None:
        """Put a setting in force."""
        self.stop()
        before = self.options.get(name)
        self.options.set(name, value)
        try:
            self._take_up(name)
        except Exception:
            self.options.set(name, before)
            raise

    def clear_cache(self) -> None:
        """Forget the tree and all cached evaluations."""
        self.prepare()  # what cannot be loaded leaves them
        self._search.clear()
        self._search.set_position(self.game)

    def prepare(self) -> None:
        """Load what the board and the rules of the game need."""
        self._search.stop()
        if self._key != queue_key(self.game.size, self.game.rules):
            self._replace_search()

    def new_game(self) -> None:
        """Forget what belongs to the last game, and load what a board of another size needs before a clock runs."""
        self.clear_cache()
        self._lost = LostMoves()

    def close(self) -> None:
        """Stop everything and release devices and threads."""
        release(self._search)

    def _make_search(self) -> Search:
        """Return a search for the game's board and rules that is warmed up."""
        game = GoGame(self.game.size, self.game.rules)
        key = queue_key(game.size, game.rules)
        options = tuned(self.options, "go", game.size)
        queue = make_queue(options, game.size, game.rules)
        try:
            search = Search(spec_for(game.size, queue.evaluator), queue, search_settings(options, queue))
            warm_up(search, game, lambda move: game.play(game.side_to_move, move))
        except BaseException:
            queue.close()
            raise
        self._key = key
        return search

    def _take_up(self, name: str) -> None:
        """Bring the search in line with an option that has changed."""
        evaluator_kind(self.options)
        if name in ("rollout_weight", "seed"):
            self._replace_search()
        else:
            options = tuned(self.options, "go", self.game.size)
            self._search.configure(search_settings(options, self._search.queue))
        if name == "seed":
            self._rng = np.random.default_rng(self.options.seed)

    def _replace_search(self) -> None:
        old = self._search
        old.stop()
        self._search = self._make_search()
        self._search.set_position(self.game)
        release(old)

    def _prepare(self, color: int) -> None:
        """Bring the search to the game as it stands with `color` to move."""
        self.prepare()
        self._turn_search_to(color)

    def _turn_search_to(self, color: int, *, hide_moves: bool | None = None) -> None:
        """Make the game as it stands, but with `color` to move, the root of the search.

        Args:
            color: BLACK or WHITE.
            hide_moves: hide the moves so far from the network; None: as the options say of moves.
        """
        game = self.game.copy()
        game.turn_to(color)
        hides = self.options.ignore_pre_root_history if hide_moves is None else hide_moves
        if hides:
            game.hide_moves()
        self._search.set_position(game, renew_root=hides)

    def _limits(self, color: int, limits: Limits | None) -> tuple[Schedule, Limits]:
        """Return (when an unhurried search may stop, limits that hold in any case)."""
        options = self.options
        now = time.monotonic()
        if limits is not None:
            return Schedule(now, hard=_end(now, limits.seconds)), limits
        lag = options.lag + self._search.latency
        ply, lateness = len(self.game.moves), self._lateness.reserve
        budget = self.clock.budget(color, self.game.size**2, ply, lag, lateness)
        seconds = options.seconds
        soft = math.inf
        if budget is not None:
            gone = self.clock.elapsed()
            soft = now + max(0.0, budget.soft - gone)
            hard = max(0.0, budget.hard - gone)
            seconds = hard if seconds is None else min(seconds, hard)
        elif seconds is None and options.visits is None and options.playouts is None:
            seconds = DEFAULT_SECONDS
        schedule = Schedule(now, soft, _end(now, seconds))
        return schedule, Limits(visits=options.visits, playouts=options.playouts, seconds=seconds)

    def _choose(self, report: SearchReport) -> int:
        """Return the best move, or one drawn by visits where a temperature is set for this part of the game."""
        if not report.moves:
            move = self._search.likeliest()
            return PASS if move is None else move
        options = self.options
        heat = temperature_at(len(self.game.moves), options.temperature, options.temperature_moves)
        if report.moves[0].move != PASS:  # nobody passes by chance
            report = replace(report, moves=tuple(move for move in report.moves if move.move != PASS))
        return choose(report, heat, self._rng)

    def _resigns(self, report: SearchReport, color: int) -> bool:
        """Remember whether this move looks lost, and say whether enough own moves in a row did."""
        best = report.moves[0].winrate if report.moves else 0.5
        count = self._lost.count(color, len(self.game.moves), best < self.options.resign_threshold)
        is_lost = count >= self.options.resign_moves and may_resign(self.game, color, report.score_lead)
        return self.options.resign and is_lost

    def _ownership(self, seconds: float) -> npt.NDArray[np.float32]:
        """Return the expected owners, +1 Black, as they are found within `seconds`."""
        self._search.stop()
        if not self._search.queue.evaluator.inputs & Inputs.NETWORK:
            return ownership_by_rollouts(self.game, max(1, min(ROLLOUTS, int(seconds * ROLLOUTS_A_SECOND))))
        self._prepare(self.game.side_to_move)
        return black_ownership(self._search.run(replace(OWNERSHIP_LIMITS, seconds=seconds)), self.game)

    def _must_clean_up(self, color: int, schedule: Schedule) -> bool:
        """Whether dead stones of the opponent are still on the board, as far as a share of the move's time shows it."""
        left = min(schedule.soft, schedule.hard) - time.monotonic()
        if left <= 0.0:
            return False
        dead = dead_stones(self.game, self._ownership(min(OWNERSHIP_SECONDS, CLEANUP_SHARE * left)))
        self._turn_search_to(color)
        return any(self.game.color_at(point) == opponent(color) for point in dead)


def black_ownership(report: SearchReport, game: GoGame) -> npt.NDArray[np.float32]:
    """Return who owns each point at the end, +1 Black: as the search of the game says, or else as rollouts do."""
    if report.ownership is None:
        return ownership_by_rollouts(game)
    return report.ownership if report.side_to_move == BLACK else -report.ownership


def _end(now: float, seconds: float | None) -> float:
    return math.inf if seconds is None else now + seconds

"""The player of Go: a game, a clock and a search, and the decisions between them."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from engine.clock import Clock
from engine.games.go.game import GoGame
from engine.games.go.rules import Rules
from engine.games.go.scoring import dead_stones, ownership_by_rollouts
from engine.games.go.vertex import board_points
from engine.players.base import Decision
from engine.players.go_network import evaluate_position, network_of
from engine.players.go_setup import make_queue, search_settings
from engine.search.report import Limits, RawEvaluation, SearchReport
from engine.search.search import Search
from native.go.board import BLACK, PASS, WHITE
from native.go.spec import go_spec

if TYPE_CHECKING:
    from engine.options import Options, Value

DEFAULT_SECONDS = 5.0
"""Time for a move where neither the options nor a clock set a limit."""
POLL = 0.05
"""Seconds between two looks at a search on a clock."""
OWNERSHIP_PLAYOUTS, OWNERSHIP_SECONDS = 64, 1.0
"""Limits of the search that decides who owns what at the end."""
LEAD_TO_STOP = 1.0
"""A search on a clock stops early when the second move would need more than all remaining playouts to catch up."""


class GoPlayer:
    """See engine.players.base.Player for what each method promises."""

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
        self._lost: dict[int, set[int]] = {BLACK: set(), WHITE: set()}
        self._rng = np.random.default_rng(options.seed)
        self._search = self._make_search()
        self._search.set_position(self.game)

    @property
    def description(self) -> str:
        """What plays."""
        return self._search.queue.evaluator.description

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
        ownership: bool = False,
        on_report: Callable[[SearchReport], None] | None = None,
        interval: float = 1.0,
    ) -> Decision:
        """Choose a move for `color` without playing it."""
        self._prepare(color)
        cleanup = cleanup or self.options.cleanup
        if self.game.is_over and not cleanup:
            return Decision(PASS, False, self._search.report())
        soft, bounded = self._limits(color, limits)
        avoid = list(avoid)
        if cleanup and allow is None and len(self.game.legal_moves()) > 1 and self._must_clean_up(color):
            avoid.append(PASS)
        self._search.start(bounded, avoid=avoid, allow=allow, noise=self.options.root_noise > 0.0)
        try:
            self._watch(soft, on_report, interval)
        finally:
            self._search.stop()
        report = self._search.report()
        resigns = limits is None and self._resigns(report, color)
        return Decision(self._choose(report), resigns, report)

    def start_analysis(self, color: int, *, avoid: Sequence[int] = (), allow: Sequence[int] | None = None) -> None:
        """Search without limit; return at once."""
        self._prepare(color)
        self._search.start(Limits(), avoid=avoid, allow=allow)

    def report(self, *, ownership: bool = False) -> SearchReport:
        """Report the search that runs, or the last one."""
        return self._search.report()

    def stop(self) -> None:
        """End any search in the background."""
        self._search.stop()

    def interrupt(self) -> None:
        """Make a running `genmove` end soon."""
        self._search.interrupt()

    def ponder(self) -> None:
        """Search the game in the background until `stop`."""
        if not self.game.is_over:
            self._prepare(self.game.side_to_move)
            self._search.start(Limits())

    def evaluate(self, symmetry: int | None) -> RawEvaluation:
        """Evaluate the game once by the network.

        Raises:
            EvaluatorError: no network is in use.
        """
        self._prepare(self.game.side_to_move)
        return evaluate_position(network_of(self._search.queue), self.game, symmetry)

    def final_ownership(self) -> npt.NDArray[np.float32]:
        """Return the expected owner of each point at the end, +1 Black."""
        self._search.stop()
        if not self._search.queue.evaluator.wants_planes:
            return ownership_by_rollouts(self.game)
        self._prepare(self.game.side_to_move)
        report = self._search.run(Limits(playouts=OWNERSHIP_PLAYOUTS, seconds=OWNERSHIP_SECONDS))
        if report.ownership is None:
            return ownership_by_rollouts(self.game)
        return report.ownership if report.side_to_move == BLACK else -report.ownership

    def set_option(self, name: str, value: Value) -> None:
        """Put a setting in force."""
        self.stop()
        self.options.set(name, value)
        if name == "seed":
            self._rng = np.random.default_rng(self.options.seed)
        if name in ("rollout_weight", "seed"):
            self._replace_search()
        else:
            self._search.configure(search_settings(self.options, self._search.queue))

    def clear_cache(self) -> None:
        """Forget the tree and all cached evaluations."""
        self._search.clear()
        self._search.set_position(self.game)

    def new_game(self) -> None:
        """Forget what belongs to the last game."""
        self.clear_cache()
        self._lost = {BLACK: set(), WHITE: set()}

    def close(self) -> None:
        """Stop everything and release devices and threads."""
        self._search.stop()
        self._search.queue.close()

    def _make_search(self) -> Search:
        queue = make_queue(self.options, self.game.size, self.game.rules)
        self._search_for = (self.game.size, self.game.rules)
        return Search(go_spec(self.game.size), queue, search_settings(self.options, queue))

    def _replace_search(self) -> None:
        old = self._search
        old.stop()
        self._search = self._make_search()
        self._search.set_position(self.game)
        old.queue.close()

    def _prepare(self, color: int) -> None:
        """Bring the search to the game as it stands with `color` to move."""
        self._search.stop()
        if self._search_for != (self.game.size, self.game.rules):
            self._replace_search()
        self._search.set_position(self.game, color)

    def _limits(self, color: int, limits: Limits | None) -> tuple[float, Limits]:
        """Return (seconds after which an unhurried search may stop, limits that hold in any case)."""
        options = self.options
        if limits is not None:
            return float("inf"), limits
        lag = options.lag + self._search.latency
        budget = self.clock.budget(color, self.game.size**2, len(self.game.moves), lag)
        seconds = options.seconds
        soft = float("inf")
        if budget is not None:
            gone = self.clock.elapsed()
            soft = max(0.0, budget.soft - gone)
            hard = max(0.0, budget.hard - gone)
            seconds = hard if seconds is None else min(seconds, hard)
        elif seconds is None and options.visits is None and options.playouts is None:
            seconds = DEFAULT_SECONDS
        return soft, Limits(visits=options.visits, playouts=options.playouts, seconds=seconds)

    def _watch(self, soft: float, on_report: Callable[[SearchReport], None] | None, interval: float) -> None:
        """Wait until the search ends; on a clock, end it early when more thinking would not change the move."""
        begin = time.perf_counter()
        next_report = begin + interval
        while True:
            pause = interval if on_report is not None else 3600.0
            if soft != float("inf"):
                pause = min(pause, POLL)
            if self._search.wait(max(0.0, min(pause, next_report - time.perf_counter()) if on_report else pause)):
                return
            now = time.perf_counter()
            if on_report is not None and now >= next_report:
                next_report = now + interval
                on_report(self._search.report())
            if soft != float("inf") and self._is_settled(now - begin, soft):
                return

    def _is_settled(self, used: float, soft: float) -> bool:
        """Whether a search on a clock may end: its time is up and the move is clear, or no other move can catch up."""
        report = self._search.report(pv_length=0)
        if len(report.moves) < 2:
            return used >= soft
        first, second = sorted((move.visits for move in report.moves), reverse=True)[:2]
        if used >= soft:
            return report.moves[0].visits == first
        remaining = report.playouts / max(used, 1e-3) * (soft - used)
        return used > 0.1 * soft and first - second > LEAD_TO_STOP * remaining

    def _choose(self, report: SearchReport) -> int:
        """Return the best move, or one drawn by visits where a temperature is set for this part of the game."""
        if not report.moves:
            return self._likeliest(report)
        options = self.options
        early = options.temperature_moves == 0 or len(self.game.moves) < options.temperature_moves
        if options.temperature <= 0.0 or not early:
            return report.moves[0].move
        visits = np.array([move.visits for move in report.moves], np.float64)
        weights = np.exp((np.log(visits) - np.log(visits.max())) / options.temperature)
        return report.moves[int(self._rng.choice(len(weights), p=weights / weights.sum()))].move

    def _likeliest(self, report: SearchReport) -> int:
        """Return the move of greatest prior, for a search that was cut off before it tried any; PASS without priors."""
        if report.raw_policy is None:
            return PASS
        moves = [*board_points(self.game.size), PASS]
        priors = {move: float(p) for move, p in zip(moves, report.raw_policy, strict=True) if not np.isnan(p)}
        allowed = [move for move in priors if not self._search.is_banned(move)]
        return max(allowed, key=lambda move: priors[move], default=PASS)

    def _resigns(self, report: SearchReport, color: int) -> bool:
        """Remember whether this move looks lost, and say whether enough own moves in a row did."""
        ply = len(self.game.moves)
        lost = {each for each in self._lost[color] if each < ply}
        best = report.moves[0].winrate if report.moves else 0.5
        if best < self.options.resign_threshold:
            lost.add(ply)
        else:
            lost.clear()
        self._lost[color] = lost
        return self.options.resign and len(lost) >= self.options.resign_moves

    def _must_clean_up(self, color: int) -> bool:
        """Whether dead stones of the opponent are still on the board."""
        dead = dead_stones(self.game, self.final_ownership())
        self._search.set_position(self.game, color)
        return any(self.game.color_at(point) == 3 - color for point in dead)

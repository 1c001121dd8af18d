"""The player of Go."""

from __future__ import annotations

import time
from collections.abc import Collection, Sequence
from dataclasses import replace
from types import MappingProxyType

import numpy as np
import numpy.typing as npt

from yomi.engine.clock import Budget, Clock
from yomi.engine.color import BLACK, opponent
from yomi.engine.evaluators.queue import EvaluationQueue
from yomi.engine.go.game import GoGame, new_game
from yomi.engine.go.networks.katago import ROOT_OPTIMISM
from yomi.engine.go.players.decisions import (
    Twins,
    find_budget,
    may_resign,
    moves_left,
    twins,
    useless_moves,
    with_twins,
)
from yomi.engine.go.players.setup import (
    Model,
    RawEvaluation,
    ask_network,
    check_evaluator,
    make_queue,
    model_of,
    network_behind,
    queue_key,
    search_settings,
    spec_for,
)
from yomi.engine.go.scoring import ROLLOUTS, dead_stones, ownership_by_rollouts
from yomi.engine.options import LOG, Options, rows_for
from yomi.engine.players.player import Player, Restrictions
from yomi.engine.players.request import Decision, Request
from yomi.engine.players.setup import tuned
from yomi.engine.players.time_management import choose
from yomi.engine.search.search import Search
from yomi.engine.search.settings import SearchSettings
from yomi.engine.search.types import Limits, SearchReport
from yomi.native.go.board import PASS
from yomi.native.spec import Inputs

# Options that take effect with `load`.
LOADED = (*(row.name for row in rows_for("go") if not row.live and row.group != LOG), "rollout_weight", "seed")
OWNERSHIP_SECONDS = 1.0
# Limits of the search that finds the owners at the end.
OWNERSHIP_LIMITS = Limits(playouts=64, seconds=OWNERSHIP_SECONDS)
ROLLOUTS_PER_SECOND = 10_000  # rollouts/s on 19×19, for the same without a network
CLEANUP_SHARE = 0.1  # maximum share of a move's time for finding dead stones


class GoPlayer(Player[GoGame]):
    _twins: Twins = MappingProxyType({})  # symmetric moves of the last searched root

    def __init__(self, options: Options) -> None:
        """Load the network, or the evaluator without one, for the options' board.

        Raises:
            LoadingError: see Player.
            SetupError: wrong rules, komi or size.
        """
        super().__init__(options, new_game(options))

    @property
    def model(self) -> Model | None:
        """The network; None if there is none."""
        return model_of(self._search.queue.evaluator)

    def start(self, request: Request[GoGame]) -> None:
        """Search without limit. A game that passes have ended is not pondered, because no move will follow."""
        if not request.ponder or request.game.is_no_result or not request.game.is_over:
            super().start(request)

    def evaluate(self, game: GoGame, symmetry: int | None, optimism: float | None = None) -> RawEvaluation:
        """Evaluate a position once by the network; see `evaluate_position`. Raises EvaluatorError without a network."""
        self.load(game)
        return ask_network(self._search.queue, game, symmetry, ROOT_OPTIMISM if optimism is None else optimism)

    def final_ownership(self, game: GoGame) -> npt.NDArray[np.float32]:
        """Return the expected owner of each point at the end: [area] from the top left, +1 Black.

        A network's search or rollouts find it, in about a second at most.
        """
        request = Request(game)
        self._prepare(request)
        self._search.set_position(self._root(request))
        return self._ownership(game, OWNERSHIP_SECONDS)

    def ownership_after(self, game: GoGame, move: int, rollouts: int) -> npt.NDArray[np.float32]:
        """Return the expected owners after a move of the side to move: [area], +1 Black.

        Args:
            game: the position before the move; its history must not be full.
            move: ko and suicide are not checked.
            rollouts: number of rollouts without a network.
        """
        after = game.copy()
        after.play(game.side_to_move, move, strict=False)
        queue = self._search.queue
        if network_behind(queue.evaluator) is None:
            return ownership_by_rollouts(after, rollouts)
        return -ask_network(queue, after, 0).white_ownership

    # -- hooks of Player --------------------------------------------------------------------------------------------

    def _loading_key(self, game: GoGame) -> object:
        return (queue_key(game.size, game.rules), *(self.options.get(name) for name in LOADED))

    def _load(self, game: GoGame) -> Search:
        empty = GoGame(game.size, game.rules)
        check_evaluator(self.options)
        queue = self._make_queue(empty)
        return self._open_search(queue, spec_for(game.size, queue.evaluator), empty)

    def _make_queue(self, game: GoGame) -> EvaluationQueue:
        return make_queue(tuned(self.options, "go", game.size), game.size, game.rules)

    def _load_board(self, game: GoGame) -> None:
        self.load(game)

    def _search_settings(self, options: Options, game: GoGame, queue: EvaluationQueue) -> SearchSettings:
        return search_settings(tuned(options, "go", game.size), queue)

    def _budget(self, clock: Clock, game: GoGame, options: Options, lag: float, lateness: float) -> Budget:
        return find_budget(clock, moves_left(game.size**2, game.ply), lag, lateness)

    def _root(self, request: Request[GoGame]) -> GoGame:
        game = request.game.copy()
        if request.hide_history:
            game.hide_history()
        return game

    def _without_search(self, request: Request[GoGame], root: GoGame) -> Decision | None:
        return Decision(PASS, report=SearchReport(root.side_to_move)) if root.is_full else None

    def _is_forced(self, request: Request[GoGame], root: GoGame) -> bool:
        is_banned = self._search.is_banned
        return request.clock is not None and sum(not is_banned(move) for move in root.legal_moves()) == 1

    def _restrictions(self, request: Request[GoGame], root: GoGame, schedule: Budget) -> Restrictions:
        """Forbid passing while dead stones are left, if the options ask for clean-up."""
        options = self._options(request)
        if options.cleanup and request.allow is None and len(root.legal_moves()) > 1 and self._has_dead(root, schedule):
            return {*request.avoid, PASS}, None
        return request.avoid, request.allow

    def _pruned(self, request: Request[GoGame], root: GoGame) -> Sequence[int]:
        options, self._twins = self._options(request), {}
        if request.avoid or request.allow is not None:
            return ()
        if options.root_symmetry_pruning:
            found = twins(root)
            if not self._search.root_visits or all(map(self._search.is_banned, found)):  # pruning would lose visits
                self._twins = found
        if not options.prune_useless_moves:
            return list(self._twins)
        agrees = root.rules.has_agreement and not options.cleanup
        judged = root.rules.scoring == "TERRITORY" or self._search.spec.with_flags(root.position)["judges_agreement"]
        return [*self._twins, *useless_moves(root, counts_dead=not (agrees and judged))]

    def _annotate(self, report: SearchReport) -> SearchReport:
        """Return a report with the symmetric moves that were not searched."""
        pruned = {move: twin for move, twin in self._twins.items() if self._search.is_banned(move)}
        return with_twins(report, pruned) if pruned else report

    def _has_dead(self, root: GoGame, schedule: Budget) -> bool:
        """Whether dead stones of the opponent are on the board, as far as a share of the move's time can show."""
        left = min(schedule.soft, schedule.hard) - time.monotonic()
        if left <= 0.0:
            return False
        dead = dead_stones(root, self._ownership(root, min(OWNERSHIP_SECONDS, CLEANUP_SHARE * left)))
        return any(root.color_at(point) == opponent(root.side_to_move) for point in dead)

    def _ownership(self, root: GoGame, seconds: float) -> npt.NDArray[np.float32]:
        """Return the expected owners at the search's root, +1 Black, found within `seconds`."""
        if not self._search.queue.evaluator.inputs & Inputs.NETWORK:
            return ownership_by_rollouts(root, max(1, min(ROLLOUTS, int(seconds * ROLLOUTS_PER_SECOND))))
        return black_ownership(self._search.run(replace(OWNERSHIP_LIMITS, seconds=seconds)), root)

    def _draw(self, report: SearchReport, temperature: float) -> int:
        moves = tuple(move for move in report.moves if move.symmetry_of is None)
        if report.moves[0].move != PASS:  # a pass is never drawn at random
            moves = tuple(move for move in moves if move.move != PASS)
        report = replace(report, moves=moves)
        return choose(report, temperature, self._rng)

    def _fallback_move(self, root: GoGame, allow: Collection[int] | None) -> int:
        move = self._search.best_prior()
        return PASS if move is None else move

    def _may_resign(self, game: GoGame, report: SearchReport) -> bool:
        return may_resign(game, game.side_to_move, report.score_lead)


def black_ownership(report: SearchReport, game: GoGame) -> npt.NDArray[np.float32]:
    """Return the owner of each point at the end, +1 Black, from a report or by rollouts."""
    if report.ownership is None:
        return ownership_by_rollouts(game)
    return report.ownership if report.side_to_move == BLACK else -report.ownership

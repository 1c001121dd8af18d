"""The player of Othello, and what judges for it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tests.games.othello.game import OthelloGame
from tests.games.othello.kernels import POSITION_DTYPE, evaluate_by_rollouts, othello_spec
from tests.games.othello.network import FORMATS
from yomi.engine.clock import MAX_RESERVE_SHARE, Budget, Clock, lag_reserve
from yomi.engine.options import rows_for
from yomi.engine.players.player import Player
from yomi.engine.players.request import Decision, Turn
from yomi.engine.players.setup import EvaluatorFactory, common_settings, tuned
from yomi.engine.search.types import SearchSettings
from yomi.native.spec import Inputs

if TYPE_CHECKING:
    from yomi.engine.evaluators.queue import EvaluationQueue
    from yomi.engine.options import Options
    from yomi.engine.search.search import Search
    from yomi.native.bound_kernels import Calls
    from yomi.native.tree.arrays import Batch

C_PUCT = 1.5
LOADED = (*(row.name for row in rows_for("othello") if not row.live), "seed")


class RolloutEvaluator:
    """Plays random games from each leaf."""

    inputs = Inputs.POSITIONS
    batch_size = ROLLOUTS = 4
    description = "random games"

    def __init__(self, seed: int | None) -> None:
        """Make one; equal seeds and batches bound in the same order give equal results."""
        self._seeds = np.random.SeedSequence(seed)

    def evaluate(self, batch: Batch, rows: int) -> None:
        """Write logits and values of the first `rows` rows."""
        self.bind(batch).run(rows)

    def bind(self, batch: Batch) -> Calls:
        """Return the call that evaluates this batch, with random numbers and a board of its own."""
        rng = self._seeds.spawn(1)[0].generate_state(1, np.uint64) | np.uint64(1)
        return evaluate_by_rollouts.bind(batch, self.ROLLOUTS, rng, np.zeros(1, POSITION_DTYPE)[0])

    def close(self) -> None:
        """Do nothing."""


EVALUATOR_FACTORY = EvaluatorFactory(
    "othello", "Othello", "rollouts", lambda options: RolloutEvaluator(options.seed), FORMATS
)


def make_queue(options: Options, size: int) -> EvaluationQueue:
    """Return the evaluation queue that the options describe for a board; see EvaluatorFactory."""
    return EVALUATOR_FACTORY.make_queue(options, size, lambda: OthelloGame(size))


def search_settings(options: Options, queue: EvaluationQueue) -> SearchSettings:
    """Return the settings of the search; wins alone count."""
    has_network = bool(queue.evaluator.inputs & Inputs.NETWORK)
    decided = {"score_utility": 0.0, "dynamic_score_utility": 0.0, "ownership": False, "solver": True}
    return common_settings(options, "othello", queue, C_PUCT, fpu_from_mean=not has_network, **decided)


class OthelloPlayer(Player[OthelloGame]):
    """Plays Othello on all boards."""

    def __init__(self, options: Options) -> None:
        """Load what judges, for a board by the options; LoadingError and OptionError as in yomi.engine.game.Game."""
        super().__init__(options, OthelloGame(options.size))

    def _loading_key(self, game: OthelloGame) -> object:
        return (game.size, *(self.options.get(name) for name in LOADED))

    def _load(self, game: OthelloGame) -> Search:
        queue = make_queue(tuned(self.options, "othello", game.size), game.size)
        return self._open_search(queue, othello_spec(game.size), OthelloGame(game.size))

    def _load_board(self, game: OthelloGame) -> None:
        self.load(game)

    def _search_settings(self, options: Options, game: OthelloGame, queue: EvaluationQueue) -> SearchSettings:
        return search_settings(options, queue)

    def _budget(self, clock: Clock, game: OthelloGame, options: Options, lag: float, lateness: float) -> Budget:
        moves = max(2.0, (game.size**2 - 4 - game.ply) / 2)  # of this side
        spare = max(clock.main - lag_reserve(lag, moves) - lateness, 0.0)
        period = MAX_RESERVE_SHARE * max(clock.settings.increment + clock.period - lag - lateness, 0.0)
        return Budget(spare / moves + period, min(3 * spare / moves, spare) + period)

    def _without_search(self, turn: Turn[OthelloGame]) -> Decision | None:
        return Decision(None) if turn.root.is_over else None

    def _restrict(self, turn: Turn[OthelloGame], schedule: Budget | None) -> None:
        moves = turn.root.legal_moves()
        if len(moves) == 1 and not turn.request.infinite:
            turn.forced = moves[0]

    def _fallback_move(self, turn: Turn[OthelloGame]) -> int:
        move = self._search.first_move()
        return turn.root.legal_moves()[0] if move is None else move

"""Analysts: players of Go that analyze one position after the other, and share evaluators."""

import threading
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from yomi.engine.evaluators.queue import EvaluationQueue, InlineQueue
from yomi.engine.go.game import GoGame, new_game
from yomi.engine.go.players.player import GoPlayer
from yomi.engine.go.players.setup import Analysis, QueueKey, make_queue, network_behind, queue_key
from yomi.engine.machine import usable_cores
from yomi.engine.options import Options
from yomi.engine.players.request import Request, Turn
from yomi.engine.players.setup import tuned
from yomi.engine.search.base import PositionSearch
from yomi.engine.search.read_tree import root_priors
from yomi.engine.search.types import SearchReport, SearchSettings
from yomi.native.go.board import PASS

IDLE_QUEUES = 2  # number of unused evaluators for other boards that are kept
GPU_ANALYSTS = 4
ROLLOUTS_PER_MOVE = 100  # rollouts for the ownership after a move, without a network


class QueuePool:
    """Evaluation queues by board size and rules. Analysts in several threads share them."""

    def __init__(self, options: Options) -> None:
        self.options = options
        self._lock = threading.Lock()
        self._queues: dict[QueueKey, EvaluationQueue] = {}
        self._users: dict[QueueKey, int] = {}

    def take(self, game: GoGame) -> EvaluationQueue:
        """Return the queue for a game's board and rules. Give it back with `release`."""
        key = queue_key(game.board, game.rules)
        with self._lock:
            if key not in self._queues:
                self._queues[key] = make_queue(tuned(self.options, "go", game.board.size), game.board, game.rules)
            self._users[key] = self._users.get(key, 0) + 1
            self._queues[key] = self._queues.pop(key)  # the latest is the last
            return self._queues[key]

    def release(self, queue: EvaluationQueue, kept: int = IDLE_QUEUES) -> None:
        """Give a queue back. The last `kept` unused queues stay open, the others are closed."""
        with self._lock:
            self._users[next(key for key, other in self._queues.items() if other is queue)] -= 1
            idle = [key for key in self._queues if not self._users[key]]
            for key in idle[: max(0, len(idle) - kept)]:
                self._queues.pop(key).close()


class GoAnalyst(GoPlayer):
    """A player with shared evaluators, which returns complete analyses."""

    def __init__(self, options: Options, pool: QueuePool, workers: int | None = None) -> None:
        """Load what the options' board size and rules need. `workers` replaces the options' number of threads.

        Raises:
            LoadingError, SetupError: see GoPlayer.
        """
        self._pool = pool
        self._workers = workers
        self._known_human: npt.NDArray[np.float32] | None = None
        super().__init__(options)

    def analyze(
        self, request: Request[GoGame], on_report: Callable[[Analysis], None], *, all_owners: bool = False
    ) -> Analysis:
        """Search a position to its limits, or until the request is stopped.

        Args:
            request: the position; its `on_report` is replaced.
            on_report: called in this thread, at the request's intervals.
            all_owners: evaluate moves below which the search evaluated nothing, so that each has its owners.

        Raises:
            EvaluatorError: the network cannot be used for this board.
        """
        self.load(request.game)
        root, options = self._root(request), request.options or self.options
        raw, symmetry = None, None if options.symmetry == "average" else 0
        if network_behind(self._search.queue.evaluator) is not None:
            # as the search sees its root
            raw = self.evaluate(root, symmetry, options=options)
        human = self.evaluate_human(root, symmetry, options)
        self._known_human = None if human is None else human.policy

        def tell(report: SearchReport) -> None:
            on_report(Analysis(report, self._policy(root), raw, human))

        request.on_report = tell if request.first_report is not None else None
        report = self.decide(request).report
        if all_owners and not root.is_full:
            moves = (
                move if move.owners else replace(move, owners=self.owners_after(root, move.move, ROLLOUTS_PER_MOVE))
                for move in report.moves
            )
            report = replace(report, moves=tuple(moves))
        return Analysis(report, self._policy(root), raw, human)

    def _read_human(self, turn: Turn[GoGame]) -> npt.NDArray[np.float32] | None:
        return self._known_human  # `analyze` has evaluated it

    def clear_cache(self) -> None:
        """Forget all evaluations. Any thread may call this, also during a search."""
        self._search.clear_cache()

    def close(self) -> None:
        """End the search and give the evaluator back."""
        if not self._is_closed:
            self._is_closed = True
            self.end_background()
            self._pool.release(self._search.queue, 0)

    def _warm_up(self, search: PositionSearch, game: GoGame) -> None:
        if self._loaded is None:  # later boards are searched at once: no clock runs
            super()._warm_up(search, game)

    def _make_queue(self, game: GoGame) -> EvaluationQueue:
        return self._pool.take(game)

    def _drop_queue(self, queue: EvaluationQueue) -> None:
        self._pool.release(queue, 0 if self._loaded is None else IDLE_QUEUES)

    def _search_settings(self, options: Options, game: GoGame, queue: EvaluationQueue) -> SearchSettings:
        settings = super()._search_settings(options, game, queue)
        return replace(settings, move_ownership=True, workers=self._workers or settings.workers)

    def _policy(self, game: GoGame) -> npt.NDArray[np.float32]:
        priors = {} if game.is_full else root_priors(self._search.tree)
        return np.array([priors.get(move, np.nan) for move in (*game.board.points, PASS)], np.float32)


def make_analysts(options: Options, count: int | None, *, prompt: bool = True) -> list[GoAnalyst]:
    """Return analysts that share evaluators, and divide the options' memory and cores.

    Without `count` there are GPU_ANALYSTS on a GPU. On a processor, `prompt` searches one position with all cores, for
    fast answers. Otherwise each core searches a position, which is faster for short searches that continue earlier
    trees.

    Raises:
        LoadingError, SetupError: see GoPlayer.
    """
    pool = QueuePool(options)
    workers = None
    # On a processor one analyst with a thread for each core is as fast as two with one thread each (19×19, 100 visits a
    # position: 0.98 to 1.00 and 0.99 to 1.00 of a long search's evaluations/s), and answers each query sooner. A GPU
    # needs several analysts, because young trees have few leaves.
    if count is None:
        queue = pool.take(new_game(options))
        count = GPU_ANALYSTS
        if isinstance(queue, InlineQueue):
            count, workers = (1, None) if prompt else (options.workers or usable_cores(), 1)
        pool.release(queue)
    if count > 1 and workers is None and options.workers is None:
        workers = max(1, usable_cores() // count)
    share = replace(options, memory=options.memory // count, cache_size=options.cache_size // count)
    return [GoAnalyst(share, pool, workers) for _ in range(count)]

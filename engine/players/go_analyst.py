"""Analysts of Go: searches of positions, one after the other, on evaluators that several analysts share.

One analyst with a search thread for each core is as fast on a processor as two with one thread each (19×19, 100 visits
a position: 0.98 to 1.00 and 0.99 to 1.00 of the long search's evaluations/s), and answers each query sooner. On a GPU
several analysts keep it busy while the young trees of others have few leaves.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from engine.color import BLACK
from engine.evaluators.queue import InlineQueue
from engine.games.go.game import GoGame
from engine.games.go.rules import Rules
from engine.games.go.scoring import ownership_by_rollouts
from engine.games.go.vertex import board_points
from engine.machine import usable_cores
from engine.players.analyst import Analysis, Assignment, Model
from engine.players.go_network import ask_network, model_of, network_behind, spec_for
from engine.players.go_setup import QueueKey, make_queue, queue_key, search_settings
from engine.players.thinking import warm_up
from engine.players.tuning import tuned
from engine.search.report import SearchReport
from engine.search.reports import root_priors
from engine.search.search import Search
from native.go.board import PASS

if TYPE_CHECKING:
    from engine.evaluators.queue import EvaluationQueue
    from engine.options import Options
    from engine.search.parameters import SearchSettings

IDLE_QUEUES = 2
"""Evaluators for other boards that are kept although nobody uses them."""
GPU_ANALYSTS = 4
ROLLOUTS_A_MOVE = 100
"""For the owners after a move, where there is no network."""


class QueuePool:
    """Evaluation queues by board size and rules, shared by analysts in several threads."""

    def __init__(self, options: Options) -> None:
        """Make queues as the options say, when they are asked for."""
        self.options = options
        self._lock = threading.Lock()
        self._queues: dict[QueueKey, EvaluationQueue] = {}
        self._users: dict[QueueKey, int] = {}

    def take(self, key: QueueKey, rules: Rules) -> EvaluationQueue:
        """Return the queue for a key, to be given back by `release`.

        Raises:
            NetworkError, EvaluatorError: see `go_setup.make_queue`.
        """
        with self._lock:
            if key not in self._queues:
                self._queues[key] = make_queue(tuned(self.options, "go", key[0]), key[0], rules)
            self._users[key] = self._users.get(key, 0) + 1
            self._queues[key] = self._queues.pop(key)  # the latest stands last
            return self._queues[key]

    def release(self, key: QueueKey, kept: int = IDLE_QUEUES) -> None:
        """Give a queue back; of those that nobody uses the `kept` latest stay, the others are closed."""
        with self._lock:
            self._users[key] -= 1
            idle = [each for each in self._queues if not self._users[each]]
            for each in idle[: max(0, len(idle) - kept)]:
                self._queues.pop(each).close()


class GoAnalyst:
    """See engine.players.analyst.Analyst for what each method promises."""

    def __init__(self, options: Options, pool: QueuePool, share: int = 1, workers: int | None = None) -> None:
        """Get ready for the options' board size and rules.

        Args:
            options: the settings; those of sizes and threads hold for all searches.
            pool: makes the evaluators.
            share: analysts that share memory, and the processor's cores where the options leave the threads open.
            workers: threads of a search, whatever the options say; None for theirs.

        Raises:
            NetworkError, EvaluatorError, OptionError, SetupError: the options cannot be met.
        """
        self.options = options
        self._pool = pool
        self._share = share
        self._workers = workers
        game = GoGame(options.size, Rules.parse(options.rules), options.komi)
        self._key: QueueKey | None = None
        self._search = self._search_for(game)
        try:
            warm_up(self._search, game, lambda move: game.play(game.side_to_move, move))
        except BaseException:
            self.close()
            raise

    @property
    def description(self) -> str:
        """What judges."""
        return self._search.queue.evaluator.description

    @property
    def model(self) -> Model | None:
        """The network."""
        return model_of(self._search.queue.evaluator)

    @property
    def search(self) -> Search:
        """The search of the latest position."""
        return self._search

    def analyze(self, assignment: Assignment, on_report: Callable[[Analysis], None]) -> Analysis:
        """Search a position to its limits or until `interrupt`."""
        game, hides = assignment.game, assignment.options.ignore_pre_root_history
        if hides:
            game = game.copy()
            game.hide_moves()
        search = self._search_for(game)
        made = search.settings
        settings = search_settings(assignment.options, search.queue)
        search.configure(replace(settings, workers=made.workers, batches_in_flight=made.batches_in_flight))
        search.set_position(game, keep_tree=assignment.keep_tree, renew_root=hides)
        has_network = assignment.raw and network_behind(search.queue.evaluator) is not None
        symmetry = None if assignment.options.symmetry == "average" else 0  # as the search sees its root
        raw = ask_network(search.queue, game, symmetry) if has_network else None
        search.start(assignment.limits, avoid=assignment.avoid, allow=assignment.allow)
        try:
            if assignment.stopped.is_set():
                search.interrupt()
            for pause in _pauses(assignment):
                if search.wait(pause):
                    break
                report = search.report(pv_length=assignment.pv_length)
                if report.visits:
                    on_report(Analysis(report, self._policy(game), raw))
        finally:
            search.stop()
        report = search.report(pv_length=assignment.pv_length)
        owners = self._owners_after(game, report) if assignment.moves_ownership else {}
        return Analysis(report, self._policy(game), raw, owners)

    def interrupt(self) -> None:
        """Make a running `analyze` end soon."""
        self._search.interrupt()

    def clear_cache(self) -> None:
        """Forget all evaluations."""
        self._search.clear_cache()

    def close(self) -> None:
        """End the search and give the evaluator back."""
        self._search.stop()
        if self._key is not None:
            self._pool.release(self._key, 0)
            self._key = None

    def _search_for(self, game: GoGame) -> Search:
        """Return the search for the board and rules of a game, in place of the one for others once it is made."""
        key = queue_key(game.size, game.rules)
        if key == self._key:
            return self._search
        queue = self._pool.take(key, game.rules)
        try:
            search = Search(spec_for(game.size, queue.evaluator), queue, self._settings_for(game.size, queue))
        except BaseException:
            self._pool.release(key)
            raise
        if self._key is not None:
            self._pool.release(self._key)
        self._key, self._search = key, search
        return search

    def _settings_for(self, size: int, queue: EvaluationQueue) -> SearchSettings:
        settings = search_settings(tuned(self.options, "go", size), queue)
        if self._share == 1:
            return settings
        asked = settings.workers if self.options.workers else max(1, usable_cores() // self._share)
        return replace(
            settings,
            workers=self._workers or asked,
            memory=settings.memory // self._share,
            cache_size=settings.cache_size // self._share,
        )

    def _policy(self, game: GoGame) -> npt.NDArray[np.float32]:
        priors = root_priors(self._search.tree)
        return np.array([priors.get(move, np.nan) for move in (*board_points(game.size), PASS)], np.float32)

    def _owners_after(self, game: GoGame, report: SearchReport) -> dict[int, npt.NDArray[np.float32]]:
        """Return the owners after each move of a report by move, as the network or else rollouts have them.

        Owners are as in Analysis.moves_ownership. Where the game has no room for another move there are none.
        """
        if game.is_full:
            return {}
        queue = self._search.queue
        has_network = network_behind(queue.evaluator) is not None
        sign = np.float32(1.0 if report.side_to_move == BLACK else -1.0)
        owners = {}
        for move in report.moves:
            after = game.copy()
            after.play(report.side_to_move, move.move, strict=False)
            if has_network:
                owners[move.move] = -sign * ask_network(queue, after, 0).white_ownership
            else:
                owners[move.move] = sign * ownership_by_rollouts(after, ROLLOUTS_A_MOVE)
        return owners


def _pauses(assignment: Assignment) -> Iterator[float | None]:
    """Yield the seconds until each report during a search; None, to wait for its end."""
    begin = time.monotonic()
    due = assignment.first_report
    while due is not None:
        yield max(0.0, begin + due - time.monotonic())
        due = None if assignment.report_every is None else due + assignment.report_every
    yield None


def make_analysts(options: Options, count: int | None, *, prompt: bool = True) -> list[GoAnalyst]:
    """Return analysts that share their evaluators.

    Args:
        options: the settings.
        count: how many; None for what suits the device: GPU_ANALYSTS on a GPU, and what `prompt` says on a processor.
        prompt: a position is to be answered soon: all cores search it. Else every core has a position of its own and
            never waits for another: short searches that go on with trees of earlier ones are faster so.

    Raises:
        NetworkError, EvaluatorError, OptionError, SetupError: the options cannot be met.
    """
    pool = QueuePool(options)
    workers = None
    if count is None:
        rules = Rules.parse(options.rules)
        key = queue_key(options.size, rules)
        queue = pool.take(key, rules)
        count = GPU_ANALYSTS
        if isinstance(queue, InlineQueue):
            count, workers = (1, None) if prompt else (options.workers or usable_cores(), 1)
        pool.release(key)
    return [GoAnalyst(options, pool, count, workers) for _ in range(count)]

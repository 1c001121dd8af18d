"""Searches of many games side by side, whose leaves share the batches of one evaluator."""

from __future__ import annotations

import time
from collections.abc import Sequence
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from yomi.engine.evaluators.base import EvaluatorError
from yomi.engine.evaluators.queue import Job, check_numbers
from yomi.engine.search.reports import read_children
from yomi.engine.search.root_evaluation import evaluate_root, is_renewed
from yomi.engine.search.root_priors import RootPriors
from yomi.engine.search.search import FAULTS
from yomi.native.bound_kernels import NO_CALLS
from yomi.native.game_calls import BoundBoard
from yomi.native.tree import arrays
from yomi.native.tree.arrays import MIN_WEIGHT, Tree, make_forest, tree_of
from yomi.native.tree.buffers import make_batch, make_board, make_worker
from yomi.native.tree.expansion import complete_root
from yomi.native.tree.memory import clear_tree, compact
from yomi.native.tree.report import find_child, restore_root_order, root_exploration
from yomi.native.tree.search import CENTER_SHARE, recenter
from yomi.native.tree.searcher import Searcher, advance_all

if TYPE_CHECKING:
    from yomi.engine.evaluators.queue import EvaluationQueue
    from yomi.engine.search.parameters import SearchSettings
    from yomi.engine.search.position import SearchableGame
    from yomi.native.spec import GameSpec
    from yomi.native.tree.arrays import Batch

ROUNDS = 1000
"""Batches that are made in one call at most, while no search ends."""
SLICE_SECONDS = 0.2
"""That one call lasts, about, if no search ends: fewer batches with a slow network."""


class Searches:
    """Trees of as many games, and the evaluator that judges all their leaves. One thread uses them."""

    def __init__(
        self, spec: GameSpec, queue: EvaluationQueue, settings: SearchSettings, count: int, playouts: int, seed: int
    ) -> None:
        """Allocate them.

        Args:
            spec: of the game, as the evaluator sees it.
            queue: of the evaluator.
            settings: of every search.
            count: games.
            playouts: that a tree is to have room for.
            seed: of symmetries and noise.
        """
        self.spec, self.queue, self.settings = spec, queue, settings
        self._forest = make_forest(spec, count, playouts)
        self._roots = spec.positions(count)
        self._histories = np.zeros((count, spec.max_history), np.uint64)
        self._rngs = np.random.SeedSequence(seed).generate_state(count, np.uint64)[:, None] | np.uint64(1)
        board = make_board(spec, self._roots[:1])  # all share its working memory
        worker = make_worker(spec, board, seed)
        self._boards = [
            BoundBoard(board._replace(root=self._roots[number : number + 1], history=self._histories[number]))
            for number in range(count)
        ]
        self._workers = [worker._replace(rng=rng) for rng in self._rngs]
        self._trees = [tree_of(self._forest, number) for number in range(count)]
        self._use_batch(make_batch(spec, count * settings.rows_per_leaf, queue.evaluator.inputs))
        self._done: SimpleQueue[Job] = SimpleQueue()
        self._owners = np.zeros(len(self._batch.node), np.int64)
        self._used = 0
        self._rounds = 1
        """Batches of one call: what takes about SLICE_SECONDS."""
        self._wanted = np.zeros(count, np.bool_)
        self._idle = np.zeros(count, np.bool_)
        generator = np.random.default_rng(seed)
        self.each = [SmallSearch(self, number, tree, generator) for number, tree in enumerate(self._trees)]

    @property
    def side(self) -> int:
        """Length of the board's side."""
        return int(self.spec.planes_shape[-1])

    def _use_batch(self, batch: Batch) -> None:
        self._batch, self._calls = batch, self.queue.bind(batch)
        each = zip(self._trees, self._workers, self._boards, strict=True)
        self._searchers = [Searcher(tree, worker, board, batch) for tree, worker, board in each]
        self._tasks = np.array([searcher.task for searcher in self._searchers], np.int64)

    def use(self, queue: EvaluationQueue, settings: SearchSettings) -> None:
        """Go on with another evaluator of the same game and board; no playout is lost."""
        batch = make_batch(self.spec, len(self._batch.node), queue.evaluator.inputs)
        for old, new in zip(self._batch, batch, strict=True):
            if old.shape == new.shape:
                new[...] = old
        self.queue, self.settings = queue, settings
        self._use_batch(batch)
        for search in self.each:
            search.configure(settings)

    @property
    def evaluations(self) -> int:
        """Positions evaluated so far."""
        return int(self._forest.counters["evaluated"].sum())

    @property
    def is_busy(self) -> bool:
        """Whether any search has playouts to make."""
        return bool(self._wanted.any())

    def advance(self) -> list[int]:
        """Search on until some searches have made their playouts, and return their numbers.

        After some SLICE_SECONDS it returns, even if none has.

        Raises:
            EvaluatorError: what the evaluator raised, or a fault of the search broke a tree.
        """
        calls = NO_CALLS if self._calls is None else self._calls
        begin = time.monotonic()
        while True:
            called = time.monotonic()
            used = advance_all(
                self._tasks,
                self._owners,
                self._used,
                self.settings.rows_per_leaf,
                self._wanted,
                self._idle,
                calls.table,
                self._rounds,
            )
            now = time.monotonic()
            if now - called < SLICE_SECONDS / 4:
                self._rounds = min(ROUNDS, 2 * self._rounds)
            elif now - called > SLICE_SECONDS:
                self._rounds = max(1, self._rounds // 2)
            if used < 0:
                check_numbers(self.queue.evaluator, self._batch, -used)
            self._used = used
            if self._calls is None and used:
                self.queue.submit(Job(self._batch, used, self._done))
                job = self._done.get()
                if job.error is not None:
                    raise job.error
            if self._idle.any():
                if broken := int(self._forest.counters["broken"].max()):
                    raise EvaluatorError(FAULTS[broken])
                self._wanted[self._idle] = False
                return self._idle.nonzero()[0].tolist()
            if now - begin > SLICE_SECONDS:
                return []

    def _begin(self, number: int, game: SearchableGame) -> None:
        roots = self._roots[number : number + 1]
        roots[0] = game.position
        for name, value in self.spec.position_flags:
            roots[name] = value
        length = int(roots["history_length"][0])
        self._histories[number, :length] = game.history[:length]

    def _complete(self, number: int) -> bool:
        """Give the root of a tree edges for all of its moves; return whether there was room."""
        board = self._boards[number]
        return bool(complete_root(self._trees[number], board.board.moves, board.count_moves()))

    def _evaluate(self, number: int, settings: SearchSettings, center: float) -> Tree:
        """Evaluate the root of a tree by itself; see evaluate_root."""
        worker, board = self._workers[number], self._boards[number]
        return evaluate_root(self.spec, self.queue, settings, worker, board, center)


class SmallSearch:
    """One of the searches: its tree, and what is asked of it. While it makes playouts it is not to be touched."""

    def __init__(self, owner: Searches, number: int, tree: Tree, generator: np.random.Generator) -> None:
        """Make an empty one."""
        self.owner, self.number, self.tree = owner, number, tree
        self._priors = RootPriors(tree, generator)
        self._counters = tree.counters[0]
        self._bans = tree.counters["bans"]
        self._visits = tree.nodes["visits"]
        self._root, self._limit = tree.counters["root"], tree.counters["claim_limit"]
        self._made = [tree.counters[name] for name in ("stop", "full", "claimed", "playouts")]
        """Views of counters: to name a field of a record takes Python microseconds."""
        self.configure(owner.settings)
        clear_tree(tree)

    def configure(self, settings: SearchSettings) -> None:
        """Search by these settings from now on; they show the evaluator leaves as the owner's do."""
        self.settings = settings
        settings.write(self.tree, self.owner.spec.score_unit)

    def seed(self, seed: int) -> None:
        """Draw symmetries from this seed on."""
        self.owner._rngs[self.number] = seed | 1

    @property
    def visits(self) -> int:
        """Visits of the root."""
        return int(self._visits[self._root[0]])

    @property
    def value(self) -> float:
        """The root's mean value for the side to move, in [-1, 1]."""
        return self._mean("value_sum")

    @property
    def score(self) -> float:
        """The root's mean lead for the side to move, in points."""
        return self._mean("score_sum")

    def _mean(self, name: str) -> float:
        root = self.tree.nodes[self._root[0]]
        return float(root[name]) / max(MIN_WEIGHT, float(root["weight_sum"]))

    def begin(self, game: SearchableGame, line: Sequence[int] = ()) -> None:
        """Make a game's position the root.

        Args:
            game: the game.
            line: its last moves, if the position before them was the root and what was searched below is to be kept.
        """
        self.owner._begin(self.number, game)
        is_kept = len(line) > 0 and all(self._move_on(move) for move in line)
        if not (is_kept and self.owner._complete(self.number)):
            self._clear()
        self.allow(None)

    def _move_on(self, move: int) -> bool:
        """Make the position after a move of the root the root; return whether its node is one to go on with."""
        child = int(find_child(self.tree, move))
        if child < 0 or int(self.tree.nodes["state"][child]) != arrays.EXPANDED:
            return False
        compact(self.tree, child, 0)
        center = CENTER_SHARE * self.score
        self._counters.score_center *= -1.0  # it is told for the side to move
        recenter(self.tree, center)
        self._priors.move_on()
        return True

    def search(self, playouts: int) -> None:
        """Ask for playouts; `Searches.advance` makes them. A search with nothing left to find out ends before."""
        for each in self._made:
            each[0] = 0
        self._limit[0] = playouts
        self.owner._wanted[self.number] = True

    def set(self, **parameters: float) -> None:
        """Change parameters of this tree alone, by their names (yomi.native.tree.arrays)."""
        for name, value in parameters.items():
            self.tree.parameters[name][0] = value

    def add_noise(self) -> None:
        """Mix the settings' noise into the priors of the root, which is expanded."""
        settings = self.settings
        self._priors.add_noise(settings.root_noise, settings.root_noise_total)

    def temper(self) -> None:
        """Give a root that was expanded as another node the root's temperature."""
        settings = self.settings
        self._priors.temper(settings.policy_temperature / settings.root_temperature)

    def renew(self) -> None:
        """Give a root that was expanded as another node the priors of a root, as Search.set_position does.

        Raises:
            Exception: what the evaluator raised.
        """
        if not self.visits or not is_renewed(self.owner.queue, self.settings):
            return
        if self.visits == 1:
            self._clear()
            return
        center = float(self._counters.score_center)
        self._priors.replace(self.owner._evaluate(self.number, self.settings, center))

    def _clear(self) -> None:
        clear_tree(self.tree)
        self._priors.clear()

    def allow(self, moves: npt.NDArray[np.int64] | None) -> None:
        """Search these moves of the root only; None for all."""
        if moves is None and not self._bans[0]:
            return
        self.tree.banned[:] = 0 if moves is None else 1
        if moves is not None:
            self.tree.banned[moves] = 0
        self._bans[0] = moves is not None
        restore_root_order(self.tree)

    def exploration(self, playouts: float) -> float:
        """Return PUCT's factor of prior / (1 + visits) at the root after so many playouts below it."""
        return float(root_exploration(self.tree, playouts))

    def children(self) -> npt.NDArray[Any]:
        """Return all moves of the root, CHILD_DTYPE[n], tried ones first."""
        return read_children(self.tree)

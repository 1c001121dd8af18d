"""Searches of many games at the same time. Their leaves share the batches of one evaluator."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from typing import Any, Generic, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

from yomi.engine.evaluators.base import EvaluatorError
from yomi.engine.evaluators.queue import EvaluationQueue, check_numbers, evaluate_batch
from yomi.engine.search.root import TreeRoot
from yomi.engine.search.search import FAULTS
from yomi.engine.search.types import SearchableGame, SearchSettings
from yomi.native.bound_kernels import NO_CALLS
from yomi.native.game_calls import BoundBoard
from yomi.native.spec import GameSpec
from yomi.native.tree.arrays import Batch, make_forest, tree_of
from yomi.native.tree.buffers import make_batch, make_board, make_worker
from yomi.native.tree.searcher import Searcher, advance_all

MAX_ROUNDS = 1000  # batches per call if no search ends
SLICE_SECONDS = 0.2  # target duration of one call if no search ends; a slow network gets fewer batches


class Searches:
    """A tree for each game, and the evaluator of all leaves. Not thread-safe."""

    def __init__(
        self, spec: GameSpec, queue: EvaluationQueue, settings: SearchSettings, count: int, playouts: int, seed: int
    ) -> None:
        """Allocate `count` trees, each for `playouts` playouts."""
        self.spec, self.queue, self.settings = spec, queue, settings
        self._forest = make_forest(spec, count, playouts, settings.cache_size)
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
        self._owners = np.zeros(len(self._batch.node), np.int64)
        self._used = 0
        self._rounds = 1  # batches per call, adapted to SLICE_SECONDS
        self._wanted = np.zeros(count, np.bool_)
        self._idle = np.zeros(count, np.bool_)
        generator = np.random.default_rng(seed)
        self.slots = [GameSearch(self, number, generator) for number in range(count)]

    @property
    def side(self) -> int:
        """Board size: the length of a side."""
        return int(self.spec.planes_shape[-1])

    def _use_batch(self, batch: Batch) -> None:
        self._batch, self._calls = batch, self.queue.bind(batch)
        parts = zip(self._trees, self._workers, self._boards, strict=True)
        self._searchers = [Searcher(tree, worker, board, batch) for tree, worker, board in parts]
        self._tasks = np.array([searcher.task for searcher in self._searchers], np.int64)

    def use(self, queue: EvaluationQueue, settings: SearchSettings) -> None:
        """Continue with another evaluator for the same game and board. No playout is lost."""
        batch = make_batch(self.spec, len(self._batch.node), queue.evaluator.inputs)
        for old, new in zip(self._batch, batch, strict=True):
            if old.shape == new.shape:
                new[...] = old
        self.queue, self.settings = queue, settings
        self._use_batch(batch)
        for search in self.slots:
            search.configure(settings)
            search.clear_cache()

    @property
    def evaluations(self) -> int:
        """Number of positions evaluated so far."""
        return int(self._forest.counters["evaluated"].sum())

    @property
    def is_busy(self) -> bool:
        return bool(self._wanted.any())

    def advance(self) -> list[int]:
        """Search until at least one search has made its playouts, and return the numbers of those searches.

        Returns an empty list after about SLICE_SECONDS if no search has ended.

        Raises:
            EvaluatorError: from the evaluator, or a fault of the search has broken a tree.
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
                self._rounds = min(MAX_ROUNDS, 2 * self._rounds)
            elif now - called > SLICE_SECONDS:
                self._rounds = max(1, self._rounds // 2)
            if used < 0:
                check_numbers(self.queue.evaluator, self._batch, -used)
            self._used = used
            if self._calls is None and used:
                evaluate_batch(self.queue, self._batch, used)
            if self._idle.any():
                if broken := int(self._forest.counters["broken"].max()):
                    raise EvaluatorError(FAULTS[broken])
                self._wanted[self._idle] = False
                return self._idle.nonzero()[0].tolist()
            if now - begin > SLICE_SECONDS:
                return []


class GameSearch(TreeRoot):
    """The search of one game, with its root. Call nothing between `search` and the end of its playouts."""

    def __init__(self, owner: Searches, number: int, generator: np.random.Generator) -> None:
        self.owner, self.number = owner, number
        tree, worker, board = owner._trees[number], owner._workers[number], owner._boards[number]
        super().__init__(owner.spec, owner.settings, tree, worker, board, generator)
        # Cached views of the counters: naming a field of a record takes Python microseconds.
        self._limit = tree.counters["claim_limit"]
        self._call_counters = [tree.counters[name] for name in ("stop", "full", "claimed", "playouts")]

    def seed(self, seed: int) -> None:
        self.owner._rngs[self.number] = seed | 1

    def begin(self, game: SearchableGame, line: Sequence[int] | None = None) -> None:
        """Make the position of a game the root. For `line`, which must not be empty, see `move_to`."""
        self.move_to(game, line)
        self.allow(None)

    def clear_cache(self) -> None:
        """Drop the cached evaluations. Komi, rules and network are no part of their keys."""
        self.tree.cache_keys[:] = 0

    def search(self, playouts: int) -> None:
        """Request playouts, which `Searches.advance` makes. A solved root ends the search early."""
        for counter in self._call_counters:
            counter[0] = 0
        self._limit[0] = playouts
        self.owner._wanted[self.number] = True

    def set(self, **parameters: float) -> None:
        """Set parameters of this tree; for their names see `yomi.native.tree.arrays`."""
        for name, value in parameters.items():
            self.tree.parameters[name][0] = value

    def allow(self, moves: npt.NDArray[np.int64] | None) -> None:
        """Restrict the search to some moves of the root. None allows all moves."""
        banned = None if moves is None else np.ones_like(self.tree.banned)
        if banned is not None:
            banned[moves] = 0
        self.ban(banned)


T = TypeVar("T")

# A game as a generator. It yields None after it has requested playouts, or the Future of an engine's answer. It returns
# the finished game.
GameCoroutine: TypeAlias = "Generator[Future[Any] | None, None, T]"


class ConcurrentGames(Generic[T]):
    """Plays one game per tree, all at the same time. When a game ends, the next one starts in its tree."""

    def __init__(self, searches: Sequence[Searches], begin: Callable[[Sequence[GameSearch]], GameCoroutine[T] | None]):
        """Start the games. `begin` gets one search of each player and returns a game, or None if none is left."""
        self.searches = searches
        self._begin = begin
        self._ended: list[T] = []
        self._pending: dict[Future[Any], int] = {}  # the pending answers, with the number of their game
        self._games: list[GameCoroutine[T] | None] = [
            begin(slot) for slot in zip(*(each.slots for each in searches), strict=True)
        ]
        for number in range(len(self._games)):
            self._resume(number)

    @property
    def is_over(self) -> bool:
        return not any(self._games)

    def refill(self) -> None:
        """Start games in the slots that are empty, if there are games now."""
        for number, game in enumerate(self._games):
            if game is None:
                self._games[number] = self._begin([searches.slots[number] for searches in self.searches])
                self._resume(number)

    def play(self, seconds: float = math.inf) -> list[T]:
        """Play until a game ends, no game is left, or `seconds` have passed. Return the finished games."""
        end = time.monotonic() + seconds
        while not self._ended and not self.is_over and time.monotonic() < end:
            self.advance()
        return self.take()

    def advance(self, *, waits: bool = True) -> bool:
        """Play one batch of each search. Return whether any search had playouts to make.

        If none had and `waits` is set, wait for an engine's answer.
        """
        is_busy = self._hear(waits)
        for searches in self.searches:
            if searches.is_busy:
                for number in searches.advance():
                    self._resume(number)
        return is_busy

    def take(self) -> list[T]:
        """Return the games that have ended since the last call."""
        ended, self._ended = self._ended, []
        return ended

    def _hear(self, waits: bool) -> bool:
        # Resume the games whose answers have come.
        if self._pending:
            waits = waits and not any(searches.is_busy for searches in self.searches)
            for answer in wait(self._pending, None if waits else 0.0, FIRST_COMPLETED).done:
                self._resume(self._pending.pop(answer))
        return any(searches.is_busy for searches in self.searches)

    def _resume(self, number: int) -> None:
        while (game := self._games[number]) is not None:
            try:
                answer = next(game)
            except StopIteration as end:
                self._ended.append(end.value)
                slot = [searches.slots[number] for searches in self.searches]
                self._games[number] = self._begin(slot)
            else:
                if answer is not None:
                    self._pending[answer] = number
                return

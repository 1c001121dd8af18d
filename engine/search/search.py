"""The tree search: threads that gather leaves, have them evaluated, and update the tree.

Start reading at `Search._begin` and `Search._work`. The evaluation runs in kernels (`_advance`) or through the
evaluation queue (`_submit`). native/tree/search.py is the search inside a tree.
"""

import logging
import threading
import time
import zlib
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from queue import SimpleQueue

import numpy as np

from yomi.engine.evaluators.queue import EvaluationQueue, InlineQueue, Job, check_numbers, evaluate_batch
from yomi.engine.search.base import PositionSearch, Root
from yomi.engine.search.read_tree import fullness, read_report, root_priors
from yomi.engine.search.root import TreeRoot
from yomi.engine.search.types import Limits, RootMoves, SearchableGame, SearchReport, SearchSettings
from yomi.native.bound_kernels import Calls
from yomi.native.game_calls import BoundBoard
from yomi.native.spec import GameSpec
from yomi.native.tree import arrays
from yomi.native.tree.arrays import KEYS_BROKEN, SUMS_BROKEN, Batch
from yomi.native.tree.buffers import make_batch, make_board, make_worker
from yomi.native.tree.memory import compact
from yomi.native.tree.report import restore_root_order
from yomi.native.tree.searcher import Searcher

_log = logging.getLogger("yomi.search")

MAX_NODE_VISITS = 2**32 - 2  # of a node
IDLE_PAUSE = 50e-6  # seconds that a worker waits if all leaves are being evaluated elsewhere
YOUNG_PAUSE = 1e-3  # seconds that a worker waits if the tree is too small for its batches
# Root visits for each leaf of the batches in flight together. With 4, 400 visits scored 29% (docs/how-to/gpu.md).
VISITS_PER_FLYING_LEAF = 16
LOOK_SECONDS = 0.1  # a worker that evaluates by kernels checks the clock after whole batches, about this often
# Batches of each worker in a search of limited playouts, at least; they have fewer rows. The leaves of one batch are
# chosen without each other's results, and at the end workers wait for the last batch.
MIN_BATCHES = 16
# Settings whose change invalidates the tree.
TREE_SETTINGS = (
    *("score_utility", "dynamic_score_utility", "uncertainty", "bias_correction", "noise_pruning", "value_weighting"),
    *("policy_temperature", "root_policy_temperature", "solver", "graph"),
)
PRUNE_TO = 0.6  # share of each pool that may still be in use after pruning
MIN_VISITS = 2  # of a search without time: the root's, and one move's
FAULTS = {
    SUMS_BROKEN: "a fault of the search: a node's values are not finite numbers. Please report this with the game",
    KEYS_BROKEN: "a fault of the search: a node's position differs from the position after its moves. Please report "
    "this with the game",
}


class Search(PositionSearch):
    """One tree and the threads that search it. Only `report`, `interrupt` and `clear_cache` are thread-safe."""

    title = "tree search"
    unused, instead = ("fv_scale",), "only NNUE evaluations (nn.bin) read it"

    def __init__(self, spec: GameSpec, queue: EvaluationQueue, settings: SearchSettings) -> None:
        """Allocate the tree. No thread runs before `start`."""
        super().__init__(spec, queue, settings)
        self.tree = arrays.make_tree(
            settings.memory, spec.mean_edges, settings.cache_size, spec.policy_size, spec.cached_moves
        )
        self._counters = self.tree.counters[0]
        self._seeds = np.random.SeedSequence(settings.seed)
        seeds = self._seeds.generate_state(settings.workers + 1, np.uint64)[1:]
        record = spec.positions(1)
        self._boards = [BoundBoard(make_board(spec, record)) for _ in seeds]
        self._workers = [make_worker(spec, board.board, seed) for board, seed in zip(self._boards, seeds, strict=True)]
        # By worker: its searcher, and the calls that evaluate its batch; kept between searches. Empty if the queue
        # takes jobs.
        self._bound: dict[int, tuple[Searcher, Calls]] = {}
        self._avoided = np.zeros_like(self.tree.banned)  # the banned moves under which the tree was made
        generator = np.random.default_rng(self._seeds)
        self.root = TreeRoot(spec, settings, self.tree, self._workers[0], self._boards[0], generator)
        self._barrier = threading.Barrier(1)
        self._deadline = float("inf")
        self._pruned_at, self._pruned_to = -1, 0
        self.configure(settings)

    def configure(self, settings: SearchSettings) -> None:
        self.stop()
        if settings.policy_temperature != self.settings.policy_temperature:
            self.clear_cache()  # priors are kept as the temperature made them
        if any(getattr(settings, name) != getattr(self.settings, name) for name in TREE_SETTINGS):
            self._drop_tree()
        self.settings = settings
        self.root.configure(settings)

    @property
    def root_visits(self) -> int:
        return 0 if self._position is None else self.root.visits

    @property
    def evaluations(self) -> int:
        return int(self._counters.evaluated)

    @property
    def moves_made(self) -> int:
        return int(self._counters.moves_made)

    def set_position(self, game: SearchableGame, *, keep_tree: bool = True, hide_history: bool = False) -> None:
        """Make `game` the root, and keep the part of the tree below it. After an error the tree is empty."""
        self._stop_sound()
        position = Root.of(game)
        line = self._position.line_to(position) if self._position is not None else None
        if self._position is not None and self._position.key != position.key:
            self.clear_cache()  # komi and rules are no part of the keys
        with self.root.lock:
            self._position = position
            # Bans below the root count moves from this root.
            keep_tree = keep_tree and not (line and self._counters.ban_depth)
            self.root.move_to(game, line if keep_tree else None)
            self._share_history()
            if not keep_tree or line != []:
                self._avoided[:] = 0
                self.ban_below({})
                self.tree.goals[:] = self._counters.goals = 0
                self._forget_ownership()
        if line:
            self.root.renew(self.queue, hide_history=hide_history)

    def ban_below(self, bans: Mapping[int, Mapping[int, int]]) -> None:
        """Ban moves below the root, in later searches of this position. The tree is dropped if the bans change.

        Args:
            bans: color -> move -> number of moves after the root before which the move is banned. `start` restricts the
                root's own moves.
        """
        self._stop_sound()
        if not bans and not self._counters.ban_depth:
            return
        assert self._position is not None, "set_position comes first"
        table = np.zeros_like(self.tree.banned_until)
        for color, moves in bans.items():
            row = table[int(color != self._position.side_to_move)]
            row[list(moves)] = list(moves.values())
        if np.array_equal(table, self.tree.banned_until):
            return
        with self.root.lock:
            self._drop_tree()
            self.tree.banned_until[:] = table
            self._counters.ban_depth = int(table.max())
            self._counters.ban_key = zlib.crc32(table.tobytes())

    def raise_visits(self, goals: Mapping[int, int]) -> None:
        """Give every second visit to root moves that have fewer visits than their goal. The tree is kept. Thread-safe.

        `goals`: move -> visits; goals of other moves stay. A move that `prune` omitted is searched now.
        """
        with self.root.lock:
            for move, visits in goals.items():
                self.tree.goals[move] = min(visits, MAX_NODE_VISITS)
                self.tree.banned[move] = self._avoided[move]
            self._counters.goals = int(self.tree.goals.any())
            restore_root_order(self.tree)

    def imitate(self, policy: Mapping[int, float]) -> None:
        """Set a policy of people. Later searches choose a share of the root's visits by it. An empty policy switches
        this off.

        The settings human_root_weightless and human_root_weightful contain the share.
        """
        self._stop_sound()
        with self.root.lock:
            if self._counters.human:
                self.tree.human[:] = 0.0
            for move, prior in policy.items():
                self.tree.human[move] = prior
            self._counters.human = int(bool(policy))

    def clear_cache(self) -> None:
        """Drop all evaluations except those in the tree. Thread-safe, even while the search runs."""
        self.tree.cache_keys[:] = 0

    def clear(self) -> None:
        self.stop()
        self._position = None
        self.clear_cache()

    def _begin(self, limits: Limits, moves: RootMoves) -> Sequence[Callable[[], None]]:
        if self._counters.broken:
            self._drop_tree()
        self._ban(moves)  # first of all, since `interrupt` asks how many visits the root has
        counters = self._counters
        counters.stop = counters.claimed = counters.playouts = 0
        counters.moves_made = counters.evaluated = 0
        counters.claim_limit = self._claim_limit(limits)
        self.latency = 0.0
        self._pruned_at, self._pruned_to = -1, 0
        self._deadline = self._start_time + (limits.seconds if limits.seconds is not None else float("inf"))
        noise = moves.noise and self.settings.root_noise > 0.0
        if noise and self.tree.nodes[self._counters.root]["state"] != arrays.EXPANDED:
            self._evaluate_root()
        self.root.prepare(noise=noise)
        self._barrier = threading.Barrier(len(self._workers), action=self._prune)
        return [partial(self._run_worker, number) for number in range(len(self._workers))]

    def _request_end(self) -> None:
        self._counters.stop = 1

    def _end(self, *, has_failed: bool) -> None:
        self._barrier = threading.Barrier(1)  # the old one refers to this search, and would keep its memory
        if self._counters.broken:
            fault = FAULTS[int(self._counters.broken)]
            _log.error("%s. The search ends with its result so far. The next search starts with an empty tree", fault)
        if has_failed:  # leaves were lost
            self._drop_tree()

    def _stop_sound(self) -> None:
        """End the search. Drop the tree if it has a fault."""
        self.stop()
        if self._counters.broken:
            self._drop_tree()

    def rehearse(self) -> None:
        """Measure the latency of full batches. The tree is lost."""
        # A young tree has too few leaves. So all workers evaluate at the same time, with this position in every row.
        self.stop()
        assert self._position is not None, "set_position comes first"
        leaf = self._gather_root()
        self.latency = 0.0
        self._start_threads([partial(self._time_batch, number, leaf) for number in range(len(self._workers))])
        for thread in self._threads:
            thread.join()
        self.stop()

    def interrupt(self) -> None:
        self._deadline = 0.0
        if self.root_visits >= MIN_VISITS:
            self._counters.stop = 1

    def report(self, *, pv_length: int = 60) -> SearchReport:
        if self._position is None:
            return SearchReport()
        with self.root.lock:
            rows = None if self.settings.move_ownership else 1
            ownership = sum(worker.ownership[:rows] for worker in self._workers) if self.settings.ownership else None
            return read_report(
                self.tree,
                side_to_move=self._position.side_to_move,
                seconds=self.seconds,
                evaluations=self.evaluations,
                owner_sums=ownership,
                use_lcb=self.settings.use_lcb,
                pv_length=pv_length,
            )

    def is_banned(self, move: int) -> bool:
        """Return whether the last search omitted this root move."""
        return bool(self.tree.banned[move])

    def priors(self) -> dict[int, float]:
        return {move: prior for move, prior in root_priors(self.tree).items() if not self.is_banned(move)}

    def first_move(self) -> int | None:
        priors = self.priors()
        return max(priors, key=lambda move: priors[move], default=None)

    def _share_history(self) -> None:
        first, *others = (board.board for board in self._boards)
        length = int(first.root["history_length"][0])
        for board in others:
            board.history[:length] = first.history[:length]

    def _gather_root(self) -> Batch:
        """Return a batch that contains only the root. The tree is lost."""
        self._drop_tree()
        counters = self._counters
        counters.stop = counters.claimed = 0
        counters.claim_limit = 1
        batch = self._make_batch(self.settings.rows_per_leaf)
        self._searcher(0, batch).advance(0)
        self._drop_tree()
        return batch

    def _time_batch(self, number: int, leaf: Batch) -> None:
        """Evaluate a full batch of copies of one leaf, as a worker would, and measure the time."""
        bound = self._bind(number) if self.settings.batches_in_flight == 1 else None
        batch, calls = (bound[0].batch, bound[1]) if bound else (self._make_batch(self.batch_rows), None)
        for array, first in zip(batch, leaf, strict=True):
            array[:] = first[:1]
        begin = time.perf_counter()
        if calls is not None:
            calls.run(self.batch_rows)
            check_numbers(self.queue.evaluator, batch, self.batch_rows)
        else:
            evaluate_batch(self.queue, batch, self.batch_rows)
        with self._count_lock:
            self.latency = max(self.latency, time.perf_counter() - begin)

    def _claim_limit(self, limits: Limits) -> int:
        most = MAX_NODE_VISITS if limits.visits is None else min(limits.visits, MAX_NODE_VISITS)
        claims = max(0, most - self.root_visits)
        if limits.playouts is not None:
            claims = min(claims, limits.playouts)
        return claims

    def _ban(self, moves: RootMoves) -> None:
        """Ban root moves. If `avoid` or `allow` change, drop the tree, whose root has visits under the old bans."""
        banned = np.full_like(self.tree.banned, 0 if moves.allow is None else 1)
        if moves.allow is not None:
            banned[list(moves.allow)] = 0
        banned[list(moves.avoid)] = 1
        with self.root.lock:
            if not np.array_equal(banned, self._avoided):
                self._drop_tree()
                self._avoided[:] = banned
            banned[list(moves.prune)] = 1
            self.root.ban(banned)

    def _drop_tree(self) -> None:
        with self.root.lock:
            self.root.clear()
            self._forget_ownership()

    def _forget_ownership(self) -> None:
        for worker in self._workers:
            worker.ownership[: None if self.settings.move_ownership else 1] = 0.0

    def _evaluate_root(self) -> None:
        """Make the first playout of a search in the calling thread."""
        limit = int(self._counters.claim_limit)
        self._counters.claim_limit = 1
        try:
            self._work(0)
        except Exception:
            self._drop_tree()
            raise
        finally:
            self._bound.pop(0, None)  # perhaps with working memory that belongs to this thread
        self._counters.claim_limit = limit

    def _run_worker(self, number: int) -> None:
        try:
            while not self._work(number):
                self._barrier.wait()
        except threading.BrokenBarrierError:
            pass  # another worker has ended
        finally:
            self._barrier.abort()

    def _work(self, number: int) -> bool:
        """Search with one worker until the end (True) or until the tree is full (False). Then no batch is in flight."""
        rows, count = self._rows(), self.settings.batches_in_flight
        bound = self._bind(number) if count == 1 else None
        if bound is None:
            return self._submit(number, [self._searcher(number, self._make_batch(rows)) for _ in range(count)])
        return self._advance(*bound, rows)

    def _searcher(self, number: int, batch: Batch) -> Searcher:
        return Searcher(self.tree, self._workers[number], self._boards[number], batch)

    def _bind(self, number: int) -> tuple[Searcher, Calls] | None:
        """Return a worker's searcher and the calls that evaluate its batch, or None if the queue evaluates batches."""
        if number not in self._bound or len(self._bound[number][0].batch.node) != self.batch_rows:
            batch = self._make_batch(self.batch_rows)
            calls = self.queue.bind(batch)
            if calls is None:
                return None
            self._bound[number] = self._searcher(number, batch), calls
        return self._bound[number]

    def _submit(self, number: int, idle: list[Searcher]) -> bool:
        """Search through the evaluation queue. Return True at the search's end, or False if the tree is full.

        Args:
            number: number of the worker.
            idle: searchers of the worker, one for each batch that may be in flight.
        """
        done: SimpleQueue[Job] = SimpleQueue()
        searchers = {id(searcher.batch): searcher for searcher in idle}
        flying = 0
        searcher, evaluated = idle.pop(), 0
        while True:
            begin = time.perf_counter()
            may_fill = flying < self._flying_limit(number)
            rows = searcher.advance(evaluated, most=self.batch_rows if may_fill else 0)
            if rows:
                self.queue.submit(Job(searcher.batch, rows, done))
                flying += 1
            else:
                idle.append(searcher)
            if rows and idle:
                searcher, evaluated = idle.pop(), 0
            elif flying:
                job = done.get()
                flying -= 1
                if job.error is not None:
                    raise job.error
                if id(job.batch) not in searchers:  # a device hangs with the batch: the queue took a copy of it
                    searchers[id(job.batch)] = self._searcher(number, job.batch)
                searcher, evaluated = searchers[id(job.batch)], job.rows
            else:
                ended = self._has_ended(IDLE_PAUSE if may_fill else YOUNG_PAUSE)
                if ended is not None:
                    return ended
                searcher, evaluated = idle.pop(), 0
            self._watch_time(begin)

    def _flying_limit(self, number: int) -> int:
        """Return the maximum number of batches in flight of a worker. Every evaluation worker gets at least one."""
        count, evaluating = len(self._workers), self.queue.worker_count
        if not evaluating:
            return self.settings.batches_in_flight
        limit = max(evaluating, self.root_visits // (VISITS_PER_FLYING_LEAF * self.batch_rows))
        return limit // count + (number < limit % count)

    def _advance(self, searcher: Searcher, calls: Calls, most: int) -> bool:
        """Search with kernels that evaluate the batches. Return True at the search's end, or False if the tree is full.

        Args:
            searcher: searcher of this thread.
            calls: calls that evaluate its batch.
            most: maximum number of rows of a batch.
        """
        evaluated, rounds = 0, 1
        while True:
            begin = time.perf_counter()
            evaluated = searcher.advance(evaluated, calls, rounds, most)
            if evaluated < 0:
                check_numbers(self.queue.evaluator, searcher.batch, -evaluated)
            if not evaluated:
                ended = self._has_ended()
                if ended is not None:
                    return ended
            # A call that ended early made fewer rounds, nobody knows how many.
            now = self._watch_time(begin, rounds if evaluated or rounds == 1 else None)
            wanted = min(LOOK_SECONDS, (self._deadline - now) / 2)
            if now - begin > wanted:
                rounds = max(1, rounds // 2)
            elif now - begin < wanted / 2 and evaluated:
                rounds *= 2

    def _has_ended(self, pause: float = IDLE_PAUSE) -> bool | None:
        """Return what a worker that found no leaf does next.

        True: the search has ended. False: the tree is full. None: try again; the pause before that has passed.
        """
        # Started playouts do not count: memory may end before they finish.
        if self._counters.stop or self._counters.playouts >= self._counters.claim_limit:
            return True
        if self._counters.full:
            return False
        time.sleep(pause)
        return None

    def _watch_time(self, begin: float, rounds: int | None = 1) -> float:
        """End the search if its time is up. Return the current time.

        Args:
            begin: time before the last batches.
            rounds: number of these batches; None: unknown.
        """
        now = time.perf_counter()
        if rounds is not None:
            self.latency = max(self.latency, (now - begin) / rounds)
        if now >= self._deadline and self.root_visits >= MIN_VISITS:
            self._counters.stop = 1
        return now

    def _rows(self) -> int:
        """Return the number of rows of a batch. Short searches use fewer rows if the workers evaluate them."""
        if not isinstance(self.queue, InlineQueue):
            return self.batch_rows
        rows = int(self._counters.claim_limit) // (len(self._workers) * MIN_BATCHES)
        return min(self.batch_rows, max(self.settings.rows_per_leaf, rows))

    def _make_batch(self, rows: int) -> Batch:
        return make_batch(self.spec, rows, self.queue.evaluator.inputs)

    def _prune(self) -> None:
        """Drop the least visited nodes until the tree can grow again. All workers wait meanwhile."""
        playouts = int(self._counters.playouts)
        is_stuck = playouts == self._pruned_at
        self._pruned_at = playouts
        for exponent in range(self._pruned_to + 1 if is_stuck else 1, 32):
            self._pruned_to = exponent
            with self.root.lock:
                compact(self.tree, self._counters.root, 1 << exponent)
            if fullness(self.tree) <= PRUNE_TO:
                _log.info("tree full: dropped nodes with fewer than %d visits", 1 << exponent)
                return
        _log.warning("the tree's memory is too small to continue: the search ends. Set a larger --memory")
        self._counters.stop = 1

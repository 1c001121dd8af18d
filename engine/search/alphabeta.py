"""Alpha-beta search with an NNUE evaluation.

Threads search the same position and share a transposition table (lazy SMP). Start reading at `_Worker.deepen`.
"""

from __future__ import annotations

import math
import threading
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import fields
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from yomi.engine.evaluators.queue import EvaluationQueue
from yomi.engine.options import SearchOptions
from yomi.engine.search.base import PositionSearch, Root
from yomi.engine.search.types import Limits, MoveReport, RootMoves, SearchReport, SearchSettings
from yomi.native.alphabeta import thread as layout
from yomi.native.alphabeta.nnue import NnueNetwork
from yomi.native.alphabeta.node import INFINITE, MATE, VALUE_SCALE, WON
from yomi.native.alphabeta.root import begin_search, search_root
from yomi.native.alphabeta.search import DEPTHS
from yomi.native.alphabeta.table import GENERATIONS, make_table
from yomi.native.alphabeta.thread import Thread, make_thread
from yomi.native.bound_kernels import Calls
from yomi.native.spec import GameSpec

WINDOW = 8  # half of the first window around the last value
FIRST_WINDOWED = 5  # depth from which the window is narrow
MAX_NODES = 2**62
NODES_PER_THREAD = 100_000  # of a search with a limit of nodes, at least
CLEARING_THREADS = 4
VOTE_VALUE = 14  # the greater, the less the value of a thread's best move counts in the vote
MIN_SHARE, MAX_SHARE = 0.35, 2.0  # of a move's usual time: if one move is clearly best, or while the choice is open
SPREAD_DEPTHS = 4  # depths whose values measure how steady a search is


class AlphaBetaSearch(PositionSearch):
    """A transposition table, and the threads that search with it."""

    title, unit = "alpha-beta search", "nodes"
    unused = frozenset(row.name for row in fields(SearchOptions)) - {"memory", "workers", "seed"} | {
        *("temperature", "temperature_moves", "temperature_only_below", "batch_size", "leaf_mate_depth"),
    }
    instead = "set search_engine (Search_Engine) to tree to use it"

    def __init__(self, spec: GameSpec, queue: EvaluationQueue, settings: SearchSettings, network: NnueNetwork) -> None:
        """Allocate a table of `settings.memory` bytes. Threads start with `start`."""
        super().__init__(spec, queue, settings)
        self._table = make_table(settings.memory)
        self._is_used = False  # whether the table or the statistics may contain anything
        self._stop = np.zeros(1, np.int64)
        self._lock = threading.Lock()  # held while `_generation` and `_stop` change together
        first = make_thread(network, self._stop)
        others = (make_thread(network, self._stop, first) for _ in range(1, settings.workers))
        self._workers = [_Worker(network, number, data) for number, data in enumerate((first, *others))]
        self._game: Any = None
        self._generation = 0
        self._timer: threading.Timer | None = None

    @property
    def evaluations(self) -> int:
        """Nodes searched since the search started."""
        return sum(worker.nodes for worker in self._workers)

    def set_position(self, game: Any, *, keep_tree: bool = True, hide_history: bool = False) -> None:
        """Make `game` the root. With `keep_tree` the table of earlier searches is used, if they had the same rules."""
        self.stop()
        root = Root.of(game)
        keep_tree = keep_tree and (self._position is None or self._position.key == root.key)
        if self._is_used and not keep_tree:
            self._write_zeros()
        self._game, self._position = game.copy(), root
        for worker in self._workers:
            worker.forget()

    def clear(self) -> None:
        """Drop the position, the table and the statistics."""
        self.stop()
        self._game = self._position = None
        for worker in self._workers:
            worker.forget()
        if self._is_used:
            self._write_zeros()
            self._clear_statistics()
            self._is_used = False

    def _write_zeros(self) -> None:
        """Clear the table, which takes 0.1 s for 1 GiB. The pages of a new one would come only during a search."""
        with ThreadPoolExecutor(CLEARING_THREADS) as pool:
            list(pool.map(lambda part: part.fill(0), np.array_split(self._table, CLEARING_THREADS)))

    def _clear_statistics(self) -> None:
        with ThreadPoolExecutor(len(self._workers)) as pool:  # 110 MB
            list(pool.map(_Worker.clear, self._workers))

    def _begin(self, limits: Limits, moves: RootMoves) -> Sequence[Callable[[], None]]:
        """Prepare a search. Visits and playouts limit the nodes. The kernels check the limit after each node."""
        game = self._game
        assert game is not None, "set_position comes first"
        searched = moves.of(game.searched_moves())
        nodes = min((limit for limit in (limits.visits, limits.playouts) if limit is not None), default=MAX_NODES)
        with self._lock:
            self._generation = (self._generation + 1) % GENERATIONS
            self._stop[0] = 0
        self._is_used = True
        # A short search has one thread: it repeats itself exactly, and threads would cost more than they find.
        workers = self._workers[: max(1, min(len(self._workers), nodes // NODES_PER_THREAD))]
        for worker in self._workers:
            worker.forget()
        for worker in workers:
            worker.prepare(self._table, game, searched, max(1, nodes // len(workers)), self._generation)
        how = self.settings.best_moves, min(limits.depth or DEPTHS, DEPTHS)
        if limits.seconds is not None:
            self._timer = threading.Timer(limits.seconds, self._end_by_time, [self._generation])
            self._timer.daemon = True
            self._timer.start()
        return [partial(self._deepen, worker, *how) for worker in workers]

    def _deepen(self, worker: _Worker, best_moves: int, depth: int) -> None:
        worker.deepen(best_moves, depth)
        if worker is self._workers[0]:  # the other threads stop when the first one does
            self._request_end()

    def _request_end(self) -> None:
        self._stop[0] = 1

    def _end(self, *, has_failed: bool) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _end_by_time(self, generation: int) -> None:
        """End the search with this generation, but no later search: the timer may fire while the next one starts."""
        with self._lock:
            if generation == self._generation:
                self.interrupt()

    def report(self, *, pv_length: int = 60) -> SearchReport:
        root, first = self._position, self._elect()
        if root is None:
            return SearchReport()
        lines, nodes = first.found, self.evaluations
        moves = tuple(line.report(order, pv_length) for order, line in enumerate(lines))
        best = moves[0] if moves else MoveReport(0)
        values = first.values[-SPREAD_DEPTHS:]
        return SearchReport(
            root.side_to_move,
            nodes,
            nodes,
            nodes,
            self.seconds,
            best.winrate,
            best.utility,
            moves=moves,
            deepest=first.deepest,
            depth=first.depth,
            fullness=self._fullness(),
            time_share=first.time_share,
            spread=(winrate_of(min(values)), winrate_of(max(values))) if values else None,
            proven=best.proven,
            weight=float(nodes),
            unit=self.unit,
        )

    def _elect(self) -> _Worker:
        """Return the worker whose result is reported: the first worker during a search, the winner of a vote
        afterwards.

        The best move with most votes wins. A worker's vote grows with its depth and value. A mate outweighs all votes.
        """
        first = self._workers[0]
        voters = [worker for worker in self._workers if worker.found]
        if self.is_running or self.settings.best_moves > 1 or not voters:
            return first
        least = min(worker.found[0].value for worker in voters)
        votes: Counter[int] = Counter()
        for worker in voters:
            votes[worker.found[0].moves[0]] += worker.vote(least)

        def rank(worker: _Worker) -> tuple[int, int, int]:
            line = worker.found[0]
            certainty = abs(line.value) if abs(line.value) >= WON else 0
            return certainty, votes[line.moves[0]], worker.vote(least)

        return max(voters, key=rank)

    def first_move(self) -> int | None:
        return next(iter(self._workers[0].moves), None)

    def rehearse(self) -> None:
        """Write zeros to all memory, so that the system provides it now and not while a clock runs."""
        self.stop()
        self._write_zeros()
        self._clear_statistics()
        self._is_used = False

    def _fullness(self) -> float:
        """Return the share of the table that this search has filled, estimated from a sample."""
        words = self._table[:250, 1::2]
        used = (words != 0) & (words >> np.uint64(59) == self._generation)
        return float(used.mean())


def winrate_of(value: int) -> float:
    """Return the winrate in [0, 1] for a value of the alpha-beta search. Only mates are certain."""
    return 1.0 / (1.0 + math.exp(-value / VALUE_SCALE)) if abs(value) < WON else float(value > 0)


class _Line(NamedTuple):
    """A root move with its value and the best line after it."""

    value: int
    nodes: int
    moves: tuple[int, ...]
    bound: int = 0  # see MoveReport

    def report(self, order: int, pv_length: int) -> MoveReport:
        value = self.value
        proven = 0 if abs(value) < WON else (1 if value > 0 else -1)
        winrate = winrate_of(value)
        mate = None if proven == 0 else proven * (MATE - abs(value))
        line = self.moves[: pv_length + 1]
        return MoveReport(
            self.moves[0],
            self.nodes,
            winrate,
            2.0 * winrate - 1.0,
            lcb=winrate,
            utility_lcb=2.0 * winrate - 1.0,
            order=order,
            pv=line,
            proven=proven,
            mate=mate,
            bound=self.bound,
            weight=float(self.nodes),
            node_visits=self.nodes,
        )


class _Worker:
    """The working memory of a thread, and its search with increasing depth."""

    def __init__(self, network: NnueNetwork, number: int, data: Thread) -> None:
        self._network, self._number = network, number
        self._data = data
        self._counters = self._data.counters
        self._calls: tuple[Calls, Calls] | None = None
        self.moves: tuple[int, ...] = ()
        self.clear()

    def forget(self) -> None:
        """Drop the results of the last search."""
        self.found: tuple[_Line, ...] = ()
        self.settled: tuple[_Line, ...] = ()  # of the last depth that was finished
        self.values: list[int] = []  # of the best move, by depth
        self.depth = 0
        self.time_share = 1.0
        self._best, self._best_since, self._changes = 0, 0, 0.0
        self._counters[:] = 0

    def clear(self) -> None:
        self.forget()
        # Side to move, value and steadiness of the best move of this search, and of the one before it.
        self._last: tuple[int, int, float] | None = None
        self._before: tuple[int, int, float] | None = None
        for name, value in layout.FIRST_STATISTICS.items():
            getattr(self._data, name)[...] = value

    @property
    def nodes(self) -> int:
        return int(self._counters[layout.NODES])

    def vote(self, least: int) -> int:
        return (self.found[0].value - least + VOTE_VALUE) * self.depth

    @property
    def deepest(self) -> int:
        return int(self._counters[layout.DEEPEST])

    def prepare(self, table: Any, game: Any, moves: Sequence[int], nodes: int, generation: int) -> None:
        data, counters = self._data, self._counters
        self.forget()
        self._before = self._last
        if self._calls is None:
            arguments = self._network, data, table
            self._calls = begin_search.bind(*arguments), search_root.bind(*arguments)
        self.moves = tuple(moves)
        data.positions[0] = game.position
        length = int(game.position["history_length"])
        data.history[:length] = game.history[:length]
        data.root_moves[: len(moves)] = moves
        counters[layout.ROOT_MOVES] = len(moves)
        counters[layout.LIMIT] = nodes
        counters[layout.GENERATION] = generation

    def deepen(self, best_moves: int, last: int) -> None:
        """Search with increasing depth, until `last` or another limit is reached or nothing can change any more."""
        counters = self._counters
        assert self._calls is not None, "prepare comes first"
        begin, self._search = self._calls
        begin.run(0)
        lines = min(best_moves, len(self.moves))
        values = [0] * lines
        for depth in range(1, last + 1):
            # Half of the helping threads run one ply ahead, so that not all do the same.
            ahead = depth + self._number % 2
            for first in range(lines):
                values[first] = self._search_window(first, values[first], ahead, lines)
                if counters[layout.IS_STOPPED]:
                    return
            self.depth, self.settled = depth, self.found
            self.values.append(values[0])
            self.time_share = self._measure_time(depth, values[0])
            counters[layout.MAY_STOP] = 1
            if self.moves and abs(values[0]) >= WON and lines == 1 and MATE - abs(values[0]) <= depth:
                return  # the shortest mate
            if not self.moves or self.nodes >= counters[layout.LIMIT]:
                return

    def _measure_time(self, depth: int, value: int) -> float:
        """Return the share of a move's usual time after which the search may end.

        The share is greater if the value falls or the best move changes, and less if most nodes are below the best
        move.
        """
        data, counters = self._data, self._counters
        best = int(data.root_moves[0])
        if best != self._best:
            self._best, self._best_since = best, depth
        self._changes = self._changes / 2 + int(counters[layout.CHANGES])
        counters[layout.CHANGES] = 0
        side = int(data.positions[0]["side_to_move"])
        steadiness = 0.723 + 0.79 / (1.104 + math.exp(0.519 * (self._best_since + 11.6 - depth)))
        share = (1.04 + 1.9 * self._changes) / (2.24 * steadiness)
        if self._before is None:
            share *= 2.5
        else:
            of_side, before, steadiness_before = self._before
            before = before if of_side == side else -before
            fall = 0.113 + 0.0212 * (before - value) + 0.0099 * (self.values[-5:][0] - value)
            share *= (1.455 + steadiness_before) * min(max(fall, 0.57), 1.57)
        self._last = side, value, steadiness
        share *= 1.3 - 0.9 * float(data.root_nodes[0]) / max(1, self.nodes)
        return min(max(share, MIN_SHARE), MAX_SHARE)

    def _search_window(self, first: int, value: int, depth: int, lines: int) -> int:
        """Search the root moves from `first` on. Widen the window until it contains the value, and return the value.

        The best `lines` moves are published after each window.
        """
        counters = self._counters
        width = WINDOW + value * value // 9_000 if depth >= FIRST_WINDOWED else 2 * INFINITE
        alpha, beta = max(value - width, -INFINITE), min(value + width, INFINITE)
        counters[layout.FIRST] = first
        counters[layout.DEPTH] = depth
        while True:
            counters[layout.ALPHA], counters[layout.BETA] = alpha, beta
            self._search.run(0)
            self._sort(first)
            self._publish(first, lines, alpha, beta)
            if counters[layout.IS_STOPPED]:
                return value
            value = int(counters[layout.VALUE_FOUND])
            if value <= alpha:
                alpha, beta = max(value - width, -INFINITE), alpha
                counters[layout.DEPTH] = depth
            elif value >= beta:
                alpha, beta = max(alpha, beta - width), min(value + width, INFINITE)
                counters[layout.DEPTH] = max(1, counters[layout.DEPTH] - 1)
            else:
                return value
            width += width // 3 + 1

    def _sort(self, first: int) -> None:
        """Sort the root moves from `first` on by their new values. Moves without a new value keep their order."""
        data, last = self._data, len(self.moves)
        order = first + np.argsort(-data.root_scores[first:last].astype(np.int64), kind="stable")
        for numbers in (data.root_moves, data.root_scores, data.root_nodes, data.root_lines):
            numbers[first:last] = numbers[order]

    def _publish(self, last: int, lines: int, alpha: int, beta: int) -> None:
        """Publish new results: root moves up to `last`, then the other moves with results of the last depth.

        Move `last` was searched in the window from `alpha` to `beta`. A value outside that window is a bound.
        """
        data = self._data
        new = []
        for i in range(last + 1):
            line, value = data.root_lines[i], int(data.root_scores[i])
            length = int(np.argmin(line != 0))
            if value == -INFINITE or length == 0:
                continue
            bound = 0 if i < last else int(value >= beta) - int(value <= alpha)
            if bound < 0 and self._counters[layout.IS_STOPPED] and self.settled:
                continue  # how far the value falls is unknown: the last depth says more
            moves = tuple(map(int, line[:length]))
            if length == 1:  # a bound has no answer, but pondering needs one: that of the last depth
                moves = next((line.moves for line in self.settled if line.moves[0] == moves[0]), moves)
            new.append(_Line(value, int(data.root_nodes[i]), moves, bound))
        new.sort(key=lambda line: -line.value)
        known = {line.moves[0] for line in new}
        # No other move is better than the new ones, whatever the last depth found.
        most = new[-1].value if new else INFINITE
        old = (line for line in self.settled or self.found if line.moves[0] not in known)
        old = (line if line.value <= most else line._replace(value=most, bound=-1) for line in old)
        self.found = (*new, *old)[:lines]

"""What the scheduler runs: small trees of a tiny game, and threads that search, prune and report.

Each scenario states what its threads do; all share the invariants of `Search.check`.
"""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np

from tests.schedules import sums
from tests.unit.trees import check_tree
from yomi.engine.evaluators.queue import InlineQueue
from yomi.engine.search.search import Search
from yomi.engine.search.types import SearchSettings
from yomi.native.bound_kernels import ask
from yomi.native.spec import Inputs
from yomi.native.tree.arrays import BIAS_DTYPE, EXPANDED, IN_FLIGHT, NONE, VALUE, Tree, make_forest
from yomi.native.tree.memory import clear_tree, compact
from yomi.native.tree.report import CHILD_DTYPE, most_visited_path, root_children
from yomi.native.tree.searcher import Searcher

MEMORY = 2**14


class Opinions:
    """Draws an evaluation of each position by its key.

    Args:
        seed: of the random numbers.
        peak: added to the logit of one move of each position, so that all threads take the same way.
    """

    inputs = Inputs.NOTHING
    description = "opinions"
    batch_size = 1

    def __init__(self, seed: int = 0, peak: float = 0.0) -> None:
        self.seed, self.peak = seed, peak

    def evaluate(self, batch: Any, rows: int) -> None:
        for row in range(rows):
            key = int(batch.keys[row])
            rng = np.random.default_rng([self.seed, key])
            batch.logits[row] = 3.0 * rng.standard_normal(batch.logits.shape[1])
            batch.logits[row, 1 + key % 2] += self.peak
            batch.values[row] = 0.0
            batch.values[row, VALUE] = rng.uniform(-0.9, 0.9)

    def bind(self, batch: Any) -> None:
        return None

    def close(self) -> None:
        pass


def gather(searcher: Searcher, rows: int) -> int:
    """Gather at most `rows` rows, also if the tree is too young for so many."""
    return int(ask(searcher.task[1], searcher.task[0], 0, rows))


def scatter(searcher: Searcher, rows: int) -> None:
    ask(searcher.task[2], searcher.task[0], 0, rows)


class Searching:
    """Threads that search one tree.

    Args:
        name: of the scenario.
        threads: number of search threads.
        rounds: batches that each thread gathers.
        before: playouts that are made before the threads start.
        moves: moves played from the start; with `before`, the last one reroots the tree.
        rows: leaves of a batch.
        nodes: nodes that the pool has room for, None for plenty.
        pruned: nodes with fewer visits are dropped before the threads start.
        reports: number of reports that one more thread reads meanwhile.
        seed: see Opinions.
        peak: see Opinions.
        settings: those of the search.
    """

    def __init__(
        self,
        name: str,
        *,
        threads: int = 2,
        rounds: int = 1,
        before: int = 0,
        moves: tuple[int, ...] = (),
        rows: int = 1,
        nodes: int | None = None,
        pruned: int = 0,
        reports: int = 0,
        seed: int = 0,
        peak: float = 0.0,
        **settings: Any,
    ) -> None:
        self.name = name
        self.rounds, self.reports = 1, reports
        self.is_pruned = bool(pruned or nodes)
        chosen = {"cache_size": 0, "symmetry": "none", "seed": 1, "ownership": False, "c_puct": 4.0, **settings}
        self.search = Search(
            sums.SPEC, InlineQueue(Opinions(seed, peak)), SearchSettings(workers=threads, memory=MEMORY, **chosen)
        )
        self._use(self._small(self.search.tree))
        self.search.set_position(sums.Game(moves[:-1]) if before else sums.Game(moves))
        self._bind(1, 1)
        if before:
            self._begin(before)
            for _ in range(before):
                self._search(0)
            self.search.set_position(sums.Game(moves))
        tree = self.search.tree
        if pruned:
            compact(tree, tree.counters[0].root, pruned)
        if nodes is not None:
            tree = tree._replace(nodes=tree.nodes[:nodes], locks=tree.locks[: nodes * 128])
            self._use(tree)
        self._begin(2 * threads * rounds * rows)
        self.rounds = rounds
        self._bind(threads, rows)
        boards = [board.board for board in self.search._boards]
        workers = [array for each in (*self.search._workers, *boards) for array in each if array.size]
        self._arrays = [array for name, array in tree._asdict().items() if name not in ("locks", "banned")] + workers
        self._saved = [array.copy() for array in self._arrays]

    def _use(self, tree: Tree) -> None:
        self.search.tree = self.search.root.tree = tree

    def _bind(self, threads: int, rows: int) -> None:
        """Make searchers of the current tree."""
        self._searchers = [self.search._searcher(number, self.search._make_batch(rows)) for number in range(threads)]

    def _begin(self, playouts: int) -> None:
        """Do what Search.start does before its threads run: `playouts` may be begun."""
        self.search._share_history()
        counters = self.search.tree.counters[0]
        counters.stop = counters.claimed = counters.playouts = counters.evaluated = 0
        counters.claim_limit = playouts

    def _small(self, tree: Tree) -> Tree:
        """Return the tree with pools that are quick to copy."""
        return tree._replace(
            edges=tree.edges[:256], stats=tree.stats[:256], biases=np.zeros(4, BIAS_DTYPE), shared=tree.shared[:8]
        )

    def reset(self) -> list[Callable[[], None]]:
        for array, saved in zip(self._arrays, self._saved, strict=True):
            np.copyto(array, saved)
        works = [lambda number=number: self._search(number) for number in range(len(self._searchers))]
        return [*works, self._report] if self.reports else works

    def memory(self) -> tuple[bytes, ...]:
        tree = self.search.tree
        counters = tree.counters[0]
        return (
            tree.nodes[: int(counters.node_top)].tobytes(),
            tree.edges[: int(counters.edge_top)].tobytes(),
            tree.stats[: int(counters.stats_top)].tobytes(),
            *(array.tobytes() for array in (tree.counters, tree.shared, tree.biases, tree.cache_keys)),
            *(array.tobytes() for array in (tree.cache_locks, tree.cache_priors, tree.cache_values)),
        )

    def _search(self, number: int) -> None:
        searcher = self._searchers[number]
        batch = searcher.batch
        for _ in range(self.rounds):
            rows = gather(searcher, len(batch.node))
            if not rows:
                return
            for row in range(rows):
                self._check_leaf(batch, row)
            self.search.queue.evaluator.evaluate(batch, rows)
            scatter(searcher, rows)

    def _report(self) -> None:
        tree = self.search.tree
        for _ in range(self.reports):
            children = np.zeros(sums.MOVES, CHILD_DTYPE)
            count = int(root_children(tree, children))
            for child in children[:count]:
                if child["visits"]:
                    assert abs(child["utility"]) <= 1.0, f"a report has the utility {child['utility']}"
                    assert child["proven"] or child["node_visits"] >= child["visits"]
                line, visits, node_visits = np.zeros(8, np.uint16), np.zeros(8, np.uint32), np.zeros(8, np.uint32)
                length = int(most_visited_path(tree, int(child["node"]), line, visits, node_visits))
                assert set(line[:length].tolist()) <= {1, 2, 3}

    def _check_leaf(self, batch: Any, row: int) -> None:
        """Assert that a leaf's path leads through nodes that stand for its positions."""
        tree = self.search.tree
        game = self.search._boards[0].board.root[0]
        ply, total = int(game["ply"]), int(game["sum"])
        for level in range(int(batch.depth[row])):
            node = tree.nodes[int(batch.path[row, level])]
            total += int(tree.edges[int(node["edges"]) + int(batch.slots[row, level])]) & 0xFFFF
            ply += 1
            self._check_key(int(batch.path[row, level + 1]), ply, total)
        assert int(batch.keys[row]) == 1 + 64 * ply + total, "a leaf's path does not lead to its position"

    def _check_key(self, index: int, ply: int, total: int) -> None:
        key = int(self.search.tree.nodes[index]["key"])
        assert not self.search.settings.graph or key == 1 + 64 * ply + total, f"node {index} is of another position"

    def check(self) -> None:
        check_all(self.search, pruned=self.is_pruned)


def check_all(search: Any, *, pruned: bool) -> None:
    """Assert that the tree is whole: sums, visits, keys, locks, memory, nothing in flight.

    Args:
        search: has a tree and settings.
        pruned: whether nodes were dropped, or may be missing since memory ended.
    """
    tree = search.tree
    counters = tree.counters[0]
    assert counters.claimed == counters.playouts, f"{counters.claimed} playouts claimed, {counters.playouts} backed up"
    assert not tree.nodes["lock"].any(), "a lock is held"
    if counters.full:
        compact(tree, counters.root, 0)  # drops nodes that could not get edges
    check_tree(search, pruned=pruned)
    for array in (tree.nodes[: int(counters.node_top)], tree.stats[: int(counters.stats_top)]):
        for name in array.dtype.names:
            if array.dtype[name].kind == "f":
                assert np.isfinite(array[name]).all(), f"{name} is not finite"
    assert not getattr(counters, "broken", 0)
    root = int(counters.root)
    record = search._boards[0].board.root[0]
    waiting = [(root, int(record["ply"]), int(record["sum"]))]
    while waiting:
        index, ply, total = waiting.pop()
        node = tree.nodes[index]
        assert index == root or not search.settings.graph or int(node["key"]) == 1 + 64 * ply + total, "a wrong key"
        assert node["weight_sum"] > 0.0
        for slot in range(int(node["tried"])):
            stat = tree.stats[int(node["stats"]) + slot]
            assert int(stat["in_flight"]) & int(IN_FLIGHT) == 0
            move = int(tree.edges[int(node["edges"]) + slot]) & 0xFFFF
            if node["state"] == EXPANDED and stat["child"] != NONE:
                waiting.append((int(stat["child"]), ply + 1, total + move))


class Forest:
    """Two threads, each with a tree of its own in one forest."""

    name = "forest"

    def __init__(self) -> None:
        settings = SearchSettings(cache_size=0, symmetry="none", seed=1, ownership=False, c_puct=4.0)
        self._search = Search(sums.SPEC, InlineQueue(Opinions()), SearchSettings(workers=2, memory=MEMORY))
        self._search.set_position(sums.Game())
        forest = make_forest(sums.SPEC, 2, 20)
        self._trees = [Tree(*(array[number] for array in forest)) for number in range(2)]
        self._trees = [tree._replace(biases=np.zeros(4, BIAS_DTYPE)) for tree in self._trees]
        for tree in self._trees:
            settings.write(tree, 1.0)
            clear_tree(tree)
            tree.counters[0].claim_limit = 10**6
        self._searches = [
            SimpleNamespace(tree=tree, settings=settings, spec=sums.SPEC, _boards=self._search._boards)
            for tree in self._trees
        ]
        workers, boards = self._search._workers, self._search._boards
        self._searchers = [
            Searcher(tree, worker, board, self._search._make_batch(1))
            for tree, worker, board in zip(self._trees, workers, boards, strict=True)
        ]
        self._arrays = [getattr(tree, name) for tree in self._trees for name in ("nodes", "edges", "stats", "counters")]
        self._arrays += [getattr(tree, name) for tree in self._trees for name in ("shared", "biases")]
        self._saved = [array.copy() for array in self._arrays]

    def reset(self) -> list[Callable[[], None]]:
        for array, saved in zip(self._arrays, self._saved, strict=True):
            np.copyto(array, saved)
        return [lambda number=number: self._grow(number) for number in range(2)]

    def memory(self) -> tuple[bytes, ...]:
        return tuple(array.tobytes() for array in self._arrays)

    def _grow(self, number: int) -> None:
        searcher = self._searchers[number]
        for _ in range(2):
            rows = gather(searcher, 1)
            self._search.queue.evaluator.evaluate(searcher.batch, rows)
            scatter(searcher, rows)

    def check(self) -> None:
        for search in self._searches:
            check_all(search, pruned=False)


PLAIN = {"bias_correction": 0.0, "noise_pruning": 0.0, "value_weighting": 0.0, "uncertainty": False}
PROOFS = {"solver": True, "score_utility": 0.0, "dynamic_score_utility": 0.0, **PLAIN}


def all_scenarios() -> dict[str, Callable[[], Any]]:
    """Return what makes each scenario, by name."""
    made: dict[str, Callable[[], Any]] = {"forest": Forest}

    def add(name: str, **arguments: Any) -> None:
        made[name] = lambda: Searching(name, **arguments)

    add("first visits", rounds=2, **PLAIN)
    add("transpositions", before=4, **PLAIN)
    add("transpositions in a tree", before=7, graph=False, **PLAIN)
    add("groups", before=4, rows=2, **PLAIN)
    add("proofs", before=6, moves=(2,), rounds=2, **PROOFS)
    add("proofs nearby", before=3, moves=(3,), rounds=2, **PROOFS)
    add("three threads", before=4, threads=3, **PLAIN)
    add("corrections", before=6, noise_pruning=0.15, value_weighting=0.25, bias_correction=0.3)
    add("pruned", before=16, pruned=3, **PLAIN)
    add("rerooted", before=12, moves=(1,), **PLAIN)
    add("one line", before=2, peak=6.0, virtual_loss=0.0, **PROOFS)
    add("one line to a proof", before=2, moves=(3,), rounds=3, peak=6.0, virtual_loss=0.0, **PROOFS)
    add("one edge to a transposition", before=6, seed=10, virtual_loss=0.0, **PLAIN)
    add("full", before=5, nodes=8, **PLAIN)
    add("reports", before=5, threads=1, rounds=2, reports=1, **PLAIN)
    add("reports of proofs", before=4, moves=(3,), reports=1, **PROOFS)
    add("cache", before=5, cache_size=2**9, graph=False, **PLAIN)
    return made

"""The memory of trees: pruning, pools that are nearly full, and the locks of many workers."""

import logging
import os
import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.fakes.evaluators import ScriptedEvaluator
from tests.unit.trees import check_tree, contents_of, search_at
from yomi.engine.evaluators.kernel_evaluators import UniformEvaluator
from yomi.engine.go.networks import RolloutEvaluator
from yomi.engine.search.types import Limits
from yomi.native.bits import U, atomic_add
from yomi.native.jit import kernel
from yomi.native.tree import arrays
from yomi.native.tree.arrays import NONE
from yomi.native.tree.memory import compact, lock, new_edges, unlock


@pytest.mark.parametrize("min_visits", [0, 2, 5, 40, 10**6])
def test_pruning_keeps_the_statistics_of_what_it_drops(min_visits: int) -> None:
    search = search_at(ScriptedEvaluator(), 5, "C3")
    search.run(Limits(playouts=700))
    assert search.root_visits == 700
    before = contents_of(search.tree, min_visits=min_visits)
    kept = compact(search.tree, search.tree.counters[0].root, min_visits)
    assert contents_of(search.tree) == before
    assert check_tree(search, pruned=True) == kept == search.tree.counters[0].node_top
    assert (kept == 1) == (min_visits > 700)
    report = search.run(Limits(playouts=400))
    assert report.visits == 1100
    check_tree(search, pruned=True)


def test_what_was_pruned_and_comes_back_is_as_uncertain_as_its_parent() -> None:
    search = search_at(ScriptedEvaluator(), 5, "C3", score_utility=0.4, dynamic_score_utility=0.0)
    search.run(Limits(playouts=700))
    tree = search.tree
    compact(tree, tree.counters[0].root, 10**6)
    root = tree.nodes[tree.counters[0].root].copy()
    kept = tree.stats[int(root["stats"]) :][: int(root["tried"])].copy()
    search.run(Limits(playouts=1))
    assert tree.counters[0].node_top == 2
    child, n = tree.nodes[1], float(tree.nodes[1]["visits"])
    assert n > 50
    assert child["utility_variance"] == pytest.approx(root["utility_variance"], rel=0.3)
    assert child["score_variance"] == pytest.approx(root["score_variance"], rel=0.3)
    stat = next(stat for stat in kept if stat["visits"] == n - 1)
    assert child["weight_sum"] == pytest.approx(float(stat["weight"]) + float(child["own_weight"]), abs=1e-3)
    for name in ("utility", "value", "score"):  # what its edge has kept, and one playout
        assert child[f"{name}_sum"] == pytest.approx(-stat["weight"] * stat[name], abs=20.0)


def test_pruned_moves_are_reported_as_their_edges_know_them() -> None:
    settings = {"score_utility": 0.0, "dynamic_score_utility": 0.0, "bias_correction": 0.0}
    search = search_at(ScriptedEvaluator(), 5, "C3", **settings)
    before = {move.move: move for move in search.run(Limits(playouts=700)).moves}
    compact(search.tree, search.tree.counters[0].root, 10**6)
    after = search.report().moves
    assert {move.move for move in after} == set(before)
    for move in after:
        assert move.visits == before[move.move].visits
        assert move.winrate == pytest.approx(before[move.move].winrate, abs=1e-5)
        assert move.utility == pytest.approx(before[move.move].utility, abs=1e-5)
        assert move.lcb == pytest.approx(0.5 + 0.5 * move.utility_lcb, abs=1e-5)


@pytest.mark.parametrize(("mean_edges", "policy_size"), [(351.2, 362), (100.0, 2187), (1.0, 2)])
def test_no_pool_is_larger_than_its_numbers_reach(
    mean_edges: float, policy_size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(arrays, "NONE", 10**6)
    tree = arrays.make_tree(2**32, mean_edges, 0, policy_size)
    sizes = [len(pool) for pool in (tree.nodes, tree.edges, tree.stats)]
    assert 900_000 < max(sizes) <= 10**6


@pytest.mark.parametrize(("memory", "workers", "size"), [(200_000, 1, 9), (2**20, 3, 9), (2**20, 2, 19)])
def test_a_small_memory_is_pruned_again_and_again(
    memory: int, workers: int, size: int, caplog: pytest.LogCaptureFixture
) -> None:
    search = search_at(UniformEvaluator(8), size, memory=memory, workers=workers)
    with caplog.at_level(logging.INFO, logger="yomi"):
        report = search.run(Limits(playouts=6000))
    assert report.playouts == report.visits == 6000
    assert "dropped nodes" in caplog.text
    assert sum(move.visits for move in report.moves) == 5999
    compact(search.tree, search.tree.counters[0].root, 0)
    check_tree(search, pruned=True)


def test_a_memory_too_small_to_go_on_ends_the_search(caplog: pytest.LogCaptureFixture) -> None:
    search = search_at(UniformEvaluator(8), 19, memory=1, workers=2)
    search.start(Limits(playouts=10**6))
    assert search.wait(300)
    search.stop()
    assert "memory is too small" in caplog.text
    report = search.report()
    assert report.visits > 50
    assert report.moves
    # asked again, it ends again
    search.start(Limits(playouts=10**6))
    assert search.wait(300)
    search.stop()
    compact(search.tree, search.tree.counters[0].root, 0)
    check_tree(search, pruned=True)


@kernel
def take_edges(tree, owners, mine):  # type: ignore[no-untyped-def]
    """Take edges one at a time until there are none, and ask for more than there are before each."""
    while True:
        new_edges(tree, tree.edges.size + 1)
        first = new_edges(tree, 1)
        if first == NONE:
            if tree.counters[0].edge_top >= tree.edges.size:
                return
        else:
            atomic_add(owners, U(first), mine)


def in_threads(*works: Callable[[], object]) -> None:
    """Run each of `works` in a thread of its own, all at the same time, to their ends."""
    threads = [threading.Thread(target=work, daemon=True) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(300)
        assert not thread.is_alive()


def test_no_two_nodes_share_edges_when_the_pool_is_nearly_full() -> None:
    tree = arrays.make_tree(2**28, 1.0, 0, 1)
    owners = np.zeros(len(tree.edges), np.int64)
    take_edges(arrays.make_tree(1, 1.0, 0, 1), owners, 0)  # compiles
    in_threads(*(lambda mine=mine: take_edges(tree, owners, mine) for mine in (1, 1000)))  # type: ignore[misc]
    assert len(owners) > 1_000_000
    assert set(np.unique(owners)) <= {1, 1000}, "edges with no owner, or with two"


@kernel
def hand_over(tree, mine, other, times):  # type: ignore[no-untyped-def]
    """Take the lock of one node and let go of another's, so often."""
    for _ in range(times):
        lock(tree, mine)
        unlock(tree, other)


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="the system has no binding of threads to processors")
def test_who_waits_for_a_lock_leaves_the_processor_to_who_holds_it() -> None:
    tree = arrays.make_tree(2**16, 1.0, 0, 1)
    tree.nodes["lock"][:2] = 0, 1
    hand_over(tree, 0, 0, 1)  # compiles
    processors = os.sched_getaffinity(0)
    spent = []

    def work(mine: int, other: int) -> None:
        os.sched_setaffinity(0, {min(processors)})
        hand_over(tree, mine, other, 2000)
        spent.append(time.thread_time())

    in_threads(lambda: work(0, 1), lambda: work(1, 0))
    # a thread that spins keeps the processor for a slice of milliseconds at each of 4,000 turns
    assert sum(spent) < 1.0


def test_no_two_locks_share_a_cache_line() -> None:
    tree = arrays.make_tree(2**16, 1.0, 0, 1)
    places = tree.nodes["lock"].ctypes.data + np.arange(len(tree.nodes)) * tree.nodes.strides[0]
    assert len(set((places // arrays.CACHE_LINE).tolist())) == len(tree.nodes)


@pytest.mark.slow
@pytest.mark.parametrize("workers", [2, 4])
@pytest.mark.parametrize("kind", ["uniform", "scripted", "rollouts"])
def test_many_workers_leave_a_tree_that_hangs_together(kind: str, workers: int) -> None:
    playouts = {"uniform": 30_000, "scripted": 1500, "rollouts": 1500}[kind]
    evaluator: Any = {
        "uniform": UniformEvaluator(8),
        "scripted": ScriptedEvaluator(8),
        "rollouts": RolloutEvaluator(1, 8, 3),
    }[kind]
    search = search_at(evaluator, 5, "C3", workers=workers, batches_in_flight=2, memory=2**26)
    report = search.run(Limits(playouts=playouts))
    assert report.visits == report.playouts == playouts
    assert search.tree.counters[0].claimed == playouts
    assert 0.95 * search.tree.counters[0].node_top < check_tree(search) <= search.tree.counters[0].node_top

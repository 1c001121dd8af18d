"""Visits of the root that follow the policy of people (humanSLRootExploreProbWeightless and others)."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from tests.fakes.evaluators import ScriptedEvaluator
from tests.looping import looped
from tests.unit.trees import check_tree, edges_of, search_at
from yomi.engine.go.points import square
from yomi.engine.search.search import Search
from yomi.engine.search.types import Limits, RootMoves
from yomi.native.go.board import PASS
from yomi.native.tree.selection import select_as_people

BOARD = square(5)
PUCT = {"human_c_puct": 0.6, "human_c_puct_permanent": 0.3}


def searched(policy: dict[int, float], playouts: int = 400, banned: tuple[int, ...] = (), **settings: Any) -> Search:
    search = search_at(ScriptedEvaluator(4), 5, "C3", **settings)
    search.imitate(policy)
    search.run(Limits(playouts=playouts), RootMoves(prune=banned))
    return search


def slow_slot(search: Search, policy: dict[int, float], total: float) -> int:
    """Return the move that KataGo's formulas choose: getExploreScalingHuman, and first-play urgency of its policy."""
    tree = search.tree
    index = int(tree.counters[0].root)
    node, p = tree.nodes[index], tree.parameters[0]
    edges, tried = edges_of(tree, index), int(node["tried"])
    moves = [move for move, _ in edges]
    stats = tree.stats[int(node["stats"]) : int(node["stats"]) + tried]
    mass = min(1.0, sum(policy.get(move, 0.0) for move in moves[:tried]))
    mean = float(node["utility_sum"]) / float(node["weight_sum"])
    parent = mass**2 * mean + (1.0 - mass**2) * float(node["own_utility"])
    urgency = parent - float(p["root_fpu_reduction"]) * math.sqrt(mass)
    scale = (PUCT["human_c_puct"] + PUCT["human_c_puct_permanent"] * math.sqrt(total)) * math.sqrt(total + 0.01)
    values = {}
    for slot, move in enumerate(moves):
        if tree.banned[move]:
            continue
        weight = float(stats[slot]["weight"]) if slot < tried else 0.0
        utility = float(stats[slot]["utility"]) if slot < tried else urgency
        values[move] = utility + scale * policy.get(move, 0.0) / (1.0 + weight)
    return max(values, key=lambda move: values[move])


@looped("seed", range(20))
def test_the_slot_is_that_of_the_slow_twin(seed: int) -> None:
    rng = np.random.default_rng(seed)
    moves = [move for move in (*BOARD.points, PASS) if move != BOARD.parse_vertex("C3")]
    policy = dict(zip(moves, rng.dirichlet(np.full(len(moves), 0.2)).tolist(), strict=True))
    banned = tuple(rng.choice(moves, 3, replace=False).tolist())
    search = searched(policy, int(rng.integers(2, 300)), banned, human_root_weightful=1.0, **PUCT)
    tree = search.tree
    node = tree.nodes[int(tree.counters[0].root)]
    first = int(node["stats"])
    total = float(tree.stats[first : first + int(node["tried"])]["weight"].sum())
    expected = slow_slot(search, policy, total)
    slot = int(select_as_people(tree, node, total, np.uint64(node["visits"])))
    assert edges_of(tree, int(tree.counters[0].root))[slot][0] == expected
    assert slot <= int(node["tried"])
    assert not {move.move for move in search.report().moves} & set(banned)
    check_tree(search)


def test_the_share_of_the_visits() -> None:
    search = searched({BOARD.points[0]: 1.0}, human_root_weightless=0.3, human_root_weightful=0.1)
    tree = search.tree
    node = tree.nodes[int(tree.counters[0].root)]
    chosen = [int(select_as_people(tree, node, 100.0, np.uint64(turn))) >= 0 for turn in range(10_000)]
    assert np.mean(chosen) == pytest.approx(0.4, abs=0.02)


def test_moves_of_people_get_visits_and_weightless_ones_leave_the_root_alone() -> None:
    plain = searched({}).report()
    seldom = min(plain.moves, key=lambda move: (move.visits, move.utility)).move
    for name in ("human_root_weightless", "human_root_weightful"):
        search = searched({seldom: 1.0}, **{name: 0.5}, human_c_puct=1.0, human_c_puct_permanent=2.0)
        report, root = search.report(), search.tree.nodes[int(search.tree.counters[0].root)]
        found = next(move for move in report.moves if move.move == seldom)
        assert report.visits == 400
        assert found.visits > dict(plain.counts)[seldom] + 100
        mean = float(root["utility_sum"] / root["weight_sum"])
        if name == "human_root_weightful":
            assert report.utility == pytest.approx(mean)
        else:
            assert report.moves[0].move != seldom
            assert found.wanted < 0.2 * found.weight
            assert report.utility != pytest.approx(mean, abs=1e-3)
            assert report.utility == pytest.approx(plain.utility, abs=0.05)
        check_tree(search)


def test_without_a_policy_nothing_changes() -> None:
    reports = [searched(policy, human_root_weightless=share).report() for policy, share in (({}, 0.0), ({}, 0.9))]
    assert reports[0].counts == reports[1].counts
    search = searched({BOARD.points[0]: 1.0}, human_root_weightless=0.9)
    search.imitate({})
    assert not search.tree.human.any()

"""The evaluation cache, in both forms: by policy index, and in the order of a position's moves."""

from typing import Any

import numpy as np
import pytest

from tests.fakes.evaluators import ScriptedEvaluator
from yomi.engine.evaluators.queue import InlineQueue
from yomi.engine.search.search import Search
from yomi.engine.search.types import Limits, SearchSettings
from yomi.engine.shogi.game import ShogiGame
from yomi.native.shogi.spec import shogi_spec
from yomi.native.tree.arrays import VALUES, Tree, make_tree
from yomi.native.tree.cache import probe_cache, store_cache

POLICY, ROOM = 30, 6
NUMBERS = np.arange(VALUES, dtype=np.float32) + np.float32(0.5)


def small_tree(in_order: bool, entries: int = 4) -> Tree:
    size = entries * (4 * ROOM + 32 if in_order else 2 * POLICY + 32)
    tree = make_tree(2**16, 10.0, size, POLICY, ROOM if in_order else 0)
    assert tree.cache_keys.size == entries
    return tree


def store(tree: Tree, key: int, moves: list[int], priors: list[float]) -> None:
    store_cache(tree, np.uint64(key), np.array(moves, np.uint16), len(moves), np.array(priors, np.float32), NUMBERS)


def probe(tree: Tree, key: int, moves: list[int]) -> tuple[Any, Any] | None:
    priors, values = np.zeros(POLICY, np.float32), np.zeros(VALUES, np.float32)
    found = probe_cache(tree, np.uint64(key), np.array(moves, np.uint16), len(moves), priors, values)
    return (priors[: len(moves)], values) if found else None


@pytest.mark.parametrize("in_order", [False, True])
def test_what_was_stored_is_found(in_order: bool) -> None:
    tree = small_tree(in_order)
    store(tree, 5, [3, 29, 7], [0.5, 0.25, 0.25])
    for _ in range(2):
        priors, values = probe(tree, 5, [3, 29, 7]) or (None, None)
        np.testing.assert_allclose(priors, [0.5, 0.25, 0.25], atol=1e-4)
        assert values.tolist() == NUMBERS.tolist()
        store(tree, 6, list(range(ROOM)), [1 / ROOM] * ROOM)  # in another place, and full
    assert probe(tree, 6, list(range(ROOM))) is not None
    assert probe(tree, 9, [3, 29, 7]) is None
    store(tree, 9, [1], [1.0])  # in the same place
    assert probe(tree, 5, [3, 29, 7]) is None
    assert probe(tree, 9, [1]) is not None


def test_by_index_the_order_does_not_matter() -> None:
    tree = small_tree(False)
    store(tree, 5, [3, 29, 7], [0.5, 0.3, 0.2])
    found = probe(tree, 5, [7, 3])  # one is no longer legal
    assert found is not None
    np.testing.assert_allclose(found[0], [2 / 7, 5 / 7], atol=1e-4)


@pytest.mark.parametrize("moves", [[3, 7, 29], [3, 29], [3, 29, 7, 8], [3, 29, 8], list(range(ROOM + 1))])
def test_other_moves_under_the_same_key_are_another_position(moves: list[int]) -> None:
    tree = small_tree(True)
    store(tree, 5, [3, 29, 7], [0.5, 0.3, 0.2])
    assert probe(tree, 5, moves) is None


def test_too_many_moves_are_not_kept() -> None:
    tree = small_tree(True)
    store(tree, 5, [3, 29, 7], [0.5, 0.3, 0.2])
    store(tree, 1, list(range(ROOM + 1)), [0.1] * (ROOM + 1))
    assert probe(tree, 5, [3, 29, 7]) is not None


def test_shogi_finds_transpositions() -> None:
    reports = []
    for cache_size in (0, 2**22):
        plain = {"workers": 1, "graph": False, "symmetry": "none", "seed": 1, "ownership": False}
        settings = SearchSettings(memory=2**22, cache_size=cache_size, c_puct=3.0, **plain)
        search = Search(shogi_spec(), InlineQueue(ScriptedEvaluator()), settings)
        search.set_position(ShogiGame("4k4/9/9/9/9/9/9/9/4K4 b G 1"))
        reports.append(search.run(Limits(playouts=2000)))
    assert reports[0].evaluations - reports[1].evaluations > 100
    assert {m.move: m.visits for m in reports[0].moves} == {m.move: m.visits for m in reports[1].moves}

"""Searches for tests, and reading a tree's arrays without kernels."""

from collections import Counter
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from yomi.engine.evaluators.queue import EvaluationQueue, InlineQueue
from yomi.engine.go.game import GoGame
from yomi.engine.go.points import square
from yomi.engine.go.rules import PRESETS
from yomi.engine.search.search import Search
from yomi.engine.search.types import SearchSettings
from yomi.native.go.spec import go_spec
from yomi.native.tree import arrays
from yomi.native.tree.arrays import EXPANDED, NONE, PENDING, TERMINAL, Tree
from yomi.native.tree.expansion import DROPPED

SMALL = 16 * 2**20


def new_game(size: int = 9, line: str = "", rules: str = "tromp-taylor", komi: float = 7.0) -> GoGame:
    """Return a game after the vertices of `line`, in turn."""
    game = GoGame(square(size), PRESETS[rules], komi)
    for vertex in line.split():
        game.play(game.side_to_move, square(size).parse_vertex(vertex))
    return game


def new_search(evaluator: Any, size: int = 9, **settings: Any) -> Search:
    """Return a search with one worker, a small tree and no cache, but for what `settings` say otherwise.

    `evaluator` is an evaluator or an evaluation queue.
    """
    queue: EvaluationQueue = evaluator if hasattr(evaluator, "submit") else InlineQueue(evaluator)
    chosen = {"workers": 1, "memory": SMALL, "cache_size": 0, "symmetry": "none", "seed": 1, **settings}
    return Search(go_spec(size), queue, SearchSettings(**chosen))


def search_at(evaluator: Any, size: int = 9, line: str = "", **settings: Any) -> Search:
    """Return a search by `new_search` at the position after the vertices of `line`."""
    search = new_search(evaluator, size, **settings)
    search.set_position(new_game(size, line))
    return search


def edges_of(tree: Tree, index: int) -> list[tuple[int, int]]:
    """Return (move, prior of 65535) of a node's edges, the tried ones first."""
    node = tree.nodes[index]
    first = int(node["edges"])
    return [(int(edge) & 0xFFFF, int(edge) >> 16) for edge in tree.edges[first : first + int(node["edge_count"])]]


def shape_of(tree: Tree, index: int | None = None) -> dict[str, Any]:
    """Return a node (the root by default) and all below it: visits, state, number of legal moves, children by move."""
    index = int(tree.counters[0].root) if index is None else index
    node = tree.nodes[index]
    first = int(node["stats"])
    children = {}
    for slot, (move, _) in enumerate(edges_of(tree, index)[: int(node["tried"])]):
        stat = tree.stats[first + slot]
        if stat["child"] != NONE:
            children[move] = (int(stat["visits"]), shape_of(tree, int(stat["child"])))
    state = {PENDING: "pending", EXPANDED: "expanded", TERMINAL: "terminal"}.get(int(node["state"]), "untouched")
    return {"visits": int(node["visits"]), "state": state, "legal": int(node["legal"]), "children": children}


def contents_of(tree: Tree, index: int | None = None, *, min_visits: int = 0) -> dict[str, Any]:
    """Return everything that a subtree says, independent of where in the pools it stands.

    Children with fewer than `min_visits` visits are left out, as `compact` leaves them out; their edges stay.
    """
    index = int(tree.counters[0].root) if index is None else index
    node = tree.nodes[index]
    places = {"edges", "stats", "next"}
    tried = []
    for slot, (move, prior) in enumerate(edges_of(tree, index)[: int(node["tried"])]):
        stat = tree.stats[int(node["stats"]) + slot]
        child = int(stat["child"])
        kept = child != NONE and tree.nodes[child]["visits"] >= min_visits and tree.nodes[child]["state"] != PENDING
        below = contents_of(tree, child, min_visits=min_visits) if kept else None
        kept_by_edge = [stat[name].item() for name in stat.dtype.names if name != "child"]
        tried.append((move, prior, *kept_by_edge, below))
    return {
        **{name: node[name].item() for name in node.dtype.names if name not in places},
        "tried": tried,
        "untried": edges_of(tree, index)[int(node["tried"]) :],
    }


def check_tree(search: Search, *, pruned: bool = False) -> int:
    """Assert that everything in a quiet tree hangs together; return the number of nodes.

    Args:
        search: the search; its threads have ended.
        pruned: nodes were dropped for want of memory, so that an edge may have visits that nothing below accounts for.
    """
    tree = search.tree
    assert not tree.nodes["lock"].any(), "a lock is held"
    assert not tree.counters[0].stats_lock, "a lock is held"
    assert tree.counters[0].node_top <= len(tree.nodes)
    assert tree.counters[0].edge_top <= len(tree.edges)
    assert tree.counters[0].stats_top <= len(tree.stats)
    edge_owners = np.zeros(len(tree.edges), np.int32)
    stats_owners = np.zeros(len(tree.stats), np.int32)
    root = int(tree.counters[0].root)
    waiting, seen = [root], set[int]()
    edges_to = Counter[int]()
    while waiting:
        index = waiting.pop()
        edges_to[index] += 1
        if index in seen:
            continue
        seen.add(index)
        node = tree.nodes[index]
        assert index < tree.counters[0].node_top
        assert node["state"] in (EXPANDED, TERMINAL), f"node {index} is in state {node['state']}"
        edge_owners[int(node["edges"]) : int(node["edges"]) + int(node["edge_count"])] += int(node["edge_count"] > 0)
        if node["tried"]:
            first = int(node["stats"])
            stats_owners[first : first + (1 << (int(node["tried"]) - 1).bit_length())] += 1
        waiting += children_of(tree, index)
    assert search.settings.graph or max(edges_to.values()) == 1, "two edges lead to one node"
    for index in seen:
        check_node(tree, index, shares=search.settings.graph, pruned=pruned, drops=search.spec.root_decides)
    assert edge_owners.max() <= 1
    assert not edge_owners[int(tree.counters[0].edge_top) :].any()
    for size_class in range(arrays.STATS_CLASSES):
        head = int(tree.counters[0].free_stats[size_class])
        while head != NONE:
            stats_owners[head : head + (1 << size_class)] += 1
            head = int(tree.stats[head]["child"])
    assert stats_owners.max() <= 1, "two nodes share statistics, or a free block is in use"
    assert not stats_owners[int(tree.counters[0].stats_top) :].any()
    return len(seen)


def children_of(tree: Tree, index: int) -> list[int]:
    """Return the nodes that a node's edges lead to."""
    node = tree.nodes[index]
    children = tree.stats["child"][int(node["stats"]) :][: int(node["tried"])] if node["tried"] else ()
    return [int(child) for child in children if child != NONE]


def path_to(tree: Tree, index: int) -> tuple[npt.NDArray[np.uint32], npt.NDArray[np.uint16], int]:
    """Return a path from the root to a node, the edges between, and how many these are."""
    waiting = [([int(tree.counters[0].root)], list[int]())]
    for path, slots in waiting:
        if path[-1] == index:
            return np.array(path, np.uint32), np.array(slots, np.uint16), len(slots)
        node = tree.nodes[path[-1]]
        for slot in range(int(node["tried"])):
            child = int(tree.stats[int(node["stats"]) + slot]["child"])
            if child != NONE:
                waiting.append(([*path, child], [*slots, slot]))
    raise AssertionError(f"no line leads to node {index}")


def check_node(tree: Tree, index: int, *, shares: bool, pruned: bool, drops: bool = False) -> None:
    """Assert that a node agrees with its edges and children, which others may share (`shares`).

    `drops`: a pruned tree has lost finished games, which the edges above their parents still count.
    """
    node = tree.nodes[index]
    edges = edges_of(tree, index)
    tried = int(node["tried"])
    priors = [prior / 65535 for _, prior in edges]
    assert len({move for move, _ in edges}) == len(edges)
    if edges:
        dropped = DROPPED if len(edges) < node["legal"] else 0.0
        assert -dropped < sum(priors) - 1.0 + 0.51 * len(edges) / 65535 + 1e-6
        assert sum(priors) - 1.0 < 0.51 * len(edges) / 65535 + 1e-6
    if tried < len(edges) and not tree.counters[0].bans:
        assert priors[tried] == max(priors[tried:]), "the next edge to try has not the greatest prior"
    visits = 1
    sums = dict.fromkeys(("weight", "utility", "value", "score"), 0.0)
    for slot in range(tried):
        stat = tree.stats[int(node["stats"]) + slot]
        assert stat["in_flight"] & arrays.IN_FLIGHT == 0
        visits += int(stat["visits"])
        if stat["child"] == NONE:
            assert pruned
            continue
        child = tree.nodes[int(stat["child"])]
        knows_all = stat["visits"] == child["visits"]
        # a visit to a proven node may count at the edge alone: see yomi.native.tree.descent._says_more
        is_counted_above = (drops and pruned) or (shares and child["proof"])
        assert knows_all or is_counted_above or (shares and stat["visits"] < child["visits"])
        if stat["in_flight"] & arrays.LOST_EDGE:
            assert stat["weight"] == 0.0
            continue
        counted = float(stat["weight"]) * float(stat["share"])
        if knows_all:
            assert stat["weight"] == pytest.approx(child["weight_sum"], rel=1e-6)
        for name in ("utility", "value", "score"):
            if knows_all:
                assert stat[name] == pytest.approx(-child[f"{name}_sum"] / child["weight_sum"], abs=1e-4)
            sums[name] += counted * float(stat[name])
        sums["weight"] += counted
    if node["state"] == EXPANDED and not pruned:
        assert node["visits"] == visits
        assert node["weight_sum"] == pytest.approx(sums["weight"] + float(node["own_weight"]), rel=1e-5)
        if not node["proof"]:
            own = float(node["own_weight"]) * (float(node["own_utility"]) + float(node["own_bias"]))
            assert node["utility_sum"] == pytest.approx(sums["utility"] + own, abs=1e-3)

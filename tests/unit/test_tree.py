"""The tree's kernels against their slow twin, and what must hold in every tree."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tests.fakes.evaluators import ScriptedEvaluator, opinion
from tests.naive import tree_search as naive
from tests.unit.trees import (
    check_tree,
    children_of,
    contents_of,
    edges_of,
    new_game,
    new_search,
    path_to,
    search_at,
    shape_of,
)
from yomi.engine.evaluators.kernel_evaluators import UniformEvaluator
from yomi.engine.go.points import square
from yomi.engine.search.search import MAX_NODE_VISITS, Search
from yomi.engine.search.types import Limits, RootMoves
from yomi.native.go.board import BLACK, PASS, WHITE
from yomi.native.go.planes import policy_index
from yomi.native.go.spec import go_spec
from yomi.native.jit import kernel
from yomi.native.spec import Inputs
from yomi.native.tree import arrays
from yomi.native.tree.arrays import LEAD, NONE, SCORE, STDEV
from yomi.native.tree.backup import back_up
from yomi.native.tree.edges import edge_move
from yomi.native.tree.report import find_child
from yomi.native.tree.search import dynamic_utility

SETTINGS: dict[str, dict[str, Any]] = {
    "usual": {},
    "value only": {"score_utility": 0.0, "dynamic_score_utility": 0.0},
    "score": {"score_utility": 0.7, "dynamic_score_utility": 0.9},
    "wide": {"c_puct": 2.5, "c_puct_log": 2.0, "c_puct_base": 20.0, "fpu_reduction": 0.0, "root_fpu_reduction": 0.4},
    "root": {"root_c_puct": 2.5, "root_c_puct_base": 20.0, "c_puct_log": 2.0, "fpu_from_mean": True},
    "temperature": {"policy_temperature": 0.6, "root_policy_temperature": 2.0, "fpu_reduction": 0.6},
    "rollouts": {"fpu_from_mean": True, "spread_scale": 0.0},
    "weighed": {"noise_pruning": 0.15, "value_weighting": 0.25},
    "plain": {"uncertainty": False, "bias_correction": 0.0},
    "tree": {"graph": False},
    "noisy": {"wide_root_noise": 0.2},
}


@kernel
def back_up_often(tree, path, slots, depth, times):  # type: ignore[no-untyped-def]
    """Back up two results in turn, each `times` times."""
    for _ in range(times):
        back_up(tree, path, slots, depth, arrays.EXPANDED, 0.9, 0.9, 30.0, 4.0, 1.0, 0)
        back_up(tree, path, slots, depth, arrays.EXPANDED, 0.1, 0.1, 10.0, 4.0, 1.0, 0)


def twins(size: int, line: str = "", rules: str = "tromp-taylor", **settings: Any) -> tuple[Search, naive.SlowSearch]:
    """Return the search and its twin at the same position."""
    search = new_search(ScriptedEvaluator(), size, **settings)
    game = new_game(size, line, rules)
    search.set_position(game)

    def said(key: int) -> tuple[np.ndarray, np.ndarray]:
        return opinion(key, 0, size * size + 1, 0)[:2]

    return search, naive.SlowSearch(game.position, game.history, search.settings, said)


@pytest.mark.parametrize("name", SETTINGS)
@pytest.mark.parametrize(("size", "line"), [(5, "C3 B2 C2"), (9, "E5 C4 G6 E3 D3 F4")])
def test_the_tree_is_that_of_the_slow_twin(size: int, line: str, name: str) -> None:
    search, twin = twins(size, line, **SETTINGS[name])
    search.run(Limits(playouts=200))
    twin.run(200)
    assert shape_of(search.tree) == naive.shape_of(twin.root)
    root = search.tree.nodes[search.tree.counters[0].root]
    for field in ("utility_sum", "value_sum", "score_sum", "utility_variance", "score_variance"):
        assert root[field] == pytest.approx(getattr(twin.root, field), rel=1e-4, abs=1e-4)
    assert check_tree(search) == search.tree.counters[0].node_top


def test_moves_that_had_no_edge_are_tried_in_the_end() -> None:
    search, twin = twins(2, "A1", c_puct=400.0, policy_temperature=0.25, root_policy_temperature=0.25)
    search.run(Limits(playouts=2500))
    twin.run(2500)
    assert shape_of(search.tree) == naive.shape_of(twin.root)
    below = [edge.child for edge in twin.root.edges if edge.child is not None]
    below += [edge.child for node in below for edge in node.edges if edge.child is not None]
    assert any(node.without for node in below)
    assert any(edge.exact == 0.0 and edge.visits for node in below for edge in node.edges)


def test_the_search_goes_on_as_the_slow_twin_does() -> None:
    search, twin = twins(5, "C3 B2")
    for playouts in (60, 1, 140):
        search.run(Limits(playouts=playouts))
        twin.run(playouts)
        assert shape_of(search.tree) == naive.shape_of(twin.root)
    assert search.tree.counters[0].score_center == pytest.approx(twin.center, rel=1e-4)
    assert twin.center != 0


class CertainEvaluator(ScriptedEvaluator):
    """Says everywhere that the game ends as it stands, give or take five points."""

    def evaluate(self, batch: Any, rows: int) -> None:
        super().evaluate(batch, rows)
        batch.values[:, SCORE] = batch.values[:, LEAD]
        batch.values[:, STDEV] = 5.0


def root_utility(search: Search) -> float:
    node = search.tree.nodes[search.tree.counters[0].root]
    return float(node["utility_sum"]) / float(node["weight_sum"])


@pytest.mark.parametrize("moves", [0, 1, 2])
def test_utilities_are_counted_anew_from_the_center_of_the_root(moves: int) -> None:
    # what the root's utility would be had every evaluation below it been judged from the new center at once
    settings = {"dynamic_score_utility": 0.9, "uncertainty": False, "bias_correction": 0.0, "graph": False}
    search = new_search(CertainEvaluator(), 9, **settings)
    game = new_game(9, "E5 C4 G6")
    search.set_position(game)
    report = search.run(Limits(playouts=1500))
    for move in report.moves[0].pv[:moves]:
        game.play(game.side_to_move, move)
    search.set_position(game)
    before, stale = float(search.tree.counters[0].score_center), root_utility(search)
    search.run(Limits(playouts=0))
    center, recounted = float(search.tree.counters[0].score_center), root_utility(search)
    assert abs(center - before) > 1
    exact = stale + np.mean(changes_of_center(search, before, center))
    assert abs(recounted - stale) > 0.02
    assert recounted == pytest.approx(exact, abs=0.05 * abs(exact - stale))
    check_tree(search)


def changes_of_center(search: Search, before: float, center: float) -> list[float]:
    """Return what another center changes of each evaluation's utility in the tree, for the root's side."""
    tree = search.tree
    root = int(tree.counters[0].root)
    signs = {root: 1}
    changes = []
    for index in range(int(tree.counters[0].node_top)):  # without a graph, parents stand before their children
        node = tree.nodes[index]
        below = children_of(tree, index)
        signs |= dict.fromkeys(below, -signs[index])
        score = float(node["score_sum"]) + sum(float(tree.nodes[child]["score_sum"]) for child in below)
        # a node's own evaluation is what its children do not account for
        after, former = (dynamic_utility(tree, score, 5.0, signs[index] * side) for side in (center, before))
        changes.append(signs[index] * (after - former))
    return changes


@pytest.mark.parametrize("rules", ["tromp-taylor", "chinese"])
def test_finished_games_are_leaves(rules: str) -> None:
    # one side has just passed on a small board, so that many lines end
    search, twin = twins(2, "A1 pass", rules)
    search.run(Limits(playouts=400))
    twin.run(400)
    shape = shape_of(search.tree)
    assert shape == naive.shape_of(twin.root)
    visits, after_pass = shape["children"][PASS]
    assert after_pass == {"visits": visits, "state": "terminal", "legal": 0, "children": {}}
    assert visits > 1
    check_tree(search)
    best = next(move for move in search.report().moves if move.move == PASS)
    assert best.score_lead == 4 - 7
    assert best.score_stdev == pytest.approx(0, abs=1e-6)
    assert best.winrate == 0


def test_a_finished_game_that_is_being_backed_up_elsewhere_is_left_to_that_thread() -> None:
    search = search_at(ScriptedEvaluator(), 2, "A1 pass")
    search.run(Limits(visits=2), RootMoves(allow=[PASS]))
    tree = search.tree
    stat = tree.stats[int(tree.nodes[tree.counters[0].root]["stats"])]
    node = tree.nodes[int(stat["child"])]
    assert (node["state"], node["visits"], node["value_sum"]) == (arrays.TERMINAL, 1, 8.0)
    tree.counters[0].stop, tree.counters[0].claim_limit = 0, 100
    for visits in (0, 1):  # before the other thread has counted its visit, and after
        node["state"] = arrays.TERMINAL if visits else arrays.PENDING
        node["visits"] = node["value_sum"] = node["weight_sum"] = node["own_weight"] = stat["visits"] = visits
        assert search._searcher(0, search._make_batch(1)).advance(0) == 0
        assert node["visits"] == stat["visits"] == (99 if visits else 0)
        assert node["value_sum"] == node["weight_sum"]
        assert stat["in_flight"] == 0


def test_an_evaluator_that_can_scores_what_players_agree_on() -> None:
    usual, twin = twins(2, "A1 pass", "chinese")
    search = Search(go_spec(2, judges_agreement=True), usual.queue, usual.settings)
    search.set_position(new_game(2, "A1 pass", "chinese"))
    twin.position["judges_agreement"] = 1
    search.run(Limits(playouts=400))
    twin.run(400)
    shape = shape_of(search.tree)
    assert shape == naive.shape_of(twin.root)
    assert shape["children"][PASS][1]["state"] == "terminal"
    best = next(move for move in search.report().moves if move.move == PASS)
    assert best.score_lead != 4 - 7
    # Tromp and Taylor's rules know no agreement
    search.set_position(new_game(2, "A1 pass"))
    search.run(Limits(playouts=400))
    best = next(move for move in search.report().moves if move.move == PASS)
    assert best.score_lead == 4 - 7


def test_banned_moves_are_not_tried() -> None:
    search, twin = twins(5, "C3")
    points = square(5).points
    avoid, allow = [*points[:7], PASS], points[4:20]
    twin.banned = set(avoid)
    for _ in range(2):  # the tree is kept while the bans are the same
        search.run(Limits(playouts=60), RootMoves(avoid=avoid))
        twin.run(60)
        assert shape_of(search.tree) == naive.shape_of(twin.root)
    assert not {move.move for move in search.report().moves} & set(avoid)
    weight = sum(edge.weight for edge in twin.root.edges)
    wanted = twin.exploration(twin.root) * twin.prior_factor(twin.root)
    assert search.root.exploration(weight) == pytest.approx(wanted, rel=1e-5)
    search.run(Limits(playouts=120), RootMoves(avoid=points[10:12], allow=allow))
    twin = twins(5, "C3")[1]
    twin.banned = {*points, PASS} - set(allow) | set(points[10:12])
    twin.run(120)
    assert shape_of(search.tree) == naive.shape_of(twin.root)
    assert {move.move for move in search.report().moves} <= set(allow) - set(points[10:12])
    search.run(Limits(playouts=120))
    twin = twins(5, "C3")[1]
    twin.run(120)
    assert shape_of(search.tree) == naive.shape_of(twin.root)
    check_tree(search)


def test_moves_are_banned_below_the_root() -> None:
    board = square(5)
    game = new_game(5, "C3")  # White to move
    search = new_search(ScriptedEvaluator(4), 5, graph=True)
    points = {*board.points, PASS}
    below = {WHITE: dict.fromkeys(board.points[:12], 5), BLACK: dict.fromkeys(points - set(board.points[12:]), 4)}
    for bans in (below, {}, below):
        search.set_position(game)
        search.ban_below(bans)
        search.run(Limits(playouts=3000))
        used = moves_by_depth(search)
        for depth, moves in used.items():
            until = bans.get(WHITE if depth % 2 == 0 else BLACK, {})
            banned = {move for move, most in until.items() if 0 < depth < most}
            assert not moves & banned, depth
            if bans and depth == 5:
                assert moves & set(board.points[:12])  # no longer banned
        assert used[2] & set(board.points[:12]) or bans
        check_tree(search)


def test_a_node_without_a_move_that_is_not_banned_is_evaluated_again() -> None:
    search = search_at(ScriptedEvaluator(4), 5, "C3")
    search.ban_below({BLACK: dict.fromkeys([*square(5).points, PASS], 2)})
    report = search.run(Limits(playouts=500))
    assert report.visits == 500
    assert all(len(move.pv) == 1 for move in report.moves)


def test_a_move_gets_visits_in_the_tree_that_is_there() -> None:
    search = search_at(ScriptedEvaluator(4), 5, "C3")
    before = search.run(Limits(playouts=400))
    seldom = before.moves[-1].move
    usual = dict(before.counts)
    search.raise_visits({seldom: 150})
    report = search.run(Limits(playouts=400))
    assert report.visits == 800
    counts = dict(report.counts)
    assert 150 <= counts[seldom] <= 155
    assert all(counts[move] >= usual[move] for move in usual)
    best = before.moves[0].move
    assert counts[best] > usual[best] + 50  # the others are searched, too
    plain = search_at(ScriptedEvaluator(4), 5, "C3")
    assert report.utility == pytest.approx(plain.run(Limits(playouts=800)).utility, abs=0.05)
    check_tree(search)
    search.set_position(new_game(5, f"C3 {square(5).vertex(best)}"))
    assert not search.tree.goals.any()


def test_a_move_that_was_never_tried_gets_visits() -> None:
    search = search_at(ScriptedEvaluator(4), 5)
    untried = set(square(5).points) - {move.move for move in search.run(Limits(playouts=20)).moves}
    chosen = min(untried)
    search.raise_visits({chosen: 30})
    search.run(Limits(playouts=100), RootMoves(prune=sorted(untried - {chosen})))
    assert dict(search.report().counts)[chosen] >= 30


def moves_by_depth(search: Search) -> dict[int, set[int]]:
    """Return the tried moves of all nodes by their distance from the root."""
    tree, found = search.tree, dict[int, set[int]]()
    level = {int(tree.counters[0].root)}
    for depth in range(8):
        below = set()
        for number in level:
            node = tree.nodes[number]
            tried = slice(int(node["edges"]), int(node["edges"]) + int(node["tried"]))
            found.setdefault(depth, set()).update(edge_move(edge) for edge in tree.edges[tried].tolist())
            stats = tree.stats[int(node["stats"]) : int(node["stats"]) + int(node["tried"])]
            below |= {child for child in stats["child"].tolist() if child < NONE - 1}
        level = below
    return found


def test_ownership_is_known_below_each_root_move() -> None:
    class Owner(ScriptedEvaluator):
        """The first point belongs to Black after Black's stone there, otherwise to nobody."""

        def evaluate(self, batch: Any, rows: int) -> None:
            super().evaluate(batch, rows)
            batch.ownership[:rows] = 0.0
            taken = batch.positions["color"][:rows, square(5).points[0]] == BLACK
            black = batch.positions["side_to_move"][:rows] == BLACK
            batch.ownership[:rows, 0] = np.where(taken, np.where(black, 1.0, -1.0), 0.0)
            batch.values[:rows, arrays.NO_RESULT] = np.where(taken, 0.25, 0.75)

    evaluator = Owner(4)
    evaluator.inputs = Inputs.POSITIONS
    search = search_at(evaluator, 5, move_ownership=True, graph=False)
    for _ in range(2):  # the search continues
        report = search.run(Limits(playouts=150), RootMoves(allow=square(5).points[:3]))
        for move in report.moves:
            owners = move.owners
            assert owners is not None
            share = float(owners.mean[0])
            assert share > 0.9 if move.move == square(5).points[0] else share < 0.5  # the stone may be captured
            assert owners.stdev[0] == pytest.approx(math.sqrt(share - share * share), abs=1e-5)
            assert owners.no_result == pytest.approx(0.75 - 0.5 * share, abs=1e-5)
            assert not owners.mean[1:].any()
        assert report.ownership is not None
        assert report.ownership_stdev is not None
        mean = float(report.ownership[0])
        assert 0.0 < mean < 1.0
        assert report.ownership_stdev[0] == pytest.approx(math.sqrt(mean - mean * mean), abs=1e-5)


def test_bans_are_those_of_one_root() -> None:
    search = twins(5, "C3")[0]
    best = search.run(Limits(playouts=200), RootMoves(avoid=[PASS])).moves[0]
    kept = best.visits
    search.set_position(new_game(5, f"C3 {square(5).vertex(best.move)}"))
    assert search.run(Limits(playouts=1)).visits == kept + 1  # nothing is banned here, and the tree is kept
    check_tree(search)


def test_a_root_that_was_reached_has_the_roots_temperature() -> None:
    settings = {"policy_temperature": 0.8, "root_policy_temperature": 2.0}
    search = twins(5, "C3", **settings)[0]
    best = search.run(Limits(playouts=300)).moves[0].move
    line = f"C3 {square(5).vertex(best)}"
    search.set_position(new_game(5, line))
    fresh = twins(5, line, **settings)[0]
    fresh.run(Limits(playouts=1))
    root = int(fresh.tree.counters[0].root)
    wanted = dict(edges_of(fresh.tree, root))
    for _ in range(2):  # it is done once
        search.run(Limits(playouts=1))
        found = dict(edges_of(search.tree, int(search.tree.counters[0].root)))
        assert found.keys() == wanted.keys()
        assert max(abs(found[move] - wanted[move]) for move in wanted) <= 0.01 * 65535  # the least ones were made anew
    check_tree(search)


def test_a_low_temperature_leaves_priors_that_are_numbers() -> None:
    search = twins(5, "C3", root_policy_temperature=0.01)[0]
    best = search.run(Limits(playouts=300)).moves[0].move
    search.set_position(new_game(5, f"C3 {square(5).vertex(best)}"))
    search.run(Limits(playouts=1))
    priors = dict(edges_of(search.tree, int(search.tree.counters[0].root)))
    assert sum(priors.values()) == pytest.approx(65535, abs=len(priors))
    assert max(priors.values()) > 0.9 * 65535


def test_what_a_tree_has_counted_ends_with_its_settings() -> None:
    search = twins(5, "C3")[0]
    search.run(Limits(playouts=50))
    search.configure(replace(search.settings, c_puct=1.3))
    assert search.root_visits == 50
    search.configure(replace(search.settings, dynamic_score_utility=0.0))
    assert search.root_visits == 0


def test_a_node_counts_no_more_visits_than_it_can() -> None:
    search = twins(2, "A1 pass")[0]
    search.run(Limits(playouts=400))
    search.tree.nodes[search.tree.counters[0].root]["visits"] = MAX_NODE_VISITS - 100
    assert search.run(Limits(seconds=30.0)).visits == MAX_NODE_VISITS


def test_noise_is_mixed_into_the_priors() -> None:
    search, twin = twins(5, "C3", root_noise=0.4, root_noise_total=8.0, seed=5)
    search.run(Limits(playouts=200), RootMoves(noise=True))
    twin.run(1)
    before = {edge.move: edge.prior for edge in twin.root.edges}
    count = len(twin.root.edges)
    twin.add_noise(np.random.default_rng(np.random.SeedSequence(5)).dirichlet(np.full(count, 8.0 / count)))
    twin.order(twin.root)
    for _ in range(199):
        twin.playout()
    assert shape_of(search.tree) == naive.shape_of(twin.root)
    after = dict(edges_of(search.tree, 0))
    assert sum(after.values()) == pytest.approx(65535, abs=count)
    assert max(abs(after[move] - before[move]) for move in before) > 2000


def priors_of(search: Search) -> dict[int, int]:
    """Return the root's priors by move, and assert that their sum over the tried edges is right."""
    root = search.tree.nodes[search.tree.counters[0].root]
    edges = edges_of(search.tree, int(search.tree.counters[0].root))
    tried = sum(prior for _, prior in edges[: int(root["tried"])])
    assert float(root["tried_prior"]) == pytest.approx(tried / 65535, abs=1e-4)
    return dict(edges)


def test_each_search_has_noise_of_its_own() -> None:
    search = search_at(ScriptedEvaluator(), 5, "C3", root_noise=0.4, root_noise_total=8.0, seed=5)
    search.run(Limits(playouts=30))
    own = priors_of(search)
    count = len(own)
    generator = np.random.default_rng(np.random.SeedSequence(5))
    for playouts in (100, 1, 100):
        order = [move for move, _ in edges_of(search.tree, 0)]
        if priors_of(search) != own:  # the noise goes before the next comes, which moves the best untried edge
            search.run(Limits(playouts=0))
            order = [move for move, _ in edges_of(search.tree, 0)]
        search.run(Limits(playouts=playouts), RootMoves(noise=True))
        noise = dict(zip(order, generator.dirichlet(np.full(count, 8.0 / count)), strict=True))
        assert priors_of(search) == {move: int(own[move] * 0.6 + 65535 * 0.4 * noise[move] + 0.5) for move in own}
        check_tree(search)
    search.run(Limits(playouts=10))
    assert priors_of(search) == own
    check_tree(search)


def test_noise_ends_with_its_root() -> None:
    search = new_search(ScriptedEvaluator(), 5, root_noise=0.4)
    game = new_game(5, "C3")
    search.set_position(game)
    best = search.run(Limits(playouts=300), RootMoves(noise=True)).moves[0].move
    child = int(find_child(search.tree, best))
    own = dict(edges_of(search.tree, child))
    game.play(game.side_to_move, best)
    search.set_position(game)
    search.run(Limits(playouts=10))
    assert priors_of(search) == own


def completed(contents: dict[str, Any]) -> dict[str, Any]:
    """Return a node without what changes when it gets all of its edges."""
    return {name: value for name, value in contents.items() if name not in ("edge_count", "untried")}


def test_a_tree_moves_on_with_the_game() -> None:
    search = new_search(ScriptedEvaluator(), 5)
    game = new_game(5, "C3")
    search.set_position(game)
    search.run(Limits(playouts=800))
    while len(line := search.report().moves[0].pv) >= 2 and search.root_visits > 20:
        child = int(find_child(search.tree, line[0]))
        grandchild_visits = search.report().moves[0].pv_visits[1]
        before = contents_of(search.tree, child)
        others = search.tree.counters[0].node_top
        game.play(game.side_to_move, line[0])
        search.set_position(game)
        assert completed(contents_of(search.tree)) == completed(before)
        assert check_tree(search) == search.tree.counters[0].node_top < others
        assert search.root_visits == before["visits"] > grandchild_visits
    # and grows there as any other
    visits = search.root_visits
    report = search.run(Limits(visits=visits + 300))
    assert (report.visits, report.playouts) == (visits + 300, 300)
    check_tree(search)


def test_a_tree_moves_on_by_several_moves_at_once() -> None:
    search = new_search(ScriptedEvaluator(), 5)
    game = new_game(5)
    search.set_position(game)
    search.run(Limits(playouts=600))
    path = search.report().moves[0].pv[:2]
    index = int(search.tree.stats[0]["child"])
    for step, move in enumerate(path):
        game.play(game.side_to_move, move)
        index = int(find_child(search.tree, move)) if step == 0 else index
    visits = search.report().moves[0].pv_visits[1]
    search.set_position(game)
    assert search.root_visits == visits > 1
    check_tree(search)


@pytest.mark.parametrize("change", ["undo", "other move", "komi", "side"])
def test_a_tree_is_dropped_where_it_no_longer_applies(change: str) -> None:
    search = new_search(ScriptedEvaluator(), 5)
    game = new_game(5, "C3 B2")
    search.set_position(game)
    search.run(Limits(playouts=50))
    if change == "undo":
        game.undo()
    elif change == "other move":
        tried = {move.move for move in search.report().moves}
        game.play(game.side_to_move, next(move for move in game.legal_moves() if move not in tried))
    elif change == "komi":
        game.set_komi(0.5)
    else:
        game.turn_to(3 - game.side_to_move)
    search.set_position(game)
    assert search.root_visits == 0
    assert search.report().moves == ()
    report = search.run(Limits(playouts=50))
    assert report.visits == 50
    check_tree(search)


@pytest.mark.slow
def test_variances_are_right_after_millions_of_visits() -> None:
    search = search_at(UniformEvaluator(1), 5)
    search.run(Limits(playouts=1))
    root = search.tree.counters[0].root
    node = search.tree.nodes[root]
    back_up_often(search.tree, *path_to(search.tree, root), 3_000_000)
    assert node["visits"] == 6_000_001
    assert node["utility_variance"] == pytest.approx(0.16, rel=0.01)
    assert node["score_variance"] == pytest.approx(100 + 4, rel=0.01)


def test_evaluations_are_found_again_in_the_cache() -> None:
    plain = new_search(ScriptedEvaluator(), 3, c_puct=3.0)
    cached = new_search(ScriptedEvaluator(), 3, c_puct=3.0, cache_size=2**24)
    for search in (plain, cached):
        search.set_position(new_game(3))
        search.run(Limits(playouts=600))
        check_tree(search)
    assert plain.evaluations - cached.evaluations > 20
    assert {m.move: m.visits for m in cached.report().moves} == {m.move: m.visits for m in plain.report().moves}
    # the same position again, with an empty tree and a full cache: only the root is evaluated anew
    cached.set_position(new_game(3, "B2"))
    cached.set_position(new_game(3))
    report = cached.run(Limits(playouts=200))
    assert report.evaluations < 10
    cached.clear()
    cached.set_position(new_game(3))
    assert cached.run(Limits(playouts=200)).evaluations > 100


def test_the_cache_does_not_outlive_the_komi() -> None:
    cached = new_search(ScriptedEvaluator(), 5, cache_size=2**20)
    game = new_game(5)
    cached.set_position(game)
    cached.run(Limits(playouts=200))
    game.set_komi(0.5)
    cached.set_position(game)
    assert cached.run(Limits(playouts=200)).evaluations > 100


def test_symmetries_are_averaged() -> None:
    size = 5
    game = new_game(size, "C3 B2")
    evaluator = ScriptedEvaluator(3, asymmetrical=True)
    search = new_search(evaluator, size, symmetry="average")
    search.set_position(game)
    report = search.run(Limits(playouts=1))
    assert evaluator.rows == [8]
    moves = game.legal_moves()
    priors = np.zeros(len(moves))
    values = np.zeros(arrays.VALUES)
    owners = np.zeros((size, size))
    from yomi.native.go.rules import position_key

    key = int(position_key(game.position))
    for symmetry in range(8):
        logits, said, ownership = opinion(key, symmetry, size * size + 1, size * size)
        seen = np.exp([float(logits[policy_index(size, size, move, symmetry)]) for move in moves])
        priors += seen / seen.sum() / 8
        values += said / 8
        for point in square(size).points:
            y, x = point // (size + 1) - 1, point % (size + 1) - 1
            owners[y, x] += ownership[policy_index(size, size, point, symmetry)] / 8
    found = dict(edges_of(search.tree, 0))
    assert [found[move] / 65535 for move in moves] == pytest.approx(list(priors), abs=1e-5)
    assert report.winrate == pytest.approx(0.5 + 0.5 * values[arrays.VALUE], abs=1e-6)
    assert report.score_lead == pytest.approx(values[arrays.LEAD], abs=1e-5)
    assert report.ownership == pytest.approx(owners.ravel(), abs=1e-5)
    search.run(Limits(playouts=100))
    assert set(evaluator.rows) <= {8}
    check_tree(search)


def test_a_random_symmetry_is_undone() -> None:
    # the opinion is drawn for the board as seen, so priors differ from run to run but stay those of one symmetry
    size = 5
    game = new_game(size, "C3 B2")
    from yomi.native.go.rules import position_key

    key = int(position_key(game.position))
    moves = game.legal_moves()
    expected = []
    for symmetry in range(8):
        logits = opinion(key, symmetry, size * size + 1, 0)[0]
        seen = np.exp([float(logits[policy_index(size, size, move, symmetry)]) for move in moves])
        expected.append(seen / seen.sum())
    chosen = set()
    for seed in range(24):
        search = new_search(ScriptedEvaluator(asymmetrical=True), size, symmetry="random", seed=seed)
        search.set_position(game)
        search.run(Limits(playouts=1))
        found = dict(edges_of(search.tree, 0))
        distances = [np.abs([found[m] / 65535 for m in moves] - each).max() for each in expected]
        chosen.add(int(np.argmin(distances)))
        assert min(distances) < 1e-4
    assert len(chosen) > 3


def test_ownership_is_for_the_side_to_move_at_the_root() -> None:
    class Owner(ScriptedEvaluator):
        """The first point belongs to the side to move, the last to the other."""

        def evaluate(self, batch: Any, rows: int) -> None:
            super().evaluate(batch, rows)
            batch.ownership[:rows] = 0.0
            black = batch.positions["side_to_move"][:rows] == 1
            batch.ownership[:rows, 0] = np.where(black, 1.0, -1.0)
            batch.ownership[:rows, 24] = np.where(black, -0.5, 0.5)

    evaluator = Owner(4)
    evaluator.inputs = Inputs.POSITIONS
    for line, sign in (("", 1.0), ("C3", -1.0)):
        search = search_at(evaluator, 5, line)
        report = search.run(Limits(playouts=200))
        assert report.ownership is not None
        assert report.ownership[0] == pytest.approx(sign)
        assert report.ownership[24] == pytest.approx(-0.5 * sign)
        assert not report.ownership[1:24].any()

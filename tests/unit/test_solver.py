"""Proven results: what a finished game proves of the nodes above it, checked on small boards of Go."""

from typing import Any

import numpy as np
import pytest

from tests.fakes.evaluators import ScriptedEvaluator
from tests.looping import looped
from tests.naive.go_area import area_balance
from tests.unit.trees import check_node, edges_of, new_game, new_search, path_to
from yomi.engine.evaluators.kernel_evaluators import UniformEvaluator
from yomi.engine.go.game import GoGame
from yomi.engine.search.search import Search
from yomi.engine.search.types import Limits, RootMoves, SearchReport
from yomi.native.go import rules
from yomi.native.tree import arrays
from yomi.native.tree.arrays import EXPANDED, LOST_EDGE, NONE, TERMINAL, WON_EDGE
from yomi.native.tree.backup import back_up
from yomi.native.tree.report import find_child

SETTINGS: dict[str, Any] = {
    "solver": True,
    "graph": False,
    "score_utility": 0.0,
    "dynamic_score_utility": 0.0,
    "ownership": False,
}
"""Without a graph all edges have heard what is proven of their nodes; with it: tests/unit/test_graph.py."""


def solving(evaluator: Any, game: GoGame, **settings: Any) -> Search:
    search = new_search(evaluator, game.board.side, **{**SETTINGS, **settings})
    search.set_position(game)
    return search


def proof_of(search: Search, index: int, pos: Any, history: Any, *, full: bool = True) -> int:
    """Return what the tree below a node proves for its side to move, by the rules alone; assert that its edges say it.

    With `full` the means of proven nodes are checked as well, which hold where one thread has searched.
    """
    tree = search.tree
    node = tree.nodes[index]
    if node["state"] == TERMINAL:
        value = np.sign(area_balance(pos) - float(pos["komi"]))
        return int(value if pos["side_to_move"] == 1 else -value)
    if node["state"] != EXPANDED:
        return 0
    edges = edges_of(tree, index)
    marks = []
    for slot, (move, _) in enumerate(edges[: int(node["tried"])]):
        stat = tree.stats[int(node["stats"]) + slot]
        marks.append(1 if stat["in_flight"] & WON_EDGE else -1 if stat["in_flight"] & LOST_EDGE else 0)
        assert stat["in_flight"] & arrays.IN_FLIGHT == 0
        if stat["child"] == NONE:
            continue
        after = pos.copy()
        rules.play(after, history, move)
        below = proof_of(search, int(stat["child"]), after, history, full=full)
        assert marks[-1] == -below
        if full and below:
            child = tree.nodes[int(stat["child"])]
            assert child["utility_sum"] == child["value_sum"] == below * child["weight_sum"]
            assert stat["utility"] == -below
    if 1 in marks:
        return 1
    return -1 if len(marks) == len(edges) and set(marks) == {-1} else 0


def check_proofs(search: Search, game: GoGame, *, full: bool = True) -> SearchReport:
    """Assert that the tree proves what it says it proves; return the report."""
    root = int(search.tree.counters[0].root)
    proof = proof_of(search, root, game.position.copy(), game.history.copy(), full=full)
    report = search.report()
    assert report.proven == proof
    if proof and full:
        assert report.winrate == (1.0 if proof > 0 else 0.0)
    return report


def test_a_winning_pass_ends_the_search() -> None:
    # White has passed, Black owns the board: a pass wins
    game = new_game(3, "B2 pass", komi=0.5)
    search = solving(UniformEvaluator(1), game)
    report = search.run(Limits(visits=5000))
    assert check_proofs(search, game).proven == 1
    assert report.visits < 100
    assert (report.moves[0].proven, report.moves[0].winrate, report.moves[0].pv) == (1, 1.0, (report.moves[0].move,))
    assert [move.move for move in report.candidates] == [report.moves[0].move]
    # asked again it knows
    assert search.run(Limits(visits=5000)).playouts == 0
    # with that move banned the others are searched
    report = search.run(Limits(playouts=100), RootMoves(avoid=[report.moves[0].move]))
    assert report.playouts == 100
    assert report.proven == 0


@looped("line", ["A1 B2 pass", "A1 pass B1", "A1 B1 pass", "A1 B2 B1 pass"])
@looped("komi", [-3.5, 0.5, 3.5])
def test_small_boards_are_solved(line: str, komi: float) -> None:
    game = new_game(2, line, komi=komi)
    search = solving(ScriptedEvaluator(), game)
    report = search.run(Limits(visits=3000))
    report = check_proofs(search, game)
    for move in report.moves:
        assert move.proven in (-1, 0, 1)
        if move.proven:
            assert move.winrate == 0.5 + 0.5 * move.proven
    assert [move.proven for move in report.moves] == sorted((move.proven for move in report.moves), reverse=True)


def test_lost_moves_are_chosen_last() -> None:
    game = new_game(2, "A1", komi=0.5)
    search = solving(ScriptedEvaluator(), game, c_puct=3.0)
    search.run(Limits(visits=150))
    report = check_proofs(search, game)
    lost = [move for move in report.moves if move.proven < 0]
    assert report.proven == 0
    assert lost
    assert report.moves[0].proven == 0
    assert not set(report.candidates) & set(lost)
    visits = {move.move: move.visits for move in search.run(Limits(playouts=100)).moves}
    assert all(visits[move.move] == move.visits for move in lost)


def marks_of(tree: Any, index: int) -> tuple[Any, bool]:
    """Return which tried edges of a node are proven lost, and whether one is proven won."""
    node = tree.nodes[index]
    marks = tree.stats["in_flight"][int(node["stats"]) :][: int(node["tried"])]
    return (marks & LOST_EDGE) != 0, bool((marks & WON_EDGE).any())


@pytest.mark.parametrize("komi", [0.5, -3.5])
def test_lost_moves_are_left_out_of_the_mean(komi: float) -> None:
    search = solving(ScriptedEvaluator(), new_game(2, "A1", komi=komi), c_puct=3.0)
    tree = search.tree
    lost_before: dict[int, int] = {}
    checked = []
    while search.root_visits < 300 and search.run(Limits(playouts=1)).playouts:
        for index in np.flatnonzero(tree.nodes["state"][: tree.counters[0].node_top] == EXPANDED).tolist():
            node = tree.nodes[index]
            is_lost, is_won = marks_of(tree, index)
            lost = int(is_lost.sum())
            if lost > lost_before.get(index, 0) and not is_won and lost < node["legal"]:
                stats = tree.stats[int(node["stats"]) :][: int(node["tried"])][~is_lost]
                weights = stats["weight"].astype(np.float64) * stats["share"]
                own = node["own_weight"] * (node["own_utility"] + node["own_bias"])
                assert node["weight_sum"] == pytest.approx(node["own_weight"] + weights.sum(), abs=1e-3)
                assert node["utility_sum"] == pytest.approx(own + stats["utility"] @ weights, abs=1e-3)
                assert node["value_sum"] == pytest.approx(node["utility_sum"], abs=1e-6)
                checked.append(lost)
            lost_before[index] = lost
    assert max(checked) > 1
    for index, lost in lost_before.items():  # what was left out below has left the sums above as well
        if lost == 0 and not marks_of(tree, index)[1]:
            check_node(tree, index, shares=False, pruned=False)


def test_visits_from_before_a_node_was_pruned_stay_in_its_mean() -> None:
    search = solving(ScriptedEvaluator(), new_game(3, "B2 A1", komi=0.5))
    search.run(Limits(visits=50))
    tree = search.tree
    index = int(tree.counters[0].root)
    node = tree.nodes[index]
    stat = tree.stats[int(node["stats"])]
    assert not marks_of(tree, index)[0].any()
    node["visits"] += 10_000
    node["weight_sum"] += 10_000.0
    node["utility_sum"] += 3000.0
    stat["in_flight"] += 1
    back_up(tree, *path_to(tree, int(stat["child"])), TERMINAL, 1.0, 1.0, 0.0, 0.0, 1.0, 1)
    assert marks_of(tree, index)[0].sum() == 1
    assert node["utility_sum"] / node["weight_sum"] == pytest.approx(0.3, abs=0.01)


def late_playouts() -> tuple[Search, list[int]]:
    """Return a searched tree without proofs, and the nodes of a line in it: the root, and thrice the most visited."""
    settings = {"solver": False, "uncertainty": False, "bias_correction": 0.0}
    search = solving(ScriptedEvaluator(), new_game(5, "C3"), **settings)
    search.run(Limits(visits=2000))
    tree = search.tree
    line = [int(tree.counters[0].root)]
    for _ in range(3):
        node = tree.nodes[line[-1]]
        stats = tree.stats[int(node["stats"]) :][: int(node["tried"])]
        line.append(int(stats["child"][stats["visits"].argmax()]))
        assert 1 < node["tried"] < node["edge_count"]
    return search, line


def child_of(tree: Any, index: int, *, rank: int) -> int:
    """Return a child of a node, 0 for its most visited one."""
    node = tree.nodes[index]
    stats = tree.stats[int(node["stats"]) :][: int(node["tried"])]
    return int(stats["child"][np.argsort(-stats["visits"].astype(np.int64), kind="stable")[rank]])


def begin(tree: Any, leaf: int) -> None:
    """Mark the edges above a node as a playout does on its way there."""
    path, slots, _ = path_to(tree, leaf)
    for node, slot in zip(path[:-1], slots, strict=True):
        tree.stats["in_flight"][int(tree.nodes[node]["stats"]) + int(slot)] += 1


def mean_of(tree: Any, index: int) -> float:
    node = tree.nodes[index]
    assert node["value_sum"] == pytest.approx(node["utility_sum"], abs=1e-9)
    return float(node["utility_sum"]) / float(node["weight_sum"])


# a playout that ends at another child of the won node, or two moves below that child: what it says and proves there
LATE = {"loses its edge": (0, 1.0, 1), "refutes a reply": (1, 1.0, 1), "proves nothing": (0, 0.3, 0)}


@pytest.mark.parametrize("late", list(LATE))
def test_a_won_node_stays_exact_when_a_playout_comes_back_late(late: str) -> None:
    search, (root, won, other, below) = late_playouts()
    tree = search.tree
    depth, utility, proof = LATE[late]
    leaf = (other, below)[depth]
    winner = child_of(tree, won, rank=1)
    for node in (leaf, winner):  # two threads have gone down; the second comes back first
        begin(tree, node)
    back_up(tree, *path_to(tree, winner), EXPANDED, -1.0, -1.0, 0.0, 0.0, 1.0, -1)
    assert mean_of(tree, won) == 1.0
    mean = mean_of(tree, root)
    back_up(tree, *path_to(tree, leaf), EXPANDED, utility, utility, 0.0, 0.0, 1.0, proof)
    assert marks_of(tree, won)[1]
    assert mean_of(tree, won) == 1.0
    assert tree.nodes[won]["utility_variance"] == 0.0
    stat = tree.stats[int(tree.nodes[root]["stats"]) + int(path_to(tree, won)[1][0])]
    assert (stat["utility"], stat["visits"]) == (-1.0, tree.nodes[won]["visits"])
    # and the node above, whose edge is lost, hears no more of it
    assert mean_of(tree, root) == pytest.approx(mean, abs=1e-12)


def test_a_late_playout_may_bring_the_proof_on_its_way() -> None:
    """The one that proves a node has not yet come to the node above when another overtakes it."""
    search, (root, won, other, _) = late_playouts()
    tree = search.tree
    begin(tree, other)
    winner = child_of(tree, won, rank=1)
    begin(tree, winner)
    back_up(tree, *path_to(tree, winner), EXPANDED, -1.0, -1.0, 0.0, 0.0, 1.0, -1)
    mean = mean_of(tree, root)
    stat = tree.stats[int(tree.nodes[root]["stats"]) + int(path_to(tree, won)[1][0])]
    stat["in_flight"] -= LOST_EDGE
    back_up(tree, *path_to(tree, other), EXPANDED, 0.3, 0.3, 0.0, 0.0, 1.0, 0)
    assert marks_of(tree, root)[0].sum() == 1
    assert mean_of(tree, root) == pytest.approx(mean, abs=1e-3)


def test_without_the_solver_nothing_is_proven() -> None:
    game = new_game(3, "B2 pass", komi=0.5)
    search = solving(UniformEvaluator(1), game, solver=False)
    report = search.run(Limits(visits=500))
    assert report.visits == 500
    assert {move.proven for move in report.moves} == {report.proven} == {0}


def test_a_proof_goes_along_with_the_game() -> None:
    game = new_game(2, "A1 B2", komi=-3.5)
    search = solving(ScriptedEvaluator(), game)
    search.run(Limits(visits=3000))
    for _ in range(3):
        move = search.report().moves[0].move
        child = int(find_child(search.tree, move))
        if search.tree.nodes[child]["state"] != EXPANDED:
            break
        game.play(game.side_to_move, move)
        search.set_position(game)
        check_proofs(search, game)


@pytest.mark.parametrize("workers", [2, 4])
def test_many_workers_prove_only_what_is_true(workers: int) -> None:
    for line in ("A1 B2 pass", "A1 B1", "B2"):
        game = new_game(2, line, komi=0.5)
        search = solving(ScriptedEvaluator(4), game, workers=workers, batches_in_flight=2)
        report = search.run(Limits(visits=2000))
        assert report.visits <= 2000
        check_proofs(search, game, full=False)

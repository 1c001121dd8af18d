"""Human-SL networks: profiles and their inputs, moves chosen by their policy, and visits of the root that follow it."""

import math
from typing import Any

import numpy as np
import pytest

from tests.fakes.evaluators import ScriptedEvaluator
from tests.looping import looped
from tests.naive.human_metadata import metadata_row
from tests.unit.trees import check_tree, edges_of, search_at
from yomi.engine.color import BLACK, WHITE
from yomi.engine.go.game import GoGame
from yomi.engine.go.networks import encode
from yomi.engine.go.players.player import human_choice
from yomi.engine.go.points import Board, square
from yomi.engine.options import Options
from yomi.engine.search.read_tree import draw
from yomi.engine.search.search import Search
from yomi.engine.search.types import Limits, MoveReport, RootMoves, SearchReport
from yomi.native.go.board import PASS
from yomi.native.go.planes import METADATA, SOURCE_GO4GO, SOURCE_GOGOD, SOURCE_KGS
from yomi.native.go.spec import go_spec
from yomi.native.tree.selection import select_as_people
from yomi.nets.katago.human_profile import GO4GO, GOGOD, KGS, RANKS, HumanProfile, check_profile

NAMES = (
    *(f"{kind}_{rank}" for kind in ("rank", "preaz") for rank in RANKS),
    *("rank_20k_9d", "preaz_1d_1k", "proyear_1800", "proyear_1969", "proyear_2020", "proyear_2021", "proyear_2023"),
)


@looped("name", NAMES)
def test_inputs_are_those_of_the_slow_twin(name: str) -> None:
    for board in (Board(9, 9), Board(19, 19), Board(5, 7)):
        game = GoGame(board)
        game.imitate(HumanProfile.parse(name))
        spec = go_spec(board.width, board.height, metadata=True)
        for color in (BLACK, WHITE):
            game.turn_to(color)
            _, numbers, _ = encode(spec, [(game.position, game.history, 3)])
            assert numbers.shape == (1, 19 + METADATA)
            expected = metadata_row(name, color == BLACK, board.area)
            np.testing.assert_allclose(numbers[0, 19:], expected, rtol=0, atol=2e-7)


def test_the_profile_stays_after_moves_and_changes_nothing_else() -> None:
    game = GoGame(Board(9, 9))
    plain = game.copy()
    game.imitate(HumanProfile.parse("rank_3k_5d"))
    with_metadata, without = go_spec(9, metadata=True), go_spec(9)
    for move in (game.board.parse_vertex("E5"), PASS, game.board.parse_vertex("C3")):
        for each in (game, plain):
            each.push(move)
        rows = [(game.position, game.history, 0)]
        planes, numbers, _ = encode(with_metadata, rows)
        expected, globals_, _ = encode(without, [(plain.position, plain.history, 0)])
        np.testing.assert_array_equal(planes, expected)
        np.testing.assert_array_equal(numbers[:, :19], globals_)
        assert numbers[0, 19 + 6 : 19 + 40].sum() == (12 if game.side_to_move == BLACK else 5)
    game.imitate(None)
    assert not encode(with_metadata, [(game.position, game.history, 0)])[1][0, 19:].any()


def test_trees_are_not_shared_between_profiles() -> None:
    game = GoGame(Board(9, 9))
    keys = [game.search_key]
    for name in ("rank_3k", "rank_4k", "preaz_3k"):
        game.imitate(HumanProfile.parse(name))
        keys.append(game.search_key)
    assert len(set(keys)) == 4


def test_names() -> None:
    assert (KGS, GOGOD, GO4GO) == (SOURCE_KGS, SOURCE_GOGOD, SOURCE_GO4GO)
    assert [check_profile(name) for name in ("", "_", '""', "rank_5k")] == [None, None, None, "rank_5k"]
    for name in ("rank_21k", "rank_", "rank_5k_2d_1d", "Rank_5k", "proyear_1799", "proyear_2024", "proyear_x", "5k"):
        with pytest.raises(ValueError, match="Unknown human SL network profile"):
            check_profile(name)


# -- choosing moves ----------------------------------------------------------------------------------------------------

A, B, C = 21, 22, 23


def report(*moves: tuple[int, float, float]) -> SearchReport:
    """Return the report of moves, each with weight and utility, best first."""
    made = (
        MoveReport(move, visits=int(weight), wanted=weight, utility=utility, order=order)
        for order, (move, weight, utility) in enumerate(moves)
    )
    return SearchReport(BLACK, moves=tuple(made))


def choice(found: SearchReport, policy: dict[int, float], **options: object) -> dict[int, float]:
    return human_choice(found, {A: 0.5, B: 0.25}, policy, [A, B, C, PASS], Options(**options))  # type: ignore[arg-type]


def test_the_share_mixes_search_and_people() -> None:
    found, policy = report((A, 30.0, 0.5), (B, 10.0, 0.1)), {A: 0.2, B: 0.2, C: 0.5, PASS: 0.1}
    assert choice(found, policy, human_move_share=0.0) == {A: 30.0, B: 10.0, C: 0.0, PASS: 0.0}
    assert choice(found, policy, human_move_share=1.0) == pytest.approx({A: 8.0, B: 8.0, C: 20.0, PASS: 4.0})
    assert choice(found, policy, human_move_share=0.5) == pytest.approx({A: 19.0, B: 9.0, C: 10.0, PASS: 2.0})


def test_the_search_alone_decides_about_passes() -> None:
    found, policy = report((A, 30.0, 0.5), (PASS, 10.0, 0.1)), {A: 0.1, B: 0.1, C: 0.2, PASS: 0.6}
    mixed = choice(found, policy, human_move_share=1.0, human_ignore_pass=True)
    assert mixed == pytest.approx({A: 7.5, B: 7.5, C: 15.0, PASS: 10.0})


def test_losing_moves_are_played_less_often() -> None:
    found, policy = report((A, 30.0, 0.5), (B, 10.0, 0.1)), {A: 0.25, B: 0.25, C: 0.25, PASS: 0.25}
    mixed = choice(found, policy, human_move_share=1.0, human_move_tolerance=0.2)
    assert mixed[B] / mixed[A] == pytest.approx(math.exp(-2.0))
    assert mixed[C] / mixed[A] == mixed[PASS] / mixed[A] == pytest.approx(math.exp(-1.0))  # as the visited mean, 0.3


def test_without_visits_the_priors_stand_for_the_search() -> None:
    policy = {A: 0.25, B: 0.25, C: 0.5}
    assert choice(report(), policy, human_move_share=0.0) == {A: 0.5, B: 0.25, C: 0.0, PASS: 0.0}
    assert choice(report(), policy, human_move_share=1.0) == pytest.approx({A: 0.1875, B: 0.1875, C: 0.375, PASS: 0.0})
    assert choice(report((A, 4.0, 0.0)), {}, human_move_share=1.0) == {A: 4.0, B: 0.0, C: 0.0, PASS: 0.0}


def test_the_temperature_of_unlikely_moves_only() -> None:
    counts, rng = np.array([60.0, 39.2, 0.8]), np.random.default_rng(1)
    drawn = np.bincount([draw(counts, 0.5, rng, 0.01) for _ in range(20_000)], minlength=3) / 20_000
    # Below 1% the distance to 1% is squared: 0.8% becomes 0.64%.
    np.testing.assert_allclose(drawn, np.array([60.0, 39.2, 0.64]) / 99.84, atol=0.01)
    assert drawn[2] < 0.0075
    assert {draw(counts, 0.0, rng, 1.0) for _ in range(50)} == {0}


# -- visits of the root (humanSLRootExploreProbWeightless and others) ------------------------------------------------


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

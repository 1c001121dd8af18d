"""Profiles of human-SL networks, their inputs, and moves chosen by such a network's policy."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tests.looping import looped
from tests.naive.human_metadata import metadata_row
from yomi.engine.color import BLACK, WHITE
from yomi.engine.go.game import GoGame
from yomi.engine.go.networks import encode
from yomi.engine.go.players.player import human_choice
from yomi.engine.go.points import Board
from yomi.engine.options import Options
from yomi.engine.search.read_tree import draw
from yomi.engine.search.types import MoveReport, SearchReport
from yomi.native.go.board import PASS
from yomi.native.go.metadata import METADATA, SOURCE_GO4GO, SOURCE_GOGOD, SOURCE_KGS
from yomi.native.go.spec import go_spec
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

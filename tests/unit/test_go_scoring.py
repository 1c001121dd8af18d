"""Scores and dead stones of small boards drawn in ASCII."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.go_boards import SEKI_WITHOUT_EYES, game_of, play_all, points
from yomi.engine.go.rules import PRESETS, Rules
from yomi.engine.go.scoring import (
    Ownership,
    dead_stones,
    final_score,
    final_status,
    ownership_by_rollouts,
    pass_alive_points,
    removed_stones,
)
from yomi.native.game import OVER, OVER_UNSCORED
from yomi.native.go.board import BLACK, PASS, WHITE
from yomi.native.go.rules import area_points
from yomi.native.go.spec import outcome

AREA, TERRITORY = PRESETS["tromp-taylor"], PRESETS["japanese"]

SPLIT = """
. X O . .
X X O O O
. X X O .
. . X O O
. . X O .
"""

INVADED = """
. X O . X
X X O O O
. X X O .
. O X O O
. . X O .
"""


def ownership_of(drawing: str) -> Ownership:
    """Return an ownership from a drawing: X is Black's point, O White's, . nobody's."""
    return np.array([{"X": 1.0, "O": -1.0, ".": 0.0}[symbol] for symbol in drawing.split()], np.float32)


def test_area_and_territory_of_a_finished_game() -> None:
    assert final_score(game_of(SPLIT, AREA)) == 13 - 12
    assert final_score(game_of(SPLIT, AREA, komi=7.5)) == -6.5
    assert final_score(game_of(SPLIT, TERRITORY)) == 6 - 4
    for rules, expected in ((AREA, 9), (TERRITORY, 7 + 1)):  # captured stones count for territory only
        game = game_of("O X .\n. . .\n. . .", rules)
        play_all(game, "A2")
        assert final_score(game) == expected
    game = game_of(". .\n. .", PRESETS["chinese"], 0.5)
    assert final_score(game) == -0.5
    game.place_handicap(points("A1 B2", 2))
    assert final_score(game) == 4 - 0.5 - 2


def test_dead_stones_are_territory_and_prisoners() -> None:
    dead = points("B2 E5", 5)
    assert final_score(game_of(INVADED, AREA)) == 9 - 11, "the invaded regions touch both"
    assert final_score(game_of(INVADED, AREA), dead) == 13 - 12
    assert final_score(game_of(INVADED, TERRITORY), dead) == (6 + 1) - (4 + 1)
    with pytest.raises(ValueError, match="no stone on A1"):
        final_score(game_of(INVADED, AREA), points("A1", 5))


def test_a_chain_is_dead_as_a_whole() -> None:
    game = game_of("X X . .\n. . . .\nO O O O\n. . . .", AREA)
    assert final_score(game, points("A4", 4)) == -16


@settings(max_examples=40, deadline=None)
@given(st.integers(2, 7), st.lists(st.integers(0, 10**6), max_size=80))
def test_area_without_dead_stones_is_the_kernels(size: int, choices: list[int]) -> None:
    game = game_of("\n".join([". " * size] * size), AREA)
    for choice in choices:
        legal = game.legal_moves()
        game.play(game.side_to_move, legal[choice % len(legal)])
    assert final_score(game) == area_points(game.position)


SEKI_WITH_EYES = """
. X O . O . X . .
X X O O O O X X X
. X X X X X O O O
X X X X X X O . O
. X X X X X O O O
X X X X X X O . O
X X X X X X O O O
X X X X X X O O O
X X X X X X O O O
"""
"""White's eye has one point, Black's two; they share F9."""


def test_seki_of_two_chains_without_eyes() -> None:
    game = game_of(SEKI_WITHOUT_EYES, TERRITORY)
    status = final_status(game, dead_stones(game, ownership_of(SEKI_WITHOUT_EYES)))
    assert sorted(status["seki"]) == sorted(points("C7 C6 C5 D5 E7 E6 E5", 7))
    assert status["dead"] == []
    assert final_score(game) == 3 - 4


@pytest.mark.parametrize("scoring", ["AREA", "TERRITORY"])
def test_territory_in_seki_is_taxed(scoring: str) -> None:
    def score(tax: str) -> float:
        rules = Rules.parse(f'{{"ko":"SIMPLE","scoring":"{scoring}","tax":"{tax}","suicide":false}}')
        return final_score(game_of(SEKI_WITH_EYES, rules))

    balance = SEKI_WITH_EYES.count("X") - SEKI_WITH_EYES.count("O") if scoring == "AREA" else 0
    assert score("NONE") == balance + (3 + 2) - (2 + 1)
    assert score("SEKI") == balance + 3 - 2
    assert score("ALL") == balance + (3 - 2) - (2 - 2)


def test_a_game_that_is_not_played_out_has_no_seki() -> None:
    status = final_status(game_of("\n".join(["X . . . O", *[". . . . ."] * 4]), TERRITORY), ())
    assert len(status["alive"]) == 2


def test_dame_between_living_groups_is_no_seki() -> None:
    drawing = """
    . X . O .
    X X . O O
    . X . O .
    X X . O O
    . X . O .
    """
    game = game_of(drawing, TERRITORY)
    assert final_score(game) == 0
    assert final_status(game, dead_stones(game, ownership_of(drawing)))["seki"] == []


def test_a_stone_that_dame_joins_to_its_friends_is_no_seki() -> None:
    drawing = """
    . X . . X O .
    X X X . O O O
    . X O . O . O
    X X O O O O O
    . X O . O . O
    X X O O O O O
    X X O . O . O
    """
    game = game_of(drawing, TERRITORY)
    status = final_status(game, dead_stones(game, ownership_of(drawing)))
    assert status["seki"] == []


def test_tax_on_every_group() -> None:
    drawing = """
    . X O . O
    X X O O .
    . X O O O
    X X O . O
    . X O O .
    """
    plain = Rules("SIMPLE", "AREA", "NONE", False, "0", False)
    taxed = PRESETS["stone-scoring"]
    assert final_score(game_of(drawing, plain)) == 10 - 15
    assert final_score(game_of(drawing, taxed)) == (10 - 2) - (15 - 2)
    two_groups = """
    . X O O .
    X X O . O
    O O O O O
    X X O X X
    . X O X .
    """
    assert final_score(game_of(two_groups, plain)) == 12 - 13
    assert final_score(game_of(two_groups, taxed)) == (12 - 3 * 2) - (13 - 2)


def test_dead_by_ownership() -> None:
    ownership = ownership_of("X X O O O  X X O O O  X X X O O  X X X O O  X X X O O")
    game = game_of(INVADED, TERRITORY)
    assert dead_stones(game, ownership) == set(points("B2 E5", 5))
    status = final_status(game, dead_stones(game, ownership))
    assert sorted(status["dead"]) == sorted(points("B2 E5", 5))
    assert len(status["alive"]) == len(game.stones()) - 2


def test_stones_are_removed_where_players_agree_on_them() -> None:
    asked = []

    def ownership() -> Ownership:
        asked.append(1)
        return ownership_of("X X O O O  X X O O O  X X X O O  X X X O O  X X X O O")

    dead = set(points("B2 E5", 5))
    for rules in (AREA, TERRITORY, PRESETS["chinese"]):
        game = game_of(INVADED, rules)
        assert removed_stones(game, ownership) == dead, "as if the players stopped here"
        for color in (BLACK, WHITE):
            game.play(color, PASS)
        assert removed_stones(game, ownership) == (set() if rules is AREA else dead)
    assert len(asked) == 5


def test_pass_alive_chains_are_never_dead() -> None:
    game = game_of(". X . X O\nX X X X O\nO O O O O\n. . . . .\n. . . . .", TERRITORY)
    assert pass_alive_points(game, BLACK) | pass_alive_points(game, WHITE) >= set(points("B5 D5 A4", 5))
    black = set(points("B5 D5 A4 B4 C4 D4", 5))
    assert not dead_stones(game, np.full(25, -1.0)) & black


def test_rollouts_see_what_is_dead() -> None:
    game = game_of(INVADED, TERRITORY)
    before = game.position.tobytes()
    ownership = ownership_by_rollouts(game, 400)
    assert game.position.tobytes() == before
    assert np.abs(ownership).max() <= 1.0
    np.testing.assert_array_equal(ownership, ownership_by_rollouts(game, 400))
    status = final_status(game, dead_stones(game, ownership))
    assert set(status["alive"]) == {p for _, p in game.stones()} - set(status["dead"]) - set(status["seki"])
    assert points("E5", 5)[0] in status["dead"]


@pytest.mark.parametrize(
    ("name", "expected"), [("tromp-taylor", OVER), ("stone-scoring", OVER_UNSCORED), ("japanese", OVER_UNSCORED)]
)
def test_a_search_counts_what_nobody_has_to_judge(name: str, expected: int) -> None:
    game = game_of(SPLIT, PRESETS[name])
    play_all(game, "pass pass")
    assert outcome(game.position, game.history)[0] == expected

"""Moves of the root that are not searched: mirror images, and those that only prolong a game."""

from __future__ import annotations

from collections import Counter

import pytest

from engine.go.analysis.results import position_hashes
from engine.go.game import GoGame
from engine.go.players.root_moves import twins, useless_moves, with_twins
from engine.search.report import MoveReport, SearchReport
from native.go.board import PASS
from tests.unit.go_boards import game_of, play_all, points
from tests.unit.trees import new_game


def seen(game: GoGame, *moves: int) -> str:
    """Return what the position after some moves and its mirror images share."""
    after = game.copy()
    for move in moves:
        after.push(move)
    return position_hashes(after)[1]


@pytest.mark.parametrize("line", ["", "D4", "D4 D3", "D4 A1", "C3 E5", "D4 D3 F4 D5 B4"])
def test_of_moves_that_are_the_same_one_is_left(line: str) -> None:
    game = new_game(7, line)
    found = twins(game)
    legal = [move for move in game.legal_moves() if move != PASS]
    left = [move for move in legal if move not in found]
    assert len(left) < len(legal)
    assert Counter(seen(game, move) for move in left) == dict.fromkeys((seen(game, move) for move in legal), 1)
    assert all(searched in left and image[searched] == move for move, (searched, image) in found.items())


@pytest.mark.parametrize("line", ["C4 E5", "D4 C2", "D4 D3 F4 D6"])
def test_on_other_boards_no_moves_are_the_same(line: str) -> None:
    assert twins(new_game(7, line)) == {}


def test_twins_are_told_with_their_own_lines() -> None:
    game = new_game(7, "D4")
    found = twins(game)
    move, reply, later = points("B2 F5 C3", 7)
    searched = found[move][0] if move in found else move
    line = (searched, reply, later, PASS)
    report = with_twins(SearchReport(moves=(MoveReport(searched, 9, pv=line), MoveReport(PASS, pv=(PASS,)))), found)
    assert [each.order for each in report.moves] == [0, 1, 2, 3, 4]
    assert {each.move for each in report.moves} == {*points("B2 B6 F2 F6", 7), PASS}
    assert [each.symmetry_of for each in report.moves] == [None, searched, searched, searched, None]
    assert {seen(game, *each.pv) for each in report.moves[:4]} == {seen(game, *line)}
    assert all(each.pv[0] == each.move and each.visits == 9 for each in report.moves[:4])


LIVING = """
. X . X .
X X X X X
. . . . .
O O O O O
. O . O .
"""


def test_territory_is_left_alone_once_the_opponent_passes_only() -> None:
    game = game_of(LIVING)
    play_all(game, "C3 pass A3 pass E3 pass")
    assert useless_moves(game) == set()
    play_all(game, "B3 pass")
    assert useless_moves(game) == set(points("A5 C5 E5 A1 C1 E1", 5)) & set(game.legal_moves())
    play_all(game, "D3 A1")
    assert useless_moves(game) == set()

"""Moves of the root that are not searched: mirror images, and those that only prolong a game."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.unit.go_boards import game_of, play_all, points
from tests.unit.trees import check_tree, new_game, search_at
from yomi.engine.color import WHITE
from yomi.engine.evaluators.kernel_evaluators import UniformEvaluator
from yomi.engine.go.analysis.results import position_hashes
from yomi.engine.go.game import GoGame
from yomi.engine.go.players.player import twins, useless_moves, with_twins
from yomi.engine.go.rules import PRESETS
from yomi.engine.search.types import Limits, MoveReport, RootMoves, SearchReport
from yomi.native.go.board import PASS


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


def test_territory_that_is_safe_is_left_alone() -> None:
    own, theirs = points("A5 C5 E5", 5), points("A1 C1 E1", 5)
    assert useless_moves(game_of(LIVING), counts_dead=True) == set(own)
    assert useless_moves(game_of(LIVING), counts_dead=False) == {*own, *theirs}
    assert useless_moves(game_of(LIVING, side=WHITE), counts_dead=True) == set(theirs)
    assert useless_moves(game_of(LIVING, PRESETS["ancient-area"]), counts_dead=False) == set()  # a tax


def test_dead_stones_are_captured_where_they_count() -> None:
    game = game_of(LIVING.replace(". X . X .\n", ". X . . O\n", 1))
    assert useless_moves(game, counts_dead=True) == set()
    assert set(points("A5 C5 D5", 5)) <= useless_moves(game, counts_dead=False)


def test_a_move_that_might_lift_the_ban_of_a_ko_is_not_left_out() -> None:
    game = game_of(KO)
    play_all(game, "G4")
    assert game.why_illegal(WHITE, points("F4", 7)[0]) == "ko"
    assert useless_moves(game, counts_dead=False) == set()
    play_all(game, "pass pass")
    assert useless_moves(game, counts_dead=False) >= set(points("A7 C7", 7))


KO = """
. X . X . . .
X X X X X . .
. . . . . X O
. . . . X O .
. . . . . X O
. . . . . . .
. . . . . . .
"""


def test_what_is_known_of_moves_that_are_pruned_stays() -> None:
    search = search_at(UniformEvaluator(4), 5)
    moves = [each.move for each in search.run(Limits(visits=100)).moves]
    pruned = search.run(Limits(visits=150), RootMoves(prune=moves[:20]))
    assert (pruned.visits, pruned.playouts) == (150, 50)
    assert {each.move for each in pruned.moves} == set(moves[20:])
    assert search.run(Limits(visits=160)).playouts == 10
    assert search.run(Limits(visits=160), RootMoves(avoid=moves[:20])).playouts == 160
    check_tree(search)

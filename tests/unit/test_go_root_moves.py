"""The player of Go: moves of the root that are not searched, and when White may resign a handicap game."""

from collections import Counter

import pytest

import yomi
from tests.unit.go_boards import game_of, play_all, points
from tests.unit.trees import check_tree, new_game, search_at
from yomi.engine.color import BLACK, WHITE
from yomi.engine.evaluators.kernel_evaluators import UniformEvaluator
from yomi.engine.go.analysis.results import position_hashes
from yomi.engine.go.game import GoGame
from yomi.engine.go.players.player import black_advantage, may_resign, twins, useless_moves, with_twins
from yomi.engine.go.points import free_handicap, square
from yomi.engine.go.rules import PRESETS
from yomi.engine.search.types import Limits, MoveReport, RootMoves, SearchReport
from yomi.native.go.board import EMPTY, PASS


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


def test_a_symmetric_position_has_the_value_of_its_best_move() -> None:
    """The priors of the moves that are searched count, or hopeless moves get visits, too."""
    game = yomi.go.Game(9, rules="japanese", komi=6.5)
    game.play("E5")
    with yomi.Engine("go", size=9, net="fast", workers=1, seed=1, precision="fp32") as engine:
        report = engine.play(game, yomi.Limit(visits=100)).report
    assert report.score.winrate == pytest.approx(report.moves[0].winrate, abs=0.03)  # otherwise 0.047 below it
    assert sum(move.visits > 0 for move in report.moves if move.symmetry_of is None) <= 8  # otherwise 15


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


# -- resignation -----------------------------------------------------------------------------------------------------


HOPELESS = -1000.0


def handicap_game(size: int, stones: int, rules: str = "tromp-taylor", komi: float = 0.5) -> GoGame:
    game = GoGame(square(size), PRESETS[rules], komi)
    if stones:
        game.place_handicap(free_handicap(stones, square(size)))
    return game


def played(game: GoGame, plies: int) -> GoGame:
    """Return the game after so many moves: Black fills the board from below, White from above."""
    empty = [point for point in game.board.points if game.color_at(point) == EMPTY]
    for _ in range(plies):
        game.play(game.side_to_move, empty.pop(0 if game.side_to_move == WHITE else -1))
    return game


@pytest.mark.parametrize(
    ("stones", "rules", "komi", "expected"),
    [
        (0, "tromp-taylor", 7.5, -0.5),
        (0, "tromp-taylor", 0.5, 6.5),
        (0, "japanese", 6.5, 0.5),
        (9, "tromp-taylor", 0.5, 8 * 15 + 6.5),
        (9, "chinese", 0.5, 8 * 15 + 6.5 - 9),
        (9, "aga", 0.5, 8 * 15 + 6.5 - 8),
        (2, "japanese", 0.5, 14 + 6.5),
    ],
)
def test_the_advantage_of_black(stones: int, rules: str, komi: float, expected: float) -> None:
    assert black_advantage(handicap_game(19, stones, rules, komi)) == expected


def test_the_advantage_of_stones_that_were_set_up_or_played() -> None:
    corners = [square(19).parse_vertex(vertex) for vertex in ("D4", "Q16", "D16")]
    game = GoGame(square(19), PRESETS["tromp-taylor"], 0.5)
    game.set_position([(BLACK, point) for point in corners], WHITE)
    assert black_advantage(game) == 2 * 15 + 6.5
    game = GoGame(square(19), PRESETS["tromp-taylor"], 0.5)
    for point in corners:
        game.play(BLACK, point)
    assert black_advantage(game) == 2 * 15 + 6.5


def test_black_and_the_sides_of_an_even_game_may_resign_at_once() -> None:
    even = handicap_game(19, 0, komi=7.5)
    for game, color in ((even, WHITE), (even, BLACK), (handicap_game(19, 9), BLACK)):
        assert may_resign(game, color, HOPELESS)


@pytest.mark.parametrize(("size", "stones", "first"), [(19, 9, 73), (9, 2, 17), (9, 0, 17)])
def test_white_plays_on_for_a_fifth_of_the_board(size: int, stones: int, first: int) -> None:
    game = played(handicap_game(size, stones), first - 1)
    assert not may_resign(game, WHITE, HOPELESS)
    assert may_resign(played(game, 1), WHITE, HOPELESS)


def test_white_resigns_when_it_is_well_behind_the_schedule() -> None:
    game = handicap_game(9, 2)  # 21.5 points, to be caught up with between the moves 17 and 48.6
    leads = []
    for ply in (17, 32, 49, 60):
        played(game, ply - len(game.moves))
        leads.append(next(lead for lead in range(100) if may_resign(game, WHITE, -lead)))
    assert leads == [30, 20, 9, 9]  # 5 points and 15% of the 21.5 beyond the schedule's 21.5, 11.3, 0 and 0

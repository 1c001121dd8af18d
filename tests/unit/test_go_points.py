"""Boards: points, vertices, SGF letters, colors as text, and handicap stones (GTP 2, section 4.1)."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.looping import looped
from yomi.engine.go import points
from yomi.engine.go.game import GoGame
from yomi.engine.go.points import (
    Board,
    HandicapError,
    VertexError,
    fixed_handicap,
    free_handicap,
    handicap_stones,
    max_fixed_handicap,
    square,
)
from yomi.engine.go.rules import PRESETS
from yomi.native.go.board import BLACK, EMPTY, MAX_SIZE, MIN_SIZE, PASS, POSITION_DTYPE, WHITE, clear

SIDES = st.integers(2, 19)


@given(SIDES, SIDES, st.data())
def test_round_trip(width: int, height: int, data: st.DataObject) -> None:
    board = Board(width, height)
    point = data.draw(st.sampled_from(board.points))
    assert board.parse_vertex(board.vertex(point)) == board.parse_vertex(board.vertex(point).lower()) == point
    assert board.point(*board.coordinates(point)) == board.point(*board.parse_letters(board.letters(point))) == point
    assert board.points[board.index(point)] == board.move_at(board.index(point)) == point
    assert len(board.points) == board.index(PASS) == board.area == width * height
    assert set(board.neighbors(point)) & set(board.points) == {
        other
        for other in board.points
        if sum(abs(a - b) for a, b in zip(board.coordinates(other), board.coordinates(point), strict=True)) == 1
    }


def test_numbers_are_those_of_the_kernels() -> None:
    assert (points.PASS, points.MIN_SIZE, points.MAX_SIZE) == (PASS, MIN_SIZE, MAX_SIZE)
    for side in (2, 9, 19):
        position = np.zeros(1, POSITION_DTYPE)[0]
        clear(position, side, side)
        empty = [point for point, color in enumerate(position["color"].tolist()) if color == EMPTY]
        assert list(square(side).points) == empty


def test_rectangular_boards() -> None:
    board = Board(19, 13)
    assert str(board) == "19x13"
    assert [board.vertex(board.points[0]), board.vertex(board.points[-1])] == ["A13", "T1"]
    assert [len(row) for row in board.rows(board.points)] == [19] * 13
    assert [board.vertex(point) for point in fixed_handicap(9, board)] == [
        "D4", "Q10", "D10", "Q4", "D7", "Q7", "K4", "K10", "K7",
    ]  # fmt: skip
    assert len(set(free_handicap(30, Board(4, 9)))) == 30
    with pytest.raises(VertexError, match="expected A1 to T13"):
        board.parse_vertex("A14")
    with pytest.raises(ValueError, match="expected a point of a 19x13 board"):
        board.parse_letters("an")
    assert GoGame(board).board == board


@given(SIDES, SIDES, st.data())
def test_components(width: int, height: int, data: st.DataObject) -> None:
    board = Board(width, height)
    chosen = data.draw(st.sets(st.sampled_from(board.points)))
    parts = board.components(chosen)
    assert sorted(point for part in parts for point in part) == sorted(chosen)
    for part in parts:
        around = {beside for point in part for beside in board.neighbors(point)}
        assert not around & (chosen - part)
        assert len(part) == 1 or part <= around


def test_known_vertices() -> None:
    assert square(19).vertex(square(19).point(0, 0)) == "A19"
    assert square(19).vertex(square(19).point(8, 18)) == "J1"
    assert square(19).vertex(square(19).point(18, 0)) == "T19"
    assert square(9).parse_vertex(" Pass ") == PASS
    assert square(9).vertex(PASS) == "pass"


@looped("text", ["", "I5", "A0", "A10", "K5", "5A", "A", "A1x", "A²", "resign", "A-1"])
def test_invalid_vertices_of_a_9x9_board(text: str) -> None:
    with pytest.raises(VertexError, match="expected A1 to J9"):
        square(9).parse_vertex(text)


@looped(
    ("size", "stones", "vertices"),
    [
        (19, 2, "D4 Q16"),
        (19, 3, "D4 Q16 D16"),
        (19, 4, "D4 Q16 D16 Q4"),
        (19, 5, "D4 Q16 D16 Q4 K10"),
        (19, 6, "D4 Q16 D16 Q4 D10 Q10"),
        (19, 7, "D4 Q16 D16 Q4 D10 Q10 K10"),
        (19, 8, "D4 Q16 D16 Q4 D10 Q10 K4 K16"),
        (19, 9, "D4 Q16 D16 Q4 D10 Q10 K4 K16 K10"),
        (13, 5, "D4 K10 D10 K4 G7"),
        (9, 9, "C3 G7 C7 G3 C5 G5 E3 E7 E5"),
        (14, 4, "D4 L11 D11 L4"),
        (8, 4, "C3 F6 C6 F3"),
        (7, 4, "C3 E5 C5 E3"),
    ],
)
def test_fixed_handicap(size: int, stones: int, vertices: str) -> None:
    assert [square(size).vertex(point) for point in fixed_handicap(stones, square(size))] == vertices.split()


def test_fixed_handicap_limits() -> None:
    assert [max_fixed_handicap(square(size)) for size in (2, 6, 7, 8, 9, 10, 13, 18, 19)] == [0, 0, 4, 4, 9, 4, 9, 4, 9]
    for stones, size in ((1, 19), (10, 19), (5, 8), (5, 7), (2, 6)):
        with pytest.raises(HandicapError, match="expected"):
            fixed_handicap(stones, square(size))


@pytest.mark.parametrize("size", [2, 3, 5, 6, 8])
def test_free_handicap_fills_any_board(size: int) -> None:
    for stones in range(2, size * size):
        points = free_handicap(stones, square(size))
        assert len(set(points)) == stones
        game = GoGame(square(size))
        game.place_handicap(points)
        assert game.side_to_move == WHITE
        assert len(game.stones()) == game.handicap == stones
    with pytest.raises(HandicapError, match="invalid number of stones"):
        free_handicap(size * size, square(size))


def test_free_handicap_takes_the_fixed_points_and_spreads_the_rest() -> None:
    assert free_handicap(9, square(19)) == fixed_handicap(9, square(19))
    assert free_handicap(13, square(19))[:9] == fixed_handicap(9, square(19))
    assert square(5).vertex(free_handicap(2, square(5))[0]) == "C3"


def test_what_counts_as_handicap() -> None:
    a, b, c, d = (square(9).parse_vertex(text) for text in ("C3", "G7", "C7", "G3"))
    black, white = [(BLACK, p) for p in (a, b, c)], (WHITE, d)
    assert handicap_stones(black, []) == 3
    assert handicap_stones([*black, white], []) == 0
    assert handicap_stones([], [*black, white]) == 3
    assert handicap_stones([], [black[0], (WHITE, PASS), black[1], (WHITE, PASS), black[2], white]) == 3
    assert handicap_stones([], [black[0], white, black[1]]) == 0
    assert handicap_stones([], [*black, white, (WHITE, PASS)]) == 0
    assert handicap_stones(black[:2], [black[2], white]) == 3
    assert handicap_stones(black[:1], []) == 0


def test_compensation_is_part_of_the_komi_of_the_position() -> None:
    game = GoGame(square(19), PRESETS["chinese"], 0.5)
    game.place_handicap(fixed_handicap(4, square(19)))
    assert game.position["komi"] == 4.5
    game.set_rules(PRESETS["aga"])
    assert game.position["komi"] == 3.5
    game.set_rules(PRESETS["japanese"])
    assert game.position["komi"] == 0.5
    assert game.position["white_bonus"] == 4
    game.set_komi(6.5)
    assert (game.komi, game.position["komi"]) == (6.5, 6.5)


def test_leading_black_moves_change_the_compensation_as_they_come_and_go() -> None:
    game = GoGame(square(9), PRESETS["chinese"], 0.5)
    bonuses = []
    for text in ("C3", "G7", "C7"):
        game.play(BLACK, square(9).parse_vertex(text))
        bonuses.append(float(game.position["komi"]))
    assert bonuses == [0.5, 2.5, 3.5]
    game.undo()
    game.undo()
    assert game.position["komi"] == 0.5

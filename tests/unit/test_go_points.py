"""Boards: points, vertices, SGF letters, and colors as text."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.looping import looped
from yomi.engine.go import points
from yomi.engine.go.game import GoGame
from yomi.engine.go.points import (
    Board,
    VertexError,
    fixed_handicap,
    format_color,
    free_handicap,
    parse_color,
    square,
)
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


def test_colors() -> None:
    assert [parse_color(text) for text in ("b", "Black", "W", "WHITE")] == [BLACK, BLACK, WHITE, WHITE]
    assert (format_color(BLACK), format_color(WHITE)) == ("B", "W")
    with pytest.raises(VertexError, match="invalid color 'green'"):
        parse_color("green")

"""Vertices and colors of GTP."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from yomi.engine.go.vertex import (
    VertexError,
    board_points,
    column_and_row,
    format_color,
    format_vertex,
    parse_color,
    parse_vertex,
    point_at,
)
from yomi.native.go.board import BLACK, PASS, WHITE


@given(st.integers(2, 19), st.data())
def test_round_trip(size: int, data: st.DataObject) -> None:
    point = data.draw(st.sampled_from(board_points(size)))
    assert parse_vertex(format_vertex(point, size), size) == point
    assert parse_vertex(format_vertex(point, size).lower(), size) == point
    assert point_at(*column_and_row(point, size), size) == point


def test_known_vertices() -> None:
    assert format_vertex(point_at(0, 0, 19), 19) == "A19"
    assert format_vertex(point_at(8, 18, 19), 19) == "J1"
    assert format_vertex(point_at(18, 0, 19), 19) == "T19"
    assert parse_vertex(" Pass ", 9) == PASS
    assert format_vertex(PASS, 9) == "pass"


@pytest.mark.parametrize("text", ["", "I5", "A0", "A10", "K5", "5A", "A", "A1x", "A²", "resign", "A-1"])
def test_invalid_vertices_of_a_9x9_board(text: str) -> None:
    with pytest.raises(VertexError, match="expected A1 to J9"):
        parse_vertex(text, 9)


def test_colors() -> None:
    assert [parse_color(text) for text in ("b", "Black", "W", "WHITE")] == [BLACK, BLACK, WHITE, WHITE]
    assert (format_color(BLACK), format_color(WHITE)) == ("B", "W")
    with pytest.raises(VertexError, match="invalid color 'green'"):
        parse_color("green")

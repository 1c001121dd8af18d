"""Colors are the same numbers everywhere."""

from yomi.engine import color
from yomi.native.go import board
from yomi.native.shogi import position


def test_the_kernels_have_the_same_colors() -> None:
    for kernels in (board, position):
        assert (kernels.BLACK, kernels.WHITE) == (color.BLACK, color.WHITE)


def test_opponents() -> None:
    assert color.opponent(color.BLACK) == color.WHITE
    assert color.opponent(color.WHITE) == color.BLACK

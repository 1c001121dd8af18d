"""Boards as SVG: well-formed, each part in its place, text escaped, and no kernel loaded."""

import math
import subprocess
import sys
from collections.abc import Iterable
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest

from yomi.engine.color import BLACK, WHITE
from yomi.engine.go.points import Board
from yomi.engine.go.svg import CELL, ON_STONES, RADIUS, STONES, stars
from yomi.engine.go.svg import goban as draw_goban
from yomi.engine.pictures import COLD, INK, MARK, WARM, element, escaped, heat_color, number
from yomi.engine.shogi.diagram import HEIGHT, LEFT, PROMOTED, SOURCE, TARGET, TOP, TURN, WIDTH, shogi_board
from yomi.engine.shogi.placement import STARTPOS, code_of, parse_sfen
from yomi.native.shogi.pieces import GOLD, HAND_TYPES, PAWN

NAME = "{http://www.w3.org/2000/svg}"
MARGIN = 1.1 * CELL
NO_HANDS = ((0,) * 7, (0,) * 7)


def tags(text: str, tag: str, **attributes: object) -> list[ElementTree.Element]:
    """Return the elements of a picture with a tag and some attributes."""
    wanted = {key.replace("_", "-"): str(value) for key, value in attributes.items()}
    found = ElementTree.fromstring(text).iter(NAME + tag)
    return [each for each in found if wanted.items() <= each.attrib.items()]


def points(elements: Iterable[ElementTree.Element], x: str = "cx", y: str = "cy", shift: float = 0.0) -> set[Any]:
    """Return the points of a goban with coordinates that elements are drawn on."""
    places = [(float(each.get(x, "nan")) + shift, float(each.get(y, "nan")) + shift) for each in elements]
    return {(round((left - MARGIN) / CELL, 3), round((top - MARGIN) / CELL, 3)) for left, top in places}


def texts(text: str) -> list[str]:
    return [each.text or "" for each in tags(text, "text")]


def empty(width: int, height: int) -> list[list[int]]:
    return [[0] * width for _ in range(height)]


def goban(stones: Any, **how: Any) -> str:
    return draw_goban(stones, Board(len(stones[0]), len(stones)), **how)


# -- elements ----------------------------------------------------------------------------------------------------------


def test_elements() -> None:
    assert element("rect", x=1.0, stroke_width=0.125, fill=None) == '<rect x="1" stroke-width="0.12"/>'
    assert element("g", "<a/>", class_='"') == '<g class="&quot;"><a/></g>'
    assert [number(value) for value in (3.0, -0.001, 0.126, 100)] == ["3", "0", "0.13", "100"]


@pytest.mark.parametrize("text", ["<script>&\"'", "\0\x1b[31m", "\ud800\ufffe", "名前 \u202e"])
def test_any_text_can_be_written(text: str) -> None:
    picture = goban(empty(5, 5), labels={(1, 1): text})
    assert ElementTree.fromstring(f"<a>{escaped(text)}</a>").text in texts(picture)
    assert "<script" not in picture
    assert "\x1b" not in picture


def test_heat_has_two_colors() -> None:
    colors = ["#" + "".join(f"{part:02x}" for part in color) for color in (COLD[1], WARM[1])]
    assert [heat_color(value) for value in (1.0, -1.0)] == [heat_color(value) for value in (7.0, -7.0)] == colors
    assert heat_color(0.25) not in (heat_color(0.2), heat_color(-0.25))


# -- Go ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("width", "height"), [(1, 1), (9, 9), (19, 19), (13, 6), (25, 25)])
def test_boards_of_all_sizes(width: int, height: int) -> None:
    picture = goban(empty(width, height))
    root = ElementTree.fromstring(picture)
    assert root.get("viewBox") == f"0 0 {root.get('width')} {root.get('height')}"
    assert root.get("role") == "img"
    assert root.get("aria-label") == f"Go board {width}×{height}, 0 black and 0 white stones"
    names = texts(picture)
    assert len(names) == 2 * (width + height)
    assert names[: 2 * width : 2] == list("ABCDEFGHJKLMNOPQRSTUVWXYZ"[:width])
    assert names[2 * width :: 2] == [str(height - row) for row in range(height)]
    assert not texts(goban(empty(width, height), coordinates=False))
    path = tags(picture, "path")[0].get("d", "")
    assert (path.count("H"), path.count("V")) == (height, width)


def test_star_points() -> None:
    assert len(stars(Board(19, 19))) == 9
    assert sorted(stars(Board(9, 9))) == [(2, 2), (2, 6), (4, 4), (6, 2), (6, 6)]
    assert len(stars(Board(13, 13))) == 5
    assert len(stars(Board(8, 8))) == 4
    assert stars(Board(5, 5)) == []
    assert points(tags(goban(empty(19, 19)), "circle", r=3)) == set(stars(Board(19, 19)))


def test_stones_and_the_last_move() -> None:
    board = empty(9, 9)
    board[0][8], board[4][2], board[8][0] = BLACK, WHITE, BLACK
    picture = goban(board, last=(2, 4))
    assert points(tags(picture, "circle", fill=STONES[BLACK])) == {(8, 0), (0, 8)}
    assert points(tags(picture, "circle", fill=STONES[WHITE])) == {(2, 4)}
    assert points(tags(picture, "circle", fill="none", stroke=ON_STONES[WHITE])) == {(2, 4)}
    assert tags(picture, "title")[0].text == "Go board 9×9, 2 black and 1 white stones, last move White C5"
    assert goban(np.array(board), last=(2, 4)) == picture


def test_labels_and_numbers() -> None:
    board = empty(5, 5)
    board[1][1], board[2][2] = BLACK, WHITE
    picture = goban(
        board, last=(1, 1), numbers={(2, 2): 2, (1, 1): 1, (3, 3): 99}, labels={(3, 3): "A"}, coordinates=False
    )
    assert texts(picture) == ["1", "2", "A"]
    assert [each.get("fill") for each in tags(picture, "text")] == [ON_STONES[BLACK], ON_STONES[WHITE], INK]
    ring = tags(picture, "circle", stroke=MARK)
    assert [each.get("r") for each in ring] == [str(RADIUS)]


def test_values_of_points() -> None:
    board = empty(5, 5)
    board[0][0], board[0][1] = BLACK, WHITE
    values = np.zeros((5, 5))
    values[0, :4] = 1.0, 0.5, -0.25, math.nan
    heat = goban(board, heat=values)
    squares = tags(heat, "rect", width=CELL)
    assert points(squares, "x", "y", CELL / 2) == {(0, 0), (1, 0), (2, 0)}
    assert [each.get("fill") for each in squares] == [heat_color(value) for value in (1.0, 0.5, -0.25)]
    assert [each[0].text for each in squares] == ["A5: 1", "B5: 0.5", "C5: -0.25"]
    owned = goban(board, ownership=values, coordinates=False)
    assert [each.get("fill") for each in tags(owned, "rect")[1:]] == [STONES[BLACK], STONES[WHITE]]  # not its own stone
    sides = [float(each.get("width", "nan")) for each in tags(owned, "rect")[1:]]
    assert sides == pytest.approx([CELL * 0.5 * share**0.5 for share in (0.5, 0.25)], abs=0.01)


# -- shogi -------------------------------------------------------------------------------------------------------------


def pieces(picture: str) -> dict[tuple[float, float, bool], tuple[str, str]]:
    """Return kanji and color of the pieces by (column, row, whether it points down) of the board."""
    found = {}
    for group in tags(picture, "g"):
        words = (group.get("transform") or "").removeprefix("translate(").replace(")", " ").split()
        if words:
            column, row = (float(words[0]) - LEFT) / WIDTH - 0.5, (float(words[1]) - TOP) / HEIGHT - 0.5
            found[column, row, words[2:] == ["rotate(180"]] = (group[1].text or "", group[1].get("fill", ""))
    return found


def test_the_start_of_a_game() -> None:
    position = parse_sfen(STARTPOS)
    picture = shogi_board(position.board, position.hands, side_to_move=BLACK)
    found = pieces(picture)
    assert len(found) == 40
    assert [found[column, 8, False][0] for column in range(9)] == list("香桂銀金玉金銀桂香")
    assert (found[1, 7, False], found[7, 7, False]) == (("角", INK), ("飛", INK))
    assert (found[1, 1, True], found[7, 1, True]) == (("飛", INK), ("角", INK))
    assert tags(picture, "title")[0].text == "Shogi board. Black's hand: empty. White's hand: empty"
    coordinates = [text for text in texts(picture) if text in "123456789一二三四五六七八九"]
    assert coordinates == [text for pair in zip("123456789", "一二三四五六七八九", strict=True) for text in pair]
    assert len(tags(picture, "circle", fill=TURN)) == 1
    assert ElementTree.fromstring(picture).get("role") == "img"


def test_either_side_sits_at_the_bottom() -> None:
    position = parse_sfen("4k4/9/9/2+R6/9/9/4+p4/9/4K4 b 2Gs 1")
    black, white = (shogi_board(position.board, position.hands, bottom=bottom) for bottom in (BLACK, WHITE))
    assert pieces(black)[2, 3, False] == ("龍", PROMOTED)
    assert pieces(black)[4, 6, True] == ("と", PROMOTED)
    on_board = {key: value for key, value in pieces(black).items() if 0 <= key[0] <= 8}
    turned = {(8 - column, 8 - row, not down): value for (column, row, down), value in on_board.items()}
    assert {key: value for key, value in pieces(white).items() if 0 <= key[0] <= 8} == turned
    assert texts(black).count("2") == 2  # file 2, and two gold generals


def test_hands_and_the_last_move() -> None:
    hands = (tuple(range(1, 8)), tuple(7 if kind == PAWN else 0 for kind in HAND_TYPES))
    picture = shogi_board([0] * 81, hands, last=(9 * 6 + 6, 9 * 6 + 5), side_to_move=WHITE)
    right = {key: value for key, value in pieces(picture).items() if key[0] > 8}
    left = {key: value for key, value in pieces(picture).items() if key[0] < 0}
    assert [right[key][0] for key in sorted(right, key=lambda key: -key[1])] == list("飛角金銀桂香歩")
    assert [(key[2], value[0]) for key, value in left.items()] == [(True, "歩")]
    assert "White's hand: pawn 7" in (tags(picture, "title")[0].text or "")
    for color, rank in ((SOURCE, 6), (TARGET, 5)):
        (square,) = tags(picture, "rect", fill=color)
        assert (square.get("x"), square.get("y")) == (str(LEFT + 2 * WIDTH), str(TOP + rank * HEIGHT))
    dropped = shogi_board([0] * 81, NO_HANDS, last=(40,))
    assert (len(tags(dropped, "rect", fill=TARGET)), len(tags(dropped, "rect", fill=SOURCE))) == (1, 0)


def test_the_same_data_gives_the_same_picture() -> None:
    board = [code_of(GOLD, WHITE)] + [0] * 80
    assert shogi_board(board, NO_HANDS) == shogi_board(np.array(board), NO_HANDS)
    numbers = {(1, 2): 1, (0, 0): 2}
    assert goban(empty(5, 5), numbers=numbers) == goban(empty(5, 5), numbers=dict(reversed(numbers.items())))


def test_no_kernel_is_loaded() -> None:
    code = "import yomi.engine.go.svg, yomi.engine.shogi.diagram, sys; print(*sys.modules)"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not {"numba", "numpy"} & set(ran.stdout.split())

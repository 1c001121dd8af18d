"""A shogi board as SVG: pieces in kanji (promoted ones red), both hands, the last move, either side at the bottom.

Everything is plain data: codes of pieces and numbers of squares are those of yomi.engine.shogi.pieces. No kernel is
loaded.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from yomi.engine.color import BLACK, COLOR_NAMES, WHITE, opponent
from yomi.engine.pictures import INK, element, sheet, text_at
from yomi.engine.shogi.diagram import SHORT_NAMES
from yomi.engine.shogi.notation import MARKS, RANKS
from yomi.engine.shogi.pieces import HAND_TYPES, NAMES, PROMOTION, code_of, color_of, type_of

WIDTH, HEIGHT = 42, 46
"""Width of a square."""
HAND_WIDTH, TOP, RIGHT, BOTTOM = 58, 26, 22, 14
"""Widths of the column for a hand and of the board's margins. Coordinates are above and at the right."""
LEFT = HAND_WIDTH + 10
SQUARES, HAND_KINDS, MAX_CODE = 81, len(HAND_TYPES), 30
PIECE, PROMOTED = "#fbeecb", "#b3131b"
"""Color of pieces, and of kanji of promoted pieces."""
SOURCE, TARGET = "#f3dc9f", "#f28c28"
"""Squares of the last move."""
TURN = "#f28c28"
KANJI = "'Noto Serif CJK JP', 'Noto Serif JP', 'Hiragino Mincho ProN', 'Yu Mincho', 'MS Mincho', serif"
OUTLINE = "0,-19 12,-14 16,18 -16,18 -12,-14"
"""A piece that points upwards, around its middle."""


def shogi_board(
    board: Sequence[int],
    hands: Sequence[Sequence[int]],
    *,
    last: Sequence[int] = (),
    side_to_move: int | None = None,
    bottom: int = BLACK,
    title: str = "",
) -> str:
    """Return the picture of a position.

    Args:
        board: piece codes of the 81 squares, 0 for none.
        hands: numbers of pieces in Black's and White's hand, by HAND_TYPES.
        last: squares of the last move: source and target, or the target of a drop.
        side_to_move: whose hand is marked; None for neither.
        bottom: the side that sits at the bottom, BLACK or WHITE.
        title: what screen readers read; empty for the hands.

    Raises:
        ValueError: the board has not 81 codes of pieces, a hand has not 7 numbers, or a square is not on the board.
    """
    _check(board, hands, last, bottom)
    kanji = [
        *_last_move(last, bottom),
        *_lines(),
        *_coordinates(bottom),
        *(_piece(code, *_place(square, bottom), bottom) for square, code in enumerate(board) if code),
        *_hand(hands, bottom, bottom, side_to_move),
        *_hand(hands, opponent(bottom), bottom, side_to_move),
    ]
    parts = [element("g", "\n".join(kanji), lang="ja")]  # not the title, which is English
    width = LEFT + 9 * WIDTH + RIGHT + 10 + HAND_WIDTH
    return sheet(width, TOP + 9 * HEIGHT + BOTTOM, title or _title(hands), parts, KANJI)


def _check(board: Sequence[int], hands: Sequence[Sequence[int]], last: Sequence[int], bottom: int) -> None:
    if len(board) != SQUARES:
        raise ValueError(f"board of {len(board)} squares: expected {SQUARES}")
    for code in board:
        if code and (not 0 < code <= MAX_CODE or type_of(code) not in SHORT_NAMES or not type_of(code)):
            raise ValueError(f"piece {code}: expected a code of yomi.engine.shogi.pieces, or 0")
    if len(hands) != 2 or any(len(hand) != HAND_KINDS for hand in hands):
        raise ValueError(f"hands of {[len(hand) for hand in hands]} numbers: expected two of {HAND_KINDS}")
    for square in last:
        if not 0 <= square < SQUARES:
            raise ValueError(f"square {square}: expected 0 to {SQUARES - 1}")
    if bottom not in (BLACK, WHITE):
        raise ValueError(f"bottom {bottom}: expected {BLACK} (Black) or {WHITE} (White)")


def _title(hands: Sequence[Sequence[int]]) -> str:
    texts = []
    for color in (BLACK, WHITE):
        counted = [f"{NAMES[kind]} {count}" for kind, count in zip(HAND_TYPES, hands[color - 1], strict=True) if count]
        texts.append(f"{COLOR_NAMES[color]}'s hand: {', '.join(counted) or 'empty'}")
    return f"Shogi board. {'. '.join(texts)}"


def _place(square: int, bottom: int) -> tuple[float, float]:
    """Return the middle of a square."""
    file, rank = divmod(square, 9)
    column, row = (8 - file, rank) if bottom == BLACK else (file, 8 - rank)
    return LEFT + WIDTH * (column + 0.5), TOP + HEIGHT * (row + 0.5)


def _last_move(last: Sequence[int], bottom: int) -> Iterator[str]:
    for number, square in enumerate(last, 1):
        x, y = _place(square, bottom)
        fill = TARGET if number == len(last) else SOURCE
        yield element("rect", x=x - WIDTH / 2, y=y - HEIGHT / 2, width=WIDTH, height=HEIGHT, fill=fill)


def _lines() -> Iterator[str]:
    right, bottom = LEFT + 9 * WIDTH, TOP + 9 * HEIGHT
    across = "".join(f"M{LEFT} {TOP + HEIGHT * row}H{right}" for row in range(10))
    down = "".join(f"M{LEFT + WIDTH * column} {TOP}V{bottom}" for column in range(10))
    yield element("path", d=across + down, fill="none", stroke=INK, stroke_linecap="square")
    for column in (3, 6):
        for row in (3, 6):
            yield element("circle", cx=LEFT + WIDTH * column, cy=TOP + HEIGHT * row, r=3, fill=INK)


def _coordinates(bottom: int) -> Iterator[str]:
    for number in range(9):
        x, y = _place(10 * number, bottom)  # the diagonal has every file and rank once
        yield text_at(x, TOP / 2 + 1, number + 1, 14)
        yield text_at(LEFT + 9 * WIDTH + RIGHT / 2, y, RANKS[number], 14)


def _piece(code: int, x: float, y: float, bottom: int) -> str:
    """Return a piece around a place; those of the side at the top point down."""
    kind = type_of(code)
    turn = "" if color_of(code) == bottom else " rotate(180)"
    shape = element("polygon", points=OUTLINE, fill=PIECE, stroke=INK)
    kanji = text_at(0, 2, SHORT_NAMES[kind], 23, PROMOTED if kind > PROMOTION else INK, font_weight=600)
    return element("g", shape + kanji, transform=f"translate({x:g} {y:g}){turn}")


def _hand(hands: Sequence[Sequence[int]], color: int, bottom: int, side_to_move: int | None) -> Iterator[str]:
    """Yield a hand: that of the side at the bottom is at the right and ends at the bottom, the other at the left."""
    is_bottom = color == bottom
    x = LEFT + 9 * WIDTH + RIGHT + 22 if is_bottom else 21
    held = [(kind, count) for kind, count in zip(HAND_TYPES, hands[color - 1], strict=True) if count][::-1]
    # The mark stands where the player sits, the pieces between it and the middle of the board.
    mark = TOP + HEIGHT * 8.5 if is_bottom else TOP + HEIGHT / 2
    if color == side_to_move:
        yield element("circle", cx=x, cy=mark, r=17, fill=TURN)
    yield text_at(x, mark, MARKS[color], 20)
    for place, (kind, count) in enumerate(held, 1):
        y = mark + HEIGHT * place * (-1 if is_bottom else 1)
        yield _piece(code_of(kind, color), x, y, bottom)
        if count > 1:
            yield text_at(x + 27, y, count, 15, INK, font_weight=600)

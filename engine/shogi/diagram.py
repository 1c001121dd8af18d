"""Draws the board as text (SFEN's letters or kanji, optionally colored for a terminal) and as SVG, without kernels."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from yomi.engine import screen
from yomi.engine.color import BLACK, COLOR_NAMES, WHITE, opponent
from yomi.engine.pictures import INK, element, sheet, text_at
from yomi.engine.shogi.notation import JAPANESE_NAMES, format_japanese, format_usi, japanese_number
from yomi.engine.shogi.placement import (
    FILES,
    LETTERS,
    MARKS,
    NAMES,
    RANKS,
    Placement,
    code_of,
    color_of,
    held,
    ranks_of,
    type_of,
    unpromoted,
)
from yomi.native.shogi.pieces import HAND_TYPES, KING, PROMOTION

if TYPE_CHECKING:
    from yomi.engine.shogi.game import ShogiGame

SHORT_NAMES = dict(enumerate(JAPANESE_NAMES)) | {10: "杏", 11: "圭", 12: "全"}  # names of one character each

SIDES = {BLACK: "先手", WHITE: "後手"}


def draw(
    game: ShogiGame, *, japanese: bool = False, colored: bool = False, sides: Mapping[int, str] | None = None
) -> str:
    """Return the board from Black's point of view, with hands and the side to move.

    White's pieces have a v before their kanji, or lower case letters. Colors are a terminal's color sequences. `sides`
    are the sides' names beside kanji (default: SIDES).
    """
    lines = _japanese(game, colored, sides or SIDES) if japanese else _letters(game, colored)
    return "\n".join(lines)


def _letters(game: ShogiGame, colored: bool) -> list[str]:
    last = game.last_target
    header = " " + "".join(f"  {file}" for file in range(9, 0, -1))
    lines = [f"White's hand: {_hand(game, WHITE)}", header]
    for rank, row in enumerate(ranks_of(game.placement.board)):
        cells = []
        for column, code in enumerate(row):
            is_last = 9 * (8 - column) + rank == last
            letter = LETTERS[unpromoted(type_of(code))] if code else "."
            if code and color_of(code) == WHITE:
                letter = letter.lower()
            text = f"{'+' if type_of(code) > KING else ' '}{letter}"
            if is_last and not colored:
                text = f"({letter}" if text[0] == " " else f"({text}"
                # The bracket needs an extra column, which `_closed` takes back.
                cells.append(f"{text})".rjust(4))
            else:
                cells.append(_styled(f" {text}", code, is_last, colored))
        text = "".join(cells)
        lines.append(f" {_closed(text)}{screen.PLAIN if colored else ''} {'abcdefghi'[rank]}")
    lines += [f"Black's hand: {_hand(game, BLACK)}", _state(game)]
    return lines


def _closed(row: str) -> str:
    # A bracket takes the place of the next cell's blank, so that columns stay aligned.
    at = row.find(") ")
    return row if at < 0 else row[: at + 1] + row[at + 2 :]


def _hand(game: ShogiGame, color: int) -> str:
    parts = [
        LETTERS[kind] + (f"x{count}" if count > 1 else "") for kind, count in held(game.placement.hands[color - 1])
    ]
    text = " ".join(parts) or "-"
    return text if color == BLACK else text.lower()


def _state(game: ShogiGame) -> str:
    check = ", in check" if game.in_check else ""
    last = f", last move {format_usi(game.moves[-1][1])}" if game.moves else ""
    return f"{COLOR_NAMES[game.side_to_move]} to move{check}, move {game.ply + 1}{last}"


def _japanese(game: ShogiGame, colored: bool, sides: Mapping[int, str]) -> list[str]:
    check = "（王手）" if game.in_check else ""
    state = f"手数＝{game.ply}　{sides[game.side_to_move]}番{check}{_japanese_last(game)}"
    return [*japanese_diagram(game.placement, sides, game.last_target, colored=colored), state]


def japanese_diagram(
    placement: Placement, sides: Mapping[int, str], last: int | None = None, *, colored: bool = False
) -> list[str]:
    """Return a board with hands as lines of a record. `sides` are the sides' names, `last` is a marked square."""
    frame = "+---------------------------+"
    hands = {color: f"{sides[color]}の持駒：{japanese_hand(placement.hands[color - 1])}" for color in (BLACK, WHITE)}
    lines = [hands[WHITE], " " + "".join(f" {file}" for file in reversed(FILES)), frame]
    for rank, row in enumerate(ranks_of(placement.board)):
        cells = []
        for column, code in enumerate(row):
            is_last = 9 * (8 - column) + rank == last
            mark = "v" if code and color_of(code) == WHITE else "*" if is_last and not colored else " "
            name = SHORT_NAMES[type_of(code)] if code else "・"
            cells.append(_styled(mark + name, code, is_last, colored))
        lines.append(f"|{''.join(cells)}{screen.PLAIN if colored else ''}|{RANKS[rank]}")
    return [*lines, frame, hands[BLACK]]


def _japanese_last(game: ShogiGame) -> str:
    if not game.moves:
        return ""
    before = game.copy()
    before.undo()
    return f"　{format_japanese(game.moves[-1][1], before.placement, before.last_target)}まで"


def japanese_hand(hand: tuple[int, ...]) -> str:
    """Return a hand as records write it: `飛　角二　歩十一`, or `なし`."""
    parts = [JAPANESE_NAMES[kind] + (japanese_number(count) if count > 1 else "") for kind, count in held(hand)]
    return "　".join(parts) or "なし"


def _styled(text: str, code: int, is_last: bool, colored: bool) -> str:
    if not colored:
        return text
    background = screen.LAST if is_last else screen.WOOD
    if not code:
        return f"{background}{screen.LINES}{text}"
    ink = screen.WHITE_INK if color_of(code) == WHITE else screen.BLACK_INK
    return f"{background}{screen.PROMOTED_INK if type_of(code) > PROMOTION else ink}{text}"


# -- SVG ---------------------------------------------------------------------------------------------------------------

WIDTH, HEIGHT = 42, 46  # of a square
# Width of a hand's column, and the board's margins. Coordinates are above the board and at its right.
HAND_WIDTH, TOP, RIGHT, BOTTOM = 58, 26, 22, 14
LEFT = HAND_WIDTH + 10
# Colors: pieces, and the kanji of promoted pieces.
PIECE, PROMOTED = "#fbeecb", "#b3131b"
# Colors of the last move's squares.
SOURCE, TARGET = "#f3dc9f", "#f28c28"
TURN = "#f28c28"
KANJI = "'Noto Serif CJK JP', 'Noto Serif JP', 'Hiragino Mincho ProN', 'Yu Mincho', 'MS Mincho', serif"
OUTLINE = "0,-19 12,-14 16,18 -16,18 -12,-14"  # a piece that points upwards, around its center


def shogi_board(
    board: Sequence[int],
    hands: Sequence[Sequence[int]],
    *,
    last: Sequence[int] = (),
    side_to_move: int | None = None,
    bottom: int = BLACK,
) -> str:
    """Return a position as SVG.

    `board` are piece codes of the 81 squares, `hands` Black's and White's, by HAND_TYPES. `last` are source and target
    of the last move, or the target of a drop. The hand of `side_to_move` is marked. `bottom` is the side at the bottom.
    """
    kanji = [
        *_last_move(last, bottom),
        *_lines(),
        *_coordinates(bottom),
        *(_piece(code, *_center(square, bottom), bottom) for square, code in enumerate(board) if code),
        *_hand_column(hands, bottom, bottom, side_to_move),
        *_hand_column(hands, opponent(bottom), bottom, side_to_move),
    ]
    parts = [element("g", "\n".join(kanji), lang="ja")]  # not the title, which is English
    width = LEFT + 9 * WIDTH + RIGHT + 10 + HAND_WIDTH
    return sheet(width, TOP + 9 * HEIGHT + BOTTOM, _title(hands), parts, KANJI)


def _title(hands: Sequence[Sequence[int]]) -> str:
    texts = []
    for color in (BLACK, WHITE):
        counted = [f"{NAMES[kind]} {count}" for kind, count in zip(HAND_TYPES, hands[color - 1], strict=True) if count]
        texts.append(f"{COLOR_NAMES[color]}'s hand: {', '.join(counted) or 'empty'}")
    return f"Shogi board. {'. '.join(texts)}"


def _center(square: int, bottom: int) -> tuple[float, float]:
    file, rank = divmod(square, 9)
    column, row = (8 - file, rank) if bottom == BLACK else (file, 8 - rank)
    return LEFT + WIDTH * (column + 0.5), TOP + HEIGHT * (row + 0.5)


def _last_move(last: Sequence[int], bottom: int) -> Iterator[str]:
    for number, square in enumerate(last, 1):
        x, y = _center(square, bottom)
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
        x, y = _center(10 * number, bottom)  # the diagonal has every file and rank once
        yield text_at(x, TOP / 2 + 1, number + 1, 14)
        yield text_at(LEFT + 9 * WIDTH + RIGHT / 2, y, RANKS[number], 14)


def _piece(code: int, x: float, y: float, bottom: int) -> str:
    """Return a piece drawn around a center. Pieces of the side at the top point down."""
    kind = type_of(code)
    turn = "" if color_of(code) == bottom else " rotate(180)"
    shape = element("polygon", points=OUTLINE, fill=PIECE, stroke=INK)
    kanji = text_at(0, 2, SHORT_NAMES[kind], 23, PROMOTED if kind > PROMOTION else INK, font_weight=600)
    return element("g", shape + kanji, transform=f"translate({x:g} {y:g}){turn}")


def _hand_column(hands: Sequence[Sequence[int]], color: int, bottom: int, side_to_move: int | None) -> Iterator[str]:
    # The bottom side's hand is at the right and ends at the bottom, the other hand at the left.
    is_bottom = color == bottom
    x = LEFT + 9 * WIDTH + RIGHT + 22 if is_bottom else 21
    # The mark is at the player's end, the pieces between it and the middle of the board.
    mark = TOP + HEIGHT * 8.5 if is_bottom else TOP + HEIGHT / 2
    if color == side_to_move:
        yield element("circle", cx=x, cy=mark, r=17, fill=TURN)
    yield text_at(x, mark, MARKS[color], 20)
    for place, (kind, count) in enumerate(held(hands[color - 1]), 1):
        y = mark + HEIGHT * place * (-1 if is_bottom else 1)
        yield _piece(code_of(kind, color), x, y, bottom)
        if count > 1:
            yield text_at(x + 27, y, count, 15, INK, font_weight=600)

"""The board as text: SFEN's letters or kanji, optionally colored for a terminal."""

from typing import TYPE_CHECKING

from yomi.engine.color import BLACK, COLOR_NAMES, WHITE
from yomi.engine.shogi.notation import FILES, JAPANESE_NAMES, RANKS, format_japanese, format_usi, japanese_number
from yomi.engine.shogi.pieces import HAND_TYPES, KING, LETTERS, PROMOTION, color_of, type_of, unpromoted

if TYPE_CHECKING:
    from yomi.engine.shogi.game import ShogiGame

SHORT_NAMES = dict(enumerate(JAPANESE_NAMES)) | {10: "杏", 11: "圭", 12: "全"}  # names of one character each

SIDES = {BLACK: "先手", WHITE: "後手"}

WHITE_STYLE, PROMOTED_STYLE, LAST_STYLE, PLAIN = "\x1b[36m", "\x1b[31m", "\x1b[7m", "\x1b[0m"


def draw(game: "ShogiGame", *, japanese: bool = False, colored: bool = False) -> str:
    """Return the board from Black's point of view, with hands and the side to move.

    Args:
        game: the game to draw.
        japanese: draw kanji (White's pieces after a v) instead of letters (White's in lower case).
        colored: mark White's pieces, promoted pieces and the last move with color sequences.
    """
    lines = _japanese(game, colored) if japanese else _letters(game, colored)
    return "\n".join(lines)


def _letters(game: "ShogiGame", colored: bool) -> list[str]:
    board = game.placement.board
    last = game.last_target
    header = " " + "".join(f"  {file}" for file in range(9, 0, -1))
    lines = [f"White's hand: {_hand(game, WHITE)}", header]
    for rank in range(9):
        cells = []
        for file in range(8, -1, -1):
            square = 9 * file + rank
            code = board[square]
            letter = LETTERS[unpromoted(type_of(code))] if code else "."
            if code and color_of(code) == WHITE:
                letter = letter.lower()
            text = f"{'+' if type_of(code) > KING else ' '}{letter}"
            if square == last and not colored:
                text = f"({letter}" if text[0] == " " else f"({text}"
                cells.append(f"{text})".rjust(4))
            else:
                cells.append(" " + _styled(text, code, square == last, colored))
        lines.append(" " + _closed("".join(cells)) + f" {'abcdefghi'[rank]}")
    lines += [f"Black's hand: {_hand(game, BLACK)}", _state(game)]
    return lines


def _closed(row: str) -> str:
    # A bracket takes the place of the next cell's blank, so that columns stay aligned.
    at = row.find(") ")
    return row if at < 0 else row[: at + 1] + row[at + 2 :]


def _hand(game: "ShogiGame", color: int) -> str:
    hand = game.placement.hands[color - 1]
    parts = []
    for piece_type, count in reversed(list(zip(HAND_TYPES, hand, strict=True))):
        letter = LETTERS[piece_type] if color == BLACK else LETTERS[piece_type].lower()
        if count:
            parts.append(letter if count == 1 else f"{letter}x{count}")
    return " ".join(parts) or "-"


def _state(game: "ShogiGame") -> str:
    check = ", in check" if game.in_check else ""
    last = f", last move {format_usi(game.moves[-1][1])}" if game.moves else ""
    return f"{COLOR_NAMES[game.side_to_move]} to move{check}, move {game.ply + 1}{last}"


def _japanese(game: "ShogiGame", colored: bool) -> list[str]:
    board = game.placement.board
    last = game.last_target
    lines = [f"後手の持駒：{japanese_hand(game.placement.hands[1])}"]
    lines += [" " + "".join(f" {file}" for file in reversed(FILES)), "+---------------------------+"]
    for rank in range(9):
        cells = []
        for file in range(8, -1, -1):
            square = 9 * file + rank
            code = board[square]
            mark = "v" if code and color_of(code) == WHITE else "*" if square == last and not colored else " "
            name = SHORT_NAMES[type_of(code)] if code else "・"
            cells.append(_styled(mark + name, code, square == last, colored))
        lines.append(f"|{''.join(cells)}|{RANKS[rank]}")
    lines += ["+---------------------------+", f"先手の持駒：{japanese_hand(game.placement.hands[0])}"]
    check = "（王手）" if game.in_check else ""
    lines.append(f"手数＝{game.ply}　{SIDES[game.side_to_move]}番{check}{_japanese_last(game)}")
    return lines


def _japanese_last(game: "ShogiGame") -> str:
    if not game.moves:
        return ""
    before = game.copy()
    before.undo()
    return f"　{format_japanese(game.moves[-1][1], before.placement, before.last_target)}まで"


def japanese_hand(hand: tuple[int, ...]) -> str:
    """Return a hand as records write it: `飛　角二　歩十一`, or `なし`."""
    parts = []
    for piece_type, count in reversed(list(zip(HAND_TYPES, hand, strict=True))):
        if count:
            parts.append(JAPANESE_NAMES[piece_type] + (japanese_number(count) if count > 1 else ""))
    return "　".join(parts) or "なし"


def _styled(text: str, code: int, is_last: bool, colored: bool) -> str:
    if not colored:
        return text
    style = LAST_STYLE if is_last else ""
    if code:
        style += PROMOTED_STYLE if type_of(code) > PROMOTION else WHITE_STYLE if color_of(code) == WHITE else ""
    return f"{style}{text}{PLAIN}" if style else text

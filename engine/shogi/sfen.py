import re
from collections import Counter

from yomi.engine.color import BLACK, COLOR_NAMES, WHITE, opponent
from yomi.engine.shogi.pieces import (
    COUNTS,
    HAND_INDEX,
    HAND_TYPES,
    KING,
    LETTERS,
    NAMES,
    PAWN,
    PROMOTION,
    can_promote,
    code_of,
    color_of,
    has_future,
    type_of,
    unpromoted,
)
from yomi.engine.shogi.placement import Placement, square_name
from yomi.nets.errors import LineError

STARTPOS = "lnsgkgsnl/1r5b1/ppppppppp/9/9/9/PPPPPPPPP/1B5R1/LNSGKGSNL b - 1"
START_WORD = "startpos"  # USI's word for STARTPOS

MAX_NUMBER = 60000  # highest number of a first move: kernels count plies in 16 bits

# SFEN writes hands in this order: rook, bishop, gold ... pawn.
HAND_WRITING_ORDER = (6, 5, 4, 3, 2, 1, 0)

SIDES = {"b": BLACK, "w": WHITE}


class SfenError(LineError, ValueError):
    """Text that is not SFEN, or an impossible position. The message is one line."""


def parse_sfen(text: str) -> Placement:
    """Read a position: board, side to move, hands and optionally the number of the next move (default 1).

    Raises:
        SfenError: not SFEN, or a position that `check` rejects.
    """
    fields = text.split()
    if len(fields) not in (3, 4):
        raise SfenError(f"SFEN of {len(fields)} fields: expected board, side to move, hands and move number")
    if fields[1] not in SIDES:
        raise SfenError(f"side to move '{fields[1]}': expected b or w")
    number = fields[3] if len(fields) == 4 else "1"
    if not (number.isascii() and number.isdigit() and len(number) < 8 and int(number) <= MAX_NUMBER):
        raise SfenError(f"move number '{number}': expected 1 to {MAX_NUMBER}")
    # some programs count from 0
    placement = Placement(_parse_board(fields[0]), _parse_hands(fields[2]), SIDES[fields[1]], max(int(number), 1))
    check(placement)
    return placement


def _parse_board(text: str) -> tuple[int, ...]:
    ranks = text.split("/")
    if len(ranks) != 9:
        raise SfenError(f"board of {len(ranks)} ranks: expected 9")
    board = [0] * 81
    for rank, row in enumerate(ranks):
        file = 9
        for match in re.finditer(r"[1-9]|(\+?)([A-Za-z])|.", row):
            plus, letter = match.groups()
            if match[0] in "123456789":
                file -= int(match[0])
                continue
            piece_type = LETTERS.find(letter.upper()) if letter else -1
            if piece_type < 0 or (plus and not can_promote(piece_type)):
                raise SfenError(
                    f"'{match[0]}' in rank {rank + 1} '{row}': expected a piece or a number of empty squares"
                )
            file -= 1
            if file >= 0:
                color = BLACK if letter.isupper() else WHITE
                board[9 * file + rank] = code_of(piece_type + (PROMOTION if plus else 0), color)
        if file != 0:
            raise SfenError(f"rank {rank + 1} '{row}' has {9 - file} squares: expected 9")
    return tuple(board)


def _parse_hands(text: str) -> tuple[tuple[int, ...], tuple[int, ...]]:
    hands = ([0] * 7, [0] * 7)
    if text == "-":
        return tuple(hands[0]), tuple(hands[1])
    if not re.fullmatch(r"([1-9][0-9]?)?[A-Za-z](([1-9][0-9]?)?[A-Za-z])*", text):
        raise SfenError(f"hands '{text}': expected - or pieces with counts such as 2P3p")
    for count, letter in re.findall(r"([0-9]*)([A-Za-z])", text):
        piece_type = LETTERS.find(letter.upper())
        if piece_type not in HAND_INDEX:
            raise SfenError(f"'{letter}' in hands '{text}': expected pieces of {LETTERS[1:8]}")
        hands[0 if letter.isupper() else 1][HAND_INDEX[piece_type]] += int(count or 1)
    return tuple(hands[0]), tuple(hands[1])


def check(placement: Placement) -> None:
    """Raise SfenError if a position is impossible: too many pieces, nifu, or the king of the waiting side in check.

    One king may be missing, as in mate problems.
    """
    counts: Counter[int] = Counter()
    kings: dict[int, list[int]] = {BLACK: [], WHITE: []}
    pawns: set[tuple[int, int]] = set()
    for square, code in enumerate(placement.board):
        if not code:
            continue
        piece_type, color = type_of(code), color_of(code)
        counts[unpromoted(piece_type)] += 1
        if piece_type == KING:
            kings[color].append(square)
        if not has_future(piece_type, color, square):
            raise SfenError(f"{COLOR_NAMES[color]}'s {NAMES[piece_type]} on {square_name(square)} can never move")
        if piece_type == PAWN:
            if (color, square // 9) in pawns:
                raise SfenError(f"{COLOR_NAMES[color]} has two pawns on file {square // 9 + 1} (nifu)")
            pawns.add((color, square // 9))
    for hand in placement.hands:
        for piece_type, count in zip(HAND_TYPES, hand, strict=True):
            counts[piece_type] += count
    for color, squares in kings.items():
        if len(squares) > 1:
            raise SfenError(f"{COLOR_NAMES[color]} has {len(squares)} kings: expected one")
    if not counts[KING]:
        raise SfenError("no king on the board: expected one for each side (mate problems: for one)")
    for piece_type, most in COUNTS.items():
        if counts[piece_type] > most:
            raise SfenError(f"{counts[piece_type]} {NAMES[piece_type]}s: expected at most {most}")
    waiting = opponent(placement.side)
    if placement.is_check(waiting):
        raise SfenError(f"{COLOR_NAMES[waiting]} is in check but {COLOR_NAMES[placement.side]} is to move")


def format_sfen(placement: Placement, *, number: bool = True) -> str:
    """Return a position as SFEN; `number` adds the number of the next move."""
    ranks = []
    for rank in range(9):
        row, empty = "", 0
        for file in range(8, -1, -1):
            code = placement.board[9 * file + rank]
            if not code:
                empty += 1
                continue
            row += (str(empty) if empty else "") + _piece(code)
            empty = 0
        ranks.append(row + (str(empty) if empty else ""))
    hands = ""
    for hand, color in zip(placement.hands, (BLACK, WHITE), strict=True):
        for index in HAND_WRITING_ORDER:
            if hand[index]:
                count = str(hand[index]) if hand[index] > 1 else ""
                hands += count + _piece(code_of(HAND_TYPES[index], color))
    fields = ["/".join(ranks), "b" if placement.side == BLACK else "w", hands or "-"]
    if number:
        fields.append(str(placement.number))
    return " ".join(fields)


def _piece(code: int) -> str:
    piece_type = type_of(code)
    letter = LETTERS[unpromoted(piece_type)]
    if color_of(code) == WHITE:
        letter = letter.lower()
    return f"+{letter}" if piece_type > KING else letter

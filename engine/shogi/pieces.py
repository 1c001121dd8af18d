"""Piece codes, movements, and moves as numbers, in plain Python.

Numbers as in yomi.native.shogi: square = 9 * file + rank, counted from Black's right edge. A move is, as in cshogi and
dlshogi, target | source << 7 | promotion << 14; the source of a drop is 80 + the piece type. No kernel is loaded, so
records can be read before anything is compiled.
"""

from collections.abc import Sequence

from yomi.engine.color import BLACK, WHITE

PAWN, LANCE, KNIGHT, SILVER, BISHOP, ROOK, GOLD, KING = range(1, 9)
PROM_PAWN, PROM_LANCE, PROM_KNIGHT, PROM_SILVER, HORSE, DRAGON = range(9, 15)

PROMOTION = 8  # a promoted type is the unpromoted type plus this

WHITE_CODE = 16  # White's piece codes are Black's plus this

HAND_TYPES = (PAWN, LANCE, KNIGHT, SILVER, GOLD, BISHOP, ROOK)  # piece type of each index into a hand

HAND_INDEX = {piece_type: index for index, piece_type in enumerate(HAND_TYPES)}

LETTERS = " PLNSBRGK"  # SFEN letters of the unpromoted types

# pieces of a full set by unpromoted type
COUNTS = {PAWN: 18, LANCE: 4, KNIGHT: 4, SILVER: 4, BISHOP: 2, ROOK: 2, GOLD: 4, KING: 2}

NAMES = ("", "pawn", "lance", "knight", "silver", "bishop", "rook", "gold", "king")

Steps = tuple[tuple[int, int], ...]

_GOLD: Steps = ((0, -1), (1, -1), (-1, -1), (1, 0), (-1, 0), (0, 1))
_SILVER: Steps = ((0, -1), (1, -1), (-1, -1), (1, 1), (-1, 1))
_DIAGONAL: Steps = ((1, -1), (-1, -1), (1, 1), (-1, 1))
_STRAIGHT: Steps = ((0, -1), (0, 1), (1, 0), (-1, 0))

# Single steps of a type as (files, ranks) for Black: a higher file is to the left, a lower rank is forward.
STEPS: dict[int, Steps] = {
    PAWN: ((0, -1),),
    KNIGHT: ((1, -2), (-1, -2)),
    SILVER: _SILVER,
    GOLD: _GOLD,
    KING: _DIAGONAL + _STRAIGHT,
    PROM_PAWN: _GOLD,
    PROM_LANCE: _GOLD,
    PROM_KNIGHT: _GOLD,
    PROM_SILVER: _GOLD,
    HORSE: _STRAIGHT,
    DRAGON: _DIAGONAL,
}

# Directions in which a type goes any distance.
SLIDES: dict[int, Steps] = {LANCE: ((0, -1),), BISHOP: _DIAGONAL, HORSE: _DIAGONAL, ROOK: _STRAIGHT, DRAGON: _STRAIGHT}


def code_of(piece_type: int, color: int) -> int:
    return piece_type + (WHITE_CODE if color == WHITE else 0)


def color_of(code: int) -> int:
    """Return the color of a piece code other than 0."""
    return WHITE if code > WHITE_CODE else BLACK


def type_of(code: int) -> int:
    return code & 15


def unpromoted(piece_type: int) -> int:
    return piece_type - PROMOTION if piece_type > KING else piece_type


def can_promote(piece_type: int) -> bool:
    return piece_type < GOLD


def in_zone(square: int, color: int) -> bool:
    rank = square % 9
    return rank < 3 if color == BLACK else rank > 5


def has_future(piece_type: int, color: int, square: int) -> bool:
    """Whether a piece can ever move on from a square; false for pawns, lances and knights at the far edge."""
    rank = square % 9 if color == BLACK else 8 - square % 9
    if piece_type in (PAWN, LANCE):
        return rank > 0
    return piece_type != KNIGHT or rank > 1


def reaching(board: Sequence[int], color: int, piece_type: int, target: int) -> list[int]:
    """Return the squares from which pieces of this color and type reach `target`, pinned pieces included.

    `board` has 81 piece codes; the content of `target` does not matter. The type is promoted or not, as on the board.
    """
    code = code_of(piece_type, color)
    if code not in board:  # in half of the cases, and seen at once
        return []
    sign = 1 if color == BLACK else -1
    file, rank = divmod(target, 9)
    found = []
    for step_file, step_rank in STEPS.get(piece_type, ()):
        f, r = file - sign * step_file, rank - sign * step_rank
        if 0 <= f < 9 and 0 <= r < 9 and board[9 * f + r] == code:
            found.append(9 * f + r)
    for step_file, step_rank in SLIDES.get(piece_type, ()):
        f, r = file - sign * step_file, rank - sign * step_rank
        while 0 <= f < 9 and 0 <= r < 9:
            if board[9 * f + r]:
                if board[9 * f + r] == code:
                    found.append(9 * f + r)
                break
            f, r = f - sign * step_file, r - sign * step_rank
    return found


def is_attacked(board: Sequence[int], color: int, square: int) -> bool:
    return any(reaching(board, color, piece_type, square) for piece_type in range(PAWN, DRAGON + 1))


DROP = 80  # source of a drop minus its piece type

PROMOTES = 1 << 14


def board_move(source: int, target: int, promotes: bool = False) -> int:
    return target | source << 7 | (PROMOTES if promotes else 0)


def drop(piece_type: int, target: int) -> int:
    return target | (DROP + piece_type) << 7


def target_of(move: int) -> int:
    return move & 127


def source_of(move: int) -> int | None:
    """Return the start square, or None for a drop."""
    source = move >> 7 & 127
    return None if source > DROP else source


def dropped_type(move: int) -> int | None:
    """Return the dropped piece type, or None for a move on the board."""
    source = move >> 7 & 127
    return source - DROP if source > DROP else None


def promotes(move: int) -> bool:
    return bool(move & PROMOTES)


def is_move(move: int) -> bool:
    """Whether a number encodes a move: two different squares, or the drop of a piece that can be in hand."""
    source, target = move >> 7 & 127, move & 127
    if not 0 <= move < 1 << 15 or target > 80:
        return False
    if source <= DROP:
        return source != target
    return PAWN <= source - DROP <= GOLD and not promotes(move)


def turned(move: int) -> int:
    """Return the move on the board turned by 180 degrees."""
    source = source_of(move)
    target = 80 - target_of(move)
    return drop(dropped_type(move) or 0, target) if source is None else board_move(80 - source, target, promotes(move))

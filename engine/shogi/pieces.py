"""Names and movements of the pieces, in plain Python: what notations and readers need of the rules.

The numbers are those of yomi.native.shogi (squares by files from Black's right edge, piece codes in which White's are
16 higher); this module imports no kernels, so that texts can be read before anything is compiled or loaded.
"""

from collections.abc import Sequence

from yomi.engine.color import BLACK, WHITE

PAWN, LANCE, KNIGHT, SILVER, BISHOP, ROOK, GOLD, KING = range(1, 9)
PROM_PAWN, PROM_LANCE, PROM_KNIGHT, PROM_SILVER, HORSE, DRAGON = range(9, 15)

PROMOTION = 8
"""What promotion adds to a piece type."""

WHITE_CODE = 16
"""What White's piece codes have more than Black's."""

HAND_TYPES = (PAWN, LANCE, KNIGHT, SILVER, GOLD, BISHOP, ROOK)
"""Piece type of each index into a hand."""

HAND_INDEX = {piece_type: index for index, piece_type in enumerate(HAND_TYPES)}

LETTERS = " PLNSBRGK"
"""SFEN's letter of each unpromoted type."""

COUNTS = {PAWN: 18, LANCE: 4, KNIGHT: 4, SILVER: 4, BISHOP: 2, ROOK: 2, GOLD: 4, KING: 2}
"""Pieces of a full set by unpromoted type."""

NAMES = ("", "pawn", "lance", "knight", "silver", "bishop", "rook", "gold", "king")

Steps = tuple[tuple[int, int], ...]

_GOLD: Steps = ((0, -1), (1, -1), (-1, -1), (1, 0), (-1, 0), (0, 1))
_SILVER: Steps = ((0, -1), (1, -1), (-1, -1), (1, 1), (-1, 1))
_DIAGONAL: Steps = ((1, -1), (-1, -1), (1, 1), (-1, 1))
_STRAIGHT: Steps = ((0, -1), (0, 1), (1, 0), (-1, 0))

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
"""Single steps of a type as (files, ranks) for Black: a higher file is to the left, a lower rank is forward."""

SLIDES: dict[int, Steps] = {
    LANCE: ((0, -1),),
    BISHOP: _DIAGONAL,
    HORSE: _DIAGONAL,
    ROOK: _STRAIGHT,
    DRAGON: _STRAIGHT,
}
"""Directions in which a type goes any distance."""


def code_of(piece_type: int, color: int) -> int:
    """Return the code of a piece on the board."""
    return piece_type + (WHITE_CODE if color == WHITE else 0)


def color_of(code: int) -> int:
    """Return the color of a piece by its code, which is not 0."""
    return WHITE if code > WHITE_CODE else BLACK


def type_of(code: int) -> int:
    """Return the piece type of a code; 0 for an empty square."""
    return code & 15


def unpromoted(piece_type: int) -> int:
    """Return the type that a piece has in a hand."""
    return piece_type - PROMOTION if piece_type > KING else piece_type


def can_promote(piece_type: int) -> bool:
    """Whether pieces of this type promote."""
    return piece_type < GOLD


def in_zone(square: int, color: int) -> bool:
    """Whether a square lies in the three ranks where `color` promotes."""
    rank = square % 9
    return rank < 3 if color == BLACK else rank > 5


def has_future(piece_type: int, color: int, square: int) -> bool:
    """Whether a piece of this type can ever move from a square: pawn, lance and knight must not stand too far ahead."""
    rank = square % 9 if color == BLACK else 8 - square % 9
    if piece_type in (PAWN, LANCE):
        return rank > 0
    return piece_type != KNIGHT or rank > 1


def reaching(board: Sequence[int], color: int, piece_type: int, target: int) -> list[int]:
    """Return the squares from which pieces of `color` and this type move or capture to `target`, pinned ones too.

    Args:
        board: 81 piece codes; what stands on `target` does not matter.
        color: of the pieces.
        piece_type: as it stands on the board, promoted or not.
        target: a square.
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
    """Whether a piece of `color` attacks a square."""
    return any(reaching(board, color, piece_type, square) for piece_type in range(PAWN, DRAGON + 1))

"""Tables of the shogi board: steps, rays and directions, as sets of squares (yomi.native.shogi.squares).

square = file * 9 + rank, with file 0 on Black's right and rank 0 at White's edge. Squares, directions and codes are
uint64 in kernels.

Direction 7 - d is the opposite of d. Directions below 4 lead to higher squares.
"""

import numpy as np
import numpy.typing as npt

from yomi.native.bits import U, lowest_bit
from yomi.native.jit import kernel
from yomi.native.shogi import pieces
from yomi.native.shogi.pieces import HAND_TYPES, KNIGHT, LANCE, PAWN, PROMOTION, WHITE_PIECE
from yomi.native.shogi.squares import NO_SQUARE, SQUARES, first_square, last_square, squares_at

ROWS = 82

# (files, ranks) of a step in each direction. 0 and 7 run along a file.
DIRECTIONS = ((0, 1), (1, -1), (1, 0), (1, 1), (-1, -1), (-1, 0), (-1, 1), (0, -1))
NO_DIRECTION = 8

Words = npt.NDArray[np.uint64]


def _words(squares: list[int]) -> tuple[int, int]:
    bits = sum(1 << square for square in squares)
    return bits & (2**64 - 1), bits >> 64


def _flat(rows: list[list[int]]) -> Words:
    return np.array([word for row in rows for word in _words(row)], np.uint64)


def shifted(square: int, step: tuple[int, int], count: int = 1) -> int:
    """Return the square `count` steps (files, ranks) away, or NO_SQUARE beyond the board."""
    file, rank = square // 9 + count * step[0], square % 9 + count * step[1]
    is_inside = square != NO_SQUARE and 0 <= file < 9 and 0 <= rank < 9
    return file * 9 + rank if is_inside else NO_SQUARE


def _ray(square: int, step: tuple[int, int]) -> list[int]:
    found = (shifted(square, step, count) for count in range(1, 9))
    return [each for each in found if each != NO_SQUARE]


def _turned(step: tuple[int, int], white: bool) -> tuple[int, int]:
    return (-step[0], -step[1]) if white else step


def _make_steps() -> Words:
    rows = []
    for code in range(32):
        steps = [_turned(step, code >= WHITE_PIECE) for step in pieces.STEPS.get(code % WHITE_PIECE, ())]
        for square in range(ROWS):
            reached = (shifted(square, step) for step in steps)
            rows.append([each for each in reached if each != NO_SQUARE])
    return _flat(rows)


def _make_slides() -> npt.NDArray[np.uint8]:
    slides = np.zeros(32, np.uint8)
    for code in range(32):
        for step in pieces.SLIDES.get(code % WHITE_PIECE, ()):
            slides[code] |= 1 << DIRECTIONS.index(_turned(step, code >= WHITE_PIECE))
    return slides


def _make_direction() -> npt.NDArray[np.uint8]:
    table = np.full((ROWS, ROWS), NO_DIRECTION, np.uint8)
    for square in range(SQUARES):
        for number, step in enumerate(DIRECTIONS):
            table[square, _ray(square, step)] = number
    return table.ravel()


def _union(directions: tuple[int, ...]) -> Words:
    return _flat([[each for d in directions for each in _ray(s, DIRECTIONS[d])] for s in range(ROWS)])


def _ranks(ranks: set[int]) -> list[int]:
    return [square for square in range(SQUARES) if square % 9 in ranks]


def _make_dead() -> Words:
    """Return the squares from which a piece of each code could never move again."""
    far = {PAWN: 1, LANCE: 1, KNIGHT: 2}
    rows = []
    for code in range(32):
        depth = far.get(code % WHITE_PIECE, 0)
        rows.append(_ranks(set(range(9 - depth, 9)) if code >= WHITE_PIECE else set(range(depth))))
    return _flat(rows)


# uint64[32 * ROWS * 2]: squares that a piece steps to, row = code * ROWS + square
STEPS = _make_steps()
SLIDES = _make_slides()  # uint8[32]: directions in which a piece slides, one bit each
# uint64[8 * ROWS * 2]: squares from a square (excluded) to the edge, row = direction * ROWS + square.
RAYS = _flat([_ray(square, step) for step in DIRECTIONS for square in range(ROWS)])
# uint8[ROWS * ROWS]: direction from the first square to the second, or NO_DIRECTION
DIRECTION = _make_direction()
DIAGONALS = _union((1, 3, 4, 6))  # uint64[ROWS * 2]: squares on a square's diagonals
STRAIGHTS = _union((0, 2, 5, 7))  # uint64[ROWS * 2]: squares on a square's file and rank
# uint64[32 * 2]: squares from which an unpromoted piece could never move
DEAD = _make_dead()
# uint64[2 * 2]: promotion zones of Black and White
ZONE = _flat([_ranks({0, 1, 2}), _ranks({6, 7, 8})])
# uint64[SQUARES * 2]: the file of a square.
FILES = _flat([list(range(square // 9 * 9, square // 9 * 9 + 9)) for square in range(SQUARES)])

HAND_TYPE = np.array(HAND_TYPES, np.uint8)  # uint8[7]: HAND_TYPES for kernels
# uint8[16]: index in a hand, by type, promoted or not (not for kings).
HAND_INDEX = np.array([HAND_TYPES.index(t % PROMOTION) if t % PROMOTION else 0 for t in range(16)], np.uint8)
# uint8[2 * 7]: lowest bit of each count in packed hands. The bit above each count stays zero.
HAND_SHIFT = np.array([0, 6, 10, 14, 18, 22, 25, 28, 34, 38, 42, 46, 50, 53], np.uint8)
# The bits above Black's counts: the comparison of two hands borrows from them.
HAND_GUARD = sum(1 << bit for bit in (5, 9, 13, 17, 21, 24, 27))
HANDS_MASK = (1 << 56) - 1

# uint8[16]: the set of `type_bits` for each type.
GROUP = np.array([0, 0, 1, 2, 3, 5, 6, 4, 7, 4, 4, 4, 4, 5, 6, 0], np.uint8)


_RANDOM = np.random.Generator(np.random.PCG64(18590611))
# uint64[32 * SQUARES]: a key for each piece code and square, row = code * SQUARES + square
ZOBRIST: Words = _RANDOM.integers(1, 2**64, size=32 * SQUARES, dtype=np.uint64)


@kernel
def nearest(squares, direction):  # type: ignore[no-untyped-def]
    """Return the square of a nonempty set that is nearest to the origin of a ray in `direction`."""
    return first_square(squares) if direction < U(4) else last_square(squares)


@kernel
def attacks(code, square, occupied):  # type: ignore[no-untyped-def]
    """Return the squares that a piece of `code` on `square` attacks, given the occupied squares."""
    found = squares_at(STEPS, code * U(ROWS) + square)
    slides = U(SLIDES[code])
    while slides != U(0):
        d = lowest_bit(slides)
        slides &= slides - U(1)
        ray = squares_at(RAYS, d * U(ROWS) + square)
        blockers = ray & occupied
        if blockers:
            ray ^= squares_at(RAYS, d * U(ROWS) + nearest(blockers, d))
        found |= ray
    return found

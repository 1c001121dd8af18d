"""Tables of the shogi board: steps, rays and directions, as sets of squares in two words.

square = file * 9 + rank, with file 0 on Black's right and rank 0 at White's edge. A set is two uint64 words, low
(squares 0..63) and high (64..80), at indices 2 * row and 2 * row + 1 of a flat table.

The kernels take and return a set as two uint64 (low, high); squares, directions and codes are uint64, too.

Direction 7 - d is the opposite of d. Directions below 4 lead to higher squares.
"""

from typing import Any

import numpy as np
import numpy.typing as npt
from llvmlite import ir
from numba import types

from yomi.native.bits import U, lowest_bit
from yomi.native.jit import inlined, kernel, machine_code

SQUARES = 81
NO_SQUARE = 81  # Square of a missing king. Tables by square have an empty row for it.
ROWS = 82
PAWN, LANCE, KNIGHT, SILVER, BISHOP, ROOK, GOLD, KING = 1, 2, 3, 4, 5, 6, 7, 8
PROM_PAWN, PROM_LANCE, PROM_KNIGHT, PROM_SILVER, HORSE, DRAGON = 9, 10, 11, 12, 13, 14
PROMOTED = 8  # difference between a piece type and its promoted form
WHITE_PIECE = 16  # difference between the codes of a White and a Black piece
# Piece types in the order of a hand.
HAND_TYPES = (PAWN, LANCE, KNIGHT, SILVER, GOLD, BISHOP, ROOK)

# (files, ranks) of a step in each direction. 0 and 7 run along a file.
DIRECTIONS = ((0, 1), (1, -1), (1, 0), (1, 1), (-1, -1), (-1, 0), (-1, 1), (0, -1))
NO_DIRECTION = 8

_UP_LEFT, _UP_RIGHT, _DOWN_LEFT, _DOWN_RIGHT = (1, -1), (-1, -1), (1, 1), (-1, 1)
_DIAGONAL = (_UP_LEFT, _UP_RIGHT, _DOWN_LEFT, _DOWN_RIGHT)
_STRAIGHT = ((0, -1), (0, 1), (1, 0), (-1, 0))
_GOLD = ((0, -1), (0, 1), (1, 0), (-1, 0), _UP_LEFT, _UP_RIGHT)
# Steps of a Black piece by type. Slides are in `SLIDES`.
BLACK_STEPS: dict[int, tuple[tuple[int, int], ...]] = {
    PAWN: ((0, -1),),
    LANCE: (),
    KNIGHT: ((1, -2), (-1, -2)),
    SILVER: ((0, -1), *_DIAGONAL),
    BISHOP: (),
    ROOK: (),
    GOLD: _GOLD,
    KING: (*_STRAIGHT, *_DIAGONAL),
    PROM_PAWN: _GOLD,
    PROM_LANCE: _GOLD,
    PROM_KNIGHT: _GOLD,
    PROM_SILVER: _GOLD,
    HORSE: _STRAIGHT,
    DRAGON: _DIAGONAL,
}
_SLIDERS = {LANCE: ((0, -1),), BISHOP: _DIAGONAL, ROOK: _STRAIGHT, HORSE: _DIAGONAL, DRAGON: _STRAIGHT}

Words = npt.NDArray[np.uint64]


def _words(squares: list[int]) -> tuple[int, int]:
    bits = sum(1 << square for square in squares)
    return bits & (2**64 - 1), bits >> 64


def _flat(rows: list[list[int]]) -> Words:
    return np.array([word for row in rows for word in _words(row)], np.uint64)


def _shifted(square: int, step: tuple[int, int], count: int = 1) -> int | None:
    if square == NO_SQUARE:
        return None
    file, rank = square // 9 + count * step[0], square % 9 + count * step[1]
    return file * 9 + rank if 0 <= file < 9 and 0 <= rank < 9 else None


def _ray(square: int, step: tuple[int, int]) -> list[int]:
    found = (_shifted(square, step, count) for count in range(1, 9))
    return [each for each in found if each is not None]


def _turned(step: tuple[int, int], white: bool) -> tuple[int, int]:
    return (-step[0], -step[1]) if white else step


def _make_steps() -> Words:
    rows = []
    for code in range(32):
        steps = [_turned(step, code >= WHITE_PIECE) for step in BLACK_STEPS.get(code % WHITE_PIECE, ())]
        for square in range(ROWS):
            reached = (_shifted(square, step) for step in steps)
            rows.append([each for each in reached if each is not None])
    return _flat(rows)


def _make_slides() -> npt.NDArray[np.uint8]:
    slides = np.zeros(32, np.uint8)
    for code in range(32):
        for step in _SLIDERS.get(code % WHITE_PIECE, ()):
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
    """Squares from which a piece of each code could never move."""
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
HIGH = (1 << (SQUARES - 64)) - 1  # the bits of a high word that are squares

HAND_TYPE = np.array(HAND_TYPES, np.uint8)  # uint8[7]: HAND_TYPES for kernels
# uint8[16]: index in a hand, by type, promoted or not (not for kings).
HAND_INDEX = np.array([HAND_TYPES.index(t % PROMOTED) if t % PROMOTED else 0 for t in range(16)], np.uint8)
# uint8[2 * 7]: lowest bit of each count in packed hands. The bit above each count stays zero.
HAND_SHIFT = np.array([0, 6, 10, 14, 18, 22, 25, 28, 34, 38, 42, 46, 50, 53], np.uint8)
# The bits above Black's counts: the comparison of two hands borrows from them.
HAND_GUARD = sum(1 << bit for bit in (5, 9, 13, 17, 21, 24, 27))
HANDS_MASK = (1 << 56) - 1

# uint8[16]: the set of `type_bits` for each type.
GROUP = np.array([0, 0, 1, 2, 3, 5, 6, 4, 7, 4, 4, 4, 4, 5, 6, 0], np.uint8)


def _make_zobrist() -> Words:
    return np.random.Generator(np.random.PCG64(18590611)).integers(1, 2**64, size=32 * SQUARES, dtype=np.uint64)


# uint64[32 * SQUARES]: a key for each piece code and square, row = code * SQUARES + square
ZOBRIST = _make_zobrist()


@machine_code(lambda word: U(int(word).bit_length() - 1))
def highest_bit(typing_context: Any, word: Any) -> Any:
    """Return the index of the highest set bit of a nonzero uint64."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        zeros = builder.ctlz(args[0], ir.Constant(ir.IntType(1), 1))
        return builder.xor(zeros, ir.Constant(ir.IntType(64), 63))

    return types.uint64(types.uint64), codegen


@inlined
def first_square(low, high):  # type: ignore[no-untyped-def]
    """Return the lowest square of a nonempty set."""
    return lowest_bit(low) if low != U(0) else U(64) + lowest_bit(high)


@inlined
def without_first(low, high):  # type: ignore[no-untyped-def]
    """Return a nonempty set without its lowest square."""
    if low != U(0):
        low &= low - U(1)
    else:
        high &= high - U(1)
    return low, high


@inlined
def toggled(low, high, square):  # type: ignore[no-untyped-def]
    """Return a set with a square added, or removed if it was a member."""
    if square < U(64):
        low ^= U(1) << square
    else:
        high ^= U(1) << (square & U(63))
    return low, high


@kernel
def nearest(low, high, direction):  # type: ignore[no-untyped-def]
    """Return the square of a nonempty set that is nearest to the origin of a ray in `direction`."""
    if direction < U(4):
        return first_square(low, high)
    return U(64) + highest_bit(high) if high != U(0) else highest_bit(low)


@kernel
def attacks(code, square, occupied_low, occupied_high):  # type: ignore[no-untyped-def]
    """Return the squares that a piece of `code` on `square` attacks, with occupied squares."""
    row = (code * U(ROWS) + square) * U(2)
    low = STEPS[row]
    high = STEPS[row + U(1)]
    slides = U(SLIDES[code])
    while slides != U(0):
        d = lowest_bit(slides)
        slides &= slides - U(1)
        row = (d * U(ROWS) + square) * U(2)
        ray_low = RAYS[row]
        ray_high = RAYS[row + U(1)]
        blockers_low = ray_low & occupied_low
        blockers_high = ray_high & occupied_high
        if blockers_low | blockers_high != U(0):
            row = (d * U(ROWS) + nearest(blockers_low, blockers_high, d)) * U(2)
            ray_low ^= RAYS[row]
            ray_high ^= RAYS[row + U(1)]
        low |= ray_low
        high |= ray_high
    return low, high

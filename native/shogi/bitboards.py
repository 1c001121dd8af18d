"""Sets of squares in two uint64 words (low, high): bit operations and attacks.

Squares, directions and codes are uint64, too.
"""

from typing import Any

from llvmlite import ir
from numba import types

from yomi.native.bits import U, lowest_bit
from yomi.native.jit import inlined, kernel, machine_code
from yomi.native.shogi.tables import RAYS, ROWS, SLIDES, STEPS


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

"""Sets of squares in kernels, compared with Python's integers."""

import random

import numpy as np

from tests.looping import looped
from yomi.native.bits import U
from yomi.native.jit import kernel
from yomi.native.shogi import squares
from yomi.native.shogi.squares import SQUARES

WORDS = (1 << 64) - 1


@kernel
def _combined(words, square, found, numbers):  # type: ignore[no-untyped-def]
    """Write operations on the sets in rows 0 and 1 of `words`."""
    a, b = squares.squares_at(words, U(0)), squares.squares_at(words, U(1))
    squares.put(found, U(0), a & b)
    squares.put(found, U(1), a | b)
    squares.put(found, U(2), a ^ b)
    squares.put(found, U(3), squares.all_squares() & ~a)
    squares.put(found, U(4), squares.without_first(a))
    squares.put(found, U(5), squares.only(square))
    squares.put(found, U(6), squares.one_rank_down(b))
    squares.put(found, U(7), squares.one_rank_up(b))
    squares.put(found, U(8), squares.no_squares())
    numbers[0] = squares.first_square(a)
    numbers[1] = squares.last_square(a)
    numbers[2] = squares.number_of(a)
    numbers[3] = squares.has(words, U(0), square)
    numbers[4] = 1 if a & b else 0
    numbers[5] = 1 if not b else 0


@looped("seed", range(50))
def test_sets_are_numbers_of_81_bits(seed: int) -> None:
    rng = random.Random(seed)
    sparse = rng.choice((1, 3, 40))
    a = sum({1 << rng.randrange(SQUARES) for _ in range(sparse)})
    b = sum({1 << rng.randrange(SQUARES) for _ in range(sparse)}) if seed else 0
    square = rng.randrange(SQUARES)
    words = np.array([a & WORDS, a >> 64, b & WORDS, b >> 64], np.uint64)
    found, numbers = np.zeros(18, np.uint64), np.zeros(6, np.uint64)
    _combined(words, square, found, numbers)
    sets = [int(low) | int(high) << 64 for low, high in found.reshape(-1, 2)]
    everything = (1 << SQUARES) - 1
    assert sets == [a & b, a | b, a ^ b, everything & ~a, a & (a - 1), 1 << square, b << 1, b >> 1, 0]
    first, last = (a & -a).bit_length() - 1, a.bit_length() - 1
    assert numbers.tolist() == [first, last, a.bit_count(), a >> square & 1, bool(a & b), not b]

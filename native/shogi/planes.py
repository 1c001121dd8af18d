"""Inputs of shogi networks that read the whole board, and policy labels of moves, in dlshogi's and AlphaZero's form."""

import numpy as np
import numpy.typing as npt

from yomi.native.bits import U, reversed_bits
from yomi.native.jit import inlined, kernel
from yomi.native.packing import set_bit, unpack_bits
from yomi.native.shogi.position import BISHOPS, FIRST_DROP, FORM_ALPHAZERO, ROOKS, WHITE, occupied, of_type, pieces_of
from yomi.native.shogi.rules import DRAW, repetition
from yomi.native.shogi.squares import (
    NO_SQUARE,
    SQUARES,
    first_square,
    has,
    no_squares,
    number_of,
    squares_at,
    without_first,
    words_of,
)
from yomi.native.shogi.tables import ZONE, attacks
from yomi.native.spec import packed_words

# dlshogi's form is from the mover's side: colors are swapped and the board is rotated for White. AlphaZero's form, as
# cshogi's author trained it, is from Black's side with a plane for the color. Planes are [9][9] = [file][rank].
PLANES, ALPHAZERO_PLANES = 62, 45
EXTRAS, ENTERING_EXTRAS = 57, 119
# dlshogi's planes per side: pieces by type, attacks by type, squares attacked once, twice, three times.
SIDE_PLANES = 31
ATTACKS, COUNTS = 14, 28
# uint8[7]: maximum count of each piece in hand
HAND_MAX = np.array([8, 4, 4, 4, 4, 2, 2], np.uint8)
HAND_EXTRAS, CHECK_EXTRA = 28, 56
# Entering king's extras per side: in the zone, pieces missing (0 to 9), points missing (0 to 19).
ENTERING_SIDE, NEAR_PIECES, NEAR_POINTS = 31, 10, 20
# AlphaZero's planes after the 28 of pieces. The last of the 45, the count of moves, was never filled.
REPEATED, ALPHAZERO_HANDS, COLOR = 28, 29, 43
ALPHAZERO_WAYS = 66
# First word of the bits of dlshogi's second input.
EXTRAS_WORD = packed_words(PLANES * SQUARES)

# Working memory of `write_planes`.
SCRATCH_DTYPE = np.dtype([("bits", np.uint64, (EXTRAS_WORD + packed_words(ENTERING_EXTRAS),))])

Table = npt.NDArray[np.uint8]


def _step(origin: int, target: int) -> tuple[int, int]:
    return target // 9 - origin // 9, target % 9 - origin % 9


def _sign(number: int) -> int:
    return (number > 0) - (number < 0)


def _make_directions() -> Table:
    """Return dlshogi's direction for each pair (from, to), or 0 if no piece moves in that way."""
    ways = [(0, -1), (1, -1), (-1, -1), (1, 0), (-1, 0), (0, 1), (1, 1), (-1, 1)]
    table = np.zeros((SQUARES, SQUARES), np.uint8)
    for origin in range(SQUARES):
        for target in range(SQUARES):
            files, ranks = _step(origin, target)
            if abs(files) == 1 and ranks == -2:
                table[origin, target] = 8 if files > 0 else 9
            elif origin != target and (files == 0 or ranks == 0 or abs(files) == abs(ranks)):
                table[origin, target] = ways.index((_sign(files), _sign(ranks)))
    return table.reshape(-1)


def _make_ways() -> Table:
    """Return AlphaZero's way for each (from, to): eight distances in eight directions, then knight's moves."""
    ways = [(-1, -1), (-1, 1), (-1, 0), (1, -1), (1, 1), (1, 0), (0, -1), (0, 1)]
    table = np.zeros((SQUARES, SQUARES), np.uint8)
    for origin in range(SQUARES):
        for target in range(SQUARES):
            files, ranks = _step(origin, target)
            if abs(files) == 1 and abs(ranks) == 2:
                table[origin, target] = 64 if files < 0 else 65
            elif origin != target and (files == 0 or ranks == 0 or abs(files) == abs(ranks)):
                distance = max(abs(files), abs(ranks))
                table[origin, target] = ways.index((_sign(files), _sign(ranks))) * 8 + distance - 1
    return table.reshape(-1)


DIRECTIONS = _make_directions()  # uint8[81 * 81]
WAYS = _make_ways()  # uint8[81 * 81]


@inlined
def _write_set(bits, plane, squares, turned):  # type: ignore[no-untyped-def]
    """Add a set of squares to a plane, rotated if `turned`."""
    low, high = words_of(squares)
    if turned != U(0):  # square s of 128 bits goes to 127 - s, then to 80 - s
        low, high = reversed_bits(high), reversed_bits(low)
        low = (low >> U(47)) | (high << U(17))
        high >>= U(47)
    first = plane * U(SQUARES)
    word = first >> U(6)
    shift = first & U(63)
    # Two shifts: a shift by 64 is undefined.
    rest = U(63) - shift
    bits[word] |= low << shift
    bits[word + U(1)] |= ((low >> U(1)) >> rest) | (high << shift)
    bits[word + U(2)] |= (high >> U(1)) >> rest


@inlined
def _write_side(pos, bits, color, first, turned, blockers):  # type: ignore[no-untyped-def]
    rest = pieces_of(pos, color)
    once = twice = thrice = no_squares()
    while rest:
        square = first_square(rest)
        rest = without_first(rest)
        code = U(pos.board[square])
        plane = first + (code & U(15)) - U(1)
        set_bit(bits, plane * U(SQUARES) + (square if turned == U(0) else U(SQUARES - 1) - square))
        attacked = attacks(code, square, blockers)
        thrice |= twice & attacked
        twice |= once & attacked
        once |= attacked
        _write_set(bits, plane + U(ATTACKS), attacked, turned)
    _write_set(bits, first + U(COUNTS), once, turned)
    _write_set(bits, first + U(COUNTS + 1), twice, turned)
    _write_set(bits, first + U(COUNTS + 2), thrice, turned)


@inlined
def _write_entering(pos, color, bits, first):  # type: ignore[no-untyped-def]
    """Write whether the king has entered, and the numbers of pieces and points that a declaration win still lacks.

    As in dlshogi, a number beyond the requirement sets no plane.
    """
    king = U(pos.king[color])
    inside = squares_at(ZONE, color) & pieces_of(pos, color)
    count = number_of(inside)
    if king != U(NO_SQUARE) and has(ZONE, color, king) != U(0):
        set_bit(bits, first)
        count -= U(1)
    if count <= U(10) and count > U(0):
        set_bit(bits, first + U(11) - count)
    large = number_of(inside & (of_type(pos, BISHOPS) | of_type(pos, ROOKS)))
    large += U(pos.hand[color, U(5)]) + U(pos.hand[color, U(6)])
    points = count + U(4) * large
    for i in range(U(7)):
        points += U(pos.hand[color, i])
    needed = U(28) - color
    if points <= needed and needed - points < U(NEAR_POINTS):
        set_bit(bits, first + U(1 + NEAR_PIECES) + needed - points)


@kernel
def write_bits(pos, history, symmetry, scratch, bits, extras):  # type: ignore[no-untyped-def]
    """Write both inputs of dlshogi's form as bits; the second starts a new word.

    `bits` is uint64[EXTRAS_WORD + 1 or 2]: 62 planes [9][9]; 57 or 119 channels. The arguments history, symmetry (there
    is none), scratch and extras are unused.
    """
    for w in range(U(bits.size)):
        bits[w] = U(0)
    us = U(pos.side_to_move) - U(1)
    blockers = occupied(pos)
    hands = U(0)
    for side in range(U(2)):
        color = us ^ side
        _write_side(pos, bits, color, side * U(SIDE_PLANES), us, blockers)
        base = side * U(HAND_EXTRAS)
        for i in range(U(7)):
            most = U(HAND_MAX[i])
            # Counts in hand as a row of ones.
            hands |= ((U(1) << min(U(pos.hand[color, i]), most)) - U(1)) << base
            base += most
        if bits.size > EXTRAS_WORD + 1:
            _write_entering(pos, color, bits, U(64 * EXTRAS_WORD + EXTRAS) + side * U(ENTERING_SIDE))
    if pos.in_check != 0:
        hands |= U(1) << U(CHECK_EXTRA)
    bits[U(EXTRAS_WORD)] |= hands


@kernel
def write_alphazero(pos, history, planes):  # type: ignore[no-untyped-def]
    """Write AlphaZero's planes (float32[45, 9, 9]): pieces and hands of Black and White, repetition, color."""
    flat = planes.reshape(-1)
    for i in range(U(flat.size)):
        flat[i] = np.float32(0.0)
    for square in range(U(SQUARES)):
        code = U(pos.board[square])
        if code != U(0):
            # The code of a White piece is 16 greater, its plane 14.
            flat[(code - U(1) - (code >> U(4)) * U(2)) * U(SQUARES) + square] = np.float32(1.0)
    if repetition(pos, history, 0) == DRAW:
        planes[U(REPEATED)] = np.float32(1.0)
    for color in range(U(2)):
        for i in range(U(7)):
            count = pos.hand[color, i]
            if count != 0:
                planes[U(ALPHAZERO_HANDS) + color * U(7) + i] = np.float32(count)
    if pos.side_to_move == WHITE:
        planes[U(COLOR)] = np.float32(1.0)


@kernel
def write_planes(pos, history, symmetry, scratch, planes, extras):  # type: ignore[no-untyped-def]
    """Write the network's inputs as numbers; the number of planes selects the form.

    `planes` is float32[62, 9, 9] or float32[45, 9, 9], `extras` float32[57] or float32[119]: dlshogi's second input.
    There is no symmetry. `scratch` is a record of SCRATCH_DTYPE of this thread.
    """
    if planes.shape[0] == ALPHAZERO_PLANES:
        write_alphazero(pos, history, planes)
    else:
        bits = scratch.bits[: U(EXTRAS_WORD) + ((U(extras.size) + U(63)) >> U(6))]
        write_bits(pos, history, symmetry, scratch, bits, extras)
        unpack_bits(bits, 0, planes.reshape(-1))
        unpack_bits(bits, EXTRAS_WORD, extras)


@kernel
def policy_index(pos, move, symmetry):  # type: ignore[no-untyped-def]
    """Return the label of a move of the side to move: direction * 81 + square, by the record's form."""
    to = U(move) & U(127)
    origin = (U(move) >> U(7)) & U(127)
    promotes = (U(move) >> U(14)) & U(1)
    if pos.form == FORM_ALPHAZERO:
        if origin >= U(FIRST_DROP):
            kind = origin - U(FIRST_DROP)
            # Gold comes before bishop and rook in a hand, after them in moves.
            place = kind if kind < U(4) else U(4) if kind == U(6) else kind + U(1)
            return (U(2 * ALPHAZERO_WAYS) + place) * U(SQUARES) + to
        return (promotes * U(ALPHAZERO_WAYS) + U(WAYS[origin * U(SQUARES) + to])) * U(SQUARES) + origin
    if pos.side_to_move == WHITE:
        to = U(SQUARES - 1) - to
    if origin >= U(FIRST_DROP):
        return (U(20) + origin - U(FIRST_DROP)) * U(SQUARES) + to
    if pos.side_to_move == WHITE:
        origin = U(SQUARES - 1) - origin
    return (promotes * U(10) + U(DIRECTIONS[origin * U(SQUARES) + to])) * U(SQUARES) + to

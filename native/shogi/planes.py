"""The network's view of a shogi position: planes, scalar inputs and the labels of moves, in two forms.

dlshogi's form sees the board from the side to move's chair: colors are swapped and the board is turned for White.
AlphaZero's form, as cshogi's author trained it, always sees it from Black's and has a plane for the color.

A plane's index is the square's: [9][9] = [file][rank].
"""

from typing import Any

import numpy as np
import numpy.typing as npt
from llvmlite import ir
from numba import types
from numba.core import cgutils

from native.bits import U, lowest_bit, popcount
from native.jit import inlined, kernel, machine_code
from native.shogi.bitboards import attacks, first_square, without_first
from native.shogi.position import BISHOPS, FIRST_DROP, FORM_ALPHAZERO, ROOKS, WHITE
from native.shogi.rules import ALL_PLIES, DRAW, repetition
from native.shogi.tables import NO_SQUARE, SQUARES, ZONE

PLANES, ALPHAZERO_PLANES = 62, 45
EXTRAS, ENTERING_EXTRAS = 57, 119
SIDE_PLANES = 31
"""dlshogi's planes of one side: pieces by type, attacks by type, squares attacked once, twice, three times."""
ATTACKS, COUNTS = 14, 28
HAND_MAX = np.array([8, 4, 4, 4, 4, 2, 2], np.uint8)
"""uint8[7]: what dlshogi counts of each piece in hand; more pawns look like eight."""
HAND_EXTRAS, CHECK_EXTRA = 28, 56
ENTERING_SIDE, NEAR_PIECES, NEAR_POINTS = 31, 10, 20
"""Entering king's extras of one side: in the zone or not, pieces still to bring (0 to 9), points (0 to 19)."""
REPEATED, ALPHAZERO_HANDS, COLOR = 28, 29, 43
"""AlphaZero's planes behind the 28 of pieces; the last of the 45, for the count of moves, was never filled."""
ALPHAZERO_WAYS = 66

Table = npt.NDArray[np.uint8]


def _step(origin: int, target: int) -> tuple[int, int]:
    return target // 9 - origin // 9, target % 9 - origin % 9


def _sign(number: int) -> int:
    return (number > 0) - (number < 0)


def _make_directions() -> Table:
    """Return dlshogi's direction for each (from, to); 0 where no piece moves so."""
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
    """Return AlphaZero's way for each (from, to), eight distances in each of eight directions, then knights' moves."""
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


DIRECTIONS = _make_directions()
"""uint8[81 * 81]"""
WAYS = _make_ways()
"""uint8[81 * 81]"""


@machine_code(lambda array: array.fill(0))
def clear(typing_context: Any, array: Any) -> Any:
    """Write zeros over a contiguous array."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        data = context.make_array(signature.args[0])(context, builder, args[0])
        size = builder.mul(data.nitems, data.itemsize)
        cgutils.memset(builder, data.data, size, ir.Constant(ir.IntType(8), 0))
        return context.get_dummy_value()

    return types.none(array), codegen


@inlined
def _write_set(flat, plane, low, high, last):  # type: ignore[no-untyped-def]
    """Write ones on a set of squares of a plane; `last` is 80 where the board is turned, else 0."""
    base = plane * U(SQUARES)
    while low != U(0):
        square = lowest_bit(low)
        flat[base + (square if last == U(0) else last - square)] = np.float32(1.0)
        low &= low - U(1)
    while high != U(0):
        square = U(64) + lowest_bit(high)
        flat[base + (square if last == U(0) else last - square)] = np.float32(1.0)
        high &= high - U(1)


@inlined
def _write_side(pos, flat, color, first, last, occupied_low, occupied_high):  # type: ignore[no-untyped-def]
    """Write dlshogi's 31 planes of one side."""
    low = pos.color_bits[color * U(2)]
    high = pos.color_bits[color * U(2) + U(1)]
    once_low = once_high = twice_low = twice_high = thrice_low = thrice_high = U(0)
    while low | high != U(0):
        square = first_square(low, high)
        low, high = without_first(low, high)
        code = U(pos.board[square])
        plane = first + (code & U(15)) - U(1)
        flat[plane * U(SQUARES) + (square if last == U(0) else last - square)] = np.float32(1.0)
        attacked_low, attacked_high = attacks(code, square, occupied_low, occupied_high)
        thrice_low |= twice_low & attacked_low
        thrice_high |= twice_high & attacked_high
        twice_low |= once_low & attacked_low
        twice_high |= once_high & attacked_high
        once_low |= attacked_low
        once_high |= attacked_high
        _write_set(flat, plane + U(ATTACKS), attacked_low, attacked_high, last)
    _write_set(flat, first + U(COUNTS), once_low, once_high, last)
    _write_set(flat, first + U(COUNTS + 1), twice_low, twice_high, last)
    _write_set(flat, first + U(COUNTS + 2), thrice_low, thrice_high, last)


@inlined
def _write_entering(pos, color, extras, first):  # type: ignore[no-untyped-def]
    """Write how far one side is from a declaration; who has more than is needed shows nothing, as in dlshogi."""
    zone_low = ZONE[color * U(2)]
    zone_high = ZONE[color * U(2) + U(1)]
    king = U(pos.king[color])
    inside = king != U(NO_SQUARE) and ((zone_high if king >= U(64) else zone_low) >> (king & U(63))) & U(1) != U(0)
    low = zone_low & pos.color_bits[color * U(2)]
    high = zone_high & pos.color_bits[color * U(2) + U(1)]
    pieces = popcount(low) + popcount(high)
    if inside:
        extras[first] = np.float32(1.0)
        pieces -= U(1)
    if pieces <= U(10) and pieces > U(0):
        extras[first + U(11) - pieces] = np.float32(1.0)
    large = popcount(low & (pos.type_bits[U(BISHOPS)] | pos.type_bits[U(ROOKS)]))
    large += popcount(high & (pos.type_bits[U(BISHOPS + 1)] | pos.type_bits[U(ROOKS + 1)]))
    large += U(pos.hand[color, U(5)]) + U(pos.hand[color, U(6)])
    points = pieces + U(4) * large
    for i in range(U(7)):
        points += U(pos.hand[color, i])
    needed = U(28) - color
    if points <= needed and needed - points < U(NEAR_POINTS):
        extras[first + U(1 + NEAR_PIECES) + needed - points] = np.float32(1.0)


@kernel
def write_dlshogi(pos, planes, extras):  # type: ignore[no-untyped-def]
    """Write dlshogi's planes (float32[62, 9, 9]) and the channels of its second input (float32[57] or [119])."""
    clear(planes)
    clear(extras)
    flat = planes.reshape(-1)
    us = U(pos.side_to_move) - U(1)
    last = U(80) * us
    low = pos.color_bits[0] | pos.color_bits[2]
    high = pos.color_bits[1] | pos.color_bits[3]
    for side in range(U(2)):
        color = us ^ side
        _write_side(pos, flat, color, side * U(SIDE_PLANES), last, low, high)
        base = side * U(HAND_EXTRAS)
        for i in range(U(7)):
            for k in range(min(U(pos.hand[color, i]), U(HAND_MAX[i]))):
                extras[base + k] = np.float32(1.0)
            base += U(HAND_MAX[i])
        if extras.shape[0] == ENTERING_EXTRAS:
            _write_entering(pos, color, extras, U(EXTRAS) + side * U(ENTERING_SIDE))
    if pos.in_check != 0:
        extras[U(CHECK_EXTRA)] = np.float32(1.0)


@kernel
def write_alphazero(pos, history, planes):  # type: ignore[no-untyped-def]
    """Write AlphaZero's planes (float32[45, 9, 9]): pieces and hands of Black, of White, repetition, color."""
    clear(planes)
    flat = planes.reshape(-1)
    for square in range(U(SQUARES)):
        code = U(pos.board[square])
        if code != U(0):
            # A White piece's code is 16 more, its plane 14.
            flat[(code - U(1) - (code >> U(4)) * U(2)) * U(SQUARES) + square] = np.float32(1.0)
    if repetition(pos, history, ALL_PLIES) == DRAW:
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
    """Write the network's two inputs; the number of planes tells the form.

    Args:
        pos: position.
        history: its history.
        symmetry: not used: left and right are not mirrored in search.
        scratch: not used.
        planes: float32[62, 9, 9] or float32[45, 9, 9].
        extras: float32[57] or float32[119]: the channels of dlshogi's second input. AlphaZero's form has none.
    """
    if planes.shape[0] == ALPHAZERO_PLANES:
        write_alphazero(pos, history, planes)
    else:
        write_dlshogi(pos, planes, extras)


@kernel
def policy_index(pos, move, symmetry):  # type: ignore[no-untyped-def]
    """Return the label of a move of the side to move: direction * 81 + square, as the record's form has it."""
    to = U(move) & U(127)
    origin = (U(move) >> U(7)) & U(127)
    promotes = (U(move) >> U(14)) & U(1)
    if pos.form == FORM_ALPHAZERO:
        if origin >= U(FIRST_DROP):
            kind = origin - U(FIRST_DROP)
            # A hand has the gold before bishop and rook, moves have it behind.
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

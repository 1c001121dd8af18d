"""Inputs of NNUE evaluations: the rows of the first layer for a position, and the changes by a move."""

from typing import Any, NamedTuple

import numpy as np

from yomi.native.bits import U
from yomi.native.jit import inlined, kernel
from yomi.native.shogi.pieces import (
    BISHOP,
    DRAGON,
    GOLD,
    HORSE,
    KING,
    KNIGHT,
    LANCE,
    PAWN,
    PROM_KNIGHT,
    PROM_LANCE,
    PROM_PAWN,
    PROM_SILVER,
    ROOK,
    SILVER,
    WHITE_PIECE,
)
from yomi.native.shogi.position import FIRST_DROP, occupied
from yomi.native.shogi.squares import SQUARES, first_square, without_first
from yomi.native.shogi.tables import HAND_INDEX, ROWS

# A position has two views, Black's and White's (rotated). In a view each piece has a number, by kind, side and square,
# or by kind, side and count in a hand. A row is this number, or the number within a block that belongs to the square of
# the view's own king.
MAX_ROWS = 40  # maximum rows of a view: 38 pieces and two kings
MAX_CHANGES = 2  # maximum rows that a move adds to, or removes from, a view
NO_ROW = -1
PIECES = 38
# First number of a piece on the board, and the offset of the opponent's numbers.
_BOARD_FIRST, _OTHERS = 90, 81
# First numbers of pieces in hand, in the order of a hand: own, opponent's.
_HANDS = ((1, 39, 49, 59, 69, 79, 85), (20, 44, 54, 64, 74, 82, 88))
_BOARD = {PAWN: 90, LANCE: 252, KNIGHT: 414, SILVER: 576, GOLD: 738, BISHOP: 900, HORSE: 1062, ROOK: 1224}
_BOARD |= dict.fromkeys((PROM_PAWN, PROM_LANCE, PROM_KNIGHT, PROM_SILVER), 738) | {DRAGON: 1386, KING: 1548}
_FIRST_KING = 1548  # first number of a king


class Shape(NamedTuple):
    """How a set of inputs maps numbers to rows."""

    block: int  # rows per square of the own king; 0 if rows do not depend on it
    kings: bool  # whether kings are inputs
    is_folded: bool  # whether both kings share their numbers
    is_mirrored: bool  # whether the board is mirrored if the own king is on files 6 to 9


SHAPES = {
    "K-P": Shape(0, True, False, False),
    "HalfKP": Shape(1548, False, False, False),
    "HalfKP_vm": Shape(1548, False, False, True),
    "HalfKA1": Shape(1710, True, False, False),
    "HalfKA2": Shape(1629, True, True, False),
    "HalfKA_hm1": Shape(1710, True, False, True),
    "HalfKA_hm2": Shape(1629, True, True, True),
}


class NnueInputs(NamedTuple):
    """Tables of a set of inputs."""

    # int32[2 * 2 * 32 * SQUARES]: by view, mirrored or not, piece code and square; NO_ROW if it is no input
    numbers: Any
    hands: Any  # int32[2 * 2 * 7]: first number by view, color and index in a hand
    blocks: Any  # int32[2 * ROWS]: first row of the block, by view and square of its own king
    mirrored: Any  # int32[2 * ROWS]: whether the view is mirrored
    follows_king: Any  # int32[1]: whether a move of the own king changes all rows of a view
    pieces: Any  # int32[1]: inputs of a complete position


class NnueChanges(NamedTuple):
    """Changes by moves, by ply."""

    added: Any  # int32[plies, 2, MAX_CHANGES]: rows by view
    removed: Any  # int32[plies, 2, MAX_CHANGES]
    counts: Any  # int32[plies, 2, 2]: number of rows added and removed; negative if the view must be recomputed


def _mirror(square: int) -> int:
    return (8 - square // 9) * 9 + square % 9


def make_inputs(name: str) -> NnueInputs:
    """Return the tables of a set of inputs of SHAPES."""
    shape = SHAPES[name]
    numbers = np.full((2, 2, 32, SQUARES), NO_ROW, np.int32)
    hands = np.zeros((2, 2, 7), np.int32)
    blocks = np.zeros((2, ROWS), np.int32)
    mirrored = np.zeros((2, ROWS), np.int32)
    for view in range(2):
        for color in range(2):
            hands[view, color] = _HANDS[color ^ view]
            for kind, first in _BOARD.items():
                if kind == KING and not shape.kings:
                    continue
                base = first + _OTHERS * (color ^ view) * (not (kind == KING and shape.is_folded))
                for square in range(SQUARES):
                    seen = SQUARES - 1 - square if view else square
                    numbers[view, 0, kind + WHITE_PIECE * color, square] = base + seen
                    numbers[view, 1, kind + WHITE_PIECE * color, square] = base + _mirror(seen)
        for square in range(SQUARES):
            king = SQUARES - 1 - square if view else square
            mirrored[view, square] = shape.is_mirrored and king >= 45
            blocks[view, square] = shape.block * (_mirror(king) if mirrored[view, square] else king)
    return NnueInputs(
        numbers.ravel(),
        hands.ravel(),
        blocks.ravel(),
        mirrored.ravel(),
        np.array([shape.block != 0], np.int32),
        np.array([PIECES + 2 * shape.kings], np.int32),
    )


def make_changes(plies: int) -> NnueChanges:
    rows = (plies, 2, MAX_CHANGES)
    return NnueChanges(np.zeros(rows, np.int32), np.zeros(rows, np.int32), np.zeros((plies, 2, 2), np.int32))


@inlined
def _chair(inputs, pos, view):  # type: ignore[no-untyped-def]
    """Return the offset of a view's numbers and the first row of its block."""
    place = view * U(ROWS) + U(pos.king[view])
    return (view * U(2) + U(inputs.mirrored[place])) * U(32 * SQUARES), inputs.blocks[place]


@kernel
def find_rows(inputs, pos, view, rows):  # type: ignore[no-untyped-def]
    """Write the rows of a view (0: Black's) into `rows` (int32[MAX_ROWS]); return their number."""
    # As in YaneuraOu, each missing piece counts as the first row of the block. YaneuraOu defines no block for a view
    # without a king; here it is that of the first square.
    numbers, block = _chair(inputs, pos, U(view))
    count = U(0)
    rest = occupied(pos)
    while rest:
        square = first_square(rest)
        rest = without_first(rest)
        number = inputs.numbers[numbers + U(pos.board[square]) * U(SQUARES) + square]
        if number != NO_ROW and count < U(MAX_ROWS):
            rows[count] = block + number
            count += U(1)
    for color in range(U(2)):
        for i in range(U(7)):
            first = inputs.hands[(U(view) * U(2) + color) * U(7) + i]
            for n in range(U(pos.hand[color, i])):
                if count < U(MAX_ROWS):
                    rows[count] = block + first + np.int32(n)
                    count += U(1)
    while count < U(inputs.pieces[U(0)]):
        rows[count] = block
        count += U(1)
    return count


@kernel
def find_changes(inputs, pos, move, changes, ply):  # type: ignore[no-untyped-def]
    """Write the changes by a legal move of `pos` into `changes`, at the `ply` of the position after the move."""
    us = U(pos.side_to_move) - U(1)
    to = U(move) & U(127)
    origin = (U(move) >> U(7)) & U(127)
    at = U(ply)
    for view in range(U(2)):
        numbers, block = _chair(inputs, pos, view)
        added = U(0)
        removed = U(0)
        if origin >= U(FIRST_DROP):
            kind = origin - U(FIRST_DROP - 1)
            i = U(HAND_INDEX[kind])
            hand = inputs.hands[(view * U(2) + us) * U(7) + i]
            changes.removed[at, view, U(0)] = block + hand + np.int32(pos.hand[us, i]) - np.int32(1)
            removed = U(1)
            code = kind + us * U(WHITE_PIECE)
        else:
            code = U(pos.board[origin])
            if code & U(15) == U(KING) and view == us and inputs.follows_king[U(0)] != 0:
                changes.counts[at, view, U(0)] = -1
                continue
            number = inputs.numbers[numbers + code * U(SQUARES) + origin]
            if number != NO_ROW:
                changes.removed[at, view, U(0)] = block + number
                removed = U(1)
            code += (U(move) >> U(14)) << U(3)
            captured = U(pos.board[to])
            if captured != U(0):
                number = inputs.numbers[numbers + captured * U(SQUARES) + to]
                changes.removed[at, view, removed] = block + number
                removed += U(1)
                i = U(HAND_INDEX[captured & U(15)])
                hand = inputs.hands[(view * U(2) + us) * U(7) + i]
                changes.added[at, view, U(0)] = block + hand + np.int32(pos.hand[us, i])
                added = U(1)
        number = inputs.numbers[numbers + code * U(SQUARES) + to]
        if number != NO_ROW:
            changes.added[at, view, added] = block + number
            added += U(1)
        changes.counts[at, view, U(0)] = added
        changes.counts[at, view, U(1)] = removed


@kernel
def no_changes(changes, ply):  # type: ignore[no-untyped-def]
    for view in range(U(2)):
        changes.counts[U(ply), view, U(0)] = 0
        changes.counts[U(ply), view, U(1)] = 0

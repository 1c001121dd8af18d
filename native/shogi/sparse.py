"""What sparse networks see of a shogi position: rows of their first layer, and of their policy, that are added up.

The board is seen from the side to move's chair, as in dlshogi's form, and mirrored besides if the own king stands on
its left half: the rules know no left and right. Each piece on the board is one row, by its kind, owner and square, and
by whether the other side attacks it and its own side defends it; each piece in hand is one, the n-th of its kind.

A move has one row of each of three tables:

* where it goes: dlshogi's label, direction (with or without promotion, or the piece that is dropped) and square;
* what it does: the piece, what it captures, whether the square is attacked and defended, whether it gives check;
* where it comes from: piece and square, attacked or not, defended or not; or the piece that is dropped.

A square counts as defended if another own piece attacks it than the one that moves there. Whether a move gives check is
told as far as it costs nothing: a slider's own square counts as still occupied.
"""

import numpy as np
import numpy.typing as npt

from native.bits import U
from native.jit import inlined, kernel
from native.shogi.bitboards import attacks, first_square, without_first
from native.shogi.movegen import lone_blockers
from native.shogi.planes import DIRECTIONS, HAND_MAX
from native.shogi.position import FIRST_DROP
from native.shogi.tables import DIRECTION, HAND_INDEX, KING, NO_SQUARE, PROMOTED, ROWS, SQUARES, WHITE_PIECE

KINDS = 14
FLAGS = 4
"""Attacked by the other side (1), defended by its own (2)."""
HANDS = 28
"""Rows for the pieces in one side's hand: so many as dlshogi counts, more pawns than eight count as eight."""
FIRST_HAND = 2 * KINDS * SQUARES * FLAGS
INPUTS = FIRST_HAND + 2 * HANDS
MAX_ACTIVE = 40
"""Rows of a position: there are no more pieces."""

LABELS = 27 * SQUARES
MOVERS = KINDS + 7
"""Kinds on the board, then pieces that are dropped."""
FIRST_DEED = LABELS
FIRST_ORIGIN = FIRST_DEED + MOVERS * (KINDS + 1) * FLAGS * 2
FIRST_DROPPED = FIRST_ORIGIN + KINDS * SQUARES * FLAGS
MOVE_ROWS = FIRST_DROPPED + 7
PARTS = 3
"""Rows of a move."""


def _make_views() -> npt.NDArray[np.uint8]:
    squares = np.arange(SQUARES).reshape(9, 9)
    turned = squares[::-1, ::-1]
    views = np.stack([squares, squares[::-1], turned, turned[::-1]]).reshape(4, SQUARES)
    return np.concatenate([views, np.full((4, 1), NO_SQUARE)], 1).astype(np.uint8).ravel()


VIEWS = _make_views()
"""uint8[4 * ROWS]: where a square is seen, row = 2 if White is to move, and 1 more if the board is mirrored."""
FIRST_OF_HAND = np.concatenate([[0], np.cumsum(HAND_MAX)]).astype(np.uint8)
"""uint8[8]: the first row of each piece in a hand."""

SCRATCH_DTYPE = np.dtype(
    [
        ("attacked", np.uint64, (4,)),  # by the side to move (low, high), by the other
        ("twice", np.uint64, (2,)),  # by two or more pieces of the side to move
        ("checks", np.uint64, (2 * (KINDS + 1),)),  # from where a piece of each kind of the side to move gives check
        ("blockers", np.uint64, (2,)),  # own pieces that give check by moving away
        ("chair", np.uint64),  # row of VIEWS, times ROWS
        ("rows", np.uint16, (MAX_ACTIVE,)),
    ],
    align=True,
)
"""What is known of a position, for one position at a time."""


@inlined
def _has(low, high, square):  # type: ignore[no-untyped-def]
    """Return 1 if a square is in a set, else 0."""
    return ((high if square >= U(64) else low) >> (square & U(63))) & U(1)


@kernel
def _find_attacks(pos, scratch):  # type: ignore[no-untyped-def]
    """Find what both sides attack."""
    us = U(pos.side_to_move) - U(1)
    occupied_low = pos.color_bits[U(0)] | pos.color_bits[U(2)]
    occupied_high = pos.color_bits[U(1)] | pos.color_bits[U(3)]
    for side in range(U(2)):
        color = us ^ side
        low = pos.color_bits[color * U(2)]
        high = pos.color_bits[color * U(2) + U(1)]
        once_low = once_high = twice_low = twice_high = U(0)
        while low | high != U(0):
            square = first_square(low, high)
            low, high = without_first(low, high)
            attacked_low, attacked_high = attacks(U(pos.board[square]), square, occupied_low, occupied_high)
            twice_low |= once_low & attacked_low
            twice_high |= once_high & attacked_high
            once_low |= attacked_low
            once_high |= attacked_high
        scratch.attacked[side * U(2)] = once_low
        scratch.attacked[side * U(2) + U(1)] = once_high
        if side == U(0):
            scratch.twice[U(0)] = twice_low
            scratch.twice[U(1)] = twice_high


@inlined
def _flags(scratch, side, square):  # type: ignore[no-untyped-def]
    """Return the flags of a piece of the side to move (0) or the other (1)."""
    own, other = side * U(2), (U(1) - side) * U(2)
    attacked = _has(scratch.attacked[other], scratch.attacked[other + U(1)], square)
    return attacked | (_has(scratch.attacked[own], scratch.attacked[own + U(1)], square) << U(1))


@kernel
def find_rows(pos, scratch):  # type: ignore[no-untyped-def]
    """Write the rows of a position into scratch.rows, and what `move_rows` needs; return how many there are."""
    us = U(pos.side_to_move) - U(1)
    _find_attacks(pos, scratch)
    king = U(pos.king[us])
    view = us * U(2 * ROWS)
    if king != U(NO_SQUARE) and VIEWS[view + king] >= 45:  # file 5 is in the middle
        view += U(ROWS)
    scratch.chair = view
    count = U(0)
    for side in range(U(2)):
        color = us ^ side
        low = pos.color_bits[color * U(2)]
        high = pos.color_bits[color * U(2) + U(1)]
        while low | high != U(0):
            square = first_square(low, high)
            low, high = without_first(low, high)
            piece = side * U(KINDS) + (U(pos.board[square]) & U(15)) - U(1)
            row = (piece * U(SQUARES) + U(VIEWS[view + square])) * U(FLAGS) + _flags(scratch, side, square)
            scratch.rows[count] = row
            count += U(1)
        first = U(FIRST_HAND) + side * U(HANDS)
        for i in range(U(7)):
            for n in range(min(U(pos.hand[color, i]), U(HAND_MAX[i]))):
                scratch.rows[count] = first + U(FIRST_OF_HAND[i]) + n
                count += U(1)
    return count


@kernel
def find_checks(pos, scratch):  # type: ignore[no-untyped-def]
    """Find from where pieces of the side to move give check, and which do by moving away."""
    us = U(pos.side_to_move) - U(1)
    them = U(1) - us
    king = U(pos.king[them])
    occupied_low = pos.color_bits[U(0)] | pos.color_bits[U(2)]
    occupied_high = pos.color_bits[U(1)] | pos.color_bits[U(3)]
    for kind in range(U(1), U(KINDS + 1)):
        # a piece gives check from where one of its kind and the other color would be attacked from the king's square
        low = high = U(0)
        if king != U(NO_SQUARE) and kind != U(KING):
            low, high = attacks(kind + them * U(WHITE_PIECE), king, occupied_low, occupied_high)
        scratch.checks[kind * U(2)] = low
        scratch.checks[kind * U(2) + U(1)] = high
    scratch.blockers[U(0)] = scratch.blockers[U(1)] = U(0)
    if king != U(NO_SQUARE):
        low, high = lone_blockers(pos, king, us, us, occupied_low, occupied_high)
        scratch.blockers[U(0)] = low
        scratch.blockers[U(1)] = high


@kernel
def move_rows(pos, scratch, move):  # type: ignore[no-untyped-def]
    """Return the three rows of a legal move, after `find_rows` and `find_checks`."""
    us = U(pos.side_to_move) - U(1)
    to = U(move) & U(127)
    origin = (U(move) >> U(7)) & U(127)
    promotes = (U(move) >> U(14)) & U(1)
    seen_to = U(VIEWS[scratch.chair + to])
    attacked = _has(scratch.attacked[U(2)], scratch.attacked[U(3)], to)
    if origin >= U(FIRST_DROP):
        kind = origin - U(FIRST_DROP - 1)
        hand = U(HAND_INDEX[kind])
        label = (U(20) + kind - U(1)) * U(SQUARES) + seen_to
        mover = U(KINDS) + hand
        captured = U(0)
        defended = _has(scratch.attacked[U(0)], scratch.attacked[U(1)], to)
        source = U(FIRST_DROPPED) + hand
        check = _has(scratch.checks[kind * U(2)], scratch.checks[kind * U(2) + U(1)], to)
    else:
        kind = U(pos.board[origin]) & U(15)
        seen = U(VIEWS[scratch.chair + origin])
        label = (promotes * U(10) + U(DIRECTIONS[seen * U(SQUARES) + seen_to])) * U(SQUARES) + seen_to
        mover = kind - U(1)
        captured = U(pos.board[to]) & U(15)
        defended = _has(scratch.twice[U(0)], scratch.twice[U(1)], to)
        source = U(FIRST_ORIGIN) + (mover * U(SQUARES) + seen) * U(FLAGS) + _flags(scratch, U(0), origin)
        after = (kind + promotes * U(PROMOTED)) * U(2)
        check = _has(scratch.checks[after], scratch.checks[after + U(1)], to)
        if _has(scratch.blockers[U(0)], scratch.blockers[U(1)], origin) != U(0):
            king = U(pos.king[U(1) - us]) * U(ROWS)
            check |= U(DIRECTION[king + origin] != DIRECTION[king + to])
    deed = ((mover * U(KINDS + 1) + captured) * U(FLAGS) + attacked + defended * U(2)) * U(2) + check
    return label, U(FIRST_DEED) + deed, source

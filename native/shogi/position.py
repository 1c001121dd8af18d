"""A shogi position: one record with incremental sets of squares by color and kind of piece."""

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils

from yomi.native.bits import U
from yomi.native.jit import kernel, machine_code
from yomi.native.shogi.tables import (
    DIAGONALS,
    DIRECTION,
    GROUP,
    HAND_INDEX,
    HAND_SHIFT,
    KING,
    NO_DIRECTION,
    NO_SQUARE,
    RAYS,
    ROWS,
    SLIDES,
    SQUARES,
    STEPS,
    STRAIGHTS,
    ZOBRIST,
    first_square,
    nearest,
)

BLACK, WHITE = 1, 2
ENTERING_KING_NONE = 0
ENTERING_KING_24 = 1
ENTERING_KING_27 = 2
ENTERING_KING_24H = 3
ENTERING_KING_27H = 4
FORM_DLSHOGI, FORM_ALPHAZERO = 0, 1
MAX_MOVES = 593  # maximum number of legal moves
# Size of a history: two entries per position, for 1,024 moves of a game and 511 of a searched line.
MAX_HISTORY = 2 * (1024 + 512)
FIRST_DROP = 81  # the origin of a drop is 80 plus the type of the piece
# Index in `type_bits` of the low word of each set; the high word follows. GOLDS: all that move like a gold. BISHOPS,
# ROOKS: with promoted forms. KINGS: kings, horses and dragons, which step in all directions.
PAWNS, LANCES, KNIGHTS, SILVERS, GOLDS, BISHOPS, ROOKS, KINGS = 0, 2, 4, 6, 8, 10, 12, 14
# Flags in the second history entry, above the packed hands: White is to move; the side to move is in check.
SIDE_BIT, CHECK_BIT = 1 << 56, 1 << 57

# One shogi position: `numpy.zeros(n, POSITION_DTYPE)`, then `set_position`. Set rules and form by hand.
POSITION_DTYPE = np.dtype(
    [
        ("board_key", np.uint64),  # Zobrist hash of the board alone
        ("key", np.uint64),  # of board, hands and side to move
        ("hands", np.uint64),  # both hands, packed by HAND_SHIFT
        ("color_bits", np.uint64, (4,)),  # squares of Black's pieces (low, high), then White's
        ("type_bits", np.uint64, (16,)),  # squares by kind, at PAWNS, LANCES, ...
        ("draw_value", np.float32, (2,)),  # rule: value of a draw for Black and White, in [-1, 1]
        ("history_length", np.uint32),  # number of history entries, with its own
        ("ply", np.uint16),  # moves made since the game's start
        ("max_moves", np.uint16),  # rule: ply at which the game is a draw; 0: none
        ("board", np.uint8, (SQUARES,)),  # piece codes, 0: empty
        ("hand", np.uint8, (2, 7)),  # counts by color and index in a hand
        ("king", np.uint8, (2,)),  # squares, or NO_SQUARE
        ("side_to_move", np.uint8),  # BLACK or WHITE
        ("in_check", np.uint8),  # 1 if the side to move is in check
        ("entering_king", np.uint8),  # rule: ENTERING_KING_NONE, _24, _27, _24H, _27H
        ("mate_depth", np.uint8),  # plies of the mate search at leaves: 0, 1, 3, 5
        ("all_moves", np.uint8),  # 1: the search also tries pointless waivers of promotion
        ("form", np.uint8),  # network form: selects planes and policy labels
    ],
    align=True,
)


@machine_code(lambda target, source: target.assign(source))
def copy_record(typing_context: Any, target: Any, source: Any) -> Any:
    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        size = ir.Constant(ir.IntType(64), POSITION_DTYPE.itemsize)
        cgutils.raw_memcpy(builder, args[0], args[1], size, 1)
        return context.get_dummy_value()

    return types.none(target, source), codegen


@kernel
def copy(target, source):  # type: ignore[no-untyped-def]
    copy_record(target, source)


@kernel
def _toggle(pos, code, square):  # type: ignore[no-untyped-def]
    """Add a piece to the sets and the board key, or remove it; the caller updates `board`."""
    word = square >> U(6)
    bit = U(1) << (square & U(63))
    kind = code & U(15)
    pos.color_bits[(code >> U(4)) * U(2) + word] ^= bit
    pos.type_bits[U(GROUP[kind]) * U(2) + word] ^= bit
    if kind > U(12):  # horse and dragon
        pos.type_bits[U(KINGS) + word] ^= bit
    pos.board_key ^= ZOBRIST[code * U(SQUARES) + square]


@kernel
def _finish(pos, history):  # type: ignore[no-untyped-def]
    """Compute the key and append the position to its history."""
    hands = pos.hands
    if pos.side_to_move == WHITE:
        hands |= U(SIDE_BIT)
    mixed = (hands + U(1)) * U(0x9E3779B97F4A7C15)
    mixed = (mixed ^ (mixed >> U(29))) * U(0xBF58476D1CE4E5B9)
    pos.key = pos.board_key ^ mixed ^ (mixed >> U(32))
    if pos.in_check != 0:
        hands |= U(CHECK_BIT)
    length = U(pos.history_length)
    history[length] = pos.board_key
    history[length + U(1)] = hands
    pos.history_length = length + U(2)


@kernel
def set_position(pos, history, board, hands, side, ply):  # type: ignore[no-untyped-def]
    """Set up a position and start its history. The rules in the record stay.

    Args:
        pos: written.
        history: uint64[MAX_HISTORY].
        board: uint8[81], piece codes.
        hands: uint8[2, 7], counts.
        side: the color to move.
        ply: moves since the start of the game.
    """
    pos.board_key = U(0)
    pos.hands = U(0)
    pos.history_length = 0
    pos.ply = ply
    pos.side_to_move = side
    for i in range(4):
        pos.color_bits[i] = U(0)
    for i in range(16):
        pos.type_bits[i] = U(0)
    pos.king[0] = NO_SQUARE
    pos.king[1] = NO_SQUARE
    for square in range(SQUARES):
        code = board[square]
        pos.board[square] = code
        if code != 0:
            _toggle(pos, U(code), U(square))
            if code & 15 == KING:
                pos.king[code >> 4] = square
    for color in range(2):
        for i in range(7):
            pos.hand[color, i] = hands[color, i]
            pos.hands += U(hands[color, i]) << U(HAND_SHIFT[color * 7 + i])
    us = U(side) - U(1)
    low, high = attackers(
        pos,
        U(pos.king[us]),
        U(1) - us,
        pos.color_bits[0] | pos.color_bits[2],
        pos.color_bits[1] | pos.color_bits[3],
    )
    pos.in_check = low | high != U(0)
    _finish(pos, history)


@kernel
def slider_lines(pos, square, attacker):  # type: ignore[no-untyped-def]
    """Return the sliding pieces of `attacker` (0, 1) that are on a line with `square`, blocked or not."""
    us = U(1) - attacker
    row = square * U(2)
    ahead = (U(7) * (U(1) - us) * U(ROWS) + square) * U(2)  # direction UP for Black, DOWN for White
    low = DIAGONALS[row] & pos.type_bits[U(BISHOPS)]
    high = DIAGONALS[row + U(1)] & pos.type_bits[U(BISHOPS + 1)]
    low |= STRAIGHTS[row] & pos.type_bits[U(ROOKS)]
    high |= STRAIGHTS[row + U(1)] & pos.type_bits[U(ROOKS + 1)]
    low |= RAYS[ahead] & pos.type_bits[U(LANCES)]
    high |= RAYS[ahead + U(1)] & pos.type_bits[U(LANCES + 1)]
    return low & pos.color_bits[attacker * U(2)], high & pos.color_bits[attacker * U(2) + U(1)]


@kernel
def between(a, b):  # type: ignore[no-untyped-def]
    """Return the squares between two squares on a line."""
    d = U(DIRECTION[a * U(ROWS) + b])
    one = (d * U(ROWS) + a) * U(2)
    other = ((U(7) - d) * U(ROWS) + b) * U(2)
    return RAYS[one] & RAYS[other], RAYS[one + U(1)] & RAYS[other + U(1)]


@kernel
def attackers(pos, square, attacker, occupied_low, occupied_high):  # type: ignore[no-untyped-def]
    """Return the pieces of color `attacker` (0, 1) that attack `square`, given the occupied squares.

    `square` may be NO_SQUARE, which nothing attacks.
    """
    # A piece attacks the square if a piece of its kind and the other color would attack it from there.
    row = ((U(1) - attacker) * U(16) * U(ROWS) + square) * U(2)
    step = U(ROWS * 2)
    low = STEPS[row + step] & pos.type_bits[U(PAWNS)]
    high = STEPS[row + step + U(1)] & pos.type_bits[U(PAWNS + 1)]
    low |= STEPS[row + step * U(3)] & pos.type_bits[U(KNIGHTS)]
    high |= STEPS[row + step * U(3) + U(1)] & pos.type_bits[U(KNIGHTS + 1)]
    low |= STEPS[row + step * U(4)] & pos.type_bits[U(SILVERS)]
    high |= STEPS[row + step * U(4) + U(1)] & pos.type_bits[U(SILVERS + 1)]
    low |= STEPS[row + step * U(7)] & pos.type_bits[U(GOLDS)]
    high |= STEPS[row + step * U(7) + U(1)] & pos.type_bits[U(GOLDS + 1)]
    low |= STEPS[row + step * U(8)] & pos.type_bits[U(KINGS)]
    high |= STEPS[row + step * U(8) + U(1)] & pos.type_bits[U(KINGS + 1)]
    low &= pos.color_bits[attacker * U(2)]
    high &= pos.color_bits[attacker * U(2) + U(1)]
    # Sliding pieces attack if no occupied square is in between.
    slider_low, slider_high = slider_lines(pos, square, attacker)
    while slider_low | slider_high != U(0):
        s = first_square(slider_low, slider_high)
        bit_low = slider_low & (U(0) - slider_low)
        bit_high = U(0) if bit_low != U(0) else slider_high & (U(0) - slider_high)
        slider_low ^= bit_low
        slider_high ^= bit_high
        between_low, between_high = between(square, s)
        if (between_low & occupied_low) | (between_high & occupied_high) == U(0):
            low |= bit_low
            high |= bit_high
    return low, high


@kernel
def gives_check(pos, move):  # type: ignore[no-untyped-def]
    """Return whether a legal move of the side to move gives check."""
    us = U(pos.side_to_move) - U(1)
    king = U(pos.king[U(1) - us])
    to = U(move) & U(127)
    origin = (U(move) >> U(7)) & U(127)
    dropped = origin >= U(FIRST_DROP)
    code = (origin - U(80)) | (us << U(4)) if dropped else U(pos.board[origin]) + ((U(move) >> U(14)) << U(3))
    # Direct check by a step, then by a slide.
    row = (code * U(ROWS) + to) * U(2) + (king >> U(6))
    if (STEPS[row] >> (king & U(63))) & U(1) != U(0):
        return king != U(NO_SQUARE)
    low = pos.color_bits[U(0)] | pos.color_bits[U(2)]
    high = pos.color_bits[U(1)] | pos.color_bits[U(3)]
    slides = U(SLIDES[code])
    if slides != U(0):
        d = U(DIRECTION[to * U(ROWS) + king])
        if (slides >> d) & U(1) != U(0):
            between_low, between_high = between(to, king)
            if not dropped:
                bit = ~(U(1) << (origin & U(63)))
                if origin < U(64):
                    between_low &= bit
                else:
                    between_high &= bit
            if (between_low & low) | (between_high & high) == U(0):
                return True
    if dropped:
        return False
    d = U(DIRECTION[king * U(ROWS) + origin])
    if d == U(NO_DIRECTION):
        return False
    # Discovered check: the piece behind the moving piece, as seen from the king.
    if DIRECTION[king * U(ROWS) + to] == d:
        return False
    ahead_low, ahead_high = between(king, origin)
    if (ahead_low & low) | (ahead_high & high) != U(0):
        return False
    row = (d * U(ROWS) + origin) * U(2)
    low &= RAYS[row]
    high &= RAYS[row + U(1)]
    if low | high == U(0):
        return False
    behind = U(pos.board[nearest(low, high, d)])
    return (behind >> U(4)) == us and (U(SLIDES[behind]) >> (U(7) - d)) & U(1) != U(0)


@kernel
def play(pos, history, move):  # type: ignore[no-untyped-def]
    """Play a legal move of the side to move and append the position to the history."""
    play_checked(pos, history, move, gives_check(pos, move))


@kernel
def play_checked(pos, history, move, check):  # type: ignore[no-untyped-def]
    """Play a legal move; `check`: whether it gives check."""
    us = U(pos.side_to_move) - U(1)
    to = U(move) & U(127)
    origin = (U(move) >> U(7)) & U(127)
    if origin >= U(FIRST_DROP):
        kind = origin - U(80)
        code = kind | (us << U(4))
        i = U(HAND_INDEX[kind])
        pos.hand[us, i] -= 1
        pos.hands -= U(1) << U(HAND_SHIFT[us * U(7) + i])
    else:
        # The piece leaves its square, perhaps promoted; a captured piece goes to the hand.
        code = U(pos.board[origin])
        _toggle(pos, code, origin)
        pos.board[origin] = 0
        code += (U(move) >> U(14)) << U(3)
        captured = U(pos.board[to])
        if captured != U(0):
            _toggle(pos, captured, to)
            i = U(HAND_INDEX[captured & U(15)])
            pos.hand[us, i] += 1
            pos.hands += U(1) << U(HAND_SHIFT[us * U(7) + i])
        if code & U(15) == U(KING):
            pos.king[us] = to
    _toggle(pos, code, to)
    pos.board[to] = code
    pos.side_to_move = U(2) - us
    pos.ply += 1
    pos.in_check = check
    _finish(pos, history)


@kernel
def pass_move(pos, history):  # type: ignore[no-untyped-def]
    """Change the side to move, which is not in check. Not legal in shogi, but useful in a search."""
    pos.side_to_move = U(3) - U(pos.side_to_move)
    pos.ply += 1
    _finish(pos, history)

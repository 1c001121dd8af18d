"""A shogi position: one record with incremental sets of squares by color and kind of piece."""

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils

from yomi.native.bits import U
from yomi.native.jit import inlined, kernel, machine_code
from yomi.native.shogi.pieces import GOLD, KING, KNIGHT, PAWN, SILVER, WHITE_PIECE
from yomi.native.shogi.squares import NO_SQUARE, SQUARES, first_square, has, only, squares_at, without_first
from yomi.native.shogi.tables import (
    DIAGONALS,
    DIRECTION,
    GROUP,
    HAND_INDEX,
    HAND_SHIFT,
    NO_DIRECTION,
    RAYS,
    ROWS,
    SLIDES,
    STEPS,
    STRAIGHTS,
    ZOBRIST,
    nearest,
)

BLACK, WHITE = 1, 2
ENTERING_KING_NONE = 0
ENTERING_KING_24 = 1
ENTERING_KING_27 = 2
ENTERING_KING_24H = 3
ENTERING_KING_27H = 4
ENTERING_KING_TRY = 5
FORM_DLSHOGI, FORM_ALPHAZERO = 0, 1
MAX_MOVES = 593  # maximum number of legal moves
# Size of a history: two entries per position, for 1,024 moves of a game and 511 of a searched line.
MAX_HISTORY = 2 * (1024 + 512)
FIRST_DROP = 81  # the origin of a drop is 80 plus the type of the piece
# Rows of `type_bits`. GOLDS: all that move like a gold. BISHOPS, ROOKS: with promoted forms. KINGS: kings, horses and
# dragons, which step in all directions.
PAWNS, LANCES, KNIGHTS, SILVERS, GOLDS, BISHOPS, ROOKS, KINGS = range(8)
# Flags in the second history entry, above the packed hands: White is to move; the side to move is in check.
SIDE_BIT, CHECK_BIT = 1 << 56, 1 << 57

# One shogi position: `numpy.zeros(n, POSITION_DTYPE)`, then `set_position`. Set rules and form by hand.
POSITION_DTYPE = np.dtype(
    [
        ("board_key", np.uint64),  # Zobrist hash of the board alone
        ("key", np.uint64),  # of board, hands and side to move
        ("hands", np.uint64),  # both hands, packed by HAND_SHIFT
        ("color_bits", np.uint64, (4,)),  # squares of Black's pieces, then White's
        ("type_bits", np.uint64, (16,)),  # squares by kind, in the rows PAWNS, LANCES, ...
        ("draw_value", np.float32, (2,)),  # rule: value of a draw for Black and White, in [-1, 1]
        ("history_length", np.uint32),  # number of history entries, with its own
        ("root_length", np.uint32),  # of the last position of the game: later positions belong to a searched line
        ("ply", np.uint16),  # moves made since the game's start
        ("max_moves", np.uint16),  # rule: ply at which the game is a draw; 0: none
        ("board", np.uint8, (SQUARES,)),  # piece codes, 0: empty
        ("hand", np.uint8, (2, 7)),  # counts by color and index in a hand
        ("king", np.uint8, (2,)),  # squares, or NO_SQUARE
        ("side_to_move", np.uint8),  # BLACK or WHITE
        ("in_check", np.uint8),  # 1 if the side to move is in check
        ("entering_king", np.uint8),  # rule: ENTERING_KING_NONE, _24, _27, _24H, _27H, _TRY
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
        pos.type_bits[U(2 * KINGS) + word] ^= bit
    pos.board_key ^= ZOBRIST[code * U(SQUARES) + square]


@kernel
def _finish(pos, history):  # type: ignore[no-untyped-def]
    """Compute the position's key, and append the position to the history."""
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
    pos.in_check = bool(attackers(pos, U(pos.king[us]), U(1) - us, occupied(pos)))
    _finish(pos, history)


@inlined
def pieces_of(pos, color):  # type: ignore[no-untyped-def]
    """Return the squares of a color's (0, 1) pieces."""
    return squares_at(pos.color_bits, color)


@inlined
def of_type(pos, row):  # type: ignore[no-untyped-def]
    """Return the squares of both colors' pieces of a kind: PAWNS, LANCES, ..."""
    return squares_at(pos.type_bits, U(row))


@inlined
def occupied(pos):  # type: ignore[no-untyped-def]
    return pieces_of(pos, U(0)) | pieces_of(pos, U(1))


@kernel
def slider_lines(pos, square, attacker):  # type: ignore[no-untyped-def]
    """Return the sliding pieces of `attacker` (0, 1) that are on a line with `square`, blocked or not."""
    found = squares_at(DIAGONALS, square) & of_type(pos, BISHOPS)
    found |= squares_at(STRAIGHTS, square) & of_type(pos, ROOKS)
    # Lances, seen from the square: direction 0 to Black's lances, 7 to White's.
    found |= squares_at(RAYS, U(7) * attacker * U(ROWS) + square) & of_type(pos, LANCES)
    return found & pieces_of(pos, attacker)


@kernel
def between(a, b):  # type: ignore[no-untyped-def]
    """Return the squares between two squares on a line."""
    d = U(DIRECTION[a * U(ROWS) + b])
    return squares_at(RAYS, d * U(ROWS) + a) & squares_at(RAYS, (U(7) - d) * U(ROWS) + b)


@kernel
def attackers(pos, square, attacker, blockers):  # type: ignore[no-untyped-def]
    """Return the pieces of color `attacker` (0, 1) that attack `square`, given the occupied squares `blockers`.

    `square` may be NO_SQUARE, which nothing attacks.
    """
    # A piece attacks the square if a piece of its kind and the other color would attack it from there.
    row = (U(1) - attacker) * U(WHITE_PIECE) * U(ROWS) + square
    found = squares_at(STEPS, row + U(PAWN * ROWS)) & of_type(pos, PAWNS)
    found |= squares_at(STEPS, row + U(KNIGHT * ROWS)) & of_type(pos, KNIGHTS)
    found |= squares_at(STEPS, row + U(SILVER * ROWS)) & of_type(pos, SILVERS)
    found |= squares_at(STEPS, row + U(GOLD * ROWS)) & of_type(pos, GOLDS)
    found |= squares_at(STEPS, row + U(KING * ROWS)) & of_type(pos, KINGS)
    found &= pieces_of(pos, attacker)
    # Sliding pieces attack if no occupied square is in between.
    sliders = slider_lines(pos, square, attacker)
    while sliders:
        rest = without_first(sliders)
        if not between(square, first_square(sliders)) & blockers:
            found |= sliders ^ rest
        sliders = rest
    return found


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
    if has(STEPS, code * U(ROWS) + to, king) != U(0):
        return king != U(NO_SQUARE)
    blockers = occupied(pos)
    slides = U(SLIDES[code])
    if slides != U(0):
        d = U(DIRECTION[to * U(ROWS) + king])
        if (slides >> d) & U(1) != U(0):
            free = between(to, king)
            if not dropped:
                free &= ~only(origin)
            if not free & blockers:
                return True
    if dropped:
        return False
    d = U(DIRECTION[king * U(ROWS) + origin])
    if d == U(NO_DIRECTION):
        return False
    # Discovered check: the piece behind the moving piece, as seen from the king.
    if DIRECTION[king * U(ROWS) + to] == d:
        return False
    if between(king, origin) & blockers:
        return False
    blockers &= squares_at(RAYS, d * U(ROWS) + origin)
    if not blockers:
        return False
    behind = U(pos.board[nearest(blockers, d)])
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

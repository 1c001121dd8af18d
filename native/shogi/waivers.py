"""The moves that a shogi search tries: legal moves without pointless waivers of promotion.

A promoted pawn, bishop or rook attacks all that it attacked before, and so does a lance on the second rank. Only the
rule that a pawn drop must not mate can justify a waiver.
"""

import numpy as np

from yomi.native.bits import U
from yomi.native.jit import allocating_kernel, inlined, kernel
from yomi.native.shogi.movegen import PROMOTES, drop_pawn_mates, generate
from yomi.native.shogi.pieces import BISHOP, KNIGHT, LANCE, PAWN, PROMOTION, ROOK, WHITE_PIECE
from yomi.native.shogi.position import (
    FIRST_DROP,
    MAX_HISTORY,
    MAX_MOVES,
    PAWNS,
    POSITION_DTYPE,
    copy,
    occupied,
    of_type,
    pieces_of,
    play,
)
from yomi.native.shogi.squares import NO_SQUARE, first_square, has, squares_at
from yomi.native.shogi.tables import DEAD, FILES, ROWS, STEPS, ZONE

# A waived promotion is tried if it decides about a pawn drop at once (`decides_about_drop`). Waivers for a later drop
# are left out for both sides; proofs of the tree hold except for such moves. Other engines leave out all waivers. df-pn
# (yomi.native.shogi.dfpn) tries every move.
NO_DROP, LEGAL_DROP, MATING_DROP = 0, 1, 2
# Distance from the king at which a promotion may take away a flight square: the king's step, the flight square beyond
# it, and the promoted piece's extra attacks beside it.
REACH = 3


@kernel
def waives(pos, move):  # type: ignore[no-untyped-def]
    """Return whether a legal move waives a promotion that would keep all of the piece's attacks."""
    origin = U(move) >> U(7)  # with the promotion bit above it
    if origin >= U(FIRST_DROP):
        return False
    us = U(pos.side_to_move) - U(1)
    to = U(move) & U(127)
    kind = U(pos.board[origin]) & U(15)
    if kind == U(LANCE):  # true on the second rank, where a knight would be dead
        return has(DEAD, U(KNIGHT) + us * U(WHITE_PIECE), to) != U(0)
    if kind != U(PAWN) and kind != U(BISHOP) and kind != U(ROOK):
        return False
    return has(ZONE, us, to) | has(ZONE, us, origin) != U(0)


@inlined
def _head(pos, color):  # type: ignore[no-untyped-def]
    """Return the square in front of the king of a color (0, 1) as a set; empty at the edge."""
    return squares_at(STEPS, (U(PAWN) + color * U(WHITE_PIECE)) * U(ROWS) + U(pos.king[color]))


@kernel
def dropped_pawn(pos):  # type: ignore[no-untyped-def]
    """Return whether the side to move can drop a pawn in front of the other king: NO_DROP, LEGAL_DROP or MATING_DROP.

    NO_DROP in check.
    """
    us = U(pos.side_to_move) - U(1)
    blockers = occupied(pos)
    free = _head(pos, U(1) - us) & ~blockers
    if not free or pos.hand[us, U(0)] == 0 or pos.in_check != 0:
        return NO_DROP
    head = first_square(free)
    if of_type(pos, PAWNS) & pieces_of(pos, us) & squares_at(FILES, head):
        return NO_DROP
    return MATING_DROP if drop_pawn_mates(pos, head, blockers) else LEGAL_DROP


@inlined
def _is_near(square, king):  # type: ignore[no-untyped-def]
    """Return whether a square is within REACH of a king."""
    file, rank = np.int64(square) // 9, np.int64(square) % 9
    return max(abs(file - np.int64(king) // 9), abs(rank - np.int64(king) % 9)) <= REACH


@inlined
def _can_decide(pos, move):  # type: ignore[no-untyped-def]
    """Return whether a waived promotion may matter for a pawn drop: a quick test before `decides_about_drop`."""
    us = U(pos.side_to_move) - U(1)
    to = U(move) & U(127)
    if pos.king[U(0)] == NO_SQUARE or pos.king[U(1)] == NO_SQUARE:
        return False
    if pos.hand[U(1) - us, U(0)] != 0:
        promoted = U(pos.board[U(move) >> U(7)]) + U(PROMOTION)
        if squares_at(STEPS, promoted * U(ROWS) + to) & _head(pos, us):
            return True
    has_pawn = pos.hand[us, U(0)] != 0 or U(pos.board[to]) & U(7) == U(PAWN)
    return has_pawn and _is_near(to, pos.king[U(1) - us])


@kernel
def _decides(positions, replies, pos, history, move):  # type: ignore[no-untyped-def]
    promoted, waived, later = positions[0], positions[1], positions[2]
    copy(promoted, pos)
    play(promoted, history, U(move) | U(PROMOTES))
    copy(waived, pos)
    play(waived, history, move)
    # The opponent's drop before our king would mate, and is illegal; the promoted piece could capture the pawn.
    if dropped_pawn(waived) == MATING_DROP and dropped_pawn(promoted) == LEGAL_DROP:
        return True
    # With promotion our next drop before their king would mate, and be illegal; without it the drop does not mate.
    # Tested after every evasion if the promotion gives check, otherwise on the position itself.
    if promoted.in_check == 0:
        promoted.side_to_move = pos.side_to_move
        waived.side_to_move = pos.side_to_move
        return dropped_pawn(promoted) == MATING_DROP and dropped_pawn(waived) == LEGAL_DROP
    for i in range(generate(promoted, replies)):
        copy(later, promoted)
        play(later, history, replies[i])
        if dropped_pawn(later) == MATING_DROP:
            copy(later, waived)
            play(later, history, replies[i])
            if dropped_pawn(later) == LEGAL_DROP:
                return True
    return False


@allocating_kernel
def decides_about_drop(pos, history, move):  # type: ignore[no-untyped-def]
    """Return whether a waiver decides about a pawn drop that mates; see the module.

    Overwrites history entries behind the position's own, for two positions.
    """
    return _decides(np.empty(3, POSITION_DTYPE), np.empty(MAX_MOVES, np.uint16), pos, history, move)


@kernel
def searched_moves(pos, history, moves):  # type: ignore[no-untyped-def]
    """Write the moves that a search tries into `moves` (uint16[MAX_MOVES]) and return their number.

    The order is that of the legal moves. With `all_moves` all are tried, otherwise at least one. May overwrite later
    history entries.
    """
    count = generate(pos, moves)
    promotions = np.uint16(0)
    for i in range(count):
        promotions |= moves[i]
    if pos.all_moves != 0 or promotions & PROMOTES == 0:
        return count
    has_room = np.int64(pos.history_length) + 4 <= MAX_HISTORY
    kept = U(0)
    for i in range(count):
        move = moves[i]
        if not waives(pos, move) or (has_room and _can_decide(pos, move) and decides_about_drop(pos, history, move)):
            moves[kept] = move
            kept += U(1)
    return kept

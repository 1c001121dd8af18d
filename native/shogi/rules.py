"""The rules besides moves: repetition and declaration of a win. Re-exports the move functions."""

from yomi.native.bits import U, popcount
from yomi.native.jit import kernel
from yomi.native.shogi.movegen import has_legal_move, is_legal, legal_moves
from yomi.native.shogi.position import (
    BISHOPS,
    CHECK_BIT,
    ENTERING_KING_24,
    ENTERING_KING_24H,
    ENTERING_KING_27H,
    ENTERING_KING_NONE,
    FIRST_DROP,
    ROOKS,
    play,
    set_position,
)
from yomi.native.shogi.tables import HAND_GUARD, HANDS_MASK, KNIGHT, NO_SQUARE, ZONE

__all__ = [
    "declaration",
    "has_legal_move",
    "is_legal",
    "legal_moves",
    "play",
    "repetition",
    "set_position",
]

# Results of a repetition for the side to move, with cshogi's numbers.
NONE, DRAW, WIN, LOSE, SUPERIOR, INFERIOR = 0, 1, 2, 3, 4, 5
ALL_POINTS = 56  # points of all pieces, kings included, for a declaration
OCCURRENCES = 4  # occurrences of a position that end the game


@kernel
def repetition(pos, history):  # type: ignore[no-untyped-def]
    """Compare a position with earlier ones of the same side to move, latest first; the first equal board decides.

    Equal hands: DRAW; WIN if all the opponent's moves since then gave check; LOSE if all moves of the side to move did.
    More pieces in the mover's hand than then, and no fewer of any kind: SUPERIOR; the reverse: INFERIOR.
    """
    length = U(pos.history_length)
    if length < U(10):
        return NONE
    here = length - U(2)
    plies = here >> U(1)
    board_key = history[here]
    hands = history[here + U(1)]
    shift = U(0) if pos.side_to_move == 1 else U(28)
    i = U(4)
    while i <= plies:
        there = here - i * U(2)
        if history[there] == board_key:
            earlier = history[there + U(1)]
            if (hands ^ earlier) & U(HANDS_MASK) == U(0):
                return _kind_of_repetition(history, here, i)
            mine = (hands >> shift) & U((1 << 28) - 1)
            old = (earlier >> shift) & U((1 << 28) - 1)
            if ((mine | U(HAND_GUARD)) - old) & U(HAND_GUARD) == U(HAND_GUARD):
                return SUPERIOR
            if ((old | U(HAND_GUARD)) - mine) & U(HAND_GUARD) == U(HAND_GUARD):
                return INFERIOR
        i += U(2)
    return NONE


@kernel
def _kind_of_repetition(history, here, plies):  # type: ignore[no-untyped-def]
    """Return the result of a full repetition after `plies` plies for the side to move at history[here]."""
    checked = U(CHECK_BIT)
    gave = U(CHECK_BIT)
    for i in range(U(0), plies, U(2)):
        checked &= history[here - i * U(2) + U(1)]
        gave &= history[here - i * U(2) - U(1)]
    if gave != U(0):
        return LOSE
    return WIN if checked != U(0) else DRAW


@kernel
def may_be_undone(pos, history, move):  # type: ignore[no-untyped-def]
    """Return whether the last move's piece can go back, so that the board is as before.

    Drops, promotions, captures, and moves of pawns, lances and knights cannot be undone.
    """
    if U(move) >> U(14) != U(0) or (U(move) >> U(7)) & U(127) >= U(FIRST_DROP):
        return False
    here = U(pos.history_length) - U(1)
    if (history[here] ^ history[here - U(2)]) & U(HANDS_MASK) != U(0):
        return False
    return pos.board[U(move) & U(127)] & 15 > KNIGHT


@kernel
def ends_by_repetition(pos, history):  # type: ignore[no-untyped-def]
    """Return whether this is at least the fourth occurrence of a position, with hands and side to move."""
    here = U(pos.history_length) - U(2)
    earlier = U(0)
    back = U(8)  # four plies before, then every second ply
    while back <= here:
        if history[here - back] == history[here] and history[here - back + U(1)] == history[here + U(1)]:
            earlier += U(1)
        back += U(4)
    return earlier >= U(OCCURRENCES - 1)


@kernel
def declaration(pos):  # type: ignore[no-untyped-def]
    """Return whether the side to move may declare a win by the record's entering king rule.

    Its king and ten more of its pieces are in the far three ranks, it is not in check, and these pieces and its hand
    count 28 points for Black, 27 for White (31 by the 24-point rules); a rook or bishop counts five.
    """
    if pos.entering_king == ENTERING_KING_NONE or pos.in_check != 0:
        return False
    us = U(pos.side_to_move) - U(1)
    king = U(pos.king[us])
    zone_low = ZONE[us * U(2)]
    zone_high = ZONE[us * U(2) + U(1)]
    if king == U(NO_SQUARE) or ((zone_high if king >= U(64) else zone_low) >> (king & U(63))) & U(1) == U(0):
        return False
    low = zone_low & pos.color_bits[us * U(2)]
    high = zone_high & pos.color_bits[us * U(2) + U(1)]
    pieces = popcount(low) + popcount(high) - U(1)
    if pieces < U(10):
        return False
    large = popcount(low & (pos.type_bits[U(BISHOPS)] | pos.type_bits[U(ROOKS)]))
    large += popcount(high & (pos.type_bits[U(BISHOPS + 1)] | pos.type_bits[U(ROOKS + 1)]))
    large += U(pos.hand[us, U(5)]) + U(pos.hand[us, U(6)])  # bishops and rooks
    points = pieces + U(4) * large
    for i in range(U(7)):
        points += U(pos.hand[us, i])
    rule = pos.entering_king
    needed = U(31) if rule == ENTERING_KING_24 or rule == ENTERING_KING_24H else U(28) - us
    # Handicap games: White's missing pieces count for White, as in YaneuraOu.
    if us == U(1) and (rule == ENTERING_KING_24H or rule == ENTERING_KING_27H):
        points += U(ALL_POINTS) - _points_in_game(pos)
    return points >= needed


@kernel
def _points_in_game(pos):  # type: ignore[no-untyped-def]
    """Return the points of all pieces on the board, kings included, and in both hands."""
    points = U(0)
    for i in range(U(4)):
        points += popcount(pos.color_bits[i])
    for i in range(U(2)):
        points += U(4) * popcount(pos.type_bits[U(BISHOPS) + i] | pos.type_bits[U(ROOKS) + i])
        for j in range(U(7)):
            points += U(pos.hand[i, j]) * (U(5) if j > U(4) else U(1))
    return points

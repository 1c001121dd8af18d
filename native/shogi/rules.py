"""The rules besides moves: repetition, declaration and try."""

import numpy as np

from yomi.native.bits import U
from yomi.native.jit import inlined, kernel
from yomi.native.shogi.movegen import king_steps
from yomi.native.shogi.pieces import KNIGHT
from yomi.native.shogi.position import (
    BISHOPS,
    CHECK_BIT,
    ENTERING_KING_24,
    ENTERING_KING_24H,
    ENTERING_KING_27H,
    ENTERING_KING_NONE,
    ENTERING_KING_TRY,
    FIRST_DROP,
    ROOKS,
    attackers,
    occupied,
    of_type,
    pieces_of,
)
from yomi.native.shogi.squares import NO_SQUARE, has, number_of, only, squares_at
from yomi.native.shogi.tables import HAND_GUARD, HANDS_MASK, ZONE

# Results of a repetition for the side to move, with cshogi's numbers.
NONE, DRAW, WIN, LOSE, SUPERIOR, INFERIOR = 0, 1, 2, 3, 4, 5
ALL_POINTS = 56  # points of all pieces, kings included, for a declaration
TRY_SQUARES = (36, 44)  # 5a for Black and 5i for White, where the other king starts
OCCURRENCES = 4  # occurrences of a position that end the game


@kernel
def repetition(pos, history, start):  # type: ignore[no-untyped-def]
    """Compare a position with earlier ones of the same side to move, latest first. The first equal board decides.

    Equal hands: DRAW; WIN if all the opponent's moves since then gave check; LOSE if all moves of the side to move did.
    SUPERIOR: the mover has at least the hand of then, and more of some kind. INFERIOR: the reverse.

    Positions before the history entry `start` decide only with the fourth occurrence, by the moves since the first.
    """
    length = U(pos.history_length)
    if length < U(10):
        return NONE
    here = length - U(2)
    plies = here >> U(1)
    board_key = history[here]
    hands = history[here + U(1)]
    shift = U(0) if pos.side_to_move == 1 else U(28)
    left = U(OCCURRENCES - 1)
    i = U(4)
    while i <= plies:
        there = here - i * U(2)
        if history[there] == board_key:
            earlier = history[there + U(1)]
            if (hands ^ earlier) & U(HANDS_MASK) == U(0):
                left -= U(1)
                if there >= U(start) or left == U(0):
                    return _kind_of_repetition(history, here, i)
            elif there >= U(start):
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
    return repetition(pos, history, U(history.size)) != NONE


@kernel
def declaration(pos):  # type: ignore[no-untyped-def]
    """Return whether the side to move wins at once by the record's entering king rule.

    By points, it declares with 28 as Black, 27 as White, or 31 by the 24-point rules. By the try rule, its king moves.
    """
    rule = pos.entering_king
    if rule == ENTERING_KING_NONE:
        return False
    if rule == ENTERING_KING_TRY:
        return try_move(pos) != 0
    needed = U(31) if _is_24(rule) else U(29) - U(pos.side_to_move)
    return _points(pos) >= needed


@kernel
def draw_declaration(pos):  # type: ignore[no-untyped-def]
    """Return whether the side to move may declare a draw: 24 to 30 points by the 24-point rules."""
    if not _is_24(pos.entering_king):
        return False
    points = _points(pos)
    return U(24) <= points and points < U(31)


@kernel
def try_move(pos):  # type: ignore[no-untyped-def]
    """Return the legal move of the king to the other king's initial square, or 0.

    The caller checks whether the try rule applies.
    """
    us = U(pos.side_to_move) - U(1)
    target = U(TRY_SQUARES[0]) if us == U(0) else U(TRY_SQUARES[1])
    king = U(pos.king[us])
    if king == U(NO_SQUARE) or not king_steps(pos, us) & only(target):
        return np.int64(0)
    # The king does not block lines through its own square.
    if attackers(pos, target, U(1) - us, occupied(pos) ^ only(king)):
        return np.int64(0)
    return np.int64(target | (king << U(7)))


@kernel
def tried(pos):  # type: ignore[no-untyped-def]
    """Return whether the side to move has lost by the try rule: the other king is on this king's initial square."""
    if pos.entering_king != ENTERING_KING_TRY:
        return False
    return pos.king[0] == TRY_SQUARES[0] if pos.side_to_move == 2 else pos.king[1] == TRY_SQUARES[1]


@inlined
def _is_24(rule):  # type: ignore[no-untyped-def]
    return rule == ENTERING_KING_24 or rule == ENTERING_KING_24H


@kernel
def _points(pos):  # type: ignore[no-untyped-def]
    """Return the points that the side to move may declare: pieces in the far three ranks, and its hand.

    A rook or bishop counts five. Return 0 in check, or if the king and ten more pieces are not in these ranks.
    """
    us = U(pos.side_to_move) - U(1)
    king = U(pos.king[us])
    if pos.in_check != 0 or king == U(NO_SQUARE) or has(ZONE, us, king) == U(0):
        return U(0)
    inside = squares_at(ZONE, us) & pieces_of(pos, us)
    count = number_of(inside) - U(1)
    if count < U(10):
        return U(0)
    large = number_of(inside & (of_type(pos, BISHOPS) | of_type(pos, ROOKS)))
    large += U(pos.hand[us, U(5)]) + U(pos.hand[us, U(6)])  # bishops and rooks
    points = count + U(4) * large
    for i in range(U(7)):
        points += U(pos.hand[us, i])
    rule = pos.entering_king
    # Handicap games: White's missing pieces count for White, as in YaneuraOu.
    if us == U(1) and (rule == ENTERING_KING_24H or rule == ENTERING_KING_27H):
        points += U(ALL_POINTS) - _points_in_game(pos)
    return points


@kernel
def _points_in_game(pos):  # type: ignore[no-untyped-def]
    """Return the points of all pieces on the board, kings included, and in both hands."""
    points = number_of(occupied(pos)) + U(4) * number_of(of_type(pos, BISHOPS) | of_type(pos, ROOKS))
    for color in range(U(2)):
        for i in range(U(7)):
            points += U(pos.hand[color, i]) * (U(5) if i > U(4) else U(1))
    return points

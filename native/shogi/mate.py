"""Checks, and the short mate search at leaves.

A mate found here is a mate by the rules: all evasions are answered, and no line ends before by a fourth repetition,
which perpetual check loses. Not tried: checks that waive a promotion (they win only if the promoted piece would make a
pawn drop mate).
"""

import numpy as np

from yomi.native.bits import U
from yomi.native.jit import allocating_kernel, inlined, kernel
from yomi.native.shogi import rules
from yomi.native.shogi.movegen import PROMOTES, generate, lone_blockers, write_moves
from yomi.native.shogi.position import (
    BISHOPS,
    GOLDS,
    KNIGHTS,
    LANCES,
    MAX_HISTORY,
    MAX_MOVES,
    PAWNS,
    POSITION_DTYPE,
    ROOKS,
    SILVERS,
    attackers,
    copy,
    gives_check,
    play,
)
from yomi.native.shogi.tables import (
    BISHOP,
    DEAD,
    DIRECTION,
    DRAGON,
    FILES,
    GOLD,
    HAND_TYPE,
    HIGH,
    HORSE,
    KING,
    KNIGHT,
    LANCE,
    NO_SQUARE,
    PAWN,
    PROMOTED,
    RAYS,
    ROOK,
    ROWS,
    SILVER,
    SLIDES,
    STEPS,
    WHITE_PIECE,
    ZONE,
    attacks,
    first_square,
    toggled,
    without_first,
)

# Sets of `type_bits`, and their types, which have separate tables.
_GROUPS = (
    (PAWNS, (PAWN,)),
    (LANCES, (LANCE,)),
    (KNIGHTS, (KNIGHT,)),
    (SILVERS, (SILVER,)),
    (GOLDS, (GOLD,)),
    (BISHOPS, (BISHOP, HORSE)),
    (ROOKS, (ROOK, DRAGON)),
)


def _reach(kind: int, white: bool) -> np.ndarray[tuple[int, int], np.dtype[np.bool_]]:
    """Return bool[81, 81]: whether a piece on one square attacks another on an empty board."""
    code = kind + WHITE_PIECE * white
    words = STEPS.reshape(32, ROWS, 2)[code].copy()
    for direction in range(8):
        if SLIDES[code] >> direction & 1:
            words |= RAYS.reshape(8, ROWS, 2)[direction]
    bits = np.unpackbits(words.view(np.uint8), axis=1, bitorder="little")
    return bits[:81, :81].astype(np.bool_)


def _make_origins() -> np.ndarray[tuple[int], np.dtype[np.uint64]]:
    """Find the squares from which a piece can give check in one move on an empty board."""
    table = np.zeros((2, len(_GROUPS), ROWS, 128), np.uint8)
    for color in range(2):
        rank = np.arange(81) % 9
        zone = rank >= 6 if color else rank < 3
        for row, (_, kinds) in enumerate(_GROUPS):
            for kind in kinds:
                reach = _reach(kind, bool(color)).astype(np.int32)
                plain = reach @ reach
                if kind <= ROOK:
                    after = _reach(kind + PROMOTED, bool(color)).astype(np.int32)
                    promotes = zone[:, None] | zone[None, :]
                    plain = plain + (reach * promotes) @ after
                table[color, row, :81, :81] |= (plain.T > 0).astype(np.uint8)
    return np.packbits(table, axis=3, bitorder="little").view(np.uint64).ravel()


# uint64[2 * 7 * ROWS * 2]: by the mover's color, group of pieces and the king's square
ORIGINS = _make_origins()
_GROUP_PLACES = np.array([place for place, _ in _GROUPS], np.uint64)


@inlined
def _candidates(pos, us, king):  # type: ignore[no-untyped-def]
    """Return the pieces of `us` that could give check by a move on an empty board."""
    low = U(0)
    high = U(0)
    for group in range(U(7)):
        row = ((us * U(7) + group) * U(ROWS) + king) * U(2)
        place = _GROUP_PLACES[group]
        low |= pos.type_bits[place] & ORIGINS[row]
        high |= pos.type_bits[place + U(1)] & ORIGINS[row + U(1)]
    return low & pos.color_bits[us * U(2)], high & pos.color_bits[us * U(2) + U(1)]


@kernel
def _checked_from(lines, kind, them, king):  # type: ignore[no-untyped-def]
    """Return the squares from which a piece of type `kind` checks the king of `them`."""
    row = ((kind + them * U(WHITE_PIECE)) * U(ROWS) + king) * U(2)
    low = STEPS[row]
    high = STEPS[row + U(1)]
    if kind == U(BISHOP) or kind == U(HORSE):
        low |= lines[0]
        high |= lines[1]
    elif kind == U(ROOK) or kind == U(DRAGON):
        low |= lines[2]
        high |= lines[3]
    elif kind == U(LANCE):
        low |= lines[4]
        high |= lines[5]
    return low, high


@inlined
def _write_dropped_checks(pos, moves, count, us, king, free_low, free_high, lines):  # type: ignore[no-untyped-def]
    """Write the drops that give check, including an illegal pawn drop that mates."""
    them = U(1) - us
    for i in range(U(7)):
        if pos.hand[us, i] == 0:
            continue
        kind = U(HAND_TYPE[i])
        low, high = _checked_from(lines, kind, them, king)
        dead = (kind + us * U(WHITE_PIECE)) * U(2)
        low &= free_low & ~DEAD[dead]
        high &= free_high & ~DEAD[dead + U(1)]
        if kind == U(PAWN) and low | high != U(0):
            file = first_square(low, high) * U(2)
            pawns_low = pos.type_bits[U(PAWNS)] & pos.color_bits[us * U(2)] & FILES[file]
            pawns_high = pos.type_bits[U(PAWNS + 1)] & pos.color_bits[us * U(2) + U(1)] & FILES[file + U(1)]
            if pawns_low | pawns_high != U(0):
                continue
        count = write_moves(moves, count, low, high, (U(80) + kind) << U(7), U(1))
    return count


@kernel
def _checks_out_of_check(pos, moves):  # type: ignore[no-untyped-def]
    """Write the legal moves that leave a check and give one; return their number."""
    n = generate(pos, moves)
    count = U(0)
    for i in range(n):
        if gives_check(pos, moves[i]):
            moves[count] = moves[i]
            count += U(1)
    return count


@inlined
def _write_king_moves(pos, moves, count, origin, them, low, high, rest_low, rest_high):  # type: ignore[no-untyped-def]
    """Write the king's moves to squares that `them` do not attack. `rest`: all pieces except the king."""
    while low | high != U(0):
        to = first_square(low, high)
        low, high = without_first(low, high)
        attack_low, attack_high = attackers(pos, to, them, rest_low, rest_high)
        if attack_low | attack_high == U(0):
            moves[count] = to | origin
            count += U(1)
    return count


@inlined
def _lines_to(king, us, occupied_low, occupied_high):  # type: ignore[no-untyped-def]
    """Return the squares from which a bishop, a rook and a lance of `us` would check the king: three sets."""
    side = (U(1) - us) * U(WHITE_PIECE)
    bishop_low, bishop_high = attacks(U(BISHOP) + side, king, occupied_low, occupied_high)
    rook_low, rook_high = attacks(U(ROOK) + side, king, occupied_low, occupied_high)
    ahead = (U(7) * us * U(ROWS) + king) * U(2)
    return bishop_low, bishop_high, rook_low, rook_high, rook_low & RAYS[ahead], rook_high & RAYS[ahead + U(1)]


@inlined
def _ray_through(king, square):  # type: ignore[no-untyped-def]
    """Return the squares on the line from the king through `square`."""
    row = (U(DIRECTION[king * U(ROWS) + square]) * U(ROWS) + king) * U(2)
    return RAYS[row], RAYS[row + U(1)]


@inlined
def _write_piece_checks(moves, count, code, origin, to, free, zone, lines, them, king, thorough):  # type: ignore[no-untyped-def]
    """Write a piece's moves that give check (not a king's); return the new number of moves.

    Args:
        moves: written.
        count: number of moves before.
        code: the piece.
        origin: its square << 7.
        to: set of its target squares.
        free: squares on which it gives a discovered check.
        zone: squares on which it may promote.
        lines: see `_lines_to`.
        them: the checked side.
        king: square of its king.
        thorough: see `checking_moves`.
    """
    to_low, to_high = to
    free_low, free_high = free
    zone_low, zone_high = zone
    kind = code & U(15)
    if kind <= U(ROOK):
        check_low, check_high = _checked_from(lines, kind + U(PROMOTED), them, king)
        check_low = to_low & zone_low & (check_low | free_low)
        check_high = to_high & zone_high & (check_high | free_high)
        count = write_moves(moves, count, check_low, check_high, origin | U(PROMOTES), U(1))
        if not thorough and (kind == U(PAWN) or kind == U(BISHOP) or kind == U(ROOK)):
            to_low &= ~zone_low
            to_high &= ~zone_high
        to_low &= ~DEAD[code * U(2)]
        to_high &= ~DEAD[code * U(2) + U(1)]
    check_low, check_high = _checked_from(lines, kind, them, king)
    to_low &= check_low | free_low
    to_high &= check_high | free_high
    return write_moves(moves, count, to_low, to_high, origin, U(1))


@kernel
def checking_moves(pos, moves, thorough):  # type: ignore[no-untyped-def]
    """Write the legal moves that give check, and an illegal pawn drop that mates; return their number (uint64).

    Args:
        pos: the position.
        moves: uint16[MAX_MOVES], written.
        thorough: include checks that waive the promotion of a pawn, bishop or rook.
    """
    us = U(pos.side_to_move) - U(1)
    them = U(1) - us
    king = U(pos.king[them])
    own_king = U(pos.king[us])
    if king == U(NO_SQUARE):
        return U(0)
    if pos.in_check != 0:
        return _checks_out_of_check(pos, moves)
    occupied_low = pos.color_bits[U(0)] | pos.color_bits[U(2)]
    occupied_high = pos.color_bits[U(1)] | pos.color_bits[U(3)]
    own_low = pos.color_bits[us * U(2)]
    own_high = pos.color_bits[us * U(2) + U(1)]
    zone_low = ZONE[us * U(2)]
    zone_high = ZONE[us * U(2) + U(1)]
    lines = _lines_to(king, us, occupied_low, occupied_high)
    unveil_low, unveil_high = lone_blockers(pos, king, us, us, occupied_low, occupied_high)
    low, high = _candidates(pos, us, king)
    low |= unveil_low
    high |= unveil_high
    count = U(0)
    pinned_low = U(0)
    pinned_high = U(0)
    if own_king != U(NO_SQUARE) and low | high != U(0):
        pinned_low, pinned_high = lone_blockers(pos, own_king, them, us, occupied_low, occupied_high)
    # Each piece that may check directly, or discover a check by moving away.
    while low | high != U(0):
        s = first_square(low, high)
        bit_low = low & (U(0) - low)
        bit_high = U(0) if bit_low != U(0) else high & (U(0) - high)
        low ^= bit_low
        high ^= bit_high
        code = U(pos.board[s])
        to_low, to_high = attacks(code, s, occupied_low, occupied_high)
        to_low &= ~own_low
        to_high &= ~own_high
        free_low = U(0)
        free_high = U(0)
        if (bit_low & unveil_low) | (bit_high & unveil_high) != U(0):
            ray_low, ray_high = _ray_through(king, s)
            free_low, free_high = ~ray_low, ~ray_high
        if (bit_low & pinned_low) | (bit_high & pinned_high) != U(0):
            ray_low, ray_high = _ray_through(own_king, s)
            to_low &= ray_low
            to_high &= ray_high
        origin = s << U(7)
        # A king gives only discovered checks.
        if code & U(15) == U(KING):
            to_low &= free_low
            to_high &= free_high
            rest_low, rest_high = occupied_low & ~bit_low, occupied_high & ~bit_high
            count = _write_king_moves(pos, moves, count, origin, them, to_low, to_high, rest_low, rest_high)
            continue
        zone = (zone_low, zone_high)
        if (bit_low & zone_low) | (bit_high & zone_high) != U(0):
            zone = (~U(0), ~U(0))  # a piece leaving the zone may promote, too
        to, free = (to_low, to_high), (free_low, free_high)
        count = _write_piece_checks(moves, count, code, origin, to, free, zone, lines, them, king, thorough)
    free_low = ~occupied_low
    free_high = ~occupied_high & U(HIGH)
    return _write_dropped_checks(pos, moves, count, us, king, free_low, free_high, lines)


@kernel
def is_pawn_drop(move):  # type: ignore[no-untyped-def]
    return (U(move) >> U(7)) & U(127) == U(80 + PAWN)


@kernel
def can_escape(pos, moves):  # type: ignore[no-untyped-def]
    """Return whether the side to move, in check, has a legal move. `moves` is working memory."""
    # The king's moves first: they are the cheapest to find.
    us = U(pos.side_to_move) - U(1)
    king = U(pos.king[us])
    row = ((U(KING) + us * U(WHITE_PIECE)) * U(ROWS) + king) * U(2)
    low = STEPS[row] & ~pos.color_bits[us * U(2)]
    high = STEPS[row + U(1)] & ~pos.color_bits[us * U(2) + U(1)]
    occupied_low = pos.color_bits[U(0)] | pos.color_bits[U(2)]
    occupied_high = pos.color_bits[U(1)] | pos.color_bits[U(3)]
    occupied_low, occupied_high = toggled(occupied_low, occupied_high, king)
    while low | high != U(0):
        s = first_square(low, high)
        low, high = without_first(low, high)
        attack_low, attack_high = attackers(pos, s, U(1) - us, occupied_low, occupied_high)
        if attack_low | attack_high == U(0):
            return True
    return generate(pos, moves) > U(0)


@kernel
def attack(positions, history, moves, level, depth):  # type: ignore[no-untyped-def]
    """Return a move that mates in at most `depth` plies from positions[level], or 0.

    Args:
        positions: POSITION_DTYPE[> level + depth]; those after `level` are working memory.
        history: of positions[level]; later entries are overwritten.
        moves: uint16[> level + depth, MAX_MOVES], working memory.
        level: int64.
        depth: int64, odd.
    """
    pos = positions[U(level)]
    checks = checking_moves(pos, moves[U(level)], False)
    after = positions[U(level + 1)]
    # Mates in one first: they need no search of evasions.
    for i in range(checks):
        move = moves[U(level), i]
        copy(after, pos)
        play(after, history, move)
        if not can_escape(after, moves[U(level + 1)]) and not is_pawn_drop(move):
            return np.int64(move)
    if depth <= 1:
        return np.int64(0)
    for i in range(checks):
        move = moves[U(level), i]
        copy(after, pos)
        play(after, history, move)
        escapes = generate(after, moves[U(level + 1)])
        refuted = escapes == U(0)  # an illegal pawn drop that mates
        for k in range(escapes):
            copy(positions[U(level + 2)], after)
            play(positions[U(level + 2)], history, moves[U(level + 1), k])
            is_mated = attack(positions, history, moves, level + 2, depth - 2) != 0
            if not is_mated or rules.ends_by_repetition(positions[U(level + 2)], history):
                refuted = True
                break
        if not refuted and not rules.ends_by_repetition(after, history):
            return np.int64(move)
    return np.int64(0)


@kernel
def settles(pos, history):  # type: ignore[no-untyped-def]
    """Return whether the mate search of a position's `mate_depth` finds a mate within the limit of moves."""
    depth = np.int64(pos.mate_depth)
    if pos.max_moves != 0:
        depth = min(depth, np.int64(pos.max_moves) - np.int64(pos.ply))
    if depth <= 0 or np.int64(pos.history_length) + 2 * depth > MAX_HISTORY:
        return False
    return mate_in(pos, history, depth - 1 + (depth & 1)) != 0


@allocating_kernel
def mate_in(pos, history, depth):  # type: ignore[no-untyped-def]
    """Return a move that mates in at most `depth` plies (odd), or 0.

    Overwrites up to `depth` positions of the history behind its own, for which there must be room.
    """
    if pos.king[U(2) - U(pos.side_to_move)] == NO_SQUARE:
        return np.int64(0)
    positions = np.empty(depth + 1, POSITION_DTYPE)
    moves = np.empty((depth + 1, MAX_MOVES), np.uint16)
    copy(positions[0], pos)
    return attack(positions, history, moves, 0, np.int64(depth))

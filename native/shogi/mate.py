"""Checks, and the short mate search at leaves."""

import numpy as np

from yomi.native.bits import U
from yomi.native.jit import allocating_kernel, inlined, kernel
from yomi.native.shogi import rules
from yomi.native.shogi.movegen import PROMOTES, generate, king_steps, lone_blockers, write_moves
from yomi.native.shogi.pieces import (
    BISHOP,
    DRAGON,
    GOLD,
    HORSE,
    KING,
    KNIGHT,
    LANCE,
    PAWN,
    PROMOTION,
    ROOK,
    SILVER,
    WHITE_PIECE,
)
from yomi.native.shogi.position import (
    ENTERING_KING_TRY,
    MAX_HISTORY,
    MAX_MOVES,
    PAWNS,
    POSITION_DTYPE,
    attackers,
    copy,
    gives_check,
    occupied,
    of_type,
    pieces_of,
    play,
)
from yomi.native.shogi.squares import (
    NO_SQUARE,
    all_squares,
    first_square,
    no_squares,
    only,
    put,
    squares_at,
    without_first,
)
from yomi.native.shogi.tables import DEAD, DIRECTION, FILES, HAND_TYPE, RAYS, ROWS, SLIDES, STEPS, ZONE, attacks

# Types of each row of `type_bits` up to ROOKS.
_GROUPS = ((PAWN,), (LANCE,), (KNIGHT,), (SILVER,), (GOLD,), (BISHOP, HORSE), (ROOK, DRAGON))


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
        for row, kinds in enumerate(_GROUPS):
            for kind in kinds:
                reach = _reach(kind, bool(color)).astype(np.int32)
                plain = reach @ reach
                if kind <= ROOK:
                    after = _reach(kind + PROMOTION, bool(color)).astype(np.int32)
                    promotes = zone[:, None] | zone[None, :]
                    plain = plain + (reach * promotes) @ after
                table[color, row, :81, :81] |= (plain.T > 0).astype(np.uint8)
    return np.packbits(table, axis=3, bitorder="little").view(np.uint64).ravel()


# uint64[2 * 7 * ROWS * 2]: by the mover's color, group of pieces and the king's square
ORIGINS = _make_origins()


@inlined
def _candidates(pos, us, king):  # type: ignore[no-untyped-def]
    """Return the pieces of `us` that could give check by a move on an empty board."""
    found = no_squares()
    for group in range(U(7)):
        found |= of_type(pos, group) & squares_at(ORIGINS, (us * U(7) + group) * U(ROWS) + king)
    return found & pieces_of(pos, us)


@kernel
def _checked_from(lines, kind, them, king):  # type: ignore[no-untyped-def]
    """Return the squares from which a piece of type `kind` checks the king of `them`."""
    found = squares_at(STEPS, (kind + them * U(WHITE_PIECE)) * U(ROWS) + king)
    if kind == U(BISHOP) or kind == U(HORSE):
        found |= lines[0]
    elif kind == U(ROOK) or kind == U(DRAGON):
        found |= lines[1]
    elif kind == U(LANCE):
        found |= lines[2]
    return found


@inlined
def _write_dropped_checks(pos, moves, count, us, king, free, lines):  # type: ignore[no-untyped-def]
    """Write the drops that give check, including an illegal pawn drop that mates."""
    for i in range(U(7)):
        if pos.hand[us, i] == 0:
            continue
        kind = U(HAND_TYPE[i])
        to = _checked_from(lines, kind, U(1) - us, king) & free & ~squares_at(DEAD, kind + us * U(WHITE_PIECE))
        if kind == U(PAWN) and to and of_type(pos, PAWNS) & pieces_of(pos, us) & squares_at(FILES, first_square(to)):
            continue
        count = write_moves(moves, count, to, (U(80) + kind) << U(7), U(1))
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
def _write_king_moves(pos, moves, count, origin, them, targets, rest):  # type: ignore[no-untyped-def]
    """Write the king's moves to squares that `them` do not attack. `rest`: all pieces except the king."""
    while targets:
        to = first_square(targets)
        targets = without_first(targets)
        if not attackers(pos, to, them, rest):
            moves[count] = to | origin
            count += U(1)
    return count


@inlined
def _lines_to(king, us, blockers):  # type: ignore[no-untyped-def]
    """Return three sets: the squares from which a bishop, a rook and a lance of `us` would check the king."""
    side = (U(1) - us) * U(WHITE_PIECE)
    rook = attacks(U(ROOK) + side, king, blockers)
    return attacks(U(BISHOP) + side, king, blockers), rook, rook & squares_at(RAYS, U(7) * us * U(ROWS) + king)


@inlined
def _ray_through(king, square):  # type: ignore[no-untyped-def]
    """Return the squares on the line from the king through `square`."""
    return squares_at(RAYS, U(DIRECTION[king * U(ROWS) + square]) * U(ROWS) + king)


@inlined
def _write_piece_checks(moves, count, code, origin, to, free, zone, lines, them, king, thorough):  # type: ignore[no-untyped-def]
    """Write a piece's moves that give check (not a king's); return the new number of moves.

    Sets: its targets `to`, squares of discovered checks `free`, and of promotions `zone`. `origin` is its square << 7.
    """
    kind = code & U(15)
    if kind <= U(ROOK):
        checks = to & zone & (_checked_from(lines, kind + U(PROMOTION), them, king) | free)
        count = write_moves(moves, count, checks, origin | U(PROMOTES), U(1))
        if not thorough and (kind == U(PAWN) or kind == U(BISHOP) or kind == U(ROOK)):
            to &= ~zone
        to &= ~squares_at(DEAD, code)
    return write_moves(moves, count, to & (_checked_from(lines, kind, them, king) | free), origin, U(1))


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
    blockers = occupied(pos)
    lines = _lines_to(king, us, blockers)
    unveil = lone_blockers(pos, king, us, us, blockers)
    candidates = _candidates(pos, us, king) | unveil
    count = U(0)
    pinned = no_squares()
    if own_king != U(NO_SQUARE) and candidates:
        pinned = lone_blockers(pos, own_king, them, us, blockers)
    # Each piece that may check directly, or discover a check by moving away.
    while candidates:
        s = first_square(candidates)
        rest = without_first(candidates)
        piece = candidates ^ rest
        candidates = rest
        code = U(pos.board[s])
        to = attacks(code, s, blockers) & ~pieces_of(pos, us)
        free = no_squares()
        if piece & unveil:
            free = ~_ray_through(king, s)
        if piece & pinned:
            to &= _ray_through(own_king, s)
        origin = s << U(7)
        # A king gives only discovered checks.
        if code & U(15) == U(KING):
            count = _write_king_moves(pos, moves, count, origin, them, to & free, blockers ^ piece)
            continue
        zone = squares_at(ZONE, us)
        if piece & zone:
            zone = all_squares()  # a piece leaving the zone may promote, too
        count = _write_piece_checks(moves, count, code, origin, to, free, zone, lines, them, king, thorough)
    return _write_dropped_checks(pos, moves, count, us, king, all_squares() & ~blockers, lines)


@kernel
def write_check_squares(pos, sets):  # type: ignore[no-untyped-def]
    """Write the squares from which a piece of the side to move would check: rows of `sets` (uint64[32]) by type."""
    us = U(pos.side_to_move) - U(1)
    them = U(1) - us
    king = U(pos.king[them])
    if king == U(NO_SQUARE):
        for i in range(U(sets.size)):
            sets[i] = U(0)
        return
    lines = _lines_to(king, us, occupied(pos))
    for kind in range(U(PAWN), U(DRAGON + 1)):
        put(sets, kind, no_squares() if kind == U(KING) else _checked_from(lines, kind, them, king))


@kernel
def is_pawn_drop(move):  # type: ignore[no-untyped-def]
    return (U(move) >> U(7)) & U(127) == U(80 + PAWN)


@kernel
def can_escape(pos, moves):  # type: ignore[no-untyped-def]
    """Return whether the side to move, in check, has a legal move. `moves` is working memory."""
    # The king's moves first: they are the cheapest to find.
    us = U(pos.side_to_move) - U(1)
    king = U(pos.king[us])
    blockers = occupied(pos) ^ only(king)
    targets = king_steps(pos, us)
    while targets:
        if not attackers(pos, first_square(targets), U(1) - us, blockers):
            return True
        targets = without_first(targets)
    return generate(pos, moves) > U(0)


@kernel
def attack(positions, history, moves, level, depth):  # type: ignore[no-untyped-def]
    """Return a move that mates in at most `depth` plies from positions[level], or 0.

    All evasions are answered, and no line ends before by a fourth repetition, which perpetual check loses.

    Args:
        positions: POSITION_DTYPE[> level + depth]; those after `level` are working memory.
        history: of positions[level]; later entries are overwritten.
        moves: uint16[> level + depth, MAX_MOVES], working memory.
        level: int64.
        depth: int64, odd.
    """
    pos = positions[U(level)]
    # Checks that waive a promotion win only if the promoted piece would make a pawn drop mate: not tried.
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
def _attack_from(pos, positions, history, moves, depth):  # type: ignore[no-untyped-def]
    copy(positions[U(0)], pos)
    return attack(positions, history, moves, 0, depth)


@kernel
def settles(pos, history):  # type: ignore[no-untyped-def]
    """Return whether a mate search of the position's `mate_depth` plies finds a mate within the limit of moves."""
    depth = np.int64(pos.mate_depth)
    if pos.max_moves != 0:
        depth = min(depth, np.int64(pos.max_moves) - np.int64(pos.ply))
    if pos.entering_king == ENTERING_KING_TRY:
        depth = min(depth, np.int64(1))  # the king may escape by a try
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
    positions, moves = np.empty(depth + 1, POSITION_DTYPE), np.empty((depth + 1, MAX_MOVES), np.uint16)
    return _attack_from(pos, positions, history, moves, np.int64(depth))

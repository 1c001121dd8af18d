"""Generation of legal moves: pins and checks first, then the squares of each piece.

A move is a uint16: to | origin << 7 | promotes << 14. The origin of a drop is 80 plus the type of the piece. Pointless
waivers of promotion are included.
"""

from typing import Any

import numpy as np

from yomi.native.bits import U, lowest_bit
from yomi.native.jit import allocating_kernel, inlined, kernel
from yomi.native.shogi.pieces import BISHOP, KING, PAWN, ROOK, WHITE_PIECE
from yomi.native.shogi.position import (
    MAX_MOVES,
    PAWNS,
    POSITION_DTYPE,
    attackers,
    between,
    copy,
    occupied,
    of_type,
    pieces_of,
    play,
    slider_lines,
)
from yomi.native.shogi.squares import (
    NO_SQUARE,
    all_squares,
    first_square,
    no_squares,
    number_of,
    one_rank_down,
    one_rank_up,
    only,
    squares_at,
    without_first,
    words_of,
)
from yomi.native.shogi.tables import (
    DEAD,
    DIAGONALS,
    DIRECTION,
    FILES,
    HAND_TYPE,
    RAYS,
    ROWS,
    STEPS,
    STRAIGHTS,
    ZONE,
    attacks,
)

PROMOTES = 1 << 14
# Counts of silvers, golds, bishops and rooks in Black's packed hand.
ANYWHERE = (1 << 28) - (1 << 14)


@kernel
def write_moves(moves, count, targets, first, step):  # type: ignore[no-untyped-def]
    """Write first + square * step for each square of a set; return the new count."""
    low, high = words_of(targets)
    while low != U(0):
        moves[count] = first + lowest_bit(low) * step
        low &= low - U(1)
        count += U(1)
    while high != U(0):
        moves[count] = first + (U(64) + lowest_bit(high)) * step
        high &= high - U(1)
        count += U(1)
    return count


@kernel
def lone_blockers(pos, square, slider, owner, blockers):  # type: ignore[no-untyped-def]
    """Return the pieces of `owner` (0, 1) that alone block a line from a sliding piece of `slider` to `square`.

    If a king is on the square, its own blockers are pinned, and the other side's give discovered check.
    """
    found = no_squares()
    sliders = slider_lines(pos, square, slider)
    while sliders:
        on_line = between(square, first_square(sliders)) & blockers
        sliders = without_first(sliders)
        if number_of(on_line) == U(1):
            found |= on_line
    return found & pieces_of(pos, owner)


@kernel
def king_steps(pos, color):  # type: ignore[no-untyped-def]
    """Return the squares beside a color's king, except the squares of its own pieces. Attacked squares are included."""
    return squares_at(STEPS, (U(KING) + color * U(WHITE_PIECE)) * U(ROWS) + U(pos.king[color])) & ~pieces_of(pos, color)


@kernel
def drop_pawn_mates(pos, square, blockers):  # type: ignore[no-untyped-def]
    """Return whether a pawn dropped on `square`, in front of the opponent's king, would mate."""
    us = U(pos.side_to_move) - U(1)
    them = U(1) - us
    king = U(pos.king[them])
    blockers ^= only(square)
    # Who can take the pawn: any unpinned piece; the king's moves follow below.
    pinned = lone_blockers(pos, king, us, them, blockers) ^ only(king)
    if attackers(pos, square, them, blockers) & ~pinned:
        return False
    targets = king_steps(pos, them)
    blockers ^= only(king)
    while targets:
        if not attackers(pos, first_square(targets), us, blockers):
            return False
        targets = without_first(targets)
    return True


@inlined
def _write_king_moves(pos, moves, us, king, targets, blockers):  # type: ignore[no-untyped-def]
    targets &= king_steps(pos, us)
    # The king does not block lines through its own square.
    blockers ^= only(king)
    count = U(0)
    while targets:
        s = first_square(targets)
        targets = without_first(targets)
        if not attackers(pos, s, U(1) - us, blockers):
            moves[count] = s | (king << U(7))
            count += U(1)
    return count


@inlined
def _write_drops(pos, moves, count, us, free, blockers):  # type: ignore[no-untyped-def]
    for i in range(U(7)):
        if pos.hand[us, i] == 0:
            continue
        kind = U(HAND_TYPE[i])
        targets = free & ~squares_at(DEAD, kind | (us << U(4)))
        if kind == U(PAWN):
            pawns = of_type(pos, PAWNS) & pieces_of(pos, us)
            while pawns:
                targets &= ~squares_at(FILES, first_square(pawns))
                pawns = without_first(pawns)
            them = U(1) - us
            row = (U(PAWN) + them * U(WHITE_PIECE)) * U(ROWS) + U(pos.king[them])
            head = squares_at(STEPS, row) & targets
            if head and drop_pawn_mates(pos, first_square(head), blockers):
                targets ^= head
        count = write_moves(moves, count, targets, (U(80) + kind) << U(7), U(1))
    return count


@inlined
def _pawns_ahead(us, pawns):  # type: ignore[no-untyped-def]
    """Return the squares in front of a set of pawns, none of which is on its last rank."""
    return one_rank_up(pawns) if us == U(0) else one_rank_down(pawns)


@inlined
def _write_pawn_moves(moves, count, us, targets, only_promotions):  # type: ignore[no-untyped-def]
    """Write the pawn moves to a set of squares at once: each origin is the square behind the target."""
    behind = U(1 << 7) if us == U(0) else U(0) - U(1 << 7)
    zone = squares_at(ZONE, us)
    count = write_moves(moves, count, targets & zone, behind + U(PROMOTES), U(129))
    plain = targets & ~(zone if only_promotions else squares_at(DEAD, U(PAWN) + us * U(WHITE_PIECE)))
    return write_moves(moves, count, plain, behind, U(129))


@inlined
def _write_piece_moves(pos, moves, count, us, king, own, targets, pinned, blockers, waives):  # type: ignore[no-untyped-def]
    """Write the moves of a set of pieces. Pinned pieces stay on their line with the king.

    `waives`: whether pawns, bishops and rooks may waive a promotion.
    """
    zone = squares_at(ZONE, us)
    while own:
        s = first_square(own)
        rest = without_first(own)
        piece = own ^ rest
        own = rest
        code = U(pos.board[s])
        to = attacks(code, s, blockers) & targets
        if piece & pinned:
            to &= squares_at(RAYS, U(DIRECTION[king * U(ROWS) + s]) * U(ROWS) + king)
        origin = s << U(7)
        # Promotions: into the zone, or from it. Then the moves without promotion.
        if code & U(15) <= U(ROOK):
            promoting = to if piece & zone else to & zone
            count = write_moves(moves, count, promoting, origin | U(PROMOTES), U(1))
            to &= ~squares_at(DEAD, code)
            kind = code & U(15)
            if not waives and (kind == U(PAWN) or kind == U(BISHOP) or kind == U(ROOK)):
                to &= ~promoting
        count = write_moves(moves, count, to, origin, U(1))
    return count


@kernel
def generate(pos, moves):  # type: ignore[no-untyped-def]
    """Write the legal moves (uint16) of the side to move into `moves`; return their number."""
    us = U(pos.side_to_move) - U(1)
    king = U(pos.king[us])
    own = pieces_of(pos, us)
    blockers = occupied(pos)
    targets = all_squares() & ~own
    pinned = no_squares()
    count = U(0)
    if king != U(NO_SQUARE):
        count = _write_king_moves(pos, moves, us, king, targets, blockers)
        if pos.in_check != 0:
            # Capture the checking piece or block it. Two cannot be met at once.
            targets = attackers(pos, king, U(1) - us, blockers)
            if number_of(targets) > U(1):
                return count
            checker = first_square(targets)
            if DIRECTION[king * U(ROWS) + checker] < 8:
                targets |= between(king, checker)
        pinned = lone_blockers(pos, king, U(1) - us, us, blockers)
        # The king's moves are written already.
        own ^= only(king)
    # All unpinned pawns at once, then the other pieces one by one.
    pawns = own & of_type(pos, PAWNS) & ~pinned
    count = _write_pawn_moves(moves, count, us, _pawns_ahead(us, pawns) & targets, False)
    count = _write_piece_moves(pos, moves, count, us, king, own ^ pawns, targets, pinned, blockers, True)
    return _write_drops(pos, moves, count, us, targets & ~blockers, blockers)


@inlined
def _generate_part(pos, moves, are_captures):  # type: ignore[no-untyped-def]
    """Write the legal captures and pawn promotions, or the other moves, of a side that is not in check."""
    us = U(pos.side_to_move) - U(1)
    king = U(pos.king[us])
    own = pieces_of(pos, us)
    theirs = pieces_of(pos, U(1) - us)
    blockers = own | theirs
    targets = theirs if are_captures else all_squares() & ~blockers
    pinned = no_squares()
    count = U(0)
    if king != U(NO_SQUARE):
        count = _write_king_moves(pos, moves, us, king, targets, blockers)
        pinned = lone_blockers(pos, king, U(1) - us, us, blockers)
        own ^= only(king)
    pawns = own & of_type(pos, PAWNS) & ~pinned
    zone = squares_at(ZONE, us)
    # All pawn moves into the zone count as captures: their promotion gains most.
    ahead = (targets | (zone & ~blockers)) if are_captures else targets & ~zone
    count = _write_pawn_moves(moves, count, us, _pawns_ahead(us, pawns) & ahead, True)
    count = _write_piece_moves(pos, moves, count, us, king, own ^ pawns, targets, pinned, blockers, False)
    return count if are_captures else _write_drops(pos, moves, count, us, targets, blockers)


@kernel
def generate_captures(pos, moves):  # type: ignore[no-untyped-def]
    """Write the legal captures and pawn promotions of a side that is not in check; return their number."""
    return _generate_part(pos, moves, True)


@kernel
def generate_quiets(pos, moves):  # type: ignore[no-untyped-def]
    """Write the other moves of a side that is not in check, without waivers by pawns, bishops and rooks; return their
    number.
    """
    return _generate_part(pos, moves, False)


@kernel
def legal_moves(pos, history, moves):  # type: ignore[no-untyped-def]
    """Write the legal moves (uint16[MAX_MOVES]) of the side to move into `moves`; return their number."""
    return generate(pos, moves)


@allocating_kernel
def is_legal(pos, history, move):  # type: ignore[no-untyped-def]
    moves = np.empty(MAX_MOVES, np.uint16)
    for i in range(U(generate(pos, moves))):
        if moves[i] == move:
            return True
    return False


@inlined
def _surely_has_move(pos):  # type: ignore[no-untyped-def]
    """Return whether a quick test finds a legal move; False for a side in check."""
    if pos.in_check != 0:
        return False
    us = U(pos.side_to_move) - U(1)
    # Silver, gold, bishop and rook may be dropped on any empty square.
    if (pos.hands >> (us * U(28))) & U(ANYWHERE) != U(0):
        return True
    # A pawn on no line with its king is not pinned.
    king = U(pos.king[us])
    own = pieces_of(pos, us)
    free = of_type(pos, PAWNS) & own & ~(squares_at(DIAGONALS, king) | squares_at(STRAIGHTS, king))
    return bool(_pawns_ahead(us, free) & ~own)


@allocating_kernel
def has_legal_move(pos):  # type: ignore[no-untyped-def]
    """Return whether the side to move has a legal move. Without one, that side has lost."""
    if _surely_has_move(pos):
        return True
    return generate(pos, np.empty(MAX_MOVES, np.uint16)) > U(0)


@kernel
def _walk(positions, history, moves, depth):  # type: ignore[no-untyped-def]
    """Count the lines of `depth` moves that begin at positions[depth]."""
    count = generate(positions[depth], moves[depth])
    if depth == U(1):
        return count
    total = U(0)
    for i in range(count):
        copy(positions[depth - U(1)], positions[depth])
        play(positions[depth - U(1)], history, moves[depth, i])
        total += _walk(positions, history, moves, depth - U(1))
    return total


def perft(pos: Any, history: Any, depth: int) -> int:
    """Return the number of lines of `depth` legal moves. The last moves are counted, not played."""
    if depth < 1:
        return 1
    positions = np.zeros(depth + 1, POSITION_DTYPE)
    positions[depth] = pos
    return int(_walk(positions, history, np.zeros((depth + 1, MAX_MOVES), np.uint16), U(depth)))

"""Generation of legal moves: pins and checks first, then the squares of each piece.

A move is a uint16: to | origin << 7 | promotes << 14. The origin of a drop is 80 plus the type of the piece. Pointless
waivers of promotion are included.
"""

from typing import Any

import numpy as np

from yomi.native.bits import U, lowest_bit, popcount
from yomi.native.jit import allocating_kernel, inlined, kernel
from yomi.native.shogi.position import MAX_MOVES, PAWNS, POSITION_DTYPE, attackers, between, copy, play, slider_lines
from yomi.native.shogi.tables import (
    DEAD,
    DIAGONALS,
    DIRECTION,
    FILES,
    HAND_TYPE,
    HIGH,
    NO_SQUARE,
    PAWN,
    RAYS,
    ROOK,
    ROWS,
    STEPS,
    STRAIGHTS,
    WHITE_PIECE,
    ZONE,
    attacks,
    first_square,
    toggled,
    without_first,
)

PROMOTES = 1 << 14
# Counts of silvers, golds, bishops and rooks in Black's packed hand.
ANYWHERE = (1 << 28) - (1 << 14)


@kernel
def write_moves(moves, count, low, high, first, step):  # type: ignore[no-untyped-def]
    """Write first + square * step for each square of a set; return the new count."""
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
def lone_blockers(pos, square, slider, owner, occupied_low, occupied_high):  # type: ignore[no-untyped-def]
    """Return the pieces of `owner` (0, 1) that alone block a line from a sliding piece of `slider` to `square`.

    If a king is on the square, its own blockers are pinned, and the other side's give discovered check.
    """
    low = U(0)
    high = U(0)
    slider_low, slider_high = slider_lines(pos, square, slider)
    while slider_low | slider_high != U(0):
        s = first_square(slider_low, slider_high)
        slider_low, slider_high = without_first(slider_low, slider_high)
        between_low, between_high = between(square, s)
        between_low &= occupied_low
        between_high &= occupied_high
        if popcount(between_low) + popcount(between_high) == U(1):
            low |= between_low
            high |= between_high
    return low & pos.color_bits[owner * U(2)], high & pos.color_bits[owner * U(2) + U(1)]


@kernel
def drop_pawn_mates(pos, square, occupied_low, occupied_high):  # type: ignore[no-untyped-def]
    """Return whether a pawn dropped on `square`, in front of the opponent's king, would mate."""
    us = U(pos.side_to_move) - U(1)
    them = U(1) - us
    king = U(pos.king[them])
    occupied_low, occupied_high = toggled(occupied_low, occupied_high, square)
    # Who can take the pawn: any unpinned piece; the king's moves follow below.
    low, high = attackers(pos, square, them, occupied_low, occupied_high)
    pinned_low, pinned_high = lone_blockers(pos, king, us, them, occupied_low, occupied_high)
    pinned_low, pinned_high = toggled(pinned_low, pinned_high, king)
    if (low & ~pinned_low) | (high & ~pinned_high) != U(0):
        return False
    row = ((U(8) + them * U(WHITE_PIECE)) * U(ROWS) + king) * U(2)
    low = STEPS[row] & ~pos.color_bits[them * U(2)]
    high = STEPS[row + U(1)] & ~pos.color_bits[them * U(2) + U(1)]
    occupied_low, occupied_high = toggled(occupied_low, occupied_high, king)
    while low | high != U(0):
        s = first_square(low, high)
        low, high = without_first(low, high)
        attack_low, attack_high = attackers(pos, s, us, occupied_low, occupied_high)
        if attack_low | attack_high == U(0):
            return False
    return True


@inlined
def _write_king_moves(pos, moves, us, king, target_low, target_high, occupied_low, occupied_high):  # type: ignore[no-untyped-def]
    row = ((U(8) + us * U(WHITE_PIECE)) * U(ROWS) + king) * U(2)
    low = STEPS[row] & target_low
    high = STEPS[row + U(1)] & target_high
    # The king does not block lines through its own square.
    occupied_low, occupied_high = toggled(occupied_low, occupied_high, king)
    count = U(0)
    while low | high != U(0):
        s = first_square(low, high)
        low, high = without_first(low, high)
        attack_low, attack_high = attackers(pos, s, U(1) - us, occupied_low, occupied_high)
        if attack_low | attack_high == U(0):
            moves[count] = s | (king << U(7))
            count += U(1)
    return count


@inlined
def _write_drops(pos, moves, count, us, low, high, occupied_low, occupied_high):  # type: ignore[no-untyped-def]
    for i in range(U(7)):
        if pos.hand[us, i] == 0:
            continue
        kind = U(HAND_TYPE[i])
        row = (kind | (us << U(4))) * U(2)
        to_low = low & ~DEAD[row]
        to_high = high & ~DEAD[row + U(1)]
        if kind == U(PAWN):
            pawn_low = pos.type_bits[U(PAWNS)] & pos.color_bits[us * U(2)]
            pawn_high = pos.type_bits[U(PAWNS + 1)] & pos.color_bits[us * U(2) + U(1)]
            while pawn_low | pawn_high != U(0):
                s = first_square(pawn_low, pawn_high)
                pawn_low, pawn_high = without_first(pawn_low, pawn_high)
                to_low &= ~FILES[s * U(2)]
                to_high &= ~FILES[s * U(2) + U(1)]
            row = ((U(PAWN) + (U(1) - us) * U(WHITE_PIECE)) * U(ROWS) + U(pos.king[U(1) - us])) * U(2)
            head_low = STEPS[row] & to_low
            head_high = STEPS[row + U(1)] & to_high
            if head_low | head_high != U(0) and drop_pawn_mates(
                pos, first_square(head_low, head_high), occupied_low, occupied_high
            ):
                to_low ^= head_low
                to_high ^= head_high
        count = write_moves(moves, count, to_low, to_high, (U(80) + kind) << U(7), U(1))
    return count


@inlined
def _pawns_ahead(us, low, high):  # type: ignore[no-untyped-def]
    """Return the squares in front of a set of pawns, none of which is on its last rank."""
    if us == U(0):
        return (low >> U(1)) | (high << U(63)), high >> U(1)
    return low << U(1), (high << U(1)) | (low >> U(63))


@inlined
def _write_pawn_moves(moves, count, us, low, high, target_low, target_high):  # type: ignore[no-untyped-def]
    """Write the moves of a set of pawns at once: each origin is the square behind the target."""
    low, high = _pawns_ahead(us, low, high)
    behind = U(1 << 7) if us == U(0) else U(0) - U(1 << 7)
    low &= target_low
    high &= target_high
    zone = us * U(2)
    count = write_moves(moves, count, low & ZONE[zone], high & ZONE[zone + U(1)], behind + U(PROMOTES), U(129))
    dead = (U(PAWN) + us * U(WHITE_PIECE)) * U(2)
    return write_moves(moves, count, low & ~DEAD[dead], high & ~DEAD[dead + U(1)], behind, U(129))


@inlined
def _write_piece_moves(  # type: ignore[no-untyped-def]
    pos,
    moves,
    count,
    us,
    king,
    own_low,
    own_high,
    target_low,
    target_high,
    pinned_low,
    pinned_high,
    occupied_low,
    occupied_high,
):
    """Write the moves of a set of pieces. Pinned pieces stay on their line with the king."""
    zone_low = ZONE[us * U(2)]
    zone_high = ZONE[us * U(2) + U(1)]
    while own_low | own_high != U(0):
        s = first_square(own_low, own_high)
        bit_low = own_low & (U(0) - own_low)
        bit_high = U(0) if bit_low != U(0) else own_high & (U(0) - own_high)
        own_low ^= bit_low
        own_high ^= bit_high
        code = U(pos.board[s])
        low, high = attacks(code, s, occupied_low, occupied_high)
        low &= target_low
        high &= target_high
        if (bit_low & pinned_low) | (bit_high & pinned_high) != U(0):
            row = (U(DIRECTION[king * U(ROWS) + s]) * U(ROWS) + king) * U(2)
            low &= RAYS[row]
            high &= RAYS[row + U(1)]
        origin = s << U(7)
        # Promotions: into the zone, or from it. Then the moves without promotion.
        if code & U(15) <= U(ROOK):
            leaves = (bit_low & zone_low) | (bit_high & zone_high) != U(0)
            to_low = low if leaves else low & zone_low
            to_high = high if leaves else high & zone_high
            count = write_moves(moves, count, to_low, to_high, origin | U(PROMOTES), U(1))
            low &= ~DEAD[code * U(2)]
            high &= ~DEAD[code * U(2) + U(1)]
        count = write_moves(moves, count, low, high, origin, U(1))
    return count


@kernel
def generate(pos, moves):  # type: ignore[no-untyped-def]
    """Write the legal moves (uint16) of the side to move into `moves`; return their number."""
    us = U(pos.side_to_move) - U(1)
    king = U(pos.king[us])
    own_low = pos.color_bits[us * U(2)]
    own_high = pos.color_bits[us * U(2) + U(1)]
    occupied_low = pos.color_bits[U(0)] | pos.color_bits[U(2)]
    occupied_high = pos.color_bits[U(1)] | pos.color_bits[U(3)]
    target_low = ~own_low
    target_high = ~own_high & U(HIGH)
    pinned_low = U(0)
    pinned_high = U(0)
    count = U(0)
    if king != U(NO_SQUARE):
        count = _write_king_moves(pos, moves, us, king, target_low, target_high, occupied_low, occupied_high)
        if pos.in_check != 0:
            # Capture the checking piece or block it. Two cannot be met at once.
            target_low, target_high = attackers(pos, king, U(1) - us, occupied_low, occupied_high)
            if popcount(target_low) + popcount(target_high) > U(1):
                return count
            checker = first_square(target_low, target_high)
            if DIRECTION[king * U(ROWS) + checker] < 8:
                between_low, between_high = between(king, checker)
                target_low |= between_low
                target_high |= between_high
        pinned_low, pinned_high = lone_blockers(pos, king, U(1) - us, us, occupied_low, occupied_high)
        # The king's moves are written already.
        own_low, own_high = toggled(own_low, own_high, king)
    # All unpinned pawns at once, then the other pieces one by one.
    pawn_low = own_low & pos.type_bits[U(PAWNS)] & ~pinned_low
    pawn_high = own_high & pos.type_bits[U(PAWNS + 1)] & ~pinned_high
    count = _write_pawn_moves(moves, count, us, pawn_low, pawn_high, target_low, target_high)
    count = _write_piece_moves(
        pos,
        moves,
        count,
        us,
        king,
        own_low ^ pawn_low,
        own_high ^ pawn_high,
        target_low,
        target_high,
        pinned_low,
        pinned_high,
        occupied_low,
        occupied_high,
    )
    return _write_drops(
        pos, moves, count, us, target_low & ~occupied_low, target_high & ~occupied_high, occupied_low, occupied_high
    )


@kernel
def generate_captures(pos, moves):  # type: ignore[no-untyped-def]
    """Write the legal captures and pawn promotions of a side that is not in check; return their number."""
    us = U(pos.side_to_move) - U(1)
    king = U(pos.king[us])
    own_low = pos.color_bits[us * U(2)]
    own_high = pos.color_bits[us * U(2) + U(1)]
    target_low = pos.color_bits[U(2) - us * U(2)]
    target_high = pos.color_bits[U(3) - us * U(2)]
    occupied_low = own_low | target_low
    occupied_high = own_high | target_high
    pinned_low = U(0)
    pinned_high = U(0)
    count = U(0)
    if king != U(NO_SQUARE):
        count = _write_king_moves(pos, moves, us, king, target_low, target_high, occupied_low, occupied_high)
        pinned_low, pinned_high = lone_blockers(pos, king, U(1) - us, us, occupied_low, occupied_high)
        own_low, own_high = toggled(own_low, own_high, king)
    pawn_low = own_low & pos.type_bits[U(PAWNS)] & ~pinned_low
    pawn_high = own_high & pos.type_bits[U(PAWNS + 1)] & ~pinned_high
    # All pawn moves into the zone: their promotion gains most.
    zone_low = target_low | (ZONE[us * U(2)] & ~occupied_low)
    zone_high = target_high | (ZONE[us * U(2) + U(1)] & ~occupied_high)
    ahead_low, ahead_high = _pawns_ahead(us, pawn_low, pawn_high)
    ahead_low &= zone_low
    ahead_high &= zone_high
    behind = U(1 << 7) if us == U(0) else U(0) - U(1 << 7)
    zone_low = ZONE[us * U(2)]
    zone_high = ZONE[us * U(2) + U(1)]
    count = write_moves(moves, count, ahead_low & zone_low, ahead_high & zone_high, behind + U(PROMOTES), U(129))
    count = write_moves(moves, count, ahead_low & ~zone_low, ahead_high & ~zone_high, behind, U(129))
    return _write_piece_moves(
        pos,
        moves,
        count,
        us,
        king,
        own_low ^ pawn_low,
        own_high ^ pawn_high,
        target_low,
        target_high,
        pinned_low,
        pinned_high,
        occupied_low,
        occupied_high,
    )


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
    row = U(pos.king[us]) * U(2)
    own_low = pos.color_bits[us * U(2)]
    own_high = pos.color_bits[us * U(2) + U(1)]
    low = pos.type_bits[U(PAWNS)] & own_low & ~(DIAGONALS[row] | STRAIGHTS[row])
    high = pos.type_bits[U(PAWNS + 1)] & own_high & ~(DIAGONALS[row + U(1)] | STRAIGHTS[row + U(1)])
    low, high = _pawns_ahead(us, low, high)
    return (low & ~own_low) | (high & ~own_high) != U(0)


@allocating_kernel
def has_legal_move(pos):  # type: ignore[no-untyped-def]
    """Return whether the side to move has a legal move; without one it has lost."""
    if _surely_has_move(pos):
        return True
    return generate(pos, np.empty(MAX_MOVES, np.uint16)) > U(0)


@kernel
def _walk(positions, history, moves, depth):  # type: ignore[no-untyped-def]
    """Count the lines of `depth` moves from positions[depth]."""
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

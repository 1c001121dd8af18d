"""Static exchange evaluation of a single move. Pins are ignored."""

import numpy as np

from yomi.native.bits import U
from yomi.native.jit import inlined, kernel
from yomi.native.shogi.bitboards import first_square, toggled
from yomi.native.shogi.effects import CAPTURE, VALUE
from yomi.native.shogi.position import BISHOPS, FIRST_DROP, GOLDS, KNIGHTS, LANCES, PAWNS, ROOKS, SILVERS, attackers
from yomi.native.shogi.tables import KING

# Sets of `type_bits`, cheapest first, without kings.
CHEAPEST_FIRST = np.array([PAWNS, LANCES, KNIGHTS, SILVERS, GOLDS, BISHOPS, ROOKS], np.uint64)


@inlined
def _cheapest(pos, low, high, king):  # type: ignore[no-untyped-def]
    """Return the square of the cheapest piece of a nonempty set."""
    for i in range(U(7)):
        place = CHEAPEST_FIRST[i]
        found_low, found_high = low & pos.type_bits[place], high & pos.type_bits[place + U(1)]
        if found_low | found_high != U(0):
            return first_square(found_low, found_high)
    return king


@kernel
def gains(pos, move, threshold):  # type: ignore[no-untyped-def]
    """Return whether a legal move gains at least `threshold` if both sides then capture on its target while it pays.

    Units are those of effects.CAPTURE: capturing a pawn gains 210. A negative threshold allows a loss.
    """
    us = U(pos.side_to_move) - U(1)
    to = U(move) & U(127)
    origin = (U(move) >> U(7)) & U(127)
    low = pos.color_bits[U(0)] | pos.color_bits[U(2)]
    high = pos.color_bits[U(1)] | pos.color_bits[U(3)]
    if origin >= U(FIRST_DROP):
        kind = origin - U(FIRST_DROP - 1)
        balance = -np.int64(threshold)
        low, high = toggled(low, high, to)
    else:
        before = U(pos.board[origin]) & U(15)
        kind = before + ((U(move) >> U(14)) << U(3))
        captured = U(pos.board[to])
        balance = np.int64(CAPTURE[captured & U(15)]) + np.int64(VALUE[kind]) - np.int64(VALUE[before])
        balance -= np.int64(threshold)
        low, high = toggled(low, high, origin)
        if captured == U(0):
            low, high = toggled(low, high, to)
    if balance < 0:
        return False
    if kind == U(KING):
        return True  # legal: no piece can capture the king
    balance = np.int64(CAPTURE[kind]) - balance
    if balance <= 0:
        return True
    side = us
    is_gain = True
    while True:
        side ^= U(1)
        attack_low, attack_high = attackers(pos, to, side, low, high)
        attack_low &= low
        attack_high &= high
        if attack_low | attack_high == U(0):
            return is_gain
        is_gain = not is_gain
        square = _cheapest(pos, attack_low, attack_high, U(pos.king[side]))
        low, high = toggled(low, high, square)
        kind = U(pos.board[square]) & U(15)
        if kind == U(KING):
            other_low, other_high = attackers(pos, to, side ^ U(1), low, high)
            if (other_low & low) | (other_high & high) != U(0):
                return not is_gain  # the king may not capture a guarded piece
            return is_gain
        balance = np.int64(CAPTURE[kind]) - balance
        if balance < np.int64(is_gain):
            return is_gain

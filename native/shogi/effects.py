"""Attackers of squares, and static exchange evaluation: of all squares (`exchange`), and of single moves (`gains`)."""

import numpy as np
import numpy.typing as npt

from yomi.native.bits import U, lowest_bit
from yomi.native.jit import inlined, kernel
from yomi.native.shogi import pieces
from yomi.native.shogi.pieces import (
    BISHOP,
    DRAGON,
    GOLD,
    HORSE,
    KING,
    KNIGHT,
    LANCE,
    PAWN,
    PROM_KNIGHT,
    PROM_LANCE,
    PROM_PAWN,
    PROM_SILVER,
    ROOK,
    SILVER,
)
from yomi.native.shogi.position import FIRST_DROP, KINGS, attackers, occupied, of_type
from yomi.native.shogi.squares import NO_SQUARE, first_square, only
from yomi.native.shogi.tables import shifted

# (files, ranks) of each direction: towards smaller ranks (forward for Black), then clockwise from Black's side, with
# file 1 on the right.
_DIRECTIONS = ((0, -1), (-1, -1), (-1, 0), (-1, 1), (0, 1), (1, 1), (1, 0), (1, -1))


def _make_reach(steps: dict[int, pieces.Steps]) -> npt.NDArray[np.uint8]:
    """Return the directions (bits, for Black) in which each type steps or slides, except knights."""
    table = np.zeros(16, np.uint8)
    for kind, reached in steps.items():
        if kind != KNIGHT:
            table[kind] = sum(1 << _DIRECTIONS.index(step) for step in reached)
    return table


def _make_distance() -> npt.NDArray[np.uint8]:
    file, rank = np.divmod(np.arange(81), 9)
    files, ranks = np.abs(file[:, None] - file[None, :]), np.abs(rank[:, None] - rank[None, :])
    table = np.full((82, 82), 8, np.uint8)
    table[:81, :81] = np.maximum(files, ranks)
    return table


# uint8[8, 82]: next square in a direction, or NO_SQUARE
NEXT = np.array([[shifted(square, step) for square in range(82)] for step in _DIRECTIONS], np.uint8)
# uint8[2, 81, 2]: targets of a knight by color, or NO_SQUARE
JUMP = np.array(
    [[[shifted(square, (files, ranks)) for files in (-1, 1)] for square in range(81)] for ranks in (-2, 2)], np.uint8
)
STEPS = _make_reach(pieces.STEPS)
SLIDES = _make_reach(pieces.SLIDES)
# uint8[82, 82]: king's steps between squares; 8, the maximum, for NO_SQUARE
DISTANCE = _make_distance()

# Types from the cheapest to capture to the dearest, with their values on the board and in hand. A pawn is about 100.
_VALUES = {
    PAWN: (100, 110),
    LANCE: (300, 300),
    KNIGHT: (350, 360),
    PROM_PAWN: (520, 110),
    PROM_LANCE: (520, 300),
    PROM_KNIGHT: (540, 360),
    SILVER: (520, 540),
    PROM_SILVER: (570, 540),
    GOLD: (590, 620),
    BISHOP: (850, 880),
    HORSE: (1150, 880),
    ROOK: (1020, 1060),
    DRAGON: (1380, 1060),
    KING: (0, 0),
}
RANK = np.zeros(16, np.uint8)  # place in this order, by type
VALUE, HAND_VALUE = np.zeros((2, 16), np.int32)  # by type
for _rank, (_type, _values) in enumerate(_VALUES.items()):
    RANK[_type] = _rank
    VALUE[_type], HAND_VALUE[_type] = _values
KING_RANK = int(RANK[KING])
CAPTURE = VALUE + HAND_VALUE  # change of the balance by a capture, by type; 0 for a king
CAPTURE_BY_RANK = np.zeros(16, np.int32)
for _type in _VALUES:
    CAPTURE_BY_RANK[RANK[_type]] = CAPTURE[_type]
CAPTURE_BY_RANK[KING_RANK] = 10_000

# Working memory for one position. All attacks of a color on a square are one uint64: sixteen 4-bit counters by rank of
# piece, the cheapest lowest. A bit scan finds the cheapest attacker, a subtraction removes it: an exchange takes a few
# instructions per capture. Pins are ignored; pieces behind another piece that moves the same way count.
EFFECTS_DTYPE = np.dtype(
    [
        ("attackers", np.uint64, (2, 82)),  # by color and square
        ("influence", np.float32, (2,)),  # attacks of a color, weighted by distance to the kings
        ("loss", np.int32, (82,)),  # loss of a piece's owner if the enemy starts an exchange there; >= 0
        ("gains", np.int32, (40,)),  # working memory of `exchange`
    ],
    align=True,
)

OWN_KING_WEIGHT = np.array([0.0, 9.0, 6.5, 4.0, 2.5, 1.5, 1.0, 1.0, 1.0], np.float32)
# Weight of an attacked square by its distance from the own and the enemy's king.
ENEMY_KING_WEIGHT = np.array([0.0, 16.0, 9.0, 5.0, 3.0, 2.0, 1.5, 1.0, 1.0], np.float32)


@kernel
def slide(board, effects, origin, direction, color, unit, own_king, enemy_king):  # type: ignore[no-untyped-def]
    """Add the attacks of a sliding piece in one direction. Return their influence on squares near the kings."""
    # The ray continues through own pieces that capture along it: they capture first, this piece recaptures.
    influence = np.float32(0.0)
    square = np.int64(NEXT[U(direction), U(origin)])
    seen = True
    ahead = np.int64(1) << ((direction + 4 * color) & 7)
    while square != NO_SQUARE:
        effects.attackers[U(color), U(square)] += unit
        if seen:
            influence += OWN_KING_WEIGHT[U(DISTANCE[U(own_king), U(square)])]
            influence += ENEMY_KING_WEIGHT[U(DISTANCE[U(enemy_king), U(square)])]
        code = np.int64(board[U(square)])
        if code != 0:
            kind = U(code & 15)
            if code >> 4 != color or kind == KING:
                break
            if np.int64(SLIDES[kind]) & ahead == 0:
                if np.int64(STEPS[kind]) & ahead != 0:
                    effects.attackers[U(color), U(NEXT[U(direction), U(square)])] += unit
                break
            seen = False
        square = np.int64(NEXT[U(direction), U(square)])
    return influence


@kernel
def find_attacks(board, black_king, white_king, effects):  # type: ignore[no-untyped-def]
    """Fill `effects.attackers` and `effects.influence` for a board (uint8[81], piece codes)."""
    for square in range(U(82)):
        effects.attackers[U(0), square] = U(0)
        effects.attackers[U(1), square] = U(0)
    effects.influence[U(0)] = 0.0
    effects.influence[U(1)] = 0.0
    for origin in range(81):
        code = np.int64(board[U(origin)])
        if code == 0:
            continue
        color = code >> 4
        kind = code & 15
        own_king = white_king if color == 1 else black_king
        enemy_king = black_king if color == 1 else white_king
        unit = U(1) << U(4 * np.int64(RANK[U(kind)]))
        influence = np.float32(0.0)
        turn = 4 * color
        if kind == KNIGHT:
            for side in range(U(2)):
                square = np.int64(JUMP[U(color), U(origin), side])
                effects.attackers[U(color), U(square)] += unit
                if square != NO_SQUARE:
                    influence += OWN_KING_WEIGHT[U(DISTANCE[U(own_king), U(square)])]
                    influence += ENEMY_KING_WEIGHT[U(DISTANCE[U(enemy_king), U(square)])]
        steps = U(STEPS[U(kind)])
        while steps != 0:
            direction = (np.int64(lowest_bit(steps)) + turn) & 7
            steps &= steps - U(1)
            square = np.int64(NEXT[U(direction), U(origin)])
            effects.attackers[U(color), U(square)] += unit
            if square != NO_SQUARE and kind != KING:
                influence += OWN_KING_WEIGHT[U(DISTANCE[U(own_king), U(square)])]
                influence += ENEMY_KING_WEIGHT[U(DISTANCE[U(enemy_king), U(square)])]
        slides = U(SLIDES[U(kind)])
        while slides != 0:
            direction = (np.int64(lowest_bit(slides)) + turn) & 7
            slides &= slides - U(1)
            influence += slide(board, effects, origin, direction, color, unit, own_king, enemy_king)
        effects.influence[U(color)] += influence
    effects.attackers[U(0), U(NO_SQUARE)] = U(0)
    effects.attackers[U(1), U(NO_SQUARE)] = U(0)


@kernel
def exchange(gains, mine, theirs, prize, rank):  # type: ignore[no-untyped-def]
    """Return the gain of a move to a square if both sides then capture there while it pays.

    Args:
        gains: int32[40], working memory.
        mine: the mover's attackers of the square, without the moving piece.
        theirs: the opponent's attackers.
        prize: gain of the move itself.
        rank: rank of the moving piece.
    """
    gains[U(0)] = prize
    n = np.int64(0)
    side, other = theirs, mine
    while side != 0 and n < 38:
        attacker = np.int64(lowest_bit(side)) >> 2
        if attacker == KING_RANK and other != 0:
            break
        n += 1
        gains[U(n)] = np.int64(CAPTURE_BY_RANK[U(rank)]) - np.int64(gains[U(n - 1)])
        rank = attacker
        side, other = other, side - (U(1) << U(4 * attacker))
    while n > 0:
        if gains[U(n)] > -gains[U(n - 1)]:
            gains[U(n - 1)] = -gains[U(n)]
        n -= 1
    return np.int64(gains[U(0)])


@kernel
def find_losses(board, effects):  # type: ignore[no-untyped-def]
    """Fill `effects.loss`: the loss of each piece's owner if the enemy captures it."""
    for square in range(81):
        effects.loss[U(square)] = 0
        code = np.int64(board[U(square)])
        kind = U(code & 15)
        if code == 0 or kind == KING:
            continue
        color = code >> 4
        enemies = effects.attackers[U(1 - color), U(square)]
        if enemies == 0:
            continue
        friends = effects.attackers[U(color), U(square)]
        attacker = np.int64(lowest_bit(enemies)) >> 2
        if attacker == KING_RANK and friends != 0:
            continue
        enemies -= U(1) << U(4 * attacker)
        gain = exchange(effects.gains, enemies, friends, np.int64(CAPTURE[kind]), attacker)
        effects.loss[U(square)] = max(gain, 0)
    effects.loss[U(NO_SQUARE)] = 0


@inlined
def _cheapest(pos, squares, king):  # type: ignore[no-untyped-def]
    """Return the square of the cheapest piece of a nonempty set."""
    for row in range(U(KINGS)):  # cheapest first
        found = squares & of_type(pos, row)
        if found:
            return first_square(found)
    return king


@kernel
def gains(pos, move, threshold):  # type: ignore[no-untyped-def]
    """Return whether a legal move gains at least `threshold` if both sides then capture on its target while it pays.

    Units are those of effects.CAPTURE: capturing a pawn gains 210. A negative threshold allows a loss.
    """
    us = U(pos.side_to_move) - U(1)
    to = U(move) & U(127)
    origin = (U(move) >> U(7)) & U(127)
    left = occupied(pos)
    if origin >= U(FIRST_DROP):
        kind = origin - U(FIRST_DROP - 1)
        balance = -np.int64(threshold)
        left ^= only(to)
    else:
        before = U(pos.board[origin]) & U(15)
        kind = before + ((U(move) >> U(14)) << U(3))
        captured = U(pos.board[to])
        balance = np.int64(CAPTURE[captured & U(15)]) + np.int64(VALUE[kind]) - np.int64(VALUE[before])
        balance -= np.int64(threshold)
        left ^= only(origin)
        if captured == U(0):
            left ^= only(to)
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
        attacking = attackers(pos, to, side, left) & left
        if not attacking:
            return is_gain
        is_gain = not is_gain
        square = _cheapest(pos, attacking, U(pos.king[side]))
        left ^= only(square)
        kind = U(pos.board[square]) & U(15)
        if kind == U(KING):
            if attackers(pos, to, side ^ U(1), left) & left:
                return not is_gain  # the king may not capture a guarded piece
            return is_gain
        balance = np.int64(CAPTURE[kind]) - balance
        if balance < np.int64(is_gain):
            return is_gain

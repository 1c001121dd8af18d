"""Functions that both the main and the quiescence search use: values, the game's end, exchanges, the best line.

Values are in the network's unit (a pawn is 90) for the side to move. A mate in n plies has the value MATE - n.
"""

import math

import numpy as np

from yomi.native.alphabeta.correction import UNIT as CORRECTION_UNIT
from yomi.native.alphabeta.ordering import SEE_UNIT
from yomi.native.alphabeta.table import LOWER, UPPER
from yomi.native.alphabeta.thread import IS_STOPPED, LIMIT, MAY_STOP, NODES, PLIES
from yomi.native.bits import U
from yomi.native.jit import inlined, kernel
from yomi.native.shogi import rules
from yomi.native.shogi.effects import gains

INFINITE, MATE = 32001, 32000
WON = MATE - 2 * PLIES  # values from here on are mates
# Value of a logit of the winrate, fitted to results (docs/how-to/networks.md). A pawn is 100, a logit 600 centipawns.
VALUE_SCALE = 540.0
MAX_DRAW = 0.999  # greatest value of a draw in [-1, 1]; a certain result would be infinite


@kernel
def stops(thread):  # type: ignore[no-untyped-def]
    """Return whether the search must end now: it was stopped, or has reached its limit of nodes."""
    counters = thread.counters
    if counters[U(MAY_STOP)] != 0 and (counters[U(NODES)] > counters[U(LIMIT)] or thread.stop[U(0)] != 0):
        counters[U(IS_STOPPED)] = 1
        return True
    return False


@kernel
def ended(pos, history, ply):  # type: ignore[no-untyped-def]
    """Return whether the rules end the game, except by mate, and its value."""
    if rules.tried(pos):
        return True, ply - MATE
    if pos.max_moves != 0 and pos.ply >= pos.max_moves:
        return True, _draw(pos)
    kind = rules.repetition(pos, history, pos.root_length)
    if kind != rules.NONE:
        if kind == rules.DRAW:
            return True, _draw(pos)
        # Just less than a mate: the result holds inside the search only.
        return True, (WON - 1 if kind == rules.WIN or kind == rules.SUPERIOR else 1 - WON)
    if rules.declaration(pos):
        return True, MATE - ply
    return False, 0


@inlined
def _draw(pos):  # type: ignore[no-untyped-def]
    """Return the value of a draw for the side to move."""
    share = min(max(pos.draw_value[U(pos.side_to_move) - U(1)], -MAX_DRAW), MAX_DRAW)
    return np.int64(VALUE_SCALE * math.log((1.0 + share) / (1.0 - share)))


@kernel
def to_table(value, ply):  # type: ignore[no-untyped-def]
    """Convert a value for the table. There, mates count plies from the position instead of from the root."""
    if value >= WON:
        return value + ply
    return value - ply if value <= -WON else value


@kernel
def from_table(value, ply):  # type: ignore[no-untyped-def]
    if value >= WON:
        return value - ply
    return value + ply if value <= -WON else value


@inlined
def decides(bound, value, beta):  # type: ignore[no-untyped-def]
    """Return whether a stored value with this bound proves that the position reaches `beta`, or that it does not."""
    return (bound & (LOWER if value >= beta else UPPER)) != 0


@inlined
def loses(pos, move, margin):  # type: ignore[no-untyped-def]
    """Return whether the exchange that a move begins on its target loses more than `margin`."""
    return not gains(pos, move, -margin * SEE_UNIT // 10)


@inlined
def corrected(static, correction):  # type: ignore[no-untyped-def]
    return min(max(static + correction // CORRECTION_UNIT, 1 - WON), WON - 1)


@inlined
def extend_line(thread, ply, move):  # type: ignore[no-untyped-def]
    """Store `move` followed by the best line of the next ply as the best line from `ply` on."""
    line, below = thread.lines[U(ply)], thread.lines[U(ply + 1)]
    line[U(0)] = move
    i = U(0)
    while below[i] != 0 and i < U(PLIES - 2):
        line[i + U(1)] = below[i]
        i += U(1)
    line[i + U(1)] = 0

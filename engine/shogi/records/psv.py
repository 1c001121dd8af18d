"""psv files, YaneuraOu's training positions of 40 bytes (PackedSfenValue).

A record is the board in 32 bytes, the evaluation in centipawns for the side to move, the move, the ply, the game's
result for the side to move (1, 0, -1), and a spare byte in which yomi marks games. Whole files are read by
yomi.engine.shogi.datasets.rows.
"""

from __future__ import annotations

import numpy as np

from yomi.engine.shogi.moves import board_move, drop, dropped_type, promotes, source_of, target_of
from yomi.engine.shogi.pieces import GOLD, KNIGHT, SILVER
from yomi.engine.shogi.placement import Placement
from yomi.engine.shogi.records.hcpe import CODES, pack_bits

PSV_DTYPE = np.dtype(
    [
        ("sfen", np.uint8, (32,)),
        ("score", "<i2"),
        ("move", "<u2"),
        ("ply", "<u2"),
        ("result", "i1"),
        ("spare", "u1"),
    ]
)
DROP_BIT, PROMOTION_BIT = 1 << 14, 1 << 15
_CODES = {**CODES, KNIGHT: CODES[SILVER], SILVER: CODES[KNIGHT]}
# In hand, the first bit is missing and the promotion bit is 0.
_HAND_CODES = {kind: code[1:] + ("" if kind == GOLD else "0") for kind, code in _CODES.items()}


def pack_psv(placement: Placement) -> bytes:
    """Return a position as 32 bytes.

    Raises:
        RecordError: not all 40 pieces are present.
    """
    return pack_bits(placement, "psv", lambda kind, promotion, color: _CODES[kind] + promotion + color, _HAND_CODES)


def to_psv_move(move: int) -> int:
    """Return a move in YaneuraOu's encoding."""
    piece_type = dropped_type(move)
    if piece_type is not None:
        return target_of(move) | piece_type << 7 | DROP_BIT
    source = source_of(move)
    assert source is not None
    return target_of(move) | source << 7 | (PROMOTION_BIT if promotes(move) else 0)


def from_psv_move(move: int) -> int:
    """Return a move from YaneuraOu's encoding."""
    target, source = move & 127, move >> 7 & 127
    return drop(source, target) if move & DROP_BIT else board_move(source, target, bool(move & PROMOTION_BIT))

"""psv files, YaneuraOu's training positions of 40 bytes (PackedSfenValue).

A record is the board in 32 bytes, the evaluation in centipawns for the side to move, the move, the ply, the game's
result for the side to move (1, 0, -1) and a spare byte. Reading whole files: engine.datasets.shogi_rows.
"""

from __future__ import annotations

import numpy as np

from engine.color import BLACK, WHITE
from engine.games.shogi.hcpe import BITS, CODES
from engine.games.shogi.moves import board_move, drop, dropped_type, promotes, source_of, target_of
from engine.games.shogi.pieces import GOLD, HAND_TYPES, KING, KNIGHT, SILVER, can_promote, color_of, type_of, unpromoted
from engine.games.shogi.placement import Placement
from engine.games.shogi.records import RecordError

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


def pack_psv(placement: Placement) -> bytes:
    """Return a position as 32 bytes.

    Raises:
        RecordError: not all 40 pieces are there: the form holds no others.
    """
    kings = [placement.king_square(color) for color in (BLACK, WHITE)]
    if None in kings:
        raise RecordError("a position without two kings: expected one that psv can hold")
    parts = ["1" if placement.side == WHITE else "0", *(f"{king:07b}"[::-1] for king in kings)]
    for code in placement.board:
        piece_type = type_of(code) if code else KING
        if not code:
            parts.append("0")
        elif piece_type != KING:
            kind = unpromoted(piece_type)
            promotion = ("1" if piece_type != kind else "0") if can_promote(kind) else ""
            parts.append(_CODES[kind] + promotion + ("1" if color_of(code) == WHITE else "0"))
    for color, hand in zip((BLACK, WHITE), placement.hands, strict=True):
        for piece_type, count in zip(HAND_TYPES, hand, strict=True):
            flag = "" if piece_type == GOLD else "0"
            parts += [_CODES[piece_type][1:] + flag + ("1" if color == WHITE else "0")] * count
    bits = "".join(parts)
    if len(bits) != BITS:
        raise RecordError("a position without all 40 pieces: expected one that psv can hold")
    return int(bits[::-1], 2).to_bytes(BITS // 8, "little")


def to_psv_move(move: int) -> int:
    """Return a move as YaneuraOu writes it."""
    piece_type = dropped_type(move)
    if piece_type is not None:
        return target_of(move) | piece_type << 7 | DROP_BIT
    source = source_of(move)
    assert source is not None
    return target_of(move) | source << 7 | (PROMOTION_BIT if promotes(move) else 0)


def from_psv_move(move: int) -> int:
    """Return a move of YaneuraOu's as ours."""
    target, source = move & 127, move >> 7 & 127
    return drop(source, target) if move & DROP_BIT else board_move(source, target, bool(move & PROMOTION_BIT))

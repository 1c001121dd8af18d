"""hcpe files, dlshogi's training positions of 38 bytes, and the packed board (hcp) in them.

A record is the board in 32 bytes, the evaluation in centipawns for the side to move, the move played, the game's result
and a spare byte. Positions without an evaluation are not written. The packed board is Apery's, lowest bits first: the
side to move, both kings' squares in 7 bits each, a Huffman code for every other square, then one for every piece in
hand. All 40 pieces give 256 bits. (cshogi packs the same, but damaged data end its process.)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from yomi.engine.color import BLACK, DRAW, WHITE
from yomi.engine.shogi.pieces import (
    BISHOP,
    GOLD,
    HAND_INDEX,
    HAND_TYPES,
    KING,
    KNIGHT,
    LANCE,
    PAWN,
    PROMOTION,
    ROOK,
    SILVER,
    can_promote,
    code_of,
    color_of,
    type_of,
    unpromoted,
)
from yomi.engine.shogi.placement import Placement
from yomi.engine.shogi.records.record import GameRecord, RecordError
from yomi.engine.shogi.sfen import SfenError, check

# yomi marks games in the last byte, which is 0 in files of other programs: see `yomi.engine.shogi.datasets.rows`.
HCPE_DTYPE = np.dtype([("hcp", np.uint8, (32,)), ("score", "<i2"), ("move", "<u2"), ("result", "u1"), ("mark", "u1")])
BITS = 256
MAX_SCORE = 0x7FFF
RESULTS = {DRAW: 0, BLACK: 1, WHITE: 2}

# Bits of each kind of piece on the board in reading order; an empty square is 0. The color follows, then promotion
# (except for gold).
CODES = {PAWN: "10", LANCE: "1100", KNIGHT: "1110", SILVER: "1101", GOLD: "11110", BISHOP: "111110", ROOK: "111111"}

# Bits of each kind of piece in hand, one fewer than on the board. The color follows.
HAND_CODES = {
    PAWN: "00",
    LANCE: "1000",
    KNIGHT: "1100",
    SILVER: "1010",
    GOLD: "1110",
    BISHOP: "111110",
    ROOK: "111111",
}


@dataclass(frozen=True, slots=True)
class TrainingPosition:
    """A position of a game, and the game's result."""

    placement: Placement
    score: int  # centipawns for the side to move
    move: int
    winner: int  # BLACK, WHITE or DRAW


def pack(placement: Placement) -> bytes:
    """Return a position as 32 bytes.

    Raises:
        RecordError: not all 40 pieces are present.
    """
    return pack_bits(placement, "hcp", lambda kind, promotion, color: CODES[kind] + color + promotion, HAND_CODES)


def pack_bits(
    placement: Placement, form: str, board_code: Callable[[int, str, str], str], hand_codes: Mapping[int, str]
) -> bytes:
    """Return a position as 32 bytes: the side to move, both kings' squares, all other squares, both hands.

    Args:
        placement: the position.
        form: name of the format, for errors.
        board_code: returns the bits of a piece on the board from its kind, promotion bit (empty for gold) and color
            bit.
        hand_codes: bits of a piece in hand by kind, before the color bit.

    Raises:
        RecordError: not all 40 pieces are present.
    """
    kings = [placement.king_square(color) for color in (BLACK, WHITE)]
    if None in kings:
        raise RecordError(f"a position without two kings found, expected all 40 pieces: {form} holds no others")
    parts = ["1" if placement.side == WHITE else "0", *(f"{king:07b}"[::-1] for king in kings)]
    for code in placement.board:
        piece_type = type_of(code) if code else KING
        if not code:
            parts.append("0")
        elif piece_type != KING:
            kind = unpromoted(piece_type)
            promotion = ("1" if piece_type != kind else "0") if can_promote(kind) else ""
            parts.append(board_code(kind, promotion, "1" if color_of(code) == WHITE else "0"))
    for color, hand in zip("01", placement.hands, strict=True):
        for piece_type, count in zip(HAND_TYPES, hand, strict=True):
            parts += [hand_codes[piece_type] + color] * count
    bits = "".join(parts)
    if len(bits) != BITS:
        raise RecordError(
            f"a position without all 40 pieces found, such as that of a handicap game: {form} holds no others"
        )
    return int(bits[::-1], 2).to_bytes(BITS // 8, "little")


class _Bits:
    def __init__(self, data: bytes) -> None:
        self._value = int.from_bytes(data, "little")
        self.left = BITS

    def take(self, count: int) -> int:
        """Return a number of `count` bits, lowest bit first."""
        if self.left < count:
            raise RecordError("a packed board that goes on behind its end")
        value = self._value & (1 << count) - 1
        self._value >>= count
        self.left -= count
        return value

    def piece(self, codes: dict[int, str], begin: str) -> tuple[int, int]:
        """Return color and type of the next piece. `begin` contains the bits of its code that have been read."""
        kinds = {code: piece_type for piece_type, code in codes.items()}
        code = begin
        while code not in kinds:
            if len(code) == 6:
                raise RecordError(f"a packed board with the code {code}, which is no piece's")
            code += str(self.take(1))
        return (WHITE if self.take(1) else BLACK), kinds[code]


def unpack(data: bytes) -> Placement:
    """Read a position of 32 bytes, which contain no move number.

    Raises:
        RecordError: not a position, or an impossible one.
    """
    bits = _Bits(data)
    side = WHITE if bits.take(1) else BLACK
    kings = {bits.take(7): code_of(KING, BLACK)}
    kings[bits.take(7)] = code_of(KING, WHITE)
    if len(kings) != 2 or max(kings) > 80:
        raise RecordError("a packed board without two kings on it")
    board, hands = [0] * 81, ([0] * 7, [0] * 7)
    for square in range(81):
        if square in kings:
            board[square] = kings[square]
        elif bits.take(1):
            color, piece_type = bits.piece(CODES, "1")
            is_promoted = can_promote(piece_type) and bits.take(1)
            board[square] = code_of(piece_type + PROMOTION if is_promoted else piece_type, color)
    while bits.left:
        color, piece_type = bits.piece(HAND_CODES, "")
        hands[color - 1][HAND_INDEX[piece_type]] += 1
    placement = Placement(tuple(board), (tuple(hands[0]), tuple(hands[1])), side)
    try:
        check(placement)
    except SfenError as error:
        raise RecordError(str(error)) from None
    return placement


def write_hcpe(records: Iterable[GameRecord]) -> bytes:
    """Return the evaluated positions of finished games.

    Raises:
        RecordError: the format cannot hold a game, such as a handicap game.
    """
    rows = []
    for record in records:
        pack(record.initial)
        if record.winner is None:
            continue
        for recorded, placement in zip(record.moves, record.placements(), strict=False):
            if recorded.score is not None:
                score = min(max(recorded.score, -MAX_SCORE), MAX_SCORE)
                packed = np.frombuffer(pack(placement), np.uint8)
                rows.append((packed, score, recorded.move, RESULTS[record.winner], 0))
    return np.array(rows, HCPE_DTYPE).tobytes()


def read_hcpe(data: bytes) -> list[TrainingPosition]:
    """Read the positions of an hcpe file.

    Raises:
        RecordError: incomplete records, or an impossible position, move or result.
    """
    if len(data) % HCPE_DTYPE.itemsize:
        raise RecordError(f"{len(data)} bytes: expected whole records of {HCPE_DTYPE.itemsize} bytes (hcpe)")
    found = []
    winners = {code: winner for winner, code in RESULTS.items()}
    for number, row in enumerate(np.frombuffer(data, HCPE_DTYPE), 1):
        score, move, result = (int(row[name]) for name in ("score", "move", "result"))
        try:
            placement = unpack(row["hcp"].tobytes())
        except RecordError as error:
            raise RecordError(f"record {number}: {error}") from None
        if result not in winners:
            raise RecordError(f"record {number} has the result {result}: expected 0, 1 or 2")
        if why := placement.why_not(move):
            raise RecordError(f"record {number}, its move: {why}")
        found.append(TrainingPosition(placement, score, move, winners[result]))
    return found

"""Packed training data: hcpe and psv (positions), hcpe3 (games with the visits of their searches).

Whole files of positions are read by yomi.engine.shogi.datasets.rows.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from yomi.engine.color import BLACK, DRAW, WHITE, opponent
from yomi.engine.search.types import Counts
from yomi.engine.shogi.notation import illegal_action
from yomi.engine.shogi.placement import (
    Placement,
    board_move,
    can_promote,
    color_of,
    drop,
    dropped_type,
    promotes,
    source_of,
    target_of,
    type_of,
    unpromoted,
)
from yomi.engine.shogi.records.record import GameRecord, ImpossibleMoveError, RecordedMove, RecordError, checked
from yomi.errors import reraised
from yomi.native.shogi.pieces import BISHOP, GOLD, HAND_TYPES, KING, KNIGHT, LANCE, PAWN, ROOK, SILVER

# hcpe: dlshogi's positions. The score is in centipawns for the side to move. hcp is Apery's packed board, lowest bits
# first: side to move, both kings' squares in 7 bits each, a Huffman code for every other square, then one for every
# piece in hand. All 40 pieces give 256 bits. cshogi packs the same, but damaged data end its process.
# yomi marks games in the last byte, which is 0 in files of other programs: see `yomi.engine.shogi.datasets.rows`.
HCPE_DTYPE = np.dtype([("hcp", np.uint8, (32,)), ("score", "<i2"), ("move", "<u2"), ("result", "u1"), ("mark", "u1")])
BITS = 256
MAX_SCORE = 0x7FFF
RESULTS = {DRAW: 0, BLACK: 1, WHITE: 2}

# Bits of each kind of piece on the board in reading order; an empty square is 0. The color follows, then promotion
# (except for gold).
CODES = {PAWN: "10", LANCE: "1100", KNIGHT: "1110", SILVER: "1101", GOLD: "11110", BISHOP: "111110", ROOK: "111111"}

# Bits of each kind of piece in hand, one fewer than on the board. The color follows.
HAND_CODES = {PAWN: "00", LANCE: "1000", KNIGHT: "1100", SILVER: "1010", GOLD: "1110", BISHOP: "111110", ROOK: "111111"}


def pack(placement: Placement) -> bytes:
    return pack_bits(placement, "hcp", lambda kind, promotion, color: CODES[kind] + color + promotion, HAND_CODES)


def pack_bits(
    placement: Placement, form: str, board_code: Callable[[int, str, str], str], hand_codes: Mapping[int, str]
) -> bytes:
    """Return a position as 32 bytes: side, kings' squares, other squares, hands. Raises RecordError without all 40
    pieces.

    `board_code` returns the bits of a piece on the board from its kind, promotion bit (empty for gold) and color bit.
    `hand_codes` are the bits of a piece in hand before its color bit. `form` names the format in errors.
    """
    kings = [placement.king_square(color) for color in (BLACK, WHITE)]
    if None in kings:
        raise RecordError(f"a position without two kings found, expected all 40 pieces: {form} holds no others")
    # Numbers are written lowest bit first, hence the reversed strings.
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


def unpack(data: bytes) -> Placement:
    """Read a position from 32 bytes, which contain no move number. Raises RecordError if it is impossible."""
    return checked(unpack_bits(data))


def unpack_bits(data: bytes, *, is_psv: bool = False) -> Placement:
    """Read a board packed as in hcpe or psv, even if it is impossible. Raises RecordError."""
    from yomi.native.datasets.packed import HCP, PSV, unpack_board  # imports numba, which most records do not need

    board, hands = np.zeros(81, np.uint8), np.zeros((2, 7), np.uint8)
    side = int(unpack_board(np.frombuffer(data, np.uint8).copy(), PSV if is_psv else HCP, board, hands))
    if not side:
        raise RecordError("a packed board that cannot be read found, expected all 40 pieces in 256 bits")
    black, white = hands.tolist()
    return Placement(tuple(board.tolist()), (tuple(black), tuple(white)), side)


def pack_game(rows: Iterable[tuple[bytes, int, int]], winner: int, mark: int = 0) -> bytes:
    """Return the rows of a finished game as hcpe. A row is (packed board, centipawns for the side to move, move)."""
    found = [
        (np.frombuffer(hcp, np.uint8), min(max(score, -MAX_SCORE), MAX_SCORE), move, RESULTS[winner], mark)
        for hcp, score, move in rows
    ]
    return np.array(found, HCPE_DTYPE).tobytes()


def write_hcpe(records: Iterable[GameRecord]) -> bytes:
    """Return the evaluated positions of finished games as hcpe. Raises RecordError for handicap games."""
    parts = []
    for record in records:
        pack(record.initial)
        if record.winner is not None:
            scored = [
                (pack(placement), recorded.score, recorded.move)
                for recorded, placement in zip(record.moves, record.placements(), strict=False)
                if recorded.score is not None
            ]
            parts.append(pack_game(scored, record.winner))
    return b"".join(parts)


def read_hcpe(data: bytes) -> list[GameRecord]:
    """Return the games of an hcpe file. Consecutive rows belong to one game if each move leads to the next position.

    hcpe contains no endings except the winner: wins count as resignations. Raises RecordError for incomplete records,
    or impossible positions, moves or results.
    """
    if len(data) % HCPE_DTYPE.itemsize:
        raise RecordError(f"{len(data)} bytes: expected whole records of {HCPE_DTYPE.itemsize} bytes (hcpe)")
    games: list[GameRecord] = []
    following: Placement | None = None
    for number, row in enumerate(np.frombuffer(data, HCPE_DTYPE), 1):
        score, move, result = (int(row[name]) for name in ("score", "move", "result"))
        with reraised(RecordError, RecordError, f"record {number}: "):
            placement = unpack(row["hcp"].tobytes())
        if result not in RESULTS.values():
            raise RecordError(f"record {number} has the result {result}: expected 0, 1 or 2")
        if why := placement.why_not(move):
            raise RecordError(f"record {number}, its move: {why}")
        if placement != following:
            games.append(GameRecord(placement))
        games[-1].moves.append(RecordedMove(move, score=score))
        games[-1].ending = "HIKIWAKE" if result == RESULTS[DRAW] else "TORYO"
        # hcpe has no move numbers: all positions have number 1.
        following = replace(placement.after(move), number=1)
    return games


# -- hcpe3 -------------------------------------------------------------------------------------------------------------

# A game is a HCPE3_DTYPE, then for each move a MOVE_DTYPE and its searched moves (COUNT_DTYPE). `opponent` 0: none.
# Scores are centipawns for the side that moves. dlshogi learns only from positions with searched moves, and uses the
# shares of the visits (cppshogi.h, HuffmanCodedPosAndEval3; python_module.cpp, __load_hcpe3).
HCPE3_DTYPE = np.dtype([("hcp", np.uint8, (32,)), ("moves", "<u2"), ("result", "u1"), ("opponent", "u1")])
MOVE_DTYPE = np.dtype([("move", "<u2"), ("score", "<i2"), ("counts", "<u2")])
COUNT_DTYPE = np.dtype([("move", "<u2"), ("visits", "<u2")])
MAX_VISITS = 0xFFFF
WINNER_BITS = 3
ENDING_BITS = {"SENNICHITE": 4, "KACHI": 8, "MAX_MOVES": 16}  # bits of the result beside the winner's, by CSA's endings


def write_hcpe3(records: Iterable[GameRecord]) -> bytes:
    """Return the games with a known result as hcpe3. Raises RecordError for handicap games."""
    return b"".join(_format(record) for record in records if record.winner is not None)


def _format(record: GameRecord) -> bytes:
    assert record.winner is not None
    result = RESULTS[record.winner] | ENDING_BITS.get(record.ending, 0)
    hcp = np.frombuffer(pack(record.initial), np.uint8)
    parts = [np.array((hcp, len(record.moves), result, 0), HCPE3_DTYPE).tobytes()]
    for recorded in record.moves:
        counts = _bounded(recorded.counts)
        score = min(max(recorded.score or 0, -MAX_SCORE), MAX_SCORE)
        parts.append(np.array((recorded.move, score, len(counts)), MOVE_DTYPE).tobytes())
        parts.append(np.array(counts, COUNT_DTYPE).tobytes())
    return b"".join(parts)


def _bounded(counts: Counts) -> list[tuple[int, int]]:
    most = max((visits for _, visits in counts), default=0)
    scale = min(1.0, MAX_VISITS / max(most, 1))
    found = [(move, round(scale * visits)) for move, visits in counts]
    return [(move, visits) for move, visits in found if visits]


def read_hcpe3(data: bytes) -> list[GameRecord]:
    """Read an hcpe3 file. An evaluation of 0 without visits counts as missing. Raises RecordError."""
    games: list[GameRecord] = []
    offset = 0
    while offset < len(data):
        with reraised(RecordError, RecordError, f"game {len(games) + 1}: "):
            record, offset = _read(data, offset)
        games.append(record)
    return games


def _read(data: bytes, offset: int) -> tuple[GameRecord, int]:
    """Return the game that begins at an offset, and the offset after it."""
    head = _take(data, offset, HCPE3_DTYPE, 1)[0]
    offset += HCPE3_DTYPE.itemsize
    record = GameRecord(unpack(head["hcp"].tobytes()))
    placement = record.initial
    for number in range(1, int(head["moves"]) + 1):
        row = _take(data, offset, MOVE_DTYPE, 1)[0]
        offset += MOVE_DTYPE.itemsize
        counts = _take(data, offset, COUNT_DTYPE, int(row["counts"]))
        offset += counts.nbytes
        for move in counts["move"].tolist():
            if why := placement.why_not(move):
                raise ImpossibleMoveError(f"move {number}, searched {move}: {why}")
        # The searched moves belong to the position before this move.
        placement = record.add(placement, int(row["move"]))
        recorded = record.moves[-1]
        recorded.counts = tuple(counts.tolist())
        recorded.score = int(row["score"]) if len(counts) or row["score"] else None
    record.ending = _ending(record, placement.side, int(head["result"]))
    return record, offset


def _take(data: bytes, offset: int, dtype: np.dtype[np.void], count: int) -> npt.NDArray[np.void]:
    if offset + count * dtype.itemsize > len(data):
        raise RecordError(f"{len(data) - offset} bytes at the end: expected whole games (hcpe3)")
    return np.frombuffer(data, dtype, count, offset)


def _ending(record: GameRecord, side: int, result: int) -> str:
    # A foul is the only ending whose winner is the side to move.
    winners = {code: winner for winner, code in RESULTS.items()}
    names = [name for name, bit in ENDING_BITS.items() if result & bit]
    winner = winners.get(result & WINNER_BITS)
    if winner is None or len(names) > 1 or result & ~(WINNER_BITS | sum(ENDING_BITS.values())):
        raise RecordError(f"the result {result}: expected 0, 1 or 2, and 4, 8 or 16 for how the game ended")
    if winner == DRAW:
        wanted = names[0] if names else "HIKIWAKE"
    else:
        wanted = names[0] if names else illegal_action(opponent(winner)) if winner == side else "TORYO"
    record.ending = wanted
    if record.winner != winner:
        raise RecordError(f"the result {result}: expected one that an ending with {wanted} can have")
    return wanted


# -- psv ---------------------------------------------------------------------------------------------------------------

# YaneuraOu's PackedSfenValue. Score and result (1, 0, -1) are those of the side to move. yomi marks games in `spare`.
PSV_DTYPE = np.dtype(
    [("sfen", np.uint8, (32,)), ("score", "<i2"), ("move", "<u2"), ("ply", "<u2"), ("result", "i1"), ("spare", "u1")]
)
DROP_BIT, PROMOTION_BIT = 1 << 14, 1 << 15
_CODES = {**CODES, KNIGHT: CODES[SILVER], SILVER: CODES[KNIGHT]}
# In hand, the first bit is missing and the promotion bit is 0.
_HAND_CODES = {kind: code[1:] + ("" if kind == GOLD else "0") for kind, code in _CODES.items()}


def pack_psv(placement: Placement) -> bytes:
    return pack_bits(placement, "psv", lambda kind, promotion, color: _CODES[kind] + promotion + color, _HAND_CODES)


def to_psv_move(move: int) -> int:
    piece_type = dropped_type(move)
    if piece_type is not None:
        return target_of(move) | piece_type << 7 | DROP_BIT
    source = source_of(move)
    assert source is not None
    return target_of(move) | source << 7 | (PROMOTION_BIT if promotes(move) else 0)


def from_psv_move(move: int) -> int:
    target, source = move & 127, move >> 7 & 127
    return drop(source, target) if move & DROP_BIT else board_move(source, target, bool(move & PROMOTION_BIT))

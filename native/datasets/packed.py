"""Packed shogi boards of 256 bits: Apery's HCP (in hcpe files) and YaneuraOu's PackedSfen (in psv files).

Both hold the side to move, the squares of both kings, and a Huffman code for each other square and each piece in hand,
lowest bits first. PackedSfen swaps the codes of knight and silver, and puts promotion before color.
`yomi.engine.shogi.records.hcpe` is a readable version of HCP.
"""

import numpy as np

from yomi.native.bits import U
from yomi.native.jit import kernel

HCP, PSV = 0, 1
KINDS = 7

# By format and kind (pawn, lance, knight, silver, bishop, rook, gold): code, lowest bit first, and length.
CODES = np.array(
    [
        [0b01, 0b0011, 0b0111, 0b1011, 0b011111, 0b111111, 0b01111],
        [0b01, 0b0011, 0b1011, 0b0111, 0b011111, 0b111111, 0b01111],
    ],
    np.int64,
)
LENGTHS = np.array([2, 4, 4, 4, 6, 6, 5], np.int64)
HAND_CODES = np.array(
    [
        [0b00, 0b0001, 0b0011, 0b0101, 0b011111, 0b111111, 0b0111],
        [0b0, 0b001, 0b101, 0b011, 0b01111, 0b11111, 0b0111],
    ],
    np.int64,
)
HAND_LENGTHS = np.array([[2, 4, 4, 4, 6, 6, 4], [1, 3, 3, 3, 5, 5, 4]], np.int64)
# Index in a hand by kind: in a hand gold comes before bishop and rook.
HAND_PLACES = np.array([0, 1, 2, 3, 5, 6, 4], np.int64)
GOLD_KIND = 6


@kernel
def _bit(data, at):  # type: ignore[no-untyped-def]
    return (np.int64(data[U(at) >> U(3)]) >> (at & 7)) & 1


@kernel
def _kind(data, at, form, code, length, in_hand):  # type: ignore[no-untyped-def]
    """Return (kind, next bit) of the piece whose code begins with `code` and continues at bit `at`; kind -1: none."""
    while True:
        for kind in range(KINDS):
            wanted = HAND_CODES[form, kind] if in_hand else CODES[form, kind]
            bits = HAND_LENGTHS[form, kind] if in_hand else LENGTHS[kind]
            if bits == length and wanted == code:
                return kind, at
        if length >= 6 or at >= 256:
            return -1, at
        code |= _bit(data, at) << length
        length += 1
        at += 1


@kernel
def unpack_board(data, form, board, hands):  # type: ignore[no-untyped-def]
    """Read a packed board.

    Args:
        data: uint8[32].
        form: HCP or PSV.
        board: uint8[81], written: piece codes.
        hands: uint8[2, 7], written: counts.

    Returns:
        The side to move, BLACK or WHITE; 0 if the bits are not a board. Whether the position is possible is not tested.
    """
    for square in range(81):
        board[square] = 0
    for color in range(2):
        for place in range(7):
            hands[color, place] = 0
    at = np.int64(1)
    for color in range(2):
        square = 0
        for i in range(7):
            square |= _bit(data, at + i) << i
        at += 7
        if square > 80 or board[U(square)] != 0:
            return 0
        board[U(square)] = 8 + 16 * color
    for square in range(81):
        if board[U(square)] != 0:
            continue
        if at >= 256:
            return 0
        first = _bit(data, at)
        at += 1
        if first == 0:
            continue
        kind, at = _kind(data, at, form, np.int64(1), np.int64(1), False)
        if kind < 0 or at + (1 if kind == GOLD_KIND else 2) > 256:  # gold does not promote
            return 0
        promoted = np.int64(0)
        if form == PSV and kind != GOLD_KIND:
            promoted = _bit(data, at)
            at += 1
        color = _bit(data, at)
        at += 1
        if form == HCP and kind != GOLD_KIND:
            promoted = _bit(data, at)
            at += 1
        board[U(square)] = kind + 1 + 8 * promoted + 16 * color
    while at < 256:
        kind, at = _kind(data, at, form, np.int64(0), np.int64(0), True)
        if form == PSV and kind != GOLD_KIND:
            at += 1
        if kind < 0 or at >= 256:
            return 0
        hands[U(_bit(data, at)), U(HAND_PLACES[kind])] += 1
        at += 1
    return 2 if _bit(data, 0) else 1

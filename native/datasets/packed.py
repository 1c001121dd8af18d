"""Shogi positions from packed boards of 256 bits: Apery's HCP (hcpe files) and YaneuraOu's PackedSfen (psv files).

`yomi.engine.shogi.records.packed` is a readable version of HCP.
"""

import numpy as np

from yomi.native.bits import U
from yomi.native.jit import kernel
from yomi.native.shogi.movegen import is_legal
from yomi.native.shogi.pieces import WHITE_PIECE
from yomi.native.shogi.planes import policy_index
from yomi.native.shogi.position import WHITE, set_position
from yomi.native.shogi.squares import SQUARES

# Both formats contain the side to move, the squares of both kings, and a Huffman code for each other square and each
# hand piece, lowest bits first. PackedSfen swaps the codes of knight and silver, and has promotion before color.

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
    """Read a packed board. Whether the position is possible is not tested.

    Args:
        data: uint8[32].
        form: HCP or PSV.
        board: uint8[81], written: piece codes.
        hands: uint8[2, 7], written: counts.

    Returns:
        The side to move, BLACK or WHITE; 0 if the bits are not a board.
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


# Results for a row: valid; the bits are not a board; the move generator does not produce the move.
FAULTLESS, NO_BOARD, NOT_GENERATED = 0, 1, 2


@kernel
def set_positions(packed, forms, moves, positions, history, board, hands, labels, faults):  # type: ignore[no-untyped-def]
    """Set up the positions of rows and find the labels of their moves.

    Args:
        packed: uint8[n, 32], packed boards.
        forms: uint8[n], their formats: yomi.native.datasets.packed.HCP or PSV.
        moves: uint16[n], 0 for none.
        positions: POSITION_DTYPE[n]: the form is given, the rest written.
        history: uint64[MAX_HISTORY]; working memory.
        board: uint8[81]; working memory.
        hands: uint8[2, 7]; working memory.
        labels: uint16[n], written for rows with a move.
        faults: uint8[n], written: FAULTLESS, NO_BOARD or NOT_GENERATED.
    """
    for i in range(U(positions.size)):
        faults[i] = FAULTLESS
        pos = positions[i]
        side = unpack_board(packed[i], np.int64(forms[i]), board, hands)
        if side == 0:
            faults[i] = NO_BOARD
            continue
        set_position(pos, history, board, hands, side, 0)
        if moves[i] != 0:
            if not is_legal(pos, history, np.int64(moves[i])):
                faults[i] = NOT_GENERATED
            labels[i] = policy_index(pos, np.int64(moves[i]), 0)


@kernel
def write_boards(positions, boards, hands):  # type: ignore[no-untyped-def]
    """Write boards and hands from the mover's side.

    Args:
        positions: POSITION_DTYPE[n].
        boards: uint8[n, 81], written: 1 to 14 for the mover's pieces, 17 to 30 for the opponent's.
        hands: uint8[n, 14], written: the mover's counts, then the opponent's.
    """
    # For White the board is rotated and colors are swapped.
    for i in range(U(positions.size)):
        pos = positions[i]
        us = U(pos.side_to_move) - U(1)
        for square in range(U(SQUARES)):
            code = U(pos.board[square])
            if pos.side_to_move == WHITE:
                code ^= U(WHITE_PIECE) if code != U(0) else U(0)
                boards[i, U(SQUARES - 1) - square] = code
            else:
                boards[i, square] = code
        for side in range(U(2)):
            for k in range(U(7)):
                hands[i, side * U(7) + k] = pos.hand[us ^ side, k]

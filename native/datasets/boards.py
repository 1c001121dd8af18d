"""Shogi positions from packed boards, and boards from the mover's side."""

import numpy as np

from yomi.native.bits import U
from yomi.native.datasets.packed import unpack_board
from yomi.native.jit import kernel
from yomi.native.shogi.movegen import is_legal
from yomi.native.shogi.planes import policy_index
from yomi.native.shogi.position import WHITE, set_position
from yomi.native.shogi.tables import SQUARES, WHITE_PIECE

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

    For White the board is rotated and colors are swapped: the mover has pieces 1 to 14, the opponent 17 to 30.

    Args:
        positions: POSITION_DTYPE[n].
        boards: uint8[n, 81], written.
        hands: uint8[n, 14], written: the mover's counts, then the opponent's.
    """
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

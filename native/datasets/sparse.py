"""Inputs of sparse networks for the boards of a data set (yomi.native.shogi.sparse)."""

from yomi.native.bits import U
from yomi.native.jit import kernel
from yomi.native.shogi.planes import policy_index
from yomi.native.shogi.position import BLACK, set_position
from yomi.native.shogi.sparse import PARTS, find_move_rows, find_rows, find_threats
from yomi.native.shogi.waivers import searched_moves


@kernel
def encode_boards(  # type: ignore[no-untyped-def]
    boards, hands, pos, history, scratch, moves, active, active_starts, rows, labels, starts
):
    """Write the feature rows of positions, and of the moves that a search tries there.

    Args:
        boards: uint8[n, 81] piece codes from the mover's side (yomi.native.datasets.boards.write_boards).
        hands: uint8[n, 2, 7], the mover's counts, then the opponent's.
        pos: a position record with dlshogi's form; working memory.
        history: uint64[MAX_HISTORY]; working memory.
        scratch: of yomi.native.shogi.sparse; working memory.
        moves: uint16[MAX_MOVES]; working memory.
        active: int32[n * MAX_ACTIVE], written: the rows of all positions, joined.
        active_starts: int64[n + 1], written: the first row of each position.
        rows: int32[n * MAX_MOVES, PARTS], written: the rows of all moves, joined.
        labels: int32[n * MAX_MOVES], written: dlshogi's label of each move.
        starts: int64[n + 1], written: the first move of each position.
    """
    known = U(0)
    move = U(0)
    for i in range(U(boards.shape[0])):
        active_starts[i] = known
        starts[i] = move
        set_position(pos, history, boards[i], hands[i], BLACK, 0)
        for k in range(U(find_rows(pos, scratch))):
            active[known] = scratch.rows[k]
            known += U(1)
        find_threats(pos, scratch)
        for k in range(U(searched_moves(pos, history, moves))):
            find_move_rows(pos, scratch, moves[k], U(0))
            for part in range(U(PARTS)):
                rows[move, part] = scratch.move_rows[part]
            labels[move] = policy_index(pos, moves[k], 0)
            move += U(1)
    active_starts[U(boards.shape[0])] = known
    starts[U(boards.shape[0])] = move

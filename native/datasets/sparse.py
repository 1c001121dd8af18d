"""Kernels for training sparse networks: encode a data set's boards, compute move logits, and add up gradients."""

from yomi.native.bits import U
from yomi.native.jit import kernel
from yomi.native.shogi.planes import policy_index
from yomi.native.shogi.position import BLACK, set_position
from yomi.native.shogi.waivers import searched_moves
from yomi.native.sparse.shogi import PARTS, find_move_rows, find_rows, find_threats

# Each move selects a few rows of the policy table. Its logit is the dot product of the position's units with the sum of
# these rows, plus the sum of their biases.


@kernel
def encode_boards(  # type: ignore[no-untyped-def]
    boards, hands, pos, history, scratch, moves, active, active_starts, rows, labels, starts
):
    """Write the feature rows of positions, and of the moves that a search tries there.

    Args:
        boards: uint8[n, 81] piece codes from the mover's side (yomi.native.datasets.packed.write_boards).
        hands: uint8[n, 2, 7], the mover's counts, then the opponent's.
        pos: a position record with dlshogi's form; working memory.
        history: uint64[MAX_HISTORY]; working memory.
        scratch: of yomi.native.sparse.shogi; working memory.
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


# With PyTorch's operations this took three quarters of a step: they write sums and units of all moves to memory three
# times; here one move's sums and units stay in the cache.
LANES = 16  # Partial sums of a product. P is a multiple of it.


@kernel
def move_logits(units, table, bias, rows, starts, first, last, sums, logits):  # type: ignore[no-untyped-def]
    """Write the logits of the moves of positions `first` to `last`.

    Args:
        units: float32[B, P].
        table: float32[R, P].
        bias: float32[R].
        rows: int32[M, parts], rows of the table for each move.
        starts: int64[B + 1], first move of each position.
        first: first position.
        last: end of the positions.
        sums: float32[P], working memory.
        logits: float32[M], written for these positions.
    """
    width = U(units.shape[1])
    for i in range(U(first), U(last)):
        unit = units[i]
        for m in range(U(starts[i]), U(starts[i + U(1)])):
            row = table[U(rows[m, U(0)])]
            logit = bias[U(rows[m, U(0)])]
            for p in range(width):
                sums[p] = row[p]
            for k in range(U(1), U(rows.shape[1])):
                row = table[U(rows[m, k])]
                logit += bias[U(rows[m, k])]
                for p in range(width):
                    sums[p] += row[p]
            for p in range(width):
                sums[p] *= unit[p]
            # LLVM vectorizes float sums only in the program's order, hence the lanes.
            lanes = sums[:LANES]
            for begin in range(U(LANES), width, U(LANES)):
                part = sums[begin : begin + U(LANES)]
                for j in range(U(LANES)):
                    lanes[j] += part[j]
            for j in range(U(LANES)):
                logit += lanes[j]
            logits[m] = logit


@kernel
def add_move_gradients(  # type: ignore[no-untyped-def]
    units, table, rows, starts, slopes, first, last, of_units, of_table, of_bias
):
    """Add the gradients of the moves of positions `first` to `last` to `of_units`, `of_table` and `of_bias`.

    `slopes` (float32[M]) are the gradients of the logits. All other arguments are as in `move_logits`.
    """
    for i in range(U(first), U(last)):
        unit, of_unit = units[i], of_units[i]
        for m in range(U(starts[i]), U(starts[i + U(1)])):
            # logit = unit . (sum of rows) + sum of biases: the slope goes to each factor.
            slope = slopes[m]
            for k in range(U(rows.shape[1])):
                number = U(rows[m, k])
                row, of_row = table[number], of_table[number]
                of_bias[number] += slope
                for p in range(U(unit.size)):
                    of_unit[p] += slope * row[p]
                    of_row[p] += slope * unit[p]

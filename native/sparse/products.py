"""Logits of legal moves as products of a position's units with sums of table rows, and their gradients."""

from yomi.native.bits import U
from yomi.native.jit import kernel

# With PyTorch's operations this took three quarters of a step: they write sums and units of all moves to memory three
# times; here those of one move stay in the cache.
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
    """Add the gradients of the moves of positions `first` to `last`; other arguments as of `move_logits`.

    Args:
        units: float32[B, P].
        table: float32[R, P].
        rows: int32[M, parts].
        starts: int64[B + 1].
        slopes: float32[M], gradients of the logits.
        first: first position.
        last: end of the positions.
        of_units: float32[B, P], added to.
        of_table: float32[R, P], added to.
        of_bias: float32[R], added to.
    """
    for i in range(U(first), U(last)):
        unit, of_unit = units[i], of_units[i]
        for m in range(U(starts[i]), U(starts[i + U(1)])):
            slope = slopes[m]
            for k in range(U(rows.shape[1])):
                number = U(rows[m, k])
                row, of_row = table[number], of_table[number]
                of_bias[number] += slope
                for p in range(U(unit.size)):
                    of_unit[p] += slope * row[p]
                    of_row[p] += slope * unit[p]

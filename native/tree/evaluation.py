"""Evaluates positions without a search: fills a batch from positions, and reads probabilities of their legal moves."""

import math

import numpy as np

from yomi.native.bits import U
from yomi.native.bound_kernels import ask, call_all
from yomi.native.jit import kernel
from yomi.native.tree.arrays import LEAD, VALUE


@kernel
def fill(  # type: ignore[no-untyped-def]
    board, rows, root, history, facts, moves, indices, positions, histories, ends, begin, count, batch
):
    """Write positions `begin` to `begin + count` into the first rows of a batch: as roots, with symmetry 0.

    Args:
        board: GameCalls.board of a bound Board.
        rows: GameCalls.rows of the board and the batch.
        root: uint8[bytes], the Board's root.
        history: uint64[H], the Board's.
        facts: FACTS_DTYPE[1], the Board's.
        moves: uint16[M], the Board's.
        indices: uint16[M], the Board's.
        positions: uint8[n, bytes], position records.
        histories: uint64[sum of lengths], the positions' histories one after the other.
        ends: int64[n + 1]: where each history begins, and the end of the last one.
        begin: first position.
        count: positions.
        batch: at least `count` rows.
    """
    for k in range(count):
        r = U(k)
        source = U(begin + k)
        for i in range(U(root.shape[0])):
            root[i] = positions[source, i]
        start = U(ends[source])
        for i in range(U(ends[source + U(1)]) - start):
            history[i] = histories[start + i]
        ask(board[U(1)], board[U(0)], 0, 0)  # replay no move
        ask(board[U(3)], board[U(0)], 1, 1)  # describe a root, with indices
        total = facts[0].moves
        batch.is_root[r] = 1
        batch.symmetry[r] = 0
        batch.keys[r] = facts[0].position_key
        batch.move_count[r] = total
        for i in range(U(total)):
            batch.moves[r, i] = moves[i]
            batch.plain_indices[r, i] = indices[i]
        # Writes row k in the forms that the evaluator reads.
        call_all(rows, k)


@kernel
def read(batch, count, begin, policy, values, ownership):  # type: ignore[no-untyped-def]
    """Read the evaluations of positions from `begin` on, from the first rows of an evaluated batch.

    Args:
        batch: the evaluated batch.
        count: number of rows.
        begin: position of the first row.
        policy: float32[n, P], zeros: receives the probabilities of legal moves, by policy index without symmetry.
        values: float32[n, 2], written: value in [-1, 1] and lead, for the side to move. A logit that is not finite
            makes the value NaN.
        ownership: float32[n, A], written, for the side to move; A is 0 if no ownership is wanted.
    """
    for k in range(count):
        r, target = U(k), U(begin + k)
        total = U(batch.move_count[r])
        best = np.float32(-np.inf)
        for i in range(total):
            best = max(best, batch.logits[r, U(batch.indices[r, i])])
        # Logits relative to the greatest one, so that exp cannot overflow.
        norm = np.float32(0.0)
        for i in range(total):
            weight = np.float32(math.exp(batch.logits[r, U(batch.indices[r, i])] - best))
            policy[target, U(batch.plain_indices[r, i])] = weight
            norm += weight
        for i in range(total):
            policy[target, U(batch.plain_indices[r, i])] /= norm
        # inf - inf and NaN - NaN are NaN, which equals nothing.
        is_number = total == U(0) or norm - norm == np.float32(0.0)
        values[target, U(0)] = batch.values[r, U(VALUE)] if is_number else np.float32(np.nan)
        values[target, U(1)] = batch.values[r, U(LEAD)]
        for i in range(U(ownership.shape[1])):
            ownership[target, i] = batch.ownership[r, i]


@kernel
def evaluate(  # type: ignore[no-untyped-def]
    board, rows, root, history, facts, moves, indices, positions, histories, ends, begin, end, batch, calls,
    policy, values, ownership,
):  # fmt: skip
    """Evaluate positions `begin` to `end` by calls on a batch; see `fill` and `read`."""
    size = batch.move_count.shape[0]
    while begin < end:
        count = min(size, end - begin)
        fill(board, rows, root, history, facts, moves, indices, positions, histories, ends, begin, count, batch)
        call_all(calls, count)
        read(batch, count, begin, policy, values, ownership)
        begin += count

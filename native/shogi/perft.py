"""perft: counts the leaves of the tree of legal moves, to test the move generator and its speed."""

from typing import Any

import numpy as np

from yomi.native.bits import U
from yomi.native.jit import kernel
from yomi.native.shogi.movegen import generate
from yomi.native.shogi.position import MAX_MOVES, POSITION_DTYPE, copy, play


@kernel
def _walk(positions, history, moves, depth):  # type: ignore[no-untyped-def]
    """Count the lines of `depth` moves from positions[depth]."""
    count = generate(positions[depth], moves[depth])
    if depth == U(1):
        return count
    total = U(0)
    for i in range(count):
        copy(positions[depth - U(1)], positions[depth])
        play(positions[depth - U(1)], history, moves[depth, i])
        total += _walk(positions, history, moves, depth - U(1))
    return total


def perft(pos: Any, history: Any, depth: int) -> int:
    """Return the number of lines of `depth` legal moves. The last moves are counted, not played."""
    if depth < 1:
        return 1
    positions = np.zeros(depth + 1, POSITION_DTYPE)
    positions[depth] = pos
    return int(_walk(positions, history, np.zeros((depth + 1, MAX_MOVES), np.uint16), U(depth)))

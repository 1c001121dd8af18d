"""Ownership by rollouts."""

import numpy as np

from yomi.native.bits import U
from yomi.native.go.board import BLACK, NO_POINT, WHITE, copy
from yomi.native.go.rollout import owner_of, uniform_rollout
from yomi.native.jit import kernel


@kernel
def rollout_ownership(root, scratch, rng, n, totals):  # type: ignore[no-untyped-def]
    """Play `n` uniform rollouts from `root`, and count the owners of points at their ends.

    Args:
        root: the position.
        scratch: a record to play on.
        rng: uint64[1], the generator's state, never zero.
        n: number of rollouts.
        totals: int32[area], row by row from the top: receives +1 per rollout for Black, -1 for White.
    """
    size = np.int64(root.size)
    stride = np.int64(root.stride)
    for k in range(n):
        copy(scratch, root)
        # The sides take turns in moving first: the result does not depend on whose turn it is.
        if k & 1 == 1:
            scratch.side_to_move = 3 - root.side_to_move
            scratch.simple_ko = NO_POINT
        uniform_rollout(scratch, rng)
        for y in range(size):
            for x in range(size):
                owner = owner_of(scratch, (y + 1) * stride + x + 1)
                if owner == BLACK:
                    totals[U(y * size + x)] += 1
                elif owner == WHITE:
                    totals[U(y * size + x)] -= 1

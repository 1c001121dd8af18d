"""Rollouts: games played to the end by a fast policy, and ownership by them."""

import numpy as np

from yomi.native.bits import U, random_below
from yomi.native.go.board import BLACK, BORDER, EMPTY, NO_POINT, WHITE, copy, is_eye, is_suicide, place_stone
from yomi.native.jit import inlined, kernel


@kernel
def uniform_move(pos, color, rng):  # type: ignore[no-untyped-def]
    """Return a random legal move of `color` that does not fill its own eye; 0 for none."""
    # Scans from a random start, as libego does: uniform up to the order of the list.
    count = U(pos.empty_count)
    if count == U(0):
        return U(0)
    start = random_below(rng, count)
    i = start
    while True:
        p = U(pos.empties[i])
        if p != pos.simple_ko and not is_eye(pos, p, color) and not is_suicide(pos, p, color):
            return p
        i += U(1)
        if i == count:
            i = U(0)
        if i == start:
            return U(0)


@inlined
def owner_of(pos, i):  # type: ignore[no-untyped-def]
    """Return the owner of point `i` at the end of a rollout: the color of its stone or of its neighbors."""
    # Between both colors BLACK | WHITE, between none EMPTY.
    owner = np.int64(pos.color[U(i)])
    if owner == EMPTY:
        stride = np.int64(pos.stride)
        for neighbor in (i - 1, i + 1, i - stride, i + stride):
            color = np.int64(pos.color[U(neighbor)])
            if color != BORDER:
                owner |= color
    return owner


@kernel
def area_balance(pos):  # type: ignore[no-untyped-def]
    """Return Black's points minus White's at the end of a rollout: stones, and empty points next to one color only."""
    balance = 0
    stride = np.int64(pos.stride)
    size = np.int64(pos.size)
    for y in range(np.int64(pos.height)):
        for x in range(size):
            owner = owner_of(pos, (y + 1) * stride + x + 1)
            if owner == BLACK:
                balance += 1
            elif owner == WHITE:
                balance -= 1
    return balance


@kernel
def uniform_rollout(pos, rng):  # type: ignore[no-untyped-def]
    """Play `pos` to the end with uniform moves; return Black's points minus White's, without komi."""
    color = np.int64(pos.side_to_move)
    passes = 0
    limit = 3 * pos.size * pos.height
    for _ in range(limit):
        move = uniform_move(pos, color, rng)
        # No move left: pass. Two passes end the rollout.
        if move == U(0):
            passes += 1
            pos.simple_ko = 0
            if passes == 2:
                break
        else:
            passes = 0
            place_stone(pos, move, color)
        color = 3 - color
    return area_balance(pos)


@kernel
def uniform_rollouts(root, scratch, rng, n):  # type: ignore[no-untyped-def]
    """Play `n` uniform rollouts from `root`; return the sum of their results."""
    total = 0
    for _ in range(n):
        copy(scratch, root)
        total += uniform_rollout(scratch, rng)
    return total


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
        for y in range(np.int64(root.height)):
            for x in range(size):
                owner = owner_of(scratch, (y + 1) * stride + x + 1)
                if owner == BLACK:
                    totals[U(y * size + x)] += 1
                elif owner == WHITE:
                    totals[U(y * size + x)] -= 1

"""Rollouts: games played to the end by a fast policy."""

import numpy as np

from yomi.native.bits import U, random_below
from yomi.native.go.board import BLACK, BORDER, EMPTY, WHITE, copy, is_eye, is_suicide, place_stone
from yomi.native.jit import inlined, kernel


@kernel
def uniform_move(pos, color, rng):  # type: ignore[no-untyped-def]
    """Return a random legal move of `color` that does not fill an eye of its own; 0 where there is none.

    Scans the empty points from a random start, as libego does, so the choice is uniform up to the order of the list.
    """
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
    """Return the owner of point `i` in a finished rollout: its color, or if it is empty that of its neighbors.

    BLACK | WHITE stands between both colors, EMPTY between none.
    """
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
    """Return Black's points minus White's in a finished rollout: stones, and empty points between one color."""
    balance = 0
    stride = np.int64(pos.stride)
    size = np.int64(pos.size)
    for y in range(size):
        for x in range(size):
            owner = owner_of(pos, (y + 1) * stride + x + 1)
            if owner == BLACK:
                balance += 1
            elif owner == WHITE:
                balance -= 1
    return balance


@kernel
def uniform_rollout(pos, rng):  # type: ignore[no-untyped-def]
    """Play `pos` to the end with uniform moves and return Black's points minus White's, komi not counted."""
    color = np.int64(pos.side_to_move)
    passes = 0
    limit = 3 * pos.size * pos.size
    for _ in range(limit):
        move = uniform_move(pos, color, rng)
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
    """Play `n` uniform rollouts from `root` and return the sum of their balances."""
    total = 0
    for _ in range(n):
        copy(scratch, root)
        total += uniform_rollout(scratch, rng)
    return total

"""Tactics of one move without playing it: liberties after the move, self-atari."""

import numpy as np

from yomi.native.bits import U, lowest_bit, popcount
from yomi.native.go.board import EMPTY, MAX_CHAINS, NO_POINT
from yomi.native.jit import kernel


@kernel
def other_liberty(pos, slot, point):  # type: ignore[no-untyped-def]
    """Return the lowest liberty of the chain in `slot` other than `point`, or NO_POINT."""
    base = U(slot) * U(pos.words)
    for w in range(U(pos.words)):
        word = pos.liberty_bits[base + w]
        if w == U(point) >> U(6):
            word &= ~(U(1) << (U(point) & U(63)))
        if word != U(0):
            return w * U(64) + lowest_bit(word)
    return U(NO_POINT)


@kernel
def self_atari_stones(pos, point, color):  # type: ignore[no-untyped-def]
    """Return the size of the chain that a move of `color` on the empty `point` leaves in self-atari, or 0."""
    # Counts the new stone; 0 if the move captures.
    # Self-atari: at most one liberty after the move.
    i = np.int64(point)
    stride = np.int64(pos.stride)
    own = U(color)
    liberty = U(NO_POINT)
    count = np.int64(1)
    counted = (U(MAX_CHAINS), U(MAX_CHAINS), U(MAX_CHAINS))
    for neighbor in (i - 1, i + 1, i - stride, i + stride):
        q = U(neighbor)
        c = U(pos.color[q])
        other = U(NO_POINT)
        if c == U(EMPTY):
            other = q
        elif c == own:
            slot = U(pos.chain[q])
            n = pos.liberties[slot]
            if n > 2:
                return 0
            if n == 2:
                other = other_liberty(pos, slot, point)
            if slot != counted[0] and slot != counted[1] and slot != counted[2]:
                counted = (slot, counted[0], counted[1])
                count += np.int64(pos.stones[slot])
        elif c == U(3) - own and pos.liberties[U(pos.chain[q])] == 1:
            return 0
        if other != U(NO_POINT):
            if liberty == U(NO_POINT):
                liberty = other
            elif liberty != other:
                return 0
    return count


@kernel
def liberties_after(pos, point, color):  # type: ignore[no-untyped-def]
    """Return the liberties of a stone of `color` on the empty `point`."""
    # Of captured chains only stones next to `point` count, so that the number may be too small after a capture.
    i = np.int64(point)
    stride = np.int64(pos.stride)
    own = U(color)
    count = U(0)
    joined = 0
    slots = (U(MAX_CHAINS), U(MAX_CHAINS), U(MAX_CHAINS), U(MAX_CHAINS))
    for neighbor in (i - 1, i + 1, i - stride, i + stride):
        q = U(neighbor)
        c = U(pos.color[q])
        if c == own:
            slots = (U(pos.chain[q]), slots[0], slots[1], slots[2])
            joined += 1
        elif c == U(3) - own:
            if pos.liberties[U(pos.chain[q])] == 1:
                count += U(1)
        elif c == U(EMPTY) and joined == 0:
            count += U(1)
    if joined == 0:
        return np.int64(count)
    words = U(pos.words)
    total = U(0)
    for w in range(words):
        word = pos.liberty_bits[slots[0] * words + w]
        if joined > 1:
            word |= pos.liberty_bits[slots[1] * words + w]
            if joined > 2:
                word |= pos.liberty_bits[slots[2] * words + w]
                if joined > 3:
                    word |= pos.liberty_bits[slots[3] * words + w]
        for neighbor in (i - 1, i + 1, i - stride, i + stride):
            q = U(neighbor)
            if q >> U(6) == w and pos.color[q] == EMPTY:
                word |= U(1) << (q & U(63))
        if U(point) >> U(6) == w:
            word &= ~(U(1) << (U(point) & U(63)))
        total += popcount(word)
    for neighbor in (i - 1, i + 1, i - stride, i + stride):
        q = U(neighbor)
        if pos.color[q] == U(3) - own and pos.liberties[U(pos.chain[q])] == 1:
            total += U(1)
    return np.int64(total)

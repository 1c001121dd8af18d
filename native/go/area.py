"""Areas: stones and regions that are alive whatever happens (Benson), and the owner of every point as KataGo sees it.

Sets of points are bit sets of `pos.words` words, so that a region is grown, compared and marked in a few operations.
Source: D. Benson, Life in the Game of Go (1976), with KataGo's two readings of a vital region.
"""

import numpy as np

from native.bits import U, lowest_bit, popcount
from native.go.board import BLACK, BORDER, EMPTY, MAX_POINTS, TAX_NONE, WHITE, WORDS
from native.jit import kernel


@kernel
def load_areas(s, pos):  # type: ignore[no-untyped-def]
    """Set the bit sets `empty`, `black` and `white` of scratch `s` to the board of `pos`; nothing is owned yet."""
    points = U((pos.size + 2) * pos.stride + 1)
    start = U(0)
    for w in range(U(pos.words)):
        black = U(0)
        white = U(0)
        empty = U(0)
        for i in range(min(U(64), points - start)):
            c = U(pos.color[start + i])
            empty |= U(c == U(EMPTY)) << i
            black |= U(c == U(BLACK)) << i
            white |= U(c == U(WHITE)) << i
        s.empty[w] = empty
        s.black[w] = black
        s.white[w] = white
        s.owned_black[w] = U(0)
        s.owned_white[w] = U(0)
        start += U(64)


@kernel
def _spread(bits, w, words, stride):  # type: ignore[no-untyped-def]
    """Return word `w` of a bit set with the points next to its members added."""
    word = bits[w]
    result = word | (word << U(1)) | (word >> U(1)) | (word << stride) | (word >> stride)
    back = U(64) - stride
    if w > U(0):
        below = bits[w - U(1)]
        result |= (below >> U(63)) | (below >> back)
    if w + U(1) < words:
        above = bits[w + U(1)]
        result |= (above << U(63)) | (above << back)
    return result


@kernel
def _fill(bits, within, words, stride):  # type: ignore[no-untyped-def]
    """Grow `bits` to all points of `within` that are connected to its members (a subset of `within`)."""
    changed = True
    while changed:
        changed = False
        for w in range(words):
            changed |= _fill_word(bits, within, w, words, stride)
        if not changed:
            return
        changed = False
        for k in range(words):
            changed |= _fill_word(bits, within, words - U(1) - k, words, stride)


@kernel
def _fill_word(bits, within, w, words, stride):  # type: ignore[no-untyped-def]
    """Grow one word of `bits` until it is stable; return whether it grew."""
    limit = within[w]
    old = bits[w]
    if old == limit:
        return False
    word = _spread(bits, w, words, stride) & limit
    if word == old:
        return False
    while True:
        more = (word | (word << U(1)) | (word >> U(1)) | (word << stride) | (word >> stride)) & limit
        if more == word:
            break
        word = more
    bits[w] = word
    return True


@kernel
def _find_regions(s, pos, color, suicide):  # type: ignore[no-untyped-def]
    """List the regions of `color`: connected points without its stones that contain an empty one; return their number.

    Also counts, for each chain of `color`, the regions that are vital to it (`s.vital`), and sets `s.alive` to the
    stones of the chains that have two.
    """
    words = U(pos.words)
    stride = U(pos.stride)
    enemy = s.white if color == BLACK else s.black
    for w in range(words):
        s.within[w] = s.empty[w] | enemy[w]
        s.near[w] = s.empty[w]
        s.alive[w] = U(0)
    for w in range(U(6)):
        bits = pos.slots[w]
        while bits != U(0):
            s.vital[w * U(64) + lowest_bit(bits)] = 0
            bits &= bits - U(1)
    count = U(0)
    for w in range(words):
        while s.near[w] != U(0):
            bit = lowest_bit(s.near[w])
            base = np.int64(count) * WORDS
            region = s.region[base : base + WORDS]
            for k in range(words):
                region[k] = U(0)
            region[w] = U(1) << bit
            _fill(region, s.within, words, stride)
            around = s.region_around[base : base + WORDS]
            enemies = U(0)
            for k in range(words):
                around[k] = _spread(region, k, words, stride)
                s.near[k] &= ~region[k]
                enemies |= region[k] & enemy[k]
            s.region_enemy[count] = enemies != U(0)
            s.region_safe[count] = 1
            _find_vital(s, pos, color, suicide, count, w * U(64) + bit)
            count += U(1)
    return count


@kernel
def _find_vital(s, pos, color, suicide, r, seed):  # type: ignore[no-untyped-def]
    """List the chains of `color` that region `r` is vital to; they are next to its empty point `seed`."""
    i = np.int64(seed)
    stride = np.int64(pos.stride)
    found = U(0)
    for neighbor in (i - 1, i + 1, i - stride, i + stride):
        q = U(neighbor)
        if pos.color[q] != color:
            continue
        slot = U(pos.chain[q])
        new = True
        for k in range(found):
            if s.region_vital_slot[r * U(4) + k] == slot:
                new = False
        if new and _is_vital(s, pos, suicide, r, slot, q):
            s.region_vital_slot[r * U(4) + found] = slot
            found += U(1)
            s.vital[slot] += 1
            if s.vital[slot] == 2:
                _set_chain(pos, q, s.alive)
    s.region_vital[r] = found


@kernel
def _is_vital(s, pos, suicide, r, slot, stone):  # type: ignore[no-untyped-def]
    """Whether all empty points (with legal suicide: all points) of region `r` are next to the chain in `slot`."""
    words = U(pos.words)
    base = r * U(WORDS)
    for w in range(words):
        if s.region[base + w] & s.empty[w] & ~pos.liberty_bits[slot * words + w] != U(0):
            return False
    if suicide == 0 or s.region_enemy[r] == 0:
        return True
    for w in range(words):
        s.filled[w] = U(0)
    _set_chain(pos, stone, s.filled)
    outside = U(0)
    for w in range(words):
        outside |= s.region[base + w] & ~_spread(s.filled, w, words, U(pos.stride))
    return outside == U(0)


@kernel
def _set_chain(pos, stone, bits):  # type: ignore[no-untyped-def]
    p = U(stone)
    while True:
        bits[p >> U(6)] |= U(1) << (p & U(63))
        p = U(pos.next_stone[p])
        if p == U(stone):
            return


@kernel
def _benson(s, pos, own, regions):  # type: ignore[no-untyped-def]
    """Reduce `s.alive` to the pass-alive stones, and `s.region_safe` to the regions with only such around them."""
    words = U(pos.words)
    changed = True
    while changed:
        changed = False
        for r in range(regions):
            if s.region_safe[r] == 0:
                continue
            base = r * U(WORDS)
            dead = U(0)
            for w in range(words):
                dead |= s.region_around[base + w] & own[w] & ~s.alive[w]
            if dead == U(0):
                continue
            s.region_safe[r] = 0
            for k in range(U(s.region_vital[r])):
                slot = U(s.region_vital_slot[r * U(4) + k])
                s.vital[slot] -= 1
                if s.vital[slot] == 1:
                    _clear_chain(s, pos, r, slot)
                    changed = True


@kernel
def _clear_chain(s, pos, r, slot):  # type: ignore[no-untyped-def]
    """Take the chain in `slot`, to which region `r` is vital, out of `s.alive`."""
    stride = np.int64(pos.stride)
    i = np.int64(0)
    for w in range(U(pos.words)):
        bits = s.region[r * U(WORDS) + w] & s.empty[w]
        if bits != U(0):
            i = np.int64(w * U(64) + lowest_bit(bits))
            break
    for neighbor in (i - 1, i + 1, i - stride, i + stride):
        q = U(neighbor)
        c = pos.color[q]
        if c != EMPTY and c != BORDER and pos.chain[q] == slot:
            p = q
            while True:
                s.alive[p >> U(6)] &= ~(U(1) << (p & U(63)))
                p = U(pos.next_stone[p])
                if p == q:
                    return


@kernel
def _claim(s, pos, color, suicide, large):  # type: ignore[no-untyped-def]
    """Give `color` its pass-alive stones and territory.

    With `large` also all regions without an enemy stone, those that border on chains not pass-alive only where nobody
    has
    a claim.
    """
    words = U(pos.words)
    own = s.black if color == BLACK else s.white
    mine = s.owned_black if color == BLACK else s.owned_white
    theirs = s.owned_white if color == BLACK else s.owned_black
    stones = U(0)
    for w in range(words):
        stones |= own[w]
    if stones == U(0):
        return
    regions = _find_regions(s, pos, color, suicide)
    _benson(s, pos, own, regions)
    for w in range(words):
        mine[w] |= s.alive[w]
        theirs[w] &= ~s.alive[w]
    stride = U(pos.stride)
    for r in range(regions):
        base = r * U(WORDS)
        if s.region_safe[r] != 0:
            mark = large and s.region_enemy[r] == 0
            if not mark:
                inside = U(0)
                for w in range(words):
                    inside += popcount(s.region[base + w] & ~_spread(own, w, words, stride))
                mark = inside <= U(1)
            if mark:
                for w in range(words):
                    mine[w] |= s.region[base + w]
                    theirs[w] &= ~s.region[base + w]
        elif large and s.region_enemy[r] == 0:
            for w in range(words):
                mine[w] |= s.region[base + w] & ~theirs[w]


@kernel
def _drop_seki(s, pos, color):  # type: ignore[no-untyped-def]
    """Take from the area of `color` every part that touches dame or holds its own stone in atari; keep its stones.

    `s.near` holds the dame and the points next to them.
    """
    words = U(pos.words)
    own = s.black if color == BLACK else s.white
    mine = s.owned_black if color == BLACK else s.owned_white
    for w in range(words):
        atari = U(0)
        bits = own[w] & mine[w]
        while bits != U(0):
            bit = lowest_bit(bits)
            bits &= bits - U(1)
            if pos.liberties[U(pos.chain[w * U(64) + bit])] == 1:
                atari |= U(1) << bit
        s.filled[w] = mine[w] & (s.near[w] | atari)
    _fill(s.filled, mine, words, U(pos.stride))
    for w in range(words):
        mine[w] &= ~s.filled[w] | own[w]


@kernel
def find_areas(s, pos, suicide):  # type: ignore[no-untyped-def]
    """Set `s.owned_black` and `s.owned_white` to the areas that KataGo's planes 18 and 19 show under area scoring.

    `suicide` says whether pass-alive is judged as if suicide of several stones were legal: the rule of the game, or
    true
    for networks that ask for it. Under `pos.tax` SEKI or ALL areas in seki hold their stones alone. The group tax
    itself
    is not counted.
    """
    load_areas(s, pos)
    _claim(s, pos, BLACK, suicide, True)
    _claim(s, pos, WHITE, suicide, True)
    words = U(pos.words)
    for w in range(words):
        s.owned_black[w] |= s.black[w] & ~s.owned_white[w]
        s.owned_white[w] |= s.white[w] & ~s.owned_black[w]
    if pos.tax == TAX_NONE:
        return
    for w in range(words):
        s.filled[w] = s.empty[w] & ~(s.owned_black[w] | s.owned_white[w])
    for w in range(words):
        s.near[w] = _spread(s.filled, w, words, U(pos.stride))
    _drop_seki(s, pos, BLACK)
    _drop_seki(s, pos, WHITE)


@kernel
def area(pos, s, out):  # type: ignore[no-untyped-def]
    """Write the owner (BLACK, WHITE or 0) of every point to `out` (uint8[MAX_POINTS]), as `find_areas` sees it."""
    find_areas(s, pos, pos.suicide)
    for p in range(U(MAX_POINTS)):
        out[p] = 0
    for p in range(U((pos.size + 2) * pos.stride)):
        w = p >> U(6)
        bit = p & U(63)
        if (s.owned_black[w] >> bit) & U(1) != U(0):
            out[p] = BLACK
        elif (s.owned_white[w] >> bit) & U(1) != U(0):
            out[p] = WHITE


@kernel
def pass_alive(pos, s, color, out):  # type: ignore[no-untyped-def]
    """Write `color` to `out` (uint8[MAX_POINTS]) at its pass-alive stones and territory (Benson), 0 elsewhere."""
    load_areas(s, pos)
    _claim(s, pos, color, pos.suicide, False)
    mine = s.owned_black if color == BLACK else s.owned_white
    for p in range(U(MAX_POINTS)):
        out[p] = 0
    for p in range(U((pos.size + 2) * pos.stride)):
        if (mine[p >> U(6)] >> (p & U(63))) & U(1) != U(0):
            out[p] = color

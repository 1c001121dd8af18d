"""Pass-alive stones and territory (Benson), and the owner of every point in KataGo's sense.

Sets of points are bit sets of `pos.words` words. Source: D. Benson, Life in the Game of Go (1976), with KataGo's two
definitions of a vital region.
"""

import numpy as np

from yomi.native.bits import U, lowest_bit, popcount
from yomi.native.go.board import BLACK, EMPTY, MAX_POINTS, TAX_NONE, WHITE
from yomi.native.jit import kernel

# A region of a color is a connected set of points without its stones. A region is vital to a chain if all of its empty
# points are liberties of the chain.


@kernel
def load_sets(s, pos):  # type: ignore[no-untyped-def]
    """Set the bit sets `empty`, `black` and `white` of scratch `s` to the board of `pos`."""
    color = pos.color
    points = U((pos.height + 2) * pos.stride + 1)
    start = U(0)
    for w in range(U(pos.words)):
        black = U(0)
        white = U(0)
        empty = U(0)
        for i in range(min(U(64), points - start)):
            c = U(color[start + i])
            empty |= U(c == U(EMPTY)) << i
            black |= U(c == U(BLACK)) << i
            white |= U(c == U(WHITE)) << i
        s.empty[w] = empty
        s.black[w] = black
        s.white[w] = white
        start += U(64)


@kernel
def _spread(bits, w, words, stride):  # type: ignore[no-untyped-def]
    """Return word `w` of a bit set extended by the neighbors of its points."""
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
    """Extend `bits`, a subset of `within`, to all connected points of `within`."""
    last = words - U(1)
    quiet = U(0)  # consecutive words without change
    w = U(0)
    up = True
    while True:
        limit = within[w]
        old = bits[w]
        word = old
        if old != limit:
            word = _spread(bits, w, words, stride) & limit
        if word == old:
            quiet += U(1)
            if quiet > words + last:
                return
        else:
            while True:
                more = (word | (word << U(1)) | (word >> U(1)) | (word << stride) | (word >> stride)) & limit
                if more == word:
                    break
                word = more
            bits[w] = word
            quiet = U(0)
        if up:
            if w == last:
                up = False
            else:
                w += U(1)
        elif w == U(0):
            up = True
        else:
            w -= U(1)


@kernel
def _mark_chain(pos, stone, bits, add):  # type: ignore[no-untyped-def]
    next_stone = pos.next_stone
    p = U(stone)
    while True:
        bit = U(1) << (p & U(63))
        w = p >> U(6)
        bits[w] = bits[w] | bit if add else bits[w] & ~bit
        p = U(next_stone[p])
        if p == U(stone):
            return


@kernel
def _is_vital(s, pos, suicide, slot, stone, enemies):  # type: ignore[no-untyped-def]
    """Return whether all empty points of `s.region` (all points if suicide is legal) touch the chain in `slot`."""
    words = U(pos.words)
    liberty_bits = pos.liberty_bits
    outside = U(0)
    for w in range(words):
        outside |= s.region[w] & s.empty[w] & ~liberty_bits[slot * words + w]
    if outside == U(0) and suicide and enemies != U(0):
        for w in range(words):
            s.filled[w] = U(0)
        _mark_chain(pos, stone, s.filled, 1)
        for w in range(words):
            outside |= s.region[w] & ~_spread(s.filled, w, words, U(pos.stride))
    return outside == U(0)


@kernel
def _flood_from(s, seed, words, stride):  # type: ignore[no-untyped-def]
    for w in range(words):
        s.region[w] = U(0)
    s.region[seed >> U(6)] = U(1) << (seed & U(63))
    _fill(s.region, s.within, words, stride)


@kernel
def _find_vital(s, pos, color, suicide, own, enemy):  # type: ignore[no-untyped-def]
    """List the regions that are vital to some chain. Return their number, or 0 if no chain has two."""
    # Sets `s.alive` to the stones of chains with two or more, and `s.vital` to each chain's number.
    words = U(pos.words)
    stride = np.int64(pos.stride)
    chain = pos.chain
    for w in range(words):
        s.alive[w] = U(0)
        s.within[w] = s.empty[w] | enemy[w]
        # Only regions whose empty points are all next to a stone can be vital. One flood removes all others.
        s.filled[w] = s.empty[w] & ~_spread(own, w, words, U(stride))
    _fill(s.filled, s.within, words, U(stride))
    for w in range(words):
        s.seeds[w] = s.empty[w] & ~s.filled[w]
    for w in range(U(6)):
        bits = pos.slots[w]
        while bits != U(0):
            s.vital[w * U(64) + lowest_bit(bits)] = 0
            bits &= bits - U(1)
    regions = U(0)
    alive = False
    for v in range(words):
        # Each remaining region: its points, and the own chains around its seed.
        while s.seeds[v] != U(0):
            seed = v * U(64) + lowest_bit(s.seeds[v])
            _flood_from(s, seed, words, U(stride))
            enemies = U(0)
            for w in range(words):
                s.seeds[w] &= ~s.region[w]
                enemies |= s.region[w] & enemy[w]
            found = U(0)
            i = np.int64(seed)
            for neighbor in (i - 1, i + 1, i - stride, i + stride):
                q = U(neighbor)
                if pos.color[q] != color:
                    continue
                slot = U(chain[q])
                new = True
                for k in range(found):
                    if chain[U(s.region_stone[regions * U(4) + k])] == slot:
                        new = False
                if new and _is_vital(s, pos, suicide, slot, q, enemies):
                    s.region_stone[regions * U(4) + found] = q
                    found += U(1)
                    s.vital[slot] += 1
                    if s.vital[slot] == 2:
                        _mark_chain(pos, q, s.alive, 1)
                        alive = True
            if found != U(0):
                s.region_seed[regions] = seed
                s.region_vital[regions] = found
                regions += U(1)
    return regions if alive else U(0)


@kernel
def _benson(s, pos, own, regions):  # type: ignore[no-untyped-def]
    """Reduce `s.alive` to the pass-alive stones; set `s.filled` to the regions that touch other own stones."""
    words = U(pos.words)
    stride = U(pos.stride)
    changed = True
    while changed:
        changed = False
        for w in range(words):
            # A region that touches another own stone is no longer vital.
            s.region[w] = own[w] & ~s.alive[w]
        for w in range(words):
            s.filled[w] = s.within[w] & _spread(s.region, w, words, stride)
        _fill(s.filled, s.within, words, stride)
        for r in range(regions):
            seed = U(s.region_seed[r])
            if seed == U(0) or (s.filled[seed >> U(6)] >> (seed & U(63))) & U(1) == U(0):
                continue
            s.region_seed[r] = 0
            for k in range(U(s.region_vital[r])):
                stone = U(s.region_stone[r * U(4) + k])
                slot = U(pos.chain[stone])
                # A chain with fewer than two vital regions is not pass-alive.
                s.vital[slot] -= 1
                if s.vital[slot] == 1:
                    _mark_chain(pos, stone, s.alive, 0)
                    changed = True


@kernel
def _claim_safe(s, pos, own, enemy, mine, theirs, large):  # type: ignore[no-untyped-def]
    """Add the pass-alive stones and their territory to `mine`, and remove them from `theirs`."""
    # Territory: a region that touches pass-alive stones only, with at most one point not next to a stone, or (`large`)
    # without enemy stones.
    words = U(pos.words)
    stride = U(pos.stride)
    for w in range(words):
        mine[w] |= s.alive[w]
        theirs[w] &= ~s.alive[w]
        s.seeds[w] = s.empty[w] & ~s.filled[w]
    for v in range(words):
        while s.seeds[v] != U(0):
            seed = v * U(64) + lowest_bit(s.seeds[v])
            _flood_from(s, seed, words, stride)
            inside = U(0)
            enemies = U(0)
            for w in range(words):
                s.seeds[w] &= ~s.region[w]
                enemies |= s.region[w] & enemy[w]
                inside += popcount(s.region[w] & ~_spread(own, w, words, stride))
            if inside <= U(1) or (large and enemies == U(0)):
                for w in range(words):
                    mine[w] |= s.region[w]
                    theirs[w] &= ~s.region[w]


@kernel
def _claim(s, pos, color, suicide, large):  # type: ignore[no-untyped-def]
    """Add the pass-alive stones and territory of `color` to its area. `large`: also empty regions without enemy
    neighbors.
    """
    words = U(pos.words)
    own = s.black if color == BLACK else s.white
    enemy = s.white if color == BLACK else s.black
    mine = s.owned_black if color == BLACK else s.owned_white
    theirs = s.owned_white if color == BLACK else s.owned_black
    stones = U(0)
    for w in range(words):
        stones |= own[w]
    if stones == U(0):
        return
    regions = _find_vital(s, pos, color, suicide, own, enemy)
    if regions != U(0):
        _benson(s, pos, own, regions)
        _claim_safe(s, pos, own, enemy, mine, theirs, large)
    if large:
        for w in range(words):
            s.filled[w] = s.empty[w] & _spread(enemy, w, words, U(pos.stride))
        _fill(s.filled, s.empty, words, U(pos.stride))
        for w in range(words):
            mine[w] |= s.empty[w] & ~s.filled[w] & ~theirs[w]


@kernel
def _drop_seki(s, pos, color):  # type: ignore[no-untyped-def]
    """Remove from the area of `color` each part that touches dame or has an own stone in atari. Its stones stay."""
    # `s.seeds` contains the dame and their neighbors.
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
        s.filled[w] = mine[w] & (s.seeds[w] | atari)
    _fill(s.filled, mine, words, U(pos.stride))
    for w in range(words):
        mine[w] &= ~s.filled[w] | own[w]


@kernel
def find_areas(s, pos, suicide):  # type: ignore[no-untyped-def]
    """Set `s.owned_black` and `s.owned_white` to the areas of KataGo's planes 18 and 19 under area scoring.

    `load_sets` must have been called. `suicide`: find pass-alive stones as if suicide of several stones were legal.
    With `pos.tax` SEKI or ALL, an area in seki is its stones only. The group tax itself is not counted.
    """
    words = U(pos.words)
    for w in range(words):
        s.owned_black[w] = U(0)
        s.owned_white[w] = U(0)
    _claim(s, pos, BLACK, np.int64(suicide), True)
    _claim(s, pos, WHITE, np.int64(suicide), True)
    for w in range(words):
        s.owned_black[w] |= s.black[w] & ~s.owned_white[w]
        s.owned_white[w] |= s.white[w] & ~s.owned_black[w]
    if pos.tax == TAX_NONE:
        return
    # Dame: empty points that nobody owns, and their neighbors.
    for w in range(words):
        s.filled[w] = s.empty[w] & ~(s.owned_black[w] | s.owned_white[w])
    for w in range(words):
        s.seeds[w] = _spread(s.filled, w, words, U(pos.stride))
    _drop_seki(s, pos, BLACK)
    _drop_seki(s, pos, WHITE)


@kernel
def pass_alive(pos, s, color, out):  # type: ignore[no-untyped-def]
    """Write `color` to `out` (uint8[MAX_POINTS]) at its pass-alive stones and territory, 0 elsewhere."""
    load_sets(s, pos)
    for w in range(U(pos.words)):
        s.owned_black[w] = U(0)
        s.owned_white[w] = U(0)
    _claim(s, pos, color, pos.suicide, False)
    mine = s.owned_black if color == BLACK else s.owned_white
    for p in range(U(MAX_POINTS)):
        out[p] = 0
    for p in range(U((pos.height + 2) * pos.stride)):
        if (mine[p >> U(6)] >> (p & U(63))) & U(1) != U(0):
            out[p] = color

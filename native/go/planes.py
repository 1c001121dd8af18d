"""The network's view of a Go position: KataGo's V7 inputs, 22 planes and 19 numbers, for the side to move.

Shown are games without a button, outside the clean-up phases of territory scoring ("encore") and without playout
doubling advantage: planes 7, 8, 20 and 21 and globals 12, 13, 15, 16 and 17 are always 0.

Symmetries are numbered as KataGo's: bit 0 flips the rows, bit 1 the columns, bit 2 then swaps rows and columns. What
the network sees of a point under a symmetry stands where `symmetry_steps` says; planes are written there directly.
"""

import numpy as np

from yomi.native.bits import U, lowest_bit
from yomi.native.go.area import find_areas, load_sets
from yomi.native.go.board import (
    BLACK,
    KO_POSITIONAL,
    KO_SIMPLE,
    MAX_POINTS,
    NO_POINT,
    PASS,
    SCORING_AREA,
    SCORING_TERRITORY,
    TAX_ALL,
    TAX_NONE,
    row_of,
)
from yomi.native.go.ladder import load_colors, read_ladders
from yomi.native.go.rules import BANNED, legality, repeats_pass
from yomi.native.go.scratch import LADDER_TABLE
from yomi.native.jit import inlined, kernel
from yomi.native.packing import set_bit, unpack_bits

PLANES, GLOBALS = 22, 19
SYMMETRIES = 8
KOMI_MARGIN = 20.0
"""The komi that is shown is cut to the board's area and so many points."""


@kernel
def symmetry_steps(size, symmetry):  # type: ignore[no-untyped-def]
    """Return (start, dx, dy): the point (x, y), y = 0 the top row, is seen at index start + x * dx + y * dy."""
    last = np.int64(size) - 1
    step_x = np.int64(1)
    step_y = np.int64(size)
    if symmetry & 4:
        step_x, step_y = step_y, step_x
    start = np.int64(0)
    if symmetry & 1:
        start += last * step_y
        step_y = -step_y
    if symmetry & 2:
        start += last * step_x
        step_x = -step_x
    return start, step_x, step_y


@kernel
def policy_index(size, move, symmetry):  # type: ignore[no-untyped-def]
    """Return the index of a move (point or PASS) in the network's policy [size * size + 1] under a symmetry."""
    if move == PASS:
        return np.int64(size) * np.int64(size)
    start, step_x, step_y = symmetry_steps(size, symmetry)
    stride = np.int64(size) + 1
    row = row_of(stride, move)
    return start + (np.int64(move) - row * stride - 1) * step_x + (row - 1) * step_y


def symmetry_table(size: int, symmetry: int) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Return table[size * size + 1] with table[i] = where the network sees point i; the pass stays last.

    `values_of_network[table]` brings a policy or an ownership back to the board, `seen[table] = board` the other way.
    """
    start, step_x, step_y = symmetry_steps(size, symmetry)
    y, x = np.divmod(np.arange(size * size), size)
    return np.append(start + x * step_x + y * step_y, size * size)


@kernel
def _fill_seen(s, size):  # type: ignore[no-untyped-def]
    """Set `s.seen[symmetry * MAX_POINTS + point]` to where the network sees each point of a board."""
    s.seen_size = size
    stride = np.int64(size) + 1
    for symmetry in range(SYMMETRIES):
        start, step_x, step_y = symmetry_steps(size, symmetry)
        for y in range(np.int64(size)):
            for x in range(np.int64(size)):
                index = U(symmetry * MAX_POINTS + (y + 1) * stride + x + 1)
                s.seen[index] = start + x * step_x + y * step_y


@kernel
def _write_set(points, words, seen, view, plane, bits):  # type: ignore[no-untyped-def]
    """Set the plane that begins at bit `plane` to 1 for each point of a set; `view`: the symmetry's start."""
    for w in range(words):
        word = points[w]
        while word != U(0):
            set_bit(bits, plane + U(seen[view + w * U(64) + lowest_bit(word)]))
            word &= word - U(1)


@kernel
def _write_stones(pos, s, view, area, bits):  # type: ignore[no-untyped-def]
    """Planes 0 to 5: the board, the stones of either side, and chains with 1 to 3 liberties; clears the rest."""
    seen = s.seen
    chain = pos.chain
    liberties = pos.liberties
    whole = area >> U(6)
    for w in range(whole):
        bits[w] = ~U(0)
    bits[whole] = (U(1) << (area & U(63))) - U(1)
    for w in range(whole + U(1), U(bits.size)):
        bits[w] = U(0)
    black = pos.side_to_move == BLACK
    for w in range(U(pos.words)):
        own = s.black[w] if black else s.white[w]
        stones = s.black[w] | s.white[w]
        while stones != U(0):
            bit = lowest_bit(stones)
            p = w * U(64) + bit
            i = U(seen[view + p])
            set_bit(bits, i + (area if (own >> bit) & U(1) != U(0) else U(2) * area))
            n = liberties[U(chain[p])]
            if n <= 3:
                set_bit(bits, i + (U(2) + U(n)) * area)
            stones &= stones - U(1)


@kernel
def _write_bans(pos, history, s, view, area, bits):  # type: ignore[no-untyped-def]
    """Plane 6: the simple ko point and every point that superko forbids to the side to move."""
    if pos.simple_ko != NO_POINT:
        set_bit(bits, U(6) * area + U(s.seen[view + U(pos.simple_ko)]))
    if pos.ko_rule != KO_SIMPLE:
        own = np.int64(pos.side_to_move)
        for w in range(U(pos.words)):
            # a stone where none ever stood can only make an old board if it is suicide
            points = s.empty[w] if pos.suicide else s.empty[w] & pos.occupied[w]
            while points != U(0):
                p = np.int64(w * U(64) + lowest_bit(points))
                points &= points - U(1)
                if legality(pos, history, p, own) == BANNED:
                    set_bit(bits, U(6) * area + U(s.seen[view + U(p)]))


@kernel
def _write_moves(pos, hidden, s, view, area, bits, globals_):  # type: ignore[no-untyped-def]
    """Planes 9 to 13 and globals 0 to 4: the last moves; return how many are shown.

    Only moves made in turn are shown, none where `hidden` (a friendly pass may be answered without ending the game),
    and those that led to the end of a game are cut to the last one.
    """
    limit = np.int64(pos.recent_valid)
    if hidden:
        limit = np.int64(0)
    elif pos.finished:
        limit = min(limit, np.int64(1))
    color = 3 - pos.side_to_move
    shown = U(0)
    while np.int64(shown) < limit and pos.recent_color[shown] == color:
        move = pos.recent_move[shown]
        if move == PASS:
            globals_[shown] = 1.0
        else:
            set_bit(bits, (U(9) + shown) * area + U(s.seen[view + U(move)]))
        color = 3 - color
        shown += U(1)
    return shown


@inlined
def _write_ladders(pos, history, s, shown, view, area, bits):  # type: ignore[no-untyped-def]
    """Planes 14 to 17: ladders on the board, on those one and two moves ago as far as shown, and moves.

    The ladders of a board are remembered under what they depend on: its stones, its ko point and its size.
    """
    words = U(pos.words)
    laddered = s.laddered
    table = s.table
    for ago in range(U(3)):
        if ago == U(0):
            stones = pos.hash
            ko = pos.simple_ko
        elif ago <= shown and ago <= U(pos.previous_count):
            stones = history[U(pos.history_length - 1) - ago]
            ko = pos.previous_ko[ago - U(1)]
        else:
            _write_set(laddered, words, s.seen, view, (U(14) + ago) * area, bits)
            continue
        key = (stones >> U(1)) ^ (U(ko) * U(0x9E3779B97F4A7C15)) ^ (U(pos.size) * U(0xC2B2AE3D27D4EB4F))
        key |= U(1) << U(63)  # never 0, which stands for a free entry
        entry = (key & U(LADDER_TABLE - 1)) * U(8)
        if ago != U(0) and table[entry] == key:
            for w in range(words):
                laddered[w] = table[entry + U(1) + w]
        else:
            source = pos
            if ago != U(0):
                load_colors(s.board, pos, np.int64(ago))
                source = s.board
            read_ladders(source, s, 3 - np.int64(pos.side_to_move) if ago == U(0) else np.int64(0), ago != U(0))
            table[entry] = key
            for w in range(words):
                table[entry + U(1) + w] = laddered[w]
        if ago == U(0):
            _write_set(s.working, words, s.seen, view, U(17) * area, bits)
        _write_set(laddered, words, s.seen, view, (U(14) + ago) * area, bits)


@kernel
def _write_globals(pos, ends, globals_):  # type: ignore[no-untyped-def]
    """Globals 5 to 18; 0 to 4 and the rest are 0 already."""
    size = np.int64(pos.size)
    limit = np.float32(size * size) + np.float32(KOMI_MARGIN)
    # the komi as the side to move sees it, prisoners included under territory scoring, cut to what is shown
    komi = np.float32(pos.komi + pos.white_bonus)
    if komi > limit:
        komi = limit
    if komi < -limit:
        komi = -limit
    if pos.side_to_move == BLACK:
        komi = -komi
    globals_[5] = komi / np.float32(20.0)
    if pos.ko_rule != KO_SIMPLE:
        globals_[6] = 1.0
        globals_[7] = 0.5 if pos.ko_rule == KO_POSITIONAL else -0.5
    if pos.suicide:
        globals_[8] = 1.0
    if pos.tax != TAX_NONE:
        globals_[10] = 1.0
    if pos.tax == TAX_ALL:
        globals_[11] = 1.0
    if ends:
        globals_[14] = 1.0
    if pos.scoring == SCORING_TERRITORY:
        globals_[9] = 1.0
    else:
        # a triangular wave in the komi, of period 2, that rises where a komi allows a draw
        parity = np.float32(size & 1)
        above = komi - (np.floor((komi - parity) * np.float32(0.5)) * np.float32(2.0) + parity)
        if above < np.float32(0.5):
            globals_[18] = above
        elif above < np.float32(1.5):
            globals_[18] = np.float32(1.0) - above
        else:
            globals_[18] = above - np.float32(2.0)


@kernel
def write_bits(pos, history, symmetry, scratch, bits, globals_):  # type: ignore[no-untyped-def]
    """Write the network's input for the side to move of `pos`, the planes as bits.

    Args:
        pos: the position record.
        history: its boards, uint64[MAX_HISTORY].
        symmetry: 0 to 7, what the network is to see the board under.
        scratch: a record of SCRATCH_DTYPE that no other thread uses.
        bits: uint64[packed_words(22 * size * size)]; all of it is written.
        globals_: float32[19]; all of it is written.
    """
    size = np.int64(pos.size)
    area = U(size * size)
    words = U(pos.words)
    view = U(symmetry) * U(MAX_POINTS)
    for k in range(U(GLOBALS)):
        globals_[k] = 0.0
    if scratch.seen_size != size:
        _fill_seen(scratch, size)
    load_sets(scratch, pos)
    _write_stones(pos, scratch, view, area, bits)
    _write_bans(pos, history, scratch, view, area, bits)
    repeated = repeats_pass(pos, history)
    hidden = pos.friendly_pass != 0 and pos.scoring == SCORING_AREA and pos.passes == 1 and not repeated
    shown = _write_moves(pos, hidden, scratch, view, area, bits, globals_)
    _write_ladders(pos, history, scratch, shown, view, area, bits)
    if pos.scoring == SCORING_AREA:
        find_areas(scratch, pos, pos.suicide | pos.suicide_areas)
        black = pos.side_to_move == BLACK
        for side in range(U(2)):
            mine = black == (side == U(0))
            owned = scratch.owned_black if mine else scratch.owned_white
            _write_set(owned, words, scratch.seen, view, (U(18) + side) * area, bits)
    _write_globals(pos, (pos.passes >= 1 or repeated) and not hidden, globals_)


@kernel
def write_planes(pos, history, symmetry, scratch, spatial, globals_):  # type: ignore[no-untyped-def]
    """Write the network's input as numbers.

    Args:
        pos: see `write_bits`.
        history: see `write_bits`.
        symmetry: see `write_bits`.
        scratch: see `write_bits`.
        spatial: float32[22, size, size], C-contiguous; all of it is written.
        globals_: float32[19]; all of it is written.
    """
    numbers = spatial.reshape(-1)
    bits = scratch.bits[: (U(numbers.size) + U(63)) >> U(6)]
    write_bits(pos, history, symmetry, scratch, bits, globals_)
    unpack_bits(bits, 0, numbers)

"""The network's view of a Go position: KataGo's V7 inputs, 22 planes and 19 numbers, for the side to move.

Shown are games without a button, outside the clean-up phases of territory scoring ("encore") and without playout
doubling
advantage: planes 7, 8, 20 and 21 and globals 12, 13, 15, 16 and 17 are always 0.

Symmetries are numbered as KataGo's: bit 0 flips the rows, bit 1 the columns, bit 2 then swaps rows and columns. What
the
network sees of the point (x, y) under a symmetry stands at `symmetry_point`; planes are written there directly.
"""

import numpy as np

from native.bits import U, lowest_bit
from native.go.area import find_areas
from native.go.board import (
    BLACK,
    EMPTY,
    KO_POSITIONAL,
    KO_SIMPLE,
    NO_POINT,
    PASS,
    SCORING_AREA,
    SCORING_TERRITORY,
    TAX_ALL,
    TAX_NONE,
    WHITE,
    is_single_stone_suicide,
    is_suicide,
)
from native.go.ladder import ladder_key, load_colors, load_position, read_ladders, recall_ladders, remember_ladders
from native.go.rules import pass_would_end, repeats_board, repeats_pass, was_occupied
from native.jit import kernel

PLANES, GLOBALS = 22, 19
SYMMETRIES = 8
INVERSE_SYMMETRY = (0, 1, 2, 3, 4, 6, 5, 7)
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
def symmetry_point(size, index, symmetry):  # type: ignore[no-untyped-def]
    """Return where the network sees the point of index y * size + x under a symmetry, as such an index."""
    start, step_x, step_y = symmetry_steps(size, symmetry)
    return start + (index % size) * step_x + (index // size) * step_y


@kernel
def policy_index(size, move, symmetry):  # type: ignore[no-untyped-def]
    """Return the index of a move (point or PASS) in the network's policy [size * size + 1] under a symmetry."""
    if move == PASS:
        return np.int64(size) * np.int64(size)
    start, step_x, step_y = symmetry_steps(size, symmetry)
    stride = np.int64(size) + 1
    return start + (np.int64(move) % stride - 1) * step_x + (np.int64(move) // stride - 1) * step_y


def symmetry_table(size: int, symmetry: int) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Return table[size * size + 1] with table[i] = where the network sees point i; the pass stays last.

    `values_of_network[table]` brings a policy or an ownership back to the board, `seen[table] = board` the other way.
    """
    start, step_x, step_y = symmetry_steps(size, symmetry)
    y, x = np.divmod(np.arange(size * size), size)
    return np.append(start + x * step_x + y * step_y, size * size)


@kernel
def _write_bits(bits, words, steps, plane, spatial):  # type: ignore[no-untyped-def]
    """Set `spatial` to 1 in `plane` for each point of a bit set; `steps`: `symmetry_steps` and the stride."""
    start, step_x, step_y, stride = steps
    for w in range(words):
        word = bits[w]
        while word != U(0):
            p = np.int64(w * U(64) + lowest_bit(word))
            word &= word - U(1)
            y = p // stride
            spatial[U(plane + start + (p - y * stride - 1) * step_x + (y - 1) * step_y)] = 1.0


@kernel
def _write_point(p, steps, plane, spatial):  # type: ignore[no-untyped-def]
    start, step_x, step_y, stride = steps
    y = np.int64(p) // stride
    spatial[U(plane + start + (np.int64(p) - y * stride - 1) * step_x + (y - 1) * step_y)] = 1.0


@kernel
def _write_stones(pos, steps, spatial):  # type: ignore[no-untyped-def]
    """Planes 0 to 5: the board, the stones of either side, and chains with 1, 2 and 3 liberties."""
    start, step_x, step_y, stride = steps
    size = np.int64(pos.size)
    n = size * size
    own = pos.side_to_move
    for i in range(U(n)):
        spatial[i] = 1.0
    for i in range(U(n), U(PLANES * n)):
        spatial[i] = 0.0
    for y in range(size):
        p = (y + 1) * stride + 1
        i = start + y * step_y
        for _ in range(size):
            c = pos.color[U(p)]
            if c != EMPTY:
                spatial[U(i + (n if c == own else 2 * n))] = 1.0
                liberties = np.int64(pos.liberties[U(pos.chain[U(p)])])
                if liberties <= 3:
                    spatial[U(i + (2 + liberties) * n)] = 1.0
            p += 1
            i += step_x


@kernel
def _write_bans(pos, history, steps, area, spatial):  # type: ignore[no-untyped-def]
    """Plane 6: the simple ko point and every point that superko forbids to the side to move."""
    if pos.simple_ko != NO_POINT:
        _write_point(pos.simple_ko, steps, 6 * area, spatial)
    if pos.ko_rule == KO_SIMPLE:
        return
    own = pos.side_to_move
    for i in range(U(pos.empty_count)):
        p = U(pos.empties[i])
        occupied = was_occupied(pos, p)
        if p == pos.simple_ko or not (occupied or pos.suicide):
            continue
        suicide = is_suicide(pos, p, own)
        if suicide and (pos.suicide == 0 or is_single_stone_suicide(pos, p, own)):
            continue
        if (occupied or suicide) and repeats_board(pos, history, p, own):
            _write_point(p, steps, 6 * area, spatial)


@kernel
def _write_moves(pos, hidden, steps, area, spatial, globals_):  # type: ignore[no-untyped-def]
    """Planes 9 to 13 and globals 0 to 4: the last moves; return how many are shown.

    Only moves made in turn are shown, none where `hidden` (a friendly pass may be answered without ending the game),
    and
    those that led to the end of a game are cut to the last one.
    """
    limit = np.int64(pos.recent_valid)
    if hidden:
        limit = 0
    elif pos.finished:
        limit = min(limit, 1)
    color = 3 - pos.side_to_move
    for k in range(limit):
        if pos.recent_color[U(k)] != color:
            return k
        move = pos.recent_move[U(k)]
        if move == PASS:
            globals_[k] = 1.0
        else:
            _write_point(move, steps, (9 + k) * area, spatial)
        color = 3 - color
    return limit


@kernel
def _write_ladders(pos, history, s, shown, steps, area, spatial):  # type: ignore[no-untyped-def]
    """Planes 14 to 17: ladders on the board, on those one and two moves ago as far as shown, and moves."""
    words = U(pos.words)
    load_position(s, pos)
    read_ladders(s, 3 - pos.side_to_move)
    remember_ladders(s, ladder_key(pos.hash, pos.simple_ko, pos.size))
    _write_bits(s.laddered, words, steps, 14 * area, spatial)
    _write_bits(s.working, words, steps, 17 * area, spatial)
    for ago in range(1, 3):
        if ago <= min(shown, np.int64(pos.previous_count)):
            board = history[U(pos.history_length - 1 - ago)]
            key = ladder_key(board, pos.previous_ko[U(ago - 1)], pos.size)
            if not recall_ladders(s, key):
                load_colors(s, pos, ago)
                read_ladders(s, 0)
                remember_ladders(s, key)
        _write_bits(s.laddered, words, steps, (14 + ago) * area, spatial)


@kernel
def self_komi(pos):  # type: ignore[no-untyped-def]
    """Return the komi as the side to move sees it, prisoners included under territory scoring, cut to what is shown."""
    komi = np.float32(pos.komi + pos.white_bonus)
    limit = np.float32(np.float32(pos.size) * np.float32(pos.size) + np.float32(KOMI_MARGIN))
    komi = min(max(komi, -limit), limit)
    return komi if pos.side_to_move == WHITE else -komi


@kernel
def komi_wave(komi, size):  # type: ignore[no-untyped-def]
    """Return global 18: a triangular wave in the komi, of period 2, that rises where a komi allows a draw."""
    even = np.float32(0.0 if (size & 1) == 0 else 1.0)
    delta = np.float32(komi - (np.floor((komi - even) / np.float32(2.0)) * np.float32(2.0) + even))
    if delta < np.float32(0.5):
        return delta
    if delta < np.float32(1.5):
        return np.float32(1.0) - delta
    return delta - np.float32(2.0)


@kernel
def _write_globals(pos, ends, globals_):  # type: ignore[no-untyped-def]
    """Globals 5 to 18; 0 to 4 and the rest are 0 already."""
    komi = self_komi(pos)
    globals_[5] = komi / np.float32(20.0)
    if pos.ko_rule != KO_SIMPLE:
        globals_[6] = 1.0
        globals_[7] = 0.5 if pos.ko_rule == KO_POSITIONAL else -0.5
    if pos.suicide:
        globals_[8] = 1.0
    if pos.scoring == SCORING_TERRITORY:
        globals_[9] = 1.0
    if pos.tax != TAX_NONE:
        globals_[10] = 1.0
    if pos.tax == TAX_ALL:
        globals_[11] = 1.0
    if ends:
        globals_[14] = 1.0
    if pos.scoring == SCORING_AREA:
        globals_[18] = komi_wave(komi, np.int64(pos.size))


@kernel
def write_planes(pos, history, symmetry, scratch, spatial, globals_):  # type: ignore[no-untyped-def]
    """Write the network's input for the side to move of `pos`.

    Args:
        pos: the position record.
        history: its boards, uint64[MAX_HISTORY].
        symmetry: 0 to 7, what the network is to see the board under.
        scratch: a record of SCRATCH_DTYPE that no other thread uses.
        spatial: float32[22, size, size], C-contiguous; all of it is written.
        globals_: float32[19]; all of it is written.
    """
    flat = spatial.reshape(-1)
    start, step_x, step_y = symmetry_steps(pos.size, symmetry)
    steps = (start, step_x, step_y, np.int64(pos.stride))
    area = np.int64(pos.size) * np.int64(pos.size)
    for k in range(U(GLOBALS)):
        globals_[k] = 0.0
    _write_stones(pos, steps, flat)
    _write_bans(pos, history, steps, area, flat)
    ends = pass_would_end(pos, history)
    hidden = (
        pos.friendly_pass != 0 and pos.scoring == SCORING_AREA and pos.passes == 1 and not repeats_pass(pos, history)
    )
    shown = _write_moves(pos, hidden, steps, area, flat, globals_)
    _write_ladders(pos, history, scratch, shown, steps, area, flat)
    if pos.scoring == SCORING_AREA:
        find_areas(scratch, pos, pos.suicide)
        words = U(pos.words)
        black = pos.side_to_move == BLACK
        _write_bits(scratch.owned_black, words, steps, (18 if black else 19) * area, flat)
        _write_bits(scratch.owned_white, words, steps, (19 if black else 18) * area, flat)
    _write_globals(pos, ends and not hidden, globals_)

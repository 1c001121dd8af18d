"""Aya's 49 planes, and the 50 of its value network (formats: Hiroshi Yamashita's posts of 2016)."""

import numpy as np

from yomi.native.bits import U, lowest_bit
from yomi.native.bound_kernels import entry, load, types_of
from yomi.native.go.area import find_areas, load_sets, pass_alive
from yomi.native.go.board import (
    BLACK,
    BORDER,
    EMPTY,
    MAX_POINTS,
    MIN_SIZE,
    NO_POINT,
    PASS,
    RECENT,
    WHITE,
    copy,
    first_liberty,
    is_suicide,
    place_stone,
    second_liberty,
)
from yomi.native.go.ladder import is_captured
from yomi.native.go.planes import symmetry_steps
from yomi.native.go.scratch import SCRATCH_DTYPE
from yomi.native.go.spec import go_spec
from yomi.native.jit import kernel
from yomi.native.spec import Inputs
from yomi.native.tree.buffers import make_batch

# Aya's own life-and-death search is not public. Here ladders decide: a chain in atari is dead if its own move does not
# save it; a chain is killable if a ladder or a capture takes it. Groups are alive by Benson's algorithm, dead inside
# the enemy's pass-alive territory or as dead chains, otherwise unsettled. Territory is KataGo's area without stones.

VALUE_PLANES = 50
# First planes. "Each color" is the side to move, then the opponent, in 49 planes, and Black, then White, in 50.
LIBERTIES = 0  # of the stone's chain, 1 to 4 or more, each color
STONES = 8  # of the chain, 1 to 4 or more, each color
MOVES = 16  # the last five, newest first
KOS = 21  # ko points now, one and two moves ago
DISTANCES = 24  # from the last move, 1 to 5 or more; a chain counts as one point (common-fate graph)
CHAINS = 29  # each color: DEAD, KILLABLE, KILLING, SAVING
GROUPS = 37  # each color: stones of alive, unsettled and dead groups
TERRITORY = 43  # each color
HALF_EYES = 45  # each color
RECAPTURES = 47  # points where a new stone is captured at once, each color
BLACK_TO_MOVE = 49
# Dead chains, chains that die if the enemy moves, the moves that kill, the moves that save.
DEAD, KILLABLE, KILLING, SAVING = 0, 1, 2, 3
FAR = 5

AYA_SCRATCH_DTYPE = np.dtype(
    [
        ("go", SCRATCH_DTYPE),
        ("index", np.uint16, (MAX_POINTS,)),  # index of a point in a plane
        ("distance", np.uint16, (MAX_POINTS,)),
        ("queue", np.uint16, (MAX_POINTS,)),
        ("dead", np.uint8, (MAX_POINTS,)),  # stones of dead chains
        ("alive", np.uint8, (MAX_POINTS,)),  # pass-alive stones and territory, by color
        ("owned", np.uint8, (MAX_POINTS,)),
    ],
    align=True,
)


@kernel
def _mark(flat, s, plane, area, point):  # type: ignore[no-untyped-def]
    flat[U(plane) * area + U(s.index[U(point)])] = np.float32(1.0)


@kernel
def _write_chains(pos, s, first, area, flat):  # type: ignore[no-untyped-def]
    """Write the planes of liberties and sizes of chains. `first` is the color of the first planes."""
    for p in range(U(MAX_POINTS)):
        color = pos.color[p]
        if color == BLACK or color == WHITE:
            slot = U(pos.chain[p])
            side = U(0) if color == first else U(4)
            _mark(flat, s, U(LIBERTIES) + side + min(U(pos.liberties[slot]), U(4)) - U(1), area, p)
            _mark(flat, s, U(STONES) + side + min(U(pos.stones[slot]), U(4)) - U(1), area, p)


@kernel
def _write_history(pos, s, area, flat):  # type: ignore[no-untyped-def]
    for k in range(U(RECENT)):
        move = pos.recent_move[k]
        if move != NO_POINT and move != PASS:
            _mark(flat, s, U(MOVES) + k, area, move)
    if pos.simple_ko != NO_POINT:
        _mark(flat, s, U(KOS), area, pos.simple_ko)
    for k in range(U(pos.previous_count)):
        if pos.previous_ko[k] != NO_POINT:
            _mark(flat, s, U(KOS + 1) + k, area, pos.previous_ko[k])


@kernel
def _reach(pos, s, point, distance, end):  # type: ignore[no-untyped-def]
    """Set the distance of a point and its chain; return the new end of the queue."""
    p = U(point)
    while True:
        s.distance[p] = distance
        s.queue[end] = p
        end += U(1)
        if pos.color[p] == EMPTY:
            return end
        p = U(pos.next_stone[p])
        if p == U(point):
            return end


@kernel
def _write_distances(pos, s, area, flat):  # type: ignore[no-untyped-def]
    """Write the planes of distances from the last move in the common-fate graph. After a pass they stay empty."""
    move = pos.recent_move[0]
    if move == NO_POINT or move == PASS:
        return
    for p in range(U(MAX_POINTS)):
        s.distance[p] = MAX_POINTS
    stride = np.int64(pos.stride)
    end = _reach(pos, s, U(move), np.int64(0), U(0))
    begin = U(0)
    while begin < end:
        p = U(s.queue[begin])
        begin += U(1)
        i = np.int64(p)
        distance = np.int64(s.distance[p]) + 1
        if distance > 1:
            _mark(flat, s, U(DISTANCES - 2) + U(min(distance, FAR + 1)), area, p)
        for neighbor in (i - 1, i + 1, i - stride, i + stride):
            q = U(neighbor)
            if pos.color[q] != BORDER and s.distance[q] == MAX_POINTS:
                end = _reach(pos, s, q, distance, end)


@kernel
def _dies(b, s, stone, point):  # type: ignore[no-untyped-def]
    """Return whether the enemy captures the chain of `stone` by a move on `point`, one of its at most two liberties."""
    slot = U(b.chain[stone])
    if point == b.simple_ko:
        return False
    if b.liberties[slot] == 1:
        return True
    if is_suicide(b, np.int64(point), 3 - np.int64(b.color[stone])):
        return False
    return is_captured(b, s, stone, U(point))


@kernel
def _saves(pos, s, stone, point):  # type: ignore[no-untyped-def]
    """Return whether the owner saves the chain of `stone` by a move on `point`."""
    own = np.int64(pos.color[stone])
    if point == pos.simple_ko or is_suicide(pos, np.int64(point), own):
        return False
    b = s.board
    copy(b, pos)
    place_stone(b, np.int64(point), own)
    slot = U(b.chain[stone])
    if b.liberties[slot] != 2:
        return b.liberties[slot] > 2
    first = first_liberty(b, slot)
    second = second_liberty(b, slot)
    return not _dies(b, s, stone, first) and not _dies(b, s, stone, second)


@kernel
def _write_saving(pos, s, stone, plane, area, flat):  # type: ignore[no-untyped-def]
    """Mark the moves that save the chain of `stone`: its liberties, and captures of its neighbors."""
    slot = U(pos.chain[stone])
    stride = np.int64(pos.stride)
    for k in range(U(pos.liberties[slot])):
        point = first_liberty(pos, slot) if k == U(0) else second_liberty(pos, slot)
        if _saves(pos, s.go, stone, point):
            _mark(flat, s, plane, area, point)
    p = stone
    while True:
        i = np.int64(p)
        for neighbor in (i - 1, i + 1, i - stride, i + stride):
            q = U(neighbor)
            if pos.color[q] == 3 - pos.color[stone] and pos.liberties[U(pos.chain[q])] == 1:
                point = first_liberty(pos, U(pos.chain[q]))
                if _saves(pos, s.go, stone, point):
                    _mark(flat, s, plane, area, point)
        p = U(pos.next_stone[p])
        if p == stone:
            return


@kernel
def _read_chain(pos, s, stone, plane, area, flat):  # type: ignore[no-untyped-def]
    """Mark a chain with one or two liberties as dead or killable, and the moves that kill or save it."""
    slot = U(pos.chain[stone])
    b = s.go.board
    copy(b, pos)
    killable = False
    dead = pos.liberties[slot] == 1 and is_captured(b, s.go, stone, U(NO_POINT))
    if not dead:
        for k in range(U(pos.liberties[slot])):
            point = first_liberty(pos, slot) if k == U(0) else second_liberty(pos, slot)
            if _dies(b, s.go, stone, point):
                killable = True
                _mark(flat, s, plane + U(KILLING), area, point)
    if dead or killable:
        p = stone
        while True:
            _mark(flat, s, plane + (U(DEAD) if dead else U(KILLABLE)), area, p)
            s.dead[p] = dead
            p = U(pos.next_stone[p])
            if p == stone:
                break
    if killable:
        _write_saving(pos, s, stone, plane + U(SAVING), area, flat)


@kernel
def _write_life(pos, s, first, area, flat):  # type: ignore[no-untyped-def]
    stride = np.int64(pos.stride)
    for p in range(U(MAX_POINTS)):
        s.dead[p] = 0
    for v in range(U(6)):
        slots = pos.slots[v]
        while slots != U(0):
            slot = v * U(64) + lowest_bit(slots)
            slots &= slots - U(1)
            if pos.liberties[slot] > 2:
                continue
            i = np.int64(first_liberty(pos, slot))
            stone = U(0)
            for neighbor in (i - 1, i + 1, i - stride, i + stride):
                q = U(neighbor)
                if (pos.color[q] == BLACK or pos.color[q] == WHITE) and pos.chain[q] == slot:
                    stone = q
            side = U(0) if pos.color[stone] == first else U(4)
            _read_chain(pos, s, stone, U(CHAINS) + side, area, flat)


@kernel
def _write_groups(pos, s, first, area, flat):  # type: ignore[no-untyped-def]
    """Write the planes of life and death of groups, and of territory."""
    pass_alive(pos, s.go, BLACK, s.alive)
    pass_alive(pos, s.go, WHITE, s.owned)
    for p in range(U(MAX_POINTS)):
        if s.owned[p] == WHITE:
            s.alive[p] = WHITE
        color = pos.color[p]
        if color == BLACK or color == WHITE:
            state = U(0) if s.alive[p] == color else U(2) if s.dead[p] or s.alive[p] != 0 else U(1)
            _mark(flat, s, U(GROUPS) + state + (U(0) if color == first else U(3)), area, p)
    load_sets(s.go, pos)
    find_areas(s.go, pos, pos.suicide)
    for w in range(U(pos.words)):
        for side in range(U(2)):
            owned = s.go.owned_black[w] if (side == U(0)) == (first == BLACK) else s.go.owned_white[w]
            owned &= s.go.empty[w]
            while owned != U(0):
                _mark(flat, s, U(TERRITORY) + side, area, w * U(64) + lowest_bit(owned))
                owned &= owned - U(1)


@kernel
def _is_half_eye(pos, point, color):  # type: ignore[no-untyped-def]
    """Return whether one more move on a diagonal decides if an eye of `color` is real or false."""
    i = np.int64(point)
    stride = np.int64(pos.stride)
    allowed = 2
    for neighbor in (i - 1, i + 1, i - stride, i + stride):
        if pos.color[U(neighbor)] == BORDER:
            allowed = 1
        elif pos.color[U(neighbor)] != color:
            return False
    enemies = 0
    empty = 0
    for neighbor in (i - 1 - stride, i + 1 - stride, i - 1 + stride, i + 1 + stride):
        enemies += pos.color[U(neighbor)] == 3 - color
        empty += pos.color[U(neighbor)] == EMPTY
    return enemies == allowed - 1 and empty == 1


@kernel
def _is_recaptured(pos, s, point, color):  # type: ignore[no-untyped-def]
    """Return whether a stone of `color` on the empty `point` would be in atari, except in a ko."""
    i = np.int64(point)
    stride = np.int64(pos.stride)
    empty = 0
    for neighbor in (i - 1, i + 1, i - stride, i + stride):
        q = U(neighbor)
        empty += pos.color[q] == EMPTY
        if pos.color[q] == color and pos.liberties[U(pos.chain[q])] > 2:
            return False
    if empty > 1 or point == pos.simple_ko:
        return False
    b = s.board
    copy(b, pos)
    place_stone(b, i, np.int64(color))
    return b.color[U(point)] == color and b.liberties[U(b.chain[U(point)])] == 1 and b.simple_ko == NO_POINT


@kernel
def _write_points(pos, s, first, area, flat):  # type: ignore[no-untyped-def]
    for k in range(U(pos.empty_count)):
        point = U(pos.empties[k])
        for side in range(U(2)):
            color = first if side == U(0) else 3 - first
            if _is_half_eye(pos, point, color):
                _mark(flat, s, U(HALF_EYES) + side, area, point)
            if _is_recaptured(pos, s.go, point, color):
                _mark(flat, s, U(RECAPTURES) + side, area, point)


@kernel
def write_aya(pos, history, symmetry, scratch, planes, globals_):  # type: ignore[no-untyped-def]
    """Write Aya's planes (float32[49 or 50, size, size]) under a symmetry of `yomi.native.go.planes`.

    `scratch` is a record of AYA_SCRATCH_DTYPE; `history` and `globals_` are unused.
    """
    flat = planes.reshape(-1)
    size = np.int64(pos.size)
    area = U(size * size)
    for i in range(U(flat.shape[0])):
        flat[i] = np.float32(0.0)
    start, step_x, step_y = symmetry_steps(size, size, symmetry)
    for y in range(size):
        for x in range(size):
            scratch.index[U((y + 1) * np.int64(pos.stride) + x + 1)] = start + x * step_x + y * step_y
    first = np.int64(pos.side_to_move)
    if planes.shape[0] == VALUE_PLANES:
        first = np.int64(BLACK)
        if pos.side_to_move == BLACK:
            for i in range(U(BLACK_TO_MOVE) * area, U(VALUE_PLANES) * area):
                flat[i] = np.float32(1.0)
    _write_chains(pos, scratch, first, area, flat)
    _write_history(pos, scratch, area, flat)
    _write_distances(pos, scratch, area, flat)
    _write_life(pos, scratch, first, area, flat)
    _write_groups(pos, scratch, first, area, flat)
    _write_points(pos, scratch, first, area, flat)


_BATCH = make_batch(go_spec(MIN_SIZE), 1, Inputs.POSITIONS)
_ARGUMENTS = types_of(_BATCH, np.zeros(1, AYA_SCRATCH_DTYPE)[0], np.zeros((1, 1, 1, 1), np.float32))


@entry(_ARGUMENTS)
def encode_aya(address, rows):  # type: ignore[no-untyped-def]
    """Write the planes of a batch's positions, each under its symmetry.

    `address` points to a Batch with positions, a record of AYA_SCRATCH_DTYPE, and float32[B, 49 or 50, N, N].
    """
    batch, scratch, planes = load(address, _ARGUMENTS)
    for row in range(U(rows)):
        shown = planes[row]
        write_aya(batch.positions[row], shown, np.int64(batch.symmetry[row]), scratch, shown, shown)

"""Othello for the search: the functions of yomi.native.game on bitboards, and leaves judged by random games.

This is a third game, of new files only: nothing else in this repository knows it. All boards, 4×4, 6×6 and 8×8, lie on
a lattice of 8 columns: square (x, y) is bit 8 * y + x, which is also the move. A side without a move passes; the game
ends when neither side has one.
"""

import numpy as np

from yomi.native import game
from yomi.native.bits import U, lowest_bit, mixed, popcount, random_below
from yomi.native.bound_kernels import entry, load, types_of
from yomi.native.game import ONGOING, OVER
from yomi.native.jit import inlined, kernel
from yomi.native.packing import set_bit, unpack_bits
from yomi.native.spec import GameSpec, Inputs, packed_words
from yomi.native.tree.arrays import LEAD, SCORE, VALUE
from yomi.native.tree.buffers import make_batch

SIZES = (4, 6, 8)
PASS = 64
PLANES = 2  # that networks see: the discs of the side to move, and the opponent's
POSITION_DTYPE = np.dtype(
    [
        ("own", np.uint64),  # discs of the side to move
        ("other", np.uint64),
        ("size", np.uint8),
        ("side_to_move", np.uint8),
        ("passes", np.uint8),  # since the beginning
        ("history_length", np.uint16),  # 0: what matters of the past stands on the board
    ],
    align=True,
)
SCRATCH_DTYPE = np.dtype([("bits", np.uint64, packed_words(PLANES * max(SIZES) ** 2))])

_STEPS = (U(1), U(7), U(8), U(9))  # to neighbours on the lattice
_INNER, _ALL = U(0x7E7E7E7E7E7E7E7E), U(0xFFFFFFFFFFFFFFFF)
"""Columns that a row of discs may cross sideways, since a step from them never goes around the edge; all columns."""
_BOARDS = (U(0x0F0F0F0F), U(0x3F3F3F3F3F3F), _ALL)
"""The squares by size."""
_NONE = U(0)
_MIX = (U(0x9E3779B97F4A7C15), U(0xBF58476D1CE4E5B9), U(0x94D049BB133111EB))


@inlined
def _rows(start, other, step):  # type: ignore[no-untyped-def]
    """Return the rows of discs of `other` that begin beside `start`, in a direction and the opposite one, as bits."""
    through = other & (_ALL if step == U(8) else _INNER)
    up = (start << step) & through
    down = (start >> step) & through
    for _ in range(5):
        up |= (up << step) & through
        down |= (down >> step) & through
    return up, down


@kernel
def move_bits(own, other, size):  # type: ignore[no-untyped-def]
    """Return the squares where the side with the discs `own` may play, as bits."""
    found = _NONE
    for step in _STEPS:
        up, down = _rows(own, other, step)
        found |= (up << step) | (down >> step)
    return found & ~(own | other) & _BOARDS[(size - 4) // 2]


@kernel
def flipped(own, other, disc):  # type: ignore[no-untyped-def]
    """Return the discs of `other` that a disc (one bit) placed beside `own` turns over."""
    found = _NONE
    for step in _STEPS:
        up, down = _rows(disc, other, step)
        if (up << step) & own != _NONE:
            found |= up
        if (down >> step) & own != _NONE:
            found |= down
    return found


@kernel
def copy(target, source):  # type: ignore[no-untyped-def]
    """Make the position `target` equal to `source`."""
    target.own = source.own
    target.other = source.other
    target.size = source.size
    target.side_to_move = source.side_to_move
    target.passes = source.passes
    target.history_length = source.history_length


@kernel
def play(pos, history, move):  # type: ignore[no-untyped-def]
    """Play a legal move of the side to move: a square, or PASS; `history` is not used."""
    own, other = pos.own, pos.other
    if move != PASS:
        disc = U(1) << U(move)
        turned = flipped(own, other, disc)
        own |= turned | disc
        other &= ~turned
    else:
        pos.passes += 1
    pos.own = other
    pos.other = own
    pos.side_to_move = 3 - pos.side_to_move


@kernel
def legal_moves(pos, history, moves):  # type: ignore[no-untyped-def]
    """Write the legal moves, square by square, and return their number; PASS if there is no other."""
    left = move_bits(pos.own, pos.other, pos.size)
    moves[U(0)] = PASS
    count = 0
    while left != _NONE:
        moves[U(count)] = lowest_bit(left)
        left &= left - U(1)
        count += 1
    return max(count, 1)


@kernel
def is_over(pos):  # type: ignore[no-untyped-def]
    """Whether neither side has a move."""
    own, other = pos.own, pos.other
    return move_bits(own, other, pos.size) == _NONE and move_bits(other, own, pos.size) == _NONE


@kernel
def balance(pos):  # type: ignore[no-untyped-def]
    """Return the discs of the side to move minus the opponent's; empty squares count for nobody."""
    return np.int64(popcount(pos.own)) - np.int64(popcount(pos.other))


@kernel
def outcome(pos, history):  # type: ignore[no-untyped-def]
    """Return (state, value, score): more discs win when neither side has a move."""
    if not is_over(pos):
        return ONGOING, 0.0, 0.0
    score = balance(pos)
    return OVER, float(np.sign(score)), float(score)


@kernel
def position_key(pos, history, moves, count):  # type: ignore[no-untyped-def]
    """Return a hash of the discs and the side to move (splitmix64 over both bitboards)."""
    key = U(pos.side_to_move)
    for discs in (pos.own, pos.other):
        key += discs + _MIX[0]
        key = (key ^ (key >> U(30))) * _MIX[1]
        key = (key ^ (key >> U(27))) * _MIX[2]
        key ^= key >> U(31)
    return key


@kernel
def graph_key(pos, history, move, above, scratch):  # type: ignore[no-untyped-def]
    """Return a key of the position and how many moves led to it; nothing is ever repeated."""
    return position_key(pos, history, history, 0) ^ mixed(U(pos.passes))


@kernel
def pattern_key(pos, history, move):  # type: ignore[no-untyped-def]
    """Return a key of a move, and of what it turns over."""
    disc = _NONE if move == PASS else U(1) << U(move)
    key = (flipped(pos.own, pos.other, disc) ^ (disc << U(1)) ^ U(pos.side_to_move)) * _MIX[1]
    return key ^ (key >> U(31))


@kernel
def seen_at(size, square, symmetry):  # type: ignore[no-untyped-def]
    """Return where the network sees a square, row by row: symmetry & 1 turns columns, & 2 rows, & 4 swaps them."""
    last = np.int64(size) - 1
    x, y = np.int64(square) & 7, np.int64(square) >> 3
    if symmetry & 1:
        x = last - x
    if symmetry & 2:
        y = last - y
    if symmetry & 4:
        x, y = y, x
    return y * np.int64(size) + x


@kernel
def write_bits(pos, history, symmetry, scratch, bits, extras):  # type: ignore[no-untyped-def]
    """Write both planes as bits, row by row as seen under `symmetry`; there are no extras."""
    bits[:] = _NONE
    first = np.int64(0)
    for discs in (pos.own, pos.other):
        left = discs
        while left != _NONE:
            set_bit(bits, U(first + seen_at(pos.size, lowest_bit(left), symmetry)))
            left &= left - U(1)
        first += np.int64(pos.size) * np.int64(pos.size)


@kernel
def write_planes(pos, history, symmetry, scratch, planes, extras):  # type: ignore[no-untyped-def]
    """Write both planes [2, N, N]; there are no extras."""
    write_bits(pos, history, symmetry, scratch, scratch.bits, extras)
    unpack_bits(scratch.bits, 0, planes.reshape(planes.size))


@kernel
def policy_index(pos, move, symmetry):  # type: ignore[no-untyped-def]
    """Return where the policy [N * N + 1] has a move; the pass, which is never a choice, is last."""
    return np.int64(pos.size) * np.int64(pos.size) if move == PASS else seen_at(pos.size, move, symmetry)


@kernel
def add_ownership(pos, ownership, symmetry, sign, total):  # type: ignore[no-untyped-def]
    """Do nothing: nobody owns squares."""


for _kernel in (
    copy,
    play,
    legal_moves,
    outcome,
    position_key,
    graph_key,
    pattern_key,
    write_planes,
    write_bits,
    policy_index,
    add_ownership,
):
    game.implement(getattr(game, _kernel.__name__), POSITION_DTYPE, _kernel)


def othello_spec(size: int) -> GameSpec:
    """Return the sizes of Othello on a board of N×N."""
    area = size * size
    return GameSpec(
        name="othello",
        position_dtype=POSITION_DTYPE,
        scratch_dtype=SCRATCH_DTYPE,
        max_moves=area,
        max_history=1,
        policy_size=area + 1,
        area=0,
        planes_shape=(PLANES, size, size),
        extras_shape=(0,),
        bits=(PLANES * area,),
        cached_moves=area // 2,
        mean_moves=area / 7.0,
        mean_edges=area / 7.0,
        score_unit=float(size),
    )


@kernel
def rollout(pos, rng):  # type: ignore[no-untyped-def]
    """Play `pos` to the end with random moves."""
    passes = 0
    while passes < 2:
        left = move_bits(pos.own, pos.other, pos.size)
        count = popcount(left)
        passes = passes + 1 if count == _NONE else 0
        move = U(PASS)
        if count != _NONE:
            for _ in range(random_below(rng, count)):
                left &= left - U(1)
            move = lowest_bit(left)
        play(pos, rng, move)


_ARGUMENTS = types_of(
    make_batch(othello_spec(SIZES[0]), 1, Inputs.POSITIONS), 1, np.ones(1, np.uint64), np.zeros(1, POSITION_DTYPE)[0]
)


@entry(_ARGUMENTS)
def evaluate_by_rollouts(address, rows):  # type: ignore[no-untyped-def]
    """Judge a batch's first `rows` rows by random games; all moves get the same prior.

    At `address` lie a Batch with positions, the number of games from each, the state of the random numbers (uint64[1],
    never zero), and a record that the games are played on.
    """
    batch, rollouts, rng, scratch = load(address, _ARGUMENTS)
    for row in range(U(rows)):
        batch.logits[row] = np.float32(0.0)
        root = batch.positions[row]
        wins, discs = 0.0, 0
        for _ in range(rollouts):
            copy(scratch, root)
            rollout(scratch, rng)
            score = balance(scratch) if scratch.side_to_move == root.side_to_move else -balance(scratch)
            wins += float(np.sign(score))
            discs += score
        batch.values[row] = np.float32(0.0)
        batch.values[row, U(VALUE)] = np.float32(wins / rollouts)
        batch.values[row, U(SCORE)] = batch.values[row, U(LEAD)] = np.float32(discs / rollouts)

"""Data of the search at leaves: positions by ply, a transposition table, and statistics that order moves. One thread
owns all of it.
"""

from typing import Any, NamedTuple

import numpy as np

from yomi.native.bits import U
from yomi.native.bound_kernels import load, types_of
from yomi.native.jit import inlined, kernel
from yomi.native.shogi.effects import CAPTURE, VALUE
from yomi.native.shogi.nnue import find_changes, make_inputs, no_changes
from yomi.native.shogi.position import FIRST_DROP, MAX_MOVES, POSITION_DTYPE, copy, pass_move, play_checked
from yomi.native.shogi.spec import shogi_spec
from yomi.native.shogi.tables import PAWN
from yomi.native.sparse.nnue import NnueNetwork, NnueScratch, make_scratch, network_of, static_value
from yomi.native.spec import Inputs
from yomi.native.tree.buffers import make_batch

# Kernels get the data by one address (yomi.native.bound_kernels): recursive kernels would otherwise pass hundreds of
# words with each call.
PLIES = 64  # maximum positions of a line, with the leaf
# Indices in `counters`: nodes of this search, their limit, whether it was reached, best move of the current iteration
# (0: none); results: value and completed depth; nodes of all searches.
NODES, LIMIT, IS_STOPPED, BEST, VALUE_FOUND, DEPTH, ALL_NODES = range(7)
COUNTERS = 8
TABLE_BITS = 17  # the table has 1 << TABLE_BITS entries of 16 bytes
# Bounds: the true value is at most, at least, or equal to the stored value.
UPPER, LOWER, EXACT = 1, 2, 3
NO_VALUE = 32767  # static value of a table entry if unknown
PIECE_SQUARES = 32 * 128
HISTORY_LIMIT = 1 << 13


class LeafScratch(NamedTuple):
    """Working memory of one thread."""

    network: NnueScratch
    positions: Any  # POSITION_DTYPE[PLIES]
    history: Any  # uint64[2 * PLIES + 2]: starts at the leaf, so that only repetitions after it are found
    moves: Any  # uint16[PLIES, MAX_MOVES]
    scores: Any  # int32[PLIES, MAX_MOVES]: the greatest is tried first
    is_pass: Any  # uint8[PLIES]: 1 if a pass led to the position
    statics: Any  # int32[PLIES]: static values of the line
    killers: Any  # uint16[PLIES, 2]: quiet moves that refuted another move at this ply
    quiets: Any  # int32[PIECE_SQUARES]: success of quiet moves by piece and target
    table: Any  # uint64[entries, 2]: key; move, value, static value, depth and bound
    counters: Any  # int64[COUNTERS]
    reductions: Any  # int32[64 * 64]: reduction of late moves in plies, by depth and number of the move


class LeafSettings(NamedTuple):
    """Settings of the search at leaves."""

    nodes: Any  # int64[1]: maximum nodes of a search
    numbers: Any  # float32[3]: SCALE, WEIGHT, BOOST


# Indices in `numbers`: value that maps to tanh(1 / 2); weight of the search's value against the batch's value; increase
# of the best move's logit.
SCALE, WEIGHT, BOOST = range(3)


def make_leaf_scratch(network: NnueNetwork) -> LeafScratch:
    number = np.log(np.maximum(np.arange(64), 1))
    return LeafScratch(
        make_scratch(network, PLIES),
        np.zeros(PLIES, POSITION_DTYPE),
        np.zeros(2 * PLIES + 2, np.uint64),
        np.zeros((PLIES, MAX_MOVES), np.uint16),
        np.zeros((PLIES, MAX_MOVES), np.int32),
        np.zeros(PLIES, np.uint8),
        np.zeros(PLIES, np.int32),
        np.zeros((PLIES, 2), np.uint16),
        np.zeros(PIECE_SQUARES, np.int32),
        np.zeros((1 << TABLE_BITS, 2), np.uint64),
        np.zeros(COUNTERS, np.int64),
        (0.8 + np.outer(number, number) / 1.6).astype(np.int32).ravel(),
    )


def make_settings(nodes: int, scale: float, weight: float, boost: float) -> LeafSettings:
    return LeafSettings(np.array([nodes], np.int64), np.array([scale, weight, boost], np.float32))


def _example() -> NnueNetwork:
    numbers = {"rows": np.zeros((1, 128), np.int16), "bias": np.zeros(128, np.int16)}
    for name, shape in (("first", (1, 256)), ("second", (1, 1)), ("last", (1, 1))):
        numbers |= {name: np.zeros(shape, np.int8), f"{name}_bias": np.zeros(1, np.int32)}
    return network_of(make_inputs("K-P"), numbers, 1)


EXAMPLE = _example()  # A network of the types that kernels take, with one row
# Types of batch, network, scratch and settings, stored at one address.
ARGUMENTS = types_of(
    make_batch(shogi_spec(), 1, Inputs.POSITIONS),
    EXAMPLE,
    make_leaf_scratch(EXAMPLE),
    make_settings(1, 1.0, 1.0, 0.0),
)


@kernel
def static_at(address, ply):  # type: ignore[no-untyped-def]
    """Return the network's value of the position at a ply, for the side to move."""
    _, network, leaf, _ = load(address, ARGUMENTS)
    return static_value(network, leaf.network, leaf.positions, ply)


@kernel
def play_at(address, ply, move, check):  # type: ignore[no-untyped-def]
    """Set the position at ply + 1 by a legal move; `check`: whether it gives check."""
    _, network, leaf, _ = load(address, ARGUMENTS)
    pos = leaf.positions[U(ply)]
    find_changes(network.inputs, pos, move, leaf.network.changes, ply + 1)
    leaf.network.is_summed[U(ply + 1), U(0)] = 0
    leaf.network.is_summed[U(ply + 1), U(1)] = 0
    leaf.is_pass[U(ply + 1)] = 0
    after = leaf.positions[U(ply + 1)]
    copy(after, pos)
    play_checked(after, leaf.history, move, check)


@kernel
def pass_at(address, ply):  # type: ignore[no-untyped-def]
    _, _, leaf, _ = load(address, ARGUMENTS)
    no_changes(leaf.network.changes, ply + 1)
    leaf.network.is_summed[U(ply + 1), U(0)] = 0
    leaf.network.is_summed[U(ply + 1), U(1)] = 0
    leaf.is_pass[U(ply + 1)] = 1
    after = leaf.positions[U(ply + 1)]
    copy(after, leaf.positions[U(ply)])
    pass_move(after, leaf.history)


@kernel
def store(table, key, move, value, static, depth, bound):  # type: ignore[no-untyped-def]
    """Write a position into the table, over the entry in its place."""
    slot = key & U(table.shape[0] - 1)
    if move == 0 and table[slot, U(0)] == key:
        move = table[slot, U(1)] & U(0xFFFF)
    word = U(move) | (U(value + 32768) << U(16)) | (U(static + 32768) << U(32))
    table[slot, U(0)] = key
    table[slot, U(1)] = word | (U(depth) << U(48)) | (U(bound) << U(56))


@inlined
def lookup(table, key):  # type: ignore[no-untyped-def]
    """Return (move, value, static value, depth, bound) of a position; bound 0 if it is not in the table."""
    slot = key & U(table.shape[0] - 1)
    if table[slot, U(0)] != key:
        return 0, 0, NO_VALUE, 0, 0
    word = table[slot, U(1)]
    return (
        np.int64(word & U(0xFFFF)),
        np.int64((word >> U(16)) & U(0xFFFF)) - 32768,
        np.int64((word >> U(32)) & U(0xFFFF)) - 32768,
        np.int64((word >> U(48)) & U(0xFF)),
        np.int64(word >> U(56)),
    )


@inlined
def is_quiet(pos, move):  # type: ignore[no-untyped-def]
    """Return whether a move neither captures nor promotes a pawn."""
    if pos.board[U(move) & U(127)] != 0:
        return False
    return U(move) >> U(14) == U(0) or U(pos.board[(U(move) >> U(7)) & U(127)]) & U(15) != U(PAWN)


@inlined
def place_of(pos, move):  # type: ignore[no-untyped-def]
    """Return the index in `quiets` of a move's piece and target. A drop counts as a move of its piece."""
    origin = (U(move) >> U(7)) & U(127)
    code = U(pos.board[origin]) if origin < U(FIRST_DROP) else origin - U(80) + (U(pos.side_to_move) - U(1)) * U(16)
    return (code << U(7)) | (U(move) & U(127))


@kernel
def score_moves(address, ply, count, table_move):  # type: ignore[no-untyped-def]
    _, _, leaf, _ = load(address, ARGUMENTS)
    pos = leaf.positions[U(ply)]
    killers = leaf.killers[U(ply)]
    for i in range(U(count)):
        move = leaf.moves[U(ply), i]
        if move == table_move:
            score = 1 << 30
        elif not is_quiet(pos, move):
            score = capture_score(pos, move)
        elif move == killers[U(0)]:
            score = 1 << 18
        elif move == killers[U(1)]:
            score = (1 << 18) - 1
        else:
            score = np.int64(leaf.quiets[place_of(pos, move)])
        leaf.scores[U(ply), i] = score


@inlined
def capture_score(pos, move):  # type: ignore[no-untyped-def]
    """Return the score of a capture or promotion: most valuable victim, then least valuable attacker."""
    victim = U(pos.board[U(move) & U(127)]) & U(15)
    attacker = U(pos.board[(U(move) >> U(7)) & U(127)]) & U(15)
    promoted = 400 * np.int64(U(move) >> U(14))
    return (1 << 20) + 8 * (np.int64(CAPTURE[victim]) + promoted) - np.int64(VALUE[attacker])


@inlined
def take_best(moves, scores, i, count):  # type: ignore[no-untyped-def]
    """Move the best of the moves from `i` on to place `i`; return it."""
    best = U(i)
    for k in range(U(i) + U(1), U(count)):
        if scores[k] > scores[best]:
            best = k
    move, score = moves[best], scores[best]
    moves[best], scores[best] = moves[U(i)], scores[U(i)]
    moves[U(i)], scores[U(i)] = move, score
    return move


@kernel
def reward(address, ply, depth, searched):  # type: ignore[no-untyped-def]
    """Reward the quiet move at place `searched`, and penalise the quiet moves tried before it."""
    _, _, leaf, _ = load(address, ARGUMENTS)
    pos = leaf.positions[U(ply)]
    move = leaf.moves[U(ply), U(searched)]
    killers = leaf.killers[U(ply)]
    if killers[U(0)] != move:
        killers[U(1)] = killers[U(0)]
        killers[U(0)] = move
    bonus = min(32 * depth * depth, 1024)
    for i in range(U(searched + 1)):
        tried = leaf.moves[U(ply), i]
        if is_quiet(pos, tried):
            place = place_of(pos, tried)
            old = np.int64(leaf.quiets[place])
            change = bonus if i == U(searched) else -bonus
            leaf.quiets[place] = old + change - old * bonus // HISTORY_LIMIT

"""Working memory of one search thread: the line of positions, statistics of moves, and the moves of the root."""

from typing import Any, NamedTuple

import numpy as np

from yomi.native.alphabeta.nnue import (
    NnueNetwork,
    NnueScratch,
    find_changes,
    make_inputs,
    make_scratch,
    network_of,
    no_changes,
    static_value,
)
from yomi.native.alphabeta.table import make_table, prefetch
from yomi.native.bits import U
from yomi.native.bound_kernels import load, types_of
from yomi.native.jit import inlined, kernel
from yomi.native.shogi.position import (
    FIRST_DROP,
    MAX_HISTORY,
    MAX_MOVES,
    POSITION_DTYPE,
    SIDE_BIT,
    copy,
    pass_move,
    play_checked,
)
from yomi.native.shogi.tables import HAND_INDEX, HAND_SHIFT, ZOBRIST

PLIES = 128  # maximum positions of a line, with the root
# Indices in `counters`.
NODES = 0  # of this search
LIMIT = 1  # nodes that end the search
IS_STOPPED = 2  # 1: the search ends; its unfinished results mean nothing
MAY_STOP = 3  # 0: the search continues, whatever the limit or `stop`
DEPTH = 4  # of the iteration
ALPHA, BETA = 5, 6  # the window at the root
FIRST = 7  # root moves before this are not searched (several best moves)
ROOT_MOVES = 8  # number of root moves
GENERATION = 9  # of this search, for the table
DEEPEST = 10  # plies of the longest line
VALUE_FOUND = 11  # result of the iteration
WINDOW = 12  # width of the window at the root
NULL_FROM = 13  # the ply from which null moves are tried again, while one is verified
TABLE_SUCCESS = 14  # how often the table's move was the best lately
CHANGES = 15  # how often another root move became the best
COUNTERS = 16

TRIED = 32  # moves of a node whose statistics are penalised if a later one is better
SQUARES = 81
PIECE_SQUARES = 32 * SQUARES
BEFORE = 6  # frames before that of the root: empty, so that no ply needs a test
NEAR_ROOT = 5  # plies with statistics of their own
PAWN_ROWS = 1 << 13  # rows of `with_pawns`: places of pawns, hashed
# Limits of the statistics' absolute values.
CORRECTIONS, CORRECTION_BITS, CORRECTION_LIMIT = 4, 16, 1024
MOVE_LIMIT, FOLLOW_LIMIT, CAPTURE_LIMIT, PAWN_LIMIT = 7183, 30000, 10692, 8192

# Statistics at the start of a game. Most moves fail later: negative values leave more of them out from the beginning.
FIRST_STATISTICS = {
    "by_move": 0,
    "follows": -523,
    "with_pawns": -1238,
    "captures": -678,
    "corrections": 0,
    "errors": 6,
}
FIRST_NEAR_ROOT = 98  # the same for `near_root`, at the start of a search

# One ply of the line that is searched.
FRAME_DTYPE = np.dtype(
    [
        # What led to the position.
        ("played", np.int32),  # row of the move in `follows`; 0: a pass, or nothing
        ("piece_square", np.int32),  # of the move
        ("move", np.uint16),  # 0: a pass, or nothing
        ("captured", np.uint8),  # type of the captured piece, or 0
        ("is_pawn", np.uint8),  # 1 if the move was a pawn's or a promotion
        # The position.
        ("in_check", np.uint8),
        ("is_known", np.uint8),  # 1 if the table had it
        ("is_principal", np.uint8),  # 1 if it is or was on a principal variation
        ("is_on_line", np.uint8),  # 1 if only moves of the root's best line led to it
        ("static", np.int32),  # static value, corrected; in check that of two plies before
        ("pawns", np.int32),  # row in `with_pawns`
        # Its search.
        ("excluded", np.uint16),  # a move that is not searched; 0: none
        ("count", np.int32),  # of moves tried
        ("statistics", np.int32),  # of the move that is searched
        ("reduction", np.int32),  # of the move that is searched, in plies
        ("failures", np.int32),  # moves at this ply that were too good, since its grandparent was entered
    ],
    align=True,
)


# Statistics that all threads of a search write.
SHARED = ("follows", "with_pawns", "corrections", "errors")


class Thread(NamedTuple):
    """One thread's working memory."""

    network: NnueScratch
    positions: Any  # POSITION_DTYPE[PLIES]: the root first
    frames: Any  # FRAME_DTYPE[BEFORE + PLIES]: that of the root is at BEFORE
    history: Any  # uint64[MAX_HISTORY + 2 * PLIES]: the game, then the line
    moves: Any  # uint16[PLIES, MAX_MOVES]
    scores: Any  # int32[PLIES, MAX_MOVES]: the greatest is tried first
    stages: Any  # int64[PLIES, 16]: progress of yomi.native.alphabeta.ordering
    tried: Any  # uint16[PLIES, TRIED]: moves that were searched without being the best
    lines: Any  # uint16[PLIES, PLIES]: best line from each ply; 0 ends it
    by_move: Any  # int16[2 * (1 << 14)]: success of quiet moves by side, origin and target
    near_root: Any  # int16[NEAR_ROOT, 1 << 14]: of quiet moves by ply, origin and target
    follows: Any  # int16[4 * PIECE_SQUARES * PIECE_SQUARES]: of quiet moves after an earlier move of the line
    with_pawns: Any  # int16[PAWN_ROWS, PIECE_SQUARES]: of quiet moves by the places of pawns
    captures: Any  # int16[PIECE_SQUARES * 16]: of captures and promotions, by piece, target and captured type
    checks: Any  # uint64[32]: squares that give check by type, while quiet moves are scored
    corrections: Any  # int16[CORRECTIONS, 2, 1 << CORRECTION_BITS]: error of static values; see `correction`
    errors: Any  # int16[PIECE_SQUARES * PIECE_SQUARES]: the same, by two moves of the line
    reductions: Any  # int32[MAX_MOVES]: see `reduction`
    root_moves: Any  # uint16[MAX_MOVES]: best first
    root_scores: Any  # int32[MAX_MOVES]: values of the current iteration; -INFINITE: not searched, or not better
    root_nodes: Any  # int64[MAX_MOVES]: nodes below each root move
    root_lines: Any  # uint16[MAX_MOVES, PLIES]: line of each root move that was the best; 0 ends it
    counters: Any  # int64[COUNTERS]
    stop: Any  # int64[1]: 1 asks all threads to end


def make_thread(network: NnueNetwork, stop: Any, first: Thread | None = None) -> Thread:
    """Return the working memory of a thread.

    Threads of one search share `stop` (int64[1]), and some statistics of its `first` thread. They write without locks.
    """
    thread = Thread(
        make_scratch(network, PLIES),
        np.zeros(PLIES, POSITION_DTYPE),
        np.zeros(BEFORE + PLIES, FRAME_DTYPE),
        np.zeros(MAX_HISTORY + 2 * PLIES, np.uint64),
        np.zeros((PLIES, MAX_MOVES), np.uint16),
        np.zeros((PLIES, MAX_MOVES), np.int32),
        np.zeros((PLIES, 16), np.int64),
        np.zeros((PLIES, TRIED), np.uint16),
        np.zeros((PLIES, PLIES), np.uint16),
        np.zeros(2 << 14, np.int16),
        np.zeros((NEAR_ROOT, 1 << 14), np.int16),
        np.zeros(4 * PIECE_SQUARES * PIECE_SQUARES, np.int16),
        np.zeros((PAWN_ROWS, PIECE_SQUARES), np.int16),
        np.zeros(PIECE_SQUARES * 16, np.int16),
        np.zeros(32, np.uint64),
        np.zeros((CORRECTIONS, 2, 1 << CORRECTION_BITS), np.int16),
        np.zeros(PIECE_SQUARES * PIECE_SQUARES, np.int16),
        (21.6 * np.log(np.maximum(np.arange(MAX_MOVES), 1))).astype(np.int32),
        np.zeros(MAX_MOVES, np.uint16),
        np.zeros(MAX_MOVES, np.int32),
        np.zeros(MAX_MOVES, np.int64),
        np.zeros((MAX_MOVES, PLIES), np.uint16),
        np.zeros(COUNTERS, np.int64),
        stop,
    )
    return thread if first is None else thread._replace(**{name: getattr(first, name) for name in SHARED})


def _example() -> NnueNetwork:
    numbers = {"rows": np.zeros((1, 128), np.int16), "bias": np.zeros(128, np.int16)}
    for name, shape in (("first", (1, 1, 256)), ("second", (1, 1, 1)), ("last", (1, 1, 1))):
        numbers |= {name: np.zeros(shape, np.int8), f"{name}_bias": np.zeros((1, 1), np.int32)}
    return network_of(make_inputs("K-P"), numbers, 1)


EXAMPLE = _example()  # a network of the types that kernels take, with one row
# Types of network, thread and table, stored at one address: recursive kernels would otherwise pass hundreds of words
# with each call.
ARGUMENTS = types_of(EXAMPLE, make_thread(EXAMPLE, np.zeros(1, np.int64)), make_table(0))


@inlined
def key_after(pos, move):  # type: ignore[no-untyped-def]
    """Return the key of the position after a legal move, without playing it."""
    us = U(pos.side_to_move) - U(1)
    to = U(move) & U(127)
    origin = (U(move) >> U(7)) & U(127)
    key, hands = pos.board_key, pos.hands
    if origin >= U(FIRST_DROP):
        kind = origin - U(FIRST_DROP - 1)
        code = kind | (us << U(4))
        hands -= U(1) << U(HAND_SHIFT[us * U(7) + U(HAND_INDEX[kind])])
    else:
        code = U(pos.board[origin])
        key ^= ZOBRIST[code * U(SQUARES) + origin]
        code += (U(move) >> U(14)) << U(3)
        captured = U(pos.board[to])
        if captured != U(0):
            key ^= ZOBRIST[captured * U(SQUARES) + to]
            hands += U(1) << U(HAND_SHIFT[us * U(7) + U(HAND_INDEX[captured & U(15)])])
    if us == U(0):
        hands |= U(SIDE_BIT)
    mixed = (hands + U(1)) * U(0x9E3779B97F4A7C15)
    mixed = (mixed ^ (mixed >> U(29))) * U(0xBF58476D1CE4E5B9)
    return key ^ ZOBRIST[code * U(SQUARES) + to] ^ mixed ^ (mixed >> U(32))


@kernel
def static_at(address, ply):  # type: ignore[no-untyped-def]
    network, thread, _ = load(address, ARGUMENTS)
    return static_value(network, thread.network, thread.positions, ply)


@kernel
def play_at(address, ply, move, check):  # type: ignore[no-untyped-def]
    """Play a move of the position at a ply, which counts as a node. `check`: whether it gives check."""
    network, thread, table = load(address, ARGUMENTS)
    thread.counters[U(NODES)] += 1
    prefetch(table, key_after(thread.positions[U(ply)], move))
    pos, after = thread.positions[U(ply)], thread.positions[U(ply + 1)]
    copy(after, pos)
    play_checked(after, thread.history, move, check)
    find_changes(network.inputs, pos, move, thread.network.changes, ply + 1)
    thread.network.is_summed[U(ply + 1), U(0)] = 0
    thread.network.is_summed[U(ply + 1), U(1)] = 0
    frame, next_frame = thread.frames[U(ply + BEFORE)], thread.frames[U(ply + BEFORE + 1)]
    place = piece_square(pos, move)
    quiet = is_quiet(pos, move)
    next_frame.played = place + U(PIECE_SQUARES) * (U(2) * U(frame.in_check) + U(not quiet))
    next_frame.piece_square = place
    next_frame.move = move
    next_frame.captured = U(pos.board[U(move) & U(127)]) & U(15)
    next_frame.is_pawn = U(move) >> U(14) != U(0) or (place // U(SQUARES)) & U(15) == U(1)


@kernel
def pass_at(address, ply):  # type: ignore[no-untyped-def]
    _, thread, _ = load(address, ARGUMENTS)
    no_changes(thread.network.changes, ply + 1)
    thread.network.is_summed[U(ply + 1), U(0)] = 0
    thread.network.is_summed[U(ply + 1), U(1)] = 0
    frame = thread.frames[U(ply + BEFORE + 1)]
    frame.played = 0
    frame.piece_square = 0
    frame.move = 0
    frame.captured = 0
    frame.is_pawn = 0
    after = thread.positions[U(ply + 1)]
    copy(after, thread.positions[U(ply)])
    pass_move(after, thread.history)


@inlined
def piece_square(pos, move):  # type: ignore[no-untyped-def]
    """Return an index of a move's piece, promoted if it promotes, and target. A drop counts as a move of its piece."""
    origin = (U(move) >> U(7)) & U(127)
    us = U(pos.side_to_move) - U(1)
    code = (origin - U(FIRST_DROP - 1)) | (us << U(4))
    if origin < U(FIRST_DROP):
        code = U(pos.board[origin]) + ((U(move) >> U(14)) << U(3))
    return code * U(SQUARES) + (U(move) & U(127))


@inlined
def is_quiet(pos, move):  # type: ignore[no-untyped-def]
    """Return whether a move is neither a capture nor the promotion of a pawn."""
    if pos.board[U(move) & U(127)] != 0:
        return False
    return U(move) >> U(14) == U(0) or U(pos.board[(U(move) >> U(7)) & U(127)]) & U(15) != U(1)

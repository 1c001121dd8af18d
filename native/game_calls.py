"""The game's side of a search: entries that the tree calls by address, compiled for each game.

All work on the `Board` of one search thread and return results in its arrays.
"""

import functools
import types
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from yomi.native.bits import U
from yomi.native.bound_kernels import ANSWERING_ENTRY, ROWS_ENTRY, Entry, ask, load, store, type_of
from yomi.native.game import (
    HOMES,
    IMPLEMENTATIONS,
    OVER,
    OVER_UNSCORED,
    add_ownership,
    copy,
    graph_key,
    legal_moves,
    outcome,
    pattern_key,
    play,
    policy_index,
    position_key,
    write_bits,
    write_planes,
)
from yomi.native.jit import IS_PLAIN, inlined, kernel, mark_kernel

# Each call does enough work (replay a line, describe a leaf) that its cost does not matter.

FACTS_DTYPE = np.dtype(
    [
        ("above", np.uint64),  # graph key of the position before the last move; written by the caller
        ("graph_key", np.uint64),
        ("pattern_key", np.uint64),
        ("position_key", np.uint64),
        ("value", np.float64),  # of a finished game, for the side to move
        ("score", np.float64),
        ("moves", np.int64),  # number of legal moves; 0 if the game is over
        ("has_indices", np.int64),  # 1 if `indices` is valid
    ],
    align=True,
)
PATTERN, GRAPH = 1, 2  # flags of `step`: the keys to compute


class Board(NamedTuple):
    """The arrays of one search thread's game.

    H is the length of the history, M the maximum number of legal moves, D the maximum length of a line.
    """

    root: Any  # records[1]: the root's position
    position: Any  # records[1]: the current position
    history: Any  # uint64[H]: begins with the root's history
    scratch: Any  # records[1]: working memory of write_planes and write_bits
    line: Any  # uint16[D]: moves from the root to the current position; written by the tree
    moves: Any  # uint16[M]: legal moves of the current position
    indices: Any  # uint16[M]: their policy indices without symmetry
    facts: Any  # FACTS_DTYPE[1]
    ownership: Any  # float64[2 + M, 2, A + 2]: see Worker.ownership


class GameCalls(NamedTuple):
    """Addresses of a Board and of a game's entries. Kernels call the entries by address."""

    board: Any  # int64[5]: of the Board, and of the entries replay, step, describe and list_moves
    rows: Any  # int64[n, 2]: table of the Calls that write a row of a batch
    ownership: Any  # int64[2]: of the entry add_row_ownership and its arguments


@inlined
def replay(calls, depth):  # type: ignore[no-untyped-def]
    """Set the current position to the position after `depth` moves of the line."""
    ask(calls.board[U(1)], calls.board[U(0)], depth, 0)


@inlined
def step(calls, depth, wanted):  # type: ignore[no-untyped-def]
    """Play move number `depth` of the line, and write the wanted keys (flags PATTERN and GRAPH) into the facts."""
    ask(calls.board[U(2)], calls.board[U(0)], depth, wanted)


@inlined
def describe(calls, is_root, wants_indices):  # type: ignore[no-untyped-def]
    """Return the state of the current position (yomi.native.game.outcome); write its facts, legal moves and indices."""
    # A finished game has value and score only. A root never counts as finished.
    return ask(calls.board[U(3)], calls.board[U(0)], is_root, wants_indices)


@inlined
def list_moves(calls):  # type: ignore[no-untyped-def]
    """Write the legal moves of the current position and return their number."""
    return ask(calls.board[U(4)], calls.board[U(0)], 0, 0)


@inlined
def add_row_ownership(calls, row, divisor):  # type: ignore[no-untyped-def]
    """Add the ownership of a batch's row, divided by `divisor`, to the sums of the current leaf."""
    ask(calls.ownership[U(0)], calls.ownership[U(1)], row, divisor)


# Argument type of the functions below. Each game's entries replace it by their own.
KIND: Any = None


def _replay(address, depth, _):  # type: ignore[no-untyped-def]
    board = load(address, KIND)[0]
    pos = board.position[0]
    copy(pos, board.root[0])
    for i in range(U(depth)):
        play(pos, board.history, board.line[i])
    return 0


def _step(address, depth, wanted):  # type: ignore[no-untyped-def]
    board = load(address, KIND)[0]
    pos = board.position[0]
    move = board.line[U(depth)]
    facts = board.facts[0]
    if wanted & PATTERN:
        facts.pattern_key = U(pattern_key(pos, board.history, move))
    play(pos, board.history, move)
    if wanted & GRAPH:
        facts.graph_key = U(graph_key(pos, board.history, move, facts.above, board.scratch[0]))
    return 0


def _describe(address, is_root, wants_indices):  # type: ignore[no-untyped-def]
    board = load(address, KIND)[0]
    pos = board.position[0]
    facts = board.facts[0]
    state, value, score = outcome(pos, board.history)
    facts.value = value
    facts.score = score
    facts.moves = 0
    facts.has_indices = 0
    # A finished game needs neither moves nor keys.
    if state == OVER and is_root == 0:
        return state
    count = legal_moves(pos, board.history, board.moves)
    facts.position_key = U(position_key(pos, board.history, board.moves, count))
    if state == OVER_UNSCORED and is_root == 0:
        return state
    facts.moves = count
    facts.has_indices = wants_indices
    if wants_indices != 0:
        for i in range(U(count)):
            board.indices[i] = policy_index(pos, board.moves[i], 0)
    return state


def _list_moves(address, _, __):  # type: ignore[no-untyped-def]
    board = load(address, KIND)[0]
    return legal_moves(board.position[0], board.history, board.moves)


def _write_indices(address, row):  # type: ignore[no-untyped-def]
    board, batch = load(address, KIND)
    r = U(row)
    symmetry = np.int64(batch.symmetry[r])
    count = U(board.facts[0].moves)
    if symmetry == 0 and board.facts[0].has_indices != 0:
        for i in range(count):
            batch.indices[r, i] = board.indices[i]
    else:
        for i in range(count):
            batch.indices[r, i] = policy_index(board.position[0], board.moves[i], symmetry)


def _write_row_bits(address, row):  # type: ignore[no-untyped-def]
    board, batch = load(address, KIND)
    r = U(row)
    pos, symmetry = board.position[0], np.int64(batch.symmetry[r])
    write_bits(pos, board.history, symmetry, board.scratch[0], batch.bits[r], batch.extras[r])


def _write_row_planes(address, row):  # type: ignore[no-untyped-def]
    board, batch = load(address, KIND)
    r = U(row)
    pos, symmetry = board.position[0], np.int64(batch.symmetry[r])
    write_planes(pos, board.history, symmetry, board.scratch[0], batch.planes[r], batch.extras[r])


def _write_row_position(address, row):  # type: ignore[no-untyped-def]
    board, batch = load(address, KIND)
    copy(batch.positions[U(row)], board.position[0])


def _add_row_ownership(address, row, divisor):  # type: ignore[no-untyped-def]
    board, batch = load(address, KIND)
    r = U(row)
    sign = 1.0 / np.float64(divisor)
    add_ownership(board.root[0], batch.ownership[r], np.int64(batch.symmetry[r]), sign, board.ownership[1, 0])
    return 0


def _of_game(function: Callable[..., Any], dtype: Any, kind: Any = None) -> Callable[..., Any]:
    """Return a function that calls the kernels of a game, given by its record type, in place of yomi.native.game's."""
    form = types.FunctionType(function.__code__, {**function.__globals__, **IMPLEMENTATIONS[dtype], "KIND": kind})
    if not IS_PLAIN:
        # The name becomes part of the symbol in machine code, which must differ between games.
        form.__qualname__ = form.__name__ = f"{HOMES[dtype].parent.name}{function.__name__}"
        mark_kernel(form, HOMES[dtype])
    return form


@functools.cache
def _entry(function: Callable[..., Any], kind: Any, dtype: Any) -> Entry:
    """Return a function's entry for a game, given by its record type."""
    signature = ROWS_ENTRY if function.__code__.co_argcount == 2 else ANSWERING_ENTRY
    return Entry(_of_game(function, dtype, kind), kind, signature)


@kernel
def _count_moves(board):  # type: ignore[no-untyped-def]
    ask(board[U(1)], board[U(0)], 0, 0)
    return ask(board[U(4)], board[U(0)], 0, 0)


class BoundBoard:
    """A Board together with the addresses of its game's compiled functions."""

    def __init__(self, board: Board) -> None:
        """Store the Board; compile entries that are not in the cache."""
        self.board = board
        self._kind = type_of((board,))
        self._stored = store(self._kind, board)
        asked = (_replay, _step, _describe, _list_moves)
        entries = [_entry(function, self._kind, board.root.dtype) for function in asked]
        self.table = np.array([self._stored.address, *(entry.address for entry in entries)], np.int64)

    def with_batch(self, batch: Any) -> tuple[GameCalls, tuple[Any, ...]]:
        """Return the calls for a Batch, and the objects that must outlive them.

        A row is written as indices, bits, planes and position, as far as the Batch has arrays for them.
        """
        kind = type_of((self.board, batch))
        stored = store(kind, self.board, batch)
        writers = [_write_indices]
        writers += [_write_row_bits] if batch.bits.shape[1] else []
        writers += [_write_row_planes] if batch.planes.shape[1] else []
        writers += [_write_row_position] if batch.positions.size else []
        dtype = self.board.root.dtype
        rows = np.array([[_entry(writer, kind, dtype).address, stored.address] for writer in writers], np.int64)
        ownership = np.array([_entry(_add_row_ownership, kind, dtype).address, stored.address], np.int64)
        return GameCalls(self.table, rows, ownership), (self, stored)

    def count_moves(self) -> int:
        """Write the legal moves of the root into `board.moves` and return their number."""
        return int(_count_moves(self.table))


# -- positions of one game ---------------------------------------------------------------------------------------------


@functools.cache
def _game_kernel(function: Callable[..., Any], dtype: Any) -> Callable[..., Any]:
    return kernel(_of_game(function, dtype))


def _for_every_game(function: Callable[..., Any]) -> Callable[..., Any]:
    """Make a function of an array of positions a kernel, compiled for each game."""

    @functools.wraps(function)
    def run(positions: Any, *arguments: Any) -> None:
        _game_kernel(function, positions.dtype)(positions, *arguments)

    return run


@_for_every_game
def encode_positions(positions, history, scratch, planes, extras):  # type: ignore[no-untyped-def]
    """Write planes and extras (float32[n, ...]) of positions of one game, which share a history."""
    for i in range(U(positions.size)):
        write_planes(positions[i], history, 0, scratch[0], planes[i], extras[i])


@_for_every_game
def index_moves(positions, moves, counts, indices):  # type: ignore[no-untyped-def]
    """Write the policy indices (uint16[n, K]) of counts[i] moves of each position."""
    for i in range(U(positions.size)):
        for k in range(U(counts[i])):
            indices[i, k] = policy_index(positions[i], moves[i, k], 0)


@_for_every_game
def index_legal_moves(positions, history, symmetry, moves, counts, indices):  # type: ignore[no-untyped-def]
    """Write the legal moves (uint16[n, K]), their numbers and policy indices of positions of one game.

    `indices` may be the array of the moves, which are then lost.
    """
    for i in range(U(positions.size)):
        counts[i] = legal_moves(positions[i], history, moves[i])
        for k in range(U(counts[i])):
            indices[i, k] = policy_index(positions[i], moves[i, k], symmetry)

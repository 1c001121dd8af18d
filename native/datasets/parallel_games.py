"""Many games of Go side by side: what a network sees of them all, and a move in each."""

import numpy as np

from yomi.native.bits import U
from yomi.native.go.board import MAX_AREA, NOT_FINISHED, PASS
from yomi.native.go.planes import policy_index, write_planes
from yomi.native.go.rules import MAX_HISTORY, legal_moves, play
from yomi.native.jit import kernel

RESERVE = MAX_AREA
"""Boards that a history has room for when a game goes on: there is no end of it that comes as a surprise."""


@kernel
def show_games(positions, histories, symmetries, scratch, moves, planes, extras, legal):  # type: ignore[no-untyped-def]
    """Write what a network sees of each game, and what it may play there.

    Args:
        positions: POSITION_DTYPE[n], games that go on.
        histories: uint64[n, MAX_HISTORY].
        symmetries: int64[n], what each board is seen under.
        scratch: a record of SCRATCH_DTYPE that no other thread uses.
        moves: uint16[MAX_AREA + 1], written over.
        planes: float32[n, 22, N, N], written.
        extras: float32[n, 19], written.
        legal: bool[n, N * N + 1], written.
    """
    for i in range(U(len(positions))):
        pos = positions[i]
        symmetry = symmetries[i]
        write_planes(pos, histories[i], symmetry, scratch, planes[i], extras[i])
        for index in range(U(legal.shape[1])):
            legal[i, index] = False
        for k in range(U(legal_moves(pos, histories[i], moves))):
            legal[i, U(policy_index(np.int64(pos.size), np.int64(moves[k]), symmetry))] = True


@kernel
def play_games(positions, histories, points, longest, over):  # type: ignore[no-untyped-def]
    """Play a legal move in each game.

    Args:
        positions: POSITION_DTYPE[n], games that go on.
        histories: uint64[n, MAX_HISTORY].
        points: int64[n]: by column and row from the first corner, x + y * N, or N * N to pass.
        longest: moves of a game, at most.
        over: bool[n], written: whether the game has ended.
    """
    for i in range(U(len(positions))):
        pos = positions[i]
        size = np.int64(pos.size)
        point = np.int64(points[i])
        move = np.int64(PASS)
        if point < size * size:
            move = (point // size + 1) * np.int64(pos.stride) + point % size + 1
        play(pos, histories[i], move)
        over[i] = pos.finished != NOT_FINISHED or pos.ply >= longest or pos.history_length >= MAX_HISTORY - RESERVE

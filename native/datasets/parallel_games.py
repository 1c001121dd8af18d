"""Games of Go in parallel: network inputs of all, and a move in each."""

import numpy as np

from yomi.native.bits import U
from yomi.native.go.board import MAX_AREA, NOT_FINISHED, PASS
from yomi.native.go.planes import policy_index, write_planes
from yomi.native.go.rules import MAX_HISTORY, legal_moves, play
from yomi.native.jit import kernel

# History entries kept free for the next moves; a game ends when fewer are left.
RESERVE = MAX_AREA


@kernel
def encode_games(positions, histories, symmetries, scratch, moves, planes, extras, legal):  # type: ignore[no-untyped-def]
    """Write the network inputs and legal moves of each game.

    Args:
        positions: POSITION_DTYPE[n], unfinished games.
        histories: uint64[n, MAX_HISTORY].
        symmetries: int64[n], of the inputs.
        scratch: a record of SCRATCH_DTYPE of this thread.
        moves: uint16[MAX_AREA + 1]; working memory.
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
            legal[i, U(policy_index(np.int64(pos.size), np.int64(pos.height), np.int64(moves[k]), symmetry))] = True


@kernel
def play_games(positions, histories, points, longest, over):  # type: ignore[no-untyped-def]
    """Play a legal move in each game.

    Args:
        positions: POSITION_DTYPE[n], unfinished games.
        histories: uint64[n, MAX_HISTORY].
        points: int64[n]: x + y * N, or N * N for a pass.
        longest: maximum number of moves of a game.
        over: bool[n], written: 1 if the game has ended.
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

"""Games of Go: as arrays of numbers with their positions, and played in parallel."""

import numpy as np

from yomi.native.bits import U
from yomi.native.go.board import (
    BLACK,
    MAX_AREA,
    NO_POINT,
    NOT_FINISHED,
    PASS,
    SCORING_TERRITORY,
    clear,
    copy,
    place_stone,
)
from yomi.native.go.planes import policy_index, write_planes
from yomi.native.go.rollout import patterned_rollout
from yomi.native.go.rules import MAX_HISTORY, begin, legal_moves, play, position_key, turn_to
from yomi.native.jit import kernel

COLOR_SHIFT = 12  # A stone or move is a uint16: point (or PASS) | color << COLOR_SHIFT
POINT_MASK = (1 << COLOR_SHIFT) - 1

# One game. An array `codes` holds the stones and moves of all games.
GAME_DTYPE = np.dtype(
    [
        ("start", np.int64),  # index of the first setup stone in `codes`; moves follow the stones
        ("stones", np.int32),  # number of setup stones
        ("moves", np.int32),
        ("size", np.uint8),
        ("side", np.uint8),  # to move after the setup
        ("komi", np.float32),  # points for White, with compensation for handicap stones
        ("ko_rule", np.uint8),
        ("scoring", np.uint8),
        ("tax", np.uint8),
        ("suicide", np.uint8),
        ("friendly_pass", np.uint8),
        # The result.
        ("winner", np.int8),  # BLACK, WHITE, 0 drawn, -1 unknown
        ("resigned", np.uint8),
        ("margin", np.float32),  # of the winner in points, NaN if not counted
        ("handicap", np.uint8),
    ],
    align=True,
)


@kernel
def set_up(pos, history, game, codes):  # type: ignore[no-untyped-def]
    pos.ko_rule = game.ko_rule
    pos.scoring = game.scoring
    pos.tax = game.tax
    pos.suicide = game.suicide
    pos.friendly_pass = game.friendly_pass
    clear(pos, np.int64(game.size), np.int64(game.size))
    placed = 0
    for i in range(U(game.start), U(game.start + game.stones)):
        color = np.int64(codes[i]) >> COLOR_SHIFT
        place_stone(pos, np.int64(codes[i]) & POINT_MASK, color)
        placed += 1 if color == BLACK else -1
    pos.side_to_move = game.side
    pos.komi = game.komi
    pos.simple_ko = NO_POINT
    for color in range(4):
        pos.prisoners[color] = 0
    if pos.scoring == SCORING_TERRITORY:
        pos.white_bonus = placed
    begin(pos, history)


@kernel
def _play(pos, history, code):  # type: ignore[no-untyped-def]
    turn_to(pos, np.int64(code) >> COLOR_SHIFT)
    play(pos, history, np.int64(code) & POINT_MASK)


@kernel
def replay(pos, history, game, codes, ply):  # type: ignore[no-untyped-def]
    """Make `pos` the position after `ply` moves of a game. The player of the next move is to move.

    Args:
        pos: a position record.
        history: uint64[MAX_HISTORY].
        game: a record of GAME_DTYPE.
        codes: uint16, stones and moves of all games.
        ply: 0 to the number of moves.
    """
    set_up(pos, history, game, codes)
    first = U(game.start + game.stones)
    for i in range(first, first + U(ply)):
        _play(pos, history, codes[i])
    if ply < game.moves:
        turn_to(pos, np.int64(codes[first + U(ply)]) >> COLOR_SHIFT)


@kernel
def write_keys(pos, history, game, codes, with_move, keys):  # type: ignore[no-untyped-def]
    """Write a hash of the position before each move, and of the move if `with_move`, into `keys` (uint64[moves])."""
    set_up(pos, history, game, codes)
    first = U(game.start + game.stones)
    for i in range(U(game.moves)):
        code = codes[first + i]
        turn_to(pos, np.int64(code) >> COLOR_SHIFT)
        key = position_key(pos) ^ (U(pos.size) * U(0xC2B2AE3D27D4EB4F))
        if with_move:
            key ^= U(np.int64(code) & POINT_MASK) * U(0x9E3779B97F4A7C15)
        keys[i] = key
        _play(pos, history, code)


@kernel
def black_wins(pos, spare, rng, rollouts):  # type: ignore[no-untyped-def]
    """Play `rollouts` rollouts from `pos` and return how many Black wins with its komi. `spare` is working memory."""
    wins = 0
    for _ in range(rollouts):
        copy(spare, pos)
        wins += np.float32(patterned_rollout(spare, rng)) > pos.komi
    return wins


# -- games in parallel -------------------------------------------------------------------------------------------------

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

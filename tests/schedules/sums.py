"""A tiny game for the schedules: players add 1, 2 or 3 to a sum until it reaches a goal.

Equal sums after as many moves are the same position, so that a tree of a few nodes has transpositions, proofs, draws
and unscored ends.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from yomi.native import game
from yomi.native.spec import GameSpec

GOAL = 6
MOVES = 3
POSITION_DTYPE = np.dtype(
    [("side_to_move", np.int8), ("history_length", np.int32), ("ply", np.int16), ("sum", np.int16)], align=True
)
SPEC = GameSpec(
    name="sums",
    position_dtype=POSITION_DTYPE,
    scratch_dtype=np.dtype([("unused", np.int8)]),
    max_moves=MOVES,
    max_history=1,
    policy_size=MOVES + 1,
    area=0,
    planes_shape=(0, 0, 0),
    extras_shape=(0,),
    bits=(),
    cached_moves=0,
    mean_moves=MOVES,
    mean_edges=MOVES,
    score_unit=1.0,
)


def copy(target: Any, source: Any) -> None:
    target.assign(source)


def play(pos: Any, history: Any, move: int) -> None:
    pos.side_to_move = 3 - pos.side_to_move
    pos.ply += 1
    pos.sum += int(move)


def legal_moves(pos: Any, history: Any, moves: Any) -> int:
    for i in range(MOVES):
        moves[i] = i + 1
    return MOVES


def outcome(pos: Any, history: Any) -> tuple[int, float, float]:
    """Return a win for the player who reached the goal exactly, a draw one above it, and no score two above it."""
    beyond = pos.sum - GOAL
    if beyond < 0:
        return game.ONGOING, 0.0, 0.0
    if beyond == 2:
        return game.OVER_UNSCORED, 0.0, 0.0
    return game.OVER, -1.0 if beyond == 0 else 0.0, 0.0


def position_key(pos: Any, history: Any, moves: Any, count: int) -> int:
    return 1 + 64 * int(pos.ply) + int(pos.sum)


def graph_key(pos: Any, history: Any, move: int, above: int, scratch: Any) -> int:
    return 1 + 64 * int(pos.ply) + int(pos.sum)


def pattern_key(pos: Any, history: Any, move: int) -> int:
    return int(move)


def policy_index(pos: Any, move: int, symmetry: int) -> int:
    return int(move)


class Game:
    """A position of the game, as Search takes it."""

    def __init__(self, moves: tuple[int, ...] = ()) -> None:
        self.moves = [(1 + ply % 2, move) for ply, move in enumerate(moves)]
        self.history = np.zeros(1, np.uint64)
        self.position = np.zeros(1, POSITION_DTYPE)[0]
        self.position["side_to_move"] = 1 + len(moves) % 2
        self.position["ply"], self.position["sum"] = len(moves), sum(moves)
        self.search_key = "sums"


for _function in (copy, play, legal_moves, outcome, position_key, graph_key, pattern_key, policy_index):
    game.implement(getattr(game, _function.__name__), POSITION_DTYPE, _function)

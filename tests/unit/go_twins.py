"""Native positions beside the slow games of tests.naive.go_board."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from tests.naive.go_board import PASS, SlowGame
from yomi.native.go.board import PASS as NATIVE_PASS
from yomi.native.go.board import POSITION_DTYPE, clear
from yomi.native.go.rules import MAX_HISTORY, begin, play


def point(size: int, p: int) -> int:
    """Return the bordered board's point of `p` = y * size + x."""
    return NATIVE_PASS if p == PASS else (p // size + 1) * (size + 1) + p % size + 1


def board_points(size: int) -> list[int]:
    """Return the bordered board's points in order."""
    return [point(size, p) for p in range(size * size)]


def bits(words: Any, size: int) -> set[int]:
    """Return the members of a bit set over points as y * size + x."""
    return {p for p, q in enumerate(board_points(size)) if int(words[q >> 6]) >> (q & 63) & 1}


def new_position(size: int, ko_rule: int, suicide: bool, **fields: Any) -> tuple[Any, Any]:
    """Return an empty position and its history."""
    pos = np.zeros(1, POSITION_DTYPE)[0]
    history = np.zeros(MAX_HISTORY, np.uint64)
    for name, value in {"ko_rule": ko_rule, "suicide": suicide, **fields}.items():
        pos[name] = value
    clear(pos, size, size)
    begin(pos, history)
    return pos, history


def random_game(
    size: int, ko_rule: int, suicide: bool, seed: int, plies: int, passing: float = 0.03, **fields: Any
) -> Iterator[tuple[Any, Any, SlowGame]]:
    """Play random legal moves on a native position and its twin, and yield both after each."""
    rng = np.random.default_rng(seed)
    pos, history = new_position(size, ko_rule, suicide, **fields)
    game = SlowGame(size, ko_rule, suicide)
    for _ in range(plies):
        moves = [p for p in rng.permutation(size * size).tolist() if game.board[p] == 0]
        legal = next((p for p in moves if game.is_legal(p)), PASS)
        move = PASS if rng.random() < passing else legal
        game.play(move)
        play(pos, history, point(size, move))
        yield pos, history, game
        if game.finish():
            return

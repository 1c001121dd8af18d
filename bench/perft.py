"""`bench perft`: leaves of the tree of legal moves a second, on one core, beside cshogi called from Python."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import cshogi

from engine.games.shogi.game import ShogiGame
from native.shogi.perft import perft

TURNS = 3
"""Measurements of each depth and side, taking turns; the figures are the best ones."""


def run(sfen: str, depth: int) -> list[dict[str, Any]]:
    """Count the lines of 1 to `depth` moves from a position; the last move of a line is counted, not made.

    Raises:
        engine.games.shogi.sfen.SfenError: no position, or one that cannot be.
        RuntimeError: cshogi counts otherwise.
    """
    game = ShogiGame(sfen)
    board = cshogi.Board(game.sfen())
    perft(game.position, game.history, 2)  # loads or compiles the kernels
    rows = []
    for each in range(1, depth + 1):
        own, theirs = [], []
        for _ in range(TURNS):
            own.append(_timed(lambda n: perft(game.position, game.history, n), each))
            theirs.append(_timed(lambda n: _count(board, n), each))
        leaves = own[0][0]
        if leaves != theirs[0][0]:
            raise RuntimeError(f"depth {each}: found {leaves} leaves, expected cshogi's {theirs[0][0]}")
        rates = [leaves / min(seconds for _, seconds in side) for side in (own, theirs)]
        rows.append(
            {
                "depth": each,
                "leaves": leaves,
                "seconds": leaves / rates[0],
                "leaves_per_second": rates[0],
                "cshogi_per_second": rates[1],
                "ratio": rates[0] / rates[1],
            }
        )
    return rows


def _timed(count: Callable[[int], int], depth: int) -> tuple[int, float]:
    begin = time.perf_counter()
    leaves = count(depth)
    return leaves, time.perf_counter() - begin


def _count(board: cshogi.Board, depth: int) -> int:
    if depth == 1:
        return len(board.legal_moves)
    total = 0
    for move in board.legal_moves:
        board.push(move)
        total += _count(board, depth - 1)
        board.pop()
    return total

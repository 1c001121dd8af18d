"""`bench perft`: leaves per second of the tree of legal moves, on one core, compared with cshogi called from Python."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any

from yomi.engine.shogi.game import ShogiGame
from yomi.native.shogi.movegen import perft
from yomi.nets.installation import pip_command

# Measurements of each depth and side, in turns; the best counts.
TURNS = 3


def find_cshogi() -> Any:
    """Return the module, or None (with a line on stderr) if it cannot be imported."""
    try:
        import cshogi
    except ImportError as error:
        print(
            f"yomi: measured without cshogi ({error}); to compare: {pip_command('install', 'cshogi')}", file=sys.stderr
        )
        return None
    return cshogi


def run(sfen: str, depth: int) -> list[dict[str, Any]]:
    """Count the lines of 1 to `depth` moves from a position. The last move of a line is counted without making it.

    Without cshogi its columns are None.

    Raises:
        yomi.engine.shogi.placement.SfenError: the text is not a possible position.
        RuntimeError: cshogi's count differs.
    """
    game = ShogiGame(sfen)
    cshogi = find_cshogi()
    board = None if cshogi is None else cshogi.Board(game.sfen())
    perft(game.position, game.history, 2)  # loads or compiles the kernels
    rows = []
    for each in range(1, depth + 1):
        own, theirs = [], []
        for _ in range(TURNS):
            own.append(_timed(lambda n: perft(game.position, game.history, n), each))
            if board is not None:
                theirs.append(_timed(lambda n: _count(board, n), each))
        leaves = own[0][0]
        if theirs and leaves != theirs[0][0]:
            raise RuntimeError(f"depth {each}: found {leaves} leaves, expected cshogi's {theirs[0][0]}")
        seconds, their_seconds = (min((spent for _, spent in side), default=None) for side in (own, theirs))
        assert seconds is not None
        rows.append(
            {
                "depth": each,
                "leaves": leaves,
                "seconds": seconds,
                "leaves_per_second": leaves / seconds,
                "cshogi_per_second": None if their_seconds is None else leaves / their_seconds,
                "ratio": None if their_seconds is None else their_seconds / seconds,
            }
        )
    return rows


def _timed(count: Callable[[int], int], depth: int) -> tuple[int, float]:
    begin = time.perf_counter()
    leaves = count(depth)
    return leaves, time.perf_counter() - begin


def _count(board: Any, depth: int) -> int:
    if depth == 1:
        return len(board.legal_moves)
    total = 0
    for move in board.legal_moves:
        board.push(move)
        total += _count(board, depth - 1)
        board.pop()
    return total

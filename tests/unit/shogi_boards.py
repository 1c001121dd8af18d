"""Shogi positions for tests, made by cshogi, which is the oracle."""

import functools
import random
from collections.abc import Iterator

import cshogi

from yomi.engine.shogi.placement import Placement


def placement_of(board: cshogi.Board) -> Placement:
    """Return a cshogi board as a placement, not by way of SFEN."""
    hands = tuple(tuple(hand) for hand in board.pieces_in_hand)
    return Placement(tuple(board.pieces), hands, board.turn + 1, board.move_number)


def walk(seed: int, plies: int, sfen: str = cshogi.STARTING_SFEN) -> Iterator[cshogi.Board]:
    """Yield a board before each move of a random game; it likes captures and drops, so that hands fill."""
    rng = random.Random(seed)
    board = cshogi.Board(sfen=sfen)
    for _ in range(plies):
        moves = list(board.legal_moves)
        yield board
        if not moves:
            return
        lively = [move for move in moves if cshogi.move_is_drop(move) or board.piece(cshogi.move_to(move))]
        board.push(rng.choice(lively if lively and rng.random() < 0.3 else moves))


@functools.cache
def random_moves(seed: int, plies: int) -> tuple[str, ...]:
    """Return the moves of a random game as USI text."""
    *_, board = walk(seed, plies)
    return tuple(cshogi.move_to_usi(move) for move in board.history)


CROWDED = (
    "1nsgkgsn1/1+P+P3+P2/9/1+S+S1+N+L3/9/2G1G1G2/1B1G3B1/1R5R1/4K4 b 2P 1",
    "4k4/9/+R3+R4/9/2+B3+B2/9/9/9/4K4 b - 1",
    "4k4/9/9/3SGS3/3S1S3/9/2+P+P+P4/2+P1+P4/4K4 b G 1",
    "4k4/9/2s1s4/9/2s1s4/3g5/2g1g4/9/4K4 w 2Pg 1",
    "4k4/9/9/4+r4/9/4+r1+b2/9/4+b4/3K5 w - 1",
    "8k/4R1R2/9/9/3N1N3/9/9/3L5/K8 b NL 1",
)
"""Positions where several pieces of a kind reach one square."""

"""The rules of shogi against cshogi: moves, checks, repetition, declaration and hashes on random games."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import cshogi
import numpy as np
import pytest

from native.shogi import rules, tables
from native.shogi.position import (
    ENTERING_KING_24,
    ENTERING_KING_27,
    MAX_HISTORY,
    MAX_MOVES,
    POSITION_DTYPE,
    copy,
    gives_check,
    play,
    set_position,
)

RULES = {cshogi.LAW_24: ENTERING_KING_24, cshogi.LAW_27: ENTERING_KING_27}
KINDS = {
    cshogi.NOT_REPETITION: rules.NONE,
    cshogi.REPETITION_DRAW: rules.DRAW,
    cshogi.REPETITION_WIN: rules.WIN,
    cshogi.REPETITION_LOSE: rules.LOSE,
    cshogi.REPETITION_SUPERIOR: rules.SUPERIOR,
    cshogi.REPETITION_INFERIOR: rules.INFERIOR,
}


class Board:
    """A position record with its history, to be compared with a cshogi board."""

    def __init__(self, board: cshogi.Board) -> None:
        self.records = np.zeros(2, POSITION_DTYPE)
        self.history = np.zeros(MAX_HISTORY, np.uint64)
        self.set(board)

    @property
    def pos(self) -> Any:
        """The position's record."""
        return self.records[0]

    def set(self, board: cshogi.Board) -> None:
        """Set up the position of a cshogi board, without its moves."""
        hands = np.array(board.pieces_in_hand, np.uint8)
        pieces = np.array(board.pieces, np.uint8)
        set_position(self.pos, self.history, pieces, hands, board.turn + 1, board.move_number - 1)

    def moves(self) -> list[int]:
        """Return the legal moves."""
        found = np.zeros(MAX_MOVES, np.uint16)
        return [int(move) for move in found[: rules.legal_moves(self.pos, self.history, found)]]

    def play(self, move: int) -> None:
        """Play a move."""
        play(self.pos, self.history, move)

    def repetition(self, window: int = rules.ALL_PLIES) -> int:
        """Return what kind of repetition the position is."""
        return int(rules.repetition(self.pos, self.history, window))


def legal(board: cshogi.Board) -> list[int]:
    return [cshogi.move16(move) for move in board.legal_moves]


def check_same(board: cshogi.Board, own: Board) -> None:
    """Compare everything that can be seen of a position, and its record with one made from scratch."""
    pos = own.pos
    assert list(pos["board"]) == board.pieces
    assert [list(hand) for hand in pos["hand"]] == [list(hand) for hand in board.pieces_in_hand]
    assert pos["side_to_move"] == board.turn + 1
    assert bool(rules.is_check(pos)) == board.is_check()
    moves = own.moves()
    assert sorted(moves) == sorted(legal(board))
    assert bool(rules.has_legal_move(pos)) == bool(moves)
    assert own.repetition() == KINDS[board.is_draw()]
    for law, rule in RULES.items():
        pos["entering_king"] = rule
        assert bool(rules.declaration(pos)) == board.is_nyugyoku(law)
    fresh = Board(board)
    fresh.pos["history_length"] = pos["history_length"]
    fresh.pos["entering_king"] = pos["entering_king"]
    assert fresh.records[0].tobytes() == own.records[0].tobytes()
    last = int(pos["history_length"])
    assert (own.history[last - 2 : last] == fresh.history[:2]).all()


def walk(rng: random.Random, board: cshogi.Board, plies: int, back: float) -> Iterator[int]:
    """Play random moves on a cshogi board, often the last move but one taken back, and yield them as 16 bits."""
    for _ in range(plies):
        moves = list(board.legal_moves)
        if not moves:
            return
        lively = [move for move in moves if cshogi.move_is_drop(move) or board.piece(cshogi.move_to(move))]
        move = rng.choice(lively if lively and rng.random() < 0.3 else moves)
        if len(board.history) >= 2 and rng.random() < back:
            last = board.history[-2]
            turned = [
                m
                for m in moves
                if cshogi.move_from(m) == cshogi.move_to(last) and cshogi.move_to(m) == cshogi.move_from(last)
            ]
            move = turned[0] if turned else move
        board.push(move)
        yield cshogi.move16(move)


@pytest.mark.parametrize(("back", "games"), [(0.0, 24), (0.6, 12)])
def test_random_games_are_those_of_cshogi(back: float, games: int) -> None:
    kinds = set()
    for seed in range(games):
        board = cshogi.Board()
        own = Board(board)
        for move in walk(random.Random(seed), board, 300, back):
            checks = gives_check(own.pos, move)
            own.play(move)
            assert bool(checks) == board.is_check()
            check_same(board, own)
            kinds.add(own.repetition())
            for window in (4, 6, 8, 16):
                assert own.repetition(window) == KINDS[board.is_draw(window)]
    if back:
        assert {rules.NONE, rules.DRAW} <= kinds

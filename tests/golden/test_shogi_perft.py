"""Leaves of the tree of legal moves: counted by cshogi, or published."""

from pathlib import Path

import cshogi
import numpy as np
import pytest

from yomi.native.shogi.movegen import perft
from yomi.native.shogi.position import MAX_HISTORY, POSITION_DTYPE, set_position

LINES = Path(__file__).with_name("shogi_perft.txt").read_text().splitlines()
CASES = {
    name: (sfen, counts) for name, sfen, counts in (line.split("; ") for line in LINES if not line.startswith("#"))
}


@pytest.mark.parametrize("name", CASES)
def test_leaves_are_as_many_as_counted(name: str) -> None:
    sfen, counts = CASES[name]
    board = cshogi.Board(sfen)
    records = np.zeros(1, POSITION_DTYPE)
    history = np.zeros(MAX_HISTORY, np.uint64)
    hands = np.array(board.pieces_in_hand, np.uint8)
    set_position(records[0], history, np.array(board.pieces, np.uint8), hands, board.turn + 1, 0)
    before = records.tobytes()
    for count in counts.split(", "):
        depth, leaves = map(int, count.split(" "))
        assert perft(records[0], history, depth) == leaves
    assert records.tobytes() == before

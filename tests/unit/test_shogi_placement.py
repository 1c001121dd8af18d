"""The plain rules that readers of records use; cshogi is the oracle."""

import re

import cshogi
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.looping import looped
from tests.unit.shogi_boards import placement_of, walk
from yomi.engine.shogi.notation import parse_usi
from yomi.engine.shogi.placement import STARTPOS, board_move, drop, parse_sfen, turned

ALL_MOVES = [
    *(board_move(s, t, p) for s in range(81) for t in range(81) if s != t for p in (False, True)),
    *(drop(piece_type, target) for piece_type in range(1, 8) for target in range(81)),
]


@settings(max_examples=12, deadline=None)
@given(st.integers(0, 10**6))
def test_moves_follow_each_other_as_in_cshogi(seed: int) -> None:
    placement = parse_sfen(STARTPOS)
    boards = walk(seed, 150)
    board = next(boards)
    for board in boards:
        move = cshogi.move16(board.peek())
        assert placement.why_not(move) is None
        placement = placement.after(move)
        assert placement == placement_of(board)
        assert placement.is_check(placement.side) == board.is_check()


@pytest.mark.parametrize("seed", [1, 2])
def test_why_not_knows_all_moves_but_drop_pawn_mate(seed: int) -> None:
    for ply, board in enumerate(walk(seed, 120)):
        if ply % 30 != 29:
            continue
        placement = placement_of(board)
        legal = {cshogi.move16(move) for move in board.legal_moves}
        extra = {move for move in ALL_MOVES if placement.why_not(move) is None} ^ legal
        assert extra == {move for move in ALL_MOVES if placement.is_drop_pawn_mate(move)}


@pytest.mark.parametrize(
    ("sfen", "usi", "is_mate"),
    [
        ("7nk/9/7G1/9/9/9/9/9/4K4 b P 1", "P*1b", True),
        ("7nk/9/7G1/9/9/9/9/9/4K4 b G 1", "G*1b", False),  # no pawn
        ("7n1/8k/9/7G1/9/9/9/9/4K4 b P 1", "P*1c", False),  # the king goes away
        ("7nk/7r1/7G1/9/9/9/9/9/4K4 b P 1", "P*1b", False),  # the rook takes
        ("7nk/7r1/7G1/9/4B4/9/9/9/4K4 b P 1", "P*1b", True),  # the bishop binds the rook
        ("7nk/9/7G1/8P/9/9/9/9/4K4 b P 1", "P*1b", False),  # nifu is another fault
        ("4k4/9/9/9/9/9/1g7/9/KN7 w p 1", "P*9h", True),
    ],
)
def test_mates_by_a_dropped_pawn(sfen: str, usi: str, is_mate: bool) -> None:
    placement, move = parse_sfen(sfen), parse_usi(usi)
    assert placement.is_drop_pawn_mate(move) is is_mate
    board = cshogi.Board(sfen=sfen)
    assert (move in {cshogi.move16(each) for each in board.legal_moves}) is (
        placement.why_not(move) is None and not is_mate
    )


@looped(
    ("sfen", "usi", "words"),
    [
        (STARTPOS, "7g7e", "the piece on 7g does not move there"),
        (STARTPOS, "7f7e", "Black has no piece on 7f"),
        (STARTPOS, "3c3d", "Black has no piece on 3c"),
        (STARTPOS, "8h7g", "own piece stands on 7g"),
        (STARTPOS, "P*5e", "Black has no pawn in hand"),
        (STARTPOS, "7g7f+", "no promotion outside"),
        ("4k4/9/9/9/9/9/9/9/4K4 b PN 1", "P*5a", "5a is not empty"),
        ("4k4/9/9/9/9/9/9/9/4K4 b PN 1", "P*4a", "a pawn on 4a could never move"),
        ("4k4/9/9/9/9/9/9/9/4K4 b PN 1", "N*4b", "a knight on 4b could never move"),
        ("4k4/9/9/9/9/9/P8/9/4K4 b PN 1", "P*9e", r"a second pawn on file 9 \(nifu\)"),
        ("3k5/P8/9/9/9/4r4/9/9/4KG3 b - 1", "9b9a", "must promote on 9a"),
        ("3k5/P8/9/9/9/4r4/9/9/4KG3 b - 1", "4i4h", "the king is in check"),
        ("3k5/P8/9/9/9/4r4/9/4G4/4K4 b - 1", "5h4h", "the king would be in check"),
        ("3k5/3G5/9/9/9/9/9/9/4K4 b - 1", "6b6c+", "does not promote"),
    ],
)
def test_reasons(sfen: str, usi: str, words: str) -> None:
    why = placement_of(cshogi.Board(sfen=sfen)).why_not(parse_usi(usi))
    assert why is not None
    assert re.search(words, why), why


def test_turned_moves() -> None:
    for usi, other in (("7g7f", "3c3d"), ("8h2b+", "2b8h+"), ("P*5d", "P*5f")):
        assert turned(parse_usi(usi)) == parse_usi(other)
        assert turned(turned(parse_usi(usi))) == parse_usi(usi)

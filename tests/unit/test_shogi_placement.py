"""The plain rules that readers of records use, and positions as SFEN; cshogi is the oracle."""

import re

import cshogi
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.looping import looped
from tests.unit.shogi_boards import CROWDED, placement_of, walk
from yomi.engine.shogi.notation import parse_usi
from yomi.engine.shogi.placement import (
    STARTPOS,
    SfenError,
    board_move,
    drop,
    format_sfen,
    parse_sfen,
    reaching,
    turned,
    type_of,
)

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
        assert placement == placement_of(board) == parse_sfen(board.sfen())
        assert placement.is_check(placement.side) == board.is_check()
        assert format_sfen(placement) == board.sfen()
        assert format_sfen(placement.turned(), number=False) == cshogi.rotate_sfen(board.sfen()).rsplit(" ", 1)[0]
        assert placement.turned().turned() == placement


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


def test_reaching_is_cshogi_s_pseudo_legal_moves() -> None:
    boards = [cshogi.Board(sfen=sfen) for sfen in CROWDED] + list(walk(7, 100))
    for board in boards:
        placement = placement_of(board)
        if board.is_check():
            continue  # then cshogi leaves out what does not help
        for target in range(81):
            expected = {
                cshogi.move_from(move)
                for move in board.pseudo_legal_moves
                if cshogi.move_to(move) == target and not cshogi.move_is_drop(move)
            }
            code = placement.board[target]
            if code and (code > 16) == (placement.side == 2):
                assert not expected
                continue
            found = [each for kind in range(1, 15) for each in reaching(placement.board, placement.side, kind, target)]
            found = [each for each in found if type_of(placement.board[each]) != 8 or each in expected]
            assert set(found) >= expected
            assert len(found) == len(set(found))


def test_hands_and_numbers() -> None:
    placement = parse_sfen("4k4/9/9/9/9/9/9/9/4K4 w RB2G10Pp")
    assert placement.hands == ((10, 0, 0, 0, 2, 1, 1), (1, 0, 0, 0, 0, 0, 0))
    assert placement.number == 1
    assert format_sfen(placement) == "4k4/9/9/9/9/9/9/9/4K4 w RB2G10Pp 1"
    assert parse_sfen("4k4/9/9/9/9/9/9/9/9 b 2G 1").king_square(1) is None
    assert parse_sfen("4k4/9/9/9/9/9/9/9/4K4 b - 0").number == 1
    assert parse_sfen("4k4/9/9/9/9/9/9/9/4K4 b - 321").number == 321


@looped(
    ("sfen", "words"),
    [
        ("", "SFEN of 0 fields: expected board, side to move, hands and move number"),
        (STARTPOS + " 1", "5 fields"),
        (STARTPOS.replace(" b ", " x "), "side to move 'x': expected b or w"),
        (STARTPOS[:-1] + "x", "move number 'x': expected 1 to 60000"),
        (STARTPOS[:-1] + "-1", "move number '-1'"),
        (STARTPOS[:-1] + "99999", "move number '99999'"),
        (STARTPOS.replace("9/9/", "9/", 1), "board of 8 ranks: expected 9"),
        (STARTPOS.replace("9/", "8/", 1), "rank 4 '8' has 8 squares: expected 9"),
        (STARTPOS.replace("9/", "91/", 1), "rank 4 '91' has 10 squares: expected 9"),
        (STARTPOS.replace("9/", "9p/", 1), "10 squares"),
        (STARTPOS.replace("1B5R1", "1X5R1"), "'X' in rank 8 '1X5R1': expected a piece"),
        (STARTPOS.replace("1B5R1", "1+G5R1"), r"'\+G' in rank 8"),
        (STARTPOS.replace("1B5R1", "1+5R1"), r"'\+' in rank 8"),
        (STARTPOS.replace("1B5R1", "0B5R1"), "'0' in rank 8"),
        (STARTPOS.replace(" - ", " 0P "), "hands '0P': expected - or pieces with counts"),
        (STARTPOS.replace(" - ", " K "), "'K' in hands 'K': expected pieces of PLNSBRG"),
        (STARTPOS.replace(" - ", " +P "), "hands"),
        (STARTPOS.replace(" - ", " P "), "19 pawns: expected at most 18"),
        (STARTPOS.replace(" - ", " r "), "3 rooks: expected at most 2"),
        ("4k4/4r4/4+R4/9/4+r4/9/9/9/3K5 b - 1", "3 rooks"),
        ("9/9/9/9/9/9/9/9/9 b - 1", "no king on the board: expected one for each side"),
        (STARTPOS.replace("lnsgkgsnl", "lnsgkksnl"), "White has 2 kings: expected one"),
        ("4k4/9/9/9/4P4/9/4P4/9/4K4 b - 1", r"Black has two pawns on file 5 \(nifu\)"),
        ("4k4/9/4p4/9/4p4/9/9/9/4K4 b - 1", r"White has two pawns on file 5 \(nifu\)"),
        ("P3k4/9/9/9/9/9/9/9/4K4 b - 1", "Black's pawn on 9a can never move"),
        ("4k4/9/9/9/9/9/9/9/l3K4 b - 1", "White's lance on 9i can never move"),
        ("4k4/7N1/9/9/9/9/9/9/4K4 w - 1", "Black's knight on 2b can never move"),
        ("4k4/9/9/9/4R4/9/9/9/4K4 b - 1", "White is in check but Black is to move"),
        ("4k4/9/9/9/9/9/9/3s5/4K4 w - 1", "Black is in check but White is to move"),
    ],
)
def test_errors_of_sfen(sfen: str, words: str) -> None:
    with pytest.raises(SfenError, match=words) as caught:
        parse_sfen(sfen)
    assert "\n" not in str(caught.value)


@settings(deadline=None)
@given(st.data())
def test_broken_sfen_gets_one_line(data: st.DataObject) -> None:
    text = list(STARTPOS)
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(text) - 1))
        text[at] = data.draw(st.sampled_from([*"pPkKgG+19 /bw-", "", "９", "é"]))
    try:
        placement = parse_sfen("".join(text))
    except SfenError as error:
        assert len(str(error).splitlines()) == 1  # noqa: PT017
    else:
        assert parse_sfen(format_sfen(placement)) == placement

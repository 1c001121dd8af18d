"""Moves as USI, CSA and Japanese text; cshogi is the oracle."""

import cshogi
import pytest
from cshogi import KI2, KIF
from hypothesis import given, settings
from hypothesis import strategies as st

import yomi
from tests.looping import looped
from tests.unit.shogi_boards import CROWDED, placement_of, walk
from yomi.engine.color import BLACK, WHITE
from yomi.engine.shogi.notation import (
    NotationError,
    csa_line,
    format_csa,
    format_japanese,
    format_kif,
    format_usi,
    guilty_of,
    illegal_action,
    japanese_line,
    parse_any,
    parse_csa,
    parse_japanese,
    parse_usi,
    parse_usi_moves,
)
from yomi.engine.shogi.placement import PROMOTES, STARTPOS, Placement, drop, is_move, parse_sfen, target_of

START = parse_sfen(STARTPOS)


def check_all_moves(board: cshogi.Board) -> None:
    """Every legal move reads back from every notation, and is written as cshogi writes it."""
    placement = placement_of(board)
    legal = {cshogi.move16(move): move for move in board.legal_moves}
    last = board.peek()
    previous = cshogi.move_to(last) if last else None
    sign = "+-"[board.turn]
    for move, move32 in legal.items():
        assert is_move(move)
        assert format_usi(move) == cshogi.move_to_usi(move32)
        assert parse_usi(format_usi(move)) == move
        assert format_csa(move, placement) == sign + cshogi.move_to_csa(move32)
        assert parse_csa(cshogi.move_to_csa(move32), placement) == move
        kif = format_kif(move, placement, previous)
        expected = KIF.move_to_kif(move32, last or None)
        for short, name in (("杏", "成香"), ("圭", "成桂"), ("全", "成銀")):
            expected = expected.replace(short, name)
        assert kif == expected
        assert parse_japanese(kif, placement, previous) == move
        text = format_japanese(move, placement, previous)
        assert parse_japanese(text, placement, previous, legal.__contains__) == move
        assert parse_any(text[1:], placement, previous, legal.__contains__) == move
        assert parse_any(format_usi(move), placement) == move
        assert parse_any(format_csa(move, placement).lower(), placement) == move


@settings(max_examples=8, deadline=None)
@given(st.integers(0, 10**6))
def test_moves_of_random_games(seed: int) -> None:
    for board in walk(seed, 60):
        check_all_moves(board)


@pytest.mark.parametrize("sfen", CROWDED)
def test_moves_of_crowded_positions(sfen: str) -> None:
    board = cshogi.Board(sfen=sfen)
    check_all_moves(board)
    moves = [cshogi.move16(move) for move in board.legal_moves]
    assert len({format_japanese(move, placement_of(board)) for move in moves}) == len(moves)


def test_words_are_those_of_cshogi() -> None:
    """Cshogi forgets 打 beside a pinned piece, and 寄 where another piece of that side moves up: we write more."""
    same = other = 0
    for seed in range(4):
        for board in walk(seed, 150):
            placement, last = placement_of(board), board.peek()
            previous = cshogi.move_to(last) if last else None
            for move in board.legal_moves:
                ours = format_japanese(cshogi.move16(move), placement, previous).replace("　", "")
                theirs = KI2.move_to_ki2(move, board).replace("　", "")
                if ours == theirs:
                    same += 1
                else:
                    other += 1
                    assert ours.rstrip("打寄") == theirs, (board.sfen(), ours, theirs)
    assert same > 15_000
    assert other < same / 2_000


KINGS = {"5i": "K", "1a": "k"}


def position(pieces: dict[str, str]) -> Placement:
    """Return a position with Black to move from squares in USI and letters in SFEN; kings are added."""
    board = [["" for _ in range(9)] for _ in range(9)]
    for square, letter in (KINGS | pieces).items():
        board[ord(square[1]) - ord("a")][9 - int(square[0])] = letter
    ranks = ("".join(cell or "1" for cell in row) for row in board)
    return placement_of(cshogi.Board(sfen="/".join(ranks) + " b G 1"))


@looped(
    ("pieces", "moves"),
    [
        # after the examples of the Japanese Shogi Association
        ({"9c": "G", "7b": "G"}, {"9c8b": "８二金上", "7b8b": "８二金寄"}),
        ({"4c": "G", "3a": "G"}, {"4c3b": "３二金上", "3a3b": "３二金引"}),
        ({"5f": "G", "4e": "G"}, {"5f5e": "５五金上", "4e5e": "５五金寄"}),
        ({"8i": "S", "7g": "S"}, {"8i8h": "８八銀上", "7g8h": "８八銀引"}),
        ({"9b": "G", "7b": "G"}, {"9b8a": "８一金左", "7b8a": "８一金右"}),
        ({"5e": "S", "3e": "S"}, {"5e4d": "４四銀左", "3e4d": "４四銀右"}),
        ({"8i": "G", "7i": "G"}, {"8i7h": "７八金左", "7i7h": "７八金直"}),
        ({"3i": "S", "2i": "S"}, {"3i3h": "３八銀直", "2i3h": "３八銀右"}),
        (
            {"6c": "G", "5c": "G", "4c": "G"},
            {"6c5b": "５二金左", "5c5b": "５二金直", "4c5b": "５二金右", "G*5b": "５二金打", "G*9i": "９九金"},
        ),
        (
            {"7i": "+P", "8i": "+P", "9i": "+P", "9h": "+P", "8g": "+P"},
            {"7i8h": "８八と右", "8i8h": "８八と直", "9i8h": "８八と左上", "9h8h": "８八と寄", "8g8h": "８八と引"},
        ),
        (
            {"2i": "S", "1g": "S", "3i": "S", "3g": "S"},
            {"2i2h": "２八銀直", "1g2h": "２八銀右", "3i2h": "２八銀左上", "3g2h": "２八銀左引"},
        ),
        ({"9a": "+R", "8d": "+R"}, {"9a8b": "８二龍引", "8d8b": "８二龍上"}),
        ({"2c": "+R", "5b": "+R"}, {"2c4c": "４三龍寄", "5b4c": "４三龍引"}),
        ({"9e": "+R", "5e": "+R"}, {"9e6e": "６五龍左", "5e6e": "６五龍右"}),
        ({"9i": "+R", "8i": "+R"}, {"9i8h": "８八龍左", "8i8h": "８八龍右"}),
        ({"9a": "+B", "8a": "+B"}, {"9a8b": "８二馬左", "8a8b": "８二馬右"}),
        ({"9e": "+B", "6c": "+B"}, {"9e8e": "８五馬寄", "6c8e": "８五馬引"}),
        ({"8h": "B"}, {"8h2b+": "２二角成", "8h3c": "３三角不成", "8h7g": "７七角"}),
    ],
)
def test_which_of_several_pieces(pieces: dict[str, str], moves: dict[str, str]) -> None:
    placement = position(pieces)
    for usi, text in moves.items():
        assert format_japanese(parse_usi(usi), placement, mark=False) == text
        assert parse_japanese(f"▲{text}", placement) == parse_usi(usi)


def test_the_other_side_sees_left_and_right_turned() -> None:
    placement = position({"8i": "G", "7i": "G"}).turned()
    assert format_japanese(parse_usi("2a3b"), placement) == "△３二金左"
    assert parse_japanese("☖３二金左", placement) == parse_usi("2a3b")


@looped(
    ("text", "usi"),
    [
        ("76歩", "7g7f"),
        ("７６歩", "7g7f"),
        ("☗7六歩", "7g7f"),
        ("▼７六歩(77)", "7g7f"),
        (" ▲ ７六歩 ", "7g7f"),
        ("７六歩（７７）", "7g7f"),
        ("58金右", "4i5h"),
        ("５八金左", "6i5h"),
        ("58玉", "5i5h"),
        ("58王", "5i5h"),
        ("48飛", "2h4h"),
    ],
)
def test_japanese_may_be_typed_in_many_ways(text: str, usi: str) -> None:
    assert parse_japanese(text, START) == parse_usi(usi)


def test_same_square() -> None:
    placement = position({"5d": "p", "5e": "P"})
    for text in ("同歩", "同　歩", "同歩(55)", "５四同歩", "54歩"):
        assert parse_japanese(text, placement, 9 * 4 + 3) == parse_usi("5e5d")
    prom = position({"5d": "p", "5e": "+S"})
    assert format_japanese(parse_usi("5e5d"), prom, 9 * 4 + 3) == "▲同　成銀"
    assert parse_japanese("▲同　成銀", prom, 9 * 4 + 3) == parse_usi("5e5d")


def test_a_pinned_piece_does_not_make_a_text_ambiguous() -> None:
    board = cshogi.Board(sfen="k3r4/9/9/9/9/9/4G4/4K1G2/9 b - 1")
    legal = {cshogi.move16(move) for move in board.legal_moves}
    placement = placement_of(board)
    with pytest.raises(NotationError, match="could be ▲４七金上, ▲４七金寄"):
        parse_japanese("47金", placement)
    assert parse_japanese("47金", placement, is_legal=legal.__contains__) == parse_usi("3h4g")


def test_beside_a_piece_that_may_not_move_it_is_a_drop() -> None:
    """As cshogi writes it, without 打; a word of the piece's way still means the piece."""
    for sfen, expected in (("k3r4/9/9/9/9/9/4G4/4K4/9 b G 1", "G*4g"), ("k8/9/9/9/9/9/4G4/4K4/9 b G 1", "5g4g")):
        board = cshogi.Board(sfen=sfen)
        legal = {cshogi.move16(move) for move in board.legal_moves}
        placement = placement_of(board)
        assert parse_japanese("47金", placement, is_legal=legal.__contains__) == parse_usi(expected)
        assert parse_japanese("47金寄", placement, is_legal=legal.__contains__) == parse_usi("5g4g")
        assert parse_japanese("47金打", placement, is_legal=legal.__contains__) == parse_usi("G*4g")


PROMOTED = "4k4/9/2P6/9/9/9/3+R5/9/4K2+S1 b NR 1"


@pytest.mark.parametrize(
    ("sfen", "text", "move"),
    [
        (STARTPOS, "P-7f", "7g7f"),
        (STARTPOS, "p-7f", "7g7f"),
        (STARTPOS, "Ｐ－７ｆ", "7g7f"),
        (STARTPOS, "７ｇ７ｆ", "7g7f"),
        (STARTPOS, "G6i-5h", "6i5h"),
        (PROMOTED, "P-7b+", "7c7b+"),
        (PROMOTED, "P-7b=", "7c7b"),
        (PROMOTED, "N*4e", "N*4e"),
        (PROMOTED, "+R-6a", "6g6a"),
        (PROMOTED, "R*6a", "R*6a"),
        (PROMOTED, "+Sx2h", "2i2h"),
    ],
)
def test_moves_in_english(sfen: str, text: str, move: str) -> None:
    assert format_usi(parse_any(text, parse_sfen(sfen))) == move
    game = yomi.shogi.Game(sfen)
    assert game.play(text).moves == [move], "the library has the same reader"


@looped(
    ("text", "words"),
    [
        ("", "expected USI"),
        ("7g", "expected USI"),
        ("resign", "expected USI"),
        ("7g7g", "ends where it starts"),
        ("7776KI", "found FU on 77, expected a piece that becomes KI"),
        ("7876FU", "no piece of the side to move on 78"),
        ("3334FU", "no piece of the side to move on 33"),
        ("-3334FU", "other side: expected one that begins with +"),
        ("7776XX", "expected CSA"),
        ("0776FU", "expected CSA"),
        ("0076OU", "cannot be in hand"),
        ("0076TO", "cannot be in hand"),
        ("△７六歩", "other side: expected ▲"),
        ("同歩", "no move before it"),
        ("７五歩", "no such piece can move there"),
        ("５五角打", "no such piece can move there"),
        ("９九香", "no such piece can move there"),
        ("７六歩成", "no such piece can move there"),
        ("７六歩(76)", "no such piece can move there"),
        ("P-7e", "'P-7e': no such piece can move there"),
        ("G-5h", "'G-5h' could be ▲５八金右, ▲５八金左"),
        ("+G-5h", "no such piece can move there"),
    ],
)
def test_errors(text: str, words: str) -> None:
    with pytest.raises(NotationError, match=words.replace("+", r"\+")) as caught:
        parse_any(text, START)
    assert "\n" not in str(caught.value)


@settings(deadline=None)
@given(st.text("０１７七六歩金同成打右左上直▲△()+-*abiPKFUTO19", max_size=8))
def test_any_text_is_a_move_or_one_line(text: str) -> None:
    try:
        move = parse_any(text, START)
    except NotationError as error:
        assert len(str(error).splitlines()) == 1  # noqa: PT017
    else:
        assert is_move(move)


def test_lines_end_at_what_cannot_be_played() -> None:
    line = parse_usi_moves(["7g7f", "3c3d", "8h2b+", "3a2b", "resign", "5e5d"])
    assert [format_usi(move) for move in line] == ["7g7f", "3c3d", "8h2b+", "3a2b"]
    assert csa_line(line, START) == ["+7776FU", "-3334FU", "+8822UM", "-3122GI"]
    assert japanese_line(line, START) == ["▲７六歩", "△３四歩", "▲２二角成", "△同銀"]
    before = parse_sfen("lnsgkgsnl/1r5+B1/pppppp1pp/6p2/9/2P6/PP1PPPPPP/7R1/LNSGKGSNL w B 4")
    assert japanese_line(line[3:], before, target_of(line[2])) == ["△同銀"]
    broken = (*line[:2], parse_usi("8h1b+"), line[3])
    assert len(csa_line(broken, START)) == len(japanese_line(broken, START)) == 2


def test_endings_by_a_fault() -> None:
    assert [illegal_action(color) for color in (BLACK, WHITE)] == ["+ILLEGAL_ACTION", "-ILLEGAL_ACTION"]
    assert [guilty_of(illegal_action(color)) for color in (BLACK, WHITE)] == [BLACK, WHITE]
    assert guilty_of("ILLEGAL_MOVE") is guilty_of("") is None


def test_numbers_that_are_no_moves() -> None:
    bad = [0, 81, 1 << 15, -1, drop(8, 40), drop(0, 81), drop(1, 3) | PROMOTES]
    assert not any(is_move(move) for move in bad)

"""Game records: CSA, KIF, KI2, USI and hcpe, read back by us and by cshogi."""

import os
import random
from pathlib import Path

import cshogi
import numpy as np
import pytest
from cshogi import CSA, KIF
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.color import BLACK, DRAW, WHITE
from engine.shogi.game import ShogiGame
from engine.shogi.moves import target_of
from engine.shogi.notation import format_japanese, format_usi, parse_usi
from engine.shogi.pieces import SILVER, type_of
from engine.shogi.placement import Placement
from engine.shogi.records import csa, hcpe, kif
from engine.shogi.records.files import load_records, read_records, save_records, to_bytes
from engine.shogi.records.record import (
    ENDINGS,
    START,
    GameRecord,
    RecordedMove,
    RecordError,
    format_usi_line,
    record_of,
)
from engine.shogi.sfen import format_sfen, parse_sfen
from tests.unit.shogi_boards import placement_of, random_moves, walk

MIDDLE = "l6nl/5+P1gk/2np1S3/p1p4Pp/3P2Sp1/1PPb2P1P/P5GS1/R8/LN4bKL w GR5pnsg 1"


STARTS = (
    None,
    MIDDLE,
    "lnsgkgsnl/9/ppppppppp/9/9/9/PPPPPPPPP/1B5R1/LNSGKGSNL w - 1",
    "4k4/9/9/3SGS3/3S1S3/9/2+P+P+P4/2+P1+P4/4K4 b G 1",
    "4k4/9/2s1s4/9/2s1s4/3g5/2g1g4/9/4K4 w 2Pg 1",
    "8k/4R1R2/9/9/3N1N3/9/9/3L5/K8 b NL 1",
)
"""Where random games begin; None for the usual position."""


def random_record(seed: int, *, notes: bool = True, sfen: str | None = None) -> GameRecord:
    """Return the record of a random game with names, times, evaluations and comments."""
    rng = random.Random(seed)
    record = GameRecord(black="Sente 先手", white="Gote", comment="before it\nall", info={"EVENT": "a, b"})
    if sfen:
        record.initial = parse_sfen(sfen)
        *_, board = walk(seed, 40, sfen)
        moves = tuple(cshogi.move_to_usi(move) for move in board.history)
    else:
        moves = random_moves(seed, 60)
    for text in moves:
        move = RecordedMove(parse_usi(text))
        if notes:
            move.seconds = float(rng.randrange(200))
            move.score = rng.randrange(-3000, 3000) if rng.random() < 0.8 else None
            move.pv = "+7776FU -3334FU" if move.score is not None else ""
            move.comment = rng.choice(["", "", "good", "bad\nworse"])
        record.moves.append(move)
    record.ending = rng.choice(["TORYO", "SENNICHITE", "KACHI", "TIME_UP", "CHUDAN", "+ILLEGAL_ACTION", "TSUMI"])
    record.ending_seconds = 3.0
    return record


@pytest.mark.parametrize("seed", range(12))
def test_csa_is_read_back(seed: int) -> None:
    record = random_record(seed, sfen=STARTS[seed % 6])
    data = to_bytes([record, record], ".csa")
    again = read_records(data)
    record.initial = Placement(record.initial.board, record.initial.hands, record.initial.side)  # CSA has no number
    assert again == [record, record]


def test_a_comment_of_stars_is_no_evaluation() -> None:
    record = random_record(1)
    record.moves[3].score, record.moves[3].pv, record.moves[3].comment = None, "", "* 5 stars\n** 17"
    (again,) = read_records(to_bytes([record], ".csa"))
    assert again.moves[3].score is None
    assert again.moves[3].comment == " * 5 stars\n ** 17"


def test_a_last_separator_ends_the_games() -> None:
    record = random_record(2)
    data = to_bytes([record, record], ".csa")
    assert read_records(data + b"/\n") == read_records(data)
    with pytest.raises(RecordError, match="ends without a position"):
        read_records(b"/\n")


def test_kif_comments_are_read_back() -> None:
    """Of the stars that begin a line the first one is KIF's; only what would be taken for an evaluation is changed."""
    record = random_record(1)
    for number in (3, 4):
        record.moves[number].comment = "** 5\n評価値 12\n*評価値=7\n***"
    record.moves[3].score, record.moves[3].pv = None, ""
    record.moves[4].score, record.moves[4].pv = 30, ""
    record.comment = "評価値 5\n*a star"
    (again,) = read_records(to_bytes([record], ".kifu"))
    assert again.moves[3].comment == "** 5\n 評価値 12\n *評価値=7\n***"
    record.moves[3].comment = again.moves[3].comment
    assert again == record


def test_evaluations_of_other_programs_in_kif() -> None:
    lines = {
        "*評価値 31 a b": (31, "a b"),
        "**評価値=-70": (-70, ""),
        "*#評価値=108": (108, ""),
        "**Engines 0 a": (None, ""),
    }
    for line, expected in lines.items():
        (record,) = read_records(KIF_TEXT.replace("*良い手", line))
        assert (record.moves[0].score, record.moves[0].pv) == expected
        assert record.moves[0].comment == ("" if expected[1] or expected[0] else "*Engines 0 a")


def test_csa_is_read_by_cshogi() -> None:
    for seed in range(6):
        record = random_record(seed, sfen=MIDDLE if seed % 2 else None)
        text = csa.format_csa_record(record)
        parser = CSA.Parser.parse_str(text)[0]
        assert parser.sfen.split()[:2] == format_sfen(record.initial).split()[:2]
        assert [cshogi.move_to_usi(move) for move in parser.moves] == [format_usi(each.move) for each in record.moves]
        assert parser.times[: len(record.moves)] == [each.seconds for each in record.moves]
        sides = [1 if placement.side == BLACK else -1 for placement in record.placements()]
        scores = [side * (each.score or 0) for side, each in zip(sides, record.moves, strict=False)]
        assert parser.scores[: len(record.moves)] == scores
        assert parser.names == [record.black, record.white]
        assert parser.endgame == f"%{record.ending}"
        if record.ending not in ("CHUDAN", "TSUMI"):  # cshogi does not judge these
            assert {1: BLACK, 2: WHITE, 0: DRAW}[parser.win] == record.winner


def test_csa_written_by_cshogi_is_read(tmp_path: Path) -> None:
    for seed in range(4):
        path = tmp_path / f"{seed}.csa"
        exporter = CSA.Exporter(str(path), encoding="utf-8")
        *_, board = walk(seed, 50, MIDDLE if seed % 2 else cshogi.STARTING_SFEN)
        exporter.info(init_board=cshogi.Board(sfen=MIDDLE) if seed % 2 else None, names=["a", "b"], version="V2.2")
        for number, move in enumerate(board.history):
            exporter.move(move, time=number, comment=f"** {number} +7776FU", sep="," if seed > 1 else "\n")
        exporter.endgame("%TORYO", time=4)
        exporter.close()
        record = load_records(path)[0]
        assert [each.move for each in record.moves] == [cshogi.move16(move) for move in board.history]
        assert [each.seconds for each in record.moves] == list(range(len(board.history)))
        assert record.placements()[-1].board == placement_of(board).board
        assert record.ending_seconds == 4


FLOODGATE = """V2
N+one
N-two
'Max_Moves:256
$EVENT:wdoor+floodgate
P1-KY-KE-GI-KI-OU-KI-GI-KE-KY
P2 * -HI *  *  *  *  * -KA *
P3-FU-FU-FU-FU-FU-FU-FU-FU-FU
P4 *  *  *  *  *  *  *  *  *
P5 *  *  *  *  *  *  *  *  *
P6 *  *  *  *  *  *  *  *  *
P7+FU+FU+FU+FU+FU+FU+FU+FU+FU
P8 * +KA *  *  *  *  * +HI *
P9+KY+KE+GI+KI+OU+KI+GI+KE+KY
+
+7776FU,T12
'** 35 -3334FU +2726FU
-3334FU
T1
'** -40
'*a comment
%TORYO
'summary:toryo:one lose:two win
"""


def test_csa_of_floodgate() -> None:
    record = read_records(FLOODGATE)[0]
    assert record.initial == START
    assert [(each.seconds, each.score, each.pv) for each in record.moves] == [
        (12.0, 35, "-3334FU +2726FU"),
        (1.0, 40, ""),
    ]
    assert record.moves[1].comment == "a comment\nsummary:toryo:one lose:two win"
    assert (record.black, record.white, record.ending, record.winner) == ("one", "two", "TORYO", WHITE)
    assert record.game().sfen() == "lnsgkgsnl/1r5b1/pppppp1pp/6p2/9/2P6/PP1PPPPPP/1B5R1/LNSGKGSNL b - 3"


@pytest.mark.parametrize(
    ("text", "sfen"),
    [
        ("PI82HI22KA\n-\n", "lnsgkgsnl/9/ppppppppp/9/9/9/PPPPPPPPP/1B5R1/LNSGKGSNL w - 1"),
        ("P+59OU00FU00FU\nP-51OU\nP-00AL\n+\n", "4k4/9/9/9/9/9/9/9/4K4 b 2P2r2b4g4s4n4l16p 1"),
        ("P-51OU\nP+52TO00KI\n-\n", "4k4/4+P4/9/9/9/9/9/9/9 w G 1"),
    ],
)
def test_csa_positions(text: str, sfen: str) -> None:
    record = read_records(text)[0]
    assert format_sfen(record.initial) == sfen
    again = read_records("\n".join(csa.format_position(record.initial)))[0]
    assert again.initial == record.initial


def test_csa_version_3() -> None:
    record = read_records("'CSA encoding=UTF-8\nV3.0\nPI\n+\n+7776FU\nT0.523\n%MAX_MOVES\n")[0]
    assert record.moves[0].seconds == 0.523
    assert record.winner == DRAW


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("PI\n+\n+7775FU\n-3334FU\n", r"line 3: move 1 '\+7775FU': the piece on 7g does not move there"),
        ("PI\n+\n+7776KI\n", "line 3: move 1: .* found FU on 77, expected a piece that becomes KI"),
        ("PI\n+\n+77\n", r"line 3: '\+77': expected a statement of CSA"),
        ("PI\n+\n-3334FU\n", r"line 3: move 1: '-3334FU' is a move of the other side"),
        ("PI\n+\n+7776FU\nhello\n", "line 4: 'hello': expected a statement"),
        ("PI\n+\n%TORYO\n+7776FU\n", "line 4: .* after the end of the game"),
        ("PI\n+\n%FOO\n", "line 3: '%FOO': expected one of %TORYO"),
        ("PI\n+\n+7776FU\nT1.2.3\n", "line 4: time 'T1.2.3'"),
        ("PI\n+\n+\n", "line 3: a second side to move"),
        ("PI82KA\n+\n", "line 1: .* takes away KA on 82, which is not there"),
        ("PI82XX\n+\n", "line 1: .* expected a square and a piece"),
        ("P1-KY\n+\n", "line 2: the position: no king"),
        ("P1-KX\n+\n", "line 1: '-KX' in"),
        ("V2.2\n", "line 1: the record ends without a position"),
        ("PI\n", "line 1: the record ends without the side to move"),
        ("P+59OU59KI\n", "line 1: .* puts two pieces on 59"),
        ("PI\n+\nP+00FU\n", "line 3: .* after the side to move"),
        ("", "an empty record"),
    ],
)
def test_broken_csa(text: str, words: str) -> None:
    with pytest.raises(RecordError, match=words) as caught:
        read_records(text)
    assert len(str(caught.value).splitlines()) == 1


@pytest.mark.parametrize("seed", range(12))
def test_kif_is_read_back(seed: int, tmp_path: Path) -> None:
    record, expected = (random_record(seed, sfen=STARTS[seed % 6]) for _ in range(2))
    for name in ("game.kif", "game.kifu"):
        save_records(tmp_path / name, [record])
        again = load_records(tmp_path / name)
        expected.initial = Placement(expected.initial.board, expected.initial.hands, expected.initial.side)
        if record.ending == "+ILLEGAL_ACTION" and again[0].ending == "ILLEGAL_MOVE":
            expected.ending = "ILLEGAL_MOVE"  # 反則負け: the same winner
        assert again[0].winner == record.winner
        assert again == [expected]


def test_kif_is_read_by_cshogi(tmp_path: Path) -> None:
    for seed in range(6):
        record = random_record(seed)
        save_records(tmp_path / "game.kifu", [record])
        parser = KIF.Parser.parse_file(str(tmp_path / "game.kifu"))
        assert [cshogi.move16(move) for move in parser.moves] == [each.move for each in record.moves]
        assert parser.times[: len(record.moves)] == [each.seconds for each in record.moves]
        assert parser.names == [record.black, record.white]


def test_kif_written_by_cshogi_is_read(tmp_path: Path) -> None:
    for seed in range(4):
        path = tmp_path / "game.kif"
        exporter = KIF.Exporter(str(path))
        *_, board = walk(seed, 50, MIDDLE if seed % 2 else cshogi.STARTING_SFEN)
        exporter.header(["先", "後"], handicap=cshogi.Board(sfen=MIDDLE) if seed % 2 else None)
        total = [0, 0]
        for number, move in enumerate(board.history):
            total[number % 2] += number
            exporter.move(move, number, total[number % 2])
        exporter.end("resign", 3, 4)
        exporter.close()
        record = load_records(path)[0]
        assert [each.move for each in record.moves] == [cshogi.move16(move) for move in board.history]
        assert [each.seconds for each in record.moves] == list(range(len(board.history)))
        assert (record.black, record.white, record.ending) == ("先", "後", "TORYO")


KIF_TEXT = """# ---- 棋譜ファイル ----
開始日時：2026/11/21 10:00:00
手合割：平手
先手：先手の人
後手：後手の人
手数----指手---------消費時間--
*始め
   1 ７六歩(77)   ( 0:16/00:00:16)
*良い手
   2 ３四歩(33)   ( 0:02/00:00:02)+
   3 ２二角成(88) ( 1:05/00:01:21)
   4 同　銀(31)   ( 0:00/00:00:02)
   5 ５五角打     ( 0:00/00:01:21)
   6 投了         ( 0:00/00:00:02)
まで5手で先手の勝ち

変化：2手
   2 ８四歩(83)   ( 0:00/00:00:00)
"""

KI2_TEXT = """手合割：平手
先手：a
後手：b

▲７六歩    △３四歩    ▲２二角成  △同　銀
▲５五角    △３三銀    ☗３三角不成 ☖同　桂
まで8手で後手の勝ち
"""


def test_kif_of_other_programs() -> None:
    for text in (KIF_TEXT, "\ufeff" + KIF_TEXT, KIF_TEXT.replace("\n", "\r\n")):
        record = read_records(text.encode())[0]
        assert format_usi_line(record) == "startpos moves 7g7f 3c3d 8h2b+ 3a2b B*5e"
        assert [each.seconds for each in record.moves] == [16.0, 2.0, 65.0, 0.0, 0.0]
        assert (record.comment, record.moves[0].comment) == ("始め", "良い手")
        assert (record.ending, record.winner) == ("TORYO", BLACK)
        assert record.info == {"START_TIME": "2026/11/21 10:00:00"}
    plain = "\n".join(line for line in KIF_TEXT.splitlines() if not line.startswith(("#", "開", "手合", "先", "後")))
    assert len(read_records(plain.encode("cp932"))[0].moves) == 5


@pytest.mark.parametrize(
    ("word", "ending", "winner"),
    [
        ("トライ", "TORYO", BLACK),
        ("最大手数", "MAX_MOVES", DRAW),
        ("引き分け", "HIKIWAKE", DRAW),
        ("不戦勝", "+ILLEGAL_ACTION", WHITE),
        ("反則勝ち", "+ILLEGAL_ACTION", WHITE),
    ],
)
def test_endings_of_shogihome(word: str, ending: str, winner: int) -> None:
    moves = KI2_TEXT[: KI2_TEXT.index("△３三銀")]
    for text in (KIF_TEXT.replace("投了", word).replace("先手の勝ち", word), f"{moves}\nまで5手で{word}\n"):
        (record,) = read_records(text)
        assert (len(record.moves), record.ending, record.winner, record.left_out) == (5, ending, winner, [])


@pytest.mark.parametrize(
    ("result", "ending"),
    [
        ("△投了\nまで5手で先手の勝ち", "TORYO"),
        ("△投了", "TORYO"),
        ("△　反則勝ち", "+ILLEGAL_ACTION"),
        ("\nまで5手詰", "TSUMI"),
        ("\nまで、先手の勝ち", "TORYO"),
        ("\nまで、5手で先手の勝ち", "TORYO"),
        ("\nまで千日手", "SENNICHITE"),
    ],
)
def test_endings_of_ki2(result: str, ending: str) -> None:
    (record,) = read_records(KI2_TEXT[: KI2_TEXT.index("△３三銀")] + result)
    assert (len(record.moves), record.ending, record.left_out) == (5, ending, [])


def test_the_first_ending_stays() -> None:
    (record,) = read_records(KIF_TEXT.replace("まで5手で先手の勝ち", "   7 中断 ( 0:09/00:00:11)\nまで6手で中断"))
    assert (len(record.moves), record.ending, record.ending_seconds, record.winner) == (5, "TORYO", 0.0, BLACK)
    (record,) = read_records(FLOODGATE.replace("%TORYO", "%TORYO\n%CHUDAN"))
    assert (record.ending, record.winner) == ("TORYO", WHITE)


KIF_FOUL = KIF_TEXT.replace("投了         ( 0:00/00:00:02)", "４二銀(22)   ( 0:03/00:00:05)")
RESULT = "まで5手で先手の勝ち\n"


@pytest.mark.parametrize(
    "rest",
    ["", RESULT, "   7 反則勝ち\n", "*反則手にて終局\n", "まで6手で後手の反則負け\n", "   7 反則勝ち\n" + RESULT],
)
def test_kif_of_a_game_that_an_illegal_move_has_ended(rest: str) -> None:
    (record,) = read_records(KIF_FOUL.replace(RESULT, rest))
    assert (len(record.moves), record.moves[-1].seconds, len(record.variations)) == (5, 0.0, 1)
    assert (record.ending, record.ending_seconds, record.winner) == ("-ILLEGAL_ACTION", 3.0, BLACK)
    where = "the illegal move at line 14: move 6"
    assert record.left_out == [f"{where} '４二銀(22)': the piece on 2b does not move there"]


@pytest.mark.parametrize("rest", ["   7 投了\n", "まで6手で後手の勝ち\n", "   7 ２六歩(27)\n" + RESULT])
def test_an_impossible_move_that_the_ending_does_not_tell_of(rest: str) -> None:
    with pytest.raises(RecordError, match=r"^line 14: move 6 '４二銀\(22\)': the piece on 2b does not move there"):
        read_records(KIF_FOUL.replace(RESULT, rest))


def test_ki2_of_a_game_that_an_illegal_move_has_ended() -> None:
    text = "先手：a\n後手：b\n▲７六歩　△３四歩　▲３三角成　△８四歩{}\nまで4手で後手の反則負け\n"
    (record,) = read_records(text.format(""))
    assert (len(record.moves), record.ending, record.winner) == (3, "-ILLEGAL_ACTION", BLACK)
    assert record.left_out == ["the illegal move at line 3: move 4 '△８四歩': the king is in check"]
    for ending in ("▲反則勝ち", "　▲反則勝ち"):
        assert read_records(text.format(ending)) == [record]
    for following in ("　▲２六歩", "　▲投了", "　▲２六歩　△反則勝ち"):
        with pytest.raises(RecordError, match="line 3: move 4 '△８四歩': the king is in check"):
            read_records(text.format(following))


def test_csa_of_a_game_that_an_illegal_move_has_ended() -> None:
    text = "PI\n+\n+7776FU\n-3334FU\n+8833UM\n-8384FU\nT4\n"
    for rest in ("", "%ILLEGAL_MOVE\n", "%-ILLEGAL_ACTION\nT0\n", "'a comment\n"):
        record, other = read_records(f"{text}{rest}/\nPI\n-\n-3334FU\n%TORYO\n")
        assert (len(record.moves), record.ending, record.winner) == (3, "-ILLEGAL_ACTION", BLACK)
        assert record.ending_seconds == (0.0 if "T0" in rest else 4.0)
        assert record.left_out == ["the illegal move at line 6: move 4 '-8384FU': the king is in check"]
        assert (len(other.moves), other.ending, other.left_out) == (1, "TORYO", [])
    for rest in ("%TORYO\n", "%+ILLEGAL_ACTION\n", "+2726FU\n"):
        with pytest.raises(RecordError, match=r"^line 6: move 4 '-8384FU': the king is in check"):
            read_records(text + rest)


MATED_BY_A_PAWN = parse_sfen("7nk/9/7G1/9/9/9/9/9/4K4 b P2r2b3g4s3n4l17p 1")


@pytest.mark.parametrize(
    ("rest", "ending", "winner"),
    [
        ("%ILLEGAL_MOVE\n", "+ILLEGAL_ACTION", WHITE),
        ("T7\n'a comment\n%+ILLEGAL_ACTION\n", "+ILLEGAL_ACTION", WHITE),
        ("%TSUMI\n", "TSUMI", BLACK),
        ("%TORYO\n", "TORYO", BLACK),
        ("", "", None),
    ],
)
def test_csa_of_a_game_that_a_mating_pawn_has_ended(rest: str, ending: str, winner: int | None) -> None:
    text = "\n".join([*csa.format_position(MATED_BY_A_PAWN), "+0012FU", rest])
    (record,) = read_records(text)
    assert (record.ending, record.winner) == (ending, winner)
    foul = ending == "+ILLEGAL_ACTION"
    assert len(record.moves) == (0 if foul else 1)
    assert record.left_out == (
        ["the illegal move at line 13: move 1 '+0012FU': a pawn may not be dropped to mate"] if foul else []
    )
    assert record.ending_seconds == (7.0 if "T7" in rest else None)


@pytest.mark.parametrize(
    ("rest", "ending", "winner"),
    [
        ("まで1手で後手の勝ち\n", "+ILLEGAL_ACTION", WHITE),
        ("   2 反則勝ち\nまで1手で先手の反則負け\n", "+ILLEGAL_ACTION", WHITE),
        ("   2 反則負け\n", "+ILLEGAL_ACTION", WHITE),
        ("   2 詰み\nまで1手で先手の勝ち\n", "TSUMI", BLACK),
        ("まで1手で先手の勝ち\n", "TORYO", BLACK),
        ("", "", None),
    ],
)
def test_kif_of_a_game_that_a_mating_pawn_has_ended(rest: str, ending: str, winner: int | None) -> None:
    for move in ("   1 １二歩打 ( 0:03/00:00:03)", "▲１二歩打"):
        (record,) = read_records("\n".join([*kif.format_position(MATED_BY_A_PAWN), move, rest]))
        assert (record.ending, record.winner) == (ending, winner)
        assert len(record.moves) == (0 if ending == "+ILLEGAL_ACTION" else 1)


def test_kif_with_a_turned_board_and_with_two_times() -> None:
    (record,) = read_records(KIF_TEXT)
    assert read_records(KIF_TEXT.replace("手合割：平手", "手合割：平手\n盤面回転")) == [record]
    assert read_records(KIF_TEXT.replace("/00:00:16)", "/00:00:16) ( 0:07/00:00:07)")) == [record]


@pytest.mark.parametrize("sfen", [None, STARTS[2]])
def test_the_last_line_calls_the_sides_what_they_are(sfen: str | None) -> None:
    record = random_record(2, sfen=sfen)
    record.ending = "TORYO"
    names = {BLACK: "下手", WHITE: "上手"} if sfen else {BLACK: "先手", WHITE: "後手"}
    assert record.winner is not None
    lines = kif.format_kif_record(record, "UTF-8").splitlines()
    assert lines[-1] == f"まで{len(record.moves)}手で{names[record.winner]}の勝ち"
    assert f"{names[BLACK]}：{record.black}" in lines


def test_an_ending_that_is_unknown_is_left_out() -> None:
    text = KIF_TEXT.replace("投了", "お開き").replace("先手の勝ち", "お開き")
    (record,) = read_records(text)
    assert (len(record.moves), record.ending, record.winner) == (5, "", None)
    assert record.left_out == ["the ending 'お開き' at line 14, which is unknown"]
    assert [len(each.moves) for each in record.variations] == [1]
    (won,) = read_records(KIF_TEXT.replace("投了", "お開き"))
    assert (won.ending, won.winner) == ("TORYO", BLACK)
    (record,) = read_records(KIF_TEXT + "   3 お開き\n")
    assert (record.ending, record.variations[0].ending, len(record.left_out)) == ("TORYO", "", 1)
    for move in ("同　何か", "７七何か", "歩(77)"):
        with pytest.raises(RecordError, match="line 14: move 6: not a move"):
            read_records(KIF_TEXT.replace("投了", move))


def test_colons_of_any_width() -> None:
    (record,) = read_records(KIF_TEXT.replace("：", ":"))
    assert record == read_records(KIF_TEXT)[0]
    (record,) = read_records("先手:a\n手合割:二枚落ち\n")
    assert (record.black, record.initial.side) == ("a", WHITE)


@pytest.mark.parametrize(("value", "side"), [("", BLACK), ("先手", BLACK), ("後手", WHITE), ("上手", WHITE)])
def test_the_side_to_move_of_a_diagram(value: str, side: int) -> None:
    diagram = [line for line in kif.format_position(MATED_BY_A_PAWN) if line != "後手番"]
    (record,) = read_records("\n".join([*diagram, f"手番：{value}", "先手：a"]))
    assert record.initial.side == side


def test_handicaps_of_seven_pieces() -> None:
    """White's left is the right of the diagram: of 左七枚落ち the silver on 71 is left, of 右七枚落ち that on 31."""
    for name, square in (("左七枚落ち", 6), ("右七枚落ち", 2)):
        (record,) = read_records(f"手合割：{name}\n")
        silvers = [9 * file for file in range(9) if type_of(record.initial.board[9 * file]) == SILVER]
        assert silvers == [9 * square]
        assert kif.format_position(record.initial) == [f"手合割：{name}"]


@pytest.mark.parametrize(("name", "board"), kif.HANDICAPS.items())
def test_handicaps_are_what_their_names_say(name: str, board: str) -> None:
    counts = {"香": 1, "角": 1, "飛車": 1, "飛香": 2} | {word: n for n, word in enumerate("一二三四五六七八九十", 1)}
    given = name.removesuffix("落ち").removesuffix("枚").lstrip("左右")
    placement = parse_sfen(f"{board} w - 1")
    assert sum(map(bool, START.board)) - sum(map(bool, placement.board)) == counts[given]
    assert all(code == START.board[square] for square, code in enumerate(placement.board) if code or square % 9 > 2)


def test_ki2_of_other_programs() -> None:
    record = read_records(KI2_TEXT)[0]
    assert format_usi_line(record) == "startpos moves 7g7f 3c3d 8h2b+ 3a2b B*5e 2b3c 5e3c 2a3c"
    assert (record.ending, record.winner, record.black) == ("TORYO", WHITE, "a")


def ki2_of(record: GameRecord) -> str:
    """Return a game as KI2 text."""
    moves, previous = [], None
    for recorded, placement in zip(record.moves, record.placements(), strict=False):
        moves.append(format_japanese(recorded.move, placement, previous))
        previous = target_of(recorded.move)
    rows = ["　".join(moves[i : i + 6]) for i in range(0, len(moves), 6)]
    result = kif.format_kif_record(record, "UTF-8").splitlines()[-1]
    return "\n".join([*kif.format_position(record.initial), "", *rows, result])


@pytest.mark.parametrize("seed", range(6))
def test_ki2_is_read_back(seed: int) -> None:
    record = random_record(seed, notes=False, sfen=MIDDLE if seed % 2 else None)
    record.ending = ["TORYO", "SENNICHITE", "KACHI", "TIME_UP", "CHUDAN", "+ILLEGAL_ACTION"][seed]
    again = read_records(ki2_of(record))[0]
    assert again.moves == [RecordedMove(each.move) for each in record.moves]
    assert (again.ending, again.winner) == (record.ending, record.winner)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (KIF_TEXT.replace("７六歩(77)", "７五歩(77)"), "line 8: move 1 '７五歩.*: the piece on 7g does not move there"),
        (KIF_TEXT.replace("７六歩(77)", "７六歩(76)"), "line 8: move 1: '７六歩.*no such piece"),
        (KIF_TEXT.replace("７六歩(77)", "何か"), "line 8: move 1: not a move: '何か', expected Japanese"),
        (KIF_TEXT.replace("３四歩(33)", "７六歩(77)"), "line 10: move 2: .*no such piece"),
        (KIF_TEXT.replace("( 0:16/00:00:16)", "( 0:1.6.2/00:00:16)"), "line 8: time '0:1.6.2'"),
        (KIF_TEXT.replace("平手", "変な手"), "手合割：変な手 without a diagram"),
        (KIF_TEXT.replace("*始め", "始め"), "line 7: '始め': expected a line of KIF"),
        (KI2_TEXT.replace("△同　銀", "△同　金"), "line 5: move 4: '△同金': no such piece"),
        (KI2_TEXT.replace("▲５五角", "△５五角"), "line 6: move 5: '△５五角' is a move of the other side"),
        (KI2_TEXT.replace("後手の勝ち", "先手の勝ち"), "but it is the winner's turn"),
        (KI2_TEXT.replace("後手の勝ち", "おしまい"), "'おしまい': expected how the game ended"),
        (KI2_TEXT.replace("後手の勝ち", ""), "line 7: '': expected how the game ended"),
        ("手合割：その他\n|v香|一\n", "line 2: a diagram of 1 ranks"),
        ("後手の持駒：犬\n手合割：平手\n", "line 1: '犬' in the hand"),
    ],
)
def test_broken_kif(text: str, words: str) -> None:
    with pytest.raises(RecordError, match=words) as caught:
        read_records(text)
    assert len(str(caught.value).splitlines()) == 1


def test_usi_lines() -> None:
    text = "# openings\nstartpos moves 7g7f 3c3d\n\nposition startpos\n" + f"sfen {MIDDLE}\n{MIDDLE}\n"
    records = read_records(text)
    assert [len(record.moves) for record in records] == [2, 0, 0, 0]
    assert records[2] == records[3]
    assert read_records(to_bytes(records, ".usi")) == records
    for line, words in (
        ("startpos moves 7g7e", "line 1: move 1 7g7e: the piece on 7g does not move there"),
        ("startpos moves xyz", "line 1: not a move"),
        ("nonsense", "line 1: SFEN of 1 fields"),
    ):
        with pytest.raises(RecordError, match=words):
            read_records(line)


def test_hcpe_is_that_of_cshogi() -> None:
    records = [random_record(seed, sfen=None) for seed in range(6)]
    for record in records:
        record.ending = "TORYO"
    data = to_bytes(records, ".hcpe")
    rows = np.frombuffer(data, cshogi.HuffmanCodedPosAndEval)
    positions = hcpe.read_hcpe(data)
    assert len(rows) == len(positions) > 100
    board = cshogi.Board()
    expected = [
        (placement, each, record.winner)
        for record in records
        for each, placement in zip(record.moves, record.placements(), strict=False)
        if each.score is not None
    ]
    for row, position, (placement, move, winner) in zip(rows, positions, expected, strict=True):
        board.set_hcp(np.ascontiguousarray(row["hcp"]))
        assert board.sfen().split()[:3] == format_sfen(placement).split()[:3]
        packed = np.zeros(32, np.uint8)
        cshogi.Board(sfen=format_sfen(placement)).to_hcp(packed)
        assert packed.tobytes() == row["hcp"].tobytes()
        assert (int(row["eval"]), int(row["bestMove16"]), int(row["gameResult"])) == (move.score, move.move, winner)
        assert (position.score, position.move, position.winner) == (move.score, move.move, winner)
        assert position.placement.board == placement.board


def test_hcpe_leaves_out_games_without_result_and_moves_without_evaluation() -> None:
    record = random_record(1)
    record.ending = "CHUDAN"
    assert to_bytes([record], ".hcpe") == b""
    record = random_record(1, notes=False)
    record.ending = "TORYO"
    assert to_bytes([record], ".hcpe") == b""
    record.moves[3].score = 100_000
    assert hcpe.read_hcpe(to_bytes([record], ".hcpe"))[0].score == 32767


def test_broken_hcpe() -> None:
    with pytest.raises(RecordError, match="39 bytes: expected whole records of 38"):
        hcpe.read_hcpe(b"x" * 39)
    with pytest.raises(RecordError, match="without all 40 pieces"):
        hcpe.pack(parse_sfen("4k4/9/9/9/9/9/9/9/4K4 b - 1"))
    with pytest.raises(RecordError, match="without two kings"):
        hcpe.pack(parse_sfen("4k4/9/9/9/9/9/9/9/9 b - 1"))
    good = hcpe.pack(START)
    row = np.zeros(1, hcpe.HCPE_DTYPE)
    row["hcp"], row["move"], row["result"] = np.frombuffer(good, np.uint8), 5, 1
    with pytest.raises(RecordError, match="record 1, its move"):
        hcpe.read_hcpe(row.tobytes())
    row["move"], row["result"] = parse_usi("7g7f"), 9
    with pytest.raises(RecordError, match="result 9: expected 0, 1 or 2"):
        hcpe.read_hcpe(row.tobytes())
    assert hcpe.read_hcpe(b"") == []
    rng = random.Random(5)
    for _ in range(2000):
        damaged = bytearray(good)
        for _ in range(rng.randrange(1, 4)):
            damaged[rng.randrange(32)] ^= 1 << rng.randrange(8)
        try:
            placement = hcpe.unpack(bytes(damaged))
        except RecordError as error:
            assert len(str(error).splitlines()) == 1  # noqa: PT017
        else:
            assert hcpe.unpack(hcpe.pack(placement)) == placement


@settings(max_examples=300, deadline=None)
@given(st.sampled_from([FLOODGATE, KIF_TEXT, KI2_TEXT]), st.data())
def test_damaged_records_are_read_or_get_one_line(text: str, data: st.DataObject) -> None:
    letters = list(text)
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(letters) - 1))
        letters[at] = data.draw(st.sampled_from([*"+-PN%'T,0179\n|(:", "", "同", "歩", "１", "：", "▲", "成", "まで"]))
    try:
        records = read_records("".join(letters))
    except RecordError as error:
        assert len(str(error).splitlines()) == 1  # noqa: PT017
        return
    for record in records:
        assert record.placements()


def test_files(tmp_path: Path) -> None:
    record = random_record(3)
    with pytest.raises(RecordError, match="cannot read"):
        load_records(tmp_path / "no")
    with pytest.raises(RecordError, match="cannot write"):
        save_records(tmp_path / "no" / "game.csa", [record])
    with pytest.raises(RecordError, match=r"ending in '.pgn': expected one of .csa, .kif"):
        save_records(tmp_path / "game.pgn", [record])
    with pytest.raises(RecordError, match="2 games: expected one for a file in KIF"):
        save_records(tmp_path / "game.kif", [record, record])
    record.black = "한글"
    with pytest.raises(RecordError, match=r"Shift JIS has no '한': expected a name ending in .kifu"):
        save_records(tmp_path / "game.kif", [record])
    (tmp_path / "bad").write_bytes(b"\x81")
    with pytest.raises(RecordError, match="neither UTF-8 nor Shift JIS"):
        load_records(tmp_path / "bad")
    assert os.listdir(tmp_path) == ["bad"]


def test_records_and_games() -> None:
    game = ShogiGame()
    for text in random_moves(4, 30):
        game.play(parse_usi(text))
    record = record_of(game, [RecordedMove(0, 1.0, 5)], black="x", ending="TORYO")
    assert record.game().sfen() == game.sfen()
    assert len(record.game(10).moves) == 10
    assert (record.moves[0].seconds, record.moves[0].score, record.moves[1].score) == (1.0, 5, None)
    mate = GameRecord(parse_sfen("7nk/9/7G1/9/9/9/9/9/4K4 b GP 1"), [RecordedMove(parse_usi("P*1b"))])
    with pytest.raises(RecordError, match=r"move 1 of the record: .*a pawn may not be dropped to mate"):
        mate.game()


def test_winners() -> None:
    record = GameRecord(moves=[RecordedMove(parse_usi("7g7f"))])
    expected = {"TORYO": BLACK, "KACHI": WHITE, "SENNICHITE": DRAW, "CHUDAN": None, "-ILLEGAL_ACTION": BLACK}
    for ending, winner in expected.items():
        assert ending in ENDINGS
        record.ending = ending
        assert record.winner == winner
    record.ending = ""
    assert record.winner is None

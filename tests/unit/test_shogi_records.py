"""Game records: CSA, KIF, KI2, USI and hcpe, read back by us and by cshogi."""

import json
import os
import random
import re
import time
from dataclasses import replace
from pathlib import Path

import cshogi
import numpy as np
import pytest
from cshogi import CSA, KIF
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.shared_data import shared_path
from tests.unit.shogi_boards import placement_of, random_moves, walk
from yomi.engine.color import BLACK, DRAW, WHITE
from yomi.engine.records import Note
from yomi.engine.shogi.game import ShogiGame
from yomi.engine.shogi.notation import format_japanese, format_usi, parse_usi
from yomi.engine.shogi.placement import Placement, format_sfen, parse_sfen, target_of, type_of
from yomi.engine.shogi.records import csa, japanese, kif, packed
from yomi.engine.shogi.records.files import load_records, read_records, save_records, to_bytes
from yomi.engine.shogi.records.japanese import japanese_pv
from yomi.engine.shogi.records.record import (
    ENDINGS,
    START,
    GameRecord,
    RecordedMove,
    RecordError,
    format_usi_line,
    record_of,
)
from yomi.native.shogi.pieces import SILVER

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
        csa.read_csa("/\n")


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
    assert without_pv(again) == without_pv(record)


def without_pv(record: GameRecord) -> GameRecord:
    """Return a record without the expected lines, whose text is each form's own."""
    return replace(record, moves=[replace(recorded, pv="") for recorded in record.moves])


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
    assert (record.moves[1].comment, record.end_comment) == ("a comment", "summary:toryo:one lose:two win")
    assert csa.format_csa_record(record).endswith("%TORYO\n'summary:toryo:one lose:two win\n")
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
        ("PI\n+\n+7776FU\n+2726FU\n", r"line 4: move 2: '\+2726FU' is a move of the other side"),
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
        assert [without_pv(read) for read in again] == [without_pv(expected)]
        lines = [(read, placement) for read, placement in zip(again[0].moves, record.placements(), strict=False)]
        assert [read.pv for read, _ in lines] == [japanese_pv(read, placement) for read, placement in lines]


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
        assert (len(record.moves), record.ending, record.winner, record.notes) == (5, ending, winner, [])


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
    assert (len(record.moves), record.ending, record.notes) == (5, ending, [])


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
    why = "the piece on 2b does not move there"
    assert record.notes == [Note(f"move 6 '４二銀(22)': {why}; the illegal move is left out", 14)]


@pytest.mark.parametrize("rest", ["   7 投了\n", "まで6手で後手の勝ち\n", "   7 ２六歩(27)\n" + RESULT])
def test_an_impossible_move_that_the_ending_does_not_tell_of(rest: str) -> None:
    with pytest.raises(RecordError, match=r"^line 14: move 6 '４二銀\(22\)': the piece on 2b does not move there"):
        read_records(KIF_FOUL.replace(RESULT, rest))


def test_ki2_of_a_game_that_an_illegal_move_has_ended() -> None:
    text = "先手：a\n後手：b\n▲７六歩　△３四歩　▲３三角成　△８四歩{}\nまで4手で後手の反則負け\n"
    (record,) = read_records(text.format(""))
    assert (len(record.moves), record.ending, record.winner) == (3, "-ILLEGAL_ACTION", BLACK)
    assert record.notes == [Note("move 4 '△８四歩': the king is in check; the illegal move is left out", 3)]
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
        assert record.notes == [Note("move 4 '-8384FU': the king is in check; the illegal move is left out", 6)]
        assert (len(other.moves), other.ending, other.notes) == (1, "TORYO", [])
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
    text = "move 1 '+0012FU': a pawn may not be dropped to mate; the illegal move is left out"
    assert record.notes == ([Note(text, 13)] if foul else [])
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
        (record,) = read_records("\n".join([*japanese.format_position(MATED_BY_A_PAWN), move, rest]))
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
    assert record.notes == [Note("the ending 'お開き' is unknown and left out", 14)]
    assert [len(each.moves) for each in record.variations] == [1]
    (won,) = read_records(KIF_TEXT.replace("投了", "お開き"))
    assert (won.ending, won.winner) == ("TORYO", BLACK)
    (record,) = read_records(KIF_TEXT + "   3 お開き\n")
    assert (record.ending, record.variations[0].ending, len(record.notes)) == ("TORYO", "", 1)
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
    diagram = [line for line in japanese.format_position(MATED_BY_A_PAWN) if line != "後手番"]
    (record,) = read_records("\n".join([*diagram, f"手番：{value}", "先手：a"]))
    assert record.initial.side == side


def test_handicaps_of_seven_pieces() -> None:
    """White's left is the right of the diagram: of 左七枚落ち the silver on 71 is left, of 右七枚落ち that on 31."""
    for name, square in (("左七枚落ち", 6), ("右七枚落ち", 2)):
        (record,) = read_records(f"手合割：{name}\n")
        silvers = [9 * file for file in range(9) if type_of(record.initial.board[9 * file]) == SILVER]
        assert silvers == [9 * square]
        lines = japanese.format_position(record.initial)
        assert (lines[0], lines[-1]) == ("手合割：その他", "上手番")
        assert read_records("\n".join(lines))[0].initial == record.initial


@pytest.mark.parametrize(("name", "board"), japanese.HANDICAPS.items())
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
    return "\n".join([*japanese.format_position(record.initial), "", *rows, result])


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
        (KIF_TEXT.replace("平手", "変な手"), "手合割：変な手 without a diagram"),
        (KI2_TEXT.replace("△同　銀", "△同　金"), "line 5: move 4: '△同金': no such piece"),
        (KI2_TEXT.replace("▲５五角", "△５五角"), "line 6: move 5: '△５五角' is a move of the other side"),
        ("手合割：その他\n|v香|一\n", "line 3: a diagram of 1 ranks"),
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
    positions = packed.read_hcpe(data)
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
        hcp = np.zeros(32, np.uint8)
        cshogi.Board(sfen=format_sfen(placement)).to_hcp(hcp)
        assert hcp.tobytes() == row["hcp"].tobytes()
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
    assert packed.read_hcpe(to_bytes([record], ".hcpe"))[0].score == 32767


def test_broken_hcpe() -> None:
    with pytest.raises(RecordError, match="39 bytes: expected whole records of 38"):
        packed.read_hcpe(b"x" * 39)
    with pytest.raises(RecordError, match="without all 40 pieces"):
        packed.pack(parse_sfen("4k4/9/9/9/9/9/9/9/4K4 b - 1"))
    with pytest.raises(RecordError, match="without two kings"):
        packed.pack(parse_sfen("4k4/9/9/9/9/9/9/9/9 b - 1"))
    good = packed.pack(START)
    row = np.zeros(1, packed.HCPE_DTYPE)
    row["hcp"], row["move"], row["result"] = np.frombuffer(good, np.uint8), 5, 1
    with pytest.raises(RecordError, match="record 1, its move"):
        packed.read_hcpe(row.tobytes())
    row["move"], row["result"] = parse_usi("7g7f"), 9
    with pytest.raises(RecordError, match="result 9: expected 0, 1 or 2"):
        packed.read_hcpe(row.tobytes())
    assert packed.read_hcpe(b"") == []
    rng = random.Random(5)
    for _ in range(2000):
        damaged = bytearray(good)
        for _ in range(rng.randrange(1, 4)):
            damaged[rng.randrange(32)] ^= 1 << rng.randrange(8)
        try:
            placement = packed.unpack(bytes(damaged))
        except RecordError as error:
            assert len(str(error).splitlines()) == 1  # noqa: PT017
        else:
            assert packed.unpack(packed.pack(placement)) == placement


@settings(max_examples=300, deadline=None)
@given(st.sampled_from(["floodgate", "kif", "ki2", "bod", "jkf"]), st.booleans(), st.data())
def test_damaged_records_are_read_or_get_one_line(form: str, cut: bool, data: st.DataObject) -> None:
    texts = {"floodgate": FLOODGATE, "kif": KIF_TEXT, "ki2": KI2_TEXT, "bod": BOD, "jkf": json.dumps(JKF)}
    letters = list(texts[form])
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(letters) - 1))
        letters[at] = data.draw(
            st.sampled_from([*"+-PN%'T,0179\n|(:{}[]\0\x1c", "", "同", "歩", "１", "：", "▲", "成", "まで", "評価値 1"])
        )
    try:
        records = read_records("".join(letters), cut=cut)
    except RecordError as error:
        assert len(str(error).splitlines()) == 1  # noqa: PT017
        return
    for record in records:
        assert record.placements()
        assert all(to_bytes([record], suffix) for suffix in (".csa", ".kifu", ".usi"))


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
    with pytest.raises(RecordError, match="neither UTF-8 nor Shift JIS nor EUC-JP"):
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


CASES = {
    "cs-badbytes.csa": ("7g7f 3c3d", "TORYO"),
    "cs-collapsed.csa": ("7g7f", ""),
    "cs-end-UNKNOWN.csa": ("7g7f 3c3d", ""),
    "cs-hash.csa": ("7g7f 3c3d", "TORYO"),
    "cs-t-before.csa": ("2g2f 8c8d", ""),
    "hd-hantenkaiten.kif": ("7g7f 3c3d", ""),
    "hd-longkey.kif": ("7g7f 3c3d", ""),
    "hd-title.kif": ("7g7f 3c3d", ""),
    "k2-title.ki2": ("7g7f 3c3d", "TORYO"),
    "made-hansokute.kif": ("7g7f 3c3d", "-ILLEGAL_ACTION"),
    "made-nite.kif": ("7g7f 3c3d", "TORYO"),
    "made-renzoku.kif": ("7g7f 3c3d", "+ILLEGAL_ACTION"),
    "made-sente-no-kachi-wrong-turn.kif": ("7g7f 3c3d", ""),
    "made-setsudan.kif": ("7g7f 3c3d", ""),
}


@pytest.mark.parametrize("name", CASES)
def test_faults_of_other_programs_are_notes(name: str) -> None:
    (record,) = load_records(shared_path("cases", "shogi", name))
    moves = " ".join(format_usi(recorded.move) for recorded in record.moves)
    assert (moves, record.ending) == CASES[name]
    assert len(record.notes) == 1
    assert record.notes[0].line > 0


@pytest.mark.parametrize(
    ("text", "moves", "ending", "notes"),
    [
        ("PI\n+\n+7776FU\nhello\n%TORYO", 1, "TORYO", [(4, "'hello' is no statement")]),
        ("PI\n+\n%TORYO\n+7776FU\n-3334FU", 0, "TORYO", [(4, "the moves from '+7776FU' on, after the end")]),
        ("PI\n+\n+7776FU\n%CHUDAN\n-3334FU", 2, "", [(5, "the game continues after its interruption")]),
        ("PI\n+\n+7776FU\n%FOO", 1, "", [(4, "the ending '%FOO' is unknown")]),
        ("PI\n+\n+7776FU\nT1.2.3\nTnan\n", 1, "", [(4, "time 'T1.2.3'"), (5, "time 'Tnan'")]),
        ("PI\n+\n-\n+7776FU\n", 1, "", [(3, "a second side to move '-' is left out")]),
        ("PI\n+\n-3334FU\n", 1, "", [(3, "the first move is -, which is taken for the side to move")]),
        ("PI\n+\nT3\n+7776FU\n", 1, "", [(3, "time 'T3' before the first move")]),
        ("PI\n+\n+7776FU\n'** 30 -3334FU\n+2726FU", 3, "", [(5, "move 2 '-3334FU' is taken from the end")]),
        (KIF_TEXT.replace("( 0:16/00:00:16)", "( 0:1.6.2/00:00:16)"), 5, "TORYO", [(8, "time '0:1.6.2' is left")]),
        (KIF_TEXT.replace("*始め", "始め"), 5, "TORYO", [(7, "'始め' is no line of KIF")]),
        (KIF_TEXT.replace("*良い手", "   1 対局開始"), 5, "TORYO", [(9, "'対局開始' is no move")]),
        (KIF_TEXT.replace("投了 ", "24点宣言で勝ち"), 5, "TORYO", [(14, "the ending '24点宣言で勝ち")]),
        (
            KIF_TEXT.replace("まで5手で", "手合割：香落ち\nまで5手で"),
            5,
            "TORYO",
            [(15, "'手合割：香落ち' after the first")],
        ),
        (KIF_TEXT.replace("\n変化", "\n以上\n   6 ８四歩(83)\n変化"), 5, "TORYO", [(17, "the lines from here on")]),
        (
            KIF_TEXT.replace("棋譜ファイル", "x").replace("開始", "謎の"),
            5,
            "TORYO",
            [(2, "the header '謎の日時' is unk")],
        ),
        (
            KI2_TEXT.replace("後手の勝ち", "先手の勝ち"),
            8,
            "",
            [(7, "the ending '先手の勝ち' is left out: it is the winner's")],
        ),
        (KI2_TEXT.replace("後手の勝ち", "おしまい"), 8, "", [(7, "the ending 'おしまい' is unknown")]),
        (KI2_TEXT.replace("後手の勝ち", "時間切れにより後手の勝ち"), 8, "TIME_UP", []),
        (
            KI2_TEXT.replace("後手の勝ち", "通信切断、後手の勝ち"),
            8,
            "TORYO",
            [(7, "the ending '通信切断、後手の勝ち' is re")],
        ),
        (
            KI2_TEXT.replace("後手の勝ち", "後手の時間切れ勝ち"),
            8,
            "TIME_UP",
            [(7, "the ending '後手の時間切れ勝ち' is read")],
        ),
        (
            KI2_TEXT.replace("後手の勝ち", "先手の宣言勝ち"),
            8,
            "KACHI",
            [(7, "the ending '先手の宣言勝ち' is read as KACHI")],
        ),
        (
            KI2_TEXT.replace("後手の勝ち", "後手の宣言勝ち"),
            8,
            "",
            [(7, "the ending '後手の宣言勝ち' is left out: it is the l")],
        ),
        (KI2_TEXT.replace("後手の勝ち", "先手の時間切れ"), 8, "TIME_UP", []),
        (KI2_TEXT.replace("まで8手で後手の勝ち", "▲まいった"), 8, "", [(7, "the ending '▲まいった' is unknown")]),
    ],
)
def test_what_is_unknown_is_a_note(text: str, moves: int, ending: str, notes: list[tuple[int, str]]) -> None:
    record = read_records(text)[0]
    assert (len(record.moves), record.ending) == (moves, ending)
    assert [(note.line, note.text[: len(begin)]) for note, (_, begin) in zip(record.notes, notes, strict=True)] == notes


def test_errors_and_notes_are_one_line() -> None:
    with pytest.raises(RecordError, match=r"line 3: move 1: not a move: '\+7776FU [^\x1c]+ x'"):
        read_records("PI\n+\n+7776FU \x1c x\n")
    (record,) = read_records("PI\n+\n+7776FU\nhello \x1b[2J \u2028.\n")
    assert record.notes == [Note("'hello \ufffd[2J \ufffd.' is no statement of CSA and left out", 4)]


def test_a_position_that_cannot_be_is_no_game_that_is_cut() -> None:
    for cut in (False, True):
        with pytest.raises(RecordError, match="line 2: the position: no king"):
            read_records("P1-KY\n-3334FU\n", cut=cut)


def test_text_before_a_record_does_not_hide_its_form() -> None:
    title = "第1期 甲乙戦\n" * 60
    for text in (KIF_TEXT, KI2_TEXT, BOD, FLOODGATE):
        (record,) = read_records(title + text)
        assert replace(record, notes=[]) == read_records(text)[0]
        assert record.notes[0].line == 1
    assert len(read_records("-\n" + KIF_TEXT)[0].moves) == 5


def test_numbers_without_end() -> None:
    many = "9" * 5000
    for text in (
        FLOODGATE.replace("'** 35", f"'** {many}"),
        FLOODGATE.replace("'*a comment", f"'visits +7776FU:{many}"),
        FLOODGATE.replace("T12", f"T{many}"),
        *(
            KIF_TEXT.replace("*良い手", f"*{line}")
            for line in (f"*#詰み=先手勝ち:{many}手", f"*評価値={many}", f"*評価値 +詰 {many}")
        ),
        KIF_TEXT.replace("変化：2", f"変化：{many}"),
        KIF_TEXT.replace("   6 投了", f"{many} 投了"),
        KIF_TEXT.replace("0:16", f"0:{many[:200]}"),
        BOD.replace("40", many) + KIF_TEXT[KIF_TEXT.index("変化") :],
    ):
        (record,) = read_records(text)
        to_bytes([record], ".csa")
    for text in (
        BOD.replace("十七", many),
        f"sfen {format_sfen(START)}{many}",
        json.dumps(JKF).replace(": 7", f": {many}"),
    ):
        with pytest.raises(RecordError):
            read_records(text)
    (record,) = read_records(FLOODGATE.replace("'*a comment", "'visits +7776FU:4"))
    assert record.moves[1].comment == "visits +7776FU:4"
    assert record.notes[0].text.startswith("visits of +7776FU: ")


@pytest.mark.parametrize(
    "key", ["変化", "まで", "1 歩", "先手", "後手の持駒", "手合割", "*a", "#a", "", "TIME+", "先手省略名"]
)
def test_headers_of_csa_are_only_headers_in_kif(key: str) -> None:
    (record,) = read_records(FLOODGATE.replace("$EVENT:wdoor", f"${key}:3手"))
    (again,) = read_records(to_bytes([record], ".kifu"))
    assert (again.black, again.white, again.initial) == (record.black, record.white, record.initial)
    assert [each.move for each in again.moves] == [each.move for each in record.moves]
    assert key in " ".join((*again.info, *again.info.values()))


def test_long_lines_take_no_time() -> None:
    begin = time.perf_counter()
    for line in (f"   6 a{' ' * 200_000}b", f"**対局 {' ' * 200_000}b", f"まで{'先手' * 100_000}", f"▲{' ' * 200_000}"):
        read_records(KIF_TEXT.replace("まで5手で", f"{line}\nまで5手で"), cut=True)
        read_records(FLOODGATE.replace("'*a comment", f"'{line}\n{line}"))
    assert time.perf_counter() - begin < 20.0


def test_bookmarks_are_kept() -> None:
    (record,) = read_records(KIF_TEXT.replace("*良い手", "*良い手\n&しおり"))
    assert record.moves[0].comment == "良い手\n&しおり"
    assert "\n*良い手\n&しおり\n" in to_bytes([record], ".kifu").decode()


def test_notes_are_bounded() -> None:
    (record,) = read_records("PI\n+\n" + "hello\n" * 1000)
    assert len(record.notes) == 51
    assert record.notes[-1] == Note("there are more faults, which are not listed", 53)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "cp932", "euc_jp", "iso2022_jp"])
def test_encodings(encoding: str) -> None:
    for text in (KIF_TEXT, FLOODGATE.replace("N+one", "N+山田ﾀﾛｳ" if encoding != "iso2022_jp" else "N+山田")):
        (expected,) = read_records(text)
        assert read_records(text.encode(encoding)) == [expected]


def test_broken_bytes_are_replaced() -> None:
    (record,) = read_records(FLOODGATE.encode().replace(b"summary", b"\xff\xfe\x81"))
    assert str(record.notes[0]) == "line 23, column 2: characters that are not UTF-8 are replaced: 3"
    assert read_records(to_bytes([record], ".csa"))[0].notes == []
    for encoding, name in (("utf-8", "UTF-8"), ("cp932", "Shift JIS"), ("euc_jp", "EUC-JP")):
        data = KIF_TEXT.encode(encoding).replace("良い".encode(encoding), "良い".encode(encoding) + b"\xff\xff \0")
        (record,) = read_records(data)
        assert [each.move for each in record.moves] == [each.move for each in read_records(KIF_TEXT)[0].moves]
        assert record.moves[0].comment.startswith("良い\ufffd")
        assert record.notes[0].line == 9
        assert record.notes[0].text.startswith(f"characters that are not {name} are replaced: ")


@pytest.mark.parametrize("letter", "\u2028\u2029\x85\x0b\x0c\x1c\u3000")
def test_only_cr_and_lf_end_a_line(letter: str) -> None:
    comment, name = f"a{letter}   2 ８四歩(83)", f"先{letter}手"
    for end in ("\n", "\r", "\r\n"):
        kif_text = KIF_TEXT.replace("良い手", comment).replace("先手の人", name).replace("\n", end)
        csa_text = FLOODGATE.replace("'*a comment", f"'*{comment}").replace("one\n", f"{name}\n").replace("\n", end)
        for text, suffix, index in ((kif_text, ".kifu", 0), (csa_text, ".csa", 1)):
            (record,) = read_records(text)
            assert (record.black, record.moves[index].comment, record.notes) == (name, comment, [])
            (again,) = read_records(to_bytes([record], suffix))
            assert (again.black, again.moves) == (name, record.moves) if suffix == ".csa" else again.black == name


BOD = """後手の持駒：飛　角
  ９ ８ ７ ６ ５ ４ ３ ２ １
+---------------------------+
| ・ ・ ・ ・ ・ ・ ・ ・v玉|一
| ・ ・ ・ ・ ・ ・ ・ ・ ・|二
| ・ ・ ・ ・ ・ ・ ・ ・ 歩|三
| ・ ・ ・ ・ ・ ・ ・ ・ ・|四
| ・ ・ ・ ・ ・ ・ ・ ・ ・|五
| ・ ・ ・ ・ ・ ・ ・ ・ ・|六
| ・ ・ ・ ・ ・ ・ ・ ・ ・|七
| ・ ・ ・ ・ ・ ・ ・ ・ ・|八
| ・ ・ ・ ・ ・ ・ ・ ・ ・|九
+---------------------------+
先手の持駒：金　歩十七
手数＝40  △１一玉 まで
"""


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("", ""),
        ("歩十七", "歩17"),
        ("歩十七", "歩１７枚"),
        ("金　歩十七", "金歩十七"),
        ("金　歩十七", "金、歩十七　"),
        ("持駒", "持ち駒"),
        ("先手の持駒", "下手の持駒"),
        ("先手の持駒", "先手持駒"),
        ("・", "．"),
        (" ・", "　　"),
        ("|", "｜"),
        ("v玉", "△玉"),
        ("後手の持駒", "手合割：その他\n後手の持駒"),
        ("手数＝40", "先手番\n手数＝40"),
    ],
)
def test_diagrams(old: str, new: str) -> None:
    (record,) = read_records(BOD.replace(old, new) if old else BOD)
    assert format_sfen(record.initial) == "8k/9/8P/9/9/9/9/9/9 b G17Prb 41"
    assert record.notes == []
    (turned,) = read_records(BOD + "後手番\n")
    assert turned.initial.side == WHITE
    (again,) = read_records("\n".join(japanese.format_position(record.initial)))
    assert again.initial == replace(record.initial, number=1)


@pytest.mark.parametrize(
    ("name", "known"),
    [
        ("二枚落", "二枚落ち"),
        ("2枚落ち", "二枚落ち"),
        ("２枚落", "二枚落ち"),
        ("10枚落ち", "十枚落ち"),
        ("左香落ち", "香落ち"),
        ("左香落", "香落ち"),
        ("飛落ち", "飛車落ち"),
        ("角落", "角落ち"),
        ("右五枚落ち", "五枚落ち"),
        ("三枚落", "三枚落ち"),
    ],
)
def test_names_of_handicaps(name: str, known: str) -> None:
    assert read_records(f"手合割：{name}\n")[0].initial == parse_sfen(f"{japanese.HANDICAPS[known]} w - 1")


@pytest.mark.parametrize(("name", "board"), japanese.HANDICAPS.items())
def test_handicaps_that_others_do_not_know_are_written_as_diagrams(name: str, board: str) -> None:
    known = "、香落ち、右香落ち、角落ち、飛車落ち、飛香落ち、二枚落ち、四枚落ち、六枚落ち、八枚落ち、十枚落ち、"
    record = GameRecord(parse_sfen(f"{board} w - 1"), [RecordedMove(parse_usi("5a5b"))], black="a", ending="TORYO")
    text = kif.format_kif_record(record, "UTF-8")
    assert f"手合割：{name if f'、{name}、' in known else 'その他'}\n" in text
    assert "下手：a\n" in text
    assert "まで1手で上手の勝ち" in text
    assert read_records(text) == [record]


@pytest.mark.parametrize(
    ("lines", "score", "pv", "is_review"),
    [
        ("**対局 評価値 35 読み筋 △３四歩(33) ▲２六歩(27)", 35, "△３四歩(33) ▲２六歩(27)", False),
        (
            "**解析 0 △ 候補1 時間 00:10.0 深さ 22/30 ノード数 12345 評価値 -450↑ 読み筋 △３四歩(33)",
            -450,
            "△３四歩(33)",
            True,
        ),
        ("**解析 0 △ 評価値 -詰 3 読み筋 △３四歩(33)", -29997, "△３四歩(33)", True),
        ("*検討 候補1 時間 00:06.0 評価値 -7 読み筋 △３四歩(33)", -7, "△３四歩(33)", True),
        ("** Engine x Version 1/2 候補1 深さ 13/19 評価値 -47 読み筋 △３四歩(33)", -47, "△３四歩(33)", False),
        ("**評価値=-70.4\n**読み筋=△３四歩▲２六歩", -70, "△３四歩▲２六歩", False),
        ("*#評価値=158\n*#読み筋=△３四歩", 158, "△３四歩", True),
        ("*#詰み=後手勝ち:8手", -29992, "", True),
        ("**詰み=先手勝ち", 30000, "", False),
        ("** -800 -3334FU +2726FU", -800, "-3334FU +2726FU", False),
        ("*#指し手[62]▲７六歩  △３四歩", 62, "▲７六歩  △３四歩", True),
        ("*評価値 19", 19, "", False),
    ],
)
def test_forms_of_evaluations(lines: str, score: int, pv: str, is_review: bool) -> None:
    (record,) = read_records(KIF_TEXT.replace("*良い手", f"{lines}\n*良い手\n*#深さ=8"))
    first = record.moves[0]
    assert (first.score, first.pv, first.is_review, first.comment) == (score, pv, is_review, "良い手\n#深さ=8")
    (white,) = read_records(
        KIF_TEXT.replace("*良い手", "").replace("00:00:02)+", f"00:00:02)\n{lines.splitlines()[0]}")
    )
    assert white.moves[1].score == -score
    text = kif.format_kif_record(record, "UTF-8")
    written = text.splitlines()[text.splitlines().index("   1 ７六歩(77)   ( 0:16/00:00:16)") + 1]
    # ShogiHome's expressions for ShogiGUI's comments, without KIF's star.
    assert re.match(r"^\*(対局|解析) .* 評価値 ([+-]?[0-9]+)", written[1:])[2] == str(score)  # type: ignore[index]
    again = read_records(text)[0].moves[0]
    assert (again.score, again.is_review, again.comment) == (score, is_review, first.comment)
    assert ("△３四歩(33)" in written) == bool(pv)


@pytest.mark.parametrize("text", ["* 5 stars", "*評価値は不明", "* 評価値 12", "*読み筋=▲２六歩", "*99999999999 0"])
def test_comments_that_are_no_evaluations(text: str) -> None:
    (record,) = read_records(KIF_TEXT.replace("*良い手", text))
    assert record.moves[0].score is None
    assert record.moves[0].comment == text[1:]


def test_expected_lines_are_written_in_the_notation_of_the_form() -> None:
    (record,) = read_records("PI\n+\n+7776FU\n'** 30 -3334FU +8822UM -3122GI\n")
    text = to_bytes([record], ".kifu").decode()
    assert "**対局 候補1 評価値 30 読み筋 △３四歩(33) ▲２二角成(88) △同　銀(31)\n" in text
    assert read_records(to_bytes(read_records(text), ".csa"))[0].moves == record.moves
    record.moves[0].pv = "3c3d 2g2f"
    assert "'** 30 -3334FU +2726FU\n" in to_bytes([record], ".csa").decode()


def test_evaluations_of_interfaces_in_csa() -> None:
    text = "PI\n+\n+7776FU\n'*互角\n'*#評価値=30\n'*#読み筋=△３四歩▲２六歩\n-3334FU\n"
    (record,) = read_records(f"{text}'**対局 深さ 9 評価値 -5 読み筋 ▲２六歩(27)\n")
    assert [(each.score, each.pv, each.comment) for each in record.moves[:1]] == [(30, "△３四歩▲２六歩", "互角")]
    assert (record.moves[1].score, record.moves[1].pv) == (5, "▲２六歩(27)")
    assert "'** 30 -3334FU +2726FU\n'*互角\n" in to_bytes([record], ".csa").decode()


def test_csa_3_is_kept() -> None:
    (record,) = load_records(shared_path("cases", "shogi", "cs-v3.csa"))
    text = to_bytes([record], ".csa").decode()
    for line in ("V3.0", "$TIME+:900+0+5", "$MAX_MOVES:320", "T1.234", "T0.5", "T0.1"):
        assert f"{line}\n" in text
    assert read_records(text) == [record]


JKF = {
    "header": {"先手": "甲", "後手": "乙", "開始日時": "2026/01/02", "手合割": "平手"},
    "initial": {"preset": "HIRATE"},
    "moves": [
        {"comments": ["始め"]},
        {
            "move": {"from": {"x": 7, "y": 7}, "to": {"x": 7, "y": 6}, "color": 0, "piece": "FU"},
            "time": {"now": {"m": 1, "s": 2}},
            "comments": ["#評価値=20", "良い手"],
        },
        {"move": {"to": {"x": 3, "y": 4}, "color": 1, "piece": "FU"}},
        {
            "move": {"from": {"x": 8, "y": 8}, "to": {"x": 2, "y": 2}, "piece": "KA", "promote": True},
            "forks": [
                [
                    {"move": {"to": {"x": 5, "y": 8}, "piece": "KI", "relative": "R"}},
                    {
                        "move": {"from": {"x": 8, "y": 3}, "to": {"x": 8, "y": 4}, "piece": "FU"},
                        "forks": [[{"move": {"from": {"x": 1, "y": 3}, "to": {"x": 1, "y": 4}, "piece": "FU"}}]],
                    },
                ],
                [{"move": {"from": {"x": 2, "y": 7}, "to": {"x": 2, "y": 6}, "piece": "FU"}}],
            ],
        },
        {
            "move": {"from": {"x": 3, "y": 1}, "same": True, "piece": "GI"},
            "forks": [[{"move": {"from": {"x": 8, "y": 2}, "to": {"x": 2, "y": 2}, "piece": "HI"}}]],
        },
        {"move": {"to": {"x": 5, "y": 5}, "piece": "KA", "relative": "H"}},
        {"special": "TORYO", "time": {"now": {"m": 0, "s": 3}}, "comments": ["終わり"]},
    ],
}


def test_jkf() -> None:
    (record,) = read_records(json.dumps(JKF))
    assert format_usi_line(record) == "startpos moves 7g7f 3c3d 8h2b+ 3a2b B*5e"
    assert (record.black, record.white, record.info) == ("甲", "乙", {"START_TIME": "2026/01/02"})
    first = record.moves[0]
    assert (first.seconds, first.score, first.comment, record.comment) == (62.0, 20, "良い手", "始め")
    assert (record.ending, record.ending_seconds, record.end_comment) == ("TORYO", 3.0, "終わり")
    lines = [(each.initial.number, [format_usi(move.move) for move in each.moves]) for each in record.variations]
    assert lines == [(4, ["8b2b"]), (3, ["4i5h", "8c8d"]), (4, ["1c1d"]), (3, ["2g2f"])]
    (again,) = read_records(to_bytes([record], ".kifu"))
    assert again.variations == record.variations
    other = {"color": 1, "board": [[{"color": 1, "kind": "OU"}]], "hands": [{"KI": 2}, {}]}
    (position,) = read_records(json.dumps({"initial": {"preset": "OTHER", "data": other}, "moves": []}))
    assert format_sfen(position.initial) == "8k/9/9/9/9/9/9/9/9 w 2G 1"
    for preset, name in (
        ("KY", "香落ち"),
        ("HIKY", "飛香落ち"),
        ("2", "二枚落ち"),
        ("7_L", "左七枚落ち"),
        ("10", "十枚落ち"),
    ):
        (position,) = read_records(json.dumps({"initial": {"preset": preset}, "moves": [{}]}))
        assert position.initial == parse_sfen(f"{japanese.HANDICAPS[name]} w - 1")


@pytest.mark.parametrize(
    ("data", "words"),
    [
        ({}, "JSON without 'moves'"),
        ({"moves": [1]}, "'1' found, expected an object"),
        ({"moves": [], "initial": {"preset": "X"}}, "the first position 'X'"),
        ({"moves": [{"move": {"piece": "XX"}}]}, "the piece 'XX'"),
        ({"moves": [{"move": {"piece": "FU", "to": {"x": 0, "y": 1}}}]}, "the square"),
        ({"moves": [{"move": {"piece": "FU", "to": {"x": 5, "y": 5}}}]}, "move 1: .*no such piece"),
        ({"moves": [{"move": {"piece": "FU", "from": {"x": 7, "y": 7}, "to": {"x": 7, "y": 5}}}]}, "move 1 7g7e"),
        ({"moves": [], "initial": {"preset": "OTHER"}}, "the position: no king"),
    ],
)
def test_broken_jkf(data: object, words: str) -> None:
    with pytest.raises(RecordError, match=words) as caught:
        read_records(json.dumps(data))
    assert len(str(caught.value).splitlines()) == 1
    for text in ('{"moves": [', '{"moves": ' + "[" * 100_000):
        with pytest.raises(RecordError, match="no JSON"):
            read_records(text)


def test_an_unknown_ending_of_jkf_is_a_note() -> None:
    moves = [{}, {"move": {"piece": "FU", "to": {"x": 7, "y": 6}}}, {"special": "FOO"}]
    (record,) = read_records(json.dumps({"moves": moves}))
    assert (len(record.moves), record.ending) == (1, "")
    assert record.notes == [Note("the ending 'FOO' is unknown and left out")]


def test_words_of_usi_that_end_a_game() -> None:
    for word, ending in (("resign", "TORYO"), ("win", "KACHI")):
        (record,) = read_records(f"startpos moves 7g7f 3c3d {word}\n")
        assert (len(record.moves), record.ending) == (2, ending)
    (record,) = read_records("startpos moves 7g7f 3c3d rep_draw\n")
    assert (len(record.moves), record.ending) == (2, "")
    assert record.notes == [Note("the ending 'rep_draw' is unknown and left out", 1)]
    (record,) = read_records("startpos moves 7g7f hello 3c3d\n", cut=True)
    assert (len(record.moves), record.notes[0].line) == (1, 1)


def test_halves_of_characters_in_jkf_are_replaced() -> None:
    text = (
        '{"header": {"先手": "a\\\\ud800b", "後手": "\\\\ud83d\\\\ude00"}, "moves": [{}, {"comments": ["\\\\udc00"]}]}'
    )
    (record,) = read_records(text.replace("\\\\", "\\"))
    assert (record.black, record.white) == ("a\ufffdb", "\U0001f600")
    assert to_bytes([record], ".csa")

"""Game records in CSA, read back by us and by cshogi."""

from pathlib import Path

import cshogi
import pytest
from cshogi import CSA

from tests.looping import looped
from tests.shared_data import shared_path
from tests.unit.shogi_boards import placement_of, walk
from tests.unit.shogi_records import FLOODGATE, MATED_BY_A_PAWN, MIDDLE, STARTS, random_record
from yomi.engine.color import BLACK, DRAW, WHITE
from yomi.engine.records import Note
from yomi.engine.shogi.notation import format_usi
from yomi.engine.shogi.placement import Placement, format_sfen
from yomi.engine.shogi.records import csa
from yomi.engine.shogi.records.files import load_records, read_records, to_bytes
from yomi.engine.shogi.records.record import START, RecordError


@looped("seed", range(12))
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


@pytest.mark.parametrize("move", ["+5554FU", "+2726KI", "+3433FU", "+0055FU", "+2722FU"])
def test_csa_of_a_foul_that_no_piece_can_play(move: str) -> None:
    text = f"PI\n+\n+7776FU\n-3334FU\n{move}\n"
    (record,) = read_records(text + "%ILLEGAL_MOVE\n")
    assert (len(record.moves), record.ending, record.winner) == (2, "+ILLEGAL_ACTION", WHITE)
    (note,) = record.notes
    assert str(note).startswith("line 5: move 3")
    assert str(note).endswith("; the illegal move is left out")
    with pytest.raises(RecordError, match=r"^line 5: move 3"):
        read_records(text + "%TORYO\n")


@pytest.mark.parametrize("rest", ["-8384FU\n%ILLEGAL_MOVE\n", "+5554FU\n"])
def test_csa_with_a_move_that_the_ending_does_not_tell_of(rest: str) -> None:
    with pytest.raises(RecordError, match=r"^line 5: move 3: "):
        read_records("PI\n+\n+7776FU\n-3334FU\n" + rest)


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


def test_evaluations_of_interfaces_in_csa() -> None:
    text = "PI\n+\n+7776FU\n'*互角\n'*#評価値=30\n'*#読み筋=△３四歩▲２六歩\n-3334FU\n"
    (record,) = read_records(f"{text}'**対局 深さ 9 評価値 -5 読み筋 ▲２六歩(27)\n")
    assert [(each.score, each.pv, each.comment) for each in record.moves[:1]] == [(30, "△３四歩▲２六歩", "互角")]
    assert (record.moves[1].score, record.moves[1].pv) == (5, "▲２六歩(27)")
    assert "'** 30 -3334FU +2726FU\n'*互角\n" in to_bytes([record], ".csa").decode()


def test_csa_version_3() -> None:
    (record,) = read_records("'CSA encoding=UTF-8\nV3.0\nPI\n+\n+7776FU\nT0.523\n%MAX_MOVES\n")
    assert (record.moves[0].seconds, record.comment, record.winner) == (0.523, "", DRAW)


def test_csa_3_is_kept() -> None:
    (record,) = load_records(shared_path("cases", "shogi", "cs-v3.csa"))
    text = to_bytes([record], ".csa").decode()
    for line in ("V3.0", "$TIME+:900+0+5", "$MAX_MOVES:320", "T1.234", "T0.5", "T0.1"):
        assert f"{line}\n" in text
    assert read_records(text) == [record]

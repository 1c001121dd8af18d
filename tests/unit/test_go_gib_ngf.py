"""Records of Tygem, Cyberoro and Pandanet."""

from pathlib import Path

import pytest

from yomi.engine.color import BLACK, WHITE
from yomi.engine.go.points import square
from yomi.engine.go.record_files import (
    each_record,
    load_board,
    looks_like_gib,
    looks_like_ngf,
    read_gib,
    read_ngf,
    read_ugf,
)
from yomi.engine.go.rules import PRESETS
from yomi.engine.go.sgf import GameRecord, SgfError
from yomi.native.go.board import PASS

GIB = r"""\HS
\[GAMEBLACKNAME=흑선수 (9D)\]
\[GAMEWHITENAME=white (10D)\]
\[GAMEINFOMAIN=GBKIND:3,GTIME:30-3-1200,GRLT:1,ZIPSU:25,DUM:0,GONGJE:65,TCNT:30\]
\[GAMETAG=S1,R3,D5,G65,W1,Z25,T30-3-1200,C2016:03:26:17:29,I:x,L:9\]
\HE
\GS
2 1 0
119 0 &4
INI 0 1 0 &4
STO 0 2 1 15 3
STO 0 3 2 3 15
SKI 0 4
STO 0 5 2 4 4
\GE
"""
NGF = """Rated game
19
white      7D*
흑선수      5D
www.example.com
3
0
0
20170316 [09:51]
5
White wins by 3.5 points!
2
PMABWQQQQ
PMACBFFFF
PMADWAAAA
"""


@pytest.mark.parametrize("encoding", ["utf-8", "euc-kr"])
def test_a_record_of_tygem(encoding: str) -> None:
    record = read_gib(GIB.encode(encoding))
    assert (record.black, record.white, record.result, record.date) == ("흑선수", "white", "W+2.5", "2016-03-26")
    assert (record.board.side, record.komi, record.handicap) == (19, 6.5, 0)
    assert (record.root.other["BR"], record.root.other["WR"]) == (["9D"], ["10D"])
    moves = [(color, square(19).vertex(move)) for color, move in record.game().moves]
    assert moves == [(BLACK, "Q16"), (WHITE, "D4"), (BLACK, "pass"), (WHITE, "E15")]


@pytest.mark.parametrize(
    ("condition", "result", "komi", "read"),
    [
        ("Even : Black 6.5 Dum", "white wins by time", 6.5, "W+T"),
        ("분선 : 흑 6집반 덤", "흑 불계승", 6.5, "B+R"),
        ("分先 : 黑贴6目半", "白 3.5 目胜", 6.5, "W+3.5"),
        ("Handicap", "unknown", None, ""),
    ],
)
def test_komi_and_results_of_tygem_in_words(condition: str, result: str, komi: float | None, read: str) -> None:
    text = rf"\HS\n\[GAMECONDITION={condition}\]\[GAMERESULT={result}\]".replace(r"\n", "\n")
    record = read_gib(f"{text}\nSTO 0 2 1 3 3\n\\GE".encode())
    assert (record.komi, record.result) == (komi, read)


def test_handicap_of_tygem() -> None:
    record = read_gib(GIB.replace("INI 0 1 0", "INI 0 1 3").replace("STO 0 2 1 15 3", "STO 0 2 2 15 15").encode())
    game = record.game(1)
    assert sorted(square(19).vertex(point) for _, point in game.setup) == ["D16", "D4", "Q16"]
    assert (game.handicap, game.moves[0][0]) == (3, WHITE)


def test_a_record_of_cyberoro() -> None:
    record = read_ngf(NGF.encode("euc-kr"))
    assert (record.black, record.white, record.result, record.date) == ("흑선수", "white", "W+3.5", "2017-03-16")
    assert (record.board.side, record.komi, record.handicap) == (19, 0.0, 3)
    assert [move for _, move in record.game().moves][2] == PASS
    even = read_ngf(
        NGF.replace("\n3\n0\n0\n", "\n0\n0\n6\n").replace("White wins by 3.5 points", "Black win time").encode()
    )
    assert (even.komi, even.handicap, even.result) == (6.5, 0, "B+T")


def test_faults_are_notes() -> None:
    record = read_gib(GIB.replace("STO 0 3 2 3 15", "STO 0 3 2 3 19").replace("\\GE\n", "").encode())
    assert len(record.game(cut=True, rules=PRESETS["korean"]).moves) == 1
    assert [str(note) for note in record.notes] == [
        "the text ends without \\GE: moves may be missing",
        "line 12: move 2 of the record: 'STO 0 3 2 3 19': expected a move on a 19x19 board: read up to there",
    ]
    for data, word in ((b"\\HS\n\\HE\n", "STO"), (NGF.encode().replace(b"PM", b"xx"), "PM")):
        (found,) = each_record(data)
        assert isinstance(found, SgfError)
        assert word in str(found)


def test_the_content_shows_the_format(tmp_path: Path) -> None:
    assert looks_like_gib(GIB.encode())
    assert looks_like_ngf(NGF.encode())
    for other in (
        b"",
        b"(;GM[1]C[\nPMABBQQQQ])",
        b"PI\n+\n+7776FU\n",
        "手合割：平手\n".encode(),
        b"startpos moves 7g7f",
    ):
        assert not looks_like_gib(other)
        assert not looks_like_ngf(other)
    path = tmp_path / "a.ngf"
    path.write_text(NGF.replace("\n19\n", "\n9\n"), "utf-8")
    assert load_board(path) == square(9)


def test_numbers_and_names_without_end_are_read_in_time() -> None:
    record = read_gib(GIB.replace("INI 0 1 0", f"INI 0 1 {'9' * 5000}").encode())
    assert record.handicap == 0
    assert read_gib(GIB.replace("GAMEWHITENAME=", "GAMEWHITENAME=" + " " * 20_000 + "x").encode()).board == square(19)


UGF = """# a comment
[Header]
Ver=UGF2,200
Lang=SJIS
Title=26th,Gosei
Date=2001/08/20,09:00:00,2001/08/20,00:00:00
Rule=JPN
Size=19
Hdcp=0,5.50
Winner=B,1.50
CoordinateType=IGS
PlayerW=山田,9-dan,0,
PlayerB=Brown
[Remote]
[Data]
PP,B1,1,0
DC,W1,2,0 '00:00:31
 .Text,0,999,
YA,B1,3,0
CD,MK,4,0
[Figure]
.Text,1
DD,W1,2,0
.EndText
"""


@pytest.mark.parametrize("encoding", ["utf-8", "cp932"])
def test_a_record_of_pandanet(encoding: str) -> None:
    record = read_ugf(UGF.encode(encoding))
    assert (record.black, record.white, record.result, record.date) == ("Brown", "山田", "B+1.5", "2001-08-20")
    assert (record.board.side, record.komi, record.handicap) == (19, 5.5, 0)
    assert record.root.other["WR"] == ["9-dan"]
    game = record.game()
    assert game.rules.name == "japanese"
    moves = [(color, square(19).vertex(move)) for color, move in game.moves]
    # Rows count from below, and a move without a color is of the other side.
    assert moves == [(BLACK, "Q16"), (WHITE, "D3"), (BLACK, "pass"), (WHITE, "C4")]
    assert record.notes == []


def test_results() -> None:
    tygem = GIB.replace("GRLT:1,ZIPSU:25,", "")
    for code, result in (("W3,Z0", "B+R"), ("W8,Z0", "W+T"), ("W0,Z100", "B+10")):
        assert read_gib(tygem.replace("W1,Z25", code).encode()).result == result
    for winner, result in (("W,C", "W+R"), ("W,T", "W+T"), ("D,", "0"), ("N1,", "Void"), ("P,", "")):
        assert read_ugf(UGF.replace("Winner=B,1.50", f"Winner={winner}").encode()).result == result


def test_other_headers_of_pandanet() -> None:
    def game(*changes: tuple[str, str]) -> GameRecord:
        text = UGF
        for change in changes:
            text = text.replace(*change)
        (record,) = each_record(text.encode())
        assert isinstance(record, GameRecord)
        return record

    from_above = game(("CoordinateType=IGS\n", ""), ("\n", "\r\n")).game()
    assert square(19).vertex(from_above.moves[1][1]) == "D17"
    assert game(("Rule=JPN", "Rule=CHN")).game().rules.name == "chinese"
    assert game(("Rule=JPN\n", "")).game().rules.name == "japanese"
    negative = game(("0,5.50", "0,-6.50"))
    assert negative.komi == 6.5
    assert [str(note) for note in negative.notes] == ["komi -6.5 of an even game: read as 6.5"]
    handicap = game(("0,5.50", "2,0.50"), ("PP,B1,1,0", "DP,B1,0,0\nPD,B1,0,0")).game()
    assert [square(19).vertex(point) for _, point in handicap.setup] == ["D16", "Q4"]
    assert handicap.handicap == 2
    small = game(("Size=19", "Size=9"), ("PP,", "EE,"))
    assert small.board == square(9)
    assert square(9).vertex(small.game().moves[1][1]) == "D3"
    off = game(("DC,W1", "D?,W1"))
    assert len(off.game(cut=True).moves) == 1
    assert "line 17: move 2 of the record: 'D?,W1,2,0" in str(off.notes[-1])
    for broken, words in (
        (UGF.replace("Size=19", "Size=25"), "board size 25"),
        (UGF[: UGF.index("PP,")], "no moves found"),
    ):
        (error,) = each_record(broken.encode())
        assert isinstance(error, SgfError)
        assert words in str(error)

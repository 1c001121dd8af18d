"""What is assumed if a record of Go leaves out rules, komi or handicap stones."""

from pathlib import Path

import pytest

import yomi
from tests.looping import looped
from tests.sgf import read_sgf
from yomi.engine.go.points import square
from yomi.engine.go.record_files import each_record
from yomi.engine.go.review import load
from yomi.engine.go.sgf import GameRecord
from yomi.engine.reviews.review import ReviewError
from yomi.native.go.board import PASS

# Black owns the left four columns and the points a5 to a9 of a 9x9 board. White has passed first.
COUNTED = (
    ";B[di];W[gi];B[dh];W[gh];B[dg];W[gg];B[df];W[gf];B[de];W[ge];B[dd];W[gd];B[dc];W[fc];B[db];W[fb];B[da];W[fa]"
    ";B[ei];W[fi];B[eh];W[fh];B[eg];W[fg];B[ef];W[ff];B[ee];W[fe];B[ed];W[fd];B[ec];W[eb];B[ea];W[];B[]"
)


@looped(
    ("header", "rules", "komi"),
    [
        ("RU[Chinese]KM[6.5]RE[B+2]PC[IGS]", "chinese", 6.5),  # the record's own rules
        # The result decides.
        ("KM[6.5]RE[B+1.5]", "japanese", 6.5),  # 8 points: even, so impossible under area scoring
        ("KM[7.5]RE[W+3.5]", "japanese", 7.5),
        ("KM[7.5]RE[W+0.5]", "chinese", 7.5),  # 7 points: possible under both
        ("KM[6.5]RE[B+1.75]", "chinese", 6.5),  # in stones
        ("KM[5.5]RE[B+0.25]AP[MultiGo:4.4.4]", "chinese", 5.5),
        ("SZ[18]KM[7.5]RE[B+0.5]", "chinese", 7.5),  # an even number of points is divided
        # A resignation does not. The server does.
        ("KM[7.5]RE[B+R]SO[Tygem 433708589]", "japanese", 7.5),
        ("KM[7.5]RE[W+R]SO[Tom 354460]", "japanese", 7.5),
        ("KM[0]HA[3]AB[dd][pp][dp]PC[IGS-PandaNet 210.155.158.200 6969]", "japanese", 0),
        ("AP[PANDA-glGo:1.4]KM[0.5]HA[2]AB[dd][pp]", "japanese", 0.5),
        ("PC[Cyberoro]", "japanese", 6.5),
        ("PC[Tomsk]KM[7.5]", "chinese", 7.5),  # a name that only begins like a server's
        # The komi.
        *((f"KM[{komi}]", "japanese", float(komi)) for komi in ("4.5", "5.5", "6.5")),
        ("KM[6,5]RE[W+R]", "japanese", 6.5),
        ("KM[650]RE[W+R]AP[foxwq]", "japanese", 6.5),
        *((f"KM[{komi}]", "chinese", float(komi)) for komi in ("7", "7.5", "8")),
        ("KM[3.75]", "chinese", 7.5),
        ("KM[375]AP[foxwq]", "chinese", 7.5),
        ("KM[3.25]", "chinese", 6.5),  # stones, which only Chinese rules count
        # Nothing suggests others.
        ("", "chinese", 7.5),
        ("KM[0]RE[B+R]", "chinese", 0),
        # Fox leaves out the komi of even games, but not of games in which Black moves first without komi.
        ("AP[GNU Go:3.8]AP[foxwq]KM[0]HA[0]RU[Japanese]", "japanese", 6.5),
        ("AP[GNU Go:3.8]AP[foxwq]KM[0]HA[0]RU[Chinese]", "chinese", 7.5),
        ("AP[foxwq]KM[0]HA[0]", "chinese", 7.5),
        ("AP[foxwq]KM[0]HA[1]RU[Chinese]", "chinese", 0),
        ("AP[Sabaki]KM[0]HA[0]RU[Chinese]", "chinese", 0),
    ],
)
def test_rules_and_komi(header: str, rules: str, komi: float) -> None:
    size = "" if "SZ" in header else "SZ[19]"
    record = read_sgf(f"(;{size}{header};B[qd];W[dc])")
    game = record.game()
    assert (game.rules.name, game.komi) == (rules, komi)
    notes = [str(note) for note in record.notes]
    assert any("--rules" in note and f"{rules} rules" in note for note in notes) == ("RU" not in header)
    assert any("--komi" in note and f"komi {komi:g} assumed" in note for note in notes) == (record.komi is None)


@pytest.mark.parametrize(("result", "rules"), [("W+0.5", "japanese"), ("B+0.5", "chinese")])
def test_the_final_position_decides(result: str, rules: str) -> None:
    # Black made one move more: the score is 6 by territory and 7 by area. The komi alone would mean japanese.
    record = read_sgf(f"(;SZ[9]KM[6.5]RE[{result}]{COUNTED})")
    assert record.game().rules.name == rules
    assert [str(note) for note in record.notes] == [
        f"no rules (RU): {rules} rules assumed, because the final position gives {result}."
        " --rules (Python: rules=) changes this"
    ]


def test_rules_of_servers_with_formats_of_their_own() -> None:
    gib = b"\\HS\n\\[GAMETAG=S1,G75,W3\\]\n\\HE\n\\GS\nINI 0 1 0 &4\nSTO 0 2 1 15 3\n\\GE\n"
    ngf = b"game\n19\na 1D*\nb 1D*\nwww\n0\n0\n7\n20200101\n5\nWhite wins by resign\n1\nPMABBQQQQ\n"
    for data in (gib, ngf):
        (record,) = each_record(data)
        assert isinstance(record, GameRecord)
        game = record.game()
        assert (game.rules.name, game.komi) == ("japanese", 7.5)


def test_given_rules_are_not_guessed(tmp_path: Path) -> None:
    path = tmp_path / "a.sgf"
    path.write_text("(;SZ[9]KM[6.5];B[ee];W[gg])")
    (record,) = yomi.go.read(path)
    assert record.game(rules="chinese").rules == "chinese"
    assert record.notes == []
    assert record.game().rules == "japanese"
    assert "komi is 6.5" in record.notes[0]
    (loaded,) = load(str(path), None)
    assert "komi is 6.5" in str(loaded.record.notes[0])


@looped(
    ("text", "stones"),
    [
        ("(;HA[4]KM[0.5];W[qf];B[qn];W[cf])", "D4 Q16 D16 Q4"),
        ("(;HA[2])", "D4 Q16"),
        ("(;HA[2]AB[cc][qq];W[qf])", "C17 R3"),
        ("(;HA[2];AB[cc][qq];W[qf])", "C17 R3"),  # in a later node
        ("(;HA[2];B[cc];B[qq];W[qf])", ""),  # as moves
        ("(;HA[2];B[cc];W[qq];B[qf])", ""),  # Black first: no handicap game
        ("(;HA[2];W[dp];B[qd])", ""),  # played on the points
        ("(;HA[1];W[dp];B[qd])", ""),
        ("(;HA[12];W[qf];B[qn])", ""),  # no usual points
        ("(;HA[2]AW[qf][cf];W[qn])", "D4 Q16"),  # beside stones of White
        ("(;HA[2]AW[dp];W[qn])", ""),  # which may be on the points
    ],
)
def test_handicap_stones_that_are_left_out(text: str, stones: str) -> None:
    record = read_sgf(text)
    game = record.game(0)
    start = [vertex for vertex in stones.split() if game.color_at(square(19).parse_vertex(vertex)) == 1]
    has_stones = "AB" not in text and stones != ""
    assert " ".join(start) == stones
    notes = [str(note) for note in record.notes if "handicap stones" in str(note)]
    assert any("usual points" in note for note in notes) == has_stones
    if has_stones:
        assert game.side_to_move == 2
    assert [game.color_at(square(19).point(2, 5))] == ([2] if "AW[qf][cf]" in text else [0]), "set-up stones stay"


def test_illegal_moves_that_are_played_get_a_note() -> None:
    text = "(;SZ[9]KM[6.5]RU[Chinese]AB[dc][cd][de]AW[ec][fd][ee][dd];B[ed];W[dd];B[gg];W[gc])"
    record = read_sgf(text)
    assert len(record.game().moves) == 4
    record.game()
    assert [str(note) for note in record.notes] == ["move 2 of the record, W D6, is illegal (ko): played all the same"]
    legal = read_sgf(text.replace(";W[dd];B[gg]", ";W[gg];B[hh];W[dd];B[hg]"))
    assert PASS not in [move for _, move in legal.game().moves]
    assert legal.notes == []


def test_a_komi_in_the_text_of_the_rules_is_not_assumed() -> None:
    record = read_sgf("(;SZ[9]HA[2]AB[cc][gg]RU[koSIMPLEscoreTERRITORYtaxSEKIsui0komi5.5];W[ee])")
    assert (record.game().komi, record.notes) == (5.5, [])


def test_a_record_without_an_understood_move_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "a.sgf"
    path.write_text("(;GM[1]SZ[9]RU[Chinese]KM[7]; hello ; world")
    with pytest.raises(ReviewError, match=r"^no move was understood: line 1, column "):
        load(str(path), None)


def test_a_record_without_moves_is_no_error_whatever_is_assumed(tmp_path: Path) -> None:
    path = tmp_path / "a.sgf"
    path.write_text("(;GM[1]FF[4]SZ[9])")
    (game,) = load(str(path), None)
    assert (game.positions, game.fault) == (1, None)
    assert "no rules (RU)" in str(game.record.notes[0])

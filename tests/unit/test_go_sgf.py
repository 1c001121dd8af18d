"""Game records: what is read, what is written, and both after one another."""

import lzma
import re
import time
import tracemalloc
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from sgfmill import sgf, sgf_grammar

from tests.looping import looped
from tests.sgf import read_sgf
from tests.shared_data import shared_path
from tests.unit.go_boards import drawing_of, play_all, points
from yomi import __version__
from yomi.engine.go.descriptor import GAME
from yomi.engine.go.game import GoGame
from yomi.engine.go.points import Board, square
from yomi.engine.go.record_files import load_board, load_record, load_records
from yomi.engine.go.rules import PRESETS
from yomi.engine.go.scoring import result_in_words
from yomi.engine.go.sgf import GameRecord, Node, SgfError, to_sgf
from yomi.engine.go.sgf_reader import GameParser, each_sgf_game
from yomi.native.go.board import BLACK, EMPTY, PASS, WHITE


def from_sgf(data: bytes | str, moves: int | None = None) -> GoGame:
    """Return the game of SGF data after `moves` moves of its main line."""
    return read_sgf(data).game(moves)


def assert_equal_records(one: GameRecord, other: GameRecord) -> None:
    """Two records say the same in every node."""
    assert one == other
    assert [(node, len(node.children)) for node in one.nodes()] == [
        (node, len(node.children)) for node in other.nodes()
    ]


def test_a_whole_record() -> None:
    record = read_sgf(
        "(;GM[1]FF[4]SZ[5]KM[6.5]RU[Japanese]PB[Aki]PW[Ben \\] \\\\ x]RE[B+3.5]DT[2024-02-03]TM[300]OT[5x30 byo-yomi]"
        "C[a game]LB[aa:1];B[cc]C[center];W[];B[tt](;W[bb];B[dd])(;W[aa]C[corner](;B[ee])(;B[ab])))"
    )
    assert (record.board.side, record.komi, record.rules, record.handicap) == (5, 6.5, PRESETS["japanese"], 0)
    assert (record.black, record.white, record.result) == ("Aki", "Ben ] \\ x", "B+3.5")
    assert (record.date, record.seconds, record.overtime) == ("2024-02-03", 300.0, "5x30 byo-yomi")
    assert record.root.comment == "a game"
    assert record.root.other == {"LB": ["aa:1"]}
    center = square(5).parse_vertex("C3")
    assert [node.move for node in record.line()][1:4] == [(BLACK, center), (WHITE, PASS), (BLACK, PASS)]
    assert len(list(record.nodes())) == 9
    assert_equal_records(read_sgf(record.to_sgf()), record)


def test_positions_on_the_main_line() -> None:
    text = "(;SZ[5];B[cc](;W[bb];B[dd])(;W[aa](;B[ee])(;B[ab])))"
    assert from_sgf(text).moves[-1] == (BLACK, square(5).parse_vertex("D2"))
    assert [len(from_sgf(text, moves).moves) for moves in (0, 2, 99)] == [0, 2, 3]


def test_set_up_stones_in_the_root_and_in_the_middle() -> None:
    text = "(;SZ[3]KM[0]AB[aa][bb]AW[cc]PL[W];W[ca];AE[aa]AW[ac]AB[ba:bb]PL[B];B[cb])"
    start = from_sgf(text, 0)
    assert drawing_of(start) == "X . .\n. X .\n. . O"
    assert start.side_to_move == WHITE
    middle = from_sgf(text, 1)
    assert drawing_of(middle) == ". X O\n. X .\nO . O"
    assert middle.side_to_move == BLACK
    end = from_sgf(text)
    assert drawing_of(end) == ". X .\n. X X\nO . O"
    assert (end.captures(BLACK), len(end.moves)) == (1, 1)
    record = read_sgf(text)
    assert_equal_records(read_sgf(record.to_sgf()), record)
    setup = list(record.line())[2].setup
    assert (EMPTY, square(3).parse_vertex("A3")) in setup
    assert len(setup) == 4


def test_handicap() -> None:
    text = "(;SZ[9]HA[2]RU[Chinese]KM[0.5]AB[cc][gg];W[ee])"
    game = from_sgf(text)
    assert (game.handicap, game.position["komi"]) == (2, 2.5)
    assert from_sgf(text, 0).side_to_move == WHITE
    assert from_sgf("(;SZ[9]HA[2]AB[cc][gg])").side_to_move == WHITE
    by_moves = from_sgf("(;SZ[9]HA[2]RU[Chinese];B[cc];B[gg];W[ee])")
    assert (by_moves.komi, by_moves.position["komi"]) == (0.5, 2.5)
    placed = GoGame(square(9), PRESETS["aga"], 0.5)
    placed.place_handicap(points("C3 G7 C7", 9))
    play_all(placed, "E5 E3 pass")
    again = from_sgf(to_sgf(placed))
    assert (again.handicap, again.moves, again.setup) == (3, placed.moves, placed.setup)
    assert again.position["komi"] == placed.position["komi"] == 2.5


@pytest.mark.parametrize("setup", ["", "PL[B]", "PL[W]", "AE[cc]", "AB[aa]AW[ii]PL[B]"])
def test_set_up_in_mid_game_keeps_the_compensation_for_handicap(setup: str) -> None:
    for start in ("AB[gc][cg]", ";B[gc];B[cg]"):
        game = from_sgf(f"(;SZ[9]RU[Chinese]KM[0.5]HA[2]{start};W[ee];B[cc];W[gg];{setup}B[dd])")
        assert game.position["komi"] == 2.5
        assert game.side_to_move == (BLACK if "PL[B]" in setup else WHITE)


def test_the_side_to_move_beside_a_move_is_the_side_after_it() -> None:
    game = from_sgf("(;SZ[9]PL[B];B[bb];W[ab];B[aa];W[gg];B[ac];W[ff];B[cc]PL[W];W[ee];B[gc]PL[B])")
    assert len(game.moves) == 9
    assert game.side_to_move == BLACK
    assert len(from_sgf("(;SZ[9]PL[B];B[ee];PL[W]W[cc];B[dd])").moves) == 3  # no news


def test_names_of_properties_in_lower_case() -> None:
    record = read_sgf("(;GaMe[1]Size[9]SiZe[9]x[0]PlayerBlack[Ann];Black[cc]x[1]Comment[old];White[dd]eVent[y])")
    first, second = list(record.line())[1:]
    assert (first.move, first.comment, first.other) == ((BLACK, square(9).parse_vertex("C7")), "old", {})
    assert (second.move, second.other) == ((WHITE, square(9).parse_vertex("D6")), {"V": ["y"]})
    assert (record.black, record.root.other) == ("Ann", {"S": ["9"]})
    assert_equal_records(read_sgf(record.to_sgf()), record)


@pytest.mark.parametrize("other", [{"x": ["1"]}, {"XX": ["]"]}, {"XX": []}])
def test_what_cannot_be_written_is_one_clear_line(other: dict[str, list[str]]) -> None:
    record = GameRecord(square(9), root=Node(other=other))
    with pytest.raises(SgfError, match=r"^cannot write SGF: ") as caught:
        record.to_sgf()
    assert "\n" not in str(caught.value)


def test_writing_a_game() -> None:
    game = GoGame(square(5), PRESETS["new-zealand"], 7.0)
    play_all(game, "C3 C4 D4")
    text = to_sgf(game, ["start", "", "white: [ok] \\ fine"], black="Aki", white="美咲", result="W+R", seconds=60)
    record = read_sgf(text.encode("utf-8"))
    assert "RU[NZ]" in text
    assert (record.black, record.white, record.result, record.seconds) == ("Aki", "美咲", "W+R", 60)
    assert [node.comment for node in record.line()] == ["start", "", "white: [ok] \\ fine", ""]
    assert record.game().moves == game.moves


@settings(max_examples=40, deadline=None)
@given(
    st.integers(2, 9),
    st.sampled_from(list(PRESETS.values())),
    st.sampled_from([-3.0, 0.0, 6.5, 7.0, 7.5]),
    st.lists(st.integers(0, 10**6), max_size=60),
    st.text(st.characters(blacklist_categories=["Cs", "Cc"]), max_size=20),
)
def test_games_come_back(size: int, rules: object, komi: float, choices: list[int], comment: str) -> None:
    game = GoGame(square(size), rules, komi)  # type: ignore[arg-type]
    for choice in choices:
        color = game.side_to_move if choice % 7 else 3 - game.side_to_move
        game.turn_to(color)
        legal = game.legal_moves()
        game.play(color, legal[choice // 7 % len(legal)])
    again = from_sgf(to_sgf(game, [comment] * (len(choices) + 1)))
    assert (again.moves, again.rules, again.komi) == (game.moves, game.rules, game.komi)
    assert drawing_of(again) == drawing_of(game)
    assert again.position["komi"] == game.position["komi"]


def test_encodings() -> None:
    name = "本因坊秀策"
    for encoding in ("UTF-8", "Shift_JIS", "EUC-JP", "GB18030"):
        data = f"(;CA[{encoding}]SZ[9]PB[{name}])".encode(encoding)
        assert read_sgf(data).black == name
    for charset in ("Windows-31J", "x-sjis"):
        assert read_sgf(f"(;CA[{charset}]SZ[9]PB[{name}①])".encode("cp932")).black == f"{name}①"
    assert read_sgf(f"(;SZ[9]PB[{name}])".encode()).black == name, "UTF-8 where CA is missing"
    assert read_sgf("(;SZ[9]PB[Müller])".encode("latin-1")).black == "Müller"
    assert read_sgf(b"(;CA[UTF-8]SZ[9]C[\xff])").root.comment == "�"


@looped(
    ("encoding", "name"),
    [
        ("Shift_JIS", "表"),
        ("Shift_JIS", "ゾンビ"),
        ("cp932", "①十"),
        ("Big5", "成功"),
        ("GBK", "昞"),
        ("GB18030", "昞"),
        ("ISO-2022-JP", "本因坊"),
        ("EUC-JP", "表"),
    ],
)
def test_characters_with_bytes_that_are_brackets(encoding: str, name: str) -> None:
    for head in (f"CA[{encoding}] PB[{name}]", f"PB[{name}]\nCA[{encoding}]"):
        record = read_sgf(f"(;GM[1]{head}PW[x]KM[6.5]C[\\]{name}];B[aa]XX[{name}])".encode(encoding))
        assert (record.black, record.white, record.komi, record.root.comment) == (name, "x", 6.5, f"]{name}")
        assert record.root.children[0].other == {"XX": [name]}
        assert_equal_records(read_sgf(record.to_sgf().encode()), record)


@looped(
    ("encoding", "name"),
    [
        ("Big5", "許功蓋"),
        ("Big5", "成功大學"),
        ("Big5", "林海峰九段"),
        ("Shift_JIS", "予定表"),
        ("Shift_JIS", "ソ連の棋士"),
        ("Shift_JIS", "本因坊秀策"),
        ("EUC-JP", "井山裕太"),
        ("GB18030", "古力"),
        ("GB18030", "黑中盘胜"),
        ("EUC-KR", "이창호"),
        ("EUC-KR", "백불계승"),
        ("UTF-16", "흑선수"),
        ("UTF-16-LE", "흑선수"),
        ("UTF-8-sig", "表"),
        ("ISO-2022-JP", "本因坊"),
        ("Windows-1252", "it’s José"),
        ("Windows-1251", "Иван Петров"),
    ],
)
def test_encodings_that_are_not_named(encoding: str, name: str) -> None:
    text = f"(;GM[1]FF[4]SZ[19]PB[{name}]PW[x]KM[6.5];B[pd]C[{name}];W[dp])"
    for charset in ("", "CA[UTF-8]", "CA[]", "CA[ISO-8859-1]")[: 1 if encoding.startswith("UTF") else 4]:
        record = read_sgf(text.replace("SZ[19]", f"SZ[19]{charset}").encode(encoding))
        if charset and encoding in ("ISO-2022-JP", "Windows-1252", "Windows-1251"):
            continue
        assert (record.black, record.white, record.komi) == (name, "x", 6.5)
        assert [node.comment for node in record.line()] == ["", name, ""]
        assert f"PB[{name}]" in record.to_sgf()
    if not encoding.startswith("Windows"):
        assert read_sgf(text.replace("SZ[19]", "SZ[19]CA[GB18030]").encode()).black == name, "UTF-8 in spite of CA"


@pytest.mark.parametrize(
    ("encoding", "name"),
    [("UTF-8", "柯"), ("GB18030", "柯洁"), ("Big5", "許功蓋"), ("Shift_JIS", "予定表"), ("EUC-KR", "이창호")],
)
def test_a_character_that_the_end_cuts(encoding: str, name: str) -> None:
    data = f"(;GM[1]SZ[9]PB[{name}];B[aa];W[bb]C[{name}".encode(encoding)[:-1]
    record = read_sgf(data)
    assert record.black == name
    assert [node.move is not None for node in record.line()] == [False, True, True]


def test_encodings_that_are_wider_than_their_names_or_wrong() -> None:
    for charset, codec, name in (
        ("gb2312", "gb18030", "朱镕基"),
        ("Shift_JIS", "cp932", "①髙"),
        ("EUC-KR", "cp949", "뷁"),
    ):
        record = read_sgf(f"(;CA[{charset}]SZ[9]PB[{name}];B[aa])".encode(codec))
        assert record.black == name
        assert not record.notes
    record = read_sgf("(;SZ[9]CA[UTF-8]PB[本因坊\n".encode() + b"\xe6\x9c]PW[x];B[aa])")
    assert [(note.line, note.column) for note in record.notes] == [(2, 1)]
    record = read_sgf(b"(;CA[Shift_JIS]PB[\x95\xff]PW[x];B[aa])")
    assert (record.black[0], record.white, len(record.root.children)) == ("�", "x", 1)
    for charset in ("", " ", "x-foo", "rot13", "UTF-16", "é"):  # no encodings
        for encoding in ("utf-8", "latin-1"):
            assert read_sgf(f"(;CA[{charset}]SZ[9]PB[Müller];B[aa])".encode(encoding)).black == "Müller"


def test_unusual_times_handicaps_and_sides_to_move() -> None:
    for text in ("2 hours", "1h", "inf"):
        record = read_sgf(f"(;SZ[9]TM[{text}])")
        assert (record.seconds, record.root.other) == (None, {"TM": [text]})
        assert f"TM[{text}]" in record.to_sgf()
        assert_equal_records(read_sgf(record.to_sgf()), record)
    assert read_sgf("(;SZ[9]TM[])").root.other == {}
    for text in ("none", "nan", "inf"):
        record = read_sgf(f"(;SZ[9]HA[{text}])")
        assert (record.handicap, record.root.other) == (0, {})
    for side, words in ((BLACK, ("B", "b", "Black", "1")), (WHITE, ("W", "white", "2"))):
        assert [read_sgf(f"(;SZ[9]PL[{word}])").root.side for word in words] == [side] * len(words)


@looped(
    ("properties", "komi"),
    [
        ("KM[375]", 7.5),
        ("KM[650]", 6.5),
        ("KM[350]", 3.5),
        ("KM[50]", 50.0),
        ("KM[6,5]", 6.5),
        ("KM[7.5目]", 7.5),
        ("KM[6目半]", 6.5),
        ("KM[3又3/4子]", 7.5),
        ("KM[6½]", 6.5),
        ("KM[７．５]", 7.5),
        ("KM[900]", 9.0),
        ("KO[7.5]", 7.5),
        ("AP[GNU Go:3.8]KM[50]HA[2]AP[foxwq]", 0.5),
        ("AP[GNU Go:3.8]KM[350]AP[foxwq]", 7.0),
        ("AP[x]KM[50]HA[2]TM[300]TC[3]TT[30]RL[0]", 0.5),
        ("KM[3.75]", 7.5),
        ("KM[2.75]", 5.5),
        ("KM[-3.75]", -7.5),
        ("KM[6.25]", 6.25),
        ("KM[3.5]", 3.5),
        ("AP[foxwq]KM[50]HA[2]", 0.5),
        ("AP[foxwq]KM[350]", 7.0),
        ("AP[foxwq]KM[375]", 7.5),
        ("AP[foxwq]KM[325]", 6.5),
        ("AP[foxwq]KM[650]", 6.5),
        ("AP[foxwq]KM[0]HA[2]", 0.0),
        ("AP[foxwq]KM[7.5]", 7.5),
        ("AP[foxwq]KM[7]", 7.0),
        ("AP[SGFC:2.0]KM[275]", 5.5),
        ("US[GoGoD95]RU[Chinese]KM[3.75]", 7.5),
    ],
)
def test_komi_in_hundredths_and_in_stones(properties: str, komi: float) -> None:
    record = read_sgf(f"(;SZ[19]{properties})")
    assert record.komi == komi
    assert read_sgf(record.to_sgf()).komi == komi


def test_spaces_behind_a_komi_are_read_once() -> None:
    spaces = " " * 20_000
    begin = time.process_time()  # seconds where every part of the spaces is tried, a millisecond here
    assert read_sgf(f"(;SZ[9]KM[6{spaces}x])").komi == 6.0
    assert result_in_words(f"black wins by 6{spaces}x") == "B+6"
    assert time.process_time() - begin < 1.0


@pytest.mark.parametrize("komi", [3.75, 4.25, -2.75, 150.0, 350.0, 0.25, 6.5])
def test_komi_that_is_written_here_is_in_points(komi: float) -> None:
    text = to_sgf(GoGame(square(9), PRESETS["chinese"], komi))
    assert f"AP[yomi:{__version__}]" in text
    assert read_sgf(text).komi == komi
    again = read_sgf("(;AP[foxwq]SZ[9]KM[375])").to_sgf()
    assert re.findall(r"AP\[.*?\]|KM\[.*?\]", again) == [f"AP[yomi:{__version__}]", "KM[7.5]"]


def test_komi_and_rules_that_need_interpretation() -> None:
    assert read_sgf("(;KM[])").komi is None
    assert from_sgf("(;SZ[9]RU[japanese])").komi == 6.5
    assert from_sgf("(;SZ[9]RU[Japanese Rules])").rules == PRESETS["japanese"]
    assert from_sgf("(;SZ[9]RU[koSIMPLEscoreTERRITORYtaxSEKIsui0])").rules == PRESETS["japanese"]
    for name, rules in (
        ("jp", "japanese"),
        ("JP", "japanese"),
        ("cn", "chinese"),
        ("Chinese, Pair Go", "chinese"),
        ("日本", "japanese"),
        ("日本ルール", "japanese"),
        ("中国规则", "chinese"),
        ("中國", "chinese"),
        ("한국", "korean"),
        ("Korean rule", "korean"),
        ("應氏規則", "ing"),
        ("New Zealand Rules", "new-zealand"),
    ):
        assert read_sgf(f"(;SZ[9]RU[{name}])").rules == PRESETS[rules], name
    for name in ("Japanese or Chinese", "shopping", "5"):
        assert read_sgf(f"(;SZ[9]RU[{name}])").rules is None
    record = read_sgf("(;SZ[9]RU[Calvinball];B[aa])")
    assert record.rules is None
    with pytest.raises(SgfError, match="unknown rules 'Calvinball'"):
        record.game()
    assert record.game(rules=PRESETS["aga"], override_rules=True).rules == PRESETS["aga"]
    assert read_sgf(record.to_sgf()).rules_text == "Calvinball"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "no game of SGF found"),
        ("hello", "no game of SGF found"),
        ("(;SZ[9:25])", r"^line 1, column 3: board size 9:25: expected 2 to 19"),
        ("(;SZ[25])", "board size 25: expected 2 to 19"),
        ("(;SZ[1])", "board size 1"),
        ("(;\nSZ[big])", r"^line 2, column 1: board size 'big'"),
        ("(;GM[2]SZ[8])", "not a game of Go"),
        # Records that can be read, but not played.
        ("(;SZ[9];B[aa];W[aa])", "move 2 of the record: illegal move W A9"),
        ("(;SZ[9];B[ab];W[ee];B[ba];W[aa])", "move 4 of the record"),
        ("(;SZ[2]AB[aa][ab][ba][bb])", "no liberties"),
        ("(;SZ[2]HA[4]AB[aa][ab][ba][bb])", "set-up of the record: invalid number of stones 4: expected 2 to 3"),
    ],
)
def test_files_without_a_game_are_one_clear_line(text: str, words: str) -> None:
    with pytest.raises(SgfError, match=words) as caught:
        from_sgf(text.encode())
    assert "\n" not in str(caught.value)


@looped(
    ("text", "moves", "notes"),
    [
        ("(;SZ[9];B[aa];W[bb]", "aa bb", ["1:20 the text ends: 1 ')' are missing"]),
        ("(;SZ[9];B[aa];W[b", "aa", ["1:16 the text ends within a value of W: left out", "1:18 the text ends: 1"]),
        ("(;SZ[9];B[aa]C[half", "aa", ["1:15 the text ends within a value of C", "1:20 the text ends"]),
        ("(;SZ[9];B[aa]\n\\;W[bb])", "aa bb", ["2:1 '\\' found, expected a property or a node"]),
        ("(;SZ[9];B[aa]];W[bb])", "aa bb", ["1:14 ']' found"]),
        ("(;SZ[9];B[aa]\r\n;W[bb] x;B[cc])", "aa bb cc", ["2:8 'x' found"]),
        ("(;SZ[9];B[aa;W[bb])", "aa bb", ["1:13 no ']' after B[aa"]),
        ("(;SZ[9];B[aa]C[text ;W[bb];B[cc])", "aa bb cc", ["1:21 no ']' after a value of C"]),
        ("(;SZ[9]C[a ] b];B[aa])", "aa", ["1:12 ']' without a backslash in a value of C: read as text"]),
        ("(;SZ[9]US[Someone[3d]]KM[6.5];B[aa])", "aa", ["1:21 ']' without a backslash in a value of US"]),
        ("(;SZ[9];B[aa](;W[bb]);W[cc])", "aa bb", ["1:22 a node after the variations"]),
        ("(;SZ[9];B[aa]())", "aa", ["1:15 a variation without nodes"]),
        (";SZ[9];B[aa])", "aa", ["1:1 no '(' at the beginning"]),
        ("(SZ[9];B[aa])", "aa", []),
        ("(;SZ[9];B[aa]W[bb];B[cc])", "aa bb cc", ["1:14 a second move in one node"]),
        ("(;SZ[9]PL[green];B[aa])", "aa", ["1:8 PL[green]: expected B or W, left out"]),
        ("(;SZ[9]PL[];B[aa])", "aa", ["1:8 PL[]: expected B or W, left out"]),
        ("(;SZ[9]AB[ab][zz][bb];W[aa])", "aa", ["1:8 AB[zz]: expected a point of a 9x9 board, left out"]),
        ("(;SZ[9]AB[bb]AE[aa:zz];W[aa])", "aa", ["1:14 AE[aa:zz]: expected a point of a 9x9 board, left out"]),
        ("(;SZ[9]KM[six];B[aa])", "aa", ["1:8 KM[six]: not a komi, the default is used"]),
        ("(;SZ[9]KM[1e9];B[aa])", "aa", ["1:8 KM[1e9]: not a komi, the default is used"]),
        ("(;SZ[];B[aa])", "aa", ["1:3 SZ is empty: read as 19"]),
        ("(;SZ[9];B[aa];W[PASS];B[  ])", "aa pass pass", []),
    ],
)
def test_broken_text_is_read_with_notes(text: str, moves: str, notes: list[str]) -> None:
    record = read_sgf(text.encode())
    size = record.board.side
    expected = [
        PASS if word == "pass" else square(size).point(ord(word[0]) - 97, ord(word[1]) - 97) for word in moves.split()
    ]
    assert [node.move[1] for node in record.line() if node.move] == expected
    found = [f"{note.line}:{note.column} {note.text}" for note in record.notes]
    assert len(found) == len(notes)
    assert all(one.startswith(beginning) for one, beginning in zip(found, notes, strict=True)), found
    assert_equal_records(read_sgf(record.to_sgf()), record)


@pytest.mark.parametrize("value", ["zz", "jj", "a", "a\n\n", "aa:bb"])
def test_a_move_off_the_board_ends_the_game_with_a_note(value: str) -> None:
    record = read_sgf(f"(;SZ[9]RU[NZ]KM[7];B[aa];W[{value}];B[bb])")
    with pytest.raises(
        SgfError, match=r"^line 1, column 26: move 2 of the record: W\[a?.*\]: expected a point of a 9x9"
    ):
        record.game()
    assert record.game(1).moves == record.game(cut=True).moves == [(BLACK, square(9).point(0, 0))]
    assert [note.text.endswith("read up to there") for note in record.notes] == [True]
    assert f";W[{value}]" in record.to_sgf(), "the record keeps it"


def test_games_that_end_nowhere_leave_the_next_one_whole() -> None:
    data = b"(;GM[1]SZ[9];B[aa]C[lost (;GM[1]SZ[13];B[bb])"
    first, second = each_sgf_game(data)
    assert isinstance(first, GameRecord)
    assert isinstance(second, GameRecord)
    assert (first.board.side, second.board.side) == (9, 13)
    assert first.root.children[0].comment == "lost "


def test_rectangular_boards() -> None:
    text = "(;SZ[5:3]AB[ea][ac];B[cb];W[ec];B[])"
    record = read_sgf(text)
    assert record.board == Board(5, 3)
    assert [record.board.vertex(node.move[1]) for node in record.line() if node.move] == ["C2", "E1", "pass"]
    assert sorted(record.board.vertex(point) for _, point in record.root.setup) == ["A1", "E3"]
    assert "SZ[5:3]" in record.to_sgf()
    assert_equal_records(read_sgf(record.to_sgf()), record)
    game = record.game()
    assert (game.board, len(game.moves)) == (Board(5, 3), 3)
    assert read_sgf(to_sgf(game)).board == Board(5, 3)
    assert [read_sgf(text).board for text in ("(;SZ[13:13])", "(;)")] == [square(13), square(19)]


def test_files(tmp_path: Path) -> None:
    path = tmp_path / "game.sgf"
    path.write_bytes(b"\xef\xbb\xbf(;SZ[9];B[aa])\n")
    assert load_record(path).game().moves == [(BLACK, square(9).parse_vertex("A9"))]
    with pytest.raises(SgfError, match=r"cannot read .*missing\.sgf: No such file"):
        load_record(tmp_path / "missing.sgf")


def test_collections(tmp_path: Path) -> None:
    path = tmp_path / "games.sgf"
    path.write_bytes(b"two (;SZ[5]PB[A];B[cc](;W[dd])(;W[bb])) and (;SZ[9]PB[B]CA[ISO8859-1]PW[M\xfcller])\n(end)")
    records = load_records(path)
    assert [(record.board.side, record.black, record.white) for record in records] == [(5, "A", ""), (9, "B", "Müller")]
    assert len(list(records[0].line())) == 3
    assert_equal_records(load_record(path), records[0])
    assert [len(list(each_sgf_game(text))) for text in (b"(;)", b"(;)(;SZ[13])")] == [1, 2]
    text = "(;GM[1]CA[gb18030]PB[\u6aa0])(;CA[gb18030]PB[\u6aa0])"
    assert [record.black for record in map(read_sgf, [text.encode("gb18030")])] == ["\u6aa0"]
    found = list(each_sgf_game(text.encode("gb18030")))
    assert [record.black for record in found if isinstance(record, GameRecord)] == ["\u6aa0"] * 2
    path.write_bytes(b"(;SZ[5])(;GM[2])(;SZ[7])")
    records = load_records(path)
    assert [record.board.side for record in records] == [5, 7]
    assert [note.text for note in records[0].notes] == ["not a game of Go: GM is 2, expected 1: this game is left out"]
    path.write_bytes(b"(;GM[2])")
    with pytest.raises(SgfError, match="not a game of Go"):
        load_records(path)


@pytest.mark.parametrize(
    ("bad", "moves"),
    [
        ("(;GM[1]SZ[9];B[aa]", 1),
        ("(;GM[1]SZ[9];B[aa]C[a ] b](;W[bb])(;W[cc]))", 2),
        ("(;GM[1]SZ[9];B[aa]C[(;];W[bb]", 2),
    ],
)
def test_games_beside_one_that_is_broken(bad: str, moves: int) -> None:
    found = list(each_sgf_game(f"(;SZ[5])\n{bad}\n(;GM[1]SZ[7];B[cc])\n(;SZ[13])".encode()))
    assert all(isinstance(each, GameRecord) for each in found)
    records = [each for each in found if isinstance(each, GameRecord)]
    assert [each.board.side for each in records] == [5, 9, 7, 13]
    assert [bool(each.notes) for each in records] == [False, True, False, False]
    assert [each.notes[0].line for each in records if each.notes] == [
        3 if bad.endswith("]") and "C[a" not in bad else 2
    ]
    assert len(list(records[1].line())) == moves + 1


def test_deep_trees_need_no_recursion() -> None:
    record = GameRecord(square(9))
    node = record.root
    for _ in range(3000):
        node = node.add(BLACK, PASS)
    node.children.append(Node(comment="end"))
    assert list(read_sgf(record.to_sgf()).line())[-1].comment == "end"


@pytest.mark.slow
@pytest.mark.parametrize("name", ["tom-9d.sgfs.xz", "tygem-9d-2011.sgfs.xz"])
def test_games_of_servers(name: str) -> None:
    with lzma.open(shared_path("data", "go", name)) as lines:
        for _, line in zip(range(60), lines, strict=False):
            record = read_sgf(line)
            assert_equal_records(read_sgf(record.to_sgf()), record)
            game = record.game()
            again = from_sgf(to_sgf(game))
            assert again.moves == game.moves
            assert again.position.tobytes() == game.position.tobytes()
            assert len(record.game(50).moves) == min(50, len(game.moves))


def by_sgfmill(raw: bytes) -> list[tuple[int, dict[str, list[str]]]]:
    """Return the nodes by sgfmill's parser, the oracle for text without faults."""
    found: list[tuple[int, dict[str, list[str]]]] = []
    pending = [(sgf_grammar.parse_sgf_game(raw), -1)]
    while pending:
        tree, parent = pending.pop()
        for properties in tree.sequence:
            texts = {name: [value.decode() for value in values] for name, values in properties.items()}
            found.append((parent, texts))
            parent = len(found) - 1
        pending += [(child, parent) for child in reversed(tree.children)]
    return found


WORDS = [
    "(", "(", ";", ";", ")", ")", "B", "W", "AddWhite", "[aa]", "[bc]", "[a\\]b]", "C[(;]", "[]", " ", "\n", "C[x]",
    "?",
]  # fmt: skip


@given(st.lists(st.sampled_from(WORDS), max_size=40).map("".join))
@example("(;B[aa](;W[bb])(;W[cc];B[dd]))")
@example("(;B[aa]B;W[bb])")
@example("(;B[aa](;W[bb]);B[cc])")
@example("(;(;B[aa])")
def test_games_are_parsed_as_by_sgfmill(text: str) -> None:
    text = f"(;GM[1]{text})"
    parser = GameParser(text, 0)
    nodes = [(node.parent, node.properties) for node in parser.nodes()]
    assert nodes, "faults end nothing"
    try:
        expected = by_sgfmill(text.encode())
    except ValueError:
        assert parser.notes
        return
    assert nodes == expected
    assert not parser.notes


@pytest.mark.parametrize(
    "text",
    [
        "(;B[aa](;W[bb])(;W[cc];B[dd](;W[ee])(;W[])))",
        "(;AB[aa][bb]AW[cc]PL[W]HA[2]KM[0.5]RU[Japanese]PB[a\\]b]C[two\nlines]ZZ[x][y];W[dd]N[a name])",
        "(;"
        + "".join(f";{color}[{point}]C[a comment of some length]" for color in "BW" for point in ("aa", "bb"))
        + ")",
    ],
)
def test_games_are_written_as_by_sgfmill(text: str) -> None:
    written = read_sgf(text).to_sgf()
    assert sgf.Sgf_game.from_string(written).serialise().decode() == written


def test_the_size_of_a_file(tmp_path: Path) -> None:
    path = tmp_path / "a.sgf"
    path.write_text("(;GM[1]SZ[13];B[aa]")
    assert load_board(path) == square(13)
    path.write_text("(;GM[1]SZ[99])")
    with pytest.raises(SgfError, match="board size 99: expected 2 to 19"):
        load_board(path)


@pytest.mark.slow
def test_files_of_many_variations_take_little_memory() -> None:
    variations = 10_000
    text = "(;GM[1]SZ[19]" + "(;B[dd];W[pp])" * variations + ")"
    read_sgf("(;GM[1])")  # imports what it needs
    tracemalloc.start()
    try:
        record = read_sgf(text.encode())
        most = tracemalloc.get_traced_memory()[1]
        before = tracemalloc.get_traced_memory()[0]
        tracemalloc.reset_peak()
        written = record.to_sgf()
        more = tracemalloc.get_traced_memory()[1] - before
    finally:
        tracemalloc.stop()
    assert len(record.root.children) == variations
    assert most < 1000 * 2 * variations
    assert written.count("(;B[dd];W[pp])") > 0.8 * variations  # in the others stand the ends of lines
    assert more < 200 * 2 * variations


def test_every_case_of_go(tmp_path: Path) -> None:
    """Report of each file: see the README beside the cases."""
    folder = shared_path("cases", "go")
    moves = {}
    for path in sorted(path for path in folder.iterdir() if path.suffix in GAME.suffixes):
        (record,) = load_records(path)
        game = record.game(cut=True, override_rules=record.rules is None)
        moves[path.name] = len(game.moves)
        assert load_board(path) == game.board
        assert_equal_records(read_sgf(record.to_sgf()), record)
    assert moves["big5-no-ca-eats-a-move.sgf"] == 2
    assert moves["shift-jis-comment-eats-a-move.sgf"] == 5
    assert moves["cut-off.sgf"] == 3
    assert moves["pl-in-a-move-node.sgf"] == 10
    assert moves["small.gib"] == moves["small.ngf"] == moves["small.ugf"] == 2


@pytest.mark.parametrize(
    ("text", "moves", "path"),
    [
        ("(;SZ[9];B[aa](;C[a comment])(;W[bb];B[cc]))", 3, 1),
        ("(;SZ[9];B[aa](;AB[hh])(;C[b];C[c])(;W[bb];B[cc]))", 3, 1),
        ("(;SZ[9](;C[a](;C[b])(;C[c];B[aa];W[bb]))(;B[cc]))", 2, 0),
        ("(;SZ[9];B[aa](;C[a])(;C[b]))", 1, None),
        ("(;SZ[9];B[aa](;W[cc])(;W[bb];B[cc]))", 2, None),
    ],
)
def test_a_first_variation_without_moves_is_no_main_line(text: str, moves: int, path: int | None) -> None:
    record = read_sgf(text)
    assert len(record.game().moves) == moves
    notes = [str(note) for note in record.notes if "variation" in str(note)]
    assert bool(notes) == (path is not None)
    if path is not None:
        assert notes[0].startswith(f"the first variation after move {path} has no moves: variation ")
    assert len(list(record.nodes())) == text.count(";"), "nothing is lost"

"""Game records of shogi: what all forms have in common, USI, JKF and hcpe."""

import contextlib
import json
import os
import random
import time
from dataclasses import replace
from pathlib import Path

import cshogi
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.looping import looped
from tests.shared_data import shared_path
from tests.unit.shogi_boards import random_moves
from tests.unit.shogi_records import BOD, FLOODGATE, JKF, KI2_TEXT, KIF_TEXT, MIDDLE, hcpe_rows, random_record
from yomi.engine.color import BLACK, DRAW, WHITE
from yomi.engine.records import Note
from yomi.engine.shogi.game import ShogiGame
from yomi.engine.shogi.notation import format_usi, parse_usi
from yomi.engine.shogi.placement import format_sfen, parse_sfen
from yomi.engine.shogi.records import japanese, packed
from yomi.engine.shogi.records.files import load_records, read_records, save_records, to_bytes
from yomi.engine.shogi.records.record import (
    ENDINGS,
    START,
    GameRecord,
    RecordedMove,
    RecordError,
    Texts,
    format_usi_line,
    record_of,
)


def test_usi_lines() -> None:
    text = "# openings\nstartpos moves 7g7f 3c3d\n\nposition startpos\n" + f"sfen {MIDDLE}\n{MIDDLE}\n"
    records = read_records(text)
    assert [len(record.moves) for record in records] == [2, 0, 0, 0]
    assert records[2] == records[3]
    assert read_records(to_bytes(records, ".usi")) == records


def test_hcpe_is_that_of_cshogi() -> None:
    records = [random_record(seed, sfen=None) for seed in range(6)]
    for record in records:
        record.ending = "TORYO"
    data = to_bytes(records, ".hcpe")
    rows = np.frombuffer(data, cshogi.HuffmanCodedPosAndEval)
    positions = hcpe_rows(data)
    assert len(rows) == len(positions) > 100
    board = cshogi.Board()
    expected = [
        (placement, each, record.winner)
        for record in records
        for each, placement in zip(record.moves, record.placements(), strict=False)
        if each.score is not None
    ]
    for row, (found, recorded), (placement, move, winner) in zip(rows, positions, expected, strict=True):
        board.set_hcp(np.ascontiguousarray(row["hcp"]))
        assert board.sfen().split()[:3] == format_sfen(placement).split()[:3]
        hcp = np.zeros(32, np.uint8)
        cshogi.Board(sfen=format_sfen(placement)).to_hcp(hcp)
        assert hcp.tobytes() == row["hcp"].tobytes()
        assert (int(row["eval"]), int(row["bestMove16"]), int(row["gameResult"])) == (move.score, move.move, winner)
        assert (recorded.score, recorded.move) == (move.score, move.move)
        assert found.board == placement.board
    assert {record.ending for record in packed.read_hcpe(data)} == {"TORYO"}


def test_hcpe_leaves_out_games_without_result_and_moves_without_evaluation() -> None:
    record = random_record(1)
    record.ending = "CHUDAN"
    assert to_bytes([record], ".hcpe") == b""
    record = random_record(1, notes=False)
    record.ending = "TORYO"
    assert to_bytes([record], ".hcpe") == b""
    record.moves[3].score = 100_000
    assert packed.read_hcpe(to_bytes([record], ".hcpe"))[0].moves[0].score == 32767


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
    for _ in range(500):
        damaged = bytearray(good)
        for _ in range(rng.randrange(1, 4)):
            damaged[rng.randrange(32)] ^= 1 << rng.randrange(8)
        try:
            placement = packed.unpack(bytes(damaged))
        except RecordError as error:
            assert len(str(error).splitlines()) == 1  # noqa: PT017
        else:
            assert packed.unpack(packed.pack(placement)) == placement


@settings(max_examples=200, deadline=None)
@given(st.sampled_from([FLOODGATE, KIF_TEXT, KI2_TEXT, BOD, json.dumps(JKF)]), st.booleans(), st.data())
def test_damaged_records_are_read_or_get_one_line(text: str, cut: bool, data: st.DataObject) -> None:
    letters = list(text)
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


@looped("name", CASES)
def test_faults_of_other_programs_are_notes(name: str) -> None:
    (record,) = load_records(shared_path("cases", "shogi", name))
    moves = " ".join(format_usi(recorded.move) for recorded in record.moves)
    assert (moves, record.ending) == CASES[name]
    assert len(record.notes) == 1
    assert record.notes[0].line > 0


LATE_HEADER = KIF_TEXT.replace("まで5手で", "手合割：香落ち\nまで5手で")


@looped(
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
        (LATE_HEADER, 5, "TORYO", [(15, "'手合割：香落ち' after the first")]),
        (KIF_TEXT.replace("\n変化", "\n以上\n   6 ８四歩(83)\n変化"), 5, "TORYO", [(17, "the lines from here on")]),
        (KIF_TEXT.replace("開始日時", "謎の日時"), 5, "TORYO", [(2, "the header '謎の日時' is unk")]),
        (KI2_TEXT.replace("まで8手で後手の勝ち", "▲まいった"), 8, "", [(7, "the ending '▲まいった' is unknown")]),
    ],
)
def test_what_is_unknown_is_a_note(text: str, moves: int, ending: str, notes: list[tuple[int, str]]) -> None:
    record = read_records(text)[0]
    assert (len(record.moves), record.ending) == (moves, ending)
    assert [(note.line, note.text[: len(begin)]) for note, (_, begin) in zip(record.notes, notes, strict=True)] == notes


BROKEN_JKF = [
    ({}, "JSON without 'moves'"),
    ({"moves": [1]}, "'1' found, expected an object"),
    ({"moves": [], "initial": {"preset": "X"}}, "the first position 'X'"),
    ({"moves": [{"move": {"piece": "XX"}}]}, "the piece 'XX'"),
    ({"moves": [{"move": {"piece": "FU", "to": {"x": 0, "y": 1}}}]}, "the square"),
    ({"moves": [{"move": {"piece": "FU", "to": {"x": 5, "y": 5}}}]}, "move 1: .*no such piece"),
    ({"moves": [{"move": {"piece": "FU", "from": {"x": 7, "y": 7}, "to": {"x": 7, "y": 5}}}]}, "move 1 7g7e"),
    ({"moves": [], "initial": {"preset": "OTHER"}}, "the position: no king"),
]


@looped(
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
        (KIF_TEXT.replace("７六歩(77)", "７五歩(77)"), "line 8: move 1 '７五歩.*: the piece on 7g does not move there"),
        (KIF_TEXT.replace("７六歩(77)", "７六歩(76)"), "line 8: move 1: '７六歩.*no such piece"),
        (KIF_TEXT.replace("７六歩(77)", "何か"), "line 8: move 1: not a move: '何か', expected Japanese"),
        (KIF_TEXT.replace("３四歩(33)", "７六歩(77)"), "line 10: move 2: .*no such piece"),
        (KIF_TEXT.replace("平手", "変な手"), "手合割：変な手 without a diagram"),
        (KI2_TEXT.replace("△同　銀", "△同　金"), "line 5: move 4: '△同金': no such piece"),
        (KI2_TEXT.replace("▲５五角", "△５五角"), "line 6: move 5: '△５五角' is a move of the other side"),
        ("手合割：その他\n|v香|一\n", "line 3: a diagram of 1 ranks"),
        ("後手の持駒：犬\n手合割：平手\n", "line 1: '犬' in the hand"),
        ("startpos moves 7g7e", "line 1: move 1 7g7e: the piece on 7g does not move there"),
        ("startpos moves xyz", "line 1: not a move"),
        ("nonsense", "line 1: SFEN of 1 fields"),
        *((json.dumps(data), words) for data, words in BROKEN_JKF),
        ('{"moves": [', "no JSON"),
    ],
)
def test_broken_records(text: str, words: str) -> None:
    with pytest.raises(RecordError, match=words) as caught:
        read_records(text)
    assert len(str(caught.value).splitlines()) == 1


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


def test_long_lines_take_no_time() -> None:
    begin = time.process_time()  # of this process alone: the machine may be busy
    for line in (f"   6 a{' ' * 200_000}b", f"**対局 {' ' * 200_000}b", f"まで{'先手' * 100_000}", f"▲{' ' * 200_000}"):
        read_records(KIF_TEXT.replace("まで5手で", f"{line}\nまで5手で"), cut=True)
        with contextlib.suppress(RecordError):  # a line with a mark is KI2's, so the others are no moves
            read_records(FLOODGATE.replace("'*a comment", f"'{line}\n{line}"))
    assert time.process_time() - begin < 20.0


def test_many_comments_before_the_first_move_take_no_time() -> None:
    begin, count = time.process_time(), 100_000
    move = {"from": {"x": 7, "y": 7}, "to": {"x": 7, "y": 6}, "piece": "FU"}
    for text in (
        "手合割：平手\n" + "*text\n" * count + "   1 ７六歩(77)\n",
        "PI\n+\n" + "'*text\n" * count + "+7776FU\n",
        json.dumps({"moves": [{"comments": ["text"] * count}, {"move": move}]}),
    ):
        (record,) = read_records(text)
        assert (len(record.moves), record.comment.count("text")) == (1, count)
    assert time.process_time() - begin < 20.0


def test_bookmarks_are_kept() -> None:
    (record,) = read_records(KIF_TEXT.replace("*良い手", "*良い手\n&しおり"))
    assert record.moves[0].comment == "良い手\n&しおり"
    assert "\n*良い手\n&しおり\n" in to_bytes([record], ".kifu").decode()


def test_notes_are_bounded() -> None:
    (record,) = read_records("PI\n+\n+7776FU\n" + "hello\n" * 1000)
    assert len(record.notes) == 51
    assert record.notes[-1] == Note("there are more faults, which are not listed", 54)


@looped(
    ("text", "usi"),
    [
        # CSA with blanks between the pieces that are taken away or placed
        ("V2.2\nPI 82HI 22KA\n-\n-5142OU\n", "5a4b"),
        ("PI  82HI22KA \n-\n-5142OU\n", "5a4b"),
        ("P+ 59OU 00KI\nP- 51OU\n+\n+5958OU\n", "5i5h"),
        # marks of other programs
        ("☗７六歩 ☖３四歩 ⛊２六歩 ⛉４四歩", "7g7f 3c3d 2g2f 4c4d"),
        # KI2 without marks
        ("手合割：平手\n７六歩　３四歩\n２二角成 同　銀\n", "7g7f 3c3d 8h2b+ 3a2b"),
        ("７六歩 ３四歩 2六歩", "7g7f 3c3d 2g2f"),
        # move numbers and times in full width, and times without minutes
        ("手合割：平手\n１ ７六歩(77)\n２　３四歩(33)\n", "7g7f 3c3d"),
        # bare moves of USI
        ("7g7f 3c3d 2g2f", "7g7f 3c3d 2g2f"),
        ("7g7f\n3c3d\n", "7g7f 3c3d"),
        ("moves 7g7f 3c3d resign\n", "7g7f 3c3d"),
        # a pass ends a game
        ("手合割：平手\n1 ７六歩(77)\n2 パス\n3 ２六歩(27)", "7g7f"),
        ("▲７六歩 △パス ▲２六歩", "7g7f"),
    ],
)
def test_forms_of_other_programs(text: str, usi: str) -> None:
    (record,) = read_records(text)
    assert " ".join(format_usi(recorded.move) for recorded in record.moves) == usi
    assert [note.text for note in record.notes] == (
        ["move 2 'パス' is no move of shogi; the game is read up to there"] if "パス" in text else []
    )


@looped(
    ("clock", "seconds"),
    [("(16/16)", 16), ("( 0:16/00:00:16)", 16), ("（０：１６／００：００：１６）", 16), ("(1:00)", 60), ("", None)],
)
def test_forms_of_times(clock: str, seconds: int | None) -> None:
    (record,) = read_records(f"手合割：平手\n   1 ７六歩(77) {clock}\n   2 ３四歩(33)\n")
    assert [recorded.seconds for recorded in record.moves] == [seconds, None]


def test_a_loss_on_time_has_a_winner() -> None:
    for word in ("時間切れ負け", "時間切れ", "切れ負け"):
        (record,) = read_records(f"手合割：平手\n   1 ７六歩(77)\n   2 {word}\n")
        assert (record.ending, record.winner) == ("TIME_UP", BLACK)


@looped(
    ("text", "words"),
    [
        ('[Event "x"]\n[Variant "Shogi"]\n\n1. Pc4 Pd6 0-1\n', "PGN is not read: expected CSA, KIF"),
        ("1. Pc4 Pd6 2. Pc5 Pd5", "PGN is not read"),
        ('[Sente "A"]\n[Gote "B"]\n\n1.P7g-7f 2.P3c-3d', "PSN is not read: expected CSA, KIF"),
        ("1.P7g-7f 2.P3c-3d 3.P2g-2f", "PSN is not read"),
        ("手合割：5五将棋\n   1 ５四歩(55)\n", "5五将棋 is another game: expected shogi on 9x9"),
        ("手合割：京都将棋\n   1 ５四歩(55)\n", "京都将棋 is another game"),
        # no move was understood
        ("手合割：平手\nhello\nworld\n", "^no move was understood: line 2: 'hello' is no line of KIF"),
        ("V2.2\nPI\n+\nhello\n", "^no move was understood: line 4: 'hello' is no statement of CSA"),
    ],
)
def test_what_is_no_record_of_shogi_is_named(text: str, words: str) -> None:
    with pytest.raises(RecordError, match=words):
        read_records(text, cut=True)


def test_a_position_without_moves_is_a_record() -> None:
    (record,) = read_records("手合割：平手\n先手：甲\n後手：乙\n")
    assert (record.moves, record.notes) == ([], [])


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


def test_words_of_usi_that_end_a_game() -> None:
    for word, ending in (("resign", "TORYO"), ("win", "KACHI")):
        (record,) = read_records(f"startpos moves 7g7f 3c3d {word}\n")
        assert (len(record.moves), record.ending) == (2, ending)
    (record,) = read_records("startpos moves 7g7f 3c3d rep_draw\n")
    assert (len(record.moves), record.ending) == (2, "")
    assert record.notes == [Note("the ending 'rep_draw' is unknown and left out", 1)]
    (record,) = read_records("startpos moves 7g7f hello 3c3d\n", cut=True)
    assert (len(record.moves), record.notes[0].line) == (1, 1)


@pytest.mark.parametrize("mark", ["'", "*"])
def test_texts_that_grow_line_by_line_are_joined_once(mark: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Adding each line to the text took time that grows with the square of their number."""
    stored: list[int] = []
    store = Texts.store
    monkeypatch.setattr(Texts, "store", lambda texts: (stored.append(len(texts._lines)), store(texts)))
    moves = {"'": "V2.2\nPI\n+\n{}+7776FU\n{}%TORYO\n{}", "*": "手合割：平手\n{}   1 ７六歩(77)\n{}   2 投了\n{}"}
    (record,) = read_records(moves[mark].format(*(f"{mark}{name}\n" * 1000 for name in "abc")))
    assert stored == [3]
    assert [record.comment, record.moves[0].comment, record.end_comment] == ["\n".join([name] * 1000) for name in "abc"]


@pytest.mark.parametrize("depth", [500, 100_000])
def test_a_deep_jkf_is_one_line_in_our_words(depth: int) -> None:
    with pytest.raises(RecordError, match=r"nested too deep|expected an object") as error:
        read_records('{"moves": ' + "[" * depth + "]" * depth + "}")
    assert "recursion" not in str(error.value)


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
    presets = {"KY": "香", "HIKY": "飛香", "2": "二枚", "7_L": "左七枚", "10": "十枚"}
    for preset, name in presets.items():
        (position,) = read_records(json.dumps({"initial": {"preset": preset}, "moves": [{}]}))
        assert position.initial == parse_sfen(f"{japanese.HANDICAPS[f'{name}落ち']} w - 1")


def test_an_unknown_ending_of_jkf_is_a_note() -> None:
    moves = [{}, {"move": {"piece": "FU", "to": {"x": 7, "y": 6}}}, {"special": "FOO"}]
    (record,) = read_records(json.dumps({"moves": moves}))
    assert (len(record.moves), record.ending) == (1, "")
    assert record.notes == [Note("the ending 'FOO' is unknown and left out")]


def test_halves_of_characters_in_jkf_are_replaced() -> None:
    (record,) = read_records(
        r'{"header": {"先手": "a\ud800b", "後手": "\ud83d\ude00"}, "moves": [{"comments": ["\udc00"]}]}'
    )
    assert (record.black, record.white) == ("a\ufffdb", "\U0001f600")
    assert to_bytes([record], ".csa")

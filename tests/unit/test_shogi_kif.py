"""Game records in KIF and KI2, their variations, and diagrams (BOD), read back by us and by cshogi."""

import re
from dataclasses import replace
from pathlib import Path

import cshogi
import pytest
from cshogi import KIF

from tests.looping import looped
from tests.unit.shogi_boards import walk
from tests.unit.shogi_records import (
    BOD,
    FLOODGATE,
    KI2_TEXT,
    KIF_TEXT,
    MATED_BY_A_PAWN,
    MIDDLE,
    STARTS,
    random_record,
    without_pv,
)
from yomi.engine.color import BLACK, DRAW, WHITE
from yomi.engine.records import Note
from yomi.engine.shogi.notation import format_japanese, format_usi, parse_usi
from yomi.engine.shogi.placement import Placement, format_sfen, parse_sfen, target_of, type_of
from yomi.engine.shogi.records import japanese, kif
from yomi.engine.shogi.records.files import load_records, read_records, save_records, to_bytes
from yomi.engine.shogi.records.japanese import japanese_pv
from yomi.engine.shogi.records.record import START, GameRecord, RecordedMove, RecordError, format_usi_line
from yomi.native.shogi.pieces import SILVER


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


def test_moves_whose_numbers_look_like_the_frame_of_a_board() -> None:
    for number in (98, 987):
        assert kif._numbered_move(f"{number} 同　玉(73)   ( 0:00/00:00:00)")
    assert not kif._numbered_move("９ ８ ７ ６ ５ ４ ３ ２ １")


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


@looped(
    ("result", "ending", "note"),
    [
        ("先手の勝ち", "", "is left out: it is the winner's turn"),
        ("後手の宣言勝ち", "", "is left out: it is the loser's turn"),
        ("おしまい", "", "is unknown and left out"),
        ("先手の時間切れ", "TIME_UP", ""),
        ("時間切れにより後手の勝ち", "TIME_UP", ""),
        ("後手の時間切れ勝ち", "TIME_UP", "is read as TIME_UP"),
        ("通信切断、後手の勝ち", "TORYO", "is read as TORYO"),
        ("先手の宣言勝ち", "KACHI", "is read as KACHI"),
    ],
)
def test_results(result: str, ending: str, note: str) -> None:
    (record,) = read_records(KI2_TEXT.replace("後手の勝ち", result))
    assert (len(record.moves), record.ending) == (8, ending)
    assert record.notes == ([Note(f"the ending '{result}' {note}", 7)] if note else [])


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


@pytest.mark.parametrize("move", ["５四歩(55)", "５五歩打"])
def test_kif_of_a_foul_that_no_piece_can_play(move: str) -> None:
    text = f"   1 ７六歩(77)\n   2 ３四歩(33)\n   3 {move}\n"
    for rest in ("   4 反則勝ち\n", "まで3手で先手の反則負け\n"):
        (record,) = read_records(text + rest)
        assert (len(record.moves), record.ending, record.winner) == (2, "+ILLEGAL_ACTION", WHITE)
        (note,) = record.notes
        assert str(note).endswith("no such piece can move there; the illegal move is left out")
    for rest in ("", "   4 投了\n", "まで3手で後手の勝ち\n"):
        with pytest.raises(RecordError, match=r"^line 3: move 3: "):
            read_records(text + rest)


def test_ki2_of_a_game_that_an_illegal_move_has_ended() -> None:
    text = "先手：a\n後手：b\n▲７六歩　△３四歩　▲３三角成　△８四歩{}\nまで4手で後手の反則負け\n"
    (record,) = read_records(text.format(""))
    assert (len(record.moves), record.ending, record.winner) == (3, "-ILLEGAL_ACTION", BLACK)
    assert record.notes == [Note("move 4 '△８四歩': the king is in check; the illegal move is left out", 3)]
    with pytest.raises(RecordError, match="move 4: '▲８四歩' is a move of the other side"):
        read_records(text.replace("△８四歩", "▲８四歩").format(""))
    for ending in ("▲反則勝ち", "　▲反則勝ち"):
        assert read_records(text.format(ending)) == [record]
    for following in ("　▲２六歩", "　▲投了", "　▲２六歩　△反則勝ち"):
        with pytest.raises(RecordError, match="line 3: move 4 '△８四歩': the king is in check"):
            read_records(text.format(following))


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


@looped(("name", "board"), japanese.HANDICAPS.items())
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


@looped("key", ["変化", "まで", "1 歩", "先手", "後手の持駒", "手合割", "*a", "#a", "", "TIME+", "先手省略名"])
def test_headers_of_csa_are_only_headers_in_kif(key: str) -> None:
    (record,) = read_records(FLOODGATE.replace("$EVENT:wdoor", f"${key}:3手"))
    (again,) = read_records(to_bytes([record], ".kifu"))
    assert (again.black, again.white, again.initial) == (record.black, record.white, record.initial)
    assert [each.move for each in again.moves] == [each.move for each in record.moves]
    assert key in " ".join((*again.info, *again.info.values()))


@looped(
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


@looped(
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
        ("lance", "香落ち"),
        ("LANCE", "香落ち"),
    ],
)
def test_names_of_handicaps(name: str, known: str) -> None:
    assert read_records(f"手合割：{name}\n")[0].initial == parse_sfen(f"{japanese.HANDICAPS[known]} w - 1")


@looped(("name", "board"), japanese.HANDICAPS.items())
def test_handicaps_that_others_do_not_know_are_written_as_diagrams(name: str, board: str) -> None:
    known = "、香落ち、右香落ち、角落ち、飛車落ち、飛香落ち、二枚落ち、四枚落ち、六枚落ち、八枚落ち、十枚落ち、"
    record = GameRecord(parse_sfen(f"{board} w - 1"), [RecordedMove(parse_usi("5a5b"))], black="a", ending="TORYO")
    text = kif.format_kif_record(record, "UTF-8")
    assert f"手合割：{name if f'、{name}、' in known else 'その他'}\n" in text
    assert "下手：a\n" in text
    assert "まで1手で上手の勝ち" in text
    assert read_records(text) == [record]


@looped(
    ("lines", "score", "pv", "is_review"),
    [
        ("**対局 評価値 35 読み筋 △３四歩(33) ▲２六歩(27)", 35, "△３四歩(33) ▲２六歩(27)", False),
        ("**解析 0 △ 候補1 時間 00:10.0 深さ 22/30 評価値 -450↑ 読み筋 △３四歩(33)", -450, "△３四歩(33)", True),
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


@pytest.mark.parametrize(
    "text", ["* 5 stars", "**Engines 0 a", "*評価値は不明", "* 評価値 12", "*読み筋=▲２六歩", "*99999999999 0"]
)
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


CSA_TIMES = "PI\n+\n+7776FU\nT1\n-3334FU\nT2\n+2726FU\nT3\n-8384FU\nT4\n"
VARIATIONS = """
変化：4手
*別の手
   4 同　飛(82)   ( 0:03/00:00:03)
*評価値 -120 ▲２八飛
   5 ５五角打     ( 0:00/00:00:00)
   6 中断         ( 0:00/00:00:03)

変化：5手
   5 ７五歩(76)

変化：6手
   6 ３二飛(22)

変化：2手
   2 ８四歩(83)   ( 0:00/00:00:00)
   3 ２六歩(27)
"""


def test_total_times_of_variations_begin_where_they_leave_the_game() -> None:
    (record,) = read_records(CSA_TIMES)
    line = [replace(move, seconds=7.0) for move in record.moves[2:]]
    outer = GameRecord(record.placements()[2], moves=line)
    inner = GameRecord(outer.placements()[1], moves=[replace(line[1], seconds=9.0)])
    record.variations = [outer, inner]
    written = to_bytes([record], ".kifu").decode().split("変化")
    totals = [re.findall(r"/00:00:(\d\d)\)", part) for part in written]
    assert totals == [["01", "02", "04", "06"], ["08", "09"], ["11"]]


def lines_of(record: GameRecord) -> list[tuple[int, str]]:
    """Return each variation as the number of its first move and its moves."""
    return [
        (each.initial.number, " ".join(format_usi(recorded.move) for recorded in each.moves))
        for each in record.variations
    ]


def test_variations_are_kept() -> None:
    """The second one leaves the first one, the fourth one the game; the third one goes on where the second one ends."""
    text = KIF_TEXT[: KIF_TEXT.index("\n変化")] + VARIATIONS
    record = read_records(text)[0]
    assert format_usi_line(record) == "startpos moves 7g7f 3c3d 8h2b+ 3a2b B*5e"
    assert lines_of(record) == [(4, "8b2b B*5e"), (5, "7f7e"), (6, "2b3b"), (2, "8c8d 2g2f")]
    first = record.variations[0]
    assert (first.comment, first.ending, first.winner) == ("別の手", "CHUDAN", None)
    assert (first.moves[0].seconds, first.moves[0].score, first.moves[0].pv) == (3.0, 120, "▲２八飛")
    assert record.variations[1].initial == first.placements()[1]
    assert record.notes == []
    again = read_records(to_bytes([record], ".kif"))[0]
    assert again == record
    resigned = read_records(KIF_TEXT[: KIF_TEXT.index("変化")] + "変化：6手\n   6 ３三銀(22)\n")[0]
    assert lines_of(resigned) == [(6, "2b3c")]  # the game was resigned there
    indented = "\n".join("　" + line for line in text.splitlines())
    assert read_records(indented) == [record]
    ki2 = read_records(KI2_TEXT + "\n変化：3手\n▲２六歩    △８四歩\n")[0]
    assert (len(ki2.moves), ki2.ending, lines_of(ki2)) == (8, "TORYO", [(3, "2g2f 8c8d")])


@pytest.mark.parametrize(
    ("text", "note", "kept"),
    [
        ("変化：9手\n   9 ８四歩(83)", "line 17: '変化：9手': expected a move from 1 to 6, such as 変化：1手", []),
        ("変化：多手", "line 17: '変化：多手': expected a move from 1 to 6", []),
        ("変化：2手\n   2 ８四歩(83)\n   3 ８五歩(84)\n   4 ２六歩(27)", "line 19: move 3", [(2, "8c8d")]),
        ("変化：2手\nnonsense\n変化：1手\n   1 ２六歩(27)", "line 18: 'nonsense' is no line of KIF", [(1, "2g2f")]),
    ],
)
def test_faults_of_a_variation_are_notes(text: str, note: str, kept: list[tuple[int, str]]) -> None:
    record = read_records(KIF_TEXT[: KIF_TEXT.index("変化")] + text)[0]
    assert len(record.moves) == 5
    assert len(record.notes) == 1
    assert str(record.notes[0]).startswith(note)
    assert lines_of(record) == kept

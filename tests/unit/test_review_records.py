"""Annotated records of reviews, of both games."""

import base64
import dataclasses
import gzip
import json
import re
import struct
import threading
from pathlib import Path
from typing import Any

import cshogi
import cshogi.KIF
import pytest
from sgfmill.sgf import Sgf_game

from tests.fakes.player import FakePlayer
from tests.sgf import read_sgf
from tests.unit.reviews import (
    CSA,
    SGF,
    Ticks,
    fake_reviewers,
    go_review,
    judged_game,
    opinion,
    reviewed,
    shogi_review,
    shogi_reviewer,
)
from tests.unit.test_go_game import take_kos_once_around, three_kos
from yomi import language
from yomi.engine.cli.main import main
from yomi.engine.color import BLACK, WHITE
from yomi.engine.evaluators.base import EvaluatorError
from yomi.engine.go.game import GoGame
from yomi.engine.go.points import square
from yomi.engine.go.review import GoReviewer
from yomi.engine.go.reviewed_record import annotate
from yomi.engine.go.rules import PRESETS
from yomi.engine.go.sgf import to_sgf
from yomi.engine.mistakes import DEFAULT, Thresholds
from yomi.engine.options import Options
from yomi.engine.pages.review import page_data
from yomi.engine.players.request import Decision, Request
from yomi.engine.reviews.review import MARK, Candidate, Opinion, ReviewError, reviewed_moves, short_engine
from yomi.engine.reviews.scans import Progress
from yomi.engine.reviews.text import table
from yomi.engine.shogi.game import ShogiGame
from yomi.engine.shogi.notation import format_usi, parse_usi
from yomi.engine.shogi.records.files import read_records, to_bytes
from yomi.engine.shogi.records.record import GameRecord, RecordedMove
from yomi.engine.shogi.review import Played, is_unclear

# -- Go ------------------------------------------------------------------------------------------------------------


def test_go_record_is_annotated(tmp_path: Path) -> None:
    annotated = go_review(SGF, tmp_path)
    text = annotated.files()[".sgf"].decode()
    record = read_sgf(text)
    nodes = list(record.line())
    assert (record.black, record.white, record.root.other["EV"]) == ("Ann", "Bob", ["Cup"])
    assert nodes[0].comment == f"{MARK}reviewed by yomi (fake)"
    assert nodes[1].comment == f"center\n{MARK}B+1.5, B 50.0%; the best move (16 visits)"
    assert nodes[1].other["SBKV"] == ["50.00"]
    assert nodes[1].other["V"] == nodes[1].other["SBKS"] == ["1.50"]
    assert [child.move for child in nodes[2].children] == [node.move for node in (nodes[3], nodes[2].children[1])]
    assert nodes[2].children[1].comment == "mine"


def test_a_board_that_is_not_square(tmp_path: Path) -> None:
    annotated = go_review("(;SZ[7:5];B[ea];W[gb];B[be])", tmp_path)
    record = read_sgf(annotated.files()[".sgf"].decode())
    assert str(record.board) == "7x5"
    assert [record.board.vertex(node.move[1]) for node in record.line() if node.move] == ["E5", "G4", "B1"]
    data = annotated.to_json()
    assert data["size"] == "7x5"
    assert annotated.first_position["width"] == 7
    assert annotated.first_position["height"] == 5


def test_a_game_of_go_is_reviewed_up_to_a_move_that_cannot_be_played(tmp_path: Path) -> None:
    annotated = go_review("(;SZ[5]KM[7.5];B[cc];W[bb];B[cc]C[again];W[dd])", tmp_path)
    assert [move.text for move in annotated.moves] == ["C3", "B4"]
    (note,) = annotated.notes
    assert str(note) == "move 3 of the record: illegal move B C3: occupied: reviewed up to there"
    nodes = list(read_sgf(annotated.files()[".sgf"].decode()).line())
    assert len(nodes) == 5
    assert nodes[3].comment == f"again\n{MARK}this move cannot be played: the review ends here"
    assert MARK not in nodes[4].comment


@pytest.mark.parametrize(
    ("name", "text", "fault"),
    [
        ("a.usi", "startpos moves 7g7f 7g7f 3c3d", "move 2 7g7f: "),
        ("a.csa", "PI\n+\n+7776FU\n-7776FU\n+3334FU\n%TORYO\n", "line 4: "),
        ("a.kifu", "手合割：平手\n   1 ７六歩(77)\n   2 ７六歩(77)\n   3 ３四歩(33)\n", "line 3: "),
        ("a.sfen", "sfen 7lk/9/7GG/9/9/9/9/9/8K b P 1 moves 1i2i P*1b", "move 2 P*1b: "),
    ],
)
def test_a_game_of_shogi_is_reviewed_up_to_a_move_that_cannot_be_played(
    name: str, text: str, fault: str, tmp_path: Path
) -> None:
    annotated = shogi_review(tmp_path / name, text)
    assert len(annotated.moves) == 1
    texts = [str(note) for note in annotated.notes]
    assert any(fault in text and text.endswith("; the game is read up to there") for text in texts)
    assert annotated.files()


@pytest.mark.parametrize(("rules", "score"), [("Chinese", 25.0), ("Japanese", 25.0), ("Tromp-Taylor", 0.0)])
def test_dead_stones_are_taken_off_where_players_agree_on_them(
    rules: str, score: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("yomi.engine.go.scoring.dead_stones", lambda game, owners: {square(5).parse_vertex("A5")})
    annotated = go_review(f"(;GM[1]SZ[5]KM[0]RU[{rules}];B[cc];W[aa];B[];W[])", tmp_path)
    review = annotated
    assert review.opinions[-1].score_for(BLACK) == score
    kept = dataclasses.replace(review.opinions[-1], winrate=1.0 - review.opinions[-2].winrate, score=40.0)
    last = dataclasses.replace(review.moves[-1], after=kept, before=dataclasses.replace(review.opinions[-2], best=0))
    assert last.score_loss == 38.5, "the score of the rules, not of a search"
    assert review.class_of(last) == ""


def test_a_second_review_replaces_the_first(tmp_path: Path) -> None:
    once = go_review(SGF, tmp_path).files()[".sgf"].decode()
    assert go_review(once, tmp_path).files()[".sgf"].decode() == once


def test_a_mistake_gets_other_moves_and_its_refutation(tmp_path: Path) -> None:
    annotated = judged_game(tmp_path)
    data = annotated.files()[".sgf"]
    mistake, better, other = read_sgf(data).root.children[0].children
    board = annotated.record.board
    assert [node.move and board.vertex(node.move[1]) for node in (mistake, better, other)] == ["B4", "C4", "D4"]
    assert mistake.other["BM"] == ["2"]
    expected = "blunder; B+4, W 30.0%; best C4 (0, W 50.0%): C4 D4; loss 4.0 points, 20.0% (99 visits)"
    assert mistake.comment == MARK + expected
    assert better.comment.startswith(f"{MARK}better, 0, W 50.0%")
    assert other.comment == f"{MARK}also, B+0.5, W 48.0% (20 visits)"
    assert (better.other["SBKV"], other.other["SBKV"], other.other["V"]) == (["50.00"], ["52.00"], ["0.50"])
    reply, refutation = mistake.children
    assert refutation.comment == f"{MARK}refutation, B+4, B 70.0%"
    assert [node.move for node in (refutation, *refutation.children)] == [
        (BLACK, board.parse_vertex("E5")),
        (WHITE, board.parse_vertex("A5")),
    ]
    assert reply.other["TE"] == ["2"], "the user's mark stays"
    nodes = list(Sgf_game.from_bytes(data).get_main_sequence())
    assert len(nodes) == 5, "the game has no more moves"
    assert nodes[2].get("BM") == 2
    once = read_sgf(data)
    annotate(once, annotated)
    assert once.to_sgf().encode() == data, "a second review changes nothing"


def test_only_moves_and_surprising_moves_are_marked(tmp_path: Path) -> None:
    annotated = judged_game(tmp_path)
    after = annotated.opinions[2]
    played = dataclasses.replace(annotated.moves[2], move=after.best or 0)
    assert annotated.verdict_of(played) == "only move"
    close = dataclasses.replace(after.candidates[1], winrate=0.69, score=3.9)
    before = dataclasses.replace(after, candidates=(after.candidates[0], close))
    played = dataclasses.replace(played, before=before)
    assert annotated.verdict_of(played) == "surprising move"
    assert annotated.verdict_of(dataclasses.replace(played, before=dataclasses.replace(before, visits=9))) == ""
    annotated.moves[2] = played
    data = annotated.files()[".sgf"].replace(b"TE[2]", b"")
    record = read_sgf(data)
    annotate(record, annotated)
    answer = list(record.line())[3]
    assert (answer.other["IT"], "TE" in answer.other) == ([""], False)
    assert answer.comment.startswith(f"{MARK}surprising move; ")


def test_katrain_and_lizzieyzy_find_their_analyses(tmp_path: Path) -> None:
    root = Sgf_game.from_bytes(judged_game(tmp_path).files()[".sgf"]).get_root()
    assert root.has_property("LZOP")
    node = root[0]
    ownership, policy, data = (gzip.decompress(base64.b64decode(part)) for part in node.get_raw_list("KT"))
    found = json.loads(data)
    assert found["root"] == {"visits": 100, "winrate": 0.5, "scoreLead": 0.0}
    assert found["moves"]["E5"]["winrate"] == 0.8, "Black's"
    assert found["moves"]["E5"]["scoreLead"] == 9.0
    assert found["moves"]["C4"]["pv"] == ["C4", "D4"]
    assert struct.unpack("25e", ownership)[:3] == (-1.0, pytest.approx(-0.0175, abs=0.001), 1.0)
    priors = struct.unpack("26e", policy)
    assert [round(priors[place], 2) for place in (4, 7, 8, 25)] == [0.1, 0.4, 0.2, 0.0]
    head, moves = node.get_raw("LZ").decode().split("\n")
    assert head == "yomi 50.0 100 0.0 0.0"
    assert moves.split(" info ")[1] == "move D4 visits 20 winrate 4800 prior 2000 scoreMean -0.50 pv D4"


def test_a_first_move_in_the_root(tmp_path: Path) -> None:
    annotated = go_review("(;GM[1]SZ[5]KM[7]B[cc]C[mine];W[bb];B[dd])", tmp_path)
    colors = [move.color for move in annotated.moves]
    annotated.moves[0] = reviewed(opinion(BLACK, 0.7, 3.0, best=2), opinion(WHITE, 0.5, 0.25))
    text = annotated.files()[".sgf"].decode()
    nodes = list(read_sgf(text).line())
    assert colors == [BLACK, WHITE, BLACK]
    for node, color in zip(nodes, "BWB", strict=True):
        assert re.search(f"{MARK}(blunder; )?[BW][+].*, {color} ", node.comment)
    assert nodes[0].comment.startswith(f"mine\n{MARK}reviewed by yomi (fake)\n{MARK}blunder; W+0.2, B 50.0%")
    assert (nodes[0].other["V"], nodes[0].other["BM"], len(nodes[0].children)) == (["-0.25"], ["2"], 1)
    assert go_review(text, tmp_path).files()[".sgf"].decode().count(MARK) == text.count(MARK)


def test_a_record_that_cannot_be_written(tmp_path: Path) -> None:
    annotated = go_review("(;SZ[5];B[cc]x[1])", tmp_path)
    assert "B[cc]" in annotated.files()[".sgf"].decode()
    annotated.record.root.other["x"] = ["1"]
    with pytest.raises(ReviewError, match="cannot write SGF"):
        annotated.files()


def test_a_game_without_moves_has_a_review_without_moves(tmp_path: Path) -> None:
    annotated = go_review("(;SZ[5])", tmp_path)
    assert (annotated.moves, len(annotated.opinions)) == ([], 1)


def test_setup_handicap_and_the_end_of_a_game(tmp_path: Path) -> None:
    annotated = go_review("(;SZ[5]HA[2]AB[bb][dd];W[cc];B[cd];W[];B[])", tmp_path)
    assert [move.color for move in annotated.moves] == [WHITE, BLACK, WHITE, BLACK]
    last = annotated.opinions[-1]
    assert last.winrate in (0.0, 1.0)
    assert last.best is None


def test_a_game_that_goes_on_after_two_passes_is_valued_as_one_that_goes_on(tmp_path: Path) -> None:
    opinions = go_review("(;SZ[5]KM[6.5]RU[Chinese];B[cc];W[bb];B[];W[];B[dd];W[aa];B[];W[])", tmp_path).opinions
    assert [each.visits for each in opinions] == [16] * 8 + [0]
    assert opinions[4].winrate == opinions[3].winrate
    assert opinions[8].winrate in (0.0, 1.0)


def test_a_game_without_result_is_nobodys(tmp_path: Path) -> None:
    game, tops = three_kos(PRESETS["japanese"])
    for _ in range(2):
        take_kos_once_around(game, tops)
    last = go_review(to_sgf(game), tmp_path).opinions[-1]
    assert (last.winrate, last.score, last.visits) == (0.5, 0.0, 0)


def test_unknown_rules_are_told(tmp_path: Path) -> None:
    annotated = go_review(SGF.replace("Chinese", "Klingon"), tmp_path)
    assert [str(note) for note in annotated.notes] == ["unknown rules 'Klingon': reviewed under tromp-taylor"]
    assert annotated.info["rules"] == "tromp-taylor"


# -- shogi ---------------------------------------------------------------------------------------------------------


def test_csa_record_is_annotated(tmp_path: Path) -> None:
    (record,) = read_records(shogi_review(tmp_path / "game.csa", CSA).files()[".csa"])
    assert (record.black, record.white, record.ending) == ("Ann", "Bob", "TORYO")
    assert record.comment == "yomi: reviewed by yomi (fake)"
    first = record.moves[0]
    assert first.comment.split("\n")[0] == "evaluation of the record: 42 -3334FU"
    assert "loss" in first.comment.split("\n")[1]
    assert first.score is not None
    assert first.score < 0
    assert len(first.pv) == len("-1112KY")


def test_kif_record_is_annotated_in_japanese(tmp_path: Path) -> None:
    text = shogi_review(tmp_path / "game.kif", to_bytes(read_records(CSA), ".kif")).files()[".kif"].decode("cp932")
    assert re.search(r"^\*\*解析 0 候補1 評価値 -?[0-9]+ 読み筋 △..\S*\([0-9]{2}\)", text, re.MULTILINE)
    assert "最善 75.0%: ▲" in text
    (record,) = read_records(text)
    assert len(record.moves) == 3
    assert all(recorded.is_review for recorded in record.moves)


@pytest.mark.parametrize(
    ("form", "title", "line"),
    [(".kifu", "棋譜の評価値", "▲２二角成(88)"), (".csa", "evaluation of the record", "+8822UM")],
)
def test_the_evaluation_of_the_record_is_kept_for_black(form: str, title: str, line: str, tmp_path: Path) -> None:
    records = read_records(CSA.replace("-3334FU\n+8822UM", "-3334FU\n'** -122 +8822UM\n+8822UM"))
    path = tmp_path / f"game{form}"
    text = shogi_review(path, to_bytes(records, form)).files()[form].decode()
    assert f"*{title}: -122 {line}\n" in text
    assert f"*{title}: 42 " in text
    assert shogi_review(path, text).files()[form].decode().count(title) == 2
    assert f"*yomi: {'検討：' if form == '.kifu' else 'reviewed by '}yomi (fake)" in text


def test_variations_of_a_record_are_not_lost_in_silence(tmp_path: Path) -> None:
    text = "手合割：平手\n   1 ７六歩(77)\n   2 ３四歩(33)\n\n変化：2手\n   2 ８四歩(83)\n\n変化：7手\n"
    why = "line 8: '変化：7手': expected a move from 1 to 3, such as 変化：1手; the rest of the variation is left out"
    for suffix, lost in ((".kif", [why]), (".usi", [why, "left out: the variations (1), which CSA does not have"])):
        annotated = shogi_review(tmp_path / f"game{suffix}", text)
        assert [str(note) for note in annotated.notes] == lost
    (record,) = read_records(shogi_review(tmp_path / "game.kif").files()[".kif"])
    own = [each for each in record.variations if MARK not in each.moves[0].comment]
    assert [format_usi(each.moves[0].move) for each in own] == ["8c8d"]
    assert len(record.variations) > 1


def test_the_sides_of_a_handicap_game(tmp_path: Path) -> None:
    names = "先手：糸谷\n後手：深浦\n"
    moves = "   1 ３四歩(33)\n   2 ７六歩(77)\n"
    review = shogi_review(tmp_path / "game.kif", f"手合割：香落ち\n{names}{moves}")
    with language.within(language.JAPANESE):
        text = f"{review.heading()}\n{table(review, 3)}"
    assert text.startswith("糸谷（下手） 対 深浦（上手）\n")
    assert "先手" not in text
    assert page_data(review)["sides"] == {"B": "下手", "W": "上手"}
    review.limit = "180 nodes to 3,000 nodes"
    facts = page_data(review)["facts"]
    assert facts["en"].startswith("180 nodes to 3,000 nodes a position, yomi (")
    assert facts["ja"].startswith("一局面あたり 180〜3,000 ノード、yomi (")
    assert "評価値" in text
    assert "点" not in text


KIF_WITH_VARIATIONS = """\
手合割：平手
   1 ７六歩(77)
   2 ３四歩(33)
   3 ２六歩(27)
   4 ８四歩(83)

変化：3手
   3 ６六歩(67)

変化：1手
   1 ５六歩(57)
   2 ５四歩(53)

変化：2手
   2 ３四歩(33)
"""


def judged_kif(tmp_path: Path) -> bytes:
    """Return a record with variations of its own, in which the second move is a mistake."""
    annotated = shogi_review(tmp_path / "judged.kif", KIF_WITH_VARIATIONS)
    moves = [parse_usi(text) for text in ("8c8d", "4a3b", "8b3b")]
    good = tuple(Candidate(move, 50, 0.4, 0.5 - 0.01 * n, -10.0 * n, (move,)) for n, move in enumerate(moves))
    answer = tuple(map(parse_usi, ("8h2b+", "3a2b", "B*5e")))
    opinions = [
        Opinion(BLACK, 0.5, 0.0, annotated.moves[0].move),
        Opinion(WHITE, 0.5, 0.0, moves[0], (moves[0],), visits=150, candidates=good),
        Opinion(BLACK, 0.8, 600.0, answer[0], answer, visits=90, mate=7),
        Opinion(WHITE, 0.2, -600.0, moves[0], (moves[0],)),
        Opinion(BLACK, 0.8, 600.0),
    ]
    played = [move.move for move in annotated.moves]
    annotated.opinions[:] = opinions
    annotated.moves[:] = reviewed_moves(played, opinions, format_usi, 8)
    return annotated.files()[".kif"]


def test_kif_gets_variations_in_its_order(tmp_path: Path) -> None:
    data = judged_kif(tmp_path)
    (record,) = read_records(data)
    found = [
        (each.initial.number, format_usi(each.moves[0].move), each.moves[0].comment.removeprefix(MARK))
        for each in record.variations
    ]
    assert found == [
        (3, "6g6f", ""),
        (3, "8h2b+", "とがめる手 80.0%"),
        (2, "8c8d", "最善 50.0%"),
        (2, "4a3b", "次善 49.0%"),
        (2, "8b3b", "次善 48.0%"),
        (1, "5g5f", ""),
        (2, "3c3d", ""),
    ]
    assert record.variations[-1].initial == record.variations[-2].initial.after(parse_usi("5g5f"))
    assert [move.score for move in record.variations[1].moves] == [600, None, None]
    assert "yomi: 悪手; 20.0%; 最善 50.0%: △８四歩; 損失 30.0%" in record.moves[1].comment
    assert record.moves[2].comment == (
        "yomi: 緩手; 80.0%; 最善 80.0%: ▲２二角成 △同銀 ▲５五角; 損失 0.0%; 7手詰めを逃す"
    )
    read = cshogi.KIF.Parser.parse_str(data.decode("cp932")).moves  # of the game, then of the variations
    assert list(map(cshogi.move_to_usi, read[:4])) == [format_usi(move.move) for move in record.moves]


def test_a_second_review_replaces_the_variations_of_the_first(tmp_path: Path) -> None:
    once = judged_kif(tmp_path)
    (record,) = read_records(once)
    mine = GameRecord(record.variations[1].initial.after(parse_usi("8h2b+")), [RecordedMove(parse_usi("3a2b"))])
    record.variations.insert(2, mine)
    (again,) = read_records(shogi_review(tmp_path / "again.kif", to_bytes([record], ".kif")).files()[".kif"])
    starts = [format_usi(each.moves[0].move) for each in again.variations]
    assert starts[: starts.index("3a2b") + 1][-2:] == ["8h2b+", "3a2b"], "it leaves a variation of the first review"
    assert starts.count("4a3b") == 0


def test_usi_lines_become_csa_and_a_second_review_replaces_the_first(tmp_path: Path) -> None:
    once = shogi_review(tmp_path / "game.usi", "startpos moves 7g7f 3c3d\n").files()
    assert list(once) == [".csa"]
    assert shogi_review(tmp_path / "again.csa", once[".csa"]).files() == once


def test_alpha_beta_values_the_played_move_beside_the_best(tmp_path: Path) -> None:
    path = tmp_path / "game.usi"
    path.write_text("startpos moves 7g7f 3c3d\n")
    reviewer = shogi_reviewer()
    annotated = reviewer.review(reviewer.read(str(path))[0], Progress())
    best, played, reply = min(ShogiGame().legal_moves()), parse_usi("7g7f"), parse_usi("3c3d")
    requests: list[Request[Any]] = reviewer.player.requests  # type: ignore[attr-defined]
    assert [len(request.game.moves) for request in requests] == [2, 1, 1, 1, 0, 0, 0], "from the end"
    assert requests[5].allow == (best, played), "in one search, of one line each"
    assert reply in (requests[2].allow or ())
    assert set(requests[6].avoid) == {best, played}
    (first, _) = annotated.moves
    assert first.before.played_winrate == 0.625


def test_thresholds_in_centipawns_decide_which_moves_are_searched_deeper() -> None:
    found = Opinion(BLACK, 0.98, 2300.0, best=2, played_winrate=0.97, played_score=1900.0)
    worse = dataclasses.replace(found, score=1500.0, played_winrate=0.95, played_score=1200.0)
    thresholds = Thresholds.parse("200,400,800cp")
    assert not is_unclear(worse, Played(1, None, DEFAULT)), "3% of winrate"
    assert is_unclear(worse, Played(1, None, thresholds))
    assert not is_unclear(found, Played(1, None, thresholds)), "centipawns count up to 2000"
    assert not is_unclear(worse, Played(1, Opinion(WHITE, 0.1, -900.0), Thresholds.parse("100,200,300cp"))), "clear"


def test_a_mated_side_and_a_forced_move(tmp_path: Path) -> None:
    review = shogi_review(tmp_path / "mate.sfen", "sfen 4k4/9/4P4/9/9/9/9/9/4K4 b G 1 moves G*5b\n")
    assert review.opinions[-1].mate == 0
    assert review.opinions[-1].winrate == 0.0
    assert review.moves[0].winrate_after == 1.0


def test_every_position_is_judged_once_whoever_is_slow(tmp_path: Path) -> None:
    class Slow(FakePlayer):
        def decide(self, request: Request[GoGame]) -> Decision:
            done.wait(60)
            return super().decide(request)

    done = threading.Event()
    path = tmp_path / "game.sgf"
    path.write_text("(;SZ[5];B[aa];W[ba];B[ca];W[da];B[ea];W[ab];B[bb];W[cb])")
    quick = FakePlayer()
    reviewer = GoReviewer([Slow(), quick], Options(size=5, visits=16))
    (record,) = reviewer.read(str(path))

    class Waiting(Ticks):
        def tick(self) -> None:
            super().tick()
            if self.count == 8:  # all but the one that the slow analyst has
                done.set()

    ticks = Waiting()
    review = reviewer.review(record, ticks)
    assert ticks.count == len(review.opinions) == 9
    assert [opinion.color for opinion in review.opinions] == [BLACK, WHITE] * 4 + [BLACK]
    lengths = [len(task.game.moves) for task in quick.requests]
    assert lengths == [4, 5, 6, 7, 8, 2, 3, 1]  # its own part, then the later half of what is left


def test_what_an_analyst_raises_ends_the_review(tmp_path: Path) -> None:
    class Broken(FakePlayer):
        def decide(self, request: Request[GoGame]) -> Decision:
            raise EvaluatorError("out of order")

    path = tmp_path / "game.sgf"
    path.write_text(SGF)
    healthy = FakePlayer()
    reviewer = GoReviewer([Broken(), healthy], Options(size=5, visits=16))
    (record,) = reviewer.read(str(path))
    with pytest.raises(EvaluatorError, match="out of order"):
        reviewer.review(record, Progress())
    assert "interrupt" in healthy.calls


def test_records_of_other_servers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_reviewers(monkeypatch)
    (tmp_path / "a.gib").write_text(
        "\\HS\n\\[GAMECONDITION=Even : Black 6.5 Dum\\]\n\\HE\n\\GS\nSTO 0 2 1 15 3\n\\GE\n"
    )
    (tmp_path / "b.ngf").write_text("Rated\n9\nwhite 7D\nblack 5D\n\n0\n0\n6\n\n5\nWhite wins\n1\nPMABBDDDD\n")
    assert main(["analyze", str(tmp_path)]) == 0
    assert sorted(path.name for path in tmp_path.glob("*.yomi.sgf")) == ["a.yomi.sgf", "b.yomi.sgf"]


@pytest.mark.parametrize(
    ("engine", "short"),
    [
        ("b10c384h6nbttflrs on cpu (native kernels, vectors of 16, bf16)", "yomi (b10c384)"),
        ("b18c384nbt-s9996604416 on cuda:0", "yomi (b18c384nbt)"),
        ("yomi-shogi-sparse on cpu (sparse kernels)", "yomi (yomi-shogi-sparse)"),
        ("uniform", "yomi (uniform)"),
    ],
)
def test_the_long_name_of_the_engine_stands_only_in_the_terminal(engine: str, short: str) -> None:
    assert short_engine(engine) == short

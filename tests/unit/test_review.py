"""Reviews: losses, the table, JSON, annotated records of both games, and what `yomi review` does with files."""

from __future__ import annotations

import base64
import dataclasses
import gzip
import io
import json
import os
import re
import struct
import sys
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import cshogi
import cshogi.KIF
import pytest
from sgfmill.sgf import Sgf_game

from tests.contract.networks import write_small_network
from tests.fakes.player import FakePlayer
from tests.fakes.shogi_player import FakeShogiPlayer
from tests.unit.test_go_game import take_kos_once_around, three_kos
from yomi.engine.cli import review
from yomi.engine.cli.games import GO, SHOGI
from yomi.engine.cli.main import main
from yomi.engine.cli.review_progress import ReviewJournal
from yomi.engine.color import BLACK, WHITE
from yomi.engine.evaluators.base import EvaluatorError
from yomi.engine.go.game import GoGame
from yomi.engine.go.points import square
from yomi.engine.go.review import AnnotatedGo, GoReviewer, are_mirrored, only_size
from yomi.engine.go.reviewed_record import annotate
from yomi.engine.go.rules import PRESETS
from yomi.engine.go.sgf import to_sgf
from yomi.engine.go.sgf_reader import read_sgf
from yomi.engine.mistakes import Thresholds, ThresholdsError
from yomi.engine.options import Options
from yomi.engine.players.request import Decision, Request
from yomi.engine.review import (
    MARK,
    Candidate,
    Opinion,
    Review,
    ReviewedMove,
    ReviewError,
    reviewed_moves,
)
from yomi.engine.review_scans import (
    FULL,
    Progress,
)
from yomi.engine.review_text import table
from yomi.engine.shogi.notation import format_usi, parse_usi
from yomi.engine.shogi.records.files import load_records, read_records, to_bytes
from yomi.engine.shogi.records.record import GameRecord, RecordedMove
from yomi.engine.shogi.review import ShogiReviewer
from yomi.nets.errors import NetworkError
from yomi.nets.load import prepare

SGF = "(;GM[1]FF[4]SZ[5]KM[6.5]RU[Chinese]PB[Ann]PW[Bob]EV[Cup];B[cc]C[center];W[bb](;B[dd])(;B[ee]C[mine]))"
CSA = "V2.2\nN+Ann\nN-Bob\nPI\n+\n+7776FU\n'** 42 -3334FU\n-3334FU\n+8822UM\n%TORYO\n"


class ShogiPlayerWithSearch(FakeShogiPlayer):
    """A fake player that counts evaluations."""

    search = SimpleNamespace(evaluations=16)


class Ticks(Progress):
    count = 0

    def tick(self) -> None:
        self.count += 1


def opinion(color: int, winrate: float, score: float | None = None, best: int | None = None) -> Opinion:
    return Opinion(color, winrate, score, best)


def reviewed(before: Opinion, after: Opinion, move: int = 1) -> ReviewedMove:
    return ReviewedMove(1, before.color, move, "a", "b", ("b", "c"), before, after)


def go_review(text: str, tmp_path: Path) -> AnnotatedGo:
    path = tmp_path / "game.sgf"
    path.write_text(text)
    reviewer = GoReviewer([FakePlayer(), FakePlayer()], Options(size=5, visits=16))
    (record,) = reviewer.read(str(path))
    ticks = Ticks()
    annotated = reviewer.review(record, ticks)
    assert ticks.count == reviewer.length(record)
    return annotated


def shogi_review(path: Path) -> Any:
    reviewer = ShogiReviewer(ShogiPlayerWithSearch(Options.for_game("shogi")))  # type: ignore[arg-type]
    loaded = reviewer.read(str(path))[0]
    return reviewer.review(loaded, Progress())


# -- what a move lost ----------------------------------------------------------------------------------------------


def test_losses_are_those_of_the_side_that_moved() -> None:
    move = reviewed(opinion(WHITE, 0.7, 3.0, best=2), opinion(BLACK, 0.6, 1.0))
    assert move.winrate_loss == pytest.approx(0.3)
    assert move.score_loss == pytest.approx(4.0)
    assert move.winrate_after == pytest.approx(0.4)


def test_a_consecutive_move_of_the_same_color() -> None:
    move = reviewed(opinion(BLACK, 0.7, 3.0, best=2), opinion(BLACK, 0.6, 1.0))
    assert move.winrate_loss == pytest.approx(0.1)
    assert move.score_loss == pytest.approx(2.0)


def test_the_best_move_loses_nothing_and_no_move_gains() -> None:
    assert reviewed(opinion(BLACK, 0.7, best=1), opinion(WHITE, 0.9)).winrate_loss == 0.0
    assert reviewed(opinion(BLACK, 0.5, best=2), opinion(WHITE, 0.1)).winrate_loss == 0.0
    assert reviewed(opinion(BLACK, 0.5, best=2), opinion(WHITE, 0.1)).score_loss is None


@pytest.mark.parametrize(("mate", "turned"), [(3, -4), (1, -2), (0, 1), (-2, 3), (None, None)])
def test_a_forced_move_is_one_ply_further_from_the_mate(mate: int | None, turned: int | None) -> None:
    assert Opinion(BLACK, 1.0, 29997.0, mate=mate).turned().mate == turned


def test_worst_moves() -> None:
    moves = [reviewed(opinion(BLACK, 0.5, best=2), opinion(WHITE, winrate)) for winrate in (0.6, 0.5, 0.9, 0.7)]
    review = Review("go", GO.score, "fake", moves, [])
    assert [round(move.winrate_loss, 3) for move in review.worst(BLACK, 2)] == [0.4, 0.2]
    assert review.worst(WHITE, 2) == []
    assert "Black: 4 moves, 0% as the engine, mean loss 17.50%" in table(review, 2)
    assert "White: no moves" in table(review, 2)


# -- classes of mistakes -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "losses", "unit"),
    [
        ("5,10,20%", (5.0, 10.0, 20.0), "%"),
        ("0.5,2,6points", (0.5, 2.0, 6.0), "points"),
        (" 200,400,800 cp", (200.0, 400.0, 800.0), "cp"),
    ],
)
def test_thresholds_are_read(text: str, losses: tuple[float, ...], unit: str) -> None:
    found = Thresholds.parse(text)
    assert (found.losses, found.unit) == (losses, unit)
    assert Thresholds.parse(str(found)) == found


@pytest.mark.parametrize(
    "text", ["", "5,10,20", "5,10%", "10,5,20%", "0,1,2%", "1,1,2points", "-1,2,3%", "1,2,3stones"]
)
def test_other_thresholds_are_refused(text: str) -> None:
    with pytest.raises(ThresholdsError, match=f"'{text}' found, expected three rising numbers and a unit"):
        Thresholds.parse(text)


def test_a_class_begins_at_its_threshold() -> None:
    moves = [reviewed(opinion(BLACK, 0.7, 3.0, best=2), opinion(WHITE, 1 - after)) for after in (0.66, 0.65, 0.6, 0.5)]
    review = Review("go", GO.score, "fake", moves, [])
    assert [review.class_of(move) for move in moves] == ["", "inaccuracy", "mistake", "blunder"]
    assert "1 blunder, 1 mistake, 1 inaccuracy" in table(review, 0)
    assert "no move that lost anything" in table(review, 1)  # White
    assert "no move that lost anything" not in table(review, 0)


def test_thresholds_in_points_find_and_sort_mistakes_of_decided_games() -> None:
    moves = [reviewed(opinion(BLACK, 0.99, 30.0, best=2), opinion(WHITE, 0.01, -30.0 + loss)) for loss in (1, 9, 4)]
    review = Review("go", GO.score, "fake", moves, [], thresholds=Thresholds.parse("2,5,10points"))
    assert [review.class_of(move) for move in moves] == ["", "mistake", "inaccuracy"]
    assert review.worst(BLACK, 5) == [moves[1], moves[2]]
    assert review.to_json()["moves"][1]["class"] == "mistake"
    assert review.to_json()["black"]["classes"] == {"inaccuracy": 1, "mistake": 1, "blunder": 0}
    assert "thresholds 2,5,10points" in review.heading()


def test_a_longer_way_to_win_is_no_mistake_in_centipawns() -> None:
    move = reviewed(opinion(BLACK, 1.0, 29_997.0, best=2), opinion(WHITE, 0.01, -4_000.0))
    review = Review("shogi", SHOGI.score, "fake", [move], [], thresholds=Thresholds.parse("200,400,800cp"))
    assert review.class_of(move) == ""


def test_a_missed_mate_is_told() -> None:
    before, after = Opinion(BLACK, 1.0, 29_997.0, 2, mate=3), opinion(WHITE, 0.4)
    missed = reviewed(before, after)
    longer = reviewed(before, Opinion(WHITE, 0.0, -29_992.0, mate=-8))
    review = Review("shogi", SHOGI.score, "fake", [missed, longer], [])
    assert [move.missed_mate for move in review.moves] == [3, None]
    shown = table(review, 5)
    assert ", 1 missed mate\n" in shown
    assert "b c  (missed mate in 3)" in shown


def test_phases_are_apart() -> None:
    losses = (0.0, 0.1, 0.3)
    moves = [
        dataclasses.replace(reviewed(opinion(BLACK, 0.9, best=2), opinion(WHITE, 0.1 + loss)), number=number)
        for number, loss in zip((1, 5, 9), losses, strict=True)
    ]
    review = Review("go", GO.score, "fake", moves, [], phases=(4, 8))
    lines = table(review, 0).splitlines()
    assert lines[1] == "  opening: 1 move, 0% as the engine, mean loss 0.00%, accuracy 100%"
    assert lines[2] == "  middle game: 1 move, 0% as the engine, mean loss 10.00%, accuracy 64%, 1 mistake"
    assert lines[3] == "  endgame: 1 move, 0% as the engine, mean loss 30.00%, accuracy 25%, 1 blunder"
    assert review.to_json()["black"]["phases"]["endgame"]["classes"]["blunder"] == 1


# -- Go ------------------------------------------------------------------------------------------------------------


def test_go_record_is_annotated(tmp_path: Path) -> None:
    annotated = go_review(SGF, tmp_path)
    text = annotated.files()[".sgf"].decode()
    record = read_sgf(text)
    nodes = list(record.line())
    assert (record.black, record.white, record.root.other["EV"]) == ("Ann", "Bob", ["Cup"])
    assert nodes[0].comment == f"{MARK}reviewed by fake"
    assert nodes[1].comment == f"center\n{MARK}B 50.0%; W+1.5; the best move (16 visits)"
    assert nodes[1].other["SBKV"] == ["50.00"]
    assert nodes[1].other["V"] == nodes[1].other["SBKS"] == ["-1.50"]
    assert [child.move for child in nodes[2].children] == [node.move for node in (nodes[3], nodes[2].children[1])]
    assert nodes[2].children[1].comment == "mine"


def test_a_board_that_is_not_square(tmp_path: Path) -> None:
    annotated = go_review("(;SZ[7:5];B[ea];W[gb];B[be])", tmp_path)
    record = read_sgf(annotated.files()[".sgf"].decode())
    assert str(record.board) == "7x5"
    assert [record.board.vertex(node.move[1]) for node in record.line() if node.move] == ["E5", "G4", "B1"]
    data = annotated.review.to_json()
    assert data["size"] == "7x5"
    assert annotated.review.first_position["width"] == 7
    assert annotated.review.first_position["height"] == 5


def test_a_game_of_go_is_reviewed_up_to_a_move_that_cannot_be_played(tmp_path: Path) -> None:
    annotated = go_review("(;SZ[5];B[cc];W[bb];B[cc]C[again];W[dd])", tmp_path)
    assert [move.text for move in annotated.review.moves] == ["C3", "B4"]
    (note,) = annotated.review.notes
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
    path = tmp_path / name
    path.write_text(text)
    annotated = shogi_review(path)
    assert len(annotated.review.moves) == 1
    texts = [str(note) for note in annotated.review.notes]
    assert any(fault in text and text.endswith("; the game is read up to there") for text in texts)
    assert annotated.files()


@pytest.mark.parametrize(("rules", "score"), [("Chinese", 25.0), ("Japanese", 25.0), ("Tromp-Taylor", 0.0)])
def test_dead_stones_are_taken_off_where_players_agree_on_them(
    rules: str, score: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("yomi.engine.go.review.dead_stones", lambda game, owners: {square(5).parse_vertex("A5")})
    annotated = go_review(f"(;GM[1]SZ[5]KM[0]RU[{rules}];B[cc];W[aa];B[];W[])", tmp_path)
    assert annotated.review.opinions[-1].score_for(BLACK) == score


def test_a_second_review_replaces_the_first(tmp_path: Path) -> None:
    once = go_review(SGF, tmp_path).files()[".sgf"].decode()
    assert go_review(once, tmp_path).files()[".sgf"].decode() == once


def test_mistakes_get_a_variation_and_a_mark(tmp_path: Path) -> None:
    annotated = go_review(SGF, tmp_path)
    move = annotated.review.moves[1]
    bad = Opinion(BLACK, 0.9, 5.0, best=move.before.best, visits=16)
    assert move.before.best is not None
    annotated.review.moves[1] = ReviewedMove(
        2, WHITE, move.move, "B4", "C4", ("C4",), Opinion(WHITE, 0.5, 0.0, best=99, pv=move.before.pv), bad
    )
    data = annotated.files()[".sgf"]
    record = read_sgf(data)
    first = record.root.children[0]
    assert first.children[0].other["BM"] == ["2"]
    assert Sgf_game.from_bytes(data).get_root()[0][0].get("BM") == 2
    assert first.children[0].comment.startswith(f"{MARK}blunder; W 10.0%")
    assert first.children[1].comment.startswith(f"{MARK}better, W 50.0%")
    assert first.children[1].move == (WHITE, move.before.pv[0])
    assert first.children[1].other["SBKV"] == ["50.00"]
    annotated.files()  # again: nothing doubles
    assert len(read_sgf(annotated.files()[".sgf"]).root.children[0].children) == 2


def judged_game(tmp_path: Path) -> AnnotatedGo:
    """Return a game whose second move is a mistake; White had two good moves, and Black did not punish it."""
    annotated = go_review("(;GM[1]SZ[5]KM[6.5];B[cc];W[bb];B[dd]TE[2];W[aa])", tmp_path)
    board, review = annotated.record.board, annotated.review
    c4, d4, b4, e5, a5 = (board.parse_vertex(text) for text in ("C4", "D4", "B4", "E5", "A5"))
    candidates = (
        Candidate(c4, 60, 0.4, 0.5, 0.0, (c4, d4)),
        Candidate(d4, 20, 0.2, 0.48, -0.5, (d4,)),
        Candidate(e5, 20, 0.1, 0.2, -9.0, (e5,)),
    )
    before = Opinion(WHITE, 0.5, 0.0, c4, (c4, d4), visits=100, candidates=candidates, ownership="A]z" + 22 * "]")
    answer = (Candidate(e5, 90, 0.02, 0.7, 4.0, (e5, a5)), Candidate(a5, 9, 0.5, 0.4, -3.0, (a5,)))
    after = Opinion(BLACK, 0.7, 4.0, e5, (e5, a5), visits=99, candidates=answer)
    last = Opinion(WHITE, 0.5, 0.0, best=a5, pv=(a5,))
    review.opinions[1:4] = [before, after, last]
    moves = [recorded.move for recorded in review.moves]
    review.moves[:] = reviewed_moves(moves, review.opinions, board.vertex, 12)
    assert b4 == moves[1]
    return annotated


def test_a_mistake_gets_other_moves_and_its_refutation(tmp_path: Path) -> None:
    annotated = judged_game(tmp_path)
    data = annotated.files()[".sgf"]
    mistake, better, other = read_sgf(data).root.children[0].children
    board = annotated.record.board
    assert [node.move and board.vertex(node.move[1]) for node in (mistake, better, other)] == ["B4", "C4", "D4"]
    assert mistake.other["BM"] == ["2"]
    assert other.comment == f"{MARK}also, W 48.0% (20 visits)"
    assert (better.other["SBKV"], other.other["SBKV"], other.other["V"]) == (["50.00"], ["52.00"], ["0.50"])
    reply, refutation = mistake.children
    assert refutation.comment == f"{MARK}refutation, B 70.0%"
    assert [node.move for node in (refutation, *refutation.children)] == [
        (BLACK, board.parse_vertex("E5")),
        (WHITE, board.parse_vertex("A5")),
    ]
    assert reply.other["TE"] == ["2"], "the user's mark stays"
    assert len(list(Sgf_game.from_bytes(data).get_main_sequence())) == 5, "the game has no more moves"
    once = read_sgf(data)
    annotate(once, annotated.review)
    assert once.to_sgf().encode() == data, "a second review changes nothing"


def test_only_moves_and_surprising_moves_are_marked(tmp_path: Path) -> None:
    annotated = judged_game(tmp_path)
    after = annotated.review.opinions[2]
    played = dataclasses.replace(annotated.review.moves[2], move=after.best or 0)
    assert annotated.review.verdict_of(played) == "only move"
    close = dataclasses.replace(after.candidates[1], winrate=0.69)
    before = dataclasses.replace(after, candidates=(after.candidates[0], close))
    played = dataclasses.replace(played, before=before)
    assert annotated.review.verdict_of(played) == "surprising move"
    assert annotated.review.verdict_of(dataclasses.replace(played, before=dataclasses.replace(before, visits=9))) == ""
    annotated.review.moves[2] = played
    data = annotated.files()[".sgf"].replace(b"TE[2]", b"")
    record = read_sgf(data)
    annotate(record, annotated.review)
    answer = list(record.line())[3]
    assert (answer.other["IT"], "TE" in answer.other) == ([""], False)
    assert answer.comment.startswith(f"{MARK}surprising move; B ")


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
    colors = [move.color for move in annotated.review.moves]
    annotated.review.moves[0] = reviewed(opinion(BLACK, 0.7, 3.0, best=2), opinion(WHITE, 0.5, 0.25))
    text = annotated.files()[".sgf"].decode()
    nodes = list(read_sgf(text).line())
    assert colors == [BLACK, WHITE, BLACK]
    for node, color in zip(nodes, "BWB", strict=True):
        assert re.search(f"{MARK}(blunder; )?{color} ", node.comment)
    assert nodes[0].comment.startswith(f"mine\n{MARK}reviewed by fake\n{MARK}blunder; B 50.0%")
    assert (nodes[0].other["V"], nodes[0].other["BM"], len(nodes[0].children)) == (["-0.25"], ["2"], 1)
    assert go_review(text, tmp_path).files()[".sgf"].decode().count(MARK) == text.count(MARK)


def test_a_record_that_cannot_be_written(tmp_path: Path) -> None:
    annotated = go_review("(;SZ[5];B[cc]x[1])", tmp_path)
    assert "B[cc]" in annotated.files()[".sgf"].decode()
    annotated.record.root.other["x"] = ["1"]
    with pytest.raises(ReviewError, match="cannot write SGF"):
        annotated.files()


def test_setup_handicap_and_the_end_of_a_game(tmp_path: Path) -> None:
    annotated = go_review("(;SZ[5]HA[2]AB[bb][dd];W[cc];B[cd];W[];B[])", tmp_path)
    assert [move.color for move in annotated.review.moves] == [WHITE, BLACK, WHITE, BLACK]
    last = annotated.review.opinions[-1]
    assert last.winrate in (0.0, 1.0)
    assert last.best is None


def test_a_game_without_result_is_nobodys(tmp_path: Path) -> None:
    game, tops = three_kos(PRESETS["japanese"])
    for _ in range(2):
        take_kos_once_around(game, tops)
    last = go_review(to_sgf(game), tmp_path).review.opinions[-1]
    assert (last.winrate, last.score, last.visits) == (0.5, 0.0, 0)


def test_unknown_rules_are_told(tmp_path: Path) -> None:
    annotated = go_review(SGF.replace("Chinese", "Klingon"), tmp_path)
    assert [str(note) for note in annotated.review.notes] == ["unknown rules 'Klingon': reviewed under tromp-taylor"]
    assert annotated.review.info["rules"] == "tromp-taylor"


# -- shogi ---------------------------------------------------------------------------------------------------------


def test_csa_record_is_annotated(tmp_path: Path) -> None:
    path = tmp_path / "game.csa"
    path.write_text(CSA)
    (record,) = read_records(shogi_review(path).files()[".csa"])
    assert (record.black, record.white, record.ending) == ("Ann", "Bob", "TORYO")
    assert record.comment == "yomi: reviewed by fake"
    first = record.moves[0]
    assert first.comment.split("\n")[0] == "evaluation of the record: 42 -3334FU"
    assert "loss" in first.comment.split("\n")[1]
    assert first.score is not None
    assert first.score < 0
    assert len(first.pv) == len("-1112KY")


def test_kif_record_is_annotated_in_japanese(tmp_path: Path) -> None:
    path = tmp_path / "game.kif"
    path.write_bytes(to_bytes(read_records(CSA), ".kif"))
    text = shogi_review(path).files()[".kif"].decode("cp932")
    assert re.search(r"^\*\*解析 0 候補1 評価値 -?[0-9]+ 読み筋 △..\S*\([0-9]{2}\)", text, re.MULTILINE)
    assert "最善 75.0%: ▲" in text
    (record,) = read_records(text)
    assert len(record.moves) == 3
    assert all(recorded.is_review for recorded in record.moves)


@pytest.mark.parametrize(("form", "line"), [(".kifu", "▲２二角成(88)"), (".csa", "+8822UM")])
def test_the_evaluation_of_the_record_is_kept_for_black(form: str, line: str, tmp_path: Path) -> None:
    records = read_records(CSA.replace("-3334FU\n+8822UM", "-3334FU\n'** -122 +8822UM\n+8822UM"))
    path = tmp_path / f"game{form}"
    path.write_bytes(to_bytes(records, form))
    text = shogi_review(path).files()[form].decode()
    assert f"*evaluation of the record: -122 {line}\n" in text
    assert "*evaluation of the record: 42 " in text
    path.write_text(text, encoding="utf-8")
    assert shogi_review(path).files()[form].decode().count("evaluation of the record") == 2


def test_variations_of_a_record_are_not_lost_in_silence(tmp_path: Path) -> None:
    text = "手合割：平手\n   1 ７六歩(77)\n   2 ３四歩(33)\n\n変化：2手\n   2 ８四歩(83)\n\n変化：7手\n"
    why = "line 8: '変化：7手': expected a move from 1 to 3, such as 変化：1手; the rest of the variation is left out"
    for suffix, lost in ((".kif", [why]), (".usi", [why, "left out: the variations (1), which CSA does not have"])):
        path = tmp_path / f"game{suffix}"
        path.write_text(text)
        annotated = shogi_review(path)
        assert [str(note) for note in annotated.review.notes] == lost
    path = tmp_path / "game.kif"
    (record,) = read_records(shogi_review(path).files()[".kif"])
    own = [each for each in record.variations if MARK not in each.moves[0].comment]
    assert [format_usi(each.moves[0].move) for each in own] == ["8c8d"]
    assert len(record.variations) > 1


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
    path = tmp_path / "judged.kif"
    path.write_text(KIF_WITH_VARIATIONS)
    annotated = shogi_review(path)
    moves = [parse_usi(text) for text in ("8c8d", "4a3b", "8b3b")]
    good = tuple(Candidate(move, 50, 0.4, 0.5 - 0.01 * n, -10.0 * n, (move,)) for n, move in enumerate(moves))
    answer = tuple(map(parse_usi, ("8h2b+", "3a2b", "B*5e")))
    opinions = [
        Opinion(BLACK, 0.5, 0.0, annotated.review.moves[0].move),
        Opinion(WHITE, 0.5, 0.0, moves[0], (moves[0],), visits=150, candidates=good),
        Opinion(BLACK, 0.8, 600.0, answer[0], answer, visits=90, mate=7),
        Opinion(WHITE, 0.2, -600.0, moves[0], (moves[0],)),
        Opinion(BLACK, 0.8, 600.0),
    ]
    played = [move.move for move in annotated.review.moves]
    annotated.review.opinions[:] = opinions
    annotated.review.moves[:] = reviewed_moves(played, opinions, format_usi, 8)
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
    path = tmp_path / "again.kif"
    path.write_bytes(to_bytes([record], ".kif"))
    (again,) = read_records(shogi_review(path).files()[".kif"])
    starts = [format_usi(each.moves[0].move) for each in again.variations]
    assert starts[: starts.index("3a2b") + 1][-2:] == ["8h2b+", "3a2b"], "it leaves a variation of the first review"
    assert starts.count("4a3b") == 0


def test_usi_lines_become_csa_and_a_second_review_replaces_the_first(tmp_path: Path) -> None:
    path = tmp_path / "game.usi"
    path.write_text("startpos moves 7g7f 3c3d\n")
    once = shogi_review(path).files()
    assert list(once) == [".csa"]
    again = tmp_path / "again.csa"
    again.write_bytes(once[".csa"])
    assert shogi_review(again).files() == once


def test_a_mated_side_and_a_forced_move(tmp_path: Path) -> None:
    path = tmp_path / "mate.sfen"
    path.write_text("sfen 4k4/9/4P4/9/9/9/9/9/4K4 b G 1 moves G*5b\n")
    review = shogi_review(path).review
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
    path.write_text(
        "(;SZ[5]"
        + "".join(f";{color}[{x}{y}]" for color, x, y in zip("BWBWBWBW", "abcdeabc", "aaaaabbb", strict=True))
        + ")"
    )
    quick = FakePlayer()
    reviewer = GoReviewer([Slow(), quick], Options(size=5, visits=16))
    (record,) = reviewer.read(str(path))

    class Waiting(Ticks):
        def tick(self) -> None:
            super().tick()
            if self.count == 8:  # all but the one that the slow analyst has
                done.set()

    ticks = Waiting()
    review = reviewer.review(record, ticks).review
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


# -- files and folders ---------------------------------------------------------------------------------------------


def fake_reviewers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("yomi.engine.cli.review.prepare", lambda *_: None)
    monkeypatch.setattr(
        "yomi.engine.go.review.make_analysts", lambda options, count, prompt: [FakePlayer(), FakePlayer()]
    )
    monkeypatch.setattr("yomi.engine.shogi.review.ShogiPlayer", ShogiPlayerWithSearch)


def make_folder(folder: Path) -> Path:
    (folder / "sub").mkdir(parents=True)
    (folder / "a.sgf").write_text(SGF)
    (folder / "b.sgf").write_text("(;SZ[25];B[cc])")
    (folder / "sub" / "two.csa").write_text(CSA + "/\n" + CSA)
    (folder / "sub" / "two-1.usi").write_text("startpos moves 7g7f 3c3d\n")
    (folder / "a.yomi.sgf").write_text("broken, but written by a review")
    (folder / "notes.doc").write_text("no record")
    return folder


def test_records_of_one_name_keep_their_reviews(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_reviewers(monkeypatch)
    paths = [tmp_path / folder / "game.sgf" for folder in "abcd"]
    for path in paths:
        path.parent.mkdir()
        path.write_text(SGF)
    out = tmp_path / "out"
    assert main(["analyze", *map(str, paths), "--out", str(out), "--visits", "16"]) == 0
    names = ["game.sgf-2.yomi.sgf", "game.sgf-3.yomi.sgf", "game.sgf.yomi.sgf", "game.yomi.sgf"]
    assert sorted(path.name for path in out.iterdir()) == names


def test_a_folder_with_a_broken_record(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    fake_reviewers(monkeypatch)
    folder, out, report = make_folder(tmp_path / "games"), tmp_path / "out", tmp_path / "report.json"
    status = main(["analyze", str(folder), "--out", str(out), "--json", str(report), "--visits", "16"])
    printed = capsys.readouterr()
    assert status == review.BROKEN
    assert f"yomi: error: {folder / 'b.sgf'}: line 1, column 3: board size 25: expected 2 to 19" in printed.err
    assert "Black (Ann): 2 moves" in printed.out
    names = {str(path.relative_to(out)) for path in out.rglob("*") if path.is_file()}
    assert names == {"a.yomi.sgf", "sub/two-1.yomi.csa", "sub/two-1.csa.yomi.csa", "sub/two-2.yomi.csa"}
    found = json.loads(report.read_text())
    assert [(Path(each["file"]).name, each.get("number"), "error" in each) for each in found] == [
        ("a.sgf", 1, False),
        ("b.sgf", None, True),
        ("two-1.usi", 1, False),
        ("two.csa", 1, False),
        ("two.csa", 2, False),
    ]
    assert found[0]["positions"][0].keys() >= {"turn", "winrate", "score", "side_to_move"}
    assert [move["move"] for move in found[0]["moves"]] == ["C3", "B4", "D2"]
    assert load_records(out / "sub" / "two-1.yomi.csa")[0].moves


@pytest.mark.parametrize("kind", [NetworkError, EvaluatorError])
def test_a_record_that_the_network_cannot_take(
    kind: type[Exception], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    class OfOneSize(FakePlayer):
        def decide(self, request: Request[GoGame]) -> Decision:
            if request.game.board.side != 5:
                raise kind(f"net.onnx: made for boards of size 5, expected size {request.game.board.side}")
            return super().decide(request)

    monkeypatch.setattr("yomi.engine.cli.review.prepare", lambda *_: None)
    monkeypatch.setattr(
        "yomi.engine.go.review.make_analysts", lambda options, count, prompt: [OfOneSize(), OfOneSize()]
    )
    folder, report = tmp_path / "games", tmp_path / "report.json"
    folder.mkdir()
    for name, text in (("a.sgf", SGF), ("b.sgf", "(;SZ[9];B[cc];W[dd])"), ("c.sgf", SGF)):
        (folder / name).write_text(text)
    assert main(["analyze", str(folder), "--json", str(report)]) == review.BROKEN
    error = f"{folder / 'b.sgf'}: net.onnx: made for boards of size 5, expected size 9"
    lines = capsys.readouterr().err.splitlines()
    assert [line for line in lines if line.startswith("yomi: error")] == [f"yomi: error: {error}"]
    assert [each.get("error") for each in json.loads(report.read_text())] == [None, error, None]
    assert sorted(path.name for path in folder.glob("*.yomi.sgf")) == ["a.yomi.sgf", "c.yomi.sgf"]


def test_a_collection(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    fake_reviewers(monkeypatch)
    path, report = tmp_path / "two.sgf", tmp_path / "report.json"
    path.write_text(SGF + "\n(;SZ[5]PB[Bob];B[cc])")
    assert main(["analyze", str(path), "--json", str(report)]) == 0
    heading = "(two-2): Bob (Black) against White, rules chinese, komi 7.5, 100 visits a position"
    shown = capsys.readouterr().out
    assert f"{path} {heading}\nBlack (Bob): 1 move" in shown
    assert shown.count("; fake") == 1
    assert sorted(each.name for each in tmp_path.glob("*.yomi.sgf")) == ["two-1.yomi.sgf", "two-2.yomi.sgf"]
    assert [each["number"] for each in json.loads(report.read_text())] == [1, 2]
    path.write_text("(;SZ[5];B[cc])\n(;SZ[5]AB[zz];B[cc])")
    assert main(["analyze", str(path)]) == 0
    assert f"yomi: {path}:2:8: AB[zz]: expected a point" in capsys.readouterr().err
    path.write_text("(;SZ[5];B[cc])\n(;SZ[5];B[zz];W[cc])")
    assert main(["analyze", str(path)]) == 0
    lines = capsys.readouterr().err.splitlines()
    fault = "move 1 of the record: B[zz]: expected a point of a 5x5 board"
    assert f"yomi: {path}:2:9: {fault}: this game is left out" in lines


def test_pages_and_their_index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_reviewers(monkeypatch)
    path = tmp_path / "two.sgf"
    path.write_text(SGF + "\n(;SZ[5]PB[Bob];B[cc])")
    assert main(["analyze", str(path), "--html", "--out", str(tmp_path / "out")]) == 0
    pages = ["two-1.yomi.html", "two-2.yomi.html"]
    assert sorted(each.name for each in tmp_path.glob("out/*.html")) == ["index.yomi.html", *pages]
    index = (tmp_path / "out" / "index.yomi.html").read_text("utf-8")
    assert [index.count(f'href="{page}"') for page in pages] == [1, 1]


def test_an_opinion_in_the_journal_keeps_its_candidates(tmp_path: Path) -> None:
    path = tmp_path / "game.sgf"
    path.write_text(SGF)
    candidate = Candidate(1, 90, 0.5, 0.55, None, (1, 3))
    opinion = Opinion(BLACK, 0.55, 0.5, 1, (1, 3), candidates=(candidate,), ownership="Az")
    journal = ReviewJournal(tmp_path, "settings")
    journal.game(path, 1).add(FULL, 0, (opinion, 7))
    journal.close()
    assert ReviewJournal(tmp_path, "settings").game(path, 1).found == {(FULL, 0): (opinion, 7)}


def test_a_report_is_replaced_where_there_is_something_to_report(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake_reviewers(monkeypatch)
    path, report = tmp_path / "two.sgf", tmp_path / "report.json"
    path.write_text(SGF + SGF)
    report.write_text("of an earlier run")
    assert main(["analyze", str(path), "--json", str(report), "--rules", "none"]) == 2
    assert report.read_text() == "of an earlier run"
    (tmp_path / "two-2.yomi.sgf").mkdir()  # where the second review would go
    assert main(["analyze", str(path), "--json", str(report)]) == 2
    assert [each["number"] for each in json.loads(report.read_text())] == [1]


def test_names_that_have_no_letters(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_reviewers(monkeypatch)
    path, report, terminal = tmp_path / os.fsdecode(b"caf\xe9.sgf"), tmp_path / "report.json", io.BytesIO()
    path.write_text(SGF.replace("Ann", "\u67ef\u6d01"), encoding="utf-8")
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(terminal, "iso8859-1", write_through=True))
    assert main(["analyze", str(path), "--json", str(report)]) == 0
    assert b"Black (\\u67ef\\u6d01): " in terminal.getvalue()
    assert b"caf\\udce9.sgf" in terminal.getvalue()
    assert [each["file"] for each in json.loads(report.read_text(encoding="utf-8"))] == [str(path)]


def test_files_are_written_before_anything_is_printed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*texts: object, file: object = None, **options: object) -> None:
        if file is not sys.stderr:
            raise BrokenPipeError

    fake_reviewers(monkeypatch)
    (tmp_path / "a.sgf").write_text(SGF)
    monkeypatch.setattr("builtins.print", fail)
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    assert main(["analyze", str(tmp_path / "a.sgf")]) == 1
    assert (tmp_path / "a.yomi.sgf").is_file()


def test_the_first_record_need_not_be_of_the_networks_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    network = write_small_network(tmp_path)
    of_one_size = prepare(network, 5, tmp_path)[0]
    assert [only_size(str(path)) for path in (network, of_one_size, tmp_path / "none")] == [0, 5, 0]
    sizes: list[int] = []

    def make(options: Options, count: int | None, prompt: bool) -> list[FakePlayer]:
        sizes.append(options.size)
        return [FakePlayer()]

    monkeypatch.setattr("yomi.engine.cli.review.prepare", lambda *_: None)
    monkeypatch.setattr("yomi.engine.go.review.make_analysts", make)
    path = tmp_path / "game.sgf"
    path.write_text("(;SZ[9];B[cc];W[dd])")
    assert main(["analyze", str(path), "--net", str(of_one_size), "--device", "cpu"]) == 0
    assert main(["analyze", str(path), "--net", str(network), "--device", "cpu"]) == 0
    assert sizes == [5, 9]


def test_a_good_record_beside_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_reviewers(monkeypatch)
    path = tmp_path / "game.txt"  # told by its content
    path.write_text(SGF)
    assert main(["analyze", str(path)]) == 0
    assert (tmp_path / "game.yomi.sgf").is_file()
    assert main(["analyze", str(path), "--no-record", "--out", str(tmp_path / "none")]) == 0
    assert not (tmp_path / "none").exists()


def test_what_cannot_be_found(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["analyze", str(tmp_path / "missing.sgf")]) == 2
    assert "no such file or folder" in capsys.readouterr().err
    assert main(["analyze", str(tmp_path)]) == 2
    assert "no records found in this folder" in capsys.readouterr().err


def test_only_broken_records(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name, text in (("a.sgf", "(;GM[2])"), ("b.csa", "nonsense"), ("c.kif", "nonsense")):
        (tmp_path / name).write_text(text)
    with pytest.MonkeyPatch.context() as patch:
        fake_reviewers(patch)
        assert main(["analyze", str(tmp_path)]) == review.BROKEN
    assert capsys.readouterr().err.count("yomi: error: ") == 3


def test_plot_without_matplotlib(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    (tmp_path / "a.sgf").write_text(SGF)
    assert main(["analyze", str(tmp_path), "--plot"]) == 2
    assert "a picture needs matplotlib, which is not installed: " in capsys.readouterr().err


def test_plot(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("matplotlib")
    fake_reviewers(monkeypatch)
    (tmp_path / "a.sgf").write_text(SGF)
    (tmp_path / "b.csa").write_text(CSA)
    assert main(["analyze", str(tmp_path), "--plot"]) == 0
    for name in ("a.yomi.png", "b.yomi.png"):
        assert (tmp_path / name).read_bytes().startswith(b"\x89PNG\r\n")


def test_thresholds_of_the_command_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    fake_reviewers(monkeypatch)
    (tmp_path / "a.sgf").write_text(SGF)
    (tmp_path / "b.kif").write_bytes(to_bytes(read_records(CSA), ".kif"))
    assert main(["review", str(tmp_path), "--thresholds", "0.1,20,30%"]) == 0
    assert "thresholds 0.1,20,30%" in capsys.readouterr().out
    comments = [move.comment for move in load_records(tmp_path / "b.yomi.kif")[0].moves]
    assert any("yomi: 悪手; " in comment for comment in comments)
    assert "reviewed by fake, thresholds 0.1,20,30%" in (tmp_path / "a.yomi.sgf").read_text()
    assert main(["review", str(tmp_path), "--thresholds", "1,2,3points"]) == 2
    assert f"--thresholds 1,2,3points: {tmp_path}/b.kif is shogi, expected % or cp" in capsys.readouterr().err
    assert main(["review", str(tmp_path), "--thresholds", "3,2,1%"]) == 2
    assert "'3,2,1%' found, expected three rising numbers and a unit" in capsys.readouterr().err


# -- what the user sees --------------------------------------------------------------------------------------------


def test_the_first_line_names_the_game_and_the_last_one_the_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    fake_reviewers(monkeypatch)
    game, other = tmp_path / "game.sgf", tmp_path / "game.csa"
    game.write_text(SGF)
    other.write_text(CSA)
    assert main(["analyze", str(game), str(other), "--visits", "16"]) == 0
    lines = capsys.readouterr().out.splitlines()
    players = "Ann (Black) against Bob (White)"
    assert lines[0] == f"{game}: {players}, rules chinese, komi 6.5, 16 visits a position"
    assert f"{other}: {players}, 16 visits a position" in lines
    written = [line for line in lines if line.startswith("written to ")]
    assert written == [f"written to {tmp_path / name}" for name in ("game.yomi.sgf", "game.yomi.csa")]


def test_the_komi_of_the_command_line_goes_before_the_record(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    fake_reviewers(monkeypatch)
    path, report = tmp_path / "game.sgf", tmp_path / "report.json"
    path.write_text(SGF)
    assert main(["analyze", str(path), "--komi", "0.5", "--json", str(report)]) == 0
    assert "rules chinese, komi 0.5, 100 visits" in capsys.readouterr().out
    assert json.loads(report.read_text())[0]["komi"] == 0.5
    text = (tmp_path / "game.yomi.sgf").read_text()
    assert "KM[6.5]" in text
    assert f"{MARK}reviewed with komi 0.5" in text


@pytest.mark.parametrize("suffix", [".sgf", ".csa"])
def test_an_interrupted_review_continues(
    suffix: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    searched: list[int] = []
    interrupt_at = 5

    class Interrupted(FakePlayer):
        def decide(self, request: Request[GoGame]) -> Decision:
            if len(searched) == interrupt_at:
                raise KeyboardInterrupt
            searched.append(len(request.game.moves))
            return super().decide(request)

    class InterruptedShogi(ShogiPlayerWithSearch):
        def decide(self, request: Any) -> Any:
            if len(searched) == interrupt_at:
                raise KeyboardInterrupt
            searched.append(request.game.ply)
            return super().decide(request)

    monkeypatch.setattr("yomi.engine.cli.review.prepare", lambda *_: None)
    for reviewer in (GoReviewer, ShogiReviewer):  # the search that the time is estimated from is none of these
        monkeypatch.setattr(reviewer, "visits_per_second", lambda *_: 100.0)
    monkeypatch.setattr("yomi.engine.go.review.make_analysts", lambda options, count, prompt: [Interrupted()])
    monkeypatch.setattr("yomi.engine.shogi.review.ShogiPlayer", InterruptedShogi)
    for name in ("a", "b"):
        (tmp_path / f"{name}{suffix}").write_text((SGF if suffix == ".sgf" else CSA).replace("Ann", name))
    command = ["analyze", str(tmp_path / f"a{suffix}"), str(tmp_path / f"b{suffix}"), "--visits", "16"]
    assert main(command) == 130
    printed = capsys.readouterr()
    assert "interrupted: the same command continues" in printed.err
    (journal,) = tmp_path.glob(".yomi-analyze-*.jsonl")
    journal.write_text(journal.read_text() + '{"game": "cut')  # as a crash leaves it
    interrupt_at = -1
    report = tmp_path / "report.json"
    assert main([*command, "--json", str(report)]) == 0
    assert len(searched) == 8, "no position is searched twice"
    assert [len(each["positions"]) for each in json.loads(report.read_text())] == [4, 4]
    assert not list(tmp_path.glob(".yomi-analyze-*"))
    assert main([*command[:-1], "32"]) == 0
    assert len(searched) == 16, "other settings begin again"


def test_a_review_in_a_folder_that_cannot_be_written_is_not_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    fake_reviewers(monkeypatch)
    path = tmp_path / "game.sgf"
    path.write_text(SGF)

    normal = Path.open

    def refuse(self: Path, mode: str = "r", **others: Any) -> Any:
        if mode.startswith("a"):
            raise PermissionError(13, "Permission denied")
        return normal(self, mode, **others)

    monkeypatch.setattr(Path, "open", refuse)
    assert main(["analyze", str(path), "--no-record"]) == 0
    assert capsys.readouterr().err.count("an interrupted review will start again") == 1


def test_a_mate_counts_little_in_a_mean() -> None:
    def mean(before: float, after: float) -> float:
        moves = [reviewed(opinion(BLACK, 0.9, before, best=2), opinion(BLACK, 0.1, after))]
        return float(Review("shogi", SHOGI.score, "fake", moves, []).summary(BLACK)["score_loss"])

    assert mean(29_997.0, 500.0) == 1500.0
    assert mean(500.0, -29_990.0) == 2000.0
    assert mean(15_000.0, 4_000.0) == 0.0
    assert mean(300.0, 100.0) == 200.0


def test_a_mirror_image_of_the_best_move_loses_nothing() -> None:
    game = GoGame(square(9))
    move, best = (square(9).parse_vertex(text) for text in ("C3", "G7"))
    assert are_mirrored(game, move, best)
    assert not are_mirrored(game, move, square(9).parse_vertex("C4"))
    game.play(BLACK, square(9).parse_vertex("E5"))
    game.play(WHITE, square(9).parse_vertex("C5"))
    assert not are_mirrored(game, move, best)
    assert are_mirrored(game, move, square(9).parse_vertex("C7"))
    mirrored = ReviewedMove(
        1, BLACK, move, "C3", "G7", ("G7",), Opinion(BLACK, 0.6, best=best), Opinion(WHITE, 0.5), is_mirrored=True
    )
    assert (mirrored.is_best, mirrored.winrate_loss) == (True, 0.0)
    assert Review("go", GO.score, "fake", [mirrored], []).worst(BLACK, 5) == []


def test_losses_that_are_shown_as_none_are_not_listed() -> None:
    moves = [reviewed(opinion(BLACK, 0.5, best=2), opinion(WHITE, 0.5 + loss)) for loss in (0.0004, 0.0006)]
    assert Review("go", GO.score, "fake", moves, []).worst(BLACK, 5) == moves[1:]


def test_names_cannot_control_the_terminal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    fake_reviewers(monkeypatch)
    escape = "\x1b[31mred\x1b[2J\x9b0m\u202e"
    path = tmp_path / f"{escape}.sgf"
    path.write_text(SGF.replace("Ann", escape).replace("bb]", f"bb]BAD[{escape}"))
    (tmp_path / "bad\x1b.sgf").write_text("(;SZ[99])")
    (tmp_path / "bad\x07.csa").write_text(CSA.replace("Bob", f"Bob{escape}"))
    assert main(["analyze", str(tmp_path)]) == review.BROKEN
    printed = capsys.readouterr()
    for text in (printed.out, printed.err):
        assert "\ufffd" in text
        assert not set(text) & set("\x1b\x9b\x07\u202e")
    assert main(["analyze", str(tmp_path / "none\x1b[2J")]) == 2
    assert "\x1b" not in capsys.readouterr().err


def test_records_of_other_servers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_reviewers(monkeypatch)
    (tmp_path / "a.gib").write_text(
        "\\HS\n\\[GAMECONDITION=Even : Black 6.5 Dum\\]\n\\HE\n\\GS\nSTO 0 2 1 15 3\n\\GE\n"
    )
    (tmp_path / "b.ngf").write_text("Rated\n9\nwhite 7D\nblack 5D\n\n0\n0\n6\n\n5\nWhite wins\n1\nPMABBDDDD\n")
    assert main(["analyze", str(tmp_path)]) == 0
    assert sorted(path.name for path in tmp_path.glob("*.yomi.sgf")) == ["a.yomi.sgf", "b.yomi.sgf"]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs pipes of Unix")
def test_files_that_never_end_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    fake_reviewers(monkeypatch)
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    for path, kind in (("/dev/zero", "a device"), (pipe, "a pipe")):
        assert main(["analyze", str(path)]) == review.BROKEN
        assert f"cannot read {path}: {kind}, expected a file" in capsys.readouterr().err

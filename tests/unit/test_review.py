"""Reviews: losses, classes of mistakes, and what the user sees."""

from __future__ import annotations

import dataclasses
import json
import os
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.player import FakePlayer
from tests.unit.reviews import CSA, SGF, ShogiPlayerWithSearch, fake_reviewers, opinion, reviewed
from yomi.engine.cli import review
from yomi.engine.cli.games import GO, SHOGI
from yomi.engine.cli.main import main
from yomi.engine.color import BLACK, WHITE
from yomi.engine.go.game import GoGame
from yomi.engine.go.points import square
from yomi.engine.go.review import GoReviewer, are_mirrored
from yomi.engine.mistakes import Thresholds, ThresholdsError
from yomi.engine.players.request import Decision, Request
from yomi.engine.review import (
    MARK,
    Opinion,
    Review,
    ReviewedMove,
)
from yomi.engine.review_text import table
from yomi.engine.shogi.review import ShogiReviewer

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

"""Reviews: losses, classes of mistakes, and what the user sees."""

import dataclasses
import json
import os
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.player import FakePlayer
from tests.looping import looped
from tests.unit.reviews import CSA, SGF, ShogiPlayerWithSearch, fake_reviewers, opinion, reviewed
from yomi.engine.cli import review
from yomi.engine.cli.main import main
from yomi.engine.color import BLACK, WHITE
from yomi.engine.game import Game
from yomi.engine.go.game import GoGame
from yomi.engine.go.points import square
from yomi.engine.go.review import GoReviewer, are_mirrored
from yomi.engine.mistakes import Thresholds, ThresholdsError
from yomi.engine.players.request import Decision, Request
from yomi.engine.registry import GO, SHOGI
from yomi.engine.reviews.review import (
    MARK,
    Candidate,
    Opinion,
    Review,
    ReviewedMove,
    carried_back,
    reviewed_moves,
    with_answers,
    with_noise,
)
from yomi.engine.reviews.text import table
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


def test_a_loss_needs_both_searches_or_exceeds_the_noise() -> None:
    def compared(after: float, played: float, noise: float) -> ReviewedMove:
        before = Opinion(
            BLACK, 0.6, 100.0, best=2, played_winrate=played, played_score=10.0, noise=noise, score_noise=90.0
        )
        return reviewed(before, Opinion(WHITE, 1.0 - after, 50.0))

    assert compared(0.5, 0.52, 0.1).winrate_loss == pytest.approx(0.08), "both searches see it"
    assert compared(0.5, 0.58, 0.1).winrate_loss == pytest.approx(0.02), "one search alone, within the noise"
    assert compared(0.58, 0.2, 0.1).winrate_loss == pytest.approx(0.3), "beyond the noise"
    assert compared(0.7, 0.58, 0.1).winrate_loss == 0.0
    assert compared(0.5, 0.58, 0.1).winrate_after == pytest.approx(0.58)
    assert compared(0.7, 0.58, 0.1).winrate_after == pytest.approx(0.7)
    assert compared(0.58, 0.2, 0.1).winrate_after == pytest.approx(0.3), "fits the loss"
    rows = table(Review("shogi", SHOGI.score, "fake", [compared(0.58, 0.2, 0.1)], []), 1).splitlines()
    assert rows[2].split()[2:] == ["blunder", "30.0%", "90", "60.0%", "30.0%", "b", "c"]
    assert compared(0.5, 0.58, 0.1).score_loss == 90.0
    assert compared(0.5, 0.58, 0.1).limited_loss(60.0) == 50.0


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


@looped("text", ["", "5,10,20", "5,10%", "10,5,20%", "0,1,2%", "1,1,2points", "-1,2,3%", "1,2,3stones"])
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
    assert review.worst(BLACK, 5) == [moves[1], moves[2], moves[0]]
    assert review.to_json()["moves"][1]["class"] == "mistake"
    assert review.to_json()["black"]["classes"] == {"inaccuracy": 1, "mistake": 1, "blunder": 0}
    assert "thresholds 2,5,10points" in review.heading()


def won_game(*losses: float) -> list[ReviewedMove]:
    """Return moves of a won game, which lose points and nearly no winrate. A loss of 0 is the best move."""
    return [
        dataclasses.replace(
            reviewed(opinion(BLACK, 0.99, 60.0, best=2 if loss else 1), opinion(WHITE, 0.015, loss - 60.0)),
            number=number,
        )
        for number, loss in enumerate(losses, 1)
    ]


def test_points_make_mistakes_of_won_games() -> None:
    moves = won_game(1.4, 15.0, 3.0, 1.5, 16.0, 6.0)
    review = Review("go", GO.score, "fake", moves, [])
    kinds = ["", "blunder", "mistake", "inaccuracy", "blunder", "blunder"]
    assert [review.class_of(move) for move in moves] == kinds
    assert [move.number for move in review.worst(BLACK, 5)] == [5, 2, 6, 3, 4]
    assert [round(review.accuracy_of(move)) for move in moves] == [81, 9, 64, 80, 7, 40]
    assert review.to_json()["thresholds"] == "1.5,3,6points or 5,10,20%"
    shown = table(review, 1)
    assert "mean loss 7.15 points, 0.50%, accuracy 47%, 3 blunders, 1 mistake, 1 inaccuracy" in shown
    assert "blunder      16.0     0.5%  +60.0  99.0%  +44.0  98.5%  b c" in shown
    by_winrate = dataclasses.replace(review, thresholds=Thresholds.parse("5,10,20%"))
    assert not any(map(by_winrate.class_of, moves))


def test_winrate_makes_mistakes_of_close_games() -> None:
    move = reviewed(opinion(BLACK, 0.9, 0.5, best=2), opinion(WHITE, 0.4, 0.3))
    review = Review("go", GO.score, "fake", [move, *won_game(7.0)], [])
    assert review.class_of(move) == "blunder"
    assert review.accuracy_of(move) == pytest.approx(24.8, abs=0.1)


def test_no_move_loses_more_than_the_board_has() -> None:
    score = dataclasses.replace(GO.score, mean_limit=81.0)
    move = reviewed(opinion(WHITE, 0.01, -80.0, best=2), opinion(BLACK, 0.99, 90.0))
    assert Review("go", score, "fake", [move], []).class_of(move) == ""


def test_a_loss_within_the_noise_of_the_searches_is_no_mistake() -> None:
    quiet = won_game(*[2.0, 15.0], *[0.0] * 9)
    assert with_noise(quiet, 400.0) == quiet, "equal scores were carried back"
    swings = [
        dataclasses.replace(each, after=opinion(WHITE, 0.01, (-1) ** each.number * 1.2 - 60.0)) for each in quiet[2:]
    ]
    assert with_noise([*quiet[:2], *swings[1:]], 400.0)[0].noise == 0.0, "too few moves"
    calm = [dataclasses.replace(each, number=each.number + 50) for each in [*won_game(2.0), *swings]]
    calm[1:] = [dataclasses.replace(each, after=opinion(WHITE, 0.01, -59.9)) for each in calm[1:]]
    moves = with_noise([*quiet[:2], *swings, *calm], 400.0)
    assert [moves[place].noise for place in (0, 1, -1)] == pytest.approx([1.2, 1.2, 0.1])
    review = Review("go", GO.score, "fake", moves, [])
    assert [review.class_of(moves[place]) for place in (0, 1, 2, 11)] == ["", "blunder", "", "inaccuracy"]
    assert not review.is_unclear(moves[2])


def test_a_value_that_the_best_answer_takes_back_is_no_mistake() -> None:
    def searched(color: int, winrate: float, best: int, visits: int = 100) -> Opinion:
        candidates = (Candidate(best, 40, 0.2, winrate, 0.0, (best,)),)
        return dataclasses.replace(opinion(color, winrate, best=best), visits=visits, candidates=candidates)

    def losses(answer: int, later: float, visits: int = 100) -> list[float]:
        found = [searched(WHITE, 0.99, 1), searched(BLACK, 0.24, 3), searched(WHITE, later, 5, visits)]
        moves = with_answers(reviewed_moves([2, answer], found, str, 12))
        return [pytest.approx(move.winrate_loss) for move in (moves[0], moves[1])]

    assert losses(3, 0.98) == [0.01, 0.0]
    assert losses(3, 0.80) == [0.19, 0.0]
    assert losses(3, 0.70) == [0.23, 0.0], "the search after the move saw less of a loss"
    assert losses(4, 0.98) == [0.23, 0.22], "another answer"
    assert losses(3, 0.98, visits=39) == [0.23, 0.0], "the later search saw less"
    found = [searched(WHITE, 0.99, 1), searched(BLACK, 0.24, 3), searched(WHITE, 0.98, 5)]
    assert with_answers(reviewed_moves([2, 3], found, str, 12))[0].winrate_after == pytest.approx(0.98)


# -- forced moves --------------------------------------------------------------------------------------------------


def searched(
    color: int, winrate: float, score: float, prior: float = 0.4, share: float = 0.6, visits: int = 100
) -> Opinion:
    """Return an opinion whose best move 1 has a prior and a share of the visits."""
    first = Candidate(1, round(share * visits), prior, winrate, score, (1, 5))
    other = Candidate(7, visits - first.visits, 0.05, winrate - 0.3, score - 9.0, (7,))
    return Opinion(color, winrate, score, 1, (1, 5), visits=visits, candidates=(first, other))


@pytest.mark.parametrize("forced", [{"prior": 0.97}, {"share": 0.95}])
def test_a_value_that_jumps_between_forced_moves_is_no_mistake(forced: dict[str, float]) -> None:
    # Black's atari (move 4) looks bad until White has answered it.
    found = [searched(BLACK, 0.7, 5.0), searched(WHITE, 0.6, 3.0, **forced), searched(BLACK, 0.7, 5.1)]
    opinions = carried_back(found, [4, 1])
    assert [each.score_for(BLACK) for each in opinions] == [5.0, 5.1, 5.1]
    assert [each.winrate_for(BLACK) for each in opinions] == pytest.approx([0.7, 0.7, 0.7])
    assert opinions[1].candidates == found[1].candidates
    moves = reviewed_moves([4, 1], opinions, str, 12)
    assert [round(move.score_loss or 0.0, 6) for move in moves] == [0.0, 0.0]


def test_a_later_search_of_a_forced_line_finds_the_mistake_before_it() -> None:
    found = [
        searched(BLACK, 0.7, 5.0),
        *(searched(color, 0.5 + sign * 0.2, sign * 5.0, prior=0.98) for color, sign in ((WHITE, -1), (BLACK, 1))),
        searched(WHITE, 0.6, 4.0),
    ]
    opinions = carried_back(found, [4, 1, 1])
    assert [each.score_for(BLACK) for each in opinions] == [5.0, -4.0, -4.0, -4.0]


@pytest.mark.parametrize(
    ("before", "after", "move"),
    [
        (searched(WHITE, 0.6, 3.0), searched(BLACK, 0.7, 5.0), 1),  # other moves were possible
        (searched(WHITE, 0.6, 3.0, prior=0.97), searched(BLACK, 0.7, 5.0), 7),  # another move was played
        (searched(WHITE, 0.6, 3.0, prior=0.97), searched(BLACK, 0.7, 5.0, visits=8), 1),  # a shorter search
        (searched(WHITE, 0.6, 3.0, prior=0.97), Opinion(BLACK, 1.0, 5.0), 1),  # the end of the game
        (searched(WHITE, 0.6, 3.0, prior=0.0, share=1.0), searched(BLACK, 0.7, 5.0), 1),  # one line of alpha-beta
        (searched(WHITE, 0.6, 3.0, share=1.0, visits=4), searched(BLACK, 0.7, 5.0), 1),  # few visits show nothing
    ],
)
def test_other_values_are_kept(before: Opinion, after: Opinion, move: int) -> None:
    assert carried_back([before, after], [move]) == [before, after]


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

    monkeypatch.setattr(Game, "prepare", lambda *_: None)
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

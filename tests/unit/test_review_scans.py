"""Reviews: the order of searches, the time that they take, and problems made of mistakes."""

import dataclasses
import io
import re
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from tests.fakes.player import FakePlayer
from tests.looping import looped
from tests.unit.reviews import CSA, SGF, Ticks, fake_reviewers, judged_game, make_folder, shogi_review
from yomi import language
from yomi.engine.cli.bars import Bar
from yomi.engine.cli.main import main
from yomi.engine.cli.review import ask_problems, judge
from yomi.engine.color import BLACK, WHITE
from yomi.engine.default_network import limit_for_review
from yomi.engine.go.game import GoGame
from yomi.engine.go.review import GoReviewer
from yomi.engine.mistakes import Thresholds
from yomi.engine.options import Options
from yomi.engine.players.request import Decision, Request
from yomi.engine.registry import GAMES, SHOGI
from yomi.engine.reviews.review import ReviewError
from yomi.engine.reviews.scans import (
    FIRST,
    FULL,
    SHORT,
    KnownPositions,
    Plan,
    Progress,
    count_positions,
    estimate,
    first_visits,
    full_time,
    parse_first_pass,
    speed_of,
)
from yomi.engine.shogi.players.player import ShogiPlayer
from yomi.engine.shogi.records.files import read_records, to_bytes
from yomi.engine.shogi.review import ShogiReviewer

# -- a first pass, then longer searches ----------------------------------------------------------------------------


class Scans(Ticks):
    """Records the scans of a review, and the files after the first pass."""

    def __init__(self) -> None:
        self.scans: list[tuple[int, int]] = []
        self.files: dict[str, bytes] = {}

    def begin(self, scan: int, positions: int, known: int) -> None:
        self.scans.append((scan, positions))

    def first_pass(self, annotated: Any) -> None:
        self.files = annotated.files()


class Swinging(FakePlayer):
    """Takes Black for the winner after the sixth move; with 40 visits and more it knows that after the fourth."""

    def decide(self, request: Request[GoGame]) -> Decision:
        found = super().decide(request)
        visits, played = (request.options or self.options).visits or 0, len(request.game.moves)
        is_won = played >= (4 if visits >= 40 else 6)
        winrate = 0.9 if is_won else 0.5
        color = request.game.side_to_move
        moves = tuple(
            dataclasses.replace(move, winrate=winrate if color == BLACK else 1 - winrate, score_lead=0.0)
            for move in found.report.moves
        )
        return dataclasses.replace(found, report=dataclasses.replace(found.report, moves=moves, visits=visits))


@pytest.mark.parametrize("visits", [120, 60])
def test_only_unclear_positions_are_searched_again(visits: int, tmp_path: Path) -> None:
    path = tmp_path / "game.sgf"
    points = ["aa", "ba", "ca", "da", "ea", "ab", "bb", "cb", "db", "eb"]
    path.write_text("(;SZ[5]" + "".join(f";{'BW'[n % 2]}[{point}]" for n, point in enumerate(points)) + ")")
    player = Swinging(Options(size=5, visits=visits))
    reviewer = GoReviewer([player], player.options)  # type: ignore[list-item]
    (record,) = reviewer.read(str(path))
    scans, known = Scans(), KnownPositions()
    review = reviewer.review(record, scans, known, Plan(first_visits=10))
    # With 10 visits the sixth move looks like a mistake. More visits show that it was the fourth.
    has_short = visits == 120
    assert scans.scans[:2] == [(FIRST, 11), (SHORT if has_short else FULL, 2)]
    assert {index for scan, index in known.found if scan == FULL} == {3, 4, 5} | ({6} if not has_short else set())
    last = 40 if has_short else visits
    assert [opinion.visits for opinion in review.opinions] == [10] * 3 + [visits] * 3 + [last] + [10] * 4
    assert [move.number for move in review.moves if review.class_of(move)] == [4]
    assert [f"{opinion.winrate_for(BLACK):.1f}" for opinion in review.opinions] == ["0.5"] * 4 + ["0.9"] * 7
    assert review.limit == f"10 visits to {visits} visits"
    assert b"yomi: " in scans.files[".sgf"]
    searched = len(player.requests)
    reviewer.review(record, Scans(), known, Plan(first_visits=10))
    assert len(player.requests) == searched, "a review that was finished searches nothing"


def test_a_lead_that_jumps_between_an_atari_and_its_answer_is_no_mistake(tmp_path: Path) -> None:
    path = tmp_path / "game.sgf"
    path.write_text("(;SZ[5];B[aa];W[ba];B[ca])")
    leads = (4.0, -2.0, 4.2, 4.2)  # Black's, before each move and after the last one

    class Jumping(FakePlayer):
        def decide(self, request: Request[GoGame]) -> Decision:
            found, game = super().decide(request), request.game
            color, turn = game.side_to_move, len(game.moves)
            lead = leads[turn] if color == BLACK else -leads[turn]
            best, *others = found.report.moves
            if turn == 1:  # White has one sane answer, which the game has
                best = dataclasses.replace(best, move=game.board.parse_vertex("B5"), prior=0.97)
            moves = (dataclasses.replace(best, winrate=0.5 + 0.1 * lead, score_lead=lead), *others)
            return dataclasses.replace(found, report=dataclasses.replace(found.report, moves=moves))

    player = Jumping(Options(size=5, visits=50))
    reviewer = GoReviewer([player], player.options)  # type: ignore[list-item]
    review = reviewer.review(reviewer.read(str(path))[0], Progress())
    assert [opinion.score_for(BLACK) for opinion in review.opinions] == [4.0, 4.2, 4.2, 4.2]
    assert [review.class_of(move) for move in review.moves] == ["", "", ""]


def test_seconds_are_divided_between_the_scans(tmp_path: Path) -> None:
    path = tmp_path / "game.sgf"
    path.write_text(SGF)
    player = FakePlayer()
    options = Options(size=5).with_values({"visits": None, "seconds": 3.0})
    reviewer = GoReviewer([player], options)  # type: ignore[list-item]
    (record,) = reviewer.read(str(path))
    reviewer.review(record, Progress(), None, Plan(Thresholds.parse("1,2,3points"), first_visits=4))
    given = [(request.options.visits, request.options.seconds) for request in player.requests if request.options]
    assert given[0] == (4, None)
    assert set(given[4:]) == {(None, 1.0), (None, 2.0)}


@pytest.mark.parametrize(
    ("values", "speed", "visits"),
    [
        ({"visits": 100}, 43.0, 6),  # 250 moves on two cores
        ({"visits": 100}, 8.0, 2),  # the least
        ({"visits": 100}, 200.0, 25),  # a quarter of the limit
        ({"visits": 100}, 1000.0, 0),  # everything fits
        ({"visits": 7}, 1.0, 0),  # hardly any visits
        ({"seconds": 1.0}, 43.0, 6),
        ({"seconds": 0.1}, 43.0, 0),
    ],
)
def test_the_first_pass_takes_less_than_a_minute(values: dict[str, Any], speed: float, visits: int) -> None:
    options = Options().with_values(values)
    found = full_time(options, speed, 251)
    assert found is not None
    assert first_visits(options, found[0], speed, 251) == visits
    assert visits <= 2 or visits * 251 / speed <= 40


@pytest.mark.parametrize("suffix", [".sgf", ".kif"])
def test_an_interrupted_review_keeps_its_first_pass(
    suffix: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    fake_reviewers(monkeypatch)
    # Either side takes itself for the leader, so that all positions are unclear.
    monkeypatch.setattr("yomi.engine.go.review.make_analysts", lambda options, count, prompt: [FakePlayer()])
    path = tmp_path / f"game{suffix}"
    path.write_bytes(SGF.encode() if suffix == ".sgf" else to_bytes(read_records(CSA), ".kif"))
    searched: list[int] = []

    def evaluate(original: Any) -> Any:
        def counted(*args: Any, **named: Any) -> Any:
            if len(searched) == 5:
                raise KeyboardInterrupt
            searched.append(1)
            return original(*args, **named)

        return counted

    kind = GoReviewer if suffix == ".sgf" else ShogiReviewer
    original = kind._evaluate
    monkeypatch.setattr(kind, "_evaluate", evaluate(original))
    command = ["review", str(path), "--quick", "4", "--thresholds", f"1,2,3{'points' if kind is GoReviewer else '%'}"]
    assert main(command) == 130
    shown = capsys.readouterr().err
    assert f"4 positions, first 4 {'visits' if kind is GoReviewer else 'nodes'} each: about " in shown
    assert re.search("game: Black's winrate after the first pass: [▁-█]{4}\n", shown)
    annotated = tmp_path / f"game.yomi{suffix}"
    assert annotated.is_file()
    monkeypatch.setattr(kind, "_evaluate", original)
    assert main(command) == 0
    assert "first pass: 100%" in capsys.readouterr().err
    (found,) = sorted(tmp_path.glob("game*yomi*"))
    assert found == annotated, "the first results are replaced"


def test_a_first_pass_is_set_in_visits_or_seconds() -> None:
    assert [parse_first_pass(text) for text in ("8", "0", "20s")] == [8, 0, 20.0]
    assert [type(parse_first_pass(text)) for text in ("8", "20s")] == [int, float]
    assert first_visits(Options(visits=100), 400.0, 43.0, 251, 20.0) == 3
    for text in ("", "0s", "-1", "8v", "1.5"):
        with pytest.raises(ValueError, match=f"'{text}' found, expected visits of each position"):
            parse_first_pass(text)


def test_the_clock_decides_nothing_with_a_seed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    fake_reviewers(monkeypatch)
    monkeypatch.setattr(GoReviewer, "visits_per_second", lambda *_: 1.0)
    path = tmp_path / "game.sgf"
    path.write_text(SGF)
    assert main(["review", str(path), "--seed", "1"]) == 0
    assert "first pass" not in capsys.readouterr().err
    assert main(["review", str(path)]) == 0
    assert "game, first pass: 100%" in capsys.readouterr().err


def test_a_first_pass_needs_fewer_visits(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "game.sgf"
    path.write_text(SGF)
    with pytest.MonkeyPatch.context() as patch:
        fake_reviewers(patch)
        for visits in ("1", "100"):
            assert main(["review", str(path), "--quick", visits]) == 2
            assert f"--quick {visits}: expected 0, or 2 and more, fewer than " in capsys.readouterr().err


# -- how long it will take -----------------------------------------------------------------------------------------


class Timed:
    """A reviewer of a known speed; each file has one game of ten positions."""

    def __init__(self, speed: float) -> None:
        self.speed = speed

    def read(self, path: str) -> list[SimpleNamespace]:
        if "broken" in path:
            raise ReviewError("broken")
        return [SimpleNamespace(positions=10)]

    def visits_per_second(self, record: str) -> float:
        return self.speed


@looped(
    ("game", "values", "speed", "line"),
    [
        (
            "go",
            {"visits": 100},
            100.0,
            "600 positions, 100 visits each: about 6 min (measured: 100 visits/s); --net fast",
        ),
        ("go", {"visits": 100}, 1.0, "about 10 h (measured: 1 visits/s); --net fast is faster, but weaker"),
        ("go", {"visits": 100}, 9000.0, "about 4 s (measured: 9,000 visits/s)"),
        (
            "go",
            {"visits": 100, "net": "fast"},
            100.0,
            "about 6 min (measured: 100 visits/s); fewer --visits are faster",
        ),
        ("go", {"visits": 100, "evaluator": "rollouts"}, 100.0, "visits/s); fewer --visits are faster"),
        ("shogi", {"visits": 100}, 100.0, "about 6 min (measured: 100 visits/s); fewer --visits are faster"),
        ("go", {"seconds": 2.0}, 1.0, "600 positions, 2.0 seconds each: about 20 min (limit); --net fast"),
        ("go", {"seconds": 2.0, "visits": 10}, 1000.0, "about 4 s (measured: 1,000 visits/s)"),
        ("go", {"playouts": 10}, 100.0, "600 positions, 10 playouts each: about 1 min (measured"),
    ],
)
def test_the_time_of_a_review_is_told(game: str, values: dict[str, Any], speed: float, line: str) -> None:
    options = Options.for_game(game).with_values(values)
    found = estimate(GAMES[game], options, speed, 600)
    assert found is not None
    assert line in found
    assert "\n" not in found


def test_a_speed_comes_from_searches_that_are_long_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    now, searched = [0.0], list[int]()

    def search(options: Options) -> int:
        assert options.visits is not None
        searched.append(options.visits)
        now[0] += (4.1 if len(searched) == 1 else 0.01) + options.visits / 10_000  # the first search is slow
        return options.visits

    monkeypatch.setattr("yomi.engine.reviews.scans.time.monotonic", lambda: now[0])
    assert speed_of(search, Options(visits=10**6)) == pytest.approx(2048 / 0.2148)  # kernels were loaded for 4.1 s
    assert searched == [8, 2, 8, 32, 128, 512, 2048]
    searched[:] = [0]
    assert speed_of(search, Options(visits=10**6)) == pytest.approx(2048 / 0.2148)
    assert searched == [0, 8, 32, 128, 512, 2048]
    searched[:] = [0]
    assert speed_of(search, Options(visits=100)) == pytest.approx(100 / 0.02)
    searched[:] = [0]
    assert speed_of(search, Options(visits=100, seed=1)) == pytest.approx(32 / 0.0132)
    assert searched == [0, 8, 32]
    searched.clear()
    assert speed_of(search, Options(visits=100, seed=1)) == pytest.approx(32 / 0.0132)  # 4.1 s change nothing
    assert searched == [8, 32]


def test_a_slow_network_is_measured_with_few_visits(monkeypatch: pytest.MonkeyPatch) -> None:
    now, searched = [0.0], list[int]()

    def search(options: Options) -> int:
        searched.append(options.visits or 0)
        now[0] += 1.0 + 0.5 * searched[-1]
        return searched[-1]

    monkeypatch.setattr("yomi.engine.reviews.scans.time.monotonic", lambda: now[0])
    assert speed_of(search, Options(visits=100)) == 1.0
    assert searched == [8, 2]


@pytest.mark.slow
def test_searches_that_end_at_once_tell_no_speed(tmp_path: Path) -> None:
    assert speed_of(lambda options: 9, Options(visits=5000), first=5000) == 0.0
    options = Options.for_game("shogi").with_values({"seconds": 5.0, "workers": 1})
    assert "(limit)" in (estimate(SHOGI, options, 0.0, 600, 180, "nodes") or "")
    path = tmp_path / "forced.usi"
    path.write_text("sfen 7nk/9/9/9/9/9/9/9/4K4 b 2R2b4g4s3n4l18p 1 moves R*1b 1a1b\n")
    player = ShogiPlayer(options)
    try:
        reviewer = ShogiReviewer(player)
        (record,) = reviewer.read(str(path))
        trial = options.with_values({"visits": 1000, "seconds": None})
        assert reviewer.try_search(record, trial) >= 900  # beside the middle, where one move is legal
        path.write_text("sfen 4k4/9/4P4/9/9/9/9/9/4K4 b G2r2b3g4s4n4l17p 1 moves G*5b\n")
        (record,) = reviewer.read(str(path))
        assert reviewer.try_search(record, trial) == 0  # a mate, and mated
    finally:
        player.close()


def test_a_bar_tells_the_time_left_by_the_positions_of_its_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first position is slow; the positions that an interrupted review has left tell nothing."""
    now = [0.0]
    monkeypatch.setattr("tqdm.std.time", lambda: now[0])
    bar, shown = Bar(total=100, initial=40, file=io.StringIO(), mininterval=0.0), list[str]()
    for seconds, positions in ((0, 0), (10, 1), (12, 4), (14, 5), (16, 2), (18, 2), (20, 1), (22, 6), (24, 6), (25, 0)):
        now[0] = float(seconds)
        bar.update(positions)
        shown.append(str(bar).rsplit("<")[1].split(",")[0])
    # Kept, first, and 2 s; from here the speed since the first: 9 in 4 s, 11 in 6 s, 13 in 8 s, 14 in 10 s, ...
    assert shown == ["?", "?", "?", "00:22", "00:26", "?", "?", "00:23", "00:17", "00:16"]
    bar.close()


def test_alpha_beta_counts_nodes() -> None:
    options = Options.for_game("shogi")
    limit_for_review(options, "shogi", 500)
    found = estimate(SHOGI, options, 500.0, 600, 180, "nodes")
    assert found is not None
    assert "first 180 nodes each: about " in found
    assert "500 nodes each: at most about 6 min (measured: 500 nodes/s)" in found
    with language.within(language.JAPANESE):
        found = estimate(SHOGI, options, 500.0, 600, 180, "nodes") or ""
    assert "まず各 180 ノードで約" in found
    assert "各 500 ノードで長くて約6分（実測：毎秒 500 ノード）" in found


def test_a_depth_tells_no_time() -> None:
    options = Options.for_game("shogi").with_values({"depth": 5})
    assert estimate(SHOGI, options, 1.0, 600) is None


def test_positions_of_many_files_are_counted_from_some(tmp_path: Path) -> None:
    paths = [tmp_path / f"{number}.sgf" for number in range(150)]
    for path in paths:
        path.touch()
    assert count_positions(cast(Any, Timed(1.0)), paths) == 1500
    (tmp_path / "broken.sgf").touch()
    assert count_positions(cast(Any, Timed(1.0)), [tmp_path / "broken.sgf", tmp_path / "missing.sgf", *paths[:3]]) == 30
    assert count_positions(cast(Any, Timed(1.0)), []) == 0


def test_a_review_begins_with_its_time_and_searches_as_without(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    fake_reviewers(monkeypatch)
    make_folder(tmp_path / "games")
    assert main(["analyze", str(tmp_path / "games")]) == 1
    lines = [line for line in capsys.readouterr().err.splitlines() if " each: about " in line]
    # Of Go by 100 visits, and of shogi by nodes of alpha-beta.
    assert [line.split()[1:4:2] for line in lines] == [["4", "100"], ["11", "100,000"]]


def test_the_time_of_the_other_records_follows_those_of_this_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    fake_reviewers(monkeypatch)
    for name in "abcde":
        (tmp_path / f"{name}.sgf").write_text(SGF)
    ends = iter((100.0, 110.0, 160.0, 310.0, 311.0))  # the first loads kernels, the others become slower
    monkeypatch.setattr("yomi.engine.cli.review.time", SimpleNamespace(monotonic=lambda: next(ends)))
    assert main(["review", str(tmp_path)]) == 0
    lines = [line for line in capsys.readouterr().err.splitlines() if " left" in line]
    assert lines == ["yomi: 2 of 5 records: about 30 s left", "yomi: 3 of 5 records: about 1 min left"]


# -- problems ------------------------------------------------------------------------------------------------------


def test_problems_in_the_terminal(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    annotated = judged_game(tmp_path)
    lines = iter(["Z9\n", "C3\n", "d4\n", "B4\n", "E5\n", "A1\n", "c4\n", "?\n", "q\n"])

    def ask(sides: tuple[int, ...]) -> tuple[bool, str]:
        done = ask_problems("game", annotated, sides, lambda: next(lines, None))
        return done, capsys.readouterr().out

    done, shown = ask((WHITE,))
    assert done
    assert "game, problem 1 of 1: White to move, move 2\nyour move" in shown
    assert "invalid vertex 'Z9'" in shown
    assert "C3 is illegal here, expected a legal move such as D4" in shown
    played = "Best is C4, 50.0%: C4 D4. Played was B4: blunder, 4.0 points, 20.0%."
    assert f"It loses 0.5 points, 2.0%.\n{played}\n\n0 of 1 problems" in shown
    assert shown.index("  A B C D E") < shown.index("problem 1"), "the board comes first"
    assert "That is the move of the game: it loses 4.0 points, 20.0%." in ask((WHITE,))[1]
    assert "It loses 9.0 points, 30.0%." in ask((WHITE,))[1]
    assert "The search did not consider this move." in ask((WHITE,))[1]
    assert "Right: the best move." in ask((WHITE,))[1]
    shown = ask((WHITE,))[1]
    assert "Best is C4" in shown
    assert "It loses" not in shown
    assert ask((WHITE,))[0] is False
    assert ask((WHITE,))[0] is False, "the input has ended"
    annotated.moves.clear()
    assert ask((WHITE, BLACK)) == (True, "")


def test_points_decide_whether_an_answer_in_a_won_game_is_right(tmp_path: Path) -> None:
    review = judged_game(tmp_path)
    best, close, far = review.moves[1].before.candidates
    candidates = (
        dataclasses.replace(best, winrate=0.99, score=40.0),
        dataclasses.replace(close, winrate=0.99, score=39.6),
        dataclasses.replace(far, winrate=0.985, score=25.0),
    )
    before = dataclasses.replace(review.moves[1].before, winrate=0.99, score=40.0, candidates=candidates)
    move = dataclasses.replace(review.moves[1], before=before)
    assert judge(review, move, close.move) == ("Right: it loses 0.4 points, 0.0% only.", True)
    assert judge(review, move, far.move) == ("It loses 15.0 points, 0.5%.", False)


def test_problems_of_shogi_take_any_notation(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "game.csa"
    path.write_text(CSA)
    annotated = shogi_review(path)
    lines = iter(["7f7e\n", "△1a1b\n", "１二香\n", "q\n"])
    assert ask_problems("game", annotated, (WHITE,), lambda: next(lines))
    shown = capsys.readouterr().out
    assert "7f7e is illegal here, expected a legal move such as 7g7f" in shown
    assert "not a move: '△1a1b'" in shown
    assert "Right: the best move." in shown
    assert "1 of 1 problems solved" in shown


def test_problems_of_the_command_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    fake_reviewers(monkeypatch)
    for name in ("a", "b"):
        (tmp_path / f"{name}.csa").write_text(CSA)
    monkeypatch.setattr(sys, "stdin", io.StringIO("1a1b\n?\n"))
    assert main(["review", str(tmp_path), "--quiz", "white"]) == 0
    shown = capsys.readouterr().out
    assert shown.index("a, problem 1 of 1") < shown.index("1 of 1 problems solved") < shown.index("b, problem 1 of 1")
    assert shown.index("written to ") < shown.index("problem 1")
    assert main(["review", str(tmp_path / "a.csa"), "--quiz", "--html"]) == 0
    assert "problem 1" not in capsys.readouterr().out
    assert '"quiz":["B","W"]' in (tmp_path / "a.yomi.html").read_text("utf-8")
    assert main(["review", str(tmp_path / "a.csa"), "--quiz", "nobody"]) == 2

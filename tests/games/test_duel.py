"""Duels and tunings on a game that they do not know: Othello with an evaluator without opinion."""

from contextlib import closing
from pathlib import Path

import pytest

import yomi
from tests.games.examples import FOLDER, othello
from yomi.engine.cli.main import main
from yomi.engine.clusters import processes
from yomi.engine.matches.duel import Duel, DuelConfig, DuelTask
from yomi.engine.matches.remote import pooled_duel
from yomi.engine.matches.results import GameResult
from yomi.engine.options import Options
from yomi.engine.registry import GAMES

GAME = othello(4)
BOARD = [GAME.name, "--evaluator", "uniform", "--opening-moves", "4", "--processes", "1"]


@pytest.fixture(autouse=True)
def _known(monkeypatch: pytest.MonkeyPatch) -> None:
    for game in (GAME, othello(6)):
        monkeypatch.setitem(GAMES, game.name, game)


def options() -> Options:
    made = Options.for_game(GAME.name)
    made.set("evaluator", "uniform")
    return made


def by_number(found: list[GameResult]) -> list[GameResult]:
    return sorted(found, key=lambda each: each.number)


def lines(path: Path) -> list[str]:
    return sorted(path.read_text(encoding="utf-8").splitlines())


@pytest.mark.slow
def test_a_duel_finds_the_better_settings(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["duel", *BOARD, "--out", str(tmp_path / "visits"), "--games", "400", "--sprt", "0,100"]
    command += ["--first", "visits=100", "--second", "visits=2"]
    assert main(command) == 0
    found = capsys.readouterr().out
    assert "at least 100 Elo" in found
    assert main(command) == 0  # nothing is left to play
    assert capsys.readouterr().out.splitlines()[0] == found.splitlines()[0]
    command = ["duel", othello(6).name, *BOARD[1:], "--out", str(tmp_path / "c"), "--games", "100", "--visits", "30"]
    assert main([*command, "--first", "c_puct=0.01,c_puct_log=0"]) == 0
    share = float(capsys.readouterr().out.split("%")[0].split()[-1])
    assert share < 45.0


@pytest.mark.slow
def test_games_depend_on_nothing_but_their_number() -> None:
    terms = DuelConfig((20, 20), seed=3, opening_moves=3)
    tasks = [DuelTask(number, ({"c_puct": 0.5 + 0.01 * number}, {})) for number in range(8)]
    with closing(Duel(GAME, (options(), options()), terms, 8)) as duel:
        together = by_number(list(duel.play(tasks)))
        again = by_number(list(duel.play(tasks[2:5])))
    with closing(Duel(GAME, (options(), options()), terms, 1)) as duel:
        alone = by_number(list(duel.play(reversed(tasks))))
    with closing(pooled_duel(2, GAME, (options(), options()), terms, 4, 2, print)) as made:
        apart = [by_number(list(made.play(part))) for part in (tasks[:4], tasks[4:])]
    assert together == alone == [*apart[0], *apart[1]]
    assert again == together[2:5]
    assert len({each.key for each in together}) > 4


def test_one_visit_plays_the_likeliest_move() -> None:
    with closing(Duel(GAME, (options(), options()), DuelConfig((1, 2), seed=3, opening_moves=3), 4)) as duel:
        found = list(duel.play([DuelTask(number) for number in range(24)]))
    assert len(found) == 24
    # White chooses first after three moves of the opening.
    assert [game.chosen for game in found] == [((game.plies - 3) // 2, (game.plies - 2) // 2) for game in found]


def test_tuned_values_are_compared_with_the_start_that_was_given(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    played: list[DuelTask] = []
    play = Duel.play
    monkeypatch.setattr(Duel, "play", lambda self, tasks: play(self, [played.append(task) or task for task in tasks]))
    command = ["tune", *BOARD, "--visits", "2", "--games", "4", "--pairs", "2", "--confirm", "2", "--processes", "1"]
    assert main([*command, "--parameter", "c_puct", "2:4:3", "--out", str(tmp_path)]) == 0
    assert [task.changes[1] for task in played[4:]] == [{"c_puct": 3.0}] * 2


@pytest.mark.slow
def test_pipes_of_any_class_will_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "Connection", DuelConfig)  # as on Windows, no link is one
    with closing(pooled_duel(1, GAME, (options(), options()), DuelConfig((4, 4), seed=3), 2, 2, print)) as made:
        assert len(list(made.play([DuelTask(0), DuelTask(1)]))) == 2


def test_a_tuning_goes_on_as_if_nothing_had_been(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["tune", *BOARD, "--visits", "24", "--games", "96", "--pairs", "8", "--confirm", "16"]
    command += ["--parameter", "c_puct", "0.01:3:0.05", "--parameter", "fpu_reduction", "0:0.5"]
    assert main([*command, "--out", str(tmp_path / "once")]) == 0
    whole = tmp_path / "once" / "match.jsonl"
    told, progress = capsys.readouterr()
    assert "6 of 6 iterations, 96 games" in told
    assert "6 iterations of 16 games begin\nyomi: iteration 1/6: 1/16 games\n" in progress
    assert "tuned against start" in told
    killed = tmp_path / "killed" / "match.jsonl"
    killed.parent.mkdir()
    data = whole.read_bytes()
    killed.write_bytes(data[: data.index(b'"iteration": 2') + 500])  # in the middle of a game of the third iteration
    assert main([*command, "--out", str(killed.parent)]) == 0
    assert capsys.readouterr().out == told
    assert lines(killed) == lines(whole)
    assert main(["tune", "status", str(killed.parent)]) == 0
    assert capsys.readouterr().out == told


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["tune", *BOARD, "--parameter", "c_put", "0:1"], "did you mean c_puct"),
        (["tune", *BOARD, "--parameter", "memory", "1G:2G"], "expected one of c_puct"),
        (["tune", *BOARD, "--parameter", "c_puct", "2:1"], "expected LOW:HIGH or LOW:HIGH:START"),
        (["tune", *BOARD, "--parameter", "fpu_reduction", "0.5:1"], "starts at 0.2, expected LOW:HIGH:START"),
        (["tune", "status", "nowhere"], "nowhere"),
        (["duel", *BOARD, "--first", "c_put=1"], "did you mean c_puct"),
        (["duel", *BOARD, "--second", "workers=2"], "no option of a duel's player"),
        (["duel", *BOARD, "--first", "c_puct=many"], "expected a number"),
        (["duel", *BOARD, "--games", "1"], "--games: expected an integer of at least 2, found 1"),
    ],
)
def test_mistakes_are_told_on_one_line(
    words: list[str], expected: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = words if "status" in words else [*words, "--out", str(tmp_path)]
    assert main(words) == 2
    error = capsys.readouterr().err
    assert expected in error
    assert error.count("\n") == 1


def test_the_library_plays_duels_of_a_game_by_file(tmp_path: Path) -> None:
    name = f"{FOLDER / 'othello.py'}:FOUR"
    report = yomi.duel(
        name, {"c_puct": 1.0}, {"c_puct": 2.0}, evaluator="uniform", visits=4, games=4, out=tmp_path / "duel"
    )
    assert report.score.games == 4
    with pytest.raises(yomi.Error, match="expected go or shogi"):
        yomi.selfplay(name, 1)

"""Benchmarks of both games: their positions, command lines, and short runs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bench import tree
from bench.cli import main
from bench.positions import go_positions, shogi_positions
from bench.subjects import go_subject, shogi_subject


def test_positions_go_on() -> None:
    games = shogi_positions()
    assert len({game.sfen() for game in games}) == len(games) >= 5
    assert all(game.outcome() is None for game in games)
    assert not games[0].moves
    for size in (5, 9, 13, 19):
        assert not any(game.is_over for game in go_positions(size))


def test_subjects() -> None:
    assert (go_subject(9).name, go_subject(9).spec.name) == ("9x9", "go")
    subject = shogi_subject((1, 1), 3)
    assert subject.spec.planes_shape == (45, 9, 9)
    assert {(int(game.position["form"]), int(game.position["mate_depth"])) for game in subject.games} == {(1, 3)}


def test_the_tree_is_measured_for_both_games() -> None:
    rows = tree.run([go_subject(5), shogi_subject()], 300, [1])
    assert [(row["game"], row["planes"]) for row in rows] == [
        ("5x5", False),
        ("5x5", True),
        ("shogi", False),
        ("shogi", True),
    ]
    assert all(row["playouts_per_second"] > 0 for row in rows)


@pytest.mark.parametrize("benchmark", ["nps", "evaluator"])
def test_shogi_from_the_command_line(
    benchmark: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setattr("native.warmup.compile_all", lambda game, report: None)
    path = tmp_path / "rows.json"
    words = [benchmark, "--game", "shogi", "--for", "0.02", "--workers", "1", "--memory", "16M", "--json", str(path)]
    assert main([*words, "--evaluator", "material"]) == 0
    rows = json.loads(path.read_text())["results"]
    assert len(rows) == (10 if benchmark == "nps" else 6)
    assert "per_second" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("nps --game chess", "invalid choice: 'chess'"),
        ("nps --game shogi --komi 7", "unrecognized arguments: --komi"),
        ("nps --entering-king 27", "unrecognized arguments: --entering-king"),
        ("tree --mate-depth 2", "invalid choice: 2"),
    ],
)
def test_wrong_command_lines(words: str, message: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(words.split())
    assert ended.value.code == 2
    assert message in capsys.readouterr().err

"""Benchmarks of both games: their positions, command lines, and short runs."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import pytest

from bench import tree
from bench.cli import main
from bench.positions import go_positions, shogi_positions
from bench.rivals import percent, visits_of
from bench.subjects import go_subject, shogi_subject
from tests.process.match_process import scripted


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


@pytest.mark.parametrize("game", ["go", "shogi"])
def test_nps_against_other_engines(
    game: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setattr("native.warmup.compile_all", lambda game, report: None)
    path = tmp_path / "rates.csv"
    words = ["nps", "--game", game, "--for", "0.1", "--workers", "1", "--memory", "16M", "--evaluator", "uniform"]
    words += ["--size", "5"] if game == "go" else []
    rival = scripted("gtp" if game == "go" else "usi", "fine", name="other")
    assert main([*words, "--against", rival, "--against", rival, "--csv", str(path)]) == 0
    text = capsys.readouterr().out
    kind = "descended" if game == "go" else "own count"
    assert f"other ({kind})" in text
    assert f"other-2 ({kind})" in text
    assert "yomi descended/other" in text
    assert re.search(r"^median  [0-9.]+% \(", text, re.MULTILINE)
    lines = path.read_text().splitlines()
    assert lines[0] == "position,engine,per_second"
    assert len(lines) == 1 + 5 * (1 if game == "go" else 6)
    assert float(lines[-1].split(",")[2]) > 1000  # 1,000 nodes in 0.1 s or little more


def test_ratios_are_written_as_in_the_fields_tables() -> None:
    assert [percent(ratio) for ratio in (0.2394, 0.0032, 2.1797)] == [
        "23.94% (1/4.2)",
        "0.32% (1/312)",
        "217.97% (2.2)",
    ]


def test_visits_in_the_lines_of_an_analysis() -> None:
    assert visits_of("info move D4 visits 7 order 0 info move C3 visits 5 order 1") == 12
    assert visits_of("info move D4 visits 7 order 0 rootInfo winrate 0.5 visits 9") == 9
    assert visits_of("= ") is None


def test_an_engine_that_cannot_be_measured(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("native.warmup.compile_all", lambda game, report: None)
    words = ["nps", "--size", "5", "--for", "0.02", "--workers", "1", "--evaluator", "uniform"]
    assert main([*words, "--against", scripted("gtp", "dead")]) == 2
    assert "--against dead: exited with status 1; stderr: no such network" in capsys.readouterr().err


def test_a_plot_without_matplotlib(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    assert main(["nps", "--plot", str(tmp_path / "x.png")]) == 2
    assert "matplotlib is not installed: pip install 'yomi-engine[plot]'" in capsys.readouterr().err


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

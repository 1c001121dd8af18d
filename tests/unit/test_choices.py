"""`bench choices`: engines and a judge in positions of games, and what is kept of it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bench.choices import PositionError, Sayings, read_positions
from bench.cli import main
from engine.cli.games import GAMES
from engine.options import Options

PLAIN = "yomi:evaluator=material,workers=1,memory=16M,seed=1"
GAME = "startpos moves 7g7f 3c3d 8h2b+ 3a2b B*5e\n"
"""Black's bishop attacks a rook and a lance; before it, a bishop can be taken back."""


@pytest.fixture
def record(tmp_path: Path) -> Path:
    """Give a file with a game."""
    path = tmp_path / "game.sfen"
    path.write_text(GAME)
    return path


def test_positions_come_from_games(record: Path) -> None:
    kind = GAMES["shogi"].matches()
    rules = kind.rules(Options.for_game("shogi"), None, 0)
    assert list(read_positions(record, kind, rules, 1, 2)) == [
        "startpos moves 7g7f",
        "startpos moves 7g7f 3c3d 8h2b+",
    ]
    record.write_text("startpos moves 7g7f 7g7f\n")
    with pytest.raises(PositionError, match=r"game\.sfen"):
        list(read_positions(record, kind, rules, 1, 2))


def test_a_search_is_worth_more_than_none(record: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    kept, table = tmp_path / "said.jsonl", tmp_path / "table.json"
    words = [f"{PLAIN},visits=200 ;; name=search", "yomi:evaluator=uniform,workers=1,memory=16M,visits=1 ;; name=none"]
    words += ["--game", "shogi", "--judge", f"{PLAIN},visits=400 ;; name=judge", "--positions", str(record)]
    words += ["--from", "3", "--every", "1", "--balance", "0", "--out", str(kept), "--json", str(table)]
    assert main(["choices", *words]) == 0
    first, second = json.loads(table.read_text())["results"]
    assert (first["player"], first["positions"], first["gained_per_10000"]) == ("search", 2, 0.0)
    assert second["gained_per_10000"] < -500
    said = kept.read_text().splitlines()
    assert json.loads(said[1])[2:] == ["choice", "3a2b"]
    assert main(["choices", *words]) == 0
    assert kept.read_text().splitlines() == said
    assert capsys.readouterr().err.count("positions") == 0


def test_a_file_of_something_else_is_told(record: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    kept = tmp_path / "said.jsonl"
    kept.write_text("no json\n")
    with pytest.raises(PositionError, match="line 1"):
        Sayings(kept)
    words = ["choices", PLAIN, "--game", "shogi", "--judge", PLAIN, "--positions", str(record), "--out", str(kept)]
    assert main(words) == 2
    assert main(["choices", PLAIN, "--game", "shogi", "--judge", PLAIN, "--positions", str(tmp_path / "none")]) == 2
    assert main(["choices", PLAIN, "--judge", "no-such-engine", "--game", "shogi", "--positions", str(record)]) == 2
    errors = capsys.readouterr().err
    assert errors.count("yomi bench: ") == 3
    assert "Traceback" not in errors

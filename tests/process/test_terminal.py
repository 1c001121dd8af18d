"""`yomi play` and `yomi selfplay shogi` as real processes, with the real engine and no network."""

import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.process.engine_process import ROOT
from tests.waiting import wait_until
from yomi.engine.go.record_files import load_record
from yomi.engine.shogi.records.files import load_records

COMPILING = 400
"""Seconds that a first start may take on a busy machine."""


def yomi(*words: str, typed: str = "", utf8: bool = True) -> "subprocess.CompletedProcess[str]":
    """Run a command with what the user types."""
    environment = os.environ | {"PYTHONIOENCODING": "utf-8" if utf8 else "ascii"}
    return subprocess.run(
        [sys.executable, "-m", "yomi", *words, "--workers", "1", "--memory", "32M", "--seed", "1"],
        cwd=ROOT,
        input=typed,
        env=environment,
        capture_output=True,
        encoding="utf-8",
        timeout=COMPILING,
    )


def test_a_game_in_the_terminal(tmp_path: Path) -> None:
    path = tmp_path / "game.kifu"
    typed = f"７六歩\nhint\n7776FU\nundo\n2g2f\nsave {path}\nresign\nquit\n"
    done = yomi("play", "shogi", "--no-save", "--playouts", "40", typed=typed)
    assert done.returncode == 0
    assert "|v香v桂v銀v金v玉v金v銀v桂v香|一" in done.stdout
    assert re.search(r"△\S+ \([1-9PLNSGBR][a-i1-9*]*\+?\): winrate [\d.]+%, \d+ playouts", done.stdout)
    assert "no piece of the side to move on 77" in done.stdout
    assert "Result: White wins by resignation" in done.stdout
    assert "\x1b" not in done.stdout
    record = load_records(path)[0]
    assert (record.black, record.white, len(record.moves)) == ("you", "yomi", 2)


def test_a_terminal_without_japanese() -> None:
    done = yomi("play", "shogi", "--no-save", "--playouts", "10", "--color", "white", typed="quit\n", utf8=False)
    assert done.returncode == 0
    assert "   l  n  s  g  k  g  s  n  l a" in done.stdout
    assert "White 2> " in done.stdout


@pytest.mark.parametrize(
    ("words", "move", "ending", "load"),
    [
        (["go", "--size", "5", "--evaluator", "rollouts"], "C3", ".sgf", lambda path: load_record(path).game()),
        (["shogi", "--evaluator", "material"], "7g7f", ".kifu", lambda path: load_records(path)[0].game()),
    ],
)
def test_a_game_whose_process_is_killed_goes_on(
    words: list[str], move: str, ending: str, load: Callable[[Path], Any], tmp_path: Path
) -> None:
    path = tmp_path / f"game{ending}"
    words = [*words, "--playouts", "10", "--workers", "1", "--memory", "32M"]
    command = [sys.executable, "-m", "yomi", "play", *words, "--save", str(path)]
    with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL) as process:
        assert process.stdin is not None
        process.stdin.write(f"{move}\n".encode())
        process.stdin.flush()
        wait_until(lambda: path.exists() and len(load(path).moves) == 2, COMPILING)
        process.kill()
    played = load(path).moves
    done = yomi("play", *words[:1], *words[3 if "go" in words else 1 :], "--resume", str(path), typed="undo\nquit\n")
    assert done.returncode == 0, done.stderr
    assert f"saved {path}" in done.stdout
    assert len(played) == 2
    assert load(path).moves == []


def test_a_game_that_is_left_is_saved(tmp_path: Path) -> None:
    path = tmp_path / "game.csa"
    done = yomi("play", "shogi", "--level", "1", "--save", str(path), typed="7g7f\nscore\n")
    assert done.returncode == 0
    assert re.search(r"Level 1 of 10 \(Elo ", done.stdout)
    assert re.search(r"Black wins [\d.]+%, [+-]\d+ centipawns: ", done.stdout)
    assert f"saved {path}" in done.stdout
    assert len(load_records(path)[0].moves) == 2


def test_selfplay(tmp_path: Path) -> None:
    words = ("selfplay", "shogi", "--games", "2", "--visits", "8", "--max-moves", "40", "--out", str(tmp_path))
    done = yomi(*words, "--format", "csa", "kif", "hcpe")
    assert done.returncode == 0
    assert re.match(r"2 games in [\d.]+ s: Black won \d, White \d, drawn \d; ", done.stdout)
    assert "2/2" in done.stderr
    for suffix in ("csa", "kifu"):
        record = load_records(tmp_path / f"game-00002.{suffix}")[0]
        assert record.ending
        assert len(record.game().moves) == len(record.moves) <= 40
        # a forced move may be played without a search
        assert sum(move.score is not None for move in record.moves) > len(record.moves) / 2


def test_errors_are_one_line(tmp_path: Path) -> None:
    book = tmp_path / "book.db"
    book.write_bytes(b"sfen nonsense\n")
    net = tmp_path / "net.onnx"
    net.write_bytes(b"nonsense")
    for words in (("--book-file", str(book)), ("--net", str(net)), ("--sfen", "nonsense"), ("--nonsense",)):
        done = yomi("play", "shogi", "--no-save", *words)
        assert done.returncode == 2, words
        assert done.stdout == ""
        lines = [line for line in done.stderr.splitlines() if "compil" not in line]
        assert len(lines) == 1, lines
        assert lines[0].startswith("yomi: error: ")

"""GNU Shogi behind USI, with a script in its place that speaks its protocol."""

import subprocess
import sys
from pathlib import Path

import pytest

from yomi.bench.gnushogi import GnuShogi

SCRIPT = """\
#!{python}
import sys
print("GNU Shogi 1.4.2", flush=True)
heard, forced, replies = [], False, iter({replies})
for line in sys.stdin:
    heard.append(line.strip())
    with open({log!r}, "a") as log:
        log.write(line)
    if line in ("new\\n", "force\\n"):
        forced = True
        continue
    if line.startswith("level "):
        print("Clocks: 60000 60000", flush=True)
        continue
    if line != "go\\n":
        print("Clocks: 1000 1000\\n1. " + line.strip() + " 1000", flush=True)
    else:
        forced = False
    if not forced:
        print(next(replies), flush=True)
"""


def fake(folder: Path, *replies: str) -> tuple[str, Path]:
    """Return a command that answers each question with the next reply, and the file of what it is told."""
    path, log = folder / "gnushogi", folder / "heard.txt"
    path.write_text(SCRIPT.format(python=sys.executable, replies=replies, log=str(log)))
    path.chmod(0o755)
    return str(path), log


def test_it_is_told_no_more_than_it_must_know(tmp_path: Path) -> None:
    command, log = fake(tmp_path, "1. ... 3c3d 900", "2. ... P*5e 800", "1. ... 8h2b+ 700")
    engine = GnuShogi(command, 1.0)
    assert engine.choose(["7g7f"]) == "3c3d"
    assert engine.choose(["7g7f", "3c3d", "2g2f"]) == "P*5e"
    assert engine.choose(["2g2f"]) == "8h2b+"
    engine.close()
    first = ["new", "level 60 1:00", "force", "7g7f", "go", "2g2f"]
    assert log.read_text().splitlines() == [*first, "new", "level 60 1:00", "force", "2g2f", "go"]


@pytest.mark.parametrize("words", ["Illegal move (no match) 7g7f", "White mates!", "Black resigns"])
def test_without_a_move_it_resigns(words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    engine = GnuShogi(fake(tmp_path, words)[0], 1.0)
    assert engine.choose(["7g7f"]) is None
    engine.close()
    assert words in capsys.readouterr().out


def test_usi(tmp_path: Path) -> None:
    command, _ = fake(tmp_path, "1. ... 3c3d 900")
    lines = "usi\nisready\nposition startpos moves 7g7f\ngo btime 0\nquit\n"
    done = subprocess.run(
        [sys.executable, "-m", "yomi.bench.gnushogi", "--command", command], input=lines, capture_output=True, text=True
    )
    assert done.stdout.splitlines()[-3:] == ["usiok", "readyok", "bestmove 3c3d"]
    assert done.returncode == 0


@pytest.mark.parametrize(
    ("lines", "error"),
    [
        ("position sfen 4k4/9/9/9/9/9/9/9/4K4 b - 1\ngo\n", "expected position startpos"),
        ("go\n", "exited with status 1"),
    ],
)
def test_what_goes_wrong_is_no_resignation(lines: str, error: str, tmp_path: Path) -> None:
    command, _ = fake(tmp_path)  # ends when it is asked for a move
    done = subprocess.run(
        [sys.executable, "-m", "yomi.bench.gnushogi", "--command", command], input=lines, capture_output=True, text=True
    )
    assert done.returncode == 1
    assert error in done.stderr
    assert "bestmove" not in done.stdout


@pytest.mark.parametrize(
    ("seconds", "level"), [(0.25, "level 60 0:15"), (1.5, "level 60 1:30"), (10.0, "level 60 10:00")]
)
def test_seconds_a_move(seconds: float, level: str, tmp_path: Path) -> None:
    command, log = fake(tmp_path, "1. ... 3c3d 900")
    engine = GnuShogi(command, seconds)
    engine.choose(["7g7f"])
    engine.close()
    assert log.read_text().splitlines()[1] == level


@pytest.mark.parametrize("seconds", ["0", "-1", "0.001", "nan", "1e9"])
def test_seconds_that_it_cannot_be_told(seconds: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "yomi.bench.gnushogi", f"--seconds={seconds}"], capture_output=True, text=True
    )
    assert done.returncode == 2
    assert "expected 0.05 to 600" in done.stderr


def test_without_the_program(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "yomi.bench.gnushogi", "--command", str(tmp_path / "none")],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 2
    assert "expected GNU Shogi" in done.stderr

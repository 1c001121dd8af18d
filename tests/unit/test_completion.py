"""Completion of command lines in bash, fish and zsh."""

import contextlib
import importlib.util
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.unit.command_lines import error_of
from yomi.engine.cli.main import main

COMPLETED = [
    ("yomi gt", "gtp"),
    ("yomi re", "review"),
    ("yomi gtp --vis", "--visits"),
    ("yomi gtp --device cu", "cuda"),
    ("yomi play sh", "shogi"),
    ("yomi play go --color wh", "white"),
    ("yomi bench nps sh", "shogi"),
    ("yomi bench nps --workers 3 --siz", "--size"),
    ("yomi review pypro", "pyproject.toml"),
]


@pytest.fixture(scope="module")
def scripts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the scripts of `yomi completion`: _yomi is that for zsh."""
    pytest.importorskip("shtab")
    folder = tmp_path_factory.mktemp("completion")
    for shell, name in (("bash", "yomi.bash"), ("zsh", "_yomi"), ("fish", "yomi.fish")):
        with (folder / name).open("w", encoding="utf-8") as file, contextlib.redirect_stdout(file):
            assert main(["completion", shell]) == 0
    return folder


def in_shell(shell: str, *words: str) -> str:
    """Return what a shell prints that runs a command; skip the test if this machine lacks the shell."""
    if shutil.which(shell) is None:
        pytest.skip(f"needs {shell}")
    ran = subprocess.run([shell, *words], capture_output=True, text=True, cwd=Path(__file__).parents[2], timeout=60)
    assert (ran.returncode, ran.stderr) == (0, "")
    return ran.stdout


@pytest.mark.slow
@pytest.mark.parametrize(("typed", "completed"), COMPLETED)
def test_completion_in_bash(typed: str, completed: str, scripts: Path) -> None:
    *words, last = typed.split()
    line = f"COMP_WORDS=({typed}); COMP_CWORD={len(words)}; _shtab_yomi yomi {last}; echo ${{COMPREPLY[*]}}"
    assert in_shell("bash", "-c", f"source {scripts / 'yomi.bash'}; {line}").split() == [completed]


@pytest.mark.parametrize(("typed", "completed"), COMPLETED)
def test_completion_in_fish(typed: str, completed: str, scripts: Path) -> None:
    printed = in_shell("fish", "--no-config", "-c", f"source {scripts / 'yomi.fish'}; complete -C '{typed}'")
    assert [line.partition("\t")[0] for line in printed.splitlines()] == [completed]


@pytest.mark.parametrize(("typed", "completed"), COMPLETED[:1] + COMPLETED[2:7])
def test_completion_in_zsh(typed: str, completed: str, scripts: Path) -> None:
    begin = f"fpath=({scripts} $fpath); autoload -Uz compinit; compinit -D -u; print rea''dy"
    line = f"{typed.rpartition(' ')[0]} {completed}"
    commands = (
        "zmodload zsh/zpty",
        "zpty shell zsh -f -i",
        f'zpty -w shell "{begin}"',
        "zpty -r shell text '*ready*'",
        f"zpty -n -w shell $'{typed}\\t'",
        f"zpty -r shell text '*{line}*'",  # waits for it
        "zpty -d shell",
        "print -r -- $text",
    )
    printed = in_shell("zsh", "-f", "-c", "; ".join(commands))
    assert line in printed
    assert "command not found" not in printed


def test_completion_without_shtab(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    assert "completion needs shtab, which is not installed" in error_of(capsys, "completion", "bash")


def test_completion_by_an_old_shtab(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    shtab = pytest.importorskip("shtab")
    monkeypatch.setattr(shtab, "SUPPORTED_SHELLS", ["bash", "zsh"])
    error = error_of(capsys, "completion", "fish")
    assert "cannot complete fish: " in error
    assert "--upgrade shtab" in error

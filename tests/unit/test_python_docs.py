"""The examples of docs/how-to/python.md and the tutorial of Python run."""

import importlib.util
import re
from pathlib import Path

import pytest

import yomi

PAGE = Path(__file__).parents[2] / "docs/how-to/python.md"
TUTORIAL = PAGE.parents[1] / "tutorials" / "python.md"
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
GAME = "(;GM[1]SZ[9]KM[7]RU[Chinese];B[ee];W[ec];B[cd];W[gc];B[gg];W[cg];B[])"
MATE = "sfen 4k4/9/4P4/9/9/9/9/9/4K4 b G2r2b3g4s4n4l17p 1\nsfen 4k4/9/9/9/9/9/9/9/4K4 b P 1\n"


def examples() -> list[tuple[str, str]]:
    """Return heading and code of every block of Python on the page."""
    found = []
    for part in re.split(r"^#+ ", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]:
        title = part.partition("\n")[0]
        found += [(f"{title} {number}" if number else title, code) for number, code in enumerate(BLOCK.findall(part))]
    return found


EXAMPLES = examples()
OUTPUT = {
    "yomi in Python": "Rules: tromp-taylor",
    "Evaluate a thousand positions": "move 5: Black wins ",
    "Find the worst moves of a game": " loses ",
    "A bot in twenty lines": "winner=",
    "Two engines against each other": "strong",
    "Two engines against each other 1": "weak",
    "Two engines against each other 2": "'c_puct': ",
    "Another engine as an object": " plays ",
    "Many games at once for reinforcement learning": "(64, 9, 9, 17) bool",
    "A selection rule of one's own": "[",
    "A learning run with a loss of one's own": "journal",
    "A data set of one's own games": "manifest",
    "Ownership over a game": "move 7: Black ",
    "Find the mates in a file": "G*5b\nno mate found\n",
    "An analysis that is shown while it runs": "White ",
    "An analysis that is shown while it runs 1": "<Report: ",
}


def test_every_heading_has_an_example() -> None:
    titles = re.findall(r"^### (.*)$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    assert len(titles) >= 10
    assert set(titles) <= {title for title, _ in EXAMPLES}


def test_the_reference_has_every_name() -> None:
    words = set(re.findall(r"\w+", (PAGE.parents[1] / "reference" / "python.md").read_text(encoding="utf-8")))
    assert set(yomi.__all__) - {"__version__", "BLACK", "WHITE"} <= words


@pytest.mark.slow
@pytest.mark.parametrize(("title", "code"), EXAMPLES, ids=[title for title, _ in EXAMPLES])
def test_example(
    title: str, code: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    if "yomi.learn" in code and importlib.util.find_spec("torch") is None:
        pytest.skip("PyTorch is not installed")
    (tmp_path / "games").mkdir()
    (tmp_path / "games" / "a.sgf").write_text(GAME)
    (tmp_path / "game.sgf").write_text(GAME)
    (tmp_path / "problems.sfen").write_text(MATE)
    monkeypatch.chdir(tmp_path)
    typed = iter(["Z9", "E5", *["pass"] * 500])
    monkeypatch.setattr("builtins.input", lambda prompt: next(typed))
    exec(compile(code, f"{PAGE.name}: {title}", "exec"), {"__name__": "__main__"})
    captured = capsys.readouterr()
    assert OUTPUT.get(title, "") in captured.out
    assert captured.err == ""
    if "heat.svg" in code:
        assert (tmp_path / "heat.svg").read_text().startswith("<svg")


def test_the_tutorial(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    for code in BLOCK.findall(TUTORIAL.read_text(encoding="utf-8")):  # each block continues the one before
        exec(compile(code, TUTORIAL.name, "exec"), names)
    output = capsys.readouterr().out
    assert "True 79\nBlack wins " in output
    assert output.count("for Black") == 13
    assert "E5" in output.splitlines()[-2]
    assert "did you mean size?" in output.splitlines()[-1]

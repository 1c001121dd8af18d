"""GTP sessions as text: `gtp/*.gtp` are transcripts, `gtp/*.tst` tests in the form of gogui-regress.

A transcript has lines `> input` and, below each, the exact answer. `@ticks N` before an input lets an analysis print N
reports until the next line of input comes; `{tmp}` is a fresh folder; lines that start with `;` are comments.
YOMI_UPDATE_GOLDEN=1 writes the answers of today into the files: read the difference before you commit it.

A test in gogui-regress's form is `NUMBER command`, below it `#? [regular expression]`; `!` before the expression means
that it must not match.
"""

import os
import re
from pathlib import Path

import pytest

from tests.fakes.player import FakePlayer
from tests.fakes.session import ScriptedSession
from yomi.engine.options import Options

FOLDER = Path(__file__).parent / "gtp"
TRANSCRIPTS = sorted(FOLDER.glob("*.gtp"))
REGRESSIONS = sorted(FOLDER.glob("*.tst"))


def make_session(lines: list[str]) -> ScriptedSession:
    """Return a session; a comment `; resign_at N` makes its player resign."""
    resign = next((int(line.split()[2]) for line in lines if line.startswith("; resign_at ")), None)
    return ScriptedSession(FakePlayer(Options(size=9), resign_at=resign))


def replay(text: str, folder: Path) -> str:
    """Return a transcript with the answers that its inputs get."""
    lines = text.splitlines()
    session = make_session(lines)
    output: list[str] = []
    ticks = 0
    for line in lines:
        if line.startswith(";"):
            output.append(line)
        elif line.startswith("@ticks "):
            ticks = int(line.split()[1])
            output.append(line)
        elif line.startswith(">"):
            answer = session.send(line[1:].removeprefix(" ").replace("{tmp}", str(folder)), ticks)
            output += [line, *answer.replace(str(folder), "{tmp}").splitlines()]
            ticks = 0
    return "\n".join(output) + "\n"


@pytest.mark.parametrize("path", TRANSCRIPTS, ids=lambda path: path.stem)
def test_transcript(path: Path, tmp_path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    answered = replay(text, tmp_path)
    if os.environ.get("YOMI_UPDATE_GOLDEN"):
        path.write_text(answered, encoding="utf-8")
    assert answered == text


def regression_cases(path: Path) -> list[tuple[str, str]]:
    """Return (input line, expression or empty) of a gogui-regress file."""
    cases: list[tuple[str, str]] = []
    for line in path.read_text(encoding="utf-8").splitlines():
        if match := re.fullmatch(r"#\?\s*\[(.*)\]\*?\s*", line):
            cases[-1] = (cases[-1][0], match[1])
        elif line.strip() and not line.startswith("#"):
            cases.append((line, ""))
    return cases


@pytest.mark.parametrize("path", REGRESSIONS, ids=lambda path: path.stem)
def test_regression(path: Path) -> None:
    session = ScriptedSession()
    for line, expression in regression_cases(path):
        answer = session.send(line)
        number = re.match(r"\d*", line)
        assert number is not None
        assert answer.startswith(f"={number[0]}"), f"{line}: {answer}"
        content = answer.removeprefix(f"={number[0]}").strip()
        if expression:
            matches = re.fullmatch(expression.removeprefix("!"), content, re.DOTALL) is not None
            assert matches != expression.startswith("!"), f"{line}: {content} against {expression}"

"""Sessions of the analysis protocol as text: `analysis/*.jsonl` are transcripts.

A transcript has lines `> query` and, below each, the exact answers; lines that start with `;` are comments.
YOMI_UPDATE_GOLDEN=1 writes the answers of today into the files: read the difference before you commit it.
"""

import json
import os
from pathlib import Path

import pytest

from tests.fakes.analyst import ScriptedAnalysis

TRANSCRIPTS = sorted((Path(__file__).parent / "analysis").glob("*.jsonl"))


def replay(text: str) -> str:
    """Return a transcript with the answers that its queries get."""
    session = ScriptedAnalysis()
    output: list[str] = []
    for line in text.splitlines():
        if line.startswith(";"):
            output.append(line)
        elif line.startswith(">"):
            output += [line, *session.send(line[1:].removeprefix(" ")).splitlines()]
    return "\n".join(output) + "\n"


@pytest.mark.parametrize("path", TRANSCRIPTS, ids=lambda path: path.stem)
def test_transcript(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    answered = replay(text)
    if os.environ.get("YOMI_UPDATE_GOLDEN"):
        path.write_text(answered, encoding="utf-8")
    assert answered == text
    for line in answered.splitlines():
        if line[:1] not in (";", ">"):
            assert isinstance(json.loads(line), dict)

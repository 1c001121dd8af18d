"""The sessions of gtp.md and usi.md and the answers of analysis.md in docs/reference are what the commands print."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests import prose
from tests.process.engine_process import PipedProcess
from yomi import __version__
from yomi.engine.go.analysis.session import ACTIONS
from yomi.engine.go.gtp.codec import COMMANDS as GTP
from yomi.engine.shogi.usi.session import COMMANDS as USI

pytestmark = pytest.mark.slow

REFERENCE = prose.ROOT / "docs" / "reference"
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
# Numbers, moves, bounds and whether an answer is expected depend on the machine and on time.
NUMBER = re.compile(r"-?\b\d+(?:\.\d+)?(?:e-?\d+)?\b")
BOUND_OR_ANSWER = re.compile(r" (?:lowerbound|upperbound)|(?<=^bestmove M) ponder M$")
MOVE = re.compile(r"\b(?:[A-HJ]\d|\d[a-i]\d[a-i]\+?|[PLNSGBR]\*\d[a-i])(?= |$)")


def blocks(page: Path, language: str = "") -> list[str]:
    """Return the blocks of a page, with the current version."""
    page_text = re.sub(r"\b\d+\.\d+\.\d+\b", __version__, page.read_text("utf-8"))
    return [text for found, text in BLOCK.findall(page_text) if found == language]


def shape(line: str) -> str:
    """Return a line without its numbers, moves and bounds; errors and boards stay as they are."""
    if line.startswith(("?", "info string Error!")) or not line.startswith(("info", "bestmove", "=", "play")):
        return line
    if " on cpu (" in line:  # the processor decides about the kernels
        return line.partition(" on cpu (")[0]
    line = BOUND_OR_ANSWER.sub("", MOVE.sub("M", line))
    return re.sub(r"(?:M )*M(?= |$)", "M", NUMBER.sub("0", line))


def play(page: Path) -> list[str]:
    """Play a page's sessions with its command; return the commands that were sent."""
    command, *sessions = blocks(page)
    sent = []
    with PipedProcess(*command.split()) as process:
        for line in "".join(sessions).splitlines():
            if line.startswith("> "):
                process.write(line[2:] + "\n")
                sent.append(line[2:])
                continue
            while shape(process.line()) != shape(line):  # a page leaves lines out
                pass
    return sent


def test_the_session_of_gtp() -> None:
    assert len(play(REFERENCE / "gtp.md")) > 15


def test_the_session_of_usi() -> None:
    assert len(play(REFERENCE / "usi.md")) > 15


def test_the_references_have_every_command() -> None:
    for names, page in ((GTP.names(), "gtp.md"), (USI.names(), "usi.md")):
        words = set(re.findall(r"[\w-]+", (REFERENCE / page).read_text("utf-8")))
        assert set(names) <= words, page
    text = (REFERENCE / "analysis.md").read_text("utf-8")
    assert all(f"`{name}`" in text for name in ACTIONS.names())


def alike(found: Any, expected: Any) -> bool:
    """Whether two answers agree; the last digits of numbers depend on the processor."""
    if isinstance(expected, dict):
        return found.keys() == expected.keys() and all(alike(found[key], expected[key]) for key in expected)
    if isinstance(expected, list):
        return len(found) == len(expected) and all(map(alike, found, expected))
    if isinstance(expected, float):
        return abs(found - expected) <= 0.01 * max(1, abs(expected))
    return bool(found == expected)


def test_the_answers_of_the_analysis_protocol() -> None:
    command = next(text for text in blocks(REFERENCE / "analysis.md") if "--precision fp32" in text)
    pairs = [block.strip().split("\n\n") for block in blocks(REFERENCE / "analysis.md", "json") if "\n\n" in block]
    assert len(pairs) > 3
    with PipedProcess(*command.split()) as process:
        for query, *answers in pairs:
            process.write(query + "\n")
            for answer in answers:
                found = json.loads(process.line())
                assert alike(found, json.loads(answer)), json.dumps(found)

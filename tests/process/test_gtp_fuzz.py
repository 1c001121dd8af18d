"""Broken GTP input, line by line, for the handlers and for engines behind pipes.

Every line must get exactly one answer with its own id (or none, if it holds no command), no answer may be an internal
error, and nothing may hang.
"""

from __future__ import annotations

import random
import re
from pathlib import Path

import pytest

from tests.fakes.session import ScriptedSession
from tests.process.engine_process import GtpProcess
from tests.process.fuzzing import NUMBERS, mutate
from yomi.engine.go.gtp.codec import COMMANDS
from yomi.engine.options import TABLE

FAKE = "tests.process.fake_engine"
ENGINE = "yomi gtp --evaluator uniform --size 9 --workers 1 --memory 64M --seed 1 --visits 5"

COLORS = ["b", "w", "black", "WHITE", "green", ""]
VERTICES = ["A1", "e5", "pass", "RESIGN", "i5", "T19", "Z99", "A0", "a" + "9" * 5000, "5e", "é4", "j9", "D4", "c3"]
WORDS = [
    "none", "absolute", "byoyomi", "canadian", "fischer", "fischer-capped", "interval", "avoid", "allow", "ownership",
    "true", "false", "maxmoves", "minmoves", "rootInfo", "all", "dead", "alive", "seki", "chinese", "japanese", "{",
    '{"ko":"SIMPLE"}', '{"visits":5}', '{"visits":[]}', "[" * 50, "good.sgf", "broken.sgf", "empty.sgf", "binary.sgf",
    "missing.sgf", ".", "\ud800", "\u2028", "#", "=", "?", '""', "'", "\\", "%s", "a,b", "b,c3", "c3,d4",
]  # fmt: skip
NOT_FUZZED = {"quit", "printsgf"}
"""printsgf writes files wherever it is told to."""


def make_files(folder: Path) -> None:
    """Write the game records that the lines mention."""
    (folder / "good.sgf").write_text("(;GM[1]SZ[9]KM[6.5];B[ee];W[cc](;B[gg])(;B[cg]))")
    (folder / "broken.sgf").write_text("(;GM[1]SZ[9];B[ee];W[")
    (folder / "empty.sgf").write_text("")
    (folder / "binary.sgf").write_bytes(bytes(range(256)))


def random_line(rng: random.Random) -> bytes:
    """Return one line without its line feed."""
    kind = rng.random()
    if kind < 0.08:
        return rng.randbytes(rng.randrange(60)).replace(b"\n", b" ").replace(b"quit", b"").replace(b"printsgf", b"")
    names = [name for name in COMMANDS.names() if name not in NOT_FUZZED]
    words = [rng.choice(names)]
    if rng.random() < 0.35 and "param" in words[0]:
        words += [rng.choice(list(TABLE))]
    for _ in range(rng.choice([0, 1, 1, 2, 2, 2, 3, 4, 6])):
        pool = rng.choice([NUMBERS, COLORS, COLORS, VERTICES, VERTICES, WORDS])
        words.append(rng.choice(pool))
    if rng.random() < 0.5:
        words.insert(0, str(rng.choice([rng.randrange(10**6), 10**30, 0])))
    line = bytearray(" ".join(words).encode("utf-8", "surrogatepass"))
    if kind > 0.8 and line:
        line = mutate(rng, line)
    if kind > 0.99:
        line += b" " + b"x" * rng.randrange(100_000)
    text = bytes(line).replace(b"\n", b"")
    return b"" if re.search(rb"quit|printsgf", text, re.IGNORECASE) else text


def expected_id(line: bytes) -> str | None:
    """Return the id that the answer must have, "" for none; None where the line holds no command.

    Written down apart from the engine's codec.
    """
    kept = re.sub(rb"[\x00-\x08\x0a-\x1f\x7f]|#.*", b"", line)
    words = re.findall(rb"[^ \t]+", kept)
    if not words:
        return None
    return words[0].decode() if re.fullmatch(rb"[0-9]+", words[0]) else ""


def check(line: bytes, answer: str) -> None:
    """Raise AssertionError where an answer is not what GTP asks for."""
    number = expected_id(line)
    if number is None:
        assert answer == "", f"{line!r}: answer to nothing: {answer!r}"
        return
    match = re.match(r"([=?])([0-9]*)(?: |\n)", answer)
    assert match, f"{line!r}: no answer: {answer[:200]!r}"
    assert match[2] == number, f"{line!r}: wrong id: {answer[:200]!r}"
    assert answer.endswith("\n\n"), f"{line!r}: no end: {answer[-200:]!r}"
    assert "\n\n" not in answer[:-2], f"{line!r}: ends early: {answer[:200]!r}"
    assert "internal error" not in answer, f"{line!r}: {answer[:300]!r}"
    assert match[1] == "=" or answer.count("\n") == 2, f"{line!r}: error of several lines: {answer[:200]!r}"


def run_session(lines: int, seed: int) -> None:
    """Send lines to the handlers; a fresh session now and then, so that no game gets too long."""
    rng = random.Random(seed)
    session = ScriptedSession()
    for i in range(lines):
        if i % 500 == 0:
            session = ScriptedSession()
            session.send("boardsize 5")
        line = random_line(rng)
        check(line, session.send(line, ticks=rng.choice([0, 0, 1])))


def run_engine(lines: int, seed: int, command: list[str]) -> None:
    """Send lines to an engine through pipes, several at once; an analysis ends at the next line."""
    rng = random.Random(seed)
    folder = Path.cwd()
    with GtpProcess(*command, folder=folder) as engine:
        for start in range(0, lines, 20):
            batch = [random_line(rng) for _ in range(min(20, lines - start))]
            engine.write(b"\n".join([*batch, b"424242 boardsize 9", b""]))
            for line in batch:
                if expected_id(line) is not None:
                    check(line, engine.answer() + "\n\n")
            assert engine.answer() == "=424242"
        engine.write("quit\n")
        assert engine.end(20) == 0


@pytest.fixture(autouse=True)
def _records(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    make_files(tmp_path)


def test_handlers() -> None:
    run_session(10_000, seed=20)


@pytest.mark.slow
@pytest.mark.parametrize(("lines", "command"), [(1000, FAKE), (300, ENGINE)], ids=["fake", "yomi"])
def test_process(lines: int, command: str) -> None:
    run_engine(lines, 21, command.split())


def test_the_checker_sees_faults() -> None:
    assert expected_id(b"12 name") == "12"
    assert expected_id(b"name # 12") == ""
    assert expected_id(b" # 12") is None
    for answer in ("", "=13 yomi\n\n", "=12 yomi\n", "=12 a\n\nb\n\n", "?12 internal error: x\n\n"):
        with pytest.raises(AssertionError):
            check(b"12 name", answer)

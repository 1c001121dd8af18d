"""Every reader of files accepts a mutant or raises its documented error; `python -m tests.fuzz` tries more mutants."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from yomi.nets.errors import NetworkError

if not Path("/proc/self/statm").exists():
    pytest.skip("needs Linux, which tells and limits a process's memory", allow_module_level=True)

from tests.fuzz.harness import Reader, fuzz, make_mutant
from tests.fuzz.readers import READERS, isolated

MUTANTS = 300


@pytest.mark.parametrize("name", READERS)
def test_reader(name: str, tmp_path: Path) -> None:
    reader = READERS[name]
    with isolated(tmp_path / "cache"):
        outcome = fuzz(reader, tmp_path / "files", range(int(MUTANTS / reader.cost)))
    assert not outcome.faults, "\n".join(outcome.faults)
    assert outcome.accepted


def _raise(error: Exception) -> None:
    raise error


@pytest.mark.parametrize(
    ("read", "fault"),
    [
        (lambda path: _raise(ValueError("broken")), "ValueError: broken"),
        (lambda path: _raise(NetworkError("")), "an empty message"),
        (lambda path: [path] * (1 << 28), "MemoryError"),
        (lambda path: np.ones(1 << 28), "MemoryError"),
        (lambda path: [None for _ in iter(int, 1)], "more than 0.1 s"),
        (lambda path: np.float32(1.0) / np.float32(0.0), "RuntimeWarning"),
    ],
)
def test_faults_are_seen(read: object, fault: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.fuzz.harness.SECONDS", 0.1)
    calls: list[Path] = []

    def read_mutants(path: Path) -> None:
        calls.append(path)
        if len(calls) > 1:  # the first file is good
            read(path)  # type: ignore[operator]

    outcome = fuzz(Reader("x", read_mutants, (NetworkError,), lambda: {"x.txt": b"1 2 3"}), tmp_path, range(1))
    assert len(outcome.faults) == 1
    assert fault in outcome.faults[0]


@pytest.mark.parametrize("name", ["options", "sparse", "shogi-onnx", "go-part"])
def test_mutants_depend_on_their_numbers_alone(name: str) -> None:
    reader = READERS[name]
    files = dict(reader.files())
    changed = list(files)
    mutants = [make_mutant(files, changed, name, 1, number) for number in range(20)]
    assert mutants[13] == make_mutant(files, changed, name, 1, 13)
    assert len({content for _, content in mutants}) > 15

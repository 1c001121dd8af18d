"""Too little memory: each command says once what is missing."""

import errno
import subprocess
import sys
from pathlib import Path

import pytest

from tests.fakes.session import ScriptedSession
from yomi.engine import machine as address_space
from yomi.engine.go.gtp.codec import COMMANDS
from yomi.engine.machine import memory_fault
from yomi.engine.protocols.session import LoadError

LIMIT = (
    "the address space of a process is limited to {} MiB (ulimit -v): expected 3072 MiB or no limit; raise the limit"
)


@pytest.mark.linux
@pytest.mark.parametrize(
    ("kilobytes", "words", "lines"),
    [
        (100_000, "gtp", "1 boardsize 9\n2 genmove b\n"),
        (300_000, "gtp", "1 boardsize 9\n2 genmove b\n"),
        (300_000, "usi", "usi\nisready\n"),
        (300_000, "analysis", '{"id":"a","moves":[],"rules":"chinese","boardXSize":9,"boardYSize":9}\n'),
        (300_000, "bench signature", ""),
        (300_000, "selfplay go --games 1", ""),
        (700_000, "gtp --evaluator rollouts", "1 boardsize 9\n2 genmove b\n"),
    ],
)
def test_too_little_address_space(kilobytes: int, words: str, lines: str) -> None:
    command = f"ulimit -v {kilobytes} && exec {sys.executable} -m yomi {words}"
    root = Path(__file__).parents[2]
    found = subprocess.run(["sh", "-c", command], input=lines, capture_output=True, text=True, cwd=root, check=False)
    assert "internal error" not in found.stdout + found.stderr
    assert LIMIT.format((kilobytes << 10) >> 20) in found.stderr
    assert found.stderr.count("\n") == 1
    assert found.returncode == 2


@pytest.mark.parametrize(
    ("error", "is_memory"),
    [
        (MemoryError(), True),
        (OSError(errno.ENOMEM, "Cannot allocate memory"), True),
        (RuntimeError("can't start new thread"), True),
        (OSError("Could not find/load shared object file 'libllvmlite.so'"), True),
        (ImportError("libz.so.1: failed to map segment from shared object"), True),
        (ModuleNotFoundError("No module named 'onnx'"), False),
        (FileNotFoundError(errno.ENOENT, "No such file"), False),
        (RuntimeError("out of order"), False),
    ],
)
def test_errors_that_too_little_address_space_causes(
    error: Exception, is_memory: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(address_space, "address_space_limit", lambda: 600 << 20)
    assert (memory_fault(error) or "").startswith(LIMIT.format(600)) == is_memory
    assert (memory_fault(error) is not None) == is_memory


def test_errors_without_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(address_space, "address_space_limit", lambda: None)
    assert memory_fault(ImportError("cannot import name")) is None
    assert memory_fault(MemoryError("Unable to allocate 64.0 MiB")) == (
        "not enough memory: Unable to allocate 64.0 MiB: lower --memory"
    )


def test_a_command_that_cannot_be_imported_ends_the_session(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each further command would fail in the same way."""

    def fail(name: str) -> None:
        raise MemoryError("no room")

    session = ScriptedSession()
    monkeypatch.setattr(COMMANDS, "find", fail)
    with pytest.raises(LoadError, match="not enough memory: no room"):
        session.send("boardsize 9")

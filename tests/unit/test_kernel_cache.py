"""Where compiled kernels are kept, and that whoever compiles them keeps them there."""

from __future__ import annotations

import contextlib
import errno
import io
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from native import jit, warmup
from native.errors import CompileError
from native.jit import cache_directory
from tests.waiting import wait_until


@pytest.mark.parametrize(("name", "folder"), [("YOMI_CACHE_DIR", "cache"), ("XDG_CACHE_HOME", "cache/yomi")])
def test_a_relative_folder_becomes_absolute(
    name: str, folder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("YOMI_CACHE_DIR", raising=False)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv(name, "cache")
    assert cache_directory() == tmp_path / folder / "kernels"


@pytest.mark.parametrize("is_writable", [True, False])
def test_compiling_processes_keep_kernels_where_they_are_read(
    is_writable: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(jit.tempfile, "gettempdir", lambda: str(tmp_path / "temporary"))
    (tmp_path / "temporary").mkdir()
    if not is_writable:
        (tmp_path / "cache").write_text("a file, which is no folder for root either")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("YOMI_CACHE_DIR", "cache")
    directory = cache_directory()
    assert directory.is_dir()
    assert directory.is_relative_to(tmp_path / ("cache" if is_writable else "temporary"))
    assert ("cannot write" in capsys.readouterr().err) is not is_writable

    started: dict[str, Any] = {}
    monkeypatch.setattr(warmup, "CACHE_DIRECTORY", directory)
    monkeypatch.setattr(subprocess, "Popen", lambda command, **how: started.update(how))
    warmup._spawn(("rules",), io.BytesIO())
    (tmp_path / "other").mkdir()
    monkeypatch.chdir(tmp_path / "other")  # as the compiling process begins elsewhere
    monkeypatch.setenv("YOMI_CACHE_DIR", started["env"]["YOMI_CACHE_DIR"])
    assert cache_directory() == directory
    assert not capsys.readouterr().err


@pytest.mark.parametrize("name", ["NUMBA_BOUNDSCHECK", "NUMBA_CPU_NAME", "NUMBA_CPU_FEATURES"])
def test_kernels_of_another_processor_are_kept_apart(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    keys = set()
    for value in ("", "1", "2"):
        monkeypatch.setenv(name, value)
        keys.add(jit.kernel_key.__wrapped__("go"))
    assert len(keys) == 3


@pytest.mark.parametrize("status", [0, 1])
def test_a_compiling_process_may_say_much(status: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script = f"import sys; sys.stderr.write('x' * 200_000 + '\\nthe last line\\n'); sys.exit({status})"
    popen = subprocess.Popen
    monkeypatch.setattr(warmup, "CACHE_DIRECTORY", tmp_path)
    monkeypatch.setattr(subprocess, "Popen", lambda _, **how: popen([sys.executable, "-c", script], **how))
    if status:
        with pytest.raises(RuntimeError, match=r"^compiling failed: the last line$"):
            warmup.compile_all("go", lambda line: None)
    else:
        warmup.compile_all("go", lambda line: None)
    assert warmup.is_compiled("go") == (status == 0)


def test_kernels_of_a_folder_that_cannot_be_written_are_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    own, spare = tmp_path / "cache" / "kernels", tmp_path / "spare"
    (own / "tree-1").mkdir(parents=True)
    for name in ("go-1.complete", "tree-1/a.nbi", "tree-1/a.1.nbc", "tree-1/lock"):
        (own / name).write_text(name)
    spare.mkdir()
    temporary_file = jit.tempfile.TemporaryFile

    def refuse(**how: Any) -> Any:
        if Path(how["dir"]).is_relative_to(own):
            raise OSError(errno.EROFS, "Read-only file system")
        return temporary_file(**how)

    monkeypatch.setattr(jit.tempfile, "TemporaryFile", refuse)
    monkeypatch.setattr(jit, "_temporary_directory", lambda: spare)
    monkeypatch.setenv("YOMI_CACHE_DIR", str(tmp_path / "cache"))
    for _ in range(2):
        directory = cache_directory()
        assert directory == spare / "kernels"
        assert "Read-only file system" in capsys.readouterr().err
        for name in ("go-1.complete", "tree-1/a.nbi", "tree-1/a.1.nbc"):
            assert (directory / name).read_text() == name
        assert not (directory / "tree-1" / "lock").exists()  # is written to, which a link to that folder could not be
    (own / "tree-1" / "a.nbi").unlink()
    (own / "tree-1" / "a.nbi").write_text("new")
    cache_directory()
    assert (spare / "kernels" / "tree-1" / "a.nbi").read_text() == "new"


def test_a_full_disk_is_told_and_kernels_work_nevertheless(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    class Cache:
        cache_path = str(tmp_path / "tree-1")

        def save_overload(self, signature: Any, data: Any) -> None:
            raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(jit, "UNSAVED", [])
    save = jit._saving(Cache())
    save(None, None)
    save(None, None)
    fault = f"{Cache.cache_path}: No space left on device"
    assert capsys.readouterr().err == f"yomi: compiled kernels cannot be kept: {fault}\n"
    assert [fault, fault] == jit.UNSAVED
    monkeypatch.setitem(warmup.GROUPS, "forward", lambda: None)
    with pytest.raises(SystemExit, match=rf"^{fault}: expected room for compiled kernels"):
        warmup.main(["forward"])
    monkeypatch.setattr(jit, "UNSAVED", [])
    monkeypatch.setitem(warmup.GROUPS, "forward", lambda: Cache().save_overload(None, None))
    with pytest.raises(SystemExit, match=r"No space left on device: expected room for compiled kernels"):
        warmup.main(["forward"])


OUTSIDE = {
    "rules.py": """
import numpy as np
from native import game
from native.jit import kernel

POSITION = np.dtype([("number", np.int64)])

@kernel
def policy_index(pos, move, symmetry):
    return pos.number + 1

game.implement(game.policy_index, POSITION, policy_index)
""",
    "tree.py": """
from native import game
from native.jit import kernel

@kernel
def through_the_tree(pos):
    return game.policy_index(pos, 0, 0)
""",
    "caller.py": """
import rules
from native.calls import entry, load, types_of
from native.jit import kernel

@kernel
def directly(pos):
    return rules.policy_index(pos, 0, 0)

TYPE = types_of(rules.np.zeros(1, rules.POSITION))

@entry(TYPE)
def by_address(address, rows):
    (records,) = load(address, TYPE)
    records[0].number = rules.policy_index(records[0], 0, 0)
""",
    "run.py": """
import tree, caller, rules
records = rules.np.zeros(1, rules.POSITION)
print(tree.through_the_tree(records[0]), caller.directly(records[0]), end=" ")
caller.by_address.bind(records).run(1)
print(records[0]["number"])
""",
}


def test_an_edit_of_a_game_outside_this_package_counts(tmp_path: Path) -> None:
    for name, text in OUTSIDE.items():
        (tmp_path / name).write_text(text)
    environment = {**os.environ, "PYTHONPATH": str(jit.SOURCE_ROOT.parent), "YOMI_CACHE_DIR": str(tmp_path / "cache")}
    command = [sys.executable, "-B", str(tmp_path / "run.py")]
    for number in (1, 2):
        (tmp_path / "rules.py").write_text(OUTSIDE["rules.py"].replace("number + 1", f"number + {number}"))
        found = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
        assert found.stdout.split() == [str(number)] * 3
    kept = {path.parent.parent for path in tmp_path.rglob("*.nbi")}
    assert kept == {tmp_path / "cache" / "kernels"}


def test_a_cache_without_room_for_a_mark(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(warmup, "CACHE_DIRECTORY", tmp_path)
    monkeypatch.setattr(warmup, "PROCESSES", {"go": ()})

    def refuse(path: Path) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Path, "touch", refuse)
    with pytest.raises(CompileError, match=r"No space left on device: expected room for compiled kernels"):
        warmup.compile_all("go", lambda line: None)


def test_of_two_starts_at_once_one_compiles(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(warmup, "CACHE_DIRECTORY", tmp_path)
    lines: list[str] = []
    compiled: list[str] = []

    def compile_slowly(game: str, report: Any) -> None:
        wait_until(lambda: bool(lines), 10.0)
        compiled.append(game)
        warmup._mark(game).touch()

    monkeypatch.setattr(warmup, "_compile", compile_slowly)
    threads = [threading.Thread(target=warmup.compile_all, args=("go", lines.append)) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20.0)
    assert compiled == ["go"]
    assert lines == ["another start compiles the engine for go: waiting for it"]


def children_of(process: int) -> list[int]:
    return [int(word) for word in Path(f"/proc/{process}/task/{process}/children").read_text().split()]


def is_alive(process: int) -> bool:
    with contextlib.suppress(FileNotFoundError):
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    return False


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="this system does not list processes in /proc")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_a_start_that_is_ended_leaves_no_process(number: int, tmp_path: Path) -> None:
    script = "from native.warmup import compile_all; compile_all('go', print)"
    environment = {**os.environ, "YOMI_CACHE_DIR": str(tmp_path)}
    children: list[int] = []
    parent = subprocess.Popen([sys.executable, "-c", script], env=environment, stdout=subprocess.DEVNULL)
    try:
        wait_until(lambda: len(children_of(parent.pid)) == 2, 30.0)
        children = children_of(parent.pid)
        wait_until(lambda: len(list(tmp_path.rglob("*.nbc"))) > 0, 60.0)  # they are at work
        parent.send_signal(number)
        parent.wait(10.0)
        wait_until(lambda: not any(is_alive(child) for child in children), 10.0)
    finally:
        parent.kill()
        for child in children:
            with contextlib.suppress(ProcessLookupError):
                os.kill(child, signal.SIGKILL)

"""Where compiled kernels are kept, and that whoever compiles them keeps them there."""

import contextlib
import errno
import importlib
import io
import json
import os
import platform
import re
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from numba.core.caching import IndexDataCacheFile

from tests.waiting import wait_until
from yomi.engine.cli import doctor
from yomi.engine.cli.main import main
from yomi.errors import CompileError
from yomi.native import cache_folder, jit, precompile
from yomi.native.cache_folder import cache_directory
from yomi.native.kernel_groups import GROUPS, NAMES, Group
from yomi.system import IS_WINDOWS


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
    monkeypatch.setattr(cache_folder.tempfile, "gettempdir", lambda: str(tmp_path / "temporary"))
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
    monkeypatch.setattr(precompile, "CACHE_DIRECTORY", directory)
    monkeypatch.setattr(subprocess, "Popen", lambda command, **how: started.update(how))
    precompile._start(precompile.COMMAND, subprocess.PIPE, io.BytesIO(), {})
    (tmp_path / "other").mkdir()
    monkeypatch.chdir(tmp_path / "other")  # as the compiling process begins elsewhere
    monkeypatch.setenv("YOMI_CACHE_DIR", started["env"]["YOMI_CACHE_DIR"])
    assert cache_directory() == directory
    assert not capsys.readouterr().err


@pytest.mark.parametrize("name", ["BOUNDSCHECK", "CPU_NAME", "CPU_FEATURES"])
def test_kernels_of_other_settings_are_kept_apart(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    keys = set()
    for value in ("", "1", "2"):
        monkeypatch.setenv(f"NUMBA_{name}", value)
        monkeypatch.setattr(jit.config, name, value or None)  # numba read the variable when it was imported
        keys.add(jit.kernel_key.__wrapped__("go"))
    assert len(keys) == 3


def key_of_go() -> str:
    return str(jit.kernel_key.__wrapped__("go"))


def test_a_patch_release_of_python_changes_no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    key = key_of_go()
    monkeypatch.setattr(platform, "python_version", lambda: "3.11.99")
    assert key_of_go() == key
    monkeypatch.setattr(sys, "abiflags", "t", raising=False)
    assert key_of_go() != key


def test_keys_contain_the_features_that_numba_compiles_for(monkeypatch: pytest.MonkeyPatch) -> None:
    keys = {}
    for features in ("+avx2,-avx512f", "+avx2,+avx512f", "+avx2,-amx-new"):
        monkeypatch.setattr(jit.codegen, "get_host_cpu_features", lambda features=features: features)
        keys[features] = key_of_go()
    assert keys["+avx2,-avx512f"] == keys["+avx2,-amx-new"] != keys["+avx2,+avx512f"]
    monkeypatch.setattr(jit.llvm, "get_host_cpu_name", lambda: "znver9")
    assert key_of_go() not in keys.values()


def test_files_without_kernels_change_no_key() -> None:
    assert all((jit.SOURCE_ROOT / name).exists() for name in jit.WITHOUT_KERNELS)


needs_modes = pytest.mark.skipif(not hasattr(os, "getuid"), reason="this system has no modes of files")


@needs_modes
@pytest.mark.parametrize("mode", [0o777, 0o702, 0o770])
@pytest.mark.parametrize("place", ["cache", "cache/kernels"])
def test_a_cache_that_others_can_write_is_refused(
    place: str, mode: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cache_folder, "_is_own_group", lambda group: False)
    monkeypatch.setenv("YOMI_CACHE_DIR", str(tmp_path / "cache"))
    (tmp_path / "cache" / "kernels").mkdir(parents=True, mode=0o700)
    (tmp_path / place).chmod(mode)
    with pytest.raises(
        CompileError, match=rf"^other users can write to {tmp_path / place}, .*chmod -R go-w '.*/{place}'"
    ):
        cache_directory()
    (tmp_path / place).chmod(0o755)
    assert cache_directory() == tmp_path / "cache" / "kernels"


@needs_modes
def test_groups_and_shared_parents_that_are_safe(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("YOMI_CACHE_DIR", str(tmp_path / "cache"))
    (tmp_path / "cache" / "kernels").mkdir(parents=True, mode=0o700)
    (tmp_path / "cache").chmod(0o1777)  # as /tmp: nobody can replace what belongs to another
    (tmp_path / "cache" / "kernels").chmod(0o770)
    monkeypatch.setattr(cache_folder, "_is_own_group", lambda group: True)
    assert cache_directory() == tmp_path / "cache" / "kernels"


@needs_modes
def test_a_cache_of_another_user_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if os.getuid() == 0:
        os.chown(tmp_path, 12345, -1)
    else:
        monkeypatch.setattr(os, "getuid", lambda: 12345)
    with pytest.raises(CompileError, match=rf"^{tmp_path} belongs to user \d+: expected a folder of your own"):
        cache_folder.require_private(tmp_path)


@needs_modes
def test_folders_of_kernels_are_private(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jit, "CACHE_DIRECTORY", tmp_path)
    facts = {"numba": "1"}
    cache_folder.make_folder(tmp_path / "tree-1", facts)
    assert (tmp_path / "tree-1").stat().st_mode & 0o777 == 0o700
    assert json.loads((tmp_path / "tree-1" / "facts.json").read_text()) == facts
    assert jit._private_folder.__wrapped__("tree-1") == tmp_path / "tree-1"
    (tmp_path / "tree-1").chmod(0o777)
    with pytest.raises(CompileError, match="other users can write to"):
        jit._private_folder.__wrapped__("tree-1")


@needs_modes
@pytest.mark.parametrize(
    ("words", "handshake", "is_on_stdout"),
    [
        ("setup go", "", False),
        ("gtp", "", False),  # may end before it has read a command
        ("usi", "usiok\n", True),
    ],
)
def test_a_command_refuses_a_shared_cache_in_one_line(
    words: str, handshake: str, is_on_stdout: bool, tmp_path: Path
) -> None:
    (tmp_path / "kernels").mkdir()
    (tmp_path / "kernels").chmod(0o777)
    lines = {"gtp": "name\ngenmove b\n", "usi": "usi\nisready\ngo nodes 1\n"}
    found = subprocess.run(
        [sys.executable, "-m", "yomi", *words.split()],
        env={**os.environ, "YOMI_CACHE_DIR": str(tmp_path)},
        cwd=jit.SOURCE_ROOT.parent,
        input=lines.get(words, ""),
        capture_output=True,
        text=True,
        check=False,
    )
    refusal = f"other users can write to {tmp_path / 'kernels'}"
    assert handshake in found.stdout
    assert (refusal in found.stdout) == is_on_stdout
    assert found.returncode == 2
    assert found.stderr.startswith(f"yomi: error: {refusal}")
    assert found.stderr.count("\n") == 1


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a cache with kernels of many kinds."""
    monkeypatch.setattr(precompile, "CACHE_DIRECTORY", tmp_path)
    monkeypatch.setattr(jit, "CACHE_DIRECTORY", tmp_path)
    for number, (fact, value) in enumerate(STALE):
        folder = tmp_path / f"tree-{number:016x}"
        cache_folder.make_folder(folder, {**jit.kernel_facts("tree"), fact: value} if fact else {})
    cache_folder.make_folder(tmp_path / f"tree-{jit.kernel_key('tree')}", jit.kernel_facts("tree"))
    cache_folder.make_folder(tmp_path / f"others-{7:016x}", jit.kernel_facts("others"))
    (tmp_path / "notes-of-the-user").mkdir()
    for group in NAMES["go"]:
        precompile._write_mark(group)
    (tmp_path / f"shogi-board-{1:016x}.complete").touch()
    return tmp_path


STALE = (
    ("python", "cpython-312"),
    ("numba", "0.67.0"),
    ("processor", "znver9 linux +avx2"),
    ("sources", "1"),
    ("settings", "YOMI_CHECKED=2"),
    ("", ""),
)


def marks_of_go() -> list[str]:
    return [precompile.mark_of(group).name for group in NAMES["go"]]


def test_doctor_lists_kernels(cache: Path) -> None:
    text = "\n".join(line for _, line in doctor.compiled_kernels())
    assert "kernels for go: compiled\n" in text
    assert re.search(r"kernels for shogi: not compiled; .*\n +yomi setup shogi\n", text)
    assert re.search(
        r"\n +0\.\d MB are of another yomi, Python or processor; to remove them:\n +yomi setup --clean$", text
    )


def test_clean_keeps_what_this_yomi_uses(cache: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["setup", "--clean"]) == 0
    kept = {path.name for path in cache.iterdir()}
    used = {f"tree-{jit.kernel_key('tree')}", f"others-{7:016x}", *marks_of_go()}
    assert kept == {*used, f"tree-{4:016x}", "notes-of-the-user"}
    assert f"removed tree-{0:016x}\n" in capsys.readouterr().out
    assert main(["setup", "go", "--clean"]) == 2


def test_clean_all_removes_what_yomi_made_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    cache, spare = tmp_path / "cache", tmp_path / "tmp" / f"yomi-{os.getuid() if hasattr(os, 'getuid') else 0}"
    monkeypatch.setenv("YOMI_CACHE_DIR", str(cache))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "tmp"))
    outside = tmp_path / "outside"
    for folder in (cache / "kernels" / "tree-1", cache / "nets", spare / "kernels", outside):
        folder.mkdir(parents=True)
        (folder / "file").write_bytes(bytes(100_000))
    (cache / "tuning").symlink_to(outside)
    (cache / "thesis.odt").touch()
    assert main(["setup", "--clean", "all"]) == 0
    text = capsys.readouterr().out
    assert [path.name for path in cache.iterdir()] == ["thesis.odt"]
    assert (outside / "file").exists()
    assert not spare.exists()
    assert f"removed {cache / 'kernels'}\n" in text
    assert f"kept in {cache}: thesis.odt\n" in text
    assert text.endswith("0.3 MB removed\n")
    (cache / "thesis.odt").unlink()
    assert main(["setup", "--clean", "all"]) == 0
    assert not cache.exists()
    assert main(["setup", "--clean", "everything"]) == 2


def test_clean_all_spares_a_checkout_that_is_the_cache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("YOMI_CACHE_DIR", str(tmp_path))
    (tmp_path / "pyproject.toml").touch()
    (tmp_path / "nets").mkdir()
    assert main(["setup", "--clean", "all"]) == 2
    assert "expected a folder for caches alone" in capsys.readouterr().err
    assert (tmp_path / "nets").is_dir()


@pytest.mark.parametrize(("status", "reason"), [(1, "the last line"), (0, "no kernels of tree-gather, .* found")])
def test_a_compiling_process_may_say_much(
    status: int, reason: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = f"import sys; sys.stderr.write('x' * 200_000 + '\\nthe last line\\n'); sys.exit({status})"
    popen = subprocess.Popen

    def ended(_: Any, **how: Any) -> Any:
        """Return a process that has ended before anything is written to it."""
        process = popen([sys.executable, "-c", script], **how)
        process.wait()
        return process

    monkeypatch.setattr(precompile, "CACHE_DIRECTORY", tmp_path)
    monkeypatch.setattr(subprocess, "Popen", ended)
    with pytest.raises(RuntimeError, match=f"^compiling failed: {reason}"):
        precompile.compile_names(["go"], lambda line: None)
    assert not precompile.is_compiled("go")


@pytest.mark.parametrize("links", [True, False])
def test_kernels_of_a_folder_that_cannot_be_written_are_used(
    links: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    own, spare = tmp_path / "cache" / "kernels", tmp_path / "spare"
    (own / "tree-1").mkdir(parents=True)
    for name in ("go-1.complete", "tree-1/a.nbi", "tree-1/a.1.nbc", "tree-1/lock"):
        (own / name).write_text(name)
    spare.mkdir()
    temporary_file = cache_folder.tempfile.TemporaryFile

    def refuse(**how: Any) -> Any:
        if Path(how["dir"]).is_relative_to(own):
            raise OSError(errno.EROFS, "Read-only file system")
        return temporary_file(**how)

    monkeypatch.setattr(cache_folder.tempfile, "TemporaryFile", refuse)
    monkeypatch.setattr(cache_folder, "_temporary_directory", lambda: spare)
    links = links and not IS_WINDOWS
    monkeypatch.setattr(cache_folder, "IS_WINDOWS", not links)
    monkeypatch.setenv("YOMI_CACHE_DIR", str(tmp_path / "cache"))
    for _ in range(2):
        directory = cache_directory()
        assert directory == spare / "kernels"
        assert "Read-only file system" in capsys.readouterr().err
        for name in ("go-1.complete", "tree-1/a.nbi", "tree-1/a.1.nbc"):
            assert (directory / name).read_text() == name
            assert (directory / name).is_symlink() == links
        assert not (directory / "tree-1" / "lock").exists()  # is written to, which a link to that folder could not be
    (own / "tree-1" / "a.nbi").unlink()
    (own / "tree-1" / "a.nbi").write_text("new")
    cache_directory()
    assert (spare / "kernels" / "tree-1" / "a.nbi").read_text() == ("new" if links else "tree-1/a.nbi")


@pytest.mark.slow
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
    monkeypatch.setattr(precompile, "_read_groups", lambda: ["forward"])
    monkeypatch.setitem(GROUPS, "forward", Group(lambda: None, ("forward",), 1.0))
    with pytest.raises(SystemExit, match=rf"^{re.escape(fault)}: expected room for compiled kernels"):
        precompile.main([])
    monkeypatch.setattr(jit, "UNSAVED", [])
    monkeypatch.setitem(GROUPS, "forward", Group(lambda: Cache().save_overload(None, None), (), 1.0))
    with pytest.raises(SystemExit, match=r"No space left on device: expected room for compiled kernels"):
        precompile.main([])


OUTSIDE = {
    "rules.py": """
import numpy as np
from yomi.native import game
from yomi.native.jit import kernel

POSITION = np.dtype([("number", np.int64)])

@kernel
def policy_index(pos, move, symmetry):
    return pos.number + 1

game.implement(game.policy_index, POSITION, policy_index)
""",
    "caller.py": """
import rules
from yomi.native.bound_kernels import entry, load, types_of
from yomi.native.jit import kernel

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
import caller, rules
from yomi.native.game_calls import index_moves
records, moves = rules.np.zeros(1, rules.POSITION), rules.np.zeros((1, 1), rules.np.uint16)
index_moves(records, moves, rules.np.ones(1, rules.np.int64), moves)
print(moves[0, 0], caller.directly(records[0]), end=" ")
caller.by_address.bind(records).run(1)
print(records[0]["number"])
""",
}


@pytest.mark.slow
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
    monkeypatch.setattr(precompile, "CACHE_DIRECTORY", tmp_path)
    monkeypatch.setattr(precompile, "_run", lambda groups, display: precompile._write_mark(groups[0]))

    def refuse(path: Path, text: str, encoding: str) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Path, "write_text", refuse)
    with pytest.raises(CompileError, match=r"No space left on device: expected room for compiled kernels"):
        precompile.compile_names(["go"], lambda line: None)


def test_of_two_starts_at_once_one_compiles(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(precompile, "CACHE_DIRECTORY", tmp_path)
    lines: list[str] = []
    compiled: list[str] = []

    def compile_slowly(what: str, groups: list[str], report: Any) -> None:
        wait_until(lambda: bool(lines), 300.0)
        compiled.append(what)
        for group in groups:
            precompile.mark_of(group).touch()

    monkeypatch.setattr(precompile, "_compile", compile_slowly)
    threads = [threading.Thread(target=precompile.compile_names, args=(["go"], lines.append)) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(300.0)
    assert compiled == ["go"]
    assert lines == ["another start compiles the engine for go: waiting for it"]


def children_of(process: int) -> list[int]:
    return [int(word) for word in Path(f"/proc/{process}/task/{process}/children").read_text().split()]


def is_alive(process: int) -> bool:
    with contextlib.suppress(FileNotFoundError):
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    return False


@pytest.mark.slow
@pytest.mark.linux
@pytest.mark.parametrize("number", [signal.SIGTERM, 9])
def test_a_start_that_is_ended_leaves_no_process(number: int, tmp_path: Path) -> None:
    script = "from yomi.native.precompile import compile_names; compile_names(['go'], print)"
    environment = {**os.environ, "YOMI_CACHE_DIR": str(tmp_path)}
    children: list[int] = []
    parent = subprocess.Popen([sys.executable, "-c", script], env=environment, stdout=subprocess.DEVNULL)
    try:
        wait_until(lambda: len(children_of(parent.pid)) == 2, 300.0)
        children = children_of(parent.pid)
        wait_until(lambda: len(list(tmp_path.rglob("*.nbc"))) > 0, 300.0)  # they are at work
        parent.send_signal(number)
        parent.wait(300.0)
        wait_until(lambda: not any(is_alive(child) for child in children), 300.0)
    finally:
        parent.kill()
        for child in children:
            with contextlib.suppress(ProcessLookupError):
                os.kill(child, signal.SIGKILL)


def test_an_index_with_types_of_another_version_is_read_as_empty(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A version of yomi with a module that this one lacks: indexes of kernels name types by their modules.
    (tmp_path / "removed_later.py").write_text("class Table: pass\n")
    monkeypatch.syspath_prepend(tmp_path)
    removed = importlib.import_module("removed_later")
    index = IndexDataCacheFile(str(tmp_path), "kernel", "stamp")
    jit._forget_other_versions(index)
    index.save(("key", removed.Table), "code")
    assert index.load(("key", removed.Table)) == "code"
    monkeypatch.delitem(sys.modules, "removed_later")
    (tmp_path / "removed_later.py").unlink()
    importlib.invalidate_caches()
    assert index.load("key") is None
    index.save("key", "new code")
    assert index.load("key") == "new code"

"""Where compiled kernels are kept, and that whoever compiles them keeps them there."""

from __future__ import annotations

import io
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from native import jit, warmup
from native.jit import cache_directory


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

"""What is said of a mistake in a kernel: by numba where it knows the line, by us where it does not."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from yomi.native import precompile as warmup

LINE = "    total = half(word.number, 2.0)"
KERNELS = f"""
import numpy as np
from yomi.native.jit import inlined, kernel

@inlined
def half(number, share):
    return number / share

@kernel
def inner(word):
{LINE}
    return total

@kernel
def outer(words):
    return inner(words[0])

def compile_outer():
    outer(np.zeros(1, np.dtype([("number", np.float64)])))
"""
RUN = """
from yomi.native import precompile as warmup
from yomi.native.kernel_groups import Group

def compile_edited():
    from yomi.native.edited import compile_outer
    compile_outer()

warmup.GROUPS["edited"] = Group(compile_edited, (), 1.0)
warmup.main([warmup.CHECK, "edited"])
"""


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("    total = half(word.number, 2.0)", ""),
        (LINE.replace("half", "hafl"), "name 'hafl' is not defined"),
        (LINE.replace(", 2.0", ""), "missing a required argument: 'share'"),
        (LINE.replace("number", "numbre"), "KeyError: 'numbre'"),
        (LINE.replace("number", "number[0]"), "No implementation of function"),
        (LINE.replace("= half", "= = half"), "SyntaxError"),
    ],
)
def test_the_line_that_was_edited_is_named(line: str, said: str, tmp_path: Path) -> None:
    ignored = shutil.ignore_patterns("__pycache__", "go", "shogi", "tree", "forward", "datasets", "cuda")
    package = tmp_path / "yomi"
    shutil.copytree(warmup.ROOT / "native", package / "native", ignore=ignored)
    for name in ("__init__.py", "children.py", "errors.py", "language.py"):
        shutil.copy(warmup.ROOT / "yomi" / name, package)
    source = package / "native" / "edited.py"
    text = KERNELS.replace(LINE, line)
    source.write_text(text)
    environment = {**os.environ, "PYTHONPATH": str(tmp_path), "YOMI_CACHE_DIR": str(tmp_path / "cache")}
    command = [sys.executable, "-c", RUN]
    found = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    if not said:
        assert (found.returncode, found.stderr) == (0, "")
        return
    assert found.returncode == 1
    number = text[: text.index(line)].count("\n") + 1
    assert found.stderr.startswith(f"{warmup.MISTAKE}{source}:{number}: {line.strip()}\n"), found.stderr
    assert said in found.stderr


def test_one_mistake_ends_all_processes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    failing = f"raise SystemExit('noise\\n{warmup.MISTAKE}board.py:7: x = y\\nNameError: y')"
    scripts = iter(["import time; time.sleep(600)", failing])
    popen = subprocess.Popen
    started: list[subprocess.Popen[bytes]] = []

    def start(_: list[str], **how: object) -> subprocess.Popen[bytes]:
        started.append(popen([sys.executable, "-c", next(scripts)], **how))  # type: ignore[call-overload]
        return started[-1]

    monkeypatch.setattr(warmup, "CACHE_DIRECTORY", tmp_path)
    monkeypatch.setattr(subprocess, "Popen", start)
    begin = time.monotonic()
    with pytest.raises(RuntimeError, match=r"^compiling failed: board.py:7: x = y\nNameError: y$"):
        warmup.compile_names(["go"], lambda line: None)
    assert time.monotonic() - begin < 60
    assert all(process.poll() is not None for process in started)

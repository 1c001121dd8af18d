"""Differences between operating systems: command lines, patience with open files, processes and their children."""

import errno
import io
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from yomi import children, system
from yomi.engine.protocols import streams
from yomi.library.analysis import safe_children
from yomi.native import precompile


def test_command_lines_keep_backslashes_of_windows() -> None:
    line = r'"C:\Program Files\gnugo.exe" --mode gtp yomi:net=C:\nets\x.bin.gz # 1'
    words = [r"C:\Program Files\gnugo.exe", "--mode", "gtp", r"yomi:net=C:\nets\x.bin.gz", "#", "1"]
    assert system.split_command(line, escapes=False) == words
    assert system.split_command(r"/opt/gnu\ go 'a b'", escapes=True) == ["/opt/gnu go", "a b"]
    with pytest.raises(ValueError, match="quotation"):
        system.split_command('"a', escapes=False)


def test_a_file_that_others_have_open_is_tried_again(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    source, target, tries = tmp_path / "new", tmp_path / "old", 0

    def rename(source: Path, target: Path) -> None:
        nonlocal tries
        tries += 1
        if tries < 3:
            raise PermissionError
        source.rename(target)

    monkeypatch.setattr(os, "replace", rename)
    source.write_text("new")
    monkeypatch.setattr(system, "IS_WINDOWS", False)
    with pytest.raises(PermissionError):
        system.replace(source, target)
    monkeypatch.setattr(system, "IS_WINDOWS", True)
    system.replace(source, target)
    assert (tries, target.read_text()) == (3, "new")


def test_the_environment_of_children_leaves_other_variables_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("YOMI_TEST", "before")
    monkeypatch.delenv(children.VARIABLE, raising=False)
    with safe_children():
        os.environ["YOMI_TEST"] = "changed by the user's function"
        assert os.environ[children.VARIABLE] == children.MARK
    assert os.environ["YOMI_TEST"] == "changed by the user's function"
    assert children.VARIABLE not in os.environ


def test_a_program_ends_with_its_children() -> None:
    child = "import sys, time; print('ready', flush=True); time.sleep(60)"
    parent = f"import subprocess, sys, time; subprocess.Popen([sys.executable, '-c', {child!r}]); time.sleep(60)"
    process = subprocess.Popen([sys.executable, "-c", parent], stdout=subprocess.PIPE, **system.OWN_GROUP)
    family = system.Family(process)
    assert process.stdout is not None
    assert process.stdout.readline().strip() == b"ready"
    family.kill()
    assert process.stdout.read() == b""  # the pipe is closed: the child is gone, too
    process.stdout.close()


def closed_pipe() -> io.FileIO:
    """Return a pipe without a reader that fails as Windows' pipes do: with EINVAL."""
    if hasattr(os, "eventfd"):
        return io.FileIO(os.eventfd(0), "wb")  # Linux refuses a short write to it with this error
    reader, writer = os.pipe()
    os.close(reader)
    return io.FileIO(writer, "wb")


def test_a_closed_pipe_of_windows_is_a_reader_that_is_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streams, "CLOSED_PIPE", (errno.EPIPE, errno.EINVAL))
    with closed_pipe() as pipe, pytest.raises(BrokenPipeError):
        streams.CheckedStdout(pipe.fileno(), "wb", closefd=False).write(b"a")


def test_a_compiler_that_has_failed_takes_no_more_groups() -> None:
    waiting = precompile.Waiting(["tree"])
    with closed_pipe() as pipe:
        failed: Any = SimpleNamespace(stdin=pipe, stdout=io.BytesIO())
        precompile._feed(failed, waiting, precompile.Progress({"tree": 1.0}, 1))
    assert waiting.take(None) is None

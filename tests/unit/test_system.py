"""Differences between operating systems: command lines, patience with open files, processes and their children."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from yomi import system


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

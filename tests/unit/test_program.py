"""The programs of a folder with its own Python, and the files of packages."""

import io
import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tests import build_program
from yomi import __version__

PACKAGING = build_program.ROOT / "packaging"


@pytest.mark.skipif(sys.platform == "win32", reason="the programs are scripts of a POSIX shell")
def test_a_program_finds_its_python_from_everywhere(tmp_path: Path) -> None:
    folder = tmp_path / "a folder"
    python = folder / "python" / "bin" / "python9"
    python.parent.mkdir(parents=True)
    python.write_text(f'#!/bin/sh\nshift 2\nexec "{sys.executable}" -c "print(__import__(\'sys\').argv[1:])" "$@"\n')
    program = folder / "yomi"
    program.write_text(build_program.SCRIPT.format(python="python9", name="yomi", function="main"))
    for path in (python, program):
        path.chmod(0o755)
    link = tmp_path / "link"
    link.symlink_to(program)
    ran = subprocess.run([link, "gtp", "a b"], cwd=os.sep, capture_output=True, text=True, check=True)
    assert "'gtp', 'a b'" in ran.stdout


def test_a_windows_launcher_starts_the_python_beside_it() -> None:
    program = build_program.launcher("yomi-usi", "main_usi")
    assert program.startswith(b"MZ")
    with zipfile.ZipFile(io.BytesIO(program)) as archive:
        text = archive.read("__main__.py").decode()
        assert "import main_usi" in text
        assert compile(text, "__main__.py", "exec")
        first = min(each.header_offset for each in archive.infolist())
    assert program[:first].endswith(b"#!<launcher_dir>\\python\\python.exe\n")


def test_a_windows_python_is_copied_with_its_own_paths_alone(tmp_path: Path) -> None:
    used = ("python.exe", "python311.dll", "python311.zip", "DLLs/_ssl.pyd", "Lib/json/tool.py")
    embeddable = ("_socket.pyd", "libffi-8.dll", "sqlite3.dll")
    unused = ("python311._pth", "Lib/site-packages/other.py", "Lib/test/a.py", "Scripts/pip.exe", "Doc/a.chm")
    for name in (*used, *embeddable, *unused):
        path = tmp_path / "from" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    python, library = build_program.copy_windows_python(tmp_path / "from", tmp_path / "to")
    assert (python, library) == (tmp_path / "to" / "python.exe", tmp_path / "to" / "Lib")
    build_program.write_paths(tmp_path / "to")
    found = {path.relative_to(tmp_path / "to").as_posix() for path in (tmp_path / "to").rglob("*") if path.is_file()}
    assert found == {*used, *(f"DLLs/{name}" for name in embeddable), "python311._pth"}
    lines = (tmp_path / "to" / "python311._pth").read_text().splitlines()
    assert lines == ["python311.zip", ".", "DLLs", "Lib", "Lib/site-packages"]


def test_the_programs_are_the_commands() -> None:
    text = (build_program.ROOT / "pyproject.toml").read_text("utf-8")
    for name, function in build_program.PROGRAMS.items():
        assert f'\n{name} = "yomi.__main__:{function}"' in text


def test_recipes_have_this_version() -> None:
    for name in ("conda/recipe.yaml", "homebrew/yomi.rb"):
        found = re.findall(r"(?:version: \"|yomi_engine-)(\d+\.\d+\.\d+)", (PACKAGING / name).read_text("utf-8"))
        assert set(found) == {__version__}, name

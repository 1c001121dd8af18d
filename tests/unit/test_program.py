"""The programs of a folder with its own Python, and the files of packages."""

import os
import re
import subprocess
import sys
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


def test_the_programs_are_the_commands() -> None:
    text = (build_program.ROOT / "pyproject.toml").read_text("utf-8")
    for name, function in build_program.PROGRAMS.items():
        assert f'\n{name} = "yomi.__main__:{function}"' in text


def test_recipes_have_this_version() -> None:
    for name in ("conda/recipe.yaml", "homebrew/yomi.rb"):
        found = re.findall(r"(?:version: \"|yomi_engine-)(\d+\.\d+\.\d+)", (PACKAGING / name).read_text("utf-8"))
        assert set(found) == {__version__}, name

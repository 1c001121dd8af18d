"""yomi takes one import name: packages of a user may have the names of yomi's own packages."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.process.engine_process import ROOT

NAMES = ("engine", "native", "nets", "bench")
OF_YOMI = ("yomi.engine.color", "yomi.native.errors", "yomi.nets.errors", "yomi.bench.flags")
SCRIPT = """
import importlib, sys
path, modules = list(sys.path), set(sys.modules)
import yomi
assert set(sys.modules) - modules == {"yomi"}, "import yomi imports more"
del sys.modules["yomi"], yomi
for name in sys.argv[1:]:
    importlib.import_module(name)
assert sys.path == path, "yomi changed sys.path"
for name in ("engine", "native", "nets", "bench"):
    assert sys.modules[name].OWNER == "user"
    assert not hasattr(sys.modules[f"yomi.{name}"], "OWNER")
    print(sys.modules[f"yomi.{name}"].__file__)
print(sys.modules["yomi"].__version__)
"""


@pytest.fixture(scope="module")
def script(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a user's script, beside packages that have the names of yomi's."""
    folder = tmp_path_factory.mktemp("user")
    for name in NAMES:
        (folder / name).mkdir()
        (folder / name / "__init__.py").write_text("OWNER = 'user'\n")
    (folder / "script.py").write_text(SCRIPT)
    return folder / "script.py"


def run(script: Path, home: Path, names: list[str]) -> list[str]:
    """Run a user's script with yomi from `home`; return its lines."""
    command = [sys.executable, "-B", str(script), *names]
    environment = os.environ | {"PYTHONPATH": str(home)}
    found = subprocess.run(command, cwd=script.parent, env=environment, capture_output=True, text=True, check=False)
    assert found.returncode == 0, found.stderr
    return found.stdout.splitlines()


@pytest.mark.parametrize("groups", list(itertools.permutations([("yomi",), OF_YOMI, NAMES])))
def test_packages_of_a_user_are_beside_yomi_in_any_order(groups: tuple[tuple[str, ...], ...], script: Path) -> None:
    *files, version = run(script, ROOT, [name for group in groups for name in group])
    assert files == [str(ROOT / "yomi" / name / "__init__.py") for name in NAMES]
    assert f'version = "{version}"' in (ROOT / "pyproject.toml").read_text(encoding="utf-8")


def test_a_checkout_without_links(script: Path, tmp_path: Path) -> None:
    (tmp_path / "yomi").mkdir()
    for path in (ROOT / "yomi").glob("*.py"):
        (tmp_path / "yomi" / path.name).write_text(path.read_text(encoding="utf-8"))
    for name in NAMES:
        (tmp_path / "yomi" / name).write_text(f"../{name}")  # git writes such files on Windows
        (tmp_path / name).symlink_to(ROOT / name)
    files = run(script, tmp_path, [*NAMES, *OF_YOMI])[:-1]
    assert files == [str(tmp_path / name / "__init__.py") for name in NAMES]

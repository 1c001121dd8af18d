"""yomi takes one import name: packages of a user may have the names of yomi's own packages."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterable
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

from tests.process.engine_process import ROOT
from yomi import children
from yomi.engine.cli import main as cli

NAMES = ("engine", "native", "nets", "bench")
OF_YOMI = ("yomi.engine.color", "yomi.native.cache_folder", "yomi.nets.errors", "yomi.bench.flags")
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


@pytest.mark.slow
# yomi's modules import yomi first: the other orders of three groups repeat these.
@pytest.mark.parametrize("groups", [(("yomi",), NAMES, OF_YOMI), (OF_YOMI, NAMES), (NAMES, OF_YOMI)])
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


GAME = "(;SZ[5]KM[7]RU[chinese];B[cc];W[bb];B[cb])"
COMMANDS = {  # each command, and words with which it soon ends
    "play": "go --size 5 --visits 2 --color black",
    "review": "game.sgf --visits 2",
    "serve": "--host 256.0.0.1",
    "selfplay": "shogi --games 1 --max-moves 2 --visits 2 --evaluator material --out games-played",
    "gtp": "--size 5 --visits 2",
    "usi": "",
    "analysis": "",
    "cgos": "absent.toml",
    "floodgate": "absent.toml",
    "match": "go yomi:evaluator=rollouts yomi:visits=3,evaluator=rollouts --visits 2 --size 5 --games 1 --out match",
    "duel": "go --size 5 --games 2 --visits 2 --second visits=3 --processes 2 --evaluator rollouts --out duel",
    "tune": "go --parameter absent",
    "rate": "game.sgf",
    "merge": "absent --out merged",
    "status": "absent",
    "bench": "absent",
    "net": "info yomi-go-b6c96",
    "dataset": "make games --out rows --teacher yomi-go-b6c96",
    "learn": "status absent",
    "train": "absent.toml",
    "setup": "go",
    "config": "show",
    "completion": "bash",
    "doctor": "",
}


def poison(folder: Path, names: Iterable[str]) -> None:
    for name in filter(str.isidentifier, names):
        (folder / f"{name}.py").write_text("open(f'imported-{__name__}', 'w')\n")


@pytest.fixture(scope="module")
def poisoned(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a file for each module of Python and of the installed packages. Each reports its import."""
    folder = tmp_path_factory.mktemp("poisoned")
    poison(folder, {*sys.stdlib_module_names, *packages_distributions()} - {"__main__"})
    (folder / "games").mkdir()
    for path in (folder / "game.sgf", folder / "games" / "game.sgf"):
        path.write_text(GAME)
    return folder


def test_the_poisoned_folder_has_every_command() -> None:
    assert set(COMMANDS) == set(cli.COMMANDS)


@pytest.mark.slow
@pytest.mark.parametrize("command", COMMANDS)
def test_commands_import_nothing_from_the_current_folder(command: str, poisoned: Path, tmp_path: Path) -> None:
    script = tmp_path / "yomi-command"  # as an installer writes it
    script.write_text("import sys\nfrom yomi.__main__ import main\nif __name__ == '__main__':\n    sys.exit(main())\n")
    words = [sys.executable, str(script), command, *COMMANDS[command].split()]
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    found = subprocess.run(words, cwd=poisoned, env=environment, input="quit\n", capture_output=True, text=True)
    assert not [path.name for path in poisoned.glob("imported-*")], found.stderr
    assert "Traceback" not in found.stderr


def test_python_m_imports_nothing_from_the_current_folder(tmp_path: Path) -> None:
    # Python itself imports some modules before yomi's first line.
    early = subprocess.run(
        [sys.executable, "-c", "import runpy, sys; print(*sys.modules)"], capture_output=True, text=True
    )
    names = {*sys.stdlib_module_names, *packages_distributions()} - {*early.stdout.split(), "yomi", "__main__"}
    poison(tmp_path, names)
    words = [sys.executable, "-m", "yomi", "completion", "bash"]  # imports the modules of all commands
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    found = subprocess.run(words, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert not list(tmp_path.glob("imported-*")), found.stderr
    assert "Traceback" not in found.stderr


def test_processes_import_the_same_yomi(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(children.VARIABLE, children.MARK)
    monkeypatch.delenv("PYTHONPATH", raising=False)
    monkeypatch.setattr(sys, "path", [str(ROOT), str(ROOT.parent)])  # a checkout that is not installed
    assert children.environment()["PYTHONPATH"] == str(ROOT)
    assert children.environment()[children.VARIABLE]
    assert children.VARIABLE not in children.foreign_environment()  # its script may import modules beside it
    monkeypatch.setattr(sys, "path", ["/home/someone", str(ROOT)])
    assert "PYTHONPATH" not in children.environment()

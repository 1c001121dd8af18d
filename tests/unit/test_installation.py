"""What says how to install what is missing: in whichever way yomi came here, and that playing needs none of it."""

import importlib.metadata
import os
import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tests.contract.networks import load_go, load_shogi
from tests.looping import looped
from yomi.engine.evaluators.base import EvaluatorError
from yomi.engine.evaluators.devices import find_package_fault
from yomi.nets import installation
from yomi.nets.errors import NetworkError
from yomi.nets.installation import extra_command, missing_line, pip_command
from yomi.nets.load import open_file, prepare
from yomi.nets.models import default_network

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
NOT_TO_PLAY = ("onnx", "onnxruntime", "torch", "matplotlib", "tensorrt", "pycuda")
BLOCKED = f"import sys; sys.modules.update(dict.fromkeys({NOT_TO_PLAY}))"


def test_playing_installs_nothing_of_the_extras() -> None:
    names = {re.split(r"[\[<>=]", line)[0] for line in PROJECT["dependencies"]}
    assert names.isdisjoint(NOT_TO_PLAY), names


@looped("extra", PROJECT["optional-dependencies"])
def test_hints_name_packages_and_not_yomi(extra: str) -> None:
    words = shlex.split(extra_command(extra))
    assert words[words.index("install") + 1 :] == PROJECT["optional-dependencies"][extra]


@pytest.mark.parametrize(("suffix", "cuda"), [("", "13"), ("12", "12")])
def test_a_gpu_has_one_set_of_packages_for_each_cuda(suffix: str, cuda: str) -> None:
    """TensorRT's version is what onnxruntime's provider is linked to (libnvinfer.so.10, from 10.14.1 on)."""
    extras = PROJECT["optional-dependencies"]
    through_tensorrt = [*extras[f"cuda{suffix}"], f"tensorrt-cu{cuda}>=10.14.1.48,<11"]
    assert extras[f"tensorrt{suffix}"] == through_tensorrt
    assert all(re.fullmatch(r"onnx>=.*|onnxruntime-gpu\[cuda,cudnn\]~=\d+\.\d+\.\d+", line) for line in extras["cuda"])


def test_hints_where_yomi_was_installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = ["numpy>=1.26", "torch>=2.6; extra == 'train'", "onnx>=1.18 ; extra == 'train'", "x; extra == 'training'"]
    monkeypatch.setattr(installation, "ROOT", tmp_path)  # as in site-packages, where no pyproject.toml is
    monkeypatch.setattr(importlib.metadata, "requires", lambda name: lines)
    assert extra_command("train") == pip_command("install", "torch>=2.6", "onnx>=1.18")


@pytest.mark.linux  # the programs of the test have no .exe
def test_hints_are_for_the_environment_that_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    python = tmp_path / "with space" / "python3"
    python.parent.mkdir()
    python.symlink_to(sys.executable)
    monkeypatch.setattr(sys, "executable", str(python))
    assert shlex.split(pip_command("install", "torch>=2.6")) == [str(python), *["-m", "pip", "install", "torch>=2.6"]]
    monkeypatch.setenv("PATH", f"{python.parent}{os.pathsep}{os.environ['PATH']}")
    assert pip_command("install", "torch>=2.6") == 'python3 -m pip install "torch>=2.6"'
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert shlex.split(pip_command("install", "x")) == ["uv", "pip", "install", "--python", str(python), "x"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "commands", "answer"),
    [
        (["gtp", "--size", "9", "--visits", "8"], "genmove b\nquit\n", "= "),
        (["usi"], "isready\nposition startpos\ngo nodes 8\nquit\n", "bestmove "),
    ],
)
def test_both_games_are_played_without_what_the_extras_bring(words: list[str], commands: str, answer: str) -> None:
    code = f"{BLOCKED}; from yomi.engine.cli.main import main; sys.exit(main({words}))"
    found = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, input=commands, capture_output=True, text=True, check=True
    )
    assert any(line.startswith(answer) for line in found.stdout.splitlines()), found.stderr


def test_what_needs_onnxruntime_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in NOT_TO_PLAY:
        monkeypatch.setitem(sys.modules, name, None)
    go, shogi = default_network("go"), default_network("shogi")
    wanted = re.escape(missing_line("onnxruntime", "own kernels do not compute"))
    with pytest.raises(EvaluatorError, match=wanted):
        load_go(go, 9, backend="onnx")
    with pytest.raises(EvaluatorError, match=wanted):
        load_shogi(shogi, backend="onnx")


def test_what_needs_onnx_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(NetworkError, match="conversion to ONNX needs onnx, which is not installed: "):
        prepare(open_file(default_network("go")), 9, tmp_path)


def test_a_gpu_needs_one_command_where_no_onnxruntime_is(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in NOT_TO_PLAY:
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.setattr(importlib.metadata, "distributions", list)
    find_package_fault.cache_clear()
    cuda, tensorrt = find_package_fault("cuda"), find_package_fault("tensorrt")
    find_package_fault.cache_clear()
    assert cuda is not None
    assert cuda.remedy == extra_command("cuda")
    assert tensorrt is not None
    assert tensorrt.remedy == extra_command("tensorrt")


def test_classifiers_name_the_versions_of_python() -> None:
    low, high = (int(text) for text in re.findall(r"3\.(\d+)", PROJECT["requires-python"]))
    found = [text.rpartition(".")[2] for text in PROJECT["classifiers"] if re.search(r":: 3\.\d+$", text)]
    assert found == [str(minor) for minor in range(low, high)]


def test_a_wheel_has_each_package_once() -> None:
    build = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["build"]
    # A list of the target replaces the list of all targets. Without links a checkout has small files in their place.
    links = {f"/{link}" for link in build["targets"]["wheel"]["sources"].values() if (ROOT / link).exists()}
    assert links, "expected a checkout"
    assert links <= set(build["targets"]["wheel"].get("exclude", build["exclude"]))


def test_every_environment_variable_is_documented() -> None:
    documented = (ROOT / "docs/reference/environment.md").read_text(encoding="utf-8")
    pattern = re.compile(r"(?:environ(?:\.get\(|\.setdefault\(|\[)|FLAGS = \()(\"[A-Z_]+\"(?:, \"[A-Z_]+\")*)")
    found: set[str] = set()
    for folder in ("engine", "native", "nets", "yomi", "bench"):
        for path in (ROOT / folder).rglob("*.py"):
            for names in pattern.findall(path.read_text(encoding="utf-8")):
                found.update(re.findall("[A-Z_]+", names))
    assert {"YOMI_CACHE_DIR", "YOMI_CHECKED", "XDG_CONFIG_HOME", "NO_COLOR"} <= found
    set_by_yomi = {"CUDA_VISIBLE_DEVICES", "PYTHONPATH", "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER", "RAY_USAGE_STATS_ENABLED"}
    assert {name for name in found - set_by_yomi if f"`{name}" not in documented} == set()

"""Kernels for levels of processors, which a wheel may bring, and kernels that are parts of others."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numba
import pytest

from tests import build_kernels
from yomi.errors import CompileError
from yomi.native import jit, levels, precompile


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder of an installation with kernels for two levels, both of which this processor has."""
    features = {feature: True for level in levels.LEVELS.values() for feature in level.split(",")}
    monkeypatch.setattr(levels.llvm, "get_host_cpu_features", lambda: features)
    monkeypatch.setattr(levels.platform, "machine", lambda: "x86_64")
    monkeypatch.setattr(levels, "COMPILED", tmp_path / "compiled")
    for name in (levels.SETTING, "NUMBA_CPU_NAME", "NUMBA_CPU_FEATURES"):
        monkeypatch.delenv(name, raising=False)
    facts = {"python": sys.implementation.cache_tag, "numba": numba.__version__}
    for level in ("x86-64-v4", "x86-64-v3"):
        (tmp_path / "compiled" / level).mkdir(parents=True, mode=0o755)
        (tmp_path / "compiled" / level / "facts.json").write_text(json.dumps(facts))
    return tmp_path / "compiled"


def test_the_best_level_is_used_until_native_kernels_are_compiled(package: Path, tmp_path: Path) -> None:
    choice = tmp_path / "choice"
    assert levels.level_in_use(choice) == "x86-64-v4"
    choice.touch()
    assert levels.level_in_use(choice) is None


def test_native_kernels_are_compiled_before_they_are_chosen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    done = list[bool]()
    monkeypatch.setattr(precompile, "CHOICE", tmp_path / "choice")
    monkeypatch.setattr(precompile, "CACHE_DIRECTORY", tmp_path)
    monkeypatch.setattr(precompile, "_watch_stdin", lambda lines: None)
    monkeypatch.setattr(precompile, "_compile_here", lambda groups: done.append(precompile.CHOICE.exists()))
    precompile.main(list(precompile.NAMES))
    assert done == [False]
    assert precompile.CHOICE.exists()


def test_a_level_that_the_processor_lacks_is_left_out(
    package: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    features = dict.fromkeys(levels.LEVELS["x86-64-v3"].split(","), True)
    monkeypatch.setattr(levels.llvm, "get_host_cpu_features", lambda: features)
    assert levels.level_in_use(tmp_path / "choice") == "x86-64-v3"
    monkeypatch.setattr(levels.llvm, "get_host_cpu_features", dict)
    assert levels.level_in_use(tmp_path / "choice") is None


@pytest.mark.parametrize(
    ("name", "value", "level"),
    [
        ("YOMI_KERNELS", "native", None),
        ("YOMI_KERNELS", "x86-64-v3", "x86-64-v3"),
        ("NUMBA_CPU_NAME", "znver4", None),
        ("NUMBA_CPU_FEATURES", "+avx2", None),
    ],
)
def test_variables_decide(
    name: str, value: str, level: str | None, package: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(name, value)
    assert levels.level_in_use(tmp_path / "choice") == level


def test_an_unknown_level_gets_a_line(package: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("YOMI_KERNELS", "x86-64-v9")
    with pytest.raises(CompileError, match=r"^found YOMI_KERNELS=x86-64-v9, expected native or x86-64-v4-bf16 or "):
        levels.level_in_use(tmp_path / "choice")


def test_a_level_that_the_processor_lacks_gets_a_line(
    package: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    features = {feature: feature != "avx512bw" for feature in levels.LEVELS["x86-64-v4"].split(",")}
    monkeypatch.setattr(levels.llvm, "get_host_cpu_features", lambda: features)
    monkeypatch.setenv("YOMI_KERNELS", "x86-64-v4")
    with pytest.raises(CompileError, match=r"^found YOMI_KERNELS=x86-64-v4, expected a level without avx512bw, "):
        levels.level_in_use(tmp_path / "choice")
    with pytest.raises(SystemExit, match="built no kernels"):
        build_kernels.main(["x86-64-v4"])
    assert capsys.readouterr().out == "skipping x86-64-v4: this processor lacks avx512bw\n"


def test_the_choice_counts_for_its_sources_only() -> None:
    assert jit.CHOICE.name == f"faster-kernels-{jit.kernel_facts('others')['sources']}"


@pytest.mark.parametrize("fact", ["python", "numba"])
def test_kernels_of_another_version_are_not_used(fact: str, package: Path, tmp_path: Path) -> None:
    for level in ("x86-64-v4", "x86-64-v3"):
        file = package / level / "facts.json"
        file.write_text(json.dumps({**json.loads(file.read_text()), fact: "another"}))
    assert levels.level_in_use(tmp_path / "choice") is None


@pytest.mark.skipif(not hasattr(os, "getuid"), reason="this system has no modes of files")
def test_kernels_that_others_can_write_are_refused(package: Path, tmp_path: Path) -> None:
    (package / "x86-64-v4").chmod(0o777)
    with pytest.raises(CompileError, match="other users can write to"):
        levels.level_in_use(tmp_path / "choice")


KERNELS = """
import sys
from pathlib import Path
from yomi.native import levels
levels.COMPILED = Path(sys.argv[1])
from yomi.native import jit
from yomi.native.jit import inlined, kernel

@inlined
def half(x):
    return x / 2

@kernel
def inner(x):
    return half(x) + 1

@kernel
def fibonacci(n):
    return n if n < 2 else fibonacci(n - 1) + fibonacci(n - 2)

@kernel
def outer(x):
    return inner(x) + fibonacci(x)

print(outer(6), inner(6), outer(7), fibonacci(7), jit.PACKAGED is not None, sum(outer.stats.cache_hits.values()))
"""


@pytest.mark.slow
@pytest.mark.skipif(bool(levels.lacking_features("x86-64-v3")), reason="this processor has no AVX2")
def test_kernels_of_a_package_need_no_compiling(tmp_path: Path) -> None:
    """The kernels in the folder also show that parts of kernels work in them and by themselves."""
    (tmp_path / "kernels.py").write_text(KERNELS)
    environment = {**os.environ, "PYTHONPATH": str(jit.SOURCE_ROOT.parent), "YOMI_KERNELS": "x86-64-v3"}

    def run(package: Path, cache: str) -> str:
        return subprocess.run(
            [sys.executable, "-B", str(tmp_path / "kernels.py"), str(package)],
            env={**environment, "YOMI_CACHE_DIR": str(tmp_path / cache)},
            capture_output=True,
            text=True,
            check=True,
        ).stdout

    assert run(tmp_path / "none", "first") == "12.0 4.0 17.5 13 False 0\n"
    level = tmp_path / "package" / "x86-64-v3"
    level.parent.mkdir()
    (tmp_path / "first" / "kernels").rename(level)
    facts = {"python": sys.implementation.cache_tag, "numba": numba.__version__}
    (level / "facts.json").write_text(json.dumps(facts))
    assert run(tmp_path / "package", "second") == "12.0 4.0 17.5 13 True 1\n"
    assert not list((tmp_path / "second").rglob("*.nbc"))

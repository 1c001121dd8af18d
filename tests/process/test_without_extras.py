"""The default install, without any extra: each command that needs one names it in one line."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.process.engine_process import ROOT

pytestmark = pytest.mark.slow

START = """
import sys

class Without:
    def __init__(self, finder):
        self.finder = finder

    def find_spec(self, name, path=None, target=None):
        extras = ("onnx", "onnxruntime", "onnxscript", "torch", "matplotlib", "ray", "tensorrt", "cshogi")
        return None if name.partition(".")[0] in extras else self.finder.find_spec(name, path, target)

    def __getattr__(self, name):
        return getattr(self.finder, name)

sys.meta_path = [Without(finder) for finder in sys.meta_path]
from yomi.engine.cli.main import main
sys.exit(main(sys.argv[1:]))
"""
NETWORK = str(ROOT / "nets/models/yomi-go-b6c96.bin.gz")


@pytest.mark.parametrize(
    ("words", "package"),
    [
        (["bench", "gpu"], "onnx"),
        (["bench", "gpu", "--device", "tensorrt"], "onnx"),
        (["bench", "nets"], "onnx"),
        (["bench", "train", "x.toml"], "torch"),
        (["net", "import", NETWORK, "--size", "9"], "onnx"),
        (["train", str(ROOT / "nets/recipes/go.toml"), "--out", "run"], "torch"),
        (["learn", "go", "--size", "5", "--out", "run"], "torch"),
    ],
    ids=lambda value: " ".join(value[:2]) if isinstance(value, list) else "",
)
def test_what_is_missing_is_named(words: list[str], package: str, tmp_path: Path) -> None:
    found = subprocess.run(
        [sys.executable, "-c", START, *words],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert found.returncode == 2
    assert f"needs {package}" in found.stderr
    assert " -m pip install " in found.stderr or "uv pip install" in found.stderr
    assert found.stderr.count("\n") == 1
    assert list(tmp_path.iterdir()) == []

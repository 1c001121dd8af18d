"""Scripts of a user that call the library, as ordinary programs without a guard of their main module."""

import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = """
import sys, yomi
from pathlib import Path

print("running")
yomi.duel("go", {"visits": 2, "evaluator": "rollouts"}, {"visits": 3, "evaluator": "rollouts"}, size=5, games=4,
    processes=2, out="duel")
Path("games.sgfs").write_text("(;SZ[5]RE[B+1];B[cc];W[bb];B[dd])" * 600)
yomi.dataset("data", "games.sgfs", min_moves=1)
"""


@pytest.mark.process
def test_the_main_module_runs_once(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(SCRIPT)
    command = [sys.executable, "script.py"]
    ended = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False)
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.count("running") == 1

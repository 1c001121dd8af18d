"""Search threads in every order that one preemption allows, as plain Python; `python -m tests.schedules` runs more."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.early
@pytest.mark.slow
@pytest.mark.parametrize(
    "arguments",
    [
        ["--preemptions", "1"],
        # two faults of earlier versions need these: values of a new node that came late, a node freed while in use
        ["--preemptions", "2", "--scenario", "one line to a proof"],
        ["--preemptions", "2", "--scenario", "one edge to a transposition"],
    ],
    ids=["all scenarios", "a late value", "a freed node"],
)
def test_no_order_of_threads_breaks_the_tree(arguments: list[str]) -> None:
    command = [sys.executable, "-W", "ignore", "-m", "tests.schedules", *arguments]
    found = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert found.returncode == 0, found.stdout + found.stderr
    assert "all," in found.stdout

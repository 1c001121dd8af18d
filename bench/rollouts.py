"""Rollouts per second of the kernels on one thread, and the ratio to a C twin of the uniform rollout.

The twin (uniform_rollout.c) is compiled in a temporary directory if gcc is installed. Both sides play the same games
from the same seed, which is checked first. They take turns, so that changes of the machine's speed affect both.
"""

import ctypes
import shutil
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from yomi.native.go.board import POSITION_DTYPE, ZOBRIST, clear
from yomi.native.go.rollout import rollouts

C_SOURCE = Path(__file__).with_name("uniform_rollout.c")
COMPILER_FLAGS = ("-O3", "-march=native", "-shared", "-fPIC")
# Turns of each side; the figures are medians.
TURNS = 7
CHECKED_ROLLOUTS = 200
KOMI = 7.5

# Plays the given number of rollouts from the empty board.
Play = Callable[[int], object]


def compile_twin(directory: str) -> ctypes.CDLL | None:
    """Compile the C twin in `directory` and load it; None if gcc is not installed.

    Raises:
        subprocess.CalledProcessError: gcc rejects the source.
    """
    gcc = shutil.which("gcc")
    if gcc is None:
        return None
    library = Path(directory) / "uniform_rollout.so"
    subprocess.run([gcc, *COMPILER_FLAGS, "-o", str(library), str(C_SOURCE)], check=True)
    twin = ctypes.CDLL(str(library))
    twin.set_keys.argtypes = [ctypes.c_void_p]
    twin.set_keys.restype = None
    twin.uniform_rollouts.argtypes = [ctypes.c_int, ctypes.c_void_p, ctypes.c_int64]
    twin.uniform_rollouts.restype = ctypes.c_int64
    keys = np.ascontiguousarray(ZOBRIST)
    twin.set_keys(keys.ctypes.data)
    return twin


def run(seconds: float, sizes: Sequence[int]) -> list[dict[str, Any]]:
    """Measure each kind of rollout on an empty board of each size, for about `seconds` each.

    Returns:
        One row for each size and rollout: `board`, `rollout`, `median`, `minimum`, `maximum` (rollouts/s on one
            thread), and `ratio_to_c` (median of the ratios of neighbouring turns; None without gcc or a twin).

    Raises:
        RuntimeError: the C twin plays other games than the kernel.
    """
    rows = []
    with tempfile.TemporaryDirectory() as directory:
        twin = compile_twin(directory)
        for size in sizes:
            root, scratch = np.zeros(2, POSITION_DTYPE)
            clear(root, size, size)
            root["komi"] = KOMI
            rng = np.array([size], np.uint64)
            contestants: dict[str, Play] = {
                "uniform": lambda n, r=root, s=scratch, g=rng: rollouts(r, s, g, n, False),  # type: ignore[misc]
                "patterned": lambda n, r=root, s=scratch, g=rng: rollouts(r, s, g, n, True),  # type: ignore[misc]
            }
            if twin is not None:
                _check_twin(twin, size)
                contestants["uniform in C"] = lambda n, g=rng, b=size: twin.uniform_rollouts(b, g.ctypes.data, n)  # type: ignore[misc]
            rows += _measure(contestants, size, seconds)
    return rows


def _check_twin(twin: ctypes.CDLL, size: int) -> None:
    root, scratch = np.zeros(2, POSITION_DTYPE)
    clear(root, size, size)
    ours, theirs = np.array([12345], np.uint64), np.array([12345], np.uint64)
    total = rollouts(root, scratch, ours, CHECKED_ROLLOUTS, False)
    twin_total = twin.uniform_rollouts(size, theirs.ctypes.data, CHECKED_ROLLOUTS)
    if total != twin_total or ours[0] != theirs[0]:
        raise RuntimeError(
            f"the C twin must play the same {size}x{size} games: sum of balances {twin_total}, expected {total}"
        )


def _measure(contestants: dict[str, Play], size: int, seconds: float) -> list[dict[str, Any]]:
    counts = {name: _rollouts_in(play, seconds / TURNS) for name, play in contestants.items()}
    speeds: dict[str, list[float]] = {name: [] for name in contestants}
    for _ in range(TURNS):
        for name, play in contestants.items():
            start = time.perf_counter()
            play(counts[name])
            speeds[name].append(counts[name] / (time.perf_counter() - start))
    rows = []
    for name, measured in speeds.items():
        ratio = None
        if name == "uniform" and "uniform in C" in speeds:
            ratio = statistics.median(a / b for a, b in zip(measured, speeds["uniform in C"], strict=True))
        rows.append(
            {
                "board": f"{size}x{size}",
                "rollout": name,
                "median": statistics.median(measured),
                "minimum": min(measured),
                "maximum": max(measured),
                "ratio_to_c": ratio,
            }
        )
    return rows


def _rollouts_in(play: Play, seconds: float) -> int:
    """Return the number of rollouts (at least 1) that take about `seconds`. Compiles the kernel."""
    play(1)
    start = time.perf_counter()
    play(20)
    return max(1, int(20 * seconds / (time.perf_counter() - start)))

"""Compares the kernels of a processor level with native ones: `python -m yomi.native.speed` prints a speed."""

import contextlib
import os
import subprocess
import sys
import time

import numpy as np

# It measures the main work of playing: convolutions in the fastest precision, and Go's rules.

SECONDS = 0.5
TURNS = 3
SIZE, CHANNELS, LAYERS = 9, 96, 6


def measure() -> float:
    """Return the geometric mean of evaluations and played games per second."""
    return float(np.sqrt(_evaluations() * _games()))


def _evaluations() -> float:
    from yomi.native.forward.builder import PRECISIONS, ProgramBuilder

    rng = np.random.default_rng(1)
    precision = next(name for name in ("int16", "fp32") if name in PRECISIONS)
    builder = ProgramBuilder(SIZE, 22, 19, precision=precision)
    norm = np.ones(CHANNELS, np.float32), np.zeros(CHANNELS, np.float32), "relu"
    layer = builder.first(rng.normal(0.0, 0.1, (CHANNELS, 22, 3, 3)).astype(np.float32), None, norm)
    for _ in range(LAYERS):
        layer = builder.conv(layer, rng.normal(0.0, 0.04, (CHANNELS, CHANNELS, 3, 3)).astype(np.float32), norm)
    program, area = builder.build(), SIZE * SIZE
    scratch, planes = program.make_scratch(), np.ones((1, 22, SIZE, SIZE), np.float32)
    numbers, ownership = np.zeros((1, 19), np.float32), np.zeros((1, area), np.float32)
    policy, value, misc = (np.zeros(shape, np.float32) for shape in ((1, 1, area + 1), (1, 3), (1, 4)))
    count, begin = 0, time.perf_counter()
    while time.perf_counter() - begin < SECONDS or not count:
        program.run(scratch, planes, numbers, policy, value, misc, ownership)
        count += 1
        if count == 1:
            begin = time.perf_counter()  # the first call loads the kernel
    return (count - 1) / (time.perf_counter() - begin)


def _games() -> float:
    from yomi.native.go.board import POSITION_DTYPE, clear
    from yomi.native.go.rules import MAX_HISTORY, begin, legal_moves, play

    pos, history, moves = np.zeros(1, POSITION_DTYPE)[0], np.zeros(MAX_HISTORY, np.uint64), np.zeros(400, np.uint16)
    count, start = 0, time.perf_counter()
    while time.perf_counter() - start < SECONDS or not count:
        clear(pos, SIZE, SIZE)
        begin(pos, history)
        for number in range(60):
            legal = legal_moves(pos, history, moves)
            # Any legal moves will do, if they are the same each time.
            play(pos, history, int(moves[(7 * number) % legal]))
        count += 1
        if count == 1:
            start = time.perf_counter()
    return (count - 1) / (time.perf_counter() - start)


def compare(level: str) -> None:
    """Compare native kernels with a level's, alternately; write the name of the faster ones into the cache.

    Raises:
        OSError: the cache cannot be written.
    """
    from yomi.native.jit import CHOICE
    from yomi.native.levels import NATIVE

    # The kernels take turns, so that other load on the machine affects both.
    speeds = [(_speed_of(level), _speed_of(NATIVE)) for _ in range(TURNS)]
    if not all(min(pair) > 0.0 for pair in speeds):
        return  # a process failed: the next start compares again
    ratio = float(np.median([native / packaged for packaged, native in speeds]))
    part = CHOICE.with_name(f"{CHOICE.name}.{os.getpid()}")
    part.write_text(f"{NATIVE if ratio > 1.0 else level}\n", encoding="utf-8")
    part.replace(CHOICE)


def _speed_of(kernels: str) -> float:
    from yomi.native.levels import ROOT, SETTING

    command = [sys.executable, "-m", "yomi.native.speed"]
    environment = {**os.environ, SETTING: kernels}
    found = subprocess.run(
        command,
        cwd=ROOT,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    with contextlib.suppress(ValueError):
        return float(found.stdout)
    return 0.0


if __name__ == "__main__":
    print(measure())

"""Kernels as plain Python (NUMBA_DISABLE_JIT=1) say what the compiled ones say."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from yomi.native.debug_kernels import plain, plain_kernel

ROOT = Path(__file__).parents[2]
DTYPE = np.dtype([("few", np.uint8), ("many", np.int8, (2,))])
SEARCH = """
from yomi.bench.signature import SEED
from dataclasses import replace
from yomi.engine.evaluators.kernel_evaluators import UniformEvaluator
from yomi.engine.shogi.networks import MaterialEvaluator
from yomi.engine.evaluators.queue import InlineQueue
from yomi.engine.go.networks import RolloutEvaluator
from yomi.engine.search.types import Limits
from yomi.engine.search.types import SearchSettings
from yomi.engine.search.search import Search
from yomi.engine.go.players.setup import go_subject
from yomi.engine.shogi.players.setup import shogi_subject
import numpy as np

settings = SearchSettings(workers=1, memory=2**22, cache_size=2**12, symmetry="none", seed=SEED, solver=True)
for subject, evaluator in (
    (go_subject(9), RolloutEvaluator(seed=SEED)), (go_subject(9), UniformEvaluator()),
    (shogi_subject(mate_depth=3), MaterialEvaluator()),
):
    search = Search(subject.spec, InlineQueue(evaluator), settings)
    for game in (subject.games[0], subject.games[-1]):
        search.set_position(game)
        report = search.run(Limits(playouts=8))
        print(subject.name, [(move.move, move.visits) for move in report.moves if move.visits])
    planes, extras = np.zeros(subject.spec.planes_shape, np.float32), np.zeros(subject.spec.extras_shape, np.float32)
    scratch = np.zeros(1, subject.spec.scratch_dtype)[0]
    subject.write_planes(game.position, game.history, 1, scratch, planes, extras)
    print(subject.name, hash((planes.tobytes(), extras.tobytes())))
"""


@plain_kernel
def _sums(words, record):  # type: ignore[no-untyped-def]
    words[0] -= 1  # wraps around
    record.few = record.few + 200  # as numba's int64, then cut off
    record.many[1] = -2
    big = np.uint64(2**63) * np.uint64(3)  # overflows without a warning
    records = np.zeros(1, DTYPE)
    records[0].few -= 1
    return record.few - records[0].few, np.int8(200), np.uint64(-1) + big, words.size


def test_numbers_are_numbas() -> None:
    words = np.zeros(2, np.uint16)
    records = np.zeros(1, DTYPE)
    records[0]["few"] = 100
    assert _sums(words, records[0]) == (44 - 255, -56, 2**63 - 1, 2)
    assert words.tolist() == [65535, 0]
    assert records[0]["few"] == 44
    assert records[0]["many"].tolist() == [0, -2]
    with pytest.raises(AttributeError, match="no field fewer"):
        plain(records[0]).fewer  # noqa: B018


@pytest.mark.early
@pytest.mark.slow
def test_searches_are_those_of_the_compiled_kernels() -> None:
    outputs = []
    for flag in ("0", "1"):
        environment = {**os.environ, "NUMBA_DISABLE_JIT": flag, "PYTHONHASHSEED": "0"}
        command = [sys.executable, "-W", "error", "-c", SEARCH]
        found = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
        assert found.returncode == 0, found.stderr
        outputs.append(found.stdout)
    assert outputs[0] == outputs[1]
    assert outputs[0].count("\n") == 9


def test_networks_have_no_plain_form(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "yomi", "gtp", "--size", "9"]
    environment = {**os.environ, "NUMBA_DISABLE_JIT": "1", "YOMI_CACHE_DIR": str(tmp_path)}
    found = subprocess.run(
        command, cwd=ROOT, env=environment, input="genmove b\n", capture_output=True, text=True, check=False
    )
    assert "expected backend onnx, or evaluator rollouts" in found.stdout + found.stderr
    assert "Traceback" not in found.stderr

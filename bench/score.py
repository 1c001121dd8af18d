"""`bench score`: errors of a network's predicted points on a data set, compared with two simple predictions.

Each position is evaluated on one core four times: by the network; as an even board, on which komi is the whole lead; by
one patterned rollout; and by all rollouts that fit into the network's time.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from yomi.engine.datasets.evaluate_network import BATCH_ROWS, make_plane_evaluator
from yomi.engine.evaluators.devices import CPU
from yomi.engine.go.game import GoGame
from yomi.engine.go.networks import FORMATS
from yomi.engine.go.points import square
from yomi.engine.go.rules import PRESETS
from yomi.native.go.board import BLACK, POSITION_DTYPE, WHITE
from yomi.native.go.rollout_evaluator import rollout_leaves
from yomi.nets.data.batches import BatchSource, FloatArray, unpack
from yomi.nets.data.shards import open_dataset
from yomi.nets.errors import NetworkError

# By feature set: the plane of the mover's stones. The opponent's plane follows.
OWN_STONES = {"go-stones-2": 0, "cosumi-3": 0, "katago-v7": 1}
SEED = 1

Positions = npt.NDArray[np.void]


def run(net: Path, folder: Path, limit: int) -> list[dict[str, Any]]:
    """Evaluate about `limit` positions of a data set's test split, in batches.

    Raises:
        NetworkError: network or data set cannot be used, do not fit each other, or have no points.
        EvaluatorError: the network cannot be computed here.
    """
    dataset = open_dataset(folder)
    judge = make_plane_evaluator(FORMATS, net, dataset, CPU)
    features = dataset.manifest.feature_set
    if features not in OWN_STONES:
        raise NetworkError(f"{net}: feature set {features} found, expected one of {', '.join(OWN_STONES)}")
    source = BatchSource([dataset], "test", BATCH_ROWS, 0)
    labels, found, boards = [], [], []
    seconds, sizes = 0.0, set()
    for batch in source.in_order((limit + BATCH_ROWS - 1) // BATCH_ROWS):
        planes, extras = unpack(batch, source.features)
        if batch.size not in sizes:
            judge(batch.size, planes, extras)  # makes the evaluator, which is not to be timed
            sizes.add(batch.size)
        begin = time.perf_counter()
        judged = judge(batch.size, planes, extras)
        seconds += time.perf_counter() - begin
        if judged.lead is None or "lead" not in batch.columns:
            raise NetworkError(f"{net}, {folder}: no points found, expected a network and labels that have them")
        komi = batch.columns["komi"].astype(np.float32)
        labels.append(batch.columns["lead"].astype(np.float32) - komi)
        found.append(judged.lead - komi if judged.counts_komi else judged.lead)
        boards.append(_positions(planes[:, OWN_STONES[features] :]))
    wanted = np.concatenate(labels)
    known = np.isfinite(wanted)
    each = seconds / len(wanted)

    def row(method: str, seconds: float, points: FloatArray) -> dict[str, Any]:
        error = float(np.abs(points - wanted)[known].mean())
        return {"method": method, "positions": int(known.sum()), "us": 1e6 * seconds, "mean_absolute_error": error}

    _rollouts(boards[:1], 1)  # loads the kernel
    single, points = _rollouts(boards, 1)
    rows = [
        row("network", each, np.concatenate(found)),
        row("even board", 0.0, np.zeros_like(wanted)),
        row("1 rollout", single, points),
    ]
    count = round(each / single)
    if count > 1:
        rows.append(row(f"{count} rollouts", *_rollouts(boards, count)))
    return rows


def _positions(planes: FloatArray) -> Positions:
    """Return the positions of planes [B, >= 2, N, N] of stones: Black to move, no komi."""
    size = planes.shape[-1]
    points = np.array(list(square(size).points))
    positions = np.zeros(len(planes), POSITION_DTYPE)
    game = GoGame(square(size), PRESETS["tromp-taylor"], 0.0)
    for row, (own, other) in enumerate(planes[:, :2].reshape(len(planes), 2, -1) > 0.0):
        stones = [(BLACK, int(p)) for p in points[own]] + [(WHITE, int(p)) for p in points[other]]
        game.set_position(stones, BLACK)
        positions[row] = game.position
    return positions


def _rollouts(boards: list[Positions], count: int) -> tuple[float, FloatArray]:
    """Return the seconds that `count` rollouts of a position take, and their mean lead."""
    rng = np.array([SEED], np.uint64)
    scratch = np.zeros(1, POSITION_DTYPE)[0]
    results = []
    begin = time.perf_counter()
    for positions in boards:
        rows, area = len(positions), int(positions[0]["size"]) ** 2
        values, scores = np.zeros(rows, np.float32), np.zeros(rows, np.float32)
        rollout_leaves(positions, rows, count, rng, scratch, values, scores, np.zeros((rows, area), np.float32))
        results.append(scores)
    seconds = time.perf_counter() - begin
    points = np.concatenate(results)
    return seconds / len(points), points

"""`yomi train test`: what any network of the known formats is worth on a data set, computed in float32."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine.evaluators.onnx_session import make_session
from engine.evaluators.providers import choose_device
from nets.data.batches import Batch, BatchSource
from nets.data.metrics import Judged, Table
from nets.data.shards import Dataset
from nets.data.unpack import FloatArray, unpack
from nets.errors import NetworkError

if TYPE_CHECKING:
    from engine.game import Game, Judge

ROWS = 64


def evaluate_network(game: Game[Any, Any], path: Path, dataset: Dataset, split: str, limit: int, device: str) -> Table:
    """Return the sums over the positions of a split, at most `limit` unless it is 0.

    Policies are compared as they are, illegal moves included.

    Raises:
        NetworkError: the network's file or the data set cannot be used, or do not fit.
        EvaluatorError: the device cannot be used.
    """
    judge = make_judge(game, path, dataset, device)
    source = BatchSource([dataset], split, ROWS, 0)
    table = Table()
    for batch in source.in_order(positions=limit):
        table.add(_judged(batch, source, judge), batch.columns)
    return table


def _judged(batch: Batch, source: BatchSource, judge: Judge) -> Judged:
    planes, extras = unpack(batch, source.features)
    return judge(batch.size, planes, extras)


def make_judge(game: Game[Any, Any], path: Path, dataset: Dataset, device: str) -> Judge:
    """Return what judges the positions of a data set by a network for the game.

    Raises:
        NetworkError: the file cannot be used, or the data set has other features than the network.
        EvaluatorError: the device cannot be used.
    """
    expected, judge = game.judge(path, device)
    found = dataset.manifest.feature_set
    if found != expected:
        raise NetworkError(f"{dataset.folder}: feature set {found} found, expected {expected} for {path}")
    return judge


def session_judge(path: Path, device: str, inputs: tuple[str, ...], outputs: tuple[str, ...]) -> Judge:
    """Return a judge for our own ONNX files with other features: one input of planes, outputs by name."""
    session: Any = make_session(path, choose_device(device))

    def judge(size: int, planes: FloatArray, extras: FloatArray) -> Judged:
        found = dict(zip(outputs, session.run(list(outputs), {inputs[0]: planes}), strict=True))
        columns = {name: found[name][:, 0] for name in ("value", "score") if name in found}
        return Judged(found.get("policy"), columns.get("value"), columns.get("score"), counts_komi=False)

    return judge

"""`yomi train test`: what any network of the known formats is worth on a data set, computed in float32."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from engine.evaluators.load import load
from engine.evaluators.network import FileFormat, Format, NetworkEvaluator, recognise
from nets.data.batches import Batch, BatchSource
from nets.data.metrics import Judged, Table
from nets.data.shards import Dataset
from nets.data.unpack import FloatArray, unpack
from nets.errors import NetworkError

Formats = Sequence[type[FileFormat]]

ROWS = 64

Judge = Callable[[int, FloatArray, FloatArray], Judged]
"""Judges positions: board size, planes, extras."""


def evaluate_network(formats: Formats, path: Path, dataset: Dataset, split: str, limit: int, device: str) -> Table:
    """Return the sums over the positions of a split, at most `limit` unless it is 0; `formats` are the game's.

    Policies are compared as they are, illegal moves included.

    Raises:
        NetworkError: the network's file or the data set cannot be used, or do not fit.
        EvaluatorError: the device cannot be used.
    """
    judge = make_judge(formats, path, dataset, device)
    source = BatchSource([dataset], split, ROWS, 0)
    table = Table()
    for batch in source.in_order(positions=limit):
        table.add(_judged(batch, source, judge), batch.columns)
    return table


def _judged(batch: Batch, source: BatchSource, judge: Judge) -> Judged:
    planes, extras = unpack(batch, source.features)
    return judge(batch.size, planes, extras)


def make_judge(formats: Formats, path: Path, dataset: Dataset, device: str) -> Judge:
    """Return what judges the positions of a data set by a network.

    Raises:
        NetworkError: the file cannot be used, or the data set has other features than the network.
        EvaluatorError: the device cannot be used.
    """
    expected, judge = _network(formats, path, device)
    found = dataset.manifest.feature_set
    if found != expected:
        raise NetworkError(f"{dataset.folder}: feature set {found} found, expected {expected} for {path}")
    return judge


def _network(formats: Formats, path: Path, device: str) -> tuple[str, Judge]:
    """Return a network's feature set, and what judges with it."""
    evaluators: dict[int, NetworkEvaluator] = {}

    def judge(size: int, planes: FloatArray, extras: FloatArray) -> Judged:
        if size not in evaluators:
            evaluator = load(formats, path, size, device)
            assert isinstance(evaluator, NetworkEvaluator)
            evaluators[size] = evaluator
        evaluator = evaluators[size]
        return evaluator.format.judge(evaluator.run(planes, extras))

    form = recognise(formats, path, 0)
    if not isinstance(form, Format):
        raise NetworkError(f"{path}: a sparse network found, which `yomi train` tests itself: expected one of layers")
    return form.feature_set, judge

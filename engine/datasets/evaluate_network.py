"""Errors of any network of a known format on a data set (`yomi train test`), computed in float32."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from yomi.engine.evaluators.load import load
from yomi.engine.evaluators.network import FileFormat, Format, NetworkEvaluator, recognise
from yomi.engine.evaluators.sparse import SparseFormat
from yomi.nets.data.batches import Batch, BatchSource
from yomi.nets.data.metrics import Judged, Table
from yomi.nets.data.shards import Dataset
from yomi.nets.data.sparse import FindEncoder, no_encoder
from yomi.nets.data.unpack import FloatArray, unpack
from yomi.nets.errors import NetworkError
from yomi.nets.sparse.judging import judge

Formats = Sequence[type[FileFormat]]

ROWS = 64

Judge = Callable[[int, FloatArray, FloatArray], Judged]
"""Evaluates board size, planes and extras of positions, and returns their errors."""


def evaluate_network(
    formats: Formats,
    path: Path,
    dataset: Dataset,
    split: str,
    limit: int,
    device: str,
    find_encoder: FindEncoder = no_encoder,
) -> Table:
    """Return the summed errors over the positions of a split.

    Policies are compared without removing illegal moves. Sparse networks have legal moves only.

    Args:
        formats: network formats of the game.
        path: network file.
        dataset: the data set.
        split: train or test.
        limit: maximum number of positions; 0 for all.
        device: value of the option `device`. Sparse networks always run on the processor.
        find_encoder: finds the game's encoder, which sparse networks need.

    Raises:
        NetworkError: the network or the data set cannot be used, or they do not fit.
        EvaluatorError: the device cannot be used.
    """
    judge_batch = _batch_judge(formats, path, dataset, device, find_encoder)
    table = Table()
    for batch in BatchSource([dataset], split, ROWS, 0).in_order(positions=limit):
        table.add(judge_batch(batch), batch.columns)
    return table


def _batch_judge(
    formats: Formats, path: Path, dataset: Dataset, device: str, find_encoder: FindEncoder
) -> Callable[[Batch], Judged]:
    """Return a function that evaluates batches of the data set."""
    features = dataset.manifest.features
    encoder = find_encoder(features.name)
    if encoder is not None and isinstance(form := recognise(formats, path, 0), SparseFormat):
        _expect(form.feature_set, path, dataset)
        tensors = form.tensors
        return lambda batch: judge(tensors, encoder, batch.columns, features.policy_size(batch.size))
    of_planes = make_plane_evaluator(formats, path, dataset, device)
    return lambda batch: of_planes(batch.size, *unpack(batch, features))


def make_plane_evaluator(formats: Formats, path: Path, dataset: Dataset, device: str) -> Judge:
    """Return a function that evaluates positions of the data set with a network of planes.

    Raises:
        NetworkError: the file cannot be used, or the data set has other features than the network.
        EvaluatorError: the device cannot be used.
    """
    expected, judge_planes = _network(formats, path, device)
    _expect(expected, path, dataset)
    return judge_planes


def _expect(features: str, path: Path, dataset: Dataset) -> None:
    found = dataset.manifest.feature_set
    if found != features:
        raise NetworkError(f"{dataset.folder}: feature set {found} found, expected {features} for {path}")


def _network(formats: Formats, path: Path, device: str) -> tuple[str, Judge]:
    """Return a network's feature set and its Judge."""
    evaluators: dict[int, NetworkEvaluator] = {}

    def judge_planes(size: int, planes: FloatArray, extras: FloatArray) -> Judged:
        if size not in evaluators:
            evaluator = load(formats, path, size, device)
            assert isinstance(evaluator, NetworkEvaluator)
            evaluators[size] = evaluator
        evaluator = evaluators[size]
        return evaluator.format.judge(evaluator.run(planes, extras))

    form = recognise(formats, path, 0)
    if not isinstance(form, Format):
        raise NetworkError(f"{path}: a sparse network found, expected one of layers, or a data set of boards")
    return form.feature_set, judge_planes

"""Errors of a network of any format on a data set, computed in float32: `yomi train test`."""

from collections.abc import Callable, Sequence
from pathlib import Path

from yomi.engine.evaluators.devices import Device
from yomi.engine.evaluators.kernel_evaluators import SparseFormat
from yomi.engine.evaluators.network import FileFormat, Format, NetworkEvaluator, open_network
from yomi.nets.data.batches import Batch, BatchSource, FloatArray, unpack
from yomi.nets.data.metrics import Judged, Table
from yomi.nets.data.shards import Dataset
from yomi.nets.errors import NetworkError
from yomi.nets.sparse import FindEncoder, judge, no_encoder

Formats = Sequence[type[FileFormat]]
# Computes the errors of positions from their board size, planes and extras.
EvaluatePlanes = Callable[[int, FloatArray, FloatArray], Judged]

BATCH_ROWS = 64


def evaluate_network(
    formats: Formats,
    path: Path,
    dataset: Dataset,
    split: str,
    limit: int,
    device: Device,
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
        device: where the network is computed. Sparse networks always run on the processor.
        find_encoder: finds the game's encoder, which sparse networks need.
    """
    features = dataset.manifest.features
    encoder = find_encoder(features.name)
    evaluate: Callable[[Batch], Judged]
    if encoder is not None and isinstance(form := open_network(formats, path, 0), SparseFormat):
        _check_features(form.feature_set, path, dataset)
        tensors = form.tensors
        evaluate = lambda batch: judge(tensors, encoder, batch.columns, features.policy_size(batch.size))  # noqa: E731
    else:
        evaluate_planes = make_plane_evaluator(formats, path, dataset, device)
        evaluate = lambda batch: evaluate_planes(batch.size, *unpack(batch, features))  # noqa: E731
    table = Table()
    for batch in BatchSource([dataset], split, BATCH_ROWS, 0).in_order(positions=limit):
        table.add(evaluate(batch), batch.columns)
    return table


def make_plane_evaluator(formats: Formats, path: Path, dataset: Dataset, device: Device) -> EvaluatePlanes:
    """Return a function that evaluates positions of the data set with a network of planes.

    Raises NetworkError or EvaluatorError if the network, the data set or the device cannot be used, or do not fit.
    """
    form = open_network(formats, path, 0)
    if not isinstance(form, Format):
        raise NetworkError(f"{path}: found a sparse network, expected one of layers, or a data set of boards")
    _check_features(form.feature_set, path, dataset)
    evaluators: dict[int, NetworkEvaluator] = {}

    def evaluate_planes(size: int, planes: FloatArray, extras: FloatArray) -> Judged:
        if size not in evaluators:
            network = open_network(formats, path, size)
            assert isinstance(network, Format)
            evaluators[size] = network.load(device)
        evaluator = evaluators[size]
        return evaluator.format.judge(evaluator.run(planes, extras))

    return evaluate_planes


def _check_features(expected: str, path: Path, dataset: Dataset) -> None:
    found = dataset.manifest.feature_set
    if found != expected:
        raise NetworkError(f"{dataset.folder}: found feature set {found}, expected {expected} for {path}")

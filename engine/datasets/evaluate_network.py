"""Errors of a network of any format on a data set, computed in float32: `yomi train test`."""

from collections.abc import Sequence
from pathlib import Path

from yomi.engine.evaluators.devices import Device
from yomi.engine.evaluators.kernel_evaluators import SparseFormat
from yomi.engine.evaluators.network import FileFormat, Format, NetworkEvaluator, open_network
from yomi.nets.data.batches import Batch, BatchSource, unpack
from yomi.nets.data.metrics import Judged, Table
from yomi.nets.data.shards import Dataset
from yomi.nets.errors import NetworkError
from yomi.nets.sparse import FindEncoder, judge, no_encoder

Formats = Sequence[type[FileFormat]]

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

    Raises:
        NetworkError: the network or the data set cannot be used, or they do not fit.
        EvaluatorError: the device cannot be used.
    """
    features = dataset.manifest.features
    encoder, form = find_encoder(features.name), open_network(formats, path, 0)
    if not isinstance(form, Format) and (encoder is None or not isinstance(form, SparseFormat)):
        raise NetworkError(f"{path}: found a sparse network, expected one of layers, or a data set of boards")
    if form.feature_set != features.name:
        raise NetworkError(
            f"{dataset.folder}: found feature set {features.name}, expected {form.feature_set} for {path}"
        )
    evaluators: dict[int, NetworkEvaluator] = {}

    def evaluate(batch: Batch) -> Judged:
        if encoder is not None and isinstance(form, SparseFormat):
            return judge(form.tensors, encoder, batch.columns, features.policy_size(batch.size))
        if batch.size not in evaluators:
            network = open_network(formats, path, batch.size)
            assert isinstance(network, Format)
            evaluators[batch.size] = network.load(device)
        evaluator = evaluators[batch.size]
        return evaluator.format.judge(evaluator.run(*unpack(batch, features)))

    table = Table()
    for batch in BatchSource([dataset], split, BATCH_ROWS, 0).in_order(positions=limit):
        table.add(evaluate(batch), batch.columns)
    return table

"""`yomi train test`: what any network of the known formats is worth on a data set, computed in float32."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from engine.evaluators.onnx_session import make_session
from engine.evaluators.providers import choose_device
from engine.go.networks.katago import KataGoEvaluator
from engine.go.networks.katago_factory import make_katago_evaluator
from engine.shogi.networks.shogi_factory import make_shogi_evaluator
from nets.data.batches import Batch, BatchSource
from nets.data.metrics import Judged, Table
from nets.data.shards import Dataset
from nets.data.unpack import FloatArray, unpack
from nets.errors import NetworkError
from nets.katago.outputs import scales_of, value_probabilities
from nets.load import NetworkKind, identify, prepare_shogi
from nets.metadata import KATAGO_FEATURES, NetworkInfo
from nets.onnx_header import read_onnx_header

ROWS = 64

Judge = Callable[[int, FloatArray, FloatArray], Judged]
"""Judges positions: board size, planes, extras."""


def evaluate_network(path: Path, dataset: Dataset, split: str, limit: int, device: str) -> Table:
    """Return the sums over the positions of a split, at most `limit` unless it is 0.

    Policies are compared as they are, illegal moves included.

    Raises:
        NetworkError: the network's file or the data set cannot be used, or do not fit.
        EvaluatorError: the device cannot be used.
    """
    judge = make_judge(path, dataset, device)
    source = BatchSource([dataset], split, ROWS, 0)
    table = Table()
    for batch in source.in_order(positions=limit):
        table.add(_judged(batch, source, judge), batch.columns)
    return table


def _judged(batch: Batch, source: BatchSource, judge: Judge) -> Judged:
    planes, extras = unpack(batch, source.features)
    return judge(batch.size, planes, extras)


def make_judge(path: Path, dataset: Dataset, device: str) -> Judge:
    """Return what judges the positions of a data set by a network.

    Raises:
        NetworkError: the file cannot be used, or the data set has other features than the network.
        EvaluatorError: the device cannot be used.
    """
    expected, judge = _network(path, device)
    found = dataset.manifest.feature_set
    if found != expected:
        raise NetworkError(f"{dataset.folder}: feature set {found} found, expected {expected} for {path}")
    return judge


def _network(path: Path, device: str) -> tuple[str, Judge]:
    """Return a network's feature set, and what judges with it."""
    kind = identify(path)
    if kind in (NetworkKind.DLSHOGI, NetworkKind.ALPHAZERO_SHOGI):
        return _shogi(path, device)
    if kind is NetworkKind.YOMI_ONNX:
        header = read_onnx_header(path)
        assert header is not None
        info = NetworkInfo.from_props(header.metadata)
        if info.game == "shogi":
            return _shogi(path, device)
        if info.feature_set != KATAGO_FEATURES:
            return info.feature_set, _session_judge(path, device, header.inputs, header.outputs)
    return KATAGO_FEATURES, _katago(path, device)


def _katago(path: Path, device: str) -> Judge:
    evaluators: dict[int, KataGoEvaluator] = {}

    def judge(size: int, planes: FloatArray, extras: FloatArray) -> Judged:
        if size not in evaluators:
            evaluators[size] = make_katago_evaluator(path, size, device)
        evaluator = evaluators[size]
        raw = evaluator.run(planes, extras)
        win, loss, _ = value_probabilities(raw.value, False)
        lead = raw.misc[:, 2] * np.float32(scales_of(evaluator.info).lead)
        return Judged(raw.policy[:, 0], win - loss, lead, np.tanh(raw.ownership))

    return judge


def _shogi(path: Path, device: str) -> tuple[str, Judge]:
    network, _ = prepare_shogi(path)
    evaluator = make_shogi_evaluator(path, device)

    def judge(size: int, planes: FloatArray, extras: FloatArray) -> Judged:
        logits = np.empty((len(planes), network.policy_size), np.float32)
        values = evaluator.run(planes, extras, logits)
        return Judged(logits, network.signed(values))

    return network.feature_set, judge


def _session_judge(path: Path, device: str, inputs: tuple[str, ...], outputs: tuple[str, ...]) -> Judge:
    """Return a judge for our own ONNX files with other features: one input of planes, outputs by name."""
    session: Any = make_session(path, choose_device(device))

    def judge(size: int, planes: FloatArray, extras: FloatArray) -> Judged:
        found = dict(zip(outputs, session.run(list(outputs), {inputs[0]: planes}), strict=True))
        columns = {name: found[name][:, 0] for name in ("value", "score") if name in found}
        return Judged(found.get("policy"), columns.get("value"), columns.get("score"), counts_komi=False)

    return judge

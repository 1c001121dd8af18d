"""Metadata of KataGo networks. Also converts raw outputs to probabilities, points and ownership, in numpy.

This is the readable reference; the search has its own kernel. All numbers are for the side to move.
"""

import dataclasses
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from yomi.nets.errors import NetworkError
from yomi.nets.katago.network import FloatArray, KataGoNetwork, OutputScales
from yomi.nets.metadata import KATAGO_CONVERTER_VERSION, KATAGO_FEATURES, NetworkInfo

# Marks versions before the factor for softplus: errors are the square root of softplus.
ROOT = 0.0
BoolArray = npt.NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class RawOutputs:
    """The four outputs of a network's ONNX graph, for a batch."""

    policy: FloatArray  # [B, 1 or 2, A + 1] logits, pass last
    value: FloatArray  # [B, 3] logits of win, loss, no result
    misc: FloatArray  # [B, 4 or 6]
    ownership: FloatArray  # [B, A] before tanh


@dataclass(frozen=True, eq=False)
class Outputs:
    """A network's predictions for a batch of positions, for the side to move."""

    policy: FloatArray  # [B, A + 1] probabilities, 0 for illegal moves
    win: FloatArray  # [B] probability
    loss: FloatArray  # [B] probability
    no_result: FloatArray  # [B] probability; exactly 0 if the rules have no such result
    score_mean: FloatArray  # [B] expected final score in self-play, points
    score_stdev: FloatArray  # [B] standard deviation of that score, points
    score_mean_square: FloatArray  # [B] expected square of the score, points²
    # [B] points by which the side to move leads: the komi change that would make the game even
    lead: FloatArray
    # [B] measure of how many turns are left until the outcome is settled, or None before version 9
    variance_time: FloatArray | None
    # [B] expected error of win - loss against the result of a short search, or None before version 9
    shortterm_winloss_error: FloatArray | None
    shortterm_score_error: FloatArray | None  # [B] the same for the score, points, or None before version 9
    ownership: FloatArray  # [B, A] in [-1, 1], +1 = the side to move owns the point

    def only(self, rows: npt.NDArray[np.int64]) -> "Outputs":
        """Return the outputs of the positions `rows`, in this order."""
        arrays = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        chosen: dict[str, Any] = {name: array[rows] for name, array in arrays.items() if array is not None}
        return dataclasses.replace(self, **chosen)


def has_no_result(ko_rule: str, scoring: str) -> bool:
    """Return whether a game under these rules can end without a result. If not, the network's output for it is ignored.

    Args:
        ko_rule: SIMPLE, POSITIONAL, SITUATIONAL or SPIGHT.
        scoring: AREA or TERRITORY.
    """
    return ko_rule == "SIMPLE" or scoring == "TERRITORY"


def post_process(
    raw: RawOutputs,
    legal: BoolArray,
    no_result_possible: npt.ArrayLike,
    info: NetworkInfo,
    *,
    optimism: float = 0.0,
) -> Outputs:
    """Convert raw outputs to predictions.

    Args:
        raw: the graph's outputs for B positions.
        legal: [B, A + 1], at least one legal move in each row.
        no_result_possible: bool or [B]; see `has_no_result`.
        info: the network's metadata.
        optimism: weight of the optimistic policy, 0 to 1; without effect before version 12.
    """
    scales = scales_of(info)
    version = info.model_version
    win, loss, no_result = value_probabilities(raw.value, no_result_possible)
    decided = 1.0 - no_result
    mean = raw.misc[:, 0] * np.float32(scales.score_mean)
    stdev = _softplus(raw.misc[:, 1]) * np.float32(scales.score_stdev)
    winloss_error, score_error = shortterm_errors(raw.misc, version, scales)
    variance_time = None
    if version >= 9:
        variance_time = _softplus(raw.misc[:, 3]) * np.float32(scales.variance_time)
    return Outputs(
        policy=policy_probabilities(raw.policy, legal, optimism=optimism),
        win=win,
        loss=loss,
        no_result=no_result,
        score_mean=mean * decided,
        score_stdev=stdev,
        score_mean_square=(mean**2 + stdev**2) * decided,
        lead=raw.misc[:, 2] * np.float32(scales.lead) * decided,
        variance_time=variance_time,
        shortterm_winloss_error=winloss_error,
        shortterm_score_error=score_error,
        ownership=np.tanh(raw.ownership),
    )


def scales_of(info: NetworkInfo) -> OutputScales:
    """Return the scale factors in a network's metadata; without them, the default factors.

    Raises:
        NetworkError: the metadata contain other names.
    """
    known: Mapping[str, float] = info.scales
    try:
        return OutputScales(**{name: float(value) for name, value in known.items()})
    except TypeError:
        expected = ", ".join(item.name for item in dataclasses.fields(OutputScales))
        raise NetworkError(f"{info.name}: scales {', '.join(known)} found, expected {expected}") from None


def policy_probabilities(logits: FloatArray, legal: BoolArray, *, optimism: float = 0.0) -> FloatArray:
    """Return the policy [B, A + 1] over legal moves from logits [B, 1 or 2, A + 1].

    logit = ordinary + optimism * (optimistic - ordinary); softmax(logit) over the legal moves.
    """
    mixed = logits[:, 0]
    if logits.shape[1] > 1 and optimism != 0.0:
        mixed = mixed + np.float32(optimism) * (logits[:, 1] - mixed)
    mixed = np.where(legal, mixed, np.float32(-np.inf))
    exponential = np.exp(mixed - mixed.max(axis=1, keepdims=True))
    return np.asarray(exponential / exponential.sum(axis=1, keepdims=True), dtype=np.float32)


def value_probabilities(
    logits: FloatArray, no_result_possible: npt.ArrayLike
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the probabilities of win, loss and no result (0 if impossible), each [B], from logits [B, 3]."""
    possible = np.broadcast_to(np.asarray(no_result_possible, dtype=np.bool_), (logits.shape[0],))
    kept = logits.astype(np.float32)
    kept[~possible, 2] = -np.inf
    exponential = np.exp(kept - kept.max(axis=1, keepdims=True))
    probabilities = exponential / exponential.sum(axis=1, keepdims=True)
    return probabilities[:, 0], probabilities[:, 1], probabilities[:, 2]


def shortterm_errors(
    misc: FloatArray, version: int, scales: OutputScales
) -> tuple[FloatArray | None, FloatArray | None]:
    """Return the short-term errors of win - loss and of the score, each [B], or None if the network has none."""
    if misc.shape[1] < 6:
        return None, None
    value, score = misc[:, 4], misc[:, 5]
    # Version 9: softplus; 10 to 13: its square root, scaled; from 14: softplus of half the raw value, squared before
    # the square root.
    if version < 10:
        return _softplus(value), _softplus(score) * np.float32(10.0)
    by_value, by_score = np.float32(scales.shortterm_value_error), np.float32(scales.shortterm_score_error)
    if version < 14:
        return np.sqrt(_softplus(value) * by_value), np.sqrt(_softplus(score) * by_score)
    half = np.float32(0.5)
    return _softplus(value * half) * np.sqrt(by_value), _softplus(score * half) * np.sqrt(by_score)


def error_scales(info: NetworkInfo) -> tuple[float, float, float]:
    """Return (value scale, score scale, factor before softplus) for the errors in yomi.native.go.outputs."""
    if info.misc_channels < 6:
        return 0.0, 0.0, 0.0
    if info.model_version < 10:
        return 1.0, 10.0, 1.0
    scales = scales_of(info)
    by_value, by_score = math.sqrt(scales.shortterm_value_error), math.sqrt(scales.shortterm_score_error)
    return by_value, by_score, ROOT if info.model_version < 14 else 0.5


def _softplus(x: FloatArray) -> FloatArray:
    return np.asarray(np.logaddexp(np.float32(0.0), x), dtype=np.float32)


_OUTPUTS = {
    "policy": "[B, policy_channels, N * N + 1] logits, row by row from the top, pass last; ordinary, then optimistic",
    "value": "[B, 3] logits: the side to move wins, loses, no result",
    "misc": "[B, misc_channels] raw: score mean, score stdev, lead, variance time, short-term value and score errors",
    "ownership": "[B, N * N] before tanh, positive for the side to move",
}


def describe(network: KataGoNetwork, board_size: int, source_file: str, source_sha256: str) -> NetworkInfo:
    """Return the metadata of a network that was converted for boards of `board_size`."""
    return NetworkInfo(
        game="go",
        board_size=board_size,
        feature_set=KATAGO_FEATURES,
        name=network.name,
        source_file=source_file,
        source_sha256=source_sha256,
        model_version=network.version,
        policy_channels=network.policy_channels,
        misc_channels=network.misc_channels,
        meta_input=network.trunk.meta_encoder is not None,
        prefer_pass_alive_under_suicide_rules=network.prefer_pass_alive_under_suicide_rules,
        scales=dataclasses.asdict(network.scales),
        outputs=_OUTPUTS,
        training={"source": "KataGo network file"},
        converter_version=KATAGO_CONVERTER_VERSION,
    )

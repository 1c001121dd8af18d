"""Losses of a network's outputs against labels or a teacher. Also converts outputs to the units of labels."""

import dataclasses
import math
from collections.abc import Callable, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any, TypeAlias

import torch
from torch import Tensor
from torch.nn import functional

from yomi.nets.data.metrics import ILLEGAL, FloatArray, Judged
from yomi.nets.definitions.base import Network
from yomi.nets.definitions.go import GoNetwork
from yomi.nets.definitions.katago import from_katago
from yomi.nets.errors import NetworkError
from yomi.nets.katago.file import read_network
from yomi.nets.katago.network import OutputScales
from yomi.nets.training.config import Config
from yomi.nets.training.processes import mean_count
from yomi.nets.training.tensors import Example

SCALES = OutputScales()
# Minimum variance of a teacher's channel: channels that hardly change do not count more.
MIN_VARIANCE = 1e-3
# Points from which a score error counts linearly (KataGo's).
HUBER = 12.0
# Thresholds from which errors of the expected squares count linearly; the second is in points² (KataGo's).
SHORT_HUBERS = {"short_value": 0.4, "short_score": 100.0}


def losses(outputs: dict[str, Tensor], example: Example) -> dict[str, Tensor]:
    """Return the mean loss of every output that has a label, without weights."""
    found: dict[str, Tensor] = {}
    labels = example.labels
    ownership = labels.get("ownership")
    if "policy" in outputs:
        found["policy"] = policy_loss(outputs["policy"], labels["policy_moves"], labels["policy_weights"])
    known = labels["value"].isfinite()
    value = torch.where(known, labels["value"], 0.0)
    if "value" in outputs:
        found["value"] = mean_known((outputs["value"].float()[:, 0] - value) ** 2, known)
    elif "value_logit" in outputs:
        logit = outputs["value_logit"].float()[:, 0]
        each = functional.binary_cross_entropy_with_logits(logit, (value + 1.0) / 2.0, reduction="none")
        found["value"] = mean_known(each, known)
    elif "outcome" in outputs:
        shares = torch.stack([(1.0 + value) / 2.0, (1.0 - value) / 2.0, torch.zeros_like(value)], 1)
        log_shares = functional.log_softmax(outputs["outcome"].float(), 1)
        found["value"] = mean_known(-(shares * log_shares).sum(1), known)
    if "score" in outputs and "lead" in labels and "komi" in labels:
        found["score"] = _points(outputs["score"].float()[:, 0], labels["lead"] - labels["komi"], None)
    if "points" in outputs and ownership is not None:
        found["points"] = _owned_points(outputs["points"].float()[:, 0], ownership)
    if "misc" in outputs:
        found |= _misc(outputs["misc"].float(), labels)
    if "square_errors" in outputs:
        found |= _square_errors(outputs, labels)
    if "ownership" in outputs and ownership is not None:
        known = ownership.isfinite()
        target = torch.where(known, (ownership + 1.0) / 2.0, 0.5)
        logits = 2.0 * outputs["ownership"].float()  # tanh(x) is 2 sigmoid(2 x) - 1
        each = functional.binary_cross_entropy_with_logits(logits, target, reduction="none")
        found["ownership"] = mean_known(each, known)
    return found


def hints(maps: list[Tensor], wanted: list[Tensor]) -> Tensor:
    """Return the mean squared error of `maps` [B, C, N, N], as a share of each channel's variance in `wanted`."""
    return torch.stack([_missed_share(*pair) for pair in zip(maps, wanted, strict=True)]).mean()


class _MissedShare(torch.autograd.Function):
    """Mean squared error of two maps float32[n, C], in units of each channel's variance in `wanted`.

    The gradient is written by hand, for speed.
    """

    @staticmethod
    def forward(ctx: Any, found: Tensor, wanted: Tensor) -> Tensor:
        # It passes over large maps: six times as fast as autograd of means and `var`.
        shares = wanted.new_full((1, len(wanted)), 1.0 / len(wanted))
        variance = shares @ (wanted * wanted) - (shares @ wanted) ** 2
        scales = variance.clamp(min=MIN_VARIANCE).rsqrt()
        missed = (found - wanted).mul_(scales)
        ctx.save_for_backward(missed, scales)
        return torch.dot(missed.view(-1), missed.view(-1)) / missed.numel()

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        missed, scales = ctx.saved_tensors
        return missed * (scales * (2.0 * gradients[0] / missed.numel())), None


def _missed_share(found: Tensor, wanted: Tensor) -> Tensor:
    flat = [each.permute(0, 2, 3, 1).reshape(-1, each.shape[1]).float() for each in (found, wanted)]
    share: Tensor = _MissedShare.apply(*flat)
    return share


# Returns the loss to minimize, a scalar, from the mean losses by name, their weights, the outputs and the labels.
Total: TypeAlias = Callable[[dict[str, Tensor], SimpleNamespace, dict[str, Tensor], Example], Tensor]


def weighted(
    found: dict[str, Tensor], weights: SimpleNamespace, outputs: dict[str, Tensor], example: Example
) -> Tensor:
    """Return the sum of losses times weights. Trainings use this loss by default."""
    return torch.stack([getattr(weights, name) * loss for name, loss in found.items()]).sum()


def loss_weights(config: Config, network: Network) -> SimpleNamespace:
    """Return the weights of all losses as attributes.

    Raises:
        NetworkError: [loss] contains an unknown loss, or a weight that is not a number of at least 0.
    """
    weights = {**dataclasses.asdict(config.loss), **network.loss_weights}
    for name, weight in config.own_losses.items():
        if name not in weights:
            raise NetworkError(f"[loss] {name} found, expected one of {', '.join(weights)}")
        if isinstance(weight, bool) or not isinstance(weight, int | float) or not 0.0 <= weight < math.inf:
            raise NetworkError(f"[loss] {name} = {weight!r} found, expected a number of at least 0")
    return SimpleNamespace(**{**weights, **config.own_losses})


def mean_known(each: Tensor, known: Tensor) -> Tensor:
    """Return the mean of `each` over known labels; 0 if no label is known."""
    # The mean over the parts of several processes is the mean of the whole batch.
    return torch.where(known, each, 0.0).sum() / mean_count(known.sum())


def policy_loss(logits: Tensor, moves: Tensor, weights: Tensor) -> Tensor:
    """Return the mean cross entropy of a policy with its target. Rows without a weight do not count.

    Args:
        logits: [B, P].
        moves: int64[B, K] policy indices of the target.
        weights: [B, K] shares of these moves; they need not add up to 1.
    """
    logits, size = logits.float(), logits.shape[1]
    places = moves.clamp(max=size - 1)
    # Targets without an output do not count: a pass, or moves that an encoder calls illegal.
    asked = (moves < size) & (logits.gather(1, places) > ILLEGAL / 2)
    weights = torch.where(asked, weights, 0.0)
    weight = weights.sum(1)
    log_shares = functional.log_softmax(logits, 1).gather(1, places)
    each = -(weights * log_shares).sum(1) / weight.clamp(min=1e-3)
    return mean_known(each, weight > 0.0)


def _points(found: Tensor, label: Tensor, huber: float | None) -> Tensor:
    """Return the mean absolute error in points, or with `huber` the Huber loss."""
    known = label.isfinite()
    errors = found - torch.where(known, label, 0.0)
    if huber is None:
        return mean_known(errors.abs(), known)
    return (
        mean_known(functional.huber_loss(errors, torch.zeros_like(errors), reduction="none", delta=huber), known)
        / huber
    )


def _owned_points(points: Tensor, ownership: Tensor) -> Tensor:
    """Return the sum of absolute errors between a map of points and the ownership, averaged over rows with labels.

    Args:
        points: [B, n, n]. The score is the mean of the n² entries.
        ownership: [B, N * N], N >= n. A row with a NaN has no label.
    """
    size, side = math.isqrt(ownership.shape[1]), points.shape[1]
    # Points that convolutions without padding cut off belong to the nearest remaining point.
    nearest = (torch.arange(size, device=points.device) - (size - side) // 2).clamp(0, side - 1)
    folded = functional.one_hot(nearest, side).to(points.dtype)
    known = ownership.isfinite().all(1)
    owner = torch.where(known[:, None], ownership, 0.0).view(-1, size, size)
    errors = points / side**2 - folded.T @ owner @ folded
    return mean_known(errors.abs().sum((1, 2)), known)


def _misc(misc: Tensor, labels: Mapping[str, Tensor]) -> dict[str, Tensor]:
    said = {
        "score_mean": misc[:, 0] * SCALES.score_mean,
        "score_stdev": functional.softplus(misc[:, 1]) * SCALES.score_stdev,
        "lead": misc[:, 2] * SCALES.lead,
    }
    return {name: _points(points, labels[name], HUBER) for name, points in said.items() if name in labels}


def _square_errors(outputs: dict[str, Tensor], labels: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return the losses of the squared short-term errors that a network predicts for itself."""
    shares = torch.softmax(outputs["outcome"].float()[:, :2], 1)
    said = {
        "short_value": (shares[:, 0] - shares[:, 1], labels.get("short_value")),
        "short_score": (outputs["misc"].float()[:, 0] * SCALES.score_mean, labels.get("short_score")),
    }
    found = {}
    for expected, (name, (own, label)) in zip(outputs["square_errors"].unbind(1), said.items(), strict=True):
        if label is not None:
            known = label.isfinite()
            square = (own.detach() - torch.where(known, label, 0.0)) ** 2
            each = functional.huber_loss(expected / SHORT_HUBERS[name], square / SHORT_HUBERS[name], reduction="none")
            found[f"{name}_error"] = mean_known(each, known)
    return found


def judged(outputs: dict[str, Tensor]) -> Judged:
    """Convert a network's outputs to the units of the labels."""
    plain = {name: output.float() for name, output in outputs.items()}
    value = lead = None
    if "value" in plain:
        value = plain["value"][:, 0]
    elif "value_logit" in plain:
        value = torch.tanh(plain["value_logit"][:, 0] / 2.0)
    elif "outcome" in plain:
        shares = torch.softmax(plain["outcome"][:, :2], 1)
        value = shares[:, 0] - shares[:, 1]
    if "score" in plain:
        lead = plain["score"][:, 0]
    elif "misc" in plain:
        lead = plain["misc"][:, 2] * SCALES.lead
    ownership = torch.tanh(plain["ownership"]) if "ownership" in plain else None
    return Judged(
        policy=_array(plain.get("policy")),
        value=_array(value),
        lead=_array(lead),
        ownership=_array(ownership),
        counts_komi="score" not in plain,
    )


def _array(tensor: Tensor | None) -> FloatArray | None:
    return None if tensor is None else tensor.cpu().numpy()


class Teacher:
    """A KataGo network. Its trunk after each block is the target for the trained network's trunk."""

    def __init__(self, path: Path, learner: Network, device: torch.device) -> None:
        """Read the network.

        Raises:
            NetworkError: it cannot be read, or its trunk has another shape than the trained network's.
        """
        # The trunk contains far more about a position than the outputs do: channels × points for each block, while a
        # policy is one number a point.
        self._network = from_katago(read_network(path)).requires_grad_(False).eval()
        if not isinstance(learner, GoNetwork):
            raise NetworkError(f"[teacher] network = {str(path)!r} found, expected none except for networks of kind go")
        own, other = ((len(each.blocks), each.conv.out_channels) for each in (learner, self._network))
        if own != other:
            raise NetworkError(
                f"{path}: {other[0]} blocks of {other[1]} channels found, expected the learner's {own[0]} of {own[1]}"
            )
        self._network.to(device, memory_format=torch.channels_last)

    def maps(self, example: Example) -> list[Tensor]:
        """Return the trunk after each block [B, C, N, N]."""
        found: list[Tensor] = []
        with torch.no_grad():
            self._network(*example.inputs, maps=found)
        return found

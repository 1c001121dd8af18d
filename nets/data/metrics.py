"""The quality of a network's outputs on labelled positions, in the measures that dlshogi reports. Plain numpy."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from yomi.nets.data.columns import OWNER_SCALE, UNKNOWN_OWNER
from yomi.nets.data.shards import Arrays

FloatArray = npt.NDArray[np.float32]
# Logit of illegal moves, for networks that read which moves are legal. Targets on such moves do not count.
ILLEGAL = -1e9
NAMES = {
    "policy_loss": "policy loss (cross entropy)",
    "policy_accuracy": "policy accuracy",
    "policy_entropy": "policy entropy",
    "value_loss": "value loss (cross entropy)",
    "value_accuracy": "value accuracy",
    "value_error": "value error (mean square)",
    "score_error": "score error (mean absolute, points)",
    "ownership_error": "ownership error (mean absolute)",
}


@dataclass(frozen=True, eq=False)
class Judged:
    """A network's predictions for a batch, in the units of the labels. Outputs that the network lacks are None."""

    policy: FloatArray | None = None  # [B, P] logits
    value: FloatArray | None = None  # [B] in [-1, 1]
    lead: FloatArray | None = None  # [B] points
    ownership: FloatArray | None = None  # [B, N * N] in [-1, 1]
    counts_komi: bool = True  # whether the lead includes komi, as the labels do


@dataclass
class Table:
    sums: dict[str, float] = field(default_factory=dict)
    counts: dict[str, float] = field(default_factory=dict)
    positions: int = 0

    def add(self, judged: Judged, columns: Arrays) -> None:
        self.positions += len(columns["planes"])
        if judged.policy is not None:
            self._add_policy(judged.policy, columns)
        if judged.value is not None:
            self._add_value(judged.value.astype(np.float64), columns["value"].astype(np.float64))
        if judged.lead is not None and "lead" in columns:
            labels = columns["lead"].astype(np.float32)
            if not judged.counts_komi:
                labels = labels - columns["komi"].astype(np.float32)
            known = np.isfinite(labels)
            self._count("score_error", np.abs(judged.lead - labels)[known])
        if judged.ownership is not None and "ownership" in columns:
            known = columns["ownership"] != UNKNOWN_OWNER
            errors = np.abs(judged.ownership - columns["ownership"].astype(np.float32) / OWNER_SCALE)
            self._count("ownership_error", errors[known])

    def values(self) -> dict[str, float]:
        """Return the means over all batches, by name (NAMES)."""
        return {name: self.sums[name] / self.counts[name] for name in NAMES if self.counts.get(name)}

    def _count(self, name: str, values: npt.NDArray[Any]) -> None:
        self.sums[name] = self.sums.get(name, 0.0) + float(values.sum(dtype=np.float64))
        self.counts[name] = self.counts.get(name, 0.0) + values.size

    def _add_policy(self, logits: FloatArray, columns: Arrays) -> None:
        moves = columns["policy_moves"].astype(np.int64)
        weights = columns["policy_weights"].astype(np.float64)
        # A network without a pass gets no loss for a target that passes.
        weights = np.where(moves < logits.shape[1], weights, 0.0)
        moves = np.minimum(moves, logits.shape[1] - 1)
        weights = np.where(np.take_along_axis(logits, moves, 1) > ILLEGAL / 2, weights, 0.0)
        total = weights.sum(1)
        known = total > 0.0
        if not known.any():
            return
        logits, moves = logits[known].astype(np.float64), moves[known]
        weights = weights[known] / total[known][:, None]
        shifted = logits - logits.max(1, keepdims=True)
        log_shares = shifted - np.log(np.exp(shifted).sum(1, keepdims=True))
        self._count("policy_loss", -(weights * np.take_along_axis(log_shares, moves, 1)).sum(1))
        best = np.take_along_axis(moves, weights.argmax(1)[:, None], 1)[:, 0]
        self._count("policy_accuracy", logits.argmax(1) == best)
        self._count("policy_entropy", -(np.exp(log_shares) * log_shares).sum(1))

    def _add_value(self, found: npt.NDArray[np.float64], labels: npt.NDArray[np.float64]) -> None:
        known = np.isfinite(labels)
        found, labels = found[known], labels[known]
        self._count("value_error", (found - labels) ** 2)
        share = np.clip((found + 1.0) / 2.0, 1e-6, 1.0 - 1e-6)
        wanted = (labels + 1.0) / 2.0
        self._count("value_loss", -(wanted * np.log(share) + (1.0 - wanted) * np.log(1.0 - share)))
        decided = labels != 0.0
        self._count("value_accuracy", (found > 0.0)[decided] == (labels > 0.0)[decided])

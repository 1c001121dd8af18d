"""Evaluators by rollouts, alone or mixed with a network."""

from __future__ import annotations

import threading

import numpy as np

from yomi.engine.evaluators.base import Evaluator
from yomi.engine.evaluators.network import FileEvaluator
from yomi.native.bound_kernels import Calls
from yomi.native.go.board import POSITION_DTYPE
from yomi.native.go.rollout_evaluator import mix_rollouts, write_priors
from yomi.native.spec import Inputs
from yomi.native.tree.arrays import Batch


class _Local(threading.local):
    """Random state and scratch board of one thread."""

    def __init__(self, seeds: np.random.SeedSequence) -> None:
        self.rng = seeds.spawn(1)[0].generate_state(1, np.uint64) | np.uint64(1)
        self.scratch = np.zeros(1, POSITION_DTYPE)[0]

    def mix(self, batch: Batch, rollouts: int, weight: float, score_weight: float) -> Calls:
        """Return the call that mixes rollouts into a batch's values, scores and ownership."""
        owners = np.zeros((1, batch.ownership.shape[1]), np.float32)
        means = np.zeros(2, np.float32)
        return mix_rollouts.bind(
            batch, rollouts, np.float32(weight), np.float32(score_weight), self.rng, self.scratch, means, owners
        )


class RolloutEvaluator:
    """Plays patterned rollouts from each leaf. Priors come from tactics and patterns."""

    inputs = Inputs.POSITIONS

    def __init__(self, rollouts: int = 1, batch_size: int = 1, seed: int | None = None) -> None:
        """Use `rollouts` games for each leaf. Equal seeds and calls in one thread give equal results."""
        self.rollouts = rollouts
        self.batch_size = batch_size
        self._local = _Local(np.random.SeedSequence(seed))

    @property
    def description(self) -> str:
        return f"patterned rollouts ({self.rollouts} a leaf)"

    def evaluate(self, batch: Batch, rows: int) -> None:
        """Write logits, values and ownership of the first `rows` rows, which must not use symmetries."""
        self.bind(batch).run(rows)

    def bind(self, batch: Batch) -> Calls:
        """Return the calls that evaluate this batch in the calling thread."""
        return write_priors.bind(batch) + self._local.mix(batch, self.rollouts, 1.0, 1.0)

    def close(self) -> None:
        """Release nothing: rollouts hold no resources."""


class MixedEvaluator:
    """A network with rollouts mixed into its values and ownership. Priors are the network's."""

    def __init__(self, network: Evaluator, weight: float, rollouts: int = 1, seed: int | None = None) -> None:
        """Give rollouts the `weight` (0 to 1). If the network has no scores, rollouts provide them."""
        self.network = network
        self.weight = weight
        self.rollouts = rollouts
        self.inputs = network.inputs | Inputs.POSITIONS
        self.batch_size = network.batch_size
        source = getattr(network, "values", network)
        self._has_scores = not isinstance(source, FileEvaluator) or source.format.predicts_score
        self._local = _Local(np.random.SeedSequence(seed))

    @property
    def description(self) -> str:
        return f"{self.network.description}, {self.weight:.0%} rollouts"

    def evaluate(self, batch: Batch, rows: int) -> None:
        self.network.evaluate(batch, rows)
        self._mix(batch).run(rows)

    def bind(self, batch: Batch) -> Calls | None:
        """Return the calls of network and rollouts, or None if the network has none."""
        network = self.network.bind(batch)
        return None if network is None else network + self._mix(batch)

    def _mix(self, batch: Batch) -> Calls:
        score_weight = self.weight if self._has_scores else 1.0
        return self._local.mix(batch, self.rollouts, self.weight, score_weight)

    def close(self) -> None:
        self.network.close()

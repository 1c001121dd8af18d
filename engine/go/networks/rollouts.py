"""Judging Go positions by rollouts, alone or mixed with a network."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import numpy as np

from yomi.engine.evaluators.network import FileEvaluator
from yomi.native.go.board import POSITION_DTYPE
from yomi.native.go.rollout_evaluator import mix_rollouts, write_priors
from yomi.native.spec import Inputs

if TYPE_CHECKING:
    from yomi.engine.evaluators.base import Evaluator
    from yomi.native.calls import Calls
    from yomi.native.tree.arrays import Batch


class _Local(threading.local):
    """One thread's random numbers and board."""

    def __init__(self, seeds: np.random.SeedSequence) -> None:
        self.rng = seeds.spawn(1)[0].generate_state(1, np.uint64) | np.uint64(1)
        self.scratch = np.zeros(1, POSITION_DTYPE)[0]

    def mix(self, batch: Batch, rollouts: int, weight: float, score_weight: float) -> Calls:
        """Return the call that mixes rollouts into a batch's values, and into its scores and ownership."""
        owners = np.zeros((1, batch.ownership.shape[1]), np.float32)
        means = np.zeros(2, np.float32)
        return mix_rollouts.bind(
            batch, rollouts, np.float32(weight), np.float32(score_weight), self.rng, self.scratch, means, owners
        )


class RolloutEvaluator:
    """Plays patterned rollouts from each leaf; priors come from tactics and patterns."""

    inputs = Inputs.POSITIONS

    def __init__(self, rollouts: int = 1, batch_size: int = 1, seed: int | None = None) -> None:
        """Make an evaluator of `rollouts` games a leaf; equal seeds and calls in one thread give equal results."""
        self.rollouts = rollouts
        self.batch_size = batch_size
        self._local = _Local(np.random.SeedSequence(seed))

    @property
    def description(self) -> str:
        """What judges, on one line."""
        return f"patterned rollouts ({self.rollouts} a leaf)"

    def evaluate(self, batch: Batch, rows: int) -> None:
        """Write logits, values and ownership of the first `rows` rows; no row may stand under a symmetry."""
        self.bind(batch).run(rows)

    def bind(self, batch: Batch) -> Calls:
        """Return the calls that evaluate this batch in the thread that asks."""
        return write_priors.bind(batch) + self._local.mix(batch, self.rollouts, 1.0, 1.0)

    def close(self) -> None:
        """Do nothing."""


class MixedEvaluator:
    """A network whose values and ownership are mixed with rollouts; priors are the network's."""

    def __init__(self, network: Evaluator, weight: float, rollouts: int = 1, seed: int | None = None) -> None:
        """Mix `weight` (0 to 1) of rollouts into the values of `network`; scores that it does not say are theirs."""
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
        """What judges, on one line."""
        return f"{self.network.description}, {self.weight:.0%} rollouts"

    def evaluate(self, batch: Batch, rows: int) -> None:
        """Write the mixture."""
        self.network.evaluate(batch, rows)
        self._mix(batch).run(rows)

    def bind(self, batch: Batch) -> Calls | None:
        """Return the network's calls and that of the rollouts; None where the network has none."""
        network = self.network.bind(batch)
        return None if network is None else network + self._mix(batch)

    def _mix(self, batch: Batch) -> Calls:
        score_weight = self.weight if self._has_scores else 1.0
        return self._local.mix(batch, self.rollouts, self.weight, score_weight)

    def close(self) -> None:
        """Release the network."""
        self.network.close()

"""Learning rates by step, and when to stop. No PyTorch."""

from __future__ import annotations

import math
from dataclasses import dataclass

from yomi.nets.training.config import TrainingConfig


def learning_rate(config: TrainingConfig, step: int) -> float:
    """Return the learning rate of a step, counted from 0."""
    rate = config.learning_rate
    if config.schedule == "cosine":
        progress = min(1.0, step / max(1, config.steps - 1))
        rate *= config.final + (1.0 - config.final) * 0.5 * (1.0 + math.cos(math.pi * progress))
    elif config.schedule == "steps":
        rate *= config.factor ** sum(step >= milestone for milestone in config.milestones)
    if step < config.warmup:
        rate *= (step + 1) / config.warmup
    return rate


@dataclass
class EarlyStopping:
    """Stops after `patience` + 1 tests in a row without a lower loss.

    Keras counted like this when COSUMI's networks were trained: with a patience of 0 the first failure stops.
    """

    patience: int
    """-1: never stops."""
    best: float = math.inf
    failures: int = 0

    def update(self, loss: float) -> bool:
        """Record a test's loss and return whether it is the best so far."""
        improved = loss < self.best
        self.failures = 0 if improved else self.failures + 1
        self.best = min(self.best, loss)
        return improved

    @property
    def stops(self) -> bool:
        """Whether training should end."""
        return self.patience >= 0 and self.failures > self.patience

"""Means of the weights of many steps: exponential (EMA), or of all steps alike (SWA)."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from nets.training.config import TrainingConfig


class Average:
    """A running mean of everything in a network's state, norms' statistics included."""

    def __init__(self, network: nn.Module, config: TrainingConfig) -> None:
        """Begin with the network as it is."""
        self.kind = config.average
        self.decay = config.decay
        self.start = config.average_start
        self.count = 0
        self.state: dict[str, Tensor] = {name: each.detach().clone() for name, each in network.state_dict().items()}

    def update(self, network: nn.Module, step: int) -> None:
        """Take the weights after a step, counted from 0, into the mean."""
        if step < self.start:
            share = 1.0
        elif self.kind == "ema":
            # A young mean forgets its beginning sooner.
            share = 1.0 - min(self.decay, (1.0 + self.count) / (10.0 + self.count))
            self.count += 1
        else:
            self.count += 1
            share = 1.0 / self.count
        with torch.no_grad():
            for name, value in network.state_dict().items():
                if value.is_floating_point():
                    self.state[name].lerp_(value, share)
                else:
                    self.state[name].copy_(value)

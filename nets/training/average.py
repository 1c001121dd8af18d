"""Averages of the weights of many steps: exponential (EMA) or uniform (SWA), and their batch norms."""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

from yomi.nets.training.config import TrainingConfig
from yomi.nets.training.tensors import Example


class Average:
    """A running average of a network's state, including the statistics of norms."""

    def __init__(self, network: nn.Module, config: TrainingConfig) -> None:
        """Start with the network's present state."""
        self.kind = config.average
        self.decay = config.decay
        self.start = config.average_start
        self.count = 0
        self.state: dict[str, Tensor] = {name: each.detach().clone() for name, each in network.state_dict().items()}

    def update(self, network: nn.Module, step: int) -> None:
        """Add the weights after a step, counted from 0, to the average."""
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


def has_statistics(network: nn.Module) -> bool:
    """Whether a network has batch norms."""
    return any(isinstance(module, _BatchNorm) for module in network.modules())


def renew_statistics(network: nn.Module, examples: Iterable[Example]) -> None:
    """Recompute the running statistics of batch norms as means over the batches of `examples`.

    Averaged statistics of many steps are not the statistics of averaged weights (Izmailov et al. 2018, section 3.2).
    Afterwards the network is in training mode.
    """
    norms = [module for module in network.modules() if isinstance(module, _BatchNorm)]
    momenta = [norm.momentum for norm in norms]
    network.train()
    try:
        for norm in norms:
            norm.reset_running_stats()
            norm.momentum = None  # PyTorch's word for a mean in which all batches count alike
        with torch.no_grad():
            for example in examples:
                network(*example.inputs)
    finally:
        for norm, momentum in zip(norms, momenta, strict=True):
            norm.momentum = momentum

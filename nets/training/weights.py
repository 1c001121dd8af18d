"""Averages of weights over many steps, and checkpoints."""

import io
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

from yomi.nets.errors import NetworkError
from yomi.nets.files import write_atomically
from yomi.nets.training.config import TrainingConfig
from yomi.nets.training.tensors import Example


class Average:
    """A running average of a network's state, which includes the statistics of norms."""

    def __init__(self, network: nn.Module, config: TrainingConfig) -> None:
        self.config = config
        self.count = 0
        self.state: dict[str, Tensor] = {name: each.detach().clone() for name, each in network.state_dict().items()}

    def update(self, network: nn.Module, step: int) -> None:
        """Add the weights after a step, counted from 0, to the average."""
        share = 1.0
        if step >= self.config.average_start:
            # A young average (ema) forgets its beginning sooner.
            ema = 1.0 - min(self.config.decay, (1.0 + self.count) / (10.0 + self.count))
            self.count += 1
            share = ema if self.config.average == "ema" else 1.0 / self.count
        with torch.no_grad():
            for name, value in network.state_dict().items():
                if value.is_floating_point():
                    self.state[name].lerp_(value, share)
                else:
                    self.state[name].copy_(value)


def renew_statistics(network: nn.Module, examples: Iterable[Example]) -> None:
    """Recompute the running statistics of batch norms, if there are any, as means over the batches `examples`.

    Afterwards other modules are in evaluation mode.
    """
    # Averaged statistics of many steps are not the statistics of averaged weights (Izmailov et al. 2018, section 3.2).
    norms = [module for module in network.modules() if isinstance(module, _BatchNorm)]
    momenta = [norm.momentum for norm in norms]
    if not norms:
        return
    network.eval()  # statistics without dropout, as the network will be used
    try:
        for norm in norms:
            norm.train()
            norm.reset_running_stats()
            norm.momentum = None  # PyTorch's value for a mean with equal weights
        with torch.no_grad():
            for example in examples:
                network(*example.inputs)
    finally:
        for norm, momentum in zip(norms, momenta, strict=True):
            norm.momentum = momentum


FORMAT = 1


def save_checkpoint(path: Path, state: dict[str, Any]) -> None:
    """Write a checkpoint. The old one stays until the new one is complete.

    Raises:
        OSError: it cannot be written.
    """
    content = io.BytesIO()  # PyTorch's own error of a full disk is a RuntimeError about its file format
    torch.save({"format": FORMAT, **state}, content)
    write_atomically(path, content.getvalue(), sync=True)


def load_checkpoint(path: Path) -> dict[str, Any]:
    """Read a checkpoint. Its tensors are on the CPU.

    Raises:
        NetworkError: it cannot be read, or has another format.
    """
    try:
        state = torch.load(path, map_location="cpu", weights_only=True)
    except OSError as error:
        raise NetworkError(f"{path}: {error.strerror}: expected a checkpoint") from None
    except Exception:  # torch raises any error of unpickling, and advises to load the file unsafely
        state = None
    if not isinstance(state, dict) or state.get("format") != FORMAT:
        raise NetworkError(
            f"{path}: a damaged file or one of another kind found, expected a checkpoint of format {FORMAT}"
            " (without the file, training begins again)"
        )
    return state

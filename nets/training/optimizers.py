"""Optimizers: PyTorch's, and Muon.

Muon (Jordan et al. 2024) replaces the momentum of a matrix by the nearest orthogonal matrix, so that all directions of
a weight learn at one pace. A convolution counts as the matrix from its inputs to its channels. Adam updates vectors and
narrow matrices. Updates are scaled to the size of Adam's (Liu et al. 2025), so one learning rate serves both.
"""

from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor, nn

from yomi.nets.training.config import TrainingConfig

ROUNDS = 5
# Coefficients of the polynomial whose iteration brings singular values near 1 (Newton-Schulz).
COEFFICIENTS = (3.4445, -4.7750, 2.0315)
ADAM_BETAS = (0.9, 0.999)
ADAM_EPSILON = 1e-8
# Root mean square of Adam's update, in learning rates.
ADAM_SIZE = 0.2
# Adam updates matrices with fewer rows or columns.
SMALLEST_SIDE = 8


def make_optimizer(network: nn.Module, config: TrainingConfig) -> torch.optim.Optimizer:
    """Return the optimizer that a configuration names. Biases and norms do not decay."""
    decayed = [each for each in network.parameters() if each.ndim > 1]
    others = [each for each in network.parameters() if each.ndim <= 1]
    groups: list[dict[str, Any]] = [
        {"params": decayed, "weight_decay": config.weight_decay},
        {"params": others, "weight_decay": 0.0},
    ]
    if config.optimizer == "muon":
        return Muon(groups, config.learning_rate, config.momentum)
    if config.optimizer == "sgd":
        return torch.optim.SGD(groups, lr=config.learning_rate, momentum=config.momentum, nesterov=config.momentum > 0)
    kind = torch.optim.AdamW if config.optimizer == "adamw" else torch.optim.Adam
    return kind(groups, lr=config.learning_rate, fused=True)  # a third of the time, on processors too


def restore_optimizer(optimizer: torch.optim.Optimizer, state: dict[str, Any]) -> None:
    """Load the state of an earlier optimizer of the same kind. Learning rates and other settings stay as they are."""
    # PyTorch's own way would restore the old decay and momentum with the state.
    groups = [{name: each for name, each in group.items() if name != "params"} for group in optimizer.param_groups]
    optimizer.load_state_dict(state)
    for group, own in zip(optimizer.param_groups, groups, strict=True):
        group.update(own)


class Muon(torch.optim.Optimizer):
    """Muon for matrices and convolutions, Adam for all other parameters. Weights decay as in AdamW."""

    def __init__(self, params: Iterable[Any], lr: float, momentum: float = 0.9) -> None:
        """Create the optimizer.

        Args:
            params: parameters or groups of them; a group may have a `weight_decay` of its own.
            lr: learning rate, of the size that suits Adam.
            momentum: Nesterov momentum of Muon.
        """
        super().__init__(params, {"lr": lr, "momentum": momentum, "weight_decay": 0.0})

    def step(self, closure: Callable[[], float] | None = None) -> float | None:
        loss = closure() if closure is not None else None
        with torch.no_grad():
            for group in self.param_groups:
                for parameter in group["params"]:
                    if parameter.grad is not None:
                        self._update(parameter, group)
        return loss

    def _update(self, parameter: Tensor, group: dict[str, Any]) -> None:
        parameter.mul_(1.0 - group["lr"] * group["weight_decay"])
        if parameter.ndim > 1 and min(parameter.flatten(1).shape) >= SMALLEST_SIDE:
            self._orthogonal_step(parameter, group)
        else:
            self._adam_step(parameter, group)

    def _orthogonal_step(self, parameter: Tensor, group: dict[str, Any]) -> None:
        gradient, state = parameter.grad, self.state[parameter]
        assert gradient is not None
        if not state:
            state["mean"] = torch.zeros_like(parameter)
        state["mean"].lerp_(gradient, 1.0 - group["momentum"])
        ahead = gradient.lerp(state["mean"], group["momentum"])
        matrix = ahead.flatten(1)
        size = ADAM_SIZE * max(matrix.shape) ** 0.5
        parameter.add_(orthogonal(matrix).view(parameter.shape), alpha=-group["lr"] * size)

    def _adam_step(self, parameter: Tensor, group: dict[str, Any]) -> None:
        gradient, state = parameter.grad, self.state[parameter]
        assert gradient is not None
        if not state:
            state["mean"], state["square"] = torch.zeros_like(parameter), torch.zeros_like(parameter)
            state["steps"] = torch.zeros(())
        first, second = ADAM_BETAS
        state["steps"] += 1
        state["mean"].lerp_(gradient, 1.0 - first)
        state["square"].lerp_(gradient * gradient, 1.0 - second)
        count = float(state["steps"])
        root = (state["square"] / (1.0 - second**count)).sqrt_().add_(ADAM_EPSILON)
        parameter.addcdiv_(state["mean"], root, value=-group["lr"] / (1.0 - first**count))


def orthogonal(matrix: Tensor) -> Tensor:
    """Return nearly the closest orthogonal matrix: its singular values are between about 0.7 and 1.2."""
    a, b, c = COEFFICIENTS
    wide = matrix.shape[0] <= matrix.shape[1]
    x = matrix if wide else matrix.T
    x = x / (x.norm() + 1e-7)
    for _ in range(ROUNDS):
        gram = x @ x.T
        x = a * x + (b * gram + c * gram @ gram) @ x
    return x if wide else x.T

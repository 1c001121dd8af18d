"""What every network of ours has in common, and the blocks that several are made of.

A network is called with two inputs: planes [B, C, N, N], and globals [B, G, 1, 1] (or spread over the board), which
networks without them ignore; a sparse one with an input of its own (`yomi.nets.definitions.sparse`). It returns its
outputs by name:

* `policy` [B, P] logits; P is N * N, N * N + 1 with the pass last, or shogi's labels. Sparse networks, which see what
  is legal, say ILLEGAL (`yomi.nets.data.metrics`) of all else.
* `value` [B, 1] in [-1, 1], `value_logit` [B, 1] before a sigmoid, or `outcome` [B, 3] logits of win, loss, no result.
* `score` [B, 1] in points, and in training `points` [B, 1, n, n], whose mean it is.
* `square_errors` [B, 2], in training: the squares that are expected of the errors of value and score some moves later.
* `misc` [B, 4 or 6] and `ownership` [B, N * N] raw, as in KataGo's networks.

All of them are for the side to move, but for networks that see colors as they are.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from yomi.nets.errors import NetworkError


class Network(nn.Module):
    """The base of all definitions."""

    feature_set: str
    """Name in `yomi.nets.features`."""
    board_size: int
    """N that the network is for; 0 for any."""

    is_sparse = False
    """Whether the inputs are an encoder's rows (`yomi.nets.data.sparse`) instead of planes."""

    def forward(self, *inputs: Any, **more: Any) -> dict[str, Tensor]:
        """Return the outputs by name."""
        raise NotImplementedError

    def constrain(self) -> None:
        """Clip weights to the range of the network's file after a step. The base class does nothing."""

    def hold_untaught(self, state: Mapping[str, Tensor]) -> None:
        """In a state dict of this network, set the outputs that no label teaches to constants. The base class does
        nothing.
        """

    def count(self) -> int:
        """Return the number of trainable parameters."""
        return int(sum(parameter.numel() for parameter in self.parameters() if parameter.requires_grad))


def conv(inputs: int, outputs: int, kernel: int, *, bias: bool = True, padded: bool = True) -> nn.Conv2d:
    """Return a convolution with stride 1; without padding the board shrinks by kernel - 1."""
    return nn.Conv2d(inputs, outputs, kernel, padding=kernel // 2 if padded else 0, bias=bias)


def conv_norm(inputs: int, outputs: int, kernel: int, *, bias: bool = False) -> nn.Sequential:
    """Return a convolution and its batch normalisation."""
    return nn.Sequential(conv(inputs, outputs, kernel, bias=bias), nn.BatchNorm2d(outputs))


class ResidualBlock(nn.Module):
    """act(x + norm(conv(act(norm(conv(x)))))): the block of AlphaZero's and dlshogi's networks."""

    def __init__(self, channels: int, activation: type[nn.Module]) -> None:
        """Create a block with `channels` input and output channels."""
        super().__init__()
        self.first = conv_norm(channels, channels, 3)
        self.inner = activation()
        self.second = conv_norm(channels, channels, 3)
        self.outer = activation()

    def forward(self, x: Tensor) -> Tensor:
        """Return a map of the same shape."""
        return self.outer(self.second(self.inner(self.first(x))) + x)


class Bias(nn.Module):
    """A bias for each entry of a vector."""

    def __init__(self, size: int) -> None:
        """Begin with zeros."""
        super().__init__()
        self.bias = nn.Parameter(torch.zeros(size))

    def forward(self, x: Tensor) -> Tensor:
        """Return x + bias."""
        return x + self.bias


def glorot_uniform(network: nn.Module, scale: float = 1.0) -> None:
    """Initialise convolutions as Keras does: uniform, variance scale / mean of fan-in and fan-out, biases 0."""
    for module in network.modules():
        if isinstance(module, nn.Conv2d):
            fan_in = module.in_channels * module.kernel_size[0] * module.kernel_size[1]
            fan_out = module.out_channels * module.kernel_size[0] * module.kernel_size[1]
            limit = float(np.sqrt(3.0 * scale * 2.0 / (fan_in + fan_out)))
            nn.init.uniform_(module.weight, -limit, limit)
            if module.bias is not None:
                nn.init.zeros_(module.bias)


def he_normal(network: nn.Module) -> None:
    """Initialise convolutions and dense layers with a variance of 2 / fan-in, biases 0."""
    for module in network.modules():
        if isinstance(module, nn.Conv2d | nn.Linear):
            nn.init.kaiming_normal_(module.weight, nonlinearity="relu")
            if module.bias is not None:
                nn.init.zeros_(module.bias)


def to_numpy(tensor: Tensor) -> np.ndarray[Any, np.dtype[np.float32]]:
    """Return a tensor's content as float32."""
    return np.ascontiguousarray(tensor.detach().to("cpu", torch.float32).numpy())


def check_options(owner: str, maker: Callable[..., Any], options: Mapping[str, Any], positional: int = 0) -> None:
    """Check options against the arguments of a class: unknown names and values of another type than the default are
    refused.

    Args:
        owner: the options' owner, for messages.
        maker: the class. All of its arguments except the first `positional` have defaults.
        options: from a configuration.
        positional: number of arguments that are not options.

    Raises:
        NetworkError: an option or value is wrong.
    """
    known = dict(list(inspect.signature(maker).parameters.items())[positional:])
    for name, value in options.items():
        if name not in known:
            raise NetworkError(f"{owner}: option {name!r} found, expected one of {', '.join(known)}")
        if not _same_kind(value, known[name]):
            default = known[name].default
            expected = f"a value such as {default!r}" if default != () else "a list of tables"
            raise NetworkError(f"{owner}: {name} = {value!r} found, expected {expected}")


def _same_kind(value: Any, parameter: inspect.Parameter) -> bool:
    default = parameter.default
    if isinstance(default, tuple):
        item = dict if "Mapping" in str(parameter.annotation) else int
        return isinstance(value, list | tuple) and all(type(each) is item for each in value)
    if isinstance(default, float):
        return type(value) in (int, float)
    return type(value) is type(default) and (type(value) is not int or value > 0)

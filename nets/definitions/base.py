"""The base class of all networks, blocks that several networks use, and their metadata.

A network is called with planes [B, C, N, N] and globals [B, G, 1, 1] (or spread over the board); networks without
globals ignore them. A sparse network has an input of its own. A network returns its outputs by name, for the side to
move unless its planes are by color:

* `policy` [B, P] logits; P is N * N, N * N + 1 with the pass last, or shogi's labels. Sparse networks return ILLEGAL
  (`yomi.nets.data.metrics`) for moves that are not legal.
* `value` [B, 1] in [-1, 1], `value_logit` [B, 1] before a sigmoid, or `outcome` [B, 3] logits of win, loss, no result.
* `score` [B, 1] in points, and in training `points` [B, 1, n, n], whose mean it is.
* `square_errors` [B, 2], in training: expected squared errors of value and score against the search some moves later.
* `misc` [B, 4 or 6] and `ownership` [B, N * N] raw, as in KataGo's networks.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor, nn

from yomi.nets.errors import NetworkError
from yomi.nets.metadata import DLSHOGI_DIRECTIONS, NetworkInfo, feature_set

if TYPE_CHECKING:
    from yomi.nets.training.tensors import Example


class Network(nn.Module):
    """Base class of the definitions of networks."""

    feature_set: str  # name in `yomi.nets.metadata`
    board_size: int  # N that the network is for; 0 for any

    loss_weights: Mapping[str, float] = {}  # of the losses that `losses` returns; the table [loss] replaces them
    is_sparse = False  # whether the inputs are an encoder's rows (`yomi.nets.sparse`) instead of planes

    def forward(self, *inputs: Any, **more: Any) -> dict[str, Tensor]:
        """Return the outputs by name."""
        raise NotImplementedError

    def losses(self, outputs: dict[str, Tensor], example: Example) -> dict[str, Tensor]:
        """Return mean losses of further outputs, by the names of `loss_weights`. The base class returns none.

        Args:
            outputs: result of `forward` in training.
            example: labels by the names of columns (`yomi.nets.data.columns`).
        """
        return {}

    def constrain(self) -> None:
        """Clip weights to the range that the network's file can store, after each step. The base class does nothing."""

    def hold_untaught(self, state: Mapping[str, Tensor]) -> None:
        """Set outputs that are trained without labels to constants, in a state dict. The base class does nothing."""

    def count(self) -> int:
        """Return the number of trainable parameters."""
        return int(sum(parameter.numel() for parameter in self.parameters() if parameter.requires_grad))


def conv(inputs: int, outputs: int, kernel: int, *, bias: bool = True, padded: bool = True) -> nn.Conv2d:
    """Return a convolution with stride 1; without padding the board shrinks by kernel - 1."""
    return nn.Conv2d(inputs, outputs, kernel, padding=kernel // 2 if padded else 0, bias=bias)


def conv_norm(inputs: int, outputs: int, kernel: int, *, bias: bool = False) -> nn.Sequential:
    return nn.Sequential(conv(inputs, outputs, kernel, bias=bias), nn.BatchNorm2d(outputs))


class ResidualBlock(nn.Module):
    """act(x + norm(conv(act(norm(conv(x)))))): the block of AlphaZero's and dlshogi's networks."""

    def __init__(self, channels: int, activation: type[nn.Module]) -> None:
        super().__init__()
        self.first = conv_norm(channels, channels, 3)
        self.inner = activation()
        self.second = conv_norm(channels, channels, 3)
        self.outer = activation()

    def forward(self, x: Tensor) -> Tensor:
        return self.outer(self.second(self.inner(self.first(x))) + x)


class Bias(nn.Module):
    def __init__(self, size: int) -> None:
        super().__init__()
        self.bias = nn.Parameter(torch.zeros(size))

    def forward(self, x: Tensor) -> Tensor:
        return x + self.bias


def glorot_uniform(network: nn.Module, scale: float = 1.0) -> None:
    """Initialise convolutions like Keras: uniform with variance scale / mean of fan-in and fan-out; biases are 0."""
    for module in network.modules():
        if isinstance(module, nn.Conv2d):
            fan_in = module.in_channels * module.kernel_size[0] * module.kernel_size[1]
            fan_out = module.out_channels * module.kernel_size[0] * module.kernel_size[1]
            limit = float(np.sqrt(3.0 * scale * 2.0 / (fan_in + fan_out)))
            nn.init.uniform_(module.weight, -limit, limit)
            if module.bias is not None:
                nn.init.zeros_(module.bias)


def he_normal(network: nn.Module) -> None:
    """Initialise convolutions and dense layers with variance 2 / fan-in; biases are 0."""
    for module in network.modules():
        if isinstance(module, nn.Conv2d | nn.Linear):
            nn.init.kaiming_normal_(module.weight, nonlinearity="relu")
            if module.bias is not None:
                nn.init.zeros_(module.bias)


def to_numpy(tensor: Tensor) -> np.ndarray[Any, np.dtype[np.float32]]:
    return np.ascontiguousarray(tensor.detach().to("cpu", torch.float32).numpy())


def check_options(owner: str, maker: Callable[..., Any], options: Mapping[str, Any], positional: int = 0) -> None:
    """Check a configuration's options against the arguments of a class.

    Args:
        owner: the options' owner, for messages.
        maker: the class. All of its arguments except the first `positional` have defaults.
        options: from a configuration.
        positional: number of arguments that are not options.

    Raises:
        NetworkError: a name is unknown, or a value has another type than the default.
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


# dlshogi's names of inputs and outputs, by which its networks are recognised.
DLSHOGI_NAMES = {"planes": "input1", "globals": "input2", "policy": "output_policy", "value_logit": "output_value"}
_MEANINGS = {
    "policy": "[B, P] logits",
    "value": "[B, 1] in [-1, 1]",
    "value_logit": "[B, 1] probability to win for the side to move",
    "score": "[B, 1] points by which the side to move leads without komi",
}


def describe_outputs(
    network: Network, name: str, training: Mapping[str, str], outputs: Iterable[str], names: Mapping[str, str]
) -> NetworkInfo:
    """Return metadata that describe the known outputs by their names in the file."""
    features = feature_set(network.feature_set)
    return NetworkInfo(
        game=features.game,
        board_size=network.board_size,
        feature_set=features.name,
        name=name,
        # It was trained here: there is no source file.
        source_file="",
        source_sha256="",
        model_version=0,
        policy_channels=DLSHOGI_DIRECTIONS if names is DLSHOGI_NAMES else 1,
        misc_channels=0,
        outputs={names.get(kind, kind): _MEANINGS.get(kind, "raw") for kind in outputs},
        training=dict(training),
    )

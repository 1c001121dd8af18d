"""A network of one's own for Othello, as a configuration of a training names it."""

from __future__ import annotations

from torch import Tensor, nn

from tests.games.othello.kernels import PLANES
from tests.games.othello.network import FEATURES
from yomi.nets.definitions.base import Bias, Network, ResidualBlock, conv, conv_norm, he_normal


class OthelloResNet(Network):
    """Residual blocks between two planes, and policy [B, N * N] and value [B, 1] in [-1, 1]."""

    feature_set = FEATURES

    def __init__(self, blocks: int = 2, channels: int = 32, hidden: int = 32, board_size: int = 8) -> None:
        """Make one for boards of one size."""
        super().__init__()
        self.board_size = board_size
        stack = [ResidualBlock(channels, nn.ReLU) for _ in range(blocks)]
        self.body = nn.Sequential(conv_norm(PLANES, channels, 3), nn.ReLU(), *stack)
        self.squares, self.bias = conv(channels, 1, 1, bias=False), Bias(board_size**2)
        self.reduce = nn.Sequential(conv_norm(channels, 4, 1), nn.ReLU())
        self.value = nn.Sequential(nn.Linear(4 * board_size**2, hidden), nn.ReLU(), nn.Linear(hidden, 1), nn.Tanh())
        he_normal(self)

    def forward(self, planes: Tensor, globals_: Tensor) -> dict[str, Tensor]:
        """Return policy and value."""
        x = self.body(planes)
        return {"policy": self.bias(self.squares(x).flatten(1)), "value": self.value(self.reduce(x).flatten(1))}

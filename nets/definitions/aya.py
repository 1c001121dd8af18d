"""Aya's policy and value networks (Hiroshi Yamashita, 2016): stacks of convolutions with ReLU.

Sources: his article on deep learning for Go and his posts to the computer-go list; features: yomi.native.go.aya.
"""

from __future__ import annotations

from torch import Tensor, nn

from yomi.nets.definitions.base import Network, conv, he_normal


class AyaPolicy(Network):
    """12 layers: 5×5, ten of 3×3, and a 3×3 with one filter, which is the policy without a pass. Works on all board
    sizes.
    """

    feature_set = "aya-49"
    board_size = 0

    def __init__(self, filters: int = 128, layers: int = 12) -> None:
        """Create a network. Aya's own network has 128 filters and 12 layers."""
        super().__init__()
        inner = [module for _ in range(layers - 2) for module in (conv(filters, filters, 3), nn.ReLU())]
        self.body = nn.Sequential(conv(49, filters, 5), nn.ReLU(), *inner, conv(filters, 1, 3))
        he_normal(self)

    def forward(self, planes: Tensor, globals_: Tensor) -> dict[str, Tensor]:
        """Return the policy [B, N * N] of the side to move."""
        return {"policy": self.body(planes).flatten(1)}


class AyaValue(Network):
    """5×5, eleven of 3×3, 1×1, a dense layer of 256, and tanh. The value is Black's, since the planes are by color."""

    feature_set = "aya-50"

    def __init__(self, filters: int = 32, board_size: int = 19) -> None:
        """Create a network. Aya's own networks have 32 or 128 filters."""
        super().__init__()
        self.board_size = board_size
        inner = [module for _ in range(11) for module in (conv(filters, filters, 3), nn.ReLU())]
        self.body = nn.Sequential(conv(50, filters, 5), nn.ReLU(), *inner, conv(filters, filters, 1), nn.ReLU())
        self.dense = nn.Linear(filters * board_size**2, 256)
        self.act = nn.ReLU()
        self.last = nn.Linear(256, 1)
        self.squash = nn.Tanh()
        he_normal(self)

    def forward(self, planes: Tensor, globals_: Tensor) -> dict[str, Tensor]:
        """Return the value [B, 1] of Black."""
        hidden = self.act(self.dense(self.body(planes).flatten(1)))
        return {"value": self.squash(self.last(hidden))}

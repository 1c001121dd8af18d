"""The network for Go that yomi ships: KataGo's kind, for boards of all sizes in one file.

A trunk of residual blocks with the norm first, some of them with global pooling; heads for policy, outcome, score and
ownership, fed by pooling over the board. Plane 0 marks the board: where boards are padded to a common size, what lies
off them stays zero, and pooling counts the board alone.

Norms are batch norms, KataGo's "fixup" ones, a bias for each channel (and a scale inside the blocks), or a scale and a
bias everywhere, as batch norms are once their statistics are folded. The latter two cost less, and do not mind that a
batch holds boards of one size. `nets.definitions.katago` makes KataGo networks of trained ones, and trainable ones of
KataGo networks.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor, nn

from nets.definitions.base import Network, conv
from nets.errors import NetworkError
from nets.katago.network import GLOBAL_CHANNELS, SPATIAL_CHANNELS
from nets.metadata import KATAGO_FEATURES

NORMS = ("fixup", "batch", "affine")
ACTIVATIONS = {"relu": nn.ReLU, "mish": nn.Mish}
MISC = {"relu": 4, "mish": 6}
"""Numbers of the misc output in the oldest version of KataGo's files that has the activation: 8, and 11."""
TAUGHT_MISC = 3
"""Of these, the first: score mean, its standard deviation and the lead. No label teaches the others."""
UNTAUGHT_MISC = -1.75
"""What is said there of every position, before softplus. KataGo weighs playouts by the last two, the short-term errors
(`computeWeightFromNNOutput`): this stands for 0.2 of win minus loss and 2.2 points, with which a playout counts about
once."""


class Norm(nn.Module):
    """A norm, an activation, and zeros off the board."""

    def __init__(self, channels: int, kind: str, activation: type[nn.Module], *, scaled: bool = False) -> None:
        """Make one of a kind in NORMS; `scaled`: a fixup norm has a scale too."""
        super().__init__()
        self.norm = nn.BatchNorm2d(channels) if kind == "batch" else None
        has_scale = kind == "affine" or (kind == "fixup" and scaled)
        self.scale = nn.Parameter(torch.ones(channels)) if has_scale else None
        self.bias = nn.Parameter(torch.zeros(channels)) if kind != "batch" else None
        self.act = activation()

    def forward(self, x: Tensor, mask: Tensor | None) -> Tensor:
        """Return a map of the same shape; `mask` [B, 1, N, N] marks the board, None: all of it is."""
        if self.norm is not None:
            x = self.norm(x)
        # In the map's own type: what follows is a convolution, which under mixed precision would convert it back.
        if self.scale is not None:
            x = x * self.scale[:, None, None].to(x.dtype)
        if self.bias is not None:
            x = x + self.bias[:, None, None].to(x.dtype)
        x = self.act(x)
        return x if mask is None else x * mask


class Board:
    """What pooling has to know of the boards of a batch."""

    def __init__(self, mask: Tensor | None, side: int) -> None:
        """Read it from the mask [B, 1, N, N], or from the side of boards that fill their planes."""
        self.mask = mask
        self.area = side**2 if mask is None else mask.sum((2, 3))
        self.offset = (side - 14.0) * 0.1 if mask is None else (torch.sqrt(self.area) - 14.0) * 0.1

    def mean(self, x: Tensor) -> Tensor:
        """Return the mean [B, C] over the board of a map that is zero off it."""
        return x.sum((2, 3)) / self.area

    def pool(self, x: Tensor) -> Tensor:
        """Return means, means scaled by the board's size, and maxima [B, 3 * C] of a map that is at least 0 on it."""
        mean = self.mean(x)
        greatest = (x if self.mask is None else x - (1.0 - self.mask) * 1e4).amax((2, 3))
        return torch.cat([mean, mean * self.offset, greatest], 1)

    def value_pool(self, x: Tensor) -> Tensor:
        """Return means, scaled and squarely scaled ones [B, 3 * C]."""
        mean = self.mean(x)
        return torch.cat([mean, mean * self.offset, mean * (self.offset**2 - 0.1)], 1)


class Block(nn.Module):
    """x + conv2(norm2(conv1(norm1(x)))); `pooled` channels of conv1 are pooled and added to the others."""

    def __init__(self, channels: int, pooled: int, norm: str, activation: type[nn.Module]) -> None:
        """Make one; without pooling `pooled` is 0."""
        super().__init__()
        regular = channels - pooled
        self.norm1 = Norm(channels, norm, activation)
        self.conv1 = conv(channels, regular, 3, bias=False)
        self.norm2 = Norm(regular, norm, activation, scaled=True)
        self.conv2 = conv(regular, channels, 3, bias=False)
        self.pooling = conv(channels, pooled, 3, bias=False) if pooled else None
        self.norm_pooled = Norm(pooled, norm, activation) if pooled else None
        self.matrix = nn.Linear(3 * pooled, regular, bias=False) if pooled else None

    def forward(self, x: Tensor, board: Board) -> Tensor:
        """Return the trunk behind the block."""
        u = self.norm1(x, board.mask)
        inner = self.conv1(u)
        if self.pooling is not None and self.norm_pooled is not None and self.matrix is not None:
            pooled = board.pool(self.norm_pooled(self.pooling(u), board.mask))
            inner = inner + self.matrix(pooled)[:, :, None, None]
        return x + self.conv2(self.norm2(inner, board.mask))


class GoNetwork(Network):
    """The whole network; the outputs are KataGo's."""

    feature_set = KATAGO_FEATURES
    board_size = 0

    def __init__(
        self,
        blocks: int = 6,
        channels: int = 96,
        pooled: int = 32,
        pooling_blocks: Sequence[int] = (2, 4),
        head: int = 32,
        hidden: int = 64,
        kernel: int = 5,
        activation: str = "relu",
        norm: str = "fixup",
    ) -> None:
        """Make one; the defaults are the shape of KataGo's b6c96.

        Args:
            blocks: residual blocks.
            channels: of the trunk.
            pooled: channels that a pooling block pools.
            pooling_blocks: which blocks pool, counted from 0.
            head: channels of each of the heads' first convolutions.
            hidden: width of the value head's dense layer.
            kernel: side of the first convolution.
            activation: relu or mish.
            norm: fixup, batch or affine.

        Raises:
            NetworkError: a value that no network of this kind has.
        """
        super().__init__()
        if norm not in NORMS:
            raise NetworkError(f"norm = {norm!r} found, expected one of {', '.join(NORMS)}")
        if activation not in ACTIVATIONS:
            raise NetworkError(f"activation = {activation!r} found, expected one of {', '.join(ACTIVATIONS)}")
        if not 0 < pooled < channels or any(not 0 <= index < blocks for index in pooling_blocks):
            raise NetworkError(
                f"pooled = {pooled} in blocks {list(pooling_blocks)} found, expected less than {channels} channels "
                f"in blocks 0 to {blocks - 1}"
            )
        act = ACTIVATIONS[activation]
        self.activation = activation
        self.conv = conv(SPATIAL_CHANNELS, channels, kernel, bias=False)
        self.globals = nn.Linear(GLOBAL_CHANNELS, channels, bias=False)
        self.blocks = nn.ModuleList(
            Block(channels, pooled if index in pooling_blocks else 0, norm, act) for index in range(blocks)
        )
        self.tip = Norm(channels, norm, act)
        self.p1 = conv(channels, head, 1, bias=False)
        self.g1 = conv(channels, head, 1, bias=False)
        self.norm_g1 = Norm(head, norm, act)
        self.policy_matrix = nn.Linear(3 * head, head, bias=False)
        self.norm_p1 = Norm(head, norm, act)
        self.p2 = conv(head, 1, 1, bias=False)
        self.passing = nn.Linear(3 * head, 1, bias=False)
        self.v1 = conv(channels, head, 1, bias=False)
        self.norm_v1 = Norm(head, norm, act)
        self.v2 = nn.Linear(3 * head, hidden)
        self.v2_act = act()
        self.v3 = nn.Linear(hidden, 3)
        self.misc = nn.Linear(hidden, MISC[activation])
        self.ownership = conv(head, 1, 1, bias=False)
        self._initialise(norm)

    def _initialise(self, norm: str) -> None:
        """Begin as KataGo does: blocks that change nothing yet, heads that say little (Fixup, Zhang et al. 2019)."""
        for module in self.modules():
            if isinstance(module, nn.Conv2d | nn.Linear):
                nn.init.kaiming_normal_(module.weight, nonlinearity="relu")
                if module.bias is not None:
                    nn.init.zeros_(module.bias)
        for block in self.blocks:
            nn.init.zeros_(block.conv2.weight)
            if norm == "fixup":
                block.conv1.weight.data /= len(self.blocks) ** 0.5
        for last in (self.p2, self.passing, self.v3, self.misc, self.ownership):
            last.weight.data *= 0.3
        self.hold_untaught(self.state_dict())

    def hold_untaught(self, state: Mapping[str, Tensor]) -> None:
        """Make the misc outputs that no label teaches the same for every position."""
        state["misc.weight"][TAUGHT_MISC:] = 0.0
        state["misc.bias"][TAUGHT_MISC:] = UNTAUGHT_MISC

    def forward(
        self, planes: Tensor, globals_: Tensor, *, padded: bool = False, maps: list[Tensor] | None = None
    ) -> dict[str, Tensor]:
        """Return policy [B, N * N + 1], outcome [B, 3], misc [B, 4 or 6] and ownership [B, N * N].

        Args:
            planes: [B, 22, N, N].
            globals_: [B, 19, 1, 1].
            padded: boards may be smaller than N; what is said of points off the board means nothing, and the policy
                gives them no chance.
            maps: where the trunk behind each block, [B, channels, N, N], is to be appended.
        """
        mask = planes[:, :1] if padded else None
        board = Board(mask, planes.shape[-1])
        x = self.conv(planes) + self.globals(globals_.flatten(1))[:, :, None, None]
        for block in self.blocks:
            x = block(x, board)
            if maps is not None:
                maps.append(x)
        x = self.tip(x, mask)
        pooled = board.pool(self.norm_g1(self.g1(x), mask))
        policy = self.p2(self.norm_p1(self.p1(x) + self.policy_matrix(pooled)[:, :, None, None], mask)).flatten(1)
        if mask is not None:
            policy = policy - (1.0 - mask.flatten(1)) * 1e4
        value = self.norm_v1(self.v1(x), mask)
        hidden = self.v2_act(self.v2(board.value_pool(value)))
        return {
            "policy": torch.cat([policy, self.passing(pooled)], 1),
            "outcome": self.v3(hidden),
            "misc": self.misc(hidden),
            "ownership": self.ownership(value).flatten(1),
        }

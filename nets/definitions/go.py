"""yomi's own kind of Go network: KataGo's architecture, in which one file serves all board sizes.

A trunk of blocks (`yomi.nets.definitions.blocks`), and heads for policy, outcome, score and ownership.
`yomi.nets.definitions.katago` converts trained networks to KataGo networks and back.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import softplus

from yomi.nets.definitions.base import Network, conv, he_normal
from yomi.nets.definitions.blocks import (
    ACTIVATIONS,
    NORMS,
    TIPS,
    Block,
    Norm,
    RmsTip,
    Style,
    make_blocks,
    pool,
    value_pool,
)
from yomi.nets.errors import NetworkError
from yomi.nets.katago.network import GLOBAL_CHANNELS, SPATIAL_CHANNELS, OutputScales
from yomi.nets.metadata import KATAGO_FEATURES

# Norms are batch norms, KataGo's "fixup" norms (a bias for each channel, and a scale inside the blocks), or affine
# (scale and bias everywhere, as folded batch norms). The latter two are cheaper and work with batches of one board
# size.
# Versions of KataGo's files that can be written. In 9 and 16 outputs have other meanings.
VERSIONS = (8, 10, 11, 12, 13, 14, 15, 17)
# First version whose short-term errors have this meaning.
SHORT_ERRORS = 10
# First version with activations other than relu.
NAMED_ACTIVATIONS = 11
# First version with a separate layer for the pass, or with an RMS norm at the trunk's tip.
DEEP_PASS = 15
# Number of misc outputs with labels: score mean, its standard deviation, and the lead. The last two outputs, the
# short-term errors, are trained on request. The others have no labels.
TAUGHT_MISC = 3
UNTAUGHT_MISC = -1.75
# Constants of the outputs without labels, before softplus; from version 14 on, half of the value goes into softplus.
# KataGo weighs playouts by the last two, the short-term errors (`computeWeightFromNNOutput`). These constants mean 0.2
# of win minus loss and 2.2 points, with which a playout has a weight of about 1.
UNTAUGHT_HALVED_MISC = -1.42
DEFAULT_BLOCKS, DEFAULT_POOLING = 6, (2, 4)


class GoNetwork(Network):
    """The whole network, with KataGo's outputs."""

    feature_set = KATAGO_FEATURES
    board_size = 0

    def __init__(
        self,
        blocks: int = DEFAULT_BLOCKS,
        channels: int = 96,
        pooled: int = 0,
        pooling_blocks: Sequence[int] = DEFAULT_POOLING,
        trunk: Sequence[Mapping[str, Any]] = (),
        head: int = 32,
        value_head: int = 0,
        hidden: int = 64,
        kernel: int = 5,
        activation: str = "relu",
        norm: str = "fixup",
        tip: str = "norm",
        version: int = VERSIONS[0],
        short_errors: bool = False,
    ) -> None:
        """Create a network. The defaults are the shape of KataGo's b6c96.

        Args:
            blocks: number of residual blocks.
            channels: channels of the trunk.
            pooled: channels that a pooling block pools; 0: a third of `channels`.
            pooling_blocks: indexes of the blocks that pool. If left out: every second block from 2 on, but not the
                last.
            trunk: descriptions of other blocks (`make_blocks`), in place of `blocks`, `pooled` and `pooling_blocks`.
            head: channels of each head's first convolution.
            value_head: channels of the value head's, if they differ; 0: `head`.
            hidden: width of the value head's dense layer.
            kernel: side of the first convolution.
            activation: relu, mish or silu.
            norm: fixup, batch or affine.
            tip: norm at the trunk's end: norm (the kind that `norm` sets), rms or spatial-rms.
            version: minimum version of KataGo's file. From 15 on the pass has a layer of its own.
            short_errors: train the short-term errors of value and score, with `short_value` and `short_score` of the
                data.

        Raises:
            NetworkError: a value that no network of this kind has.
        """
        super().__init__()
        for name, value, known in (
            ("norm", norm, NORMS),
            ("activation", activation, ACTIVATIONS),
            ("tip", tip, TIPS),
            ("version", version, VERSIONS),
        ):
            if value not in known:
                raise NetworkError(f"{name} = {value!r} found, expected one of {', '.join(map(str, known))}")
        if not trunk:
            trunk = _residual_blocks(blocks, channels, pooled, pooling_blocks)
        elif (blocks, pooled, tuple(pooling_blocks)) != (DEFAULT_BLOCKS, 0, DEFAULT_POOLING):
            raise NetworkError("trunk found beside blocks, pooled or pooling_blocks, expected it or them")
        style = Style(norm, activation)
        act = ACTIVATIONS[activation]
        self.activation = activation
        # Other options need a later version of the file.
        self.version = max(
            version,
            8 if activation == "relu" else NAMED_ACTIVATIONS,
            8 if tip == "norm" else DEEP_PASS,
            SHORT_ERRORS if short_errors else 8,
        )
        self.scales = OutputScales()
        self.holds_untaught = True
        self.short_errors = short_errors
        self.conv = conv(SPATIAL_CHANNELS, channels, kernel, bias=False)
        self.globals = nn.Linear(GLOBAL_CHANNELS, channels, bias=False)
        self.blocks = make_blocks(trunk, channels, style)
        self.tip = (
            Norm(channels, style) if tip == "norm" else RmsTip(channels, activation, spatial=tip == "spatial-rms")
        )
        self.p1 = conv(channels, head, 1, bias=False)
        self.g1 = conv(channels, head, 1, bias=False)
        self.norm_g1 = Norm(head, style)
        self.policy_matrix = nn.Linear(3 * head, head, bias=False)
        self.norm_p1 = Norm(head, style)
        self.p2 = conv(head, 1, 1, bias=False)
        deep = self.version >= DEEP_PASS
        self.passing_first = nn.Linear(3 * head, head) if deep else None
        self.passing_act = act()
        self.passing = nn.Linear(head if deep else 3 * head, 1, bias=False)
        value_head = value_head or head
        self.v1 = conv(channels, value_head, 1, bias=False)
        self.norm_v1 = Norm(value_head, style)
        self.v2 = nn.Linear(3 * value_head, hidden)
        self.v2_act = act()
        self.v3 = nn.Linear(hidden, 3)
        self.misc = nn.Linear(hidden, 4 if self.version < 9 else 6)
        self.ownership = conv(value_head, 1, 1, bias=False)
        self._initialise()

    def _initialise(self) -> None:
        he_normal(self)
        # As in KataGo: at first blocks change nothing, and heads predict little (Fixup, Zhang et al. 2019).
        for block in self.blocks:
            assert isinstance(block, Block)
            block.begin(len(self.blocks) ** -0.5)
        for last in (self.p2, self.passing, self.v3, self.misc, self.ownership):
            last.weight.data *= 0.3
        self._hold(self.state_dict(), None)

    def hold_untaught(self, state: Mapping[str, Tensor]) -> None:
        """Make the misc outputs that have no labels constant, unless the network comes from KataGo's training."""
        if self.holds_untaught:
            self._hold(state, TAUGHT_MISC + 1 if self.short_errors else None)

    def _hold(self, state: Mapping[str, Tensor], end: int | None) -> None:
        held = slice(TAUGHT_MISC, end)
        state["misc.weight"][held] = 0.0
        state["misc.bias"][held] = UNTAUGHT_MISC if self.version < 14 else UNTAUGHT_HALVED_MISC

    def forward(self, planes: Tensor, globals_: Tensor, *, maps: list[Tensor] | None = None) -> dict[str, Tensor]:
        """Return policy [B, N * N + 1], outcome [B, 3], misc [B, 4 or 6] and ownership [B, N * N].

        In training the result also contains square_errors [B, 2], if short-term errors are trained.

        Args:
            planes: [B, 22, N, N].
            globals_: [B, 19, 1, 1].
            maps: a list to which the trunk after each block, [B, channels, N, N], is appended.
        """
        x = self.conv(planes) + self.globals(globals_.flatten(1))[:, :, None, None]
        for block in self.blocks:
            x = block(x)
            if maps is not None:
                maps.append(x)
        x = self.tip(x)
        pooled = pool(self.norm_g1(self.g1(x)))
        policy = self.p2(self.norm_p1(self.p1(x) + self.policy_matrix(pooled)[:, :, None, None])).flatten(1)
        value = self.norm_v1(self.v1(x))
        hidden = self.v2_act(self.v2(value_pool(value)))
        passing = pooled if self.passing_first is None else self.passing_act(self.passing_first(pooled))
        outputs = {
            "policy": torch.cat([policy, self.passing(passing)], 1),
            "outcome": self.v3(hidden),
            "misc": self.misc(hidden),
            "ownership": self.ownership(value).flatten(1),
        }
        if self.training and self.short_errors:
            outputs["square_errors"] = self._square_errors(outputs["misc"])
        return outputs

    def _square_errors(self, misc: Tensor) -> Tensor:
        """Return the squares of the predicted short-term errors (value, score); see `yomi.nets.katago.outputs`."""
        raw = misc[:, TAUGHT_MISC + 1 :].float()
        scales = raw.new_tensor((self.scales.shortterm_value_error, self.scales.shortterm_score_error))
        return scales * (softplus(raw) if self.version < 14 else softplus(raw / 2.0) ** 2)


def _residual_blocks(blocks: int, channels: int, pooled: int, pooling_blocks: Sequence[int]) -> list[dict[str, Any]]:
    pooled = pooled or max(1, channels // 3)
    if pooling_blocks is DEFAULT_POOLING:  # left out: a list of the user's is another object
        pooling_blocks = range(2, blocks - 1, 2)
    if not 0 < pooled < channels or any(not 0 <= index < blocks for index in pooling_blocks):
        raise NetworkError(
            f"pooled = {pooled} in blocks {list(pooling_blocks)} found, expected less than {channels} channels "
            f"in blocks 0 to {blocks - 1}"
        )
    pooling = {"kind": "residual", "pooled": pooled}
    return [pooling if index in pooling_blocks else {"kind": "residual"} for index in range(blocks)]

"""The blocks of networks like KataGo's, and the norms between them.

A recipe describes each block by its kind in BLOCKS and the options of that class; see `make_blocks`. All boards of a
batch have one size and fill their planes.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from yomi.nets.definitions.base import check_options, conv
from yomi.nets.errors import NetworkError
from yomi.nets.katago.network import fixed_rope

NORMS = ("fixup", "batch", "affine")
TIPS = ("norm", "rms", "spatial-rms")
ROPES = ("learned", "fixed", "none")
ACTIVATIONS: dict[str, type[nn.Module]] = {"relu": nn.ReLU, "mish": nn.Mish, "silu": nn.SiLU}
# Minimum angle per point, in radians, at which learned rotary positions start; the maximum is 1 (KataGo's).
SLOWEST_TURN = 0.02


class Style(NamedTuple):
    """Norm and activation of all blocks of a network: names in NORMS and ACTIVATIONS."""

    norm: str
    activation: str


def means(x: Tensor) -> tuple[Tensor, float]:
    """Return the means [B, C] of a map over its N×N points, and KataGo's factor for the board size, (N - 14) / 10."""
    side = x.shape[-1]
    return x.sum((2, 3)) / side**2, (side - 14.0) * 0.1


def pool(x: Tensor) -> Tensor:
    """Pool a map to [B, 3 * C]: its means, the means times the factor for the board (see `means`), its maxima."""
    mean, scale = means(x)
    return torch.cat([mean, mean * scale, x.amax((2, 3))], 1)


def value_pool(x: Tensor) -> Tensor:
    """Pool a map to [B, 3 * C]: its means m, m * f and m * (f² - 0.1). For the means and the factor f see `means`."""
    mean, scale = means(x)
    return torch.cat([mean, mean * scale, mean * (scale**2 - 0.1)], 1)


class Norm(nn.Module):
    """A norm followed by an activation."""

    def __init__(self, channels: int, style: Style, *, scaled: bool = False) -> None:
        """Create a norm. If `scaled`, a fixup norm learns a scale as well as a bias."""
        super().__init__()
        kind = style.norm
        self.norm = nn.BatchNorm2d(channels) if kind == "batch" else None
        has_scale = kind == "affine" or (kind == "fixup" and scaled)
        self.scale = nn.Parameter(torch.ones(channels)) if has_scale else None
        self.bias = nn.Parameter(torch.zeros(channels)) if kind != "batch" else None
        self.act = ACTIVATIONS[style.activation]()

    def forward(self, x: Tensor) -> Tensor:
        if self.norm is not None:
            x = self.norm(x)
        # Computed in the map's own type. The next operation is a convolution, for which mixed precision would convert
        # it back.
        if self.scale is not None:
            x = x * self.scale[:, None, None].to(x.dtype)
        if self.bias is not None:
            x = x + self.bias[:, None, None].to(x.dtype)
        return self.act(x)


class RmsNorm(nn.Module):
    """x / sqrt(mean(x²) + epsilon) * gamma: the mean over the channels of a point or, if `spatial`, of all points."""

    def __init__(self, channels: int, *, spatial: bool = False) -> None:
        super().__init__()
        self.gamma = nn.Parameter(torch.ones(channels))
        self.epsilon = 1e-6
        self.spatial = spatial

    def forward(self, x: Tensor) -> Tensor:
        """Return a map of the same shape, in float32."""
        x = x.float()
        mean = (x * x).mean(1, keepdim=True)
        if self.spatial:
            mean = means(mean)[0][:, :, None, None]
        return x * torch.rsqrt(mean + self.epsilon) * self.gamma[:, None, None]


class RmsTip(nn.Module):
    """The end of a trunk: an RMS norm with a bias, and an activation."""

    def __init__(self, channels: int, activation: str, *, spatial: bool) -> None:
        super().__init__()
        self.rms = RmsNorm(channels, spatial=spatial)
        self.bias = nn.Parameter(torch.zeros(channels))
        self.act = ACTIVATIONS[activation]()

    def forward(self, x: Tensor) -> Tensor:
        return self.act(self.rms(x) + self.bias[:, None, None])


class Block(nn.Module):
    """A residual block: a map of C channels plus a map computed from it, which is zero before training."""

    def forward(self, x: Tensor) -> Tensor:
        raise NotImplementedError

    def begin(self, scale: float) -> None:
        """Set the weights with which training begins so that the block at first adds zero to the map.

        Convolutions and dense layers already have random weights. With fixup norms `scale` is the factor of a
        block's first convolution.
        """
        raise NotImplementedError


class Residual(Block):
    """x + conv2(norm2(conv1(norm1(x)))). Pooled channels of a third convolution may be added to the output of conv1."""

    def __init__(self, channels: int, style: Style, *, middle: int = 0, pooled: int = 0) -> None:
        """Create a block.

        Args:
            channels: channels of the input and output.
            style: style of its norms.
            middle: channels between the convolutions; 0: `channels` - `pooled`.
            pooled: channels that are pooled; 0: none.
        """
        super().__init__()
        middle = middle or channels - pooled
        if middle < 1:
            raise NetworkError(f"pooled = {pooled} found, expected less than {channels} channels")
        self.style = style
        self.norm1 = Norm(channels, style)
        self.conv1 = conv(channels, middle, 3, bias=False)
        self.norm2 = Norm(middle, style, scaled=True)
        self.conv2 = conv(middle, channels, 3, bias=False)
        self.pooling = conv(channels, pooled, 3, bias=False) if pooled else None
        self.norm_pooled = Norm(pooled, style) if pooled else None
        self.matrix = nn.Linear(3 * pooled, middle, bias=False) if pooled else None

    def forward(self, x: Tensor) -> Tensor:
        u = self.norm1(x)
        inner = self.conv1(u)
        if self.pooling is not None and self.norm_pooled is not None and self.matrix is not None:
            pooled = pool(self.norm_pooled(self.pooling(u)))
            inner = inner + self.matrix(pooled)[:, :, None, None]
        return x + self.conv2(self.norm2(inner))

    def begin(self, scale: float) -> None:
        # As Fixup does (Zhang et al. 2019).
        nn.init.zeros_(self.conv2.weight)
        if self.style.norm == "fixup":
            self.conv1.weight.data *= scale


class Bottleneck(Block):
    """x + conv2(norm2(blocks(conv1(norm1(x))))): blocks with fewer channels, between 1×1 convolutions."""

    def __init__(
        self, channels: int, style: Style, *, middle: int = 0, inner: Sequence[Mapping[str, Any]] = ()
    ) -> None:
        """Create a block.

        Args:
            channels: channels of the input and output.
            style: style of its norms and inner blocks.
            middle: channels of the inner blocks; 0: half of `channels`.
            inner: descriptions of the inner blocks.
        """
        super().__init__()
        middle = middle or max(1, channels // 2)
        self.style = style
        self.norm1 = Norm(channels, style)
        self.conv1 = conv(channels, middle, 1, bias=False)
        self.blocks = make_blocks(inner, middle, style)
        self.norm2 = Norm(middle, style, scaled=True)
        self.conv2 = conv(middle, channels, 1, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        inner = self.conv1(self.norm1(x))
        for block in self.blocks:
            inner = block(inner)
        return x + self.conv2(self.norm2(inner))

    def begin(self, scale: float) -> None:
        # As in KataGo, the first convolution and the inner blocks share the scale.
        scale = scale ** (1.0 / (1.0 + len(self.blocks)))
        nn.init.zeros_(self.conv2.weight)
        if self.style.norm == "fixup":
            self.conv1.weight.data *= scale
        for block in self.blocks:
            assert isinstance(block, Block)
            block.begin(scale)


class Attention(Block):
    """x + out(heads): each point of the board attends to all points. The RMS norm comes first.

    With rotary positions, pairs of channels of queries and keys are rotated by angles that grow with x and y. Their
    products then depend on the relative position of two points (Su et al. 2021).
    """

    rope: Tensor | None  # [kv_heads * pairs * 2], flat: rotation of each pair per step in x and in y

    def __init__(
        self,
        channels: int,
        style: Style,
        *,
        heads: int = 4,
        kv_heads: int = 0,
        q_dim: int = 0,
        v_dim: int = 0,
        rope: str = "learned",
        theta: float = 100.0,
    ) -> None:
        """Create a block.

        Args:
            channels: of the input and output.
            style: not used; there is one norm and no activation.
            heads: heads of queries.
            kv_heads: heads of keys and values, each shared by several queries; 0: `heads`.
            q_dim: channels of a query and of a key; 0: channels / heads.
            v_dim: channels of a value; 0: channels / heads.
            rope: rotary positions: learned, fixed or none.
            theta: for fixed positions, the ratio of the fastest to the slowest rotation.
        """
        super().__init__()
        self.heads, self.kv_heads = heads, kv_heads or heads
        self.q_dim, self.v_dim = q_dim or channels // heads, v_dim or channels // heads
        if rope not in ROPES:
            raise NetworkError(f"rope = {rope!r} found, expected one of {', '.join(ROPES)}")
        if heads % self.kv_heads or not self.q_dim or not self.v_dim:
            raise NetworkError(
                f"heads = {heads}, kv_heads = {self.kv_heads} found, "
                f"expected a multiple of kv_heads, and not more than {channels} channels"
            )
        if rope != "none" and (self.q_dim % 2 or theta <= 0):
            raise NetworkError(
                f"q_dim = {self.q_dim}, theta = {theta} found, expected an even width and a number above 0"
            )
        self.norm = RmsNorm(channels)
        self.q = nn.Linear(channels, heads * self.q_dim, bias=False)
        self.k = nn.Linear(channels, self.kv_heads * self.q_dim, bias=False)
        self.v = nn.Linear(channels, self.kv_heads * self.v_dim, bias=False)
        self.out = nn.Linear(heads * self.v_dim, channels, bias=False)
        pairs = self.q_dim // 2
        # Flat: optimizers let matrices decay and make their steps orthogonal, but not vectors.
        if rope == "learned":
            signs = torch.randint(0, 2, (self.kv_heads * pairs * 2,)) * 2 - 1
            self.rope = nn.Parameter(signs * SLOWEST_TURN ** torch.rand(signs.shape))
        else:
            fixed = torch.from_numpy(fixed_rope(self.kv_heads, pairs, theta)).flatten() if rope == "fixed" else None
            self.register_buffer("rope", fixed, persistent=False)

    def forward(self, x: Tensor) -> Tensor:
        points = self.norm(x).flatten(2).transpose(1, 2)
        query = self.q(points).unflatten(2, (self.heads, self.q_dim))
        key = self.k(points).unflatten(2, (self.kv_heads, self.q_dim))
        value = self.v(points).unflatten(2, (self.kv_heads, self.v_dim))
        shared = self.heads // self.kv_heads
        if self.rope is not None:
            by_x, by_y = self.rope.view(self.kv_heads, -1, 2).unbind(2)
            column, row = (torch.arange(x.shape[axis], device=x.device)[:, None, None] for axis in (3, 2))
            # [A, kv_heads, pairs]. Not as a product of matrices: bfloat16 has angles to a quarter radian only.
            angles = (row[:, None] * by_y + column * by_x).flatten(0, 1)
            key = _turned(key, angles)
            query = _turned(query, angles.repeat_interleave(shared, 1))
        query, key, value = (
            each.repeat_interleave(shared, 2).transpose(1, 2) if each.shape[2] < self.heads else each.transpose(1, 2)
            for each in (query, key, value)
        )
        read = functional.scaled_dot_product_attention(query, key, value)
        return x + self.out(read.transpose(1, 2).flatten(2)).transpose(1, 2).unflatten(2, x.shape[2:])

    def begin(self, scale: float) -> None:
        del scale
        # Attention scores are about 1. With zero output weights the block adds nothing to the trunk yet.
        for layer in (self.q, self.k, self.v):
            nn.init.normal_(layer.weight, std=layer.in_features**-0.5)
        nn.init.zeros_(self.out.weight)


def _turned(vectors: Tensor, angles: Tensor) -> Tensor:
    """Rotate the channel pairs (2 p, 2 p + 1) of [B, A, H, C], as complex numbers, by angles [A, H, C / 2]."""
    pairs = torch.view_as_complex(vectors.float().unflatten(3, (-1, 2)))
    return torch.view_as_real(pairs * torch.polar(torch.ones_like(angles), angles)).flatten(3).to(vectors.dtype)


class FeedForward(Block):
    """x + w2(silu(w1(u)) * gate(u)) with u = norm(x): SwiGLU (Shazeer 2020). Without a gate: x + w2(silu(w1(u)))."""

    def __init__(self, channels: int, style: Style, *, hidden: int = 0, gated: bool = True) -> None:
        """Create a block.

        Args:
            channels: of the input and output.
            style: not used; the activation is SiLU.
            hidden: channels between the layers; 0: 8 / 3 of `channels`.
            gated: use SwiGLU. KataGo on processors (Eigen) supports gated blocks only; yomi supports both.
        """
        super().__init__()
        hidden = hidden or max(8, channels // 3 * 8)
        self.norm = RmsNorm(channels)
        self.w1 = nn.Linear(channels, hidden, bias=False)
        self.gate = nn.Linear(channels, hidden, bias=False) if gated else None
        self.w2 = nn.Linear(hidden, channels, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        points = self.norm(x).flatten(2).transpose(1, 2)
        inner = functional.silu(self.w1(points))
        if self.gate is not None:
            inner = inner * self.gate(points)
        return x + self.w2(inner).transpose(1, 2).unflatten(2, x.shape[2:])

    def begin(self, scale: float) -> None:
        del scale
        # Hidden values are about 1. With zero output weights the block adds nothing to the trunk yet.
        for layer in filter(None, (self.w1, self.gate)):
            nn.init.normal_(layer.weight, std=layer.in_features**-0.5)
        nn.init.zeros_(self.w2.weight)


BLOCKS: dict[str, type[Block]] = {
    "residual": Residual,
    "bottleneck": Bottleneck,
    "attention": Attention,
    "ffn": FeedForward,
}


def make_blocks(descriptions: Sequence[Mapping[str, Any]], channels: int, style: Style) -> nn.ModuleList:
    """Return the blocks that a recipe describes.

    Args:
        descriptions: for each block `kind`, a name in BLOCKS, the options of that class, and `times`, the number of
            copies.
        channels: of the input and output.
        style: norm and activation.

    Raises:
        NetworkError: a kind, option or value is unknown.
    """
    if not descriptions:
        raise NetworkError("no blocks found, expected one or more")
    blocks = nn.ModuleList()
    for description in descriptions:
        options = dict(description)
        kind, times = options.pop("kind", None), options.pop("times", 1)
        if kind not in BLOCKS:
            raise NetworkError(f"block kind {kind!r} found, expected one of {', '.join(BLOCKS)}")
        if type(times) is not int or times < 1:
            raise NetworkError(f"block {kind}: times = {times!r} found, expected a number of blocks")
        check_options(f"block {kind}", BLOCKS[kind], options, positional=2)
        blocks.extend(BLOCKS[kind](channels, style, **options) for _ in range(times))
    return blocks

"""Reader of KataGo network files: `.bin.gz`, `.bin.xz`, `.bin` and the same as `.txt`, versions 8 to 17."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from yomi.nets.katago.network import (
    GLOBAL_CHANNELS,
    META_CHANNELS,
    NEWEST_VERSION,
    OLDEST_VERSION,
    SPATIAL_CHANNELS,
    Activation,
    AttentionBlock,
    BatchNorm,
    Block,
    BottleneckBlock,
    Conv,
    FeedForwardBlock,
    FloatArray,
    GlobalPoolingBlock,
    KataGoNetwork,
    MatBias,
    MatMul,
    MetaEncoder,
    OrdinaryBlock,
    OutputScales,
    PolicyHead,
    RmsNorm,
    Trunk,
    ValueHead,
    fixed_rope,
)
from yomi.nets.katago.stream import TokenStream, read_container, read_head

# Versions differ in their content: activation kinds from 11, a second policy channel from 12, output scales from 13,
# the metadata encoder, the pass layer and the RMS norm of the trunk's tip from 15, four policy channels in 16, a stored
# number of policy channels from 17. Blocks of every kind are read in every version.
#
# Limits of sizes, so that a small damaged file cannot claim much memory.
_MAX_CHANNELS = 1 << 14
_MAX_KERNEL = 37
_MAX_BLOCKS = 1 << 12
_MAX_NESTING = 8


def read_network(path: str | Path) -> KataGoNetwork:
    """Read a KataGo network file.

    Raises:
        NetworkError: the file is broken, truncated, not a KataGo network, or of a version that is not supported.
    """
    path = Path(path)
    return parse_network(read_container(path), str(path))


def parse_network(data: bytes, path: str = "network") -> KataGoNetwork:
    """Parse the uncompressed content of a network file. `path` is used in messages only.

    Raises:
        NetworkError: as `read_network`.
    """
    return _Reader(TokenStream(data, path)).network()


def looks_like_network(path: Path) -> bool:
    """Whether the first bytes of a file look like a KataGo network: a name and three small integers.

    Raises:
        NetworkError: the file cannot be read.
    """
    tokens = read_head(path, 1024).split(maxsplit=4)
    return len(tokens) == 5 and tokens[0].isascii() and all(t.isdigit() and len(t) < 5 for t in tokens[1:4])


# Records in the order of the file: name of the field, then input and output channels. A letter stands for a number that
# its first record contains, and 3g for three times g.
_ENCODER = "matmul1 i a, bias1 a, act1, matmul2 a b, bias2 b, act2, matmul3 b c"
_ORDINARY = "norm1 c, act1, conv1 c m, norm2 m, act2, conv2 m c"
_POOLING = "norm1 c, act1, conv_regular c r, conv_gpool c g, norm_gpool g, act_gpool, matmul 3g r, "
_POOLING += "norm2 r, act2, conv2 r c"
_BEFORE_BLOCKS, _AFTER_BLOCKS = "norm1 c, act1, conv1 c m", "norm2 m, act2, conv2 m c"
_ATTENTION = "norm c, q c q, k c k, v c v, out o c"
_GATED, _UNGATED = "norm c, w1 c h, gate c h, w2 h c", "norm c, w1 c h, w2 h c"
_POLICY = "p1 c p, g1 c g, norm_g1 g, act_g1, matmul 3g p, norm_p1 p, act_p1, p2 p o"
_PASS, _OLD_PASS = "matmul_pass 3g h, bias_pass h, act_pass, matmul_pass2 h o", "matmul_pass 3g o"
_NO_PASS_LAYER = {"bias_pass": None, "act_pass": None, "matmul_pass2": None}
_VALUE = "v1 c v, norm_v1 v, act_v1, v2 3v h, v2_bias h, act_v2, v3 h r, v3_bias r, sv3 h s, sv3_bias s, ownership v o"


class _Reader:
    """Reads records in file order; the methods mirror the sections of the format."""

    def __init__(self, stream: TokenStream) -> None:
        self._stream = stream
        self._version = 0

    def network(self) -> KataGoNetwork:
        stream = self._stream
        name = stream.name()
        self._version = stream.integer("a model version", 0, 1 << 20)
        if not OLDEST_VERSION <= self._version <= NEWEST_VERSION:
            raise stream.error(
                f"model version {self._version} found, expected one of {OLDEST_VERSION} to {NEWEST_VERSION}"
            )
        stream.integer("the number of spatial inputs", SPATIAL_CHANNELS, SPATIAL_CHANNELS)
        stream.integer("the number of global inputs", GLOBAL_CHANNELS, GLOBAL_CHANNELS)
        scales = self._scales()
        meta_version, prefer_suicide = 0, False
        if self._version >= 15:
            meta_version = stream.integer("the metadata encoder's version", 0, 1)
            prefer_suicide = stream.flag("preferPassAliveUnderSuicideRules")
            stream.zeros(6)
        trunk = self._trunk(meta_version)
        policy_head = self._policy_head(trunk.channels)
        value_head = self._value_head(trunk.channels)
        stream.finish()
        return KataGoNetwork(name, self._version, scales, prefer_suicide, trunk, policy_head, value_head)

    def _scales(self) -> OutputScales:
        if self._version < 13:
            return OutputScales()
        return OutputScales(*(self._stream.real("an output scale", 0.0) for _ in range(7)))

    # Primitive records

    def _conv(self, in_channels: int, out_channels: int | None = None) -> Conv:
        stream = self._stream
        name = stream.name()
        ky = self._odd("the kernel's height")
        kx = self._odd("the kernel's width")
        self._channels("input channels", in_channels)
        out_channels = self._channels("output channels", out_channels)
        stream.integer("the vertical dilation", 1, 1)
        stream.integer("the horizontal dilation", 1, 1)
        block = stream.floats(ky * kx * in_channels * out_channels).reshape(ky, kx, in_channels, out_channels)
        return Conv(name, np.ascontiguousarray(block.transpose(3, 2, 0, 1)))

    def _odd(self, what: str) -> int:
        size = self._stream.integer(what, 1, _MAX_KERNEL)
        if size % 2 == 0:
            raise self._stream.error(f"found {size}, expected {what} to be odd")
        return size

    def _channels(self, what: str, expected: int | None) -> int:
        if expected is None:
            return self._stream.integer(what, 1, _MAX_CHANNELS)
        return self._stream.integer(what, expected, expected)

    def _batch_norm(self, channels: int) -> BatchNorm:
        stream = self._stream
        name = stream.name()
        self._channels("channels", channels)
        epsilon = stream.real("epsilon", 0.0)
        has_scale = stream.flag("hasScale")
        has_bias = stream.flag("hasBias")
        mean = stream.floats(channels)
        variance = stream.floats(channels)
        if (variance + epsilon <= 0).any():
            raise stream.error("found a variance that is not positive")
        scale = stream.floats(channels) if has_scale else np.ones(channels, np.float32)
        bias = stream.floats(channels) if has_bias else np.zeros(channels, np.float32)
        return BatchNorm(name, mean, variance, scale, bias, epsilon)

    def _trunk_rms_norm(self, channels: int) -> RmsNorm:
        stream = self._stream
        name = stream.name()
        self._channels("channels", channels)
        epsilon = stream.real("epsilon", 0.0)
        spatial = stream.flag("whether the norm is spatial")
        stream.integer("the norm's channel group", 0, 0)
        gamma = stream.floats(channels)
        return RmsNorm(name, gamma, stream.floats(channels), epsilon, spatial)

    def _transformer_rms_norm(self, channels: int) -> RmsNorm:
        stream = self._stream
        name = stream.name()
        self._channels("channels", channels)
        epsilon = stream.real("epsilon", 0.0)
        return RmsNorm(name, stream.floats(channels), np.zeros(channels, np.float32), epsilon, False)

    def _activation(self) -> Activation:
        self._stream.name()
        if self._version < 11:
            return Activation.RELU
        kind = self._stream.token("an activation")
        try:
            return Activation(kind)
        except ValueError:
            known = ", ".join(member.value for member in Activation)
            raise self._stream.error(f"activation {kind[:40]!r} found, expected one of {known}") from None

    def _matmul(self, in_channels: int, out_channels: int | None = None) -> MatMul:
        name = self._stream.name()
        self._channels("input channels", in_channels)
        out_channels = self._channels("output channels", out_channels)
        return MatMul(name, self._stream.floats(in_channels * out_channels).reshape(in_channels, out_channels))

    def _matbias(self, channels: int) -> MatBias:
        name = self._stream.name()
        self._channels("channels", channels)
        return MatBias(name, self._stream.floats(channels))

    def _records(self, kind: type, layout: str, **sizes: int) -> dict[str, Any]:
        """Return the records of a layout by field of the dataclass `kind`, with known `sizes` by letter."""
        types = {field.name: str(field.type).removesuffix(" | None") for field in dataclasses.fields(kind)}
        found: dict[str, Any] = {}
        for entry in layout.split(", "):
            name, *letters = entry.split()
            read = _READERS[types[name]]
            known = [sizes.get(letter[-1], 0) * int(letter[:-1] or 1) or None for letter in letters]
            found[name] = read(self, *known)
            if known and known[-1] is None:
                sizes[letters[-1]] = found[name].out_channels
        return found

    # Trunk

    def _trunk(self, meta_version: int) -> Trunk:
        stream = self._stream
        stream.name()
        count = stream.integer("the number of blocks", 0, _MAX_BLOCKS)
        channels = stream.integer("the trunk's channels", 1, _MAX_CHANNELS)
        for what in ("middle", "regular", "dilated", "global pooling"):
            # Only the blocks' own records are used: these fields do not hold for every block kind.
            stream.integer(f"the trunk's {what} channels", 0, _MAX_CHANNELS)
        rms_tip = False
        if self._version >= 15:
            rms_tip = stream.flag("the trunk's norm kind")
            stream.zeros(5)
        conv = self._conv(SPATIAL_CHANNELS, channels)
        matmul = self._matmul(GLOBAL_CHANNELS, channels)
        encoder = self._meta_encoder(channels) if meta_version else None
        blocks = self._blocks(count, channels, 0)
        tip_norm = self._trunk_rms_norm(channels) if rms_tip else self._batch_norm(channels)
        return Trunk(conv, matmul, encoder, blocks, tip_norm, self._activation())

    def _meta_encoder(self, trunk_channels: int) -> MetaEncoder:
        self._stream.name()
        self._stream.integer("the number of metadata inputs", META_CHANNELS, META_CHANNELS)
        return MetaEncoder(**self._records(MetaEncoder, _ENCODER, i=META_CHANNELS, c=trunk_channels))

    def _blocks(self, count: int, channels: int, depth: int) -> tuple[Block, ...]:
        return tuple(self._block(channels, depth) for _ in range(count))

    def _block(self, channels: int, depth: int) -> Block:
        stream = self._stream
        kind = stream.token("a block kind")
        if kind == "ordinary_block":
            return OrdinaryBlock(stream.name(), **self._records(OrdinaryBlock, _ORDINARY, c=channels))
        if kind == "gpool_block":
            return GlobalPoolingBlock(stream.name(), **self._records(GlobalPoolingBlock, _POOLING, c=channels))
        if kind == "nested_bottleneck_block" and depth < _MAX_NESTING:
            return self._bottleneck_block(channels, depth)
        if kind == "transformer_attention_block":
            return self._attention_block(channels)
        if kind == "transformer_ffn_block":
            return self._ffn_block(channels)
        if kind == "nested_bottleneck_block":
            raise stream.error(f"found blocks nested more than {_MAX_NESTING} deep")
        known = (
            "ordinary_block, gpool_block, nested_bottleneck_block, transformer_attention_block, transformer_ffn_block"
        )
        raise stream.error(f"found {kind[:40]!r}, expected a block kind: one of {known}")

    def _bottleneck_block(self, channels: int, depth: int) -> BottleneckBlock:
        name = self._stream.name()
        count = self._stream.integer("the number of inner blocks", 0, _MAX_BLOCKS)
        first = self._records(BottleneckBlock, _BEFORE_BLOCKS, c=channels)
        middle = first["conv1"].out_channels
        blocks = self._blocks(count, middle, depth + 1)
        last = self._records(BottleneckBlock, _AFTER_BLOCKS, m=middle, c=channels)
        return BottleneckBlock(name, blocks=blocks, **first, **last)

    def _attention_block(self, channels: int) -> AttentionBlock:
        stream = self._stream
        name = stream.name()
        heads = stream.integer("the number of heads", 1, _MAX_CHANNELS)
        kv_heads = stream.integer("the number of key-value heads", 1, heads)
        if heads % kv_heads:
            raise stream.error(f"found {kv_heads} key-value heads, expected a divisor of {heads} heads")
        q_dim = stream.integer("the width of a query", 1, _MAX_CHANNELS)
        v_dim = stream.integer("the width of a value", 1, _MAX_CHANNELS)
        use_rope = stream.flag("useRope")
        learnable = stream.flag("learnableRope")
        sizes = {"q": heads * q_dim, "k": kv_heads * q_dim, "v": kv_heads * v_dim, "o": heads * v_dim}
        records = self._records(AttentionBlock, _ATTENTION, c=channels, **sizes)
        rope = self._rope(kv_heads, q_dim, learnable) if use_rope else None
        return AttentionBlock(name, heads, kv_heads, q_dim, v_dim, rope=rope, **records)

    def _rope(self, kv_heads: int, q_dim: int, learnable: bool) -> FloatArray:
        """Read either kind of rotary encoding as rotations [kv_heads, q_dim / 2, (x, y)]."""
        stream = self._stream
        stream.name()
        if q_dim % 2:
            raise stream.error(f"found queries {q_dim} wide, expected an even width with RoPE")
        pairs = q_dim // 2
        if learnable:
            self._channels("RoPE heads", kv_heads)
            self._channels("RoPE pairs (half the width of a query)", pairs)
            self._channels("RoPE coordinates", 2)
            return stream.floats(kv_heads * pairs * 2).reshape(kv_heads, pairs, 2)
        return fixed_rope(kv_heads, pairs, stream.real("theta", 1e-6))

    def _ffn_block(self, channels: int) -> FeedForwardBlock:
        stream = self._stream
        name = stream.name()
        self._channels("the trunk's channels", channels)
        hidden = stream.integer("hidden channels", 1, _MAX_CHANNELS)
        layout = _GATED if stream.flag("useSwiGLU") else _UNGATED
        return FeedForwardBlock(name, **{"gate": None} | self._records(FeedForwardBlock, layout, c=channels, h=hidden))

    # Heads

    def _policy_head(self, trunk_channels: int) -> PolicyHead:
        self._stream.name()
        sizes = {"c": trunk_channels, "o": self._policy_channels()}
        passing = _PASS if self._version >= 15 else _OLD_PASS
        return PolicyHead(**_NO_PASS_LAYER | self._records(PolicyHead, f"{_POLICY}, {passing}", **sizes))

    def _policy_channels(self) -> int:
        stream = self._stream
        if self._version < 12:
            return 1
        if self._version < 16:
            return 2
        if self._version == 16:
            return 4
        channels = stream.integer("the number of policy channels", 2, 4)
        if channels == 3:
            raise stream.error("found 3 policy channels, expected 2 or 4")
        stream.zeros(3)
        return channels

    def _value_head(self, trunk_channels: int) -> ValueHead:
        self._stream.name()
        if self._version >= 17:
            self._stream.zeros(3)
        sizes = {"c": trunk_channels, "r": 3, "s": 4 if self._version < 9 else 6, "o": 1}
        return ValueHead(**self._records(ValueHead, _VALUE, **sizes))


_READERS: dict[str, Callable[..., Any]] = {
    "Conv": _Reader._conv,
    "BatchNorm": _Reader._batch_norm,
    "MatMul": _Reader._matmul,
    "MatBias": _Reader._matbias,
    "Activation": _Reader._activation,
    "RmsNorm": _Reader._transformer_rms_norm,
}

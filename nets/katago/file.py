"""Reader of KataGo network files: `.bin.gz`, `.bin.xz`, `.bin` and the same as `.txt`, versions 8 to 17."""

from __future__ import annotations

from pathlib import Path

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
        stream = self._stream
        stream.name()
        stream.integer("the number of metadata inputs", META_CHANNELS, META_CHANNELS)
        matmul1 = self._matmul(META_CHANNELS)
        bias1 = self._matbias(_out(matmul1))
        act1 = self._activation()
        matmul2 = self._matmul(_out(matmul1))
        bias2 = self._matbias(_out(matmul2))
        act2 = self._activation()
        return MetaEncoder(matmul1, bias1, act1, matmul2, bias2, act2, self._matmul(_out(matmul2), trunk_channels))

    def _blocks(self, count: int, channels: int, depth: int) -> tuple[Block, ...]:
        return tuple(self._block(channels, depth) for _ in range(count))

    def _block(self, channels: int, depth: int) -> Block:
        stream = self._stream
        kind = stream.token("a block kind")
        if kind == "ordinary_block":
            return self._ordinary_block(channels)
        if kind == "gpool_block":
            return self._gpool_block(channels)
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

    def _ordinary_block(self, channels: int) -> OrdinaryBlock:
        name = self._stream.name()
        norm1, act1, conv1 = self._batch_norm(channels), self._activation(), self._conv(channels)
        norm2, act2 = self._batch_norm(conv1.out_channels), self._activation()
        return OrdinaryBlock(name, norm1, act1, conv1, norm2, act2, self._conv(conv1.out_channels, channels))

    def _gpool_block(self, channels: int) -> GlobalPoolingBlock:
        name = self._stream.name()
        norm1, act1 = self._batch_norm(channels), self._activation()
        regular, gpool = self._conv(channels), self._conv(channels)
        norm_gpool, act_gpool = self._batch_norm(gpool.out_channels), self._activation()
        matmul = self._matmul(3 * gpool.out_channels, regular.out_channels)
        norm2, act2 = self._batch_norm(regular.out_channels), self._activation()
        conv2 = self._conv(regular.out_channels, channels)
        return GlobalPoolingBlock(name, norm1, act1, regular, gpool, norm_gpool, act_gpool, matmul, norm2, act2, conv2)

    def _bottleneck_block(self, channels: int, depth: int) -> BottleneckBlock:
        name = self._stream.name()
        count = self._stream.integer("the number of inner blocks", 0, _MAX_BLOCKS)
        norm1, act1, conv1 = self._batch_norm(channels), self._activation(), self._conv(channels)
        blocks = self._blocks(count, conv1.out_channels, depth + 1)
        norm2, act2 = self._batch_norm(conv1.out_channels), self._activation()
        conv2 = self._conv(conv1.out_channels, channels)
        return BottleneckBlock(name, norm1, act1, conv1, blocks, norm2, act2, conv2)

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
        norm = self._transformer_rms_norm(channels)
        q = self._matmul(channels, heads * q_dim)
        k = self._matmul(channels, kv_heads * q_dim)
        v = self._matmul(channels, kv_heads * v_dim)
        out = self._matmul(heads * v_dim, channels)
        rope = self._rope(kv_heads, q_dim, learnable) if use_rope else None
        return AttentionBlock(name, heads, kv_heads, q_dim, v_dim, norm, q, k, v, out, rope)

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
        gated = stream.flag("useSwiGLU")
        norm = self._transformer_rms_norm(channels)
        w1 = self._matmul(channels, hidden)
        gate = self._matmul(channels, hidden) if gated else None
        return FeedForwardBlock(name, norm, w1, gate, self._matmul(hidden, channels))

    # Heads

    def _policy_head(self, trunk_channels: int) -> PolicyHead:
        stream = self._stream
        stream.name()
        channels = self._policy_channels()
        p1 = self._conv(trunk_channels)
        g1 = self._conv(trunk_channels)
        pooled = 3 * g1.out_channels
        norm_g1, act_g1 = self._batch_norm(g1.out_channels), self._activation()
        matmul = self._matmul(pooled, p1.out_channels)
        norm_p1, act_p1 = self._batch_norm(p1.out_channels), self._activation()
        p2 = self._conv(p1.out_channels, channels)
        bias_pass, act_pass, matmul_pass2 = None, None, None
        if self._version >= 15:
            matmul_pass = self._matmul(pooled)
            bias_pass, act_pass = self._matbias(_out(matmul_pass)), self._activation()
            matmul_pass2 = self._matmul(_out(matmul_pass), channels)
        else:
            matmul_pass = self._matmul(pooled, channels)
        return PolicyHead(
            p1, g1, norm_g1, act_g1, matmul, norm_p1, act_p1, p2, matmul_pass, bias_pass, act_pass, matmul_pass2
        )

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
        stream = self._stream
        stream.name()
        if self._version >= 17:
            stream.zeros(3)
        v1 = self._conv(trunk_channels)
        norm_v1, act_v1 = self._batch_norm(v1.out_channels), self._activation()
        v2 = self._matmul(3 * v1.out_channels)
        v2_bias, act_v2 = self._matbias(_out(v2)), self._activation()
        v3, v3_bias = self._matmul(_out(v2), 3), self._matbias(3)
        misc = 4 if self._version < 9 else 6
        sv3, sv3_bias = self._matmul(_out(v2), misc), self._matbias(misc)
        ownership = self._conv(v1.out_channels, 1)
        return ValueHead(v1, norm_v1, act_v1, v2, v2_bias, act_v2, v3, v3_bias, sv3, sv3_bias, ownership)


def _out(matmul: MatMul) -> int:
    return int(matmul.weights.shape[1])

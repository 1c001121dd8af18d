"""Writes KataGo network files, and makes up small random networks of every version and block kind."""

from __future__ import annotations

from dataclasses import dataclass, field, fields

import numpy as np

from nets.katago.network import (
    Activation,
    AttentionBlock,
    BatchNorm,
    Block,
    BottleneckBlock,
    Conv,
    FeedForwardBlock,
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
)

_KINDS = {
    OrdinaryBlock: "ordinary_block",
    GlobalPoolingBlock: "gpool_block",
    BottleneckBlock: "nested_bottleneck_block",
    AttentionBlock: "transformer_attention_block",
    FeedForwardBlock: "transformer_ffn_block",
}


def write_network(network: KataGoNetwork, *, text: bool = False, theta: float | None = None) -> bytes:
    """Return the content of a network file; with `theta`, attention blocks get fixed instead of learnable RoPE."""
    return _Writer(network.version, text, theta).network(network)


class _Writer:
    def __init__(self, version: int, text: bool, theta: float | None) -> None:
        self._version = version
        self._text = text
        self._theta = theta
        self._out = bytearray()

    def _tokens(self, *tokens: object) -> None:
        for token in tokens:
            value = int(token) if isinstance(token, bool) else token
            self._out += f"{value}\n".encode()

    def _floats(self, array: np.ndarray) -> None:
        flat = np.ascontiguousarray(array, dtype="<f4").ravel()
        if self._text:
            self._out += (" ".join(repr(float(x)) for x in flat) + "\n").encode()
        else:
            self._out += b"@BIN@" + flat.tobytes() + b"\n"

    def _record(self, record: object) -> None:
        if isinstance(record, Conv):
            out, in_, ky, kx = record.weights.shape
            self._tokens(record.name, ky, kx, in_, out, 1, 1)
            self._floats(record.weights.transpose(2, 3, 1, 0))
        elif isinstance(record, BatchNorm):
            has_scale, has_bias = bool((record.scale != 1).any()), bool((record.bias != 0).any())
            self._tokens(record.name, record.mean.size, record.epsilon, has_scale, has_bias)
            self._floats(record.mean)
            self._floats(record.variance)
            if has_scale:
                self._floats(record.scale)
            if has_bias:
                self._floats(record.bias)
        elif isinstance(record, MatMul):
            self._tokens(record.name, *record.weights.shape)
            self._floats(record.weights)
        elif isinstance(record, MatBias):
            self._tokens(record.name, record.bias.size)
            self._floats(record.bias)
        elif isinstance(record, Activation):
            self._tokens("act")
            if self._version >= 11:
                self._tokens(record.value)
        else:
            raise TypeError(type(record))

    def _records(self, *records: object) -> None:
        for record in records:
            self._record(record)

    def network(self, network: KataGoNetwork) -> bytes:
        trunk = network.trunk
        self._tokens(network.name, network.version, 22, 19)
        if self._version >= 13:
            self._tokens(*(getattr(network.scales, item.name) for item in fields(OutputScales)))
        if self._version >= 15:
            self._tokens(trunk.meta_encoder is not None, network.prefer_pass_alive_under_suicide_rules, *[0] * 6)
        self._tokens("trunk", len(trunk.blocks), trunk.channels, 8, 8, 8, 8)
        if self._version >= 15:
            self._tokens(isinstance(trunk.tip_norm, RmsNorm), *[0] * 5)
        self._records(trunk.conv, trunk.matmul)
        if trunk.meta_encoder is not None:
            self._tokens("encoder", 192)
            self._records(*(getattr(trunk.meta_encoder, item.name) for item in fields(MetaEncoder)))
        self._blocks(trunk.blocks)
        if isinstance(trunk.tip_norm, RmsNorm):
            norm = trunk.tip_norm
            self._tokens(norm.name, norm.gamma.size, norm.epsilon, norm.spatial, 0)
            self._floats(norm.gamma)
            self._floats(norm.beta)
        else:
            self._record(trunk.tip_norm)
        self._record(trunk.tip_act)
        self._policy_head(network.policy_head)
        self._tokens("valuehead")
        if self._version >= 17:
            self._tokens(0, 0, 0)
        self._records(*(getattr(network.value_head, item.name) for item in fields(ValueHead)))
        return bytes(self._out)

    def _policy_head(self, head: PolicyHead) -> None:
        self._tokens("policyhead")
        if self._version >= 17:
            self._tokens(head.p2.out_channels, 0, 0, 0)
        self._records(head.p1, head.g1, head.norm_g1, head.act_g1, head.matmul, head.norm_p1, head.act_p1, head.p2)
        self._record(head.matmul_pass)
        if self._version >= 15:
            self._records(head.bias_pass, head.act_pass, head.matmul_pass2)

    def _blocks(self, blocks: tuple[Block, ...]) -> None:
        for block in blocks:
            self._tokens(_KINDS[type(block)], block.name)
            if isinstance(block, AttentionBlock):
                self._attention(block)
            elif isinstance(block, FeedForwardBlock):
                self._tokens(*block.w1.weights.shape, block.gate is not None)
                self._transformer_norm(block.norm)
                self._records(*(record for record in (block.w1, block.gate, block.w2) if record is not None))
            elif isinstance(block, BottleneckBlock):
                self._tokens(len(block.blocks))
                self._records(block.norm1, block.act1, block.conv1)
                self._blocks(block.blocks)
                self._records(block.norm2, block.act2, block.conv2)
            else:
                self._records(*(getattr(block, item.name) for item in fields(block) if item.name != "name"))

    def _transformer_norm(self, norm: RmsNorm) -> None:
        self._tokens(norm.name, norm.gamma.size, norm.epsilon)
        self._floats(norm.gamma)

    def _attention(self, block: AttentionBlock) -> None:
        learnable = self._theta is None and block.rope is not None
        self._tokens(block.heads, block.kv_heads, block.q_dim, block.v_dim, block.rope is not None, learnable)
        self._transformer_norm(block.norm)
        self._records(block.q, block.k, block.v, block.out)
        if learnable and block.rope is not None:
            self._tokens("rope", *block.rope.shape)
            self._floats(block.rope)
        elif block.rope is not None:
            self._tokens("rope", self._theta)


@dataclass
class RandomNetworks:
    """Makes up networks whose activations stay near 1, whatever their blocks."""

    version: int
    seed: int = 0
    activation: Activation = Activation.RELU
    norms: str = "any"
    """any: mean, variance, scale of both signs; positive: scales above 0; bias: bias only, as in the g170 files"""
    rng: np.random.Generator = field(init=False)

    def __post_init__(self) -> None:
        self.rng = np.random.default_rng(self.seed)

    def _normal(self, *shape: int, scale: float = 1.0) -> np.ndarray:
        return (self.rng.standard_normal(shape) * scale).astype(np.float32)

    def conv(self, in_: int, out: int, kernel: int = 3) -> Conv:
        return Conv("conv", self._normal(out, in_, kernel, kernel, scale=(in_ * kernel**2) ** -0.5))

    def matmul(self, in_: int, out: int) -> MatMul:
        return MatMul("matmul", self._normal(in_, out, scale=in_**-0.5))

    def bias(self, channels: int) -> MatBias:
        return MatBias("bias", self._normal(channels))

    def norm(self, channels: int) -> BatchNorm:
        ones, zeros = np.ones(channels, np.float32), np.zeros(channels, np.float32)
        bias = self._normal(channels, scale=0.3)
        if self.norms == "bias":
            return BatchNorm("norm", zeros, ones, ones, bias, 1e-20)
        mean = self._normal(channels, scale=0.3)
        variance = self.rng.uniform(0.5, 2.0, channels).astype(np.float32)
        scale = self.rng.uniform(0.5, 1.5, channels).astype(np.float32)
        if self.norms == "any":
            scale *= self.rng.choice(np.float32([-1, 1]), channels)
            scale[0] = 0.0
        return BatchNorm("norm", mean, variance, scale, bias, 1e-3)

    def rms(self, channels: int, *, tip: bool = False, spatial: bool = False) -> RmsNorm:
        beta = self._normal(channels) if tip else np.zeros(channels, np.float32)
        return RmsNorm("rms", self._normal(channels), beta, 1e-5, spatial)

    def block(self, kind: str, channels: int) -> Block:
        act = self.activation
        if kind == "ordinary":
            return OrdinaryBlock(
                kind, self.norm(channels), act, self.conv(channels, 8), self.norm(8), act, self.conv(8, channels)
            )
        if kind == "gpool":
            return GlobalPoolingBlock(
                kind,
                self.norm(channels),
                act,
                self.conv(channels, 8),
                self.conv(channels, 4),
                self.norm(4),
                act,
                self.matmul(12, 8),
                self.norm(8),
                act,
                self.conv(8, channels),
            )
        if kind == "bottleneck":
            inner = (self.block("ordinary", 8), self.block("gpool", 8))
            pre, post = self.conv(channels, 8, 1), self.conv(8, channels, 1)
            return BottleneckBlock(kind, self.norm(channels), act, pre, inner, self.norm(8), act, post)
        if kind.startswith("attention"):
            rope = None if kind == "attention-plain" else self._normal(2, 3, 2)
            q, k, v = self.matmul(channels, 24), self.matmul(channels, 12), self.matmul(channels, 10)
            out = self.matmul(20, channels)
            return AttentionBlock(kind, 4, 2, 6, 5, self.rms(channels), q, k, v, out, rope)
        gate = self.matmul(channels, 16) if kind == "ffn-gated" else None
        return FeedForwardBlock(kind, self.rms(channels), self.matmul(channels, 16), gate, self.matmul(16, channels))

    def network(
        self, kinds: list[str], *, channels: int = 8, tip: str = "bn", meta: bool = False, kernel: int = 3
    ) -> KataGoNetwork:
        """Make a network of the given block kinds; tip is bn, rms or rms-spatial."""
        act = self.activation
        encoder = None
        if meta:
            middle = self.matmul(8, 8)
            encoder = MetaEncoder(
                self.matmul(192, 8), self.bias(8), act, middle, self.bias(8), act, self.matmul(8, channels)
            )
        tip_norm = self.norm(channels) if tip == "bn" else self.rms(channels, tip=True, spatial=tip == "rms-spatial")
        blocks = tuple(self.block(kind, channels) for kind in kinds)
        trunk = Trunk(self.conv(22, channels, kernel), self.matmul(19, channels), encoder, blocks, tip_norm, act)
        scales = OutputScales(19.0, 18.0, 17.0, 16.0, 15.0, 0.5, 14.0) if self.version >= 13 else OutputScales()
        policy, value = self._policy_head(channels), self._value_head(channels)
        return KataGoNetwork("random-net", self.version, scales, self.version >= 15, trunk, policy, value)

    def _policy_head(self, channels: int) -> PolicyHead:
        act = self.activation
        outputs = 1 if self.version < 12 else 4 if self.version == 16 else 2
        late = self.version >= 15
        return PolicyHead(
            self.conv(channels, 6, 1),
            self.conv(channels, 4, 1),
            self.norm(4),
            act,
            self.matmul(12, 6),
            self.norm(6),
            act,
            self.conv(6, outputs, 1),
            self.matmul(12, 5 if late else outputs),
            self.bias(5) if late else None,
            act if late else None,
            self.matmul(5, outputs) if late else None,
        )

    def _value_head(self, channels: int) -> ValueHead:
        act = self.activation
        misc = 4 if self.version < 9 else 6
        conv, norm, v2 = self.conv(channels, 4, 1), self.norm(4), self.matmul(12, 7)
        v3, sv3 = self.matmul(7, 3), self.matmul(7, misc)
        ownership = self.conv(4, 1, 1)
        return ValueHead(conv, norm, act, v2, self.bias(7), act, v3, self.bias(3), sv3, self.bias(misc), ownership)

"""Makes up small random KataGo networks of every version and block kind."""

from dataclasses import dataclass, field

import numpy as np

from yomi.nets.katago.network import (
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
from yomi.nets.katago.write import _Writer


class _TextWriter(_Writer):
    def _floats(self, array: np.ndarray) -> None:
        self._out += (" ".join(repr(float(x)) for x in array.ravel()) + "\n").encode()


def write_text(network: KataGoNetwork) -> bytes:
    """Return a network as the content of a .txt file, whose floats are text."""
    return _TextWriter(network.version).network(network)


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
            self.matmul(12, 6 if late else outputs),
            self.bias(6) if late else None,
            act if late else None,
            self.matmul(6, outputs) if late else None,
        )

    def _value_head(self, channels: int) -> ValueHead:
        act = self.activation
        misc = 4 if self.version < 9 else 6
        conv, norm, v2 = self.conv(channels, 4, 1), self.norm(4), self.matmul(12, 7)
        v3, sv3 = self.matmul(7, 3), self.matmul(7, misc)
        ownership = self.conv(4, 1, 1)
        return ValueHead(conv, norm, act, v2, self.bias(7), act, v3, self.bias(3), sv3, self.bias(misc), ownership)

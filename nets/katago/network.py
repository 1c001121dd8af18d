"""A KataGo network as data: the records of a network file, versions 8 to 17.

Weights are float32 in the order of the computation, not of the file: convolutions are [out, in, ky, kx], matrices [in,
out]. Nothing is folded or simplified here; `cpu_program` and its builders do that.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from yomi.nets.metadata import BoardSize, area_of, sides

FloatArray: TypeAlias = npt.NDArray[np.float32]

# Input planes of the V7 features, which all versions from 8 to 17 use.
SPATIAL_CHANNELS = 22
# Global inputs of the V7 features.
GLOBAL_CHANNELS = 19
# Inputs of the human-SL metadata encoder.
META_CHANNELS = 192
OLDEST_VERSION = 8
NEWEST_VERSION = 17


def size_offset(area: int) -> float:
    """Return the factor of pooled means for `area` points: KataGo's `(sqrtdiv - 14) * 0.1` (eigenbackend.cpp)."""
    return (math.sqrt(area) - 14) * 0.1


def rope_angles(rope: FloatArray, size: BoardSize) -> npt.NDArray[np.float64]:
    """Return the angles [area, heads, pairs] by which attention rotates the channel pairs of each point, row by row.

    `rope` is [heads, pairs, 2], see `AttentionBlock.rope`.
    """
    y, x = np.divmod(np.arange(area_of(size)), sides(size)[0])
    turns = rope.astype(np.float64)
    return np.asarray(x[:, None, None] * turns[None, :, :, 0] + y[:, None, None] * turns[None, :, :, 1])


def fixed_rope(kv_heads: int, pairs: int, theta: float) -> FloatArray:
    """Return the rotations [kv_heads, pairs, (x, y)] of rotary positions with fixed angles."""
    half = pairs // 2
    speeds = theta ** (-2.0 * np.arange(pairs - half) / pairs)
    turns = np.zeros((kv_heads, pairs, 2), np.float32)
    # The first half of the pairs rotates with y, the second half, which gets the odd one, with x.
    turns[:, :half, 1] = speeds[:half]
    turns[:, half:, 0] = speeds
    return turns


class Activation(enum.Enum):
    """Activation functions by their names in the file. Programs name them alike, in lower case (`Norm`)."""

    IDENTITY = "ACTIVATION_IDENTITY"
    RELU = "ACTIVATION_RELU"
    MISH = "ACTIVATION_MISH"
    SILU = "ACTIVATION_SILU"


@dataclass(frozen=True, eq=False)
class Conv:
    """A convolution: cross-correlation, stride 1, zero padding of half the (odd) kernel, no bias."""

    name: str
    weights: FloatArray  # [out, in, ky, kx]

    @property
    def out_channels(self) -> int:
        return int(self.weights.shape[0])


@dataclass(frozen=True, eq=False)
class BatchNorm:
    """A batch normalisation with stored statistics: (x - mean) * scale / sqrt(variance + epsilon) + bias."""

    name: str
    mean: FloatArray  # [C]
    variance: FloatArray  # [C]
    scale: FloatArray  # [C]; ones if the file has none
    bias: FloatArray  # [C]; zeros if the file has none
    epsilon: float

    def folded(self) -> tuple[FloatArray, FloatArray]:
        """Return scale [C] and bias [C] for which the norm is x * scale + bias."""
        scale = self.scale.astype(np.float64) / np.sqrt(self.variance.astype(np.float64) + self.epsilon)
        bias = self.bias - self.mean * scale
        return scale.astype(np.float32), bias.astype(np.float32)


@dataclass(frozen=True, eq=False)
class RmsNorm:
    """A root-mean-square norm: x / sqrt(mean(x²) + epsilon) * gamma + beta."""

    name: str
    gamma: FloatArray  # [C]
    beta: FloatArray  # [C]; zeros inside transformer blocks, which store none
    epsilon: float
    spatial: bool  # whether the mean runs over all points as well as over the channels


@dataclass(frozen=True, eq=False)
class MatMul:
    name: str
    weights: FloatArray  # [in, out]

    @property
    def out_channels(self) -> int:
        return int(self.weights.shape[1])


@dataclass(frozen=True, eq=False)
class MatBias:
    name: str
    bias: FloatArray  # [C]


@dataclass(frozen=True, eq=False)
class OrdinaryBlock:
    """trunk += conv2(act2(norm2(conv1(act1(norm1(trunk))))))."""

    name: str
    norm1: BatchNorm
    act1: Activation
    conv1: Conv
    norm2: BatchNorm
    act2: Activation
    conv2: Conv


@dataclass(frozen=True, eq=False)
class GlobalPoolingBlock:
    """A residual block that adds the global pooling of a second convolution to the output of its first.

    * u = act1(norm1(trunk))
    * g = act_gpool(norm_gpool(conv_gpool(u)))
    * r = conv_regular(u) + pool(g) @ matmul
    * trunk += conv2(act2(norm2(r)))
    """

    name: str
    norm1: BatchNorm
    act1: Activation
    conv_regular: Conv
    conv_gpool: Conv
    norm_gpool: BatchNorm
    act_gpool: Activation
    matmul: MatMul  # [3 * gpool channels, regular channels]; rows are mean, scaled mean, max
    norm2: BatchNorm
    act2: Activation
    conv2: Conv


@dataclass(frozen=True, eq=False)
class BottleneckBlock:
    """trunk += conv2(act2(norm2(blocks(conv1(act1(norm1(trunk)))))))."""

    name: str
    norm1: BatchNorm
    act1: Activation
    conv1: Conv
    blocks: tuple[Block, ...]
    norm2: BatchNorm
    act2: Activation
    conv2: Conv


@dataclass(frozen=True, eq=False)
class AttentionBlock:
    """Pre-norm attention over all points; trunk += heads @ out. Channels of a head are contiguous."""

    name: str
    heads: int
    kv_heads: int
    q_dim: int
    v_dim: int
    norm: RmsNorm
    q: MatMul
    k: MatMul
    v: MatMul
    out: MatMul
    # [kv_heads, q_dim / 2, 2]: rotation of each channel pair per step in x and in y, or None without RoPE.
    rope: FloatArray | None


@dataclass(frozen=True, eq=False)
class FeedForwardBlock:
    """trunk += (silu(u @ w1) * (u @ gate)) @ w2 with u = norm(trunk); without a gate, silu(u @ w1) @ w2."""

    name: str
    norm: RmsNorm
    w1: MatMul
    gate: MatMul | None
    w2: MatMul


Block: TypeAlias = OrdinaryBlock | GlobalPoolingBlock | BottleneckBlock | AttentionBlock | FeedForwardBlock


@dataclass(frozen=True, eq=False)
class MetaEncoder:
    """A perceptron with three layers, from 192 human-SL inputs to a bias of the trunk."""

    matmul1: MatMul
    bias1: MatBias
    act1: Activation
    matmul2: MatMul
    bias2: MatBias
    act2: Activation
    matmul3: MatMul


@dataclass(frozen=True, eq=False)
class Trunk:
    """conv(spatial) + global @ matmul [+ meta encoder], the blocks, and the final norm and activation."""

    conv: Conv
    matmul: MatMul
    meta_encoder: MetaEncoder | None
    blocks: tuple[Block, ...]
    tip_norm: BatchNorm | RmsNorm
    tip_act: Activation

    @property
    def channels(self) -> int:
        return self.conv.out_channels


@dataclass(frozen=True, eq=False)
class PolicyHead:
    """The policy of the points and of the pass.

    * G = pool(act_g1(norm_g1(g1(t))))
    * board = p2(act_p1(norm_p1(p1(t) + G @ matmul)))
    * pass = G @ matmul_pass; from version 15 on act_pass(G @ matmul_pass + bias_pass) @ matmul_pass2
    """

    p1: Conv
    g1: Conv
    norm_g1: BatchNorm
    act_g1: Activation
    matmul: MatMul
    norm_p1: BatchNorm
    act_p1: Activation
    p2: Conv
    matmul_pass: MatMul
    bias_pass: MatBias | None
    act_pass: Activation | None
    matmul_pass2: MatMul | None


@dataclass(frozen=True, eq=False)
class ValueHead:
    """Value, misc outputs and ownership.

    * v = act_v1(norm_v1(v1(t)))
    * h = act_v2(value pool(v) @ v2 + bias)
    * value = h @ v3; misc = h @ sv3; ownership = ownership convolution of v
    """

    v1: Conv
    norm_v1: BatchNorm
    act_v1: Activation
    v2: MatMul
    v2_bias: MatBias
    act_v2: Activation
    v3: MatMul
    v3_bias: MatBias
    sv3: MatMul
    sv3_bias: MatBias
    ownership: Conv


@dataclass(frozen=True)
class OutputScales:
    """Factors from raw outputs to points and squared errors. Files contain them from version 13 on."""

    td_score: float = 20.0
    score_mean: float = 20.0
    score_stdev: float = 20.0
    lead: float = 20.0
    variance_time: float = 40.0
    shortterm_value_error: float = 0.25
    shortterm_score_error: float = 30.0


@dataclass(frozen=True, eq=False)
class KataGoNetwork:
    name: str
    version: int
    scales: OutputScales
    # Whether area planes 18 and 19 treat multi-stone suicide as legal when they decide what is pass-alive.
    prefer_pass_alive_under_suicide_rules: bool
    trunk: Trunk
    policy_head: PolicyHead
    value_head: ValueHead

    @property
    def global_channels(self) -> int:
        """Number of inputs that are numbers for the whole board: the globals, and a human-SL network's metadata."""
        return GLOBAL_CHANNELS + (META_CHANNELS if self.trunk.meta_encoder is not None else 0)

    @property
    def policy_channels(self) -> int:
        """Number of policy channels in use: the ordinary policy, and the optimistic policy if there is one."""
        # Human-SL networks are played without optimism, as in KataGo (nneval.cpp).
        return 1 if self.trunk.meta_encoder is not None else min(2, self.policy_head.p2.out_channels)

    @property
    def misc_channels(self) -> int:
        return int(self.value_head.sv3_bias.bias.shape[0])


# -- layouts -----------------------------------------------------------------------------------------------------------

# Records in the order of the file: name of the field, then input and output channels. A letter stands for a number that
# its first record contains, and 3g for three times g.
ENCODER = "matmul1 i a, bias1 a, act1, matmul2 a b, bias2 b, act2, matmul3 b c"
ORDINARY = "norm1 c, act1, conv1 c m, norm2 m, act2, conv2 m c"
POOLING = "norm1 c, act1, conv_regular c r, conv_gpool c g, norm_gpool g, act_gpool, matmul 3g r, "
POOLING += "norm2 r, act2, conv2 r c"
BEFORE_BLOCKS, AFTER_BLOCKS = "norm1 c, act1, conv1 c m", "norm2 m, act2, conv2 m c"
ATTENTION = "norm c, q c q, k c k, v c v, out o c"
GATED, UNGATED = "norm c, w1 c h, gate c h, w2 h c", "norm c, w1 c h, w2 h c"
POLICY = "p1 c p, g1 c g, norm_g1 g, act_g1, matmul 3g p, norm_p1 p, act_p1, p2 p o"
PASS, OLD_PASS = "matmul_pass 3g h, bias_pass h, act_pass, matmul_pass2 h o", "matmul_pass 3g o"
NO_PASS_LAYER = {"bias_pass": None, "act_pass": None, "matmul_pass2": None}
VALUE = "v1 c v, norm_v1 v, act_v1, v2 3v h, v2_bias h, act_v2, v3 h r, v3_bias r, sv3 h s, sv3_bias s, ownership v o"


def entries(kind: type, layout: str) -> Iterator[tuple[str, str, list[tuple[int, str]]]]:
    """Yield (field, type of the record, channels as (factor, letter)) for a layout of the dataclass `kind`."""
    types = {field.name: str(field.type).removesuffix(" | None") for field in fields(kind)}
    for entry in layout.split(", "):
        name, *sizes = entry.split()
        yield name, types[name], [(int(size[:-1] or 1), size[-1]) for size in sizes]

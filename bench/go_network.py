"""Networks for Go with random weights, of KataGo's plain kind: a benchmark needs only their size."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from yomi.nets.files import write_atomically
from yomi.nets.katago.network import (
    GLOBAL_CHANNELS,
    SPATIAL_CHANNELS,
    Activation,
    BatchNorm,
    Conv,
    KataGoNetwork,
    MatBias,
    MatMul,
    OrdinaryBlock,
    OutputScales,
    PolicyHead,
    Trunk,
    ValueHead,
)
from yomi.nets.katago.onnx_export import export_onnx
from yomi.nets.katago.outputs import describe

VERSION = 8
# As in KataGo's networks of 10 blocks × 128 channels.
HEAD_CHANNELS, VALUE_WIDTH = 32, 64
RELU = Activation.RELU
SEED = 1


class _Weights:
    """Random weights that keep activations near 1."""

    def __init__(self) -> None:
        self._rng = np.random.default_rng(SEED)

    def conv(self, name: str, inputs: int, outputs: int, side: int, gain: float = 1.0) -> Conv:
        scale = gain * np.sqrt(2.0 / (inputs * side * side))
        return Conv(name, (scale * self._rng.standard_normal((outputs, inputs, side, side))).astype(np.float32))

    def norm(self, name: str, channels: int) -> BatchNorm:
        zeros, ones = np.zeros(channels, np.float32), np.ones(channels, np.float32)
        return BatchNorm(name, zeros, ones, ones, (0.1 * self._rng.standard_normal(channels)).astype(np.float32), 1e-5)

    def matmul(self, name: str, inputs: int, outputs: int) -> MatMul:
        scale = 1.0 / np.sqrt(inputs)
        return MatMul(name, (scale * self._rng.standard_normal((inputs, outputs))).astype(np.float32))

    def bias(self, name: str, width: int) -> MatBias:
        return MatBias(name, np.zeros(width, np.float32))

    def block(self, number: int, channels: int) -> OrdinaryBlock:
        name = f"block{number}"
        return OrdinaryBlock(
            name,
            self.norm(f"{name}/norm1", channels),
            RELU,
            self.conv(f"{name}/conv1", channels, channels, 3),
            self.norm(f"{name}/norm2", channels),
            RELU,
            self.conv(f"{name}/conv2", channels, channels, 3, gain=0.3),
        )


def make_go_network(blocks: int, channels: int) -> KataGoNetwork:
    """Return a network with random weights. The same shape gives the same weights."""
    w, head = _Weights(), HEAD_CHANNELS
    trunk = Trunk(
        conv=w.conv("conv1", SPATIAL_CHANNELS, channels, 5),
        matmul=w.matmul("ginputw", GLOBAL_CHANNELS, channels),
        meta_encoder=None,
        blocks=tuple(w.block(number, channels) for number in range(blocks)),
        tip_norm=w.norm("trunk/norm", channels),
        tip_act=RELU,
    )
    policy = PolicyHead(
        p1=w.conv("p1", channels, head, 1),
        g1=w.conv("g1", channels, head, 1),
        norm_g1=w.norm("g1/norm", head),
        act_g1=RELU,
        matmul=w.matmul("g1/w", 3 * head, head),
        norm_p1=w.norm("p1/norm", head),
        act_p1=RELU,
        p2=w.conv("p2", head, 1, 1),
        matmul_pass=w.matmul("pass", 3 * head, 1),
        bias_pass=None,
        act_pass=None,
        matmul_pass2=None,
    )
    value = ValueHead(
        v1=w.conv("v1", channels, head, 1),
        norm_v1=w.norm("v1/norm", head),
        act_v1=RELU,
        v2=w.matmul("v2", 3 * head, VALUE_WIDTH),
        v2_bias=w.bias("v2/bias", VALUE_WIDTH),
        act_v2=RELU,
        v3=w.matmul("v3", VALUE_WIDTH, 3),
        v3_bias=w.bias("v3/bias", 3),
        sv3=w.matmul("sv3", VALUE_WIDTH, 4),
        sv3_bias=w.bias("sv3/bias", 4),
        ownership=w.conv("ownership", head, 1, 1),
    )
    return KataGoNetwork(f"random-b{blocks}c{channels}", VERSION, OutputScales(), False, trunk, policy, value)


def write_go_network(path: Path, size: int, blocks: int, channels: int) -> Path:
    """Write a network with random weights as an ONNX file for boards of `size`, and return its path."""
    network = make_go_network(blocks, channels)
    info = describe(network, size, path.name, "0" * 64)
    write_atomically(path, export_onnx(network, size, info.to_props()).SerializeToString(deterministic=True))
    return path

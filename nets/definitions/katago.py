"""A trained Go network as a KataGo network: for KataGo's file format, or for ONNX by `nets.katago.onnx_export`."""

from __future__ import annotations

import numpy as np
from torch import nn

from nets.definitions.base import to_numpy
from nets.definitions.go import Block, GoNetwork, Norm
from nets.katago.network import (
    Activation,
    BatchNorm,
    Conv,
    GlobalPoolingBlock,
    KataGoNetwork,
    MatBias,
    MatMul,
    OrdinaryBlock,
    OutputScales,
    PolicyHead,
    Trunk,
    ValueHead,
)

_VERSIONS = {"relu": 8, "mish": 11}
"""The oldest version of the file format that has the activation."""
_ACTIVATIONS = {"relu": Activation.RELU, "mish": Activation.MISH}


def to_katago(network: GoNetwork, name: str) -> KataGoNetwork:
    """Return the network's weights as KataGo has them; batch norms with the statistics of evaluation."""
    act = _ACTIVATIONS[network.activation]
    blocks = tuple(_block(f"block{index}", block, act) for index, block in enumerate(network.blocks))
    trunk = Trunk(
        _conv("conv1", network.conv),
        _matmul("ginputw", network.globals),
        None,
        blocks,
        _norm("trunk/norm", network.tip),
        act,
    )
    policy = PolicyHead(
        _conv("p1/intermediate", network.p1),
        _conv("g1", network.g1),
        _norm("g1/norm", network.norm_g1),
        act,
        _matmul("matmulg2w", network.policy_matrix),
        _norm("p1/norm", network.norm_p1),
        act,
        _conv("p2", network.p2),
        _matmul("matmulpass", network.passing),
        None,
        None,
        None,
    )
    value = ValueHead(
        _conv("v1", network.v1),
        _norm("v1/norm", network.norm_v1),
        act,
        _matmul("v2/w", network.v2),
        _bias("v2/b", network.v2),
        act,
        _matmul("v3/w", network.v3),
        _bias("v3/b", network.v3),
        _matmul("sv3/w", network.misc),
        _bias("sv3/b", network.misc),
        _conv("vownership/w", network.ownership),
    )
    return KataGoNetwork(name, _VERSIONS[network.activation], OutputScales(), False, trunk, policy, value)


def _block(name: str, block: Block, act: Activation) -> OrdinaryBlock | GlobalPoolingBlock:
    norm1, norm2 = _norm(f"{name}/norm1", block.norm1), _norm(f"{name}/norm2", block.norm2)
    conv1, conv2 = _conv(f"{name}/w1", block.conv1), _conv(f"{name}/w2", block.conv2)
    if block.pooling is None or block.norm_pooled is None or block.matrix is None:
        return OrdinaryBlock(name, norm1, act, conv1, norm2, act, conv2)
    pooling, norm_pooled = _conv(f"{name}/w1b", block.pooling), _norm(f"{name}/norm1b", block.norm_pooled)
    matrix = _matmul(f"{name}/w1r", block.matrix)
    return GlobalPoolingBlock(name, norm1, act, conv1, pooling, norm_pooled, act, matrix, norm2, act, conv2)


def _conv(name: str, module: nn.Conv2d) -> Conv:
    return Conv(name, to_numpy(module.weight))


def _matmul(name: str, module: nn.Linear) -> MatMul:
    return MatMul(name, np.ascontiguousarray(to_numpy(module.weight).T))


def _bias(name: str, module: nn.Linear) -> MatBias:
    return MatBias(name, to_numpy(module.bias))


def _norm(name: str, module: Norm) -> BatchNorm:
    if module.norm is not None:
        batch = module.norm
        mean, variance = to_numpy(batch.running_mean), to_numpy(batch.running_var)
        return BatchNorm(name, mean, variance, to_numpy(batch.weight), to_numpy(batch.bias), batch.eps)
    assert module.bias is not None
    bias = to_numpy(module.bias)
    scale = np.ones_like(bias) if module.scale is None else to_numpy(module.scale)
    return BatchNorm(name, np.zeros_like(bias), np.ones_like(bias), scale, bias, 1e-20)

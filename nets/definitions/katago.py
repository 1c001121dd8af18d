"""A trained Go network as a KataGo network, for KataGo's file format or for ONNX by `nets.katago.onnx_export`.

And a KataGo network as one that can be trained, or taught from.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import nn

from nets.definitions.base import to_numpy
from nets.definitions.go import MISC, Block, GoNetwork, Norm
from nets.errors import NetworkError
from nets.katago.network import (
    Activation,
    BatchNorm,
    Conv,
    FloatArray,
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


def from_katago(source: KataGoNetwork) -> GoNetwork:
    """Return a network of the same shape and weights, its norms folded: it computes the same.

    Raises:
        NetworkError: it has parts that `GoNetwork` has not.
    """
    trunk, policy, value = source.trunk, source.policy_head, source.value_head
    activation = {act: name for name, act in _ACTIVATIONS.items()}.get(trunk.tip_act)
    blocks = [block for block in trunk.blocks if isinstance(block, OrdinaryBlock | GlobalPoolingBlock)]
    pooling = [index for index, block in enumerate(blocks) if isinstance(block, GlobalPoolingBlock)]
    pooled = {block.conv_gpool.out_channels for block in blocks if isinstance(block, GlobalPoolingBlock)}
    used = {trunk.tip_act, policy.act_g1, policy.act_p1, value.act_v1, value.act_v2}
    for block in blocks:
        used |= {block.act1, block.act2} | ({block.act_gpool} if isinstance(block, GlobalPoolingBlock) else set())
    ordinary = (
        len(blocks) == len(trunk.blocks)
        and len(used) == 1
        and source.scales == OutputScales()
        and isinstance(trunk.tip_norm, BatchNorm)
        and trunk.meta_encoder is None
        and policy.matmul_pass2 is None
        and policy.p2.out_channels == 1
    )
    if not ordinary or activation is None or len(pooled) > 1 or value.sv3.weights.shape[1] != MISC[activation]:
        raise NetworkError(
            f"{source.name}: expected a network of ordinary and global pooling blocks alone, with one activation, "
            "one policy and the usual scales of outputs, as KataGo's b6c96 to b40c256 are"
        )
    assert isinstance(trunk.tip_norm, BatchNorm)
    network = GoNetwork(
        blocks=len(blocks),
        channels=trunk.channels,
        pooled=pooled.pop() if pooled else 1,
        pooling_blocks=pooling,
        head=policy.p1.out_channels,
        hidden=value.v2.weights.shape[1],
        kernel=trunk.conv.weights.shape[-1],
        activation=activation,
        norm="affine",
    )
    _load(network.conv, trunk.conv)
    _load(network.globals, trunk.matmul)
    for module, block in zip(network.blocks, blocks, strict=True):
        assert isinstance(module, Block)
        _load_block(module, block)
    _load_norm(network.tip, trunk.tip_norm)
    for layer, weights in (
        (network.p1, policy.p1),
        (network.g1, policy.g1),
        (network.policy_matrix, policy.matmul),
        (network.p2, policy.p2),
        (network.passing, policy.matmul_pass),
        (network.v1, value.v1),
        (network.v2, value.v2),
        (network.v3, value.v3),
        (network.misc, value.sv3),
        (network.ownership, value.ownership),
    ):
        _load(layer, weights)
    for dense, bias in ((network.v2, value.v2_bias), (network.v3, value.v3_bias), (network.misc, value.sv3_bias)):
        _fill(dense.bias, bias.bias)
    for norm, folded in (
        (network.norm_g1, policy.norm_g1),
        (network.norm_p1, policy.norm_p1),
        (network.norm_v1, value.norm_v1),
    ):
        _load_norm(norm, folded)
    return network


def _load_block(module: Block, block: OrdinaryBlock | GlobalPoolingBlock) -> None:
    _load_norm(module.norm1, block.norm1)
    _load_norm(module.norm2, block.norm2)
    _load(module.conv2, block.conv2)
    if isinstance(block, OrdinaryBlock):
        _load(module.conv1, block.conv1)
        return
    assert module.pooling is not None
    assert module.norm_pooled is not None
    assert module.matrix is not None
    _load(module.conv1, block.conv_regular)
    _load(module.pooling, block.conv_gpool)
    _load(module.matrix, block.matmul)
    _load_norm(module.norm_pooled, block.norm_gpool)


def _load(module: nn.Conv2d | nn.Linear, source: Conv | MatMul) -> None:
    _fill(module.weight, source.weights if isinstance(source, Conv) else source.weights.T)


def _load_norm(module: Norm, source: BatchNorm) -> None:
    assert module.scale is not None
    assert module.bias is not None
    scale, bias = source.folded()
    _fill(module.scale, scale)
    _fill(module.bias, bias)


def _fill(parameter: nn.Parameter, values: FloatArray) -> None:
    assert parameter.shape == values.shape
    with torch.no_grad():
        parameter.copy_(torch.tensor(values))


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

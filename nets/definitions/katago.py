"""Convert a trained Go network to a KataGo network, for KataGo's file format or ONNX, and back for further training."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from yomi.nets.definitions.base import to_numpy
from yomi.nets.definitions.blocks import Attention, Bottleneck, FeedForward, Norm, Residual, RmsNorm, RmsTip
from yomi.nets.definitions.go import SHORT_ERRORS, VERSIONS, GoNetwork
from yomi.nets.errors import NetworkError
from yomi.nets.katago import network as katago
from yomi.nets.katago.network import (
    Activation,
    AttentionBlock,
    BatchNorm,
    BottleneckBlock,
    Conv,
    FeedForwardBlock,
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

_ACTIVATIONS = {"relu": Activation.RELU, "mish": Activation.MISH, "silu": Activation.SILU}
# First version with a second policy, KataGo's optimistic one.
_TWO_POLICIES = 12
_TAUGHT_SCALES = ("score_mean", "score_stdev", "lead")


def to_katago(network: GoNetwork, name: str) -> KataGoNetwork:
    """Return the network's weights in KataGo's form."""
    act = _ACTIVATIONS[network.activation]
    blocks = tuple(_block(f"block{index}", block, act) for index, block in enumerate(network.blocks))
    tip = network.tip
    trunk = Trunk(
        _conv("conv1", network.conv),
        _matmul("ginputw", network.globals),
        None,
        blocks,
        _rms("trunk/norm", tip.rms, tip.bias) if isinstance(tip, RmsTip) else _norm("trunk/norm", tip),
        act,
    )
    # From this version on there is an optimistic policy, too. Both get the network's only one.
    policies = 1 if network.version < _TWO_POLICIES else 2
    board = np.repeat(to_numpy(network.p2.weight), policies, axis=0)
    last = np.repeat(to_numpy(network.passing.weight).T, policies, axis=1)
    first = network.passing_first
    policy = PolicyHead(
        _conv("p1/intermediate", network.p1),
        _conv("g1", network.g1),
        _norm("g1/norm", network.norm_g1),
        act,
        _matmul("matmulg2w", network.policy_matrix),
        _norm("p1/norm", network.norm_p1),
        act,
        Conv("p2", board),
        MatMul("matmulpass", last) if first is None else _matmul("matmulpass", first),
        None if first is None else _bias("biaspass", first),
        None if first is None else act,
        None if first is None else MatMul("matmulpass2", last),
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
    return KataGoNetwork(name, network.version, network.scales, False, trunk, policy, value)


def from_katago(source: KataGoNetwork) -> GoNetwork:
    """Return a network of the same shape and weights with folded norms. It computes the same outputs.

    Raises:
        NetworkError: a part is unknown to `GoNetwork`.
    """
    trunk, policy, value = source.trunk, source.policy_head, source.value_head
    activation = {act: name for name, act in _ACTIVATIONS.items()}.get(trunk.tip_act)
    usual = OutputScales()
    possible = (
        activation is not None
        and _activations(trunk.blocks) | _activations((policy, value)) <= {trunk.tip_act}
        and source.version in VERSIONS
        and all(getattr(source.scales, name) == getattr(usual, name) for name in _TAUGHT_SCALES)
        and trunk.meta_encoder is None
        and not source.prefer_pass_alive_under_suicide_rules
        and policy.p1.out_channels == policy.g1.out_channels
    )
    if not possible:
        raise NetworkError(
            f"{source.name}: expected a network with one activation, the usual scales of scores and no human-SL "
            f"inputs, in a file of version {', '.join(map(str, VERSIONS))}"
        )
    assert activation is not None
    tip = "norm" if isinstance(trunk.tip_norm, BatchNorm) else "spatial-rms" if trunk.tip_norm.spatial else "rms"
    network = GoNetwork(
        channels=trunk.channels,
        trunk=[_description(block) for block in trunk.blocks],
        head=policy.p1.out_channels,
        value_head=value.v1.out_channels,
        hidden=value.v2.weights.shape[1],
        kernel=trunk.conv.weights.shape[-1],
        activation=activation,
        norm="affine",
        tip=tip,
        version=source.version,
        short_errors=source.version >= SHORT_ERRORS,
    )
    network.scales = source.scales
    # KataGo's training taught all misc outputs: they stay as they are.
    network.holds_untaught = False
    first, last = network.passing_first, policy.matmul_pass
    if first is not None:
        assert policy.bias_pass is not None
        assert policy.matmul_pass2 is not None
        _load_parts(first, policy.matmul_pass)
        _fill(first.bias, policy.bias_pass.bias)
        last = policy.matmul_pass2
    for module, part in (
        (network.conv, trunk.conv),
        (network.globals, trunk.matmul),
        (network.tip, trunk.tip_norm),
        (network.p1, policy.p1),
        (network.g1, policy.g1),
        (network.norm_g1, policy.norm_g1),
        (network.policy_matrix, policy.matmul),
        (network.norm_p1, policy.norm_p1),
        # Of several policies the first, ordinary one.
        (network.p2, Conv(policy.p2.name, policy.p2.weights[:1])),
        (network.passing, MatMul(last.name, last.weights[:, :1])),
        (network.v1, value.v1),
        (network.norm_v1, value.norm_v1),
        (network.v2, value.v2),
        (network.v3, value.v3),
        (network.misc, value.sv3),
        (network.ownership, value.ownership),
        *zip(network.blocks, trunk.blocks, strict=True),
    ):
        _load_parts(module, part)
    for dense, bias in ((network.v2, value.v2_bias), (network.v3, value.v3_bias), (network.misc, value.sv3_bias)):
        _fill(dense.bias, bias.bias)
    return network


def _activations(parts: Sequence[object]) -> set[Activation]:
    found: set[Activation] = set()
    for part in parts:
        found |= {value for value in vars(part).values() if isinstance(value, Activation)}
        if isinstance(part, BottleneckBlock):
            found |= _activations(part.blocks)
    return found


def _description(block: katago.Block) -> dict[str, Any]:
    if isinstance(block, OrdinaryBlock):
        return {"kind": "residual", "middle": block.conv1.out_channels}
    if isinstance(block, GlobalPoolingBlock):
        regular, pooled = block.conv_regular.out_channels, block.conv_gpool.out_channels
        return {"kind": "residual", "middle": regular, "pooled": pooled}
    if isinstance(block, BottleneckBlock):
        inner = [_description(each) for each in block.blocks]
        return {"kind": "bottleneck", "middle": block.conv1.out_channels, "inner": inner}
    if isinstance(block, AttentionBlock):
        sizes = {name: getattr(block, name) for name in ("heads", "kv_heads", "q_dim", "v_dim")}
        return {"kind": "attention", **sizes, "rope": "none" if block.rope is None else "learned"}
    return {"kind": "ffn", "hidden": block.w1.weights.shape[1], "gated": block.gate is not None}


# KataGo's names of parts of a pooling block, for our names.
_POOLING_PARTS = {"conv1": "conv_regular", "pooling": "conv_gpool", "matrix": "matmul", "norm_pooled": "norm_gpool"}


def _load_parts(module: Any, part: Any) -> None:
    """Copy the weights of a record, or of all records of a block, into the corresponding module."""
    if isinstance(part, Conv):
        _fill(module.weight, part.weights)
    elif isinstance(part, MatMul):
        _fill(module.weight, part.weights.T)
    elif isinstance(part, BatchNorm):
        for parameter, values in zip((module.scale, module.bias), part.folded(), strict=True):
            _fill(parameter, values)
    elif isinstance(part, katago.RmsNorm):
        rms = module.rms if isinstance(module, RmsTip) else module
        _fill(rms.gamma, part.gamma)
        rms.epsilon = part.epsilon
        if isinstance(module, RmsTip):
            _fill(module.bias, part.beta)
    else:
        names = _POOLING_PARTS if isinstance(part, GlobalPoolingBlock) else {}
        for name, child in module.named_children():
            record = getattr(part, names.get(name, name))
            for pair in zip(child, record, strict=True) if isinstance(child, nn.ModuleList) else [(child, record)]:
                _load_parts(*pair)
        if isinstance(part, AttentionBlock) and part.rope is not None:
            _fill(module.rope, part.rope.ravel())


def _fill(parameter: Tensor, values: FloatArray) -> None:
    if parameter.shape != values.shape:
        raise NetworkError(f"weights {values.shape} found, expected {tuple(parameter.shape)}")
    with torch.no_grad():
        parameter.copy_(torch.tensor(values))


def _block(name: str, block: nn.Module, act: Activation) -> katago.Block:
    if isinstance(block, Attention):
        query, key, value, out = (_matmul(f"{name}/{part}", getattr(block, part)) for part in ("q", "k", "v", "out"))
        rope = None if block.rope is None else to_numpy(block.rope).reshape(block.kv_heads, -1, 2)
        sizes = block.heads, block.kv_heads, block.q_dim, block.v_dim
        return AttentionBlock(name, *sizes, _rms(f"{name}/norm", block.norm), query, key, value, out, rope)
    if isinstance(block, FeedForward):
        gate = None if block.gate is None else _matmul(f"{name}/gate", block.gate)
        w1, w2 = _matmul(f"{name}/w1", block.w1), _matmul(f"{name}/w2", block.w2)
        return FeedForwardBlock(name, _rms(f"{name}/norm", block.norm), w1, gate, w2)
    assert isinstance(block, Residual | Bottleneck)
    norm1, norm2 = _norm(f"{name}/norm1", block.norm1), _norm(f"{name}/norm2", block.norm2)
    conv1, conv2 = _conv(f"{name}/w1", block.conv1), _conv(f"{name}/w2", block.conv2)
    if isinstance(block, Bottleneck):
        inner = tuple(_block(f"{name}/block{index}", each, act) for index, each in enumerate(block.blocks))
        return BottleneckBlock(name, norm1, act, conv1, inner, norm2, act, conv2)
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


def _rms(name: str, module: RmsNorm, beta: Tensor | None = None) -> katago.RmsNorm:
    gamma = to_numpy(module.gamma)
    shift = np.zeros_like(gamma) if beta is None else to_numpy(beta)
    return katago.RmsNorm(name, gamma, shift, module.epsilon, module.spatial)


def _norm(name: str, module: Norm) -> BatchNorm:
    if module.norm is not None:
        # The statistics of evaluation, not of the last batch.
        batch = module.norm
        mean, variance = to_numpy(batch.running_mean), to_numpy(batch.running_var)
        return BatchNorm(name, mean, variance, to_numpy(batch.weight), to_numpy(batch.bias), batch.eps)
    assert module.bias is not None
    bias = to_numpy(module.bias)
    scale = np.ones_like(bias) if module.scale is None else to_numpy(module.scale)
    return BatchNorm(name, np.zeros_like(bias), np.ones_like(bias), scale, bias, 1e-20)

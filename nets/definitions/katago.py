"""Converts a trained Go network to a KataGo network, for KataGo's format or ONNX, and back for further training."""

import dataclasses
from collections.abc import Sequence
from operator import attrgetter
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from yomi.nets.definitions.base import to_numpy
from yomi.nets.definitions.blocks import Attention, Bottleneck, FeedForward, Norm, Residual, RmsTip
from yomi.nets.definitions.go import SHORT_ERRORS, VERSIONS, GoNetwork
from yomi.nets.errors import NetworkError
from yomi.nets.katago import network as katago
from yomi.nets.katago.network import FloatArray

_ACTIVATIONS = {"relu": katago.Activation.RELU, "mish": katago.Activation.MISH, "silu": katago.Activation.SILU}
# First version with a second policy, KataGo's optimistic one.
_TWO_POLICIES = 12
_TAUGHT_SCALES = ("score_mean", "score_stdev", "lead")


# The parts of a KataGo network that one module of a GoNetwork computes: owner, field, module, name in the file.
_PARTS = (
    ("trunk", "conv", "conv", "conv1"),
    ("trunk", "matmul", "globals", "ginputw"),
    ("trunk", "tip_norm", "tip", "trunk/norm"),
    ("policy_head", "p1", "p1", "p1/intermediate"),
    ("policy_head", "g1", "g1", "g1"),
    ("policy_head", "norm_g1", "norm_g1", "g1/norm"),
    ("policy_head", "matmul", "policy_matrix", "matmulg2w"),
    ("policy_head", "norm_p1", "norm_p1", "p1/norm"),
    ("value_head", "v1", "v1", "v1"),
    ("value_head", "norm_v1", "norm_v1", "v1/norm"),
    ("value_head", "v2", "v2", "v2/w"),
    ("value_head", "v2_bias", "v2.bias", "v2/b"),
    ("value_head", "v3", "v3", "v3/w"),
    ("value_head", "v3_bias", "v3.bias", "v3/b"),
    ("value_head", "sv3", "misc", "sv3/w"),
    ("value_head", "sv3_bias", "misc.bias", "sv3/b"),
    ("value_head", "ownership", "ownership", "vownership/w"),
)


def to_katago(network: GoNetwork, name: str) -> katago.KataGoNetwork:
    """Return the weights of a network as a KataGo network called `name`."""
    act = _ACTIVATIONS[network.activation]
    parts: dict[str, dict[str, Any]] = {"trunk": {}, "policy_head": {}, "value_head": {}}
    for owner, field, module, title in _PARTS:
        parts[owner][field] = _record(title, attrgetter(module)(network))
    blocks = tuple(_block(f"block{index}", block, act) for index, block in enumerate(network.blocks))
    trunk = katago.Trunk(meta_encoder=None, blocks=blocks, tip_act=act, **parts["trunk"])
    # From this version on there is an optimistic policy, too. Both get the network's only one.
    policies = 1 if network.version < _TWO_POLICIES else 2
    board = np.repeat(to_numpy(network.p2.weight), policies, axis=0)
    last = np.repeat(to_numpy(network.passing.weight).T, policies, axis=1)
    passing: dict[str, Any] = dict.fromkeys(("bias_pass", "act_pass", "matmul_pass2"))
    passing["matmul_pass"] = katago.MatMul("matmulpass", last)
    if (first := network.passing_first) is not None:
        passing = {
            "matmul_pass": _record("matmulpass", first),
            "bias_pass": _record("biaspass", first.bias),
            "act_pass": act,
            "matmul_pass2": katago.MatMul("matmulpass2", last),
        }
    policy = katago.PolicyHead(act_g1=act, act_p1=act, p2=katago.Conv("p2", board), **passing, **parts["policy_head"])
    value = katago.ValueHead(act_v1=act, act_v2=act, **parts["value_head"])
    return katago.KataGoNetwork(name, network.version, network.scales, False, trunk, policy, value)


def from_katago(source: katago.KataGoNetwork) -> GoNetwork:
    """Return a GoNetwork with the same shape, weights and outputs. Its norms are folded.

    Raises:
        NetworkError: a part is unknown to `GoNetwork`.
    """
    trunk, policy, value = source.trunk, source.policy_head, source.value_head
    activation = {act: name for name, act in _ACTIVATIONS.items()}.get(trunk.tip_act)
    usual = katago.OutputScales()
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
    tip = "norm" if isinstance(trunk.tip_norm, katago.BatchNorm) else "spatial-rms" if trunk.tip_norm.spatial else "rms"
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
    for owner, field, module, _ in _PARTS:
        _load_parts(attrgetter(module)(network), getattr(getattr(source, owner), field))
    for made, block in zip(network.blocks, trunk.blocks, strict=True):
        _load_parts(made, block)
    first, last = network.passing_first, policy.matmul_pass
    if first is not None:
        assert policy.matmul_pass2 is not None
        _load_parts(first, policy.matmul_pass)
        _load_parts(first.bias, policy.bias_pass)
        last = policy.matmul_pass2
    # Of several policies the first, ordinary one.
    _fill(network.p2.weight, policy.p2.weights[:1])
    _fill(network.passing.weight, last.weights[:, :1].T)
    return network


def _activations(parts: Sequence[object]) -> set[katago.Activation]:
    found: set[katago.Activation] = set()
    for part in parts:
        found |= {value for value in vars(part).values() if isinstance(value, katago.Activation)}
        if isinstance(part, katago.BottleneckBlock):
            found |= _activations(part.blocks)
    return found


def _description(block: katago.Block) -> dict[str, Any]:
    if isinstance(block, katago.OrdinaryBlock):
        return {"kind": "residual", "middle": block.conv1.out_channels}
    if isinstance(block, katago.GlobalPoolingBlock):
        regular, pooled = block.conv_regular.out_channels, block.conv_gpool.out_channels
        return {"kind": "residual", "middle": regular, "pooled": pooled}
    if isinstance(block, katago.BottleneckBlock):
        inner = [_description(each) for each in block.blocks]
        return {"kind": "bottleneck", "middle": block.conv1.out_channels, "inner": inner}
    if isinstance(block, katago.AttentionBlock):
        sizes = {name: getattr(block, name) for name in ("heads", "kv_heads", "q_dim", "v_dim")}
        return {"kind": "attention", **sizes, "rope": "none" if block.rope is None else "learned"}
    return {"kind": "ffn", "hidden": block.w1.weights.shape[1], "gated": block.gate is not None}


# KataGo's names of parts of a pooling block, for our names.
_POOLING_PARTS = {"conv1": "conv_regular", "pooling": "conv_gpool", "matrix": "matmul", "norm_pooled": "norm_gpool"}


def _load_parts(module: Any, part: Any) -> None:
    """Copy the weights of a record, or of all records of a block, into the corresponding module."""
    if isinstance(part, katago.MatBias):
        _fill(module, part.bias)
    elif isinstance(part, katago.Conv):
        _fill(module.weight, part.weights)
    elif isinstance(part, katago.MatMul):
        _fill(module.weight, part.weights.T)
    elif isinstance(part, katago.BatchNorm):
        for parameter, values in zip((module.scale, module.bias), part.folded(), strict=True):
            _fill(parameter, values)
    elif isinstance(part, katago.RmsNorm):
        rms = module.rms if isinstance(module, RmsTip) else module
        _fill(rms.gamma, part.gamma)
        rms.epsilon = part.epsilon
        if isinstance(module, RmsTip):
            _fill(module.bias, part.beta)
    else:
        names = _POOLING_PARTS if isinstance(part, katago.GlobalPoolingBlock) else {}
        for name, child in module.named_children():
            record = getattr(part, names.get(name, name))
            for pair in zip(child, record, strict=True) if isinstance(child, nn.ModuleList) else [(child, record)]:
                _load_parts(*pair)
        if isinstance(part, katago.AttentionBlock) and part.rope is not None:
            _fill(module.rope, part.rope.ravel())


def _fill(parameter: Tensor, values: FloatArray) -> None:
    if parameter.shape != values.shape:
        raise NetworkError(f"weights {values.shape} found, expected {tuple(parameter.shape)}")
    with torch.no_grad():
        parameter.copy_(torch.tensor(values))


# Names of records in the file that differ from ours.
_FILE_NAMES = {"conv1": "w1", "conv2": "w2", "pooling": "w1b", "norm_pooled": "norm1b", "matrix": "w1r"}


def _block(name: str, block: nn.Module, act: katago.Activation) -> katago.Block:
    kind: type[katago.Block] = katago.OrdinaryBlock
    if isinstance(block, Attention):
        kind = katago.AttentionBlock
    elif isinstance(block, FeedForward):
        kind = katago.FeedForwardBlock
    elif isinstance(block, Bottleneck):
        kind = katago.BottleneckBlock
    elif isinstance(block, Residual) and block.pooling is not None:
        kind = katago.GlobalPoolingBlock
    ours = {theirs: own for own, theirs in _POOLING_PARTS.items()} if kind is katago.GlobalPoolingBlock else {}
    values: dict[str, Any] = {"name": name}
    for field in dataclasses.fields(kind)[1:]:
        own = ours.get(field.name, field.name)
        part = act if own.startswith("act") else getattr(block, own)
        if isinstance(part, nn.ModuleList):
            part = tuple(_block(f"{name}/block{index}", each, act) for index, each in enumerate(part))
        elif isinstance(part, nn.Module):
            part = _record(f"{name}/{own if isinstance(block, FeedForward) else _FILE_NAMES.get(own, own)}", part)
        elif isinstance(part, Tensor):  # rotary positions
            part = to_numpy(part).reshape(values["kv_heads"], -1, 2)
        values[field.name] = part
    return kind(**values)


def _record(name: str, module: Any) -> Any:
    """Return the weights of a module, or a bias, as a record of KataGo's format."""
    if isinstance(module, Tensor):
        return katago.MatBias(name, to_numpy(module))
    if isinstance(module, nn.Conv2d):
        return katago.Conv(name, to_numpy(module.weight))
    if isinstance(module, nn.Linear):
        return katago.MatMul(name, np.ascontiguousarray(to_numpy(module.weight).T))
    if isinstance(module, Norm):
        return _norm(name, module)
    rms = module.rms if isinstance(module, RmsTip) else module
    gamma = to_numpy(rms.gamma)
    beta = to_numpy(module.bias) if isinstance(module, RmsTip) else np.zeros_like(gamma)
    return katago.RmsNorm(name, gamma, beta, rms.epsilon, rms.spatial)


def _norm(name: str, module: Norm) -> katago.BatchNorm:
    if module.norm is not None:
        # The statistics of evaluation, not of the last batch.
        batch = module.norm
        mean, variance = to_numpy(batch.running_mean), to_numpy(batch.running_var)
        return katago.BatchNorm(name, mean, variance, to_numpy(batch.weight), to_numpy(batch.bias), batch.eps)
    assert module.bias is not None
    bias = to_numpy(module.bias)
    scale = np.ones_like(bias) if module.scale is None else to_numpy(module.scale)
    return katago.BatchNorm(name, np.zeros_like(bias), np.ones_like(bias), scale, bias, 1e-20)

"""Writes KataGo network files in all versions that `yomi.nets.katago.file` reads, and compresses them.

`_Writer` mirrors the reader record by record.
"""

import dataclasses
import lzma
import math
from dataclasses import fields
from typing import Any

import numpy as np
import numpy.typing as npt

from yomi.nets.katago import network as katago
from yomi.nets.katago.network import FloatArray

_KINDS = {
    katago.OrdinaryBlock: "ordinary_block",
    katago.GlobalPoolingBlock: "gpool_block",
    katago.BottleneckBlock: "nested_bottleneck_block",
    katago.AttentionBlock: "transformer_attention_block",
    katago.FeedForwardBlock: "transformer_ffn_block",
}


def write_network(network: katago.KataGoNetwork) -> bytes:
    """Return a network as the content of a file. RoPE of attention blocks is written as learnable."""
    return _Writer(network.version).network(network)


class _Writer:
    def __init__(self, version: int) -> None:
        self._version = version
        self._out = bytearray()

    def _tokens(self, *tokens: object) -> None:
        for token in tokens:
            value = int(token) if isinstance(token, bool) else token
            self._out += f"{value}\n".encode()

    def _floats(self, array: npt.NDArray[np.float32]) -> None:
        flat = np.ascontiguousarray(array, dtype="<f4").ravel()
        self._out += b"@BIN@" + flat.tobytes() + b"\n"

    def _record(self, record: object) -> None:
        if isinstance(record, katago.Conv):
            out, in_, ky, kx = record.weights.shape
            self._tokens(record.name, ky, kx, in_, out, 1, 1)
            self._floats(record.weights.transpose(2, 3, 1, 0))
        elif isinstance(record, katago.BatchNorm):
            has_scale, has_bias = bool((record.scale != 1).any()), bool((record.bias != 0).any())
            self._tokens(record.name, record.mean.size, record.epsilon, has_scale, has_bias)
            self._floats(record.mean)
            self._floats(record.variance)
            if has_scale:
                self._floats(record.scale)
            if has_bias:
                self._floats(record.bias)
        elif isinstance(record, katago.MatMul):
            self._tokens(record.name, *record.weights.shape)
            self._floats(record.weights)
        elif isinstance(record, katago.MatBias):
            self._tokens(record.name, record.bias.size)
            self._floats(record.bias)
        elif isinstance(record, katago.Activation):
            self._tokens("act")
            if self._version >= 11:
                self._tokens(record.value)
        elif isinstance(record, katago.RmsNorm):  # of a transformer block, without further fields
            self._tokens(record.name, record.gamma.size, record.epsilon)
            self._floats(record.gamma)
        else:
            raise TypeError(type(record))

    def _records(self, *records: object) -> None:
        for record in records:
            self._record(record)

    def _part(self, part: Any) -> None:
        """Write the records of a part of the network. Its fields are in the order of the file; None is not in it."""
        records = (getattr(part, item.name) for item in fields(part) if item.name != "name")
        self._records(*(record for record in records if record is not None))

    def network(self, network: katago.KataGoNetwork) -> bytes:
        trunk = network.trunk
        self._tokens(network.name, network.version, 22, 19)
        if self._version >= 13:
            self._tokens(*(getattr(network.scales, item.name) for item in fields(katago.OutputScales)))
        if self._version >= 15:
            self._tokens(trunk.meta_encoder is not None, network.prefer_pass_alive_under_suicide_rules, *[0] * 6)
        self._tokens("trunk", len(trunk.blocks), trunk.channels, *_widths(trunk.blocks, trunk.channels))
        if self._version >= 15:
            self._tokens(isinstance(trunk.tip_norm, katago.RmsNorm), *[0] * 5)
        self._records(trunk.conv, trunk.matmul)
        if trunk.meta_encoder is not None:
            self._tokens("encoder", katago.META_CHANNELS)
            self._part(trunk.meta_encoder)
        self._blocks(trunk.blocks)
        if isinstance(trunk.tip_norm, katago.RmsNorm):
            norm = trunk.tip_norm
            self._tokens(norm.name, norm.gamma.size, norm.epsilon, norm.spatial, 0)
            self._floats(norm.gamma)
            self._floats(norm.beta)
        else:
            self._record(trunk.tip_norm)
        self._record(trunk.tip_act)
        self._tokens("policyhead")
        if self._version >= 17:
            self._tokens(network.policy_head.p2.out_channels, 0, 0, 0)
        self._part(network.policy_head)
        self._tokens("valuehead")
        if self._version >= 17:
            self._tokens(0, 0, 0)
        self._part(network.value_head)
        return bytes(self._out)

    def _blocks(self, blocks: tuple[katago.Block, ...]) -> None:
        for block in blocks:
            self._tokens(_KINDS[type(block)], block.name)
            if isinstance(block, katago.AttentionBlock):
                self._attention(block)
            elif isinstance(block, katago.FeedForwardBlock):
                self._tokens(*block.w1.weights.shape, block.gate is not None)
                self._part(block)
            elif isinstance(block, katago.BottleneckBlock):
                self._tokens(len(block.blocks))
                self._records(block.norm1, block.act1, block.conv1)
                self._blocks(block.blocks)
                self._records(block.norm2, block.act2, block.conv2)
            else:
                self._part(block)

    def _attention(self, block: katago.AttentionBlock) -> None:
        has_rope = is_learnable = block.rope is not None
        self._tokens(block.heads, block.kv_heads, block.q_dim, block.v_dim, has_rope, is_learnable)
        self._records(block.norm, block.q, block.k, block.v, block.out)
        if block.rope is not None:
            self._tokens("rope", *block.rope.shape)
            self._floats(block.rope)


def _widths(blocks: tuple[katago.Block, ...], channels: int) -> tuple[int, int, int, int]:
    """Return the numbers of channels for the trunk's header: mid, regular, dilated and pooled."""
    middle = next((block.conv1.out_channels for block in blocks if isinstance(block, katago.OrdinaryBlock)), channels)
    pooling = next((block for block in blocks if isinstance(block, katago.GlobalPoolingBlock)), None)
    if pooling is None:
        return middle, middle, middle, middle
    regular, pooled = pooling.conv_regular.out_channels, pooling.conv_gpool.out_channels
    return middle, regular, pooled, pooled


# Root mean square of a layer's weights, in steps, within a factor of the square root of two.
STEPS = 40
_FILTERS = [{"id": lzma.FILTER_LZMA2, "preset": 6, "lc": 0, "lp": 2, "pb": 2, "dict_size": 1 << 20}]


def compress(network: katago.KataGoNetwork) -> bytes:
    """Return a network as the content of a `.bin.xz` file, a third as large, because block weights are rounded."""
    # Each layer has a step, a power of two, and its weights become multiples of it. So the lower bits of the floats are
    # zero, and the upper bits take few values. xz, configured for four-byte numbers, then needs little more than the
    # weights' entropy.
    #
    # The parts before and after the blocks have few weights. Rounding those would cost more accuracy than all others.
    rounded = dataclasses.replace(
        network, trunk=dataclasses.replace(network.trunk, blocks=_rounded(network.trunk.blocks))
    )
    return lzma.compress(write_network(rounded), lzma.FORMAT_XZ, filters=_FILTERS)


def _rounded(part: Any) -> Any:
    if isinstance(part, katago.Conv):
        return dataclasses.replace(part, weights=round_weights(part.weights))
    if isinstance(part, katago.MatMul):
        return dataclasses.replace(part, weights=round_weights(part.weights.T).T)
    if dataclasses.is_dataclass(part) and not isinstance(part, type):
        names = [each.name for each in dataclasses.fields(part)]
        return dataclasses.replace(part, **{name: _rounded(getattr(part, name)) for name in names})
    return tuple(map(_rounded, part)) if isinstance(part, tuple) else part


def round_weights(weights: FloatArray) -> FloatArray:
    """Round the weights of a layer, [out, ...], to multiples of a power of two.

    The sum of each channel's weights stays the same within one step.
    """
    rows = weights.reshape(len(weights), -1).astype(np.float64)
    size = max(float(np.sqrt(np.square(rows).mean())), float(np.finfo(np.float32).tiny))
    step = 2.0 ** round(math.log2(size / STEPS))
    exact = rows / step
    whole = np.round(exact)
    # Inputs are seldom negative, so errors of one sign would shift the output at every point. The weights nearest to
    # the middle between two multiples are rounded the other way to keep the sum.
    for row, missing in zip(whole, exact - whole, strict=True):
        count = round(float(missing.sum()))
        row[np.argsort(-np.sign(count) * missing)[: abs(count)]] += np.sign(count)
    return np.asarray(whole * step, dtype=np.float32).reshape(weights.shape)

"""KataGo network to ONNX, for one exact board size, shaped for onnxruntime's blocked (NCHWc) layout.

What makes the graph fast, each exact up to rounding:

* A norm behind a convolution is folded into its weights and bias.
* A norm at the start of a block works on the residual stream. Where its scale is 1 (or positive before a ReLU, which
  lets it through into the next convolution), only a bias is left, and the stream is carried with that bias already
  added: each block's last convolution adds the difference to the next block's. The stream then needs no operator but
  the sum, which onnxruntime fuses into the convolution.
* The board is exact, so the means of a global pooling that are scaled by the board's size are folded into the matrix.
* What is broadcast over the board goes through Resize, which unlike a broadcasting Add exists in the blocked layout,
  and so becomes part of a convolution's fused sum.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import onnx

from yomi.nets.graph_builder import GraphBuilder
from yomi.nets.katago import onnx_transformer
from yomi.nets.katago.network import (
    GLOBAL_CHANNELS,
    META_CHANNELS,
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
    MetaEncoder,
    OrdinaryBlock,
    PolicyHead,
    RmsNorm,
    ValueHead,
    size_offset,
)

MIN_BOARD_SIZE = 2
MAX_BOARD_SIZE = 37

# Below this a positive scale is not moved through a ReLU: dividing by it would cost accuracy.
_MIN_MOVABLE_SCALE = 1e-2
# onnxruntime takes a convolution into the blocked layout only if its input channels are a multiple of this.
_CHANNEL_MULTIPLE = 4


def export_onnx(
    network: KataGoNetwork,
    board_size: int,
    metadata: dict[str, str] | None = None,
    meta_input: bool = False,
) -> onnx.ModelProto:
    """Build the ONNX model of a network for square boards of exactly `board_size`.

    Inputs: `spatial` [B, 22, N, N], `global` [B, 19], and `meta` [B, 192] if asked for and the network has the
    encoder. Outputs, all raw and for the side to move: `policy` [B, 1 or 2, N * N + 1] logits with pass last (the
    channels that `KataGoNetwork.policy_channels` counts), `value` [B, 3] logits (win, loss, no result), `misc`
    [B, 4 or 6], `ownership` [B, N * N] before tanh. `yomi.nets.katago.outputs` turns them into numbers.

    Args:
        network: the parsed file.
        board_size: N.
        metadata: written into the model as metadata_props.
        meta_input: whether a human-SL network gets its `meta` input; without it, it sees zeros (all unknown).

    Raises:
        ValueError: `board_size` is out of range.
    """
    if not MIN_BOARD_SIZE <= board_size <= MAX_BOARD_SIZE:
        raise ValueError(f"board size {board_size} found, expected {MIN_BOARD_SIZE} to {MAX_BOARD_SIZE}")
    return _Exporter(network, board_size, meta_input).export(metadata or {})


@dataclass(frozen=True)
class _Stream:
    """The residual stream: tensor = stream value + offset, as a map [B, C, N, N] or as points [B, N * N, C]."""

    tensor: str
    offset: FloatArray
    """[C]"""
    is_map: bool = True


def _is_one(scale: FloatArray) -> bool:
    return bool((scale == 1.0).all())


def _is_movable(scale: FloatArray, activation: Activation) -> bool:
    """Whether activation(x * scale) equals scale * activation(x), so that the scale can go into the next layer."""
    return activation in (Activation.RELU, Activation.IDENTITY) and bool((scale > _MIN_MOVABLE_SCALE).all())


def _wanted_offset(block: Block, channels: int) -> FloatArray | None:
    """Return the offset of the stream with which a block needs no norm of its own, or None if there is none."""
    if isinstance(block, AttentionBlock | FeedForwardBlock):
        return np.zeros(channels, np.float32)
    return _norm_offset(block.norm1, block.act1)


def _norm_offset(norm: BatchNorm, activation: Activation) -> FloatArray | None:
    scale, bias = norm.folded()
    if _is_one(scale):
        return bias
    if _is_movable(scale, activation):
        return bias / scale
    return None


class _Exporter:
    """Builds one graph. The methods follow the network from its inputs to its heads."""

    def __init__(self, network: KataGoNetwork, size: int, meta_input: bool) -> None:
        self._network = network
        self._size = size
        self._graph = GraphBuilder()
        self._meta_input = meta_input and network.trunk.meta_encoder is not None

    def export(self, metadata: dict[str, str]) -> onnx.ModelProto:
        """Build everything and return the model."""
        network, graph, area = self._network, self._graph, self._size**2
        tip = self._trunk()
        policy = self._policy_head(network.policy_head, tip)
        graph.output(policy, "policy", ["batch", network.policy_channels, area + 1])
        self._value_head(network.value_head, tip)
        return graph.model(network.name, metadata)

    # Small parts

    def _conv(
        self,
        conv: Conv,
        tensor: str,
        in_scale: FloatArray | None = None,
        out_scale: FloatArray | None = None,
        bias: FloatArray | None = None,
    ) -> str:
        """Append conv(tensor * in_scale) * out_scale + bias, the scales being folded into the weights."""
        weights = conv.weights
        if in_scale is not None:
            weights = weights * in_scale[None, :, None, None]
        if out_scale is not None:
            weights = weights * out_scale[:, None, None, None]
        return self._conv_weights(weights, tensor, bias)

    def _conv_weights(self, weights: FloatArray, tensor: str, bias: FloatArray | None) -> str:
        graph = self._graph
        ky, kx = weights.shape[2:]
        inputs = [tensor, graph.constant(weights)]
        if bias is not None:
            inputs.append(graph.constant(bias))
        pads = [ky // 2, kx // 2, ky // 2, kx // 2]
        return graph.op("Conv", *inputs, kernel_shape=[ky, kx], pads=pads)

    def _act(self, activation: Activation, tensor: str) -> str:
        return activate(self._graph, activation, tensor)

    def _pool(self, tensor: str, matrix: FloatArray, bias: FloatArray | None) -> str:
        """Append GPOOL(tensor) @ matrix + bias, [B, C, 1, 1].

        `matrix` [3 * in, C] has the rows of mean, mean scaled by the board's size, and max.
        """
        graph = self._graph
        channels = matrix.shape[0] // 3
        mean, scaled, maximum = (matrix[k * channels : (k + 1) * channels] for k in range(3))
        rows = np.concatenate([mean + scaled * size_offset(self._size), maximum])
        pooled = graph.op("Concat", graph.op("GlobalAveragePool", tensor), graph.op("GlobalMaxPool", tensor), axis=1)
        return self._conv_weights(rows.T[:, :, None, None], pooled, bias)

    def _broadcast(self, tensor: str, channels: int) -> str:
        """Spread [B, C, 1, 1] over the board: [B, C, N, N]."""
        graph, size = self._graph, self._size
        scales = graph.constant([1.0, 1.0, size, size])
        spread = graph.op(
            "Resize",
            tensor,
            "",
            scales,
            mode="nearest",
            coordinate_transformation_mode="asymmetric",
            nearest_mode="floor",
        )
        # Resize hides the batch dimension from shape inference, and without it the sum is not fused.
        return graph.annotate(spread, ["batch", channels, size, size])

    # Trunk

    def _trunk(self) -> str:
        """Build the trunk and return its activated tip as a map."""
        graph, trunk = self._graph, self._network.trunk
        size, channels = self._size, trunk.channels
        spatial = graph.input("spatial", ["batch", SPATIAL_CHANNELS, size, size])
        global_ = graph.input("global", ["batch", GLOBAL_CHANNELS])
        wants = self._wants(trunk.blocks, trunk.tip_norm, trunk.tip_act, channels)
        offset = np.zeros(channels, np.float32) if wants[0] is None else wants[0]
        conv = self._conv_weights(*self._padded(trunk.conv.weights, spatial), offset)
        bias = graph.op("Reshape", global_, graph.shape(0, GLOBAL_CHANNELS, 1, 1))
        bias = self._conv_weights(*self._padded(trunk.matmul.weights.T[:, :, None, None], bias), None)
        if trunk.meta_encoder is not None:
            meta = graph.op("Reshape", self._meta(trunk.meta_encoder), graph.shape(0, channels, 1, 1))
            bias = graph.op("Add", bias, meta)
        stream = _Stream(graph.op("Add", conv, self._broadcast(bias, channels)), offset)
        stream = self._blocks(stream, trunk.blocks, wants)
        if isinstance(trunk.tip_norm, RmsNorm):
            points = self._points(stream)
            normed = onnx_transformer.rms_norm(graph, trunk.tip_norm, points.tensor)
            tip = self._map(_Stream(normed, points.offset, is_map=False))
            return self._act(trunk.tip_act, tip.tensor)
        tensor, scale = self._normed(stream, trunk.tip_norm, trunk.tip_act)
        if scale is not None:
            return graph.op("Mul", tensor, graph.constant(scale[:, None, None]))
        return tensor

    def _padded(self, weights: FloatArray, tensor: str) -> tuple[FloatArray, str]:
        """Add empty input channels to a convolution's weights and its input until the blocked layout takes them."""
        missing = -weights.shape[1] % _CHANNEL_MULTIPLE
        pads = self._graph.constant([0, 0, 0, 0, 0, missing, 0, 0], np.int64)
        return np.pad(weights, ((0, 0), (0, missing), (0, 0), (0, 0))), self._graph.op("Pad", tensor, pads)

    def _meta(self, encoder: MetaEncoder) -> str:
        """Append the metadata encoder's bias of the trunk: [B, C] from the input, or [1, C] from zeros."""
        graph = self._graph
        if self._meta_input:
            tensor = graph.input("meta", ["batch", META_CHANNELS])
        else:
            tensor = graph.constant(np.zeros((1, META_CHANNELS)))
        tensor = graph.op("MatMul", tensor, graph.constant(encoder.matmul1.weights))
        tensor = graph.op("Add", tensor, graph.constant(encoder.bias1.bias))
        tensor = self._act(encoder.act1, tensor)
        tensor = graph.op("MatMul", tensor, graph.constant(encoder.matmul2.weights))
        tensor = graph.op("Add", tensor, graph.constant(encoder.bias2.bias))
        tensor = self._act(encoder.act2, tensor)
        return graph.op("MatMul", tensor, graph.constant(encoder.matmul3.weights))

    def _wants(
        self, blocks: tuple[Block, ...], norm: BatchNorm | RmsNorm, activation: Activation, channels: int
    ) -> list[FloatArray | None]:
        """List the offsets wanted at the start of each block and by the norm behind the last one."""
        wants = [_wanted_offset(block, channels) for block in blocks]
        if isinstance(norm, RmsNorm):
            return [*wants, np.zeros(channels, np.float32)]
        return [*wants, _norm_offset(norm, activation)]

    def _blocks(self, stream: _Stream, blocks: tuple[Block, ...], wants: list[FloatArray | None]) -> _Stream:
        for block, want in zip(blocks, wants[1:], strict=True):
            if isinstance(block, AttentionBlock):
                points = self._points(self._shifted(stream, None))
                tensor = onnx_transformer.attention(self._graph, block, points.tensor, self._size)
                stream = _Stream(tensor, points.offset, is_map=False)
            elif isinstance(block, FeedForwardBlock):
                points = self._points(self._shifted(stream, None))
                tensor = onnx_transformer.feed_forward(self._graph, block, points.tensor)
                stream = _Stream(tensor, points.offset, is_map=False)
            else:
                stream = self._conv_block(self._map(stream), block, want)
        return stream

    def _conv_block(
        self, stream: _Stream, block: OrdinaryBlock | GlobalPoolingBlock | BottleneckBlock, want: FloatArray | None
    ) -> _Stream:
        """Append a block; its last convolution's bias moves the stream to the offset that the next block wants."""
        graph = self._graph
        tensor, in_scale = self._normed(stream, block.norm1, block.act1)
        if isinstance(block, BottleneckBlock):
            tensor, in_scale = self._bottleneck(block, tensor, in_scale)
        elif isinstance(block, GlobalPoolingBlock):
            tensor, in_scale = self._gpool(block, tensor, in_scale), None
        else:
            scale, bias = block.norm2.folded()
            tensor = self._conv(block.conv1, tensor, in_scale, scale, bias)
            tensor, in_scale = self._act(block.act2, tensor), None
        offset = stream.offset if want is None else want
        conv = self._conv(block.conv2, tensor, in_scale, bias=offset - stream.offset)
        return _Stream(graph.op("Add", conv, stream.tensor), offset)

    def _bottleneck(
        self, block: BottleneckBlock, tensor: str, in_scale: FloatArray | None
    ) -> tuple[str, FloatArray | None]:
        """Append the inside of a bottleneck block, which carries a narrower stream of its own."""
        channels = block.conv1.out_channels
        wants = self._wants(block.blocks, block.norm2, block.act2, channels)
        offset = np.zeros(channels, np.float32) if wants[0] is None else wants[0]
        inner = _Stream(self._conv(block.conv1, tensor, in_scale, bias=offset), offset)
        inner = self._blocks(inner, block.blocks, wants)
        return self._normed(inner, block.norm2, block.act2)

    def _gpool(self, block: GlobalPoolingBlock, tensor: str, in_scale: FloatArray | None) -> str:
        scale_g, bias_g = block.norm_gpool.folded()
        pooled = self._act(block.act_gpool, self._conv(block.conv_gpool, tensor, in_scale, scale_g, bias_g))
        scale, bias = block.norm2.folded()
        regular = self._conv(block.conv_regular, tensor, in_scale, scale)
        added = self._broadcast(self._pool(pooled, block.matmul.weights * scale, bias), bias.size)
        return self._act(block.act2, self._graph.op("Add", regular, added))

    def _normed(self, stream: _Stream, norm: BatchNorm, activation: Activation) -> tuple[str, FloatArray | None]:
        """Append activation(norm(stream)). If a scale is returned, the reader must still multiply it in."""
        stream = self._map(stream)
        wanted = _norm_offset(norm, activation)
        scale, bias = norm.folded()
        if wanted is not None:
            tensor = self._act(activation, self._shifted(stream, wanted).tensor)
            return tensor, None if _is_one(scale) else scale
        graph = self._graph
        ones, zeros = graph.constant(np.ones_like(scale)), graph.constant(np.zeros_like(scale))
        shift = graph.constant(bias - stream.offset * scale)
        # Exists in the blocked layout, as Mul and Add by channel do not. Epsilon 0 makes it an exact scale and bias.
        tensor = graph.op("BatchNormalization", stream.tensor, graph.constant(scale), shift, zeros, ones, epsilon=0.0)
        return self._act(activation, tensor), None

    def _shifted(self, stream: _Stream, offset: FloatArray | None) -> _Stream:
        """Return the stream with another offset (None: 0). This costs an Add unless the offset is already right."""
        offset = np.zeros_like(stream.offset) if offset is None else offset
        difference = offset - stream.offset
        if not difference.any():
            return stream
        addend = difference[:, None, None] if stream.is_map else difference
        return _Stream(self._graph.op("Add", stream.tensor, self._graph.constant(addend)), offset, stream.is_map)

    def _points(self, stream: _Stream) -> _Stream:
        """Return the stream as points [B, N * N, C]."""
        if not stream.is_map:
            return stream
        graph = self._graph
        rows = graph.op("Transpose", stream.tensor, perm=[0, 2, 3, 1])
        points = graph.op("Reshape", rows, graph.shape(0, self._size**2, stream.offset.size))
        return _Stream(points, stream.offset, is_map=False)

    def _map(self, stream: _Stream) -> _Stream:
        """Return the stream as a map [B, C, N, N]."""
        if stream.is_map:
            return stream
        graph = self._graph
        shape = graph.shape(0, self._size, self._size, stream.offset.size)
        rows = graph.op("Reshape", stream.tensor, shape)
        return _Stream(graph.op("Transpose", rows, perm=[0, 3, 1, 2]), stream.offset)

    # Heads

    def _policy_head(self, head: PolicyHead, tip: str) -> str:
        """Append the policy head and return its logits [B, channels, N * N + 1]."""
        graph, area = self._graph, self._size**2
        channels = self._network.policy_channels
        scale_g, bias_g = head.norm_g1.folded()
        pooled = self._act(head.act_g1, self._conv(head.g1, tip, out_scale=scale_g, bias=bias_g))
        scale, bias = head.norm_p1.folded()
        added = self._broadcast(self._pool(pooled, head.matmul.weights * scale, bias), bias.size)
        p1 = self._act(head.act_p1, graph.op("Add", self._conv(head.p1, tip, out_scale=scale), added))
        board = self._conv_weights(head.p2.weights[:channels], p1, None)
        if head.matmul_pass2 is None or head.bias_pass is None or head.act_pass is None:
            passing = self._pool(pooled, head.matmul_pass.weights[:, :channels], None)
        else:
            hidden = self._act(head.act_pass, self._pool(pooled, head.matmul_pass.weights, head.bias_pass.bias))
            weights = head.matmul_pass2.weights[:, :channels]
            passing = self._conv_weights(weights.T[:, :, None, None], hidden, None)
        board = graph.op("Reshape", board, graph.shape(0, channels, area))
        passing = graph.op("Reshape", passing, graph.shape(0, channels, 1))
        return graph.op("Concat", board, passing, axis=2)

    def _value_head(self, head: ValueHead, tip: str) -> None:
        """Append the value head and declare its three outputs."""
        graph, size = self._graph, self._size
        scale, bias = head.norm_v1.folded()
        v1 = self._act(head.act_v1, self._conv(head.v1, tip, out_scale=scale, bias=bias))
        channels = head.v1.out_channels
        by_size = size_offset(size)
        mean, scaled, squared = (head.v2.weights[k * channels : (k + 1) * channels] for k in range(3))
        matrix = mean + scaled * by_size + squared * (by_size**2 - 0.1)
        pooled = graph.op("Reshape", graph.op("GlobalAveragePool", v1), graph.shape(0, channels))
        hidden = graph.op("Gemm", pooled, graph.constant(matrix), graph.constant(head.v2_bias.bias))
        hidden = self._act(head.act_v2, hidden)
        misc = head.sv3_bias.bias.size
        joined = graph.op(
            "Gemm",
            hidden,
            graph.constant(np.concatenate([head.v3.weights, head.sv3.weights], axis=1)),
            graph.constant(np.concatenate([head.v3_bias.bias, head.sv3_bias.bias])),
        )
        value, misc_out = graph.split(joined, [3, misc], axis=1)
        ownership = graph.op("Reshape", self._conv(head.ownership, v1), graph.shape(0, size**2))
        graph.output(value, "value", ["batch", 3])
        graph.output(misc_out, "misc", ["batch", misc])
        graph.output(ownership, "ownership", ["batch", size**2])


def activate(graph: GraphBuilder, activation: Activation, tensor: str) -> str:
    """Append an activation function."""
    if activation is Activation.IDENTITY:
        return tensor
    if activation is Activation.RELU:
        return graph.op("Relu", tensor)
    if activation is Activation.SILU:
        return graph.op("Mul", tensor, graph.op("Sigmoid", tensor))
    return _mish(graph, tensor)


def _mish(graph: GraphBuilder, tensor: str) -> str:
    """Append x * tanh(softplus(x)) as x * p / (2 - p) with p = s * (2 - s) and s = sigmoid(x).

    onnxruntime's Softplus computes one number at a time and would take 40% of a network's time on a processor. This
    form gave 1.6 times the evaluations of a 6-block network. Nothing overflows, not even in half precision.
    """
    two = graph.constant(2.0)
    sigmoid = graph.op("Sigmoid", tensor)
    p = graph.op("Mul", sigmoid, graph.op("Sub", two, sigmoid))
    return graph.op("Mul", tensor, graph.op("Div", p, graph.op("Sub", two, p)))

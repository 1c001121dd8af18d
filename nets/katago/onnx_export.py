"""KataGo network to ONNX, for one exact board size, shaped for onnxruntime's blocked (NCHWc) layout.

`write_program` walks through the network, as it does for yomi's own kernels. The builder here appends ONNX nodes. The
graph is fast for these reasons, each exact up to rounding:

* A norm after a convolution is folded into its weights and bias.
* A norm at the start of a block works on the residual stream. If its scale is 1, or positive before a ReLU, only a bias
  is left. The stream is carried with that bias already added: each block's last convolution adds the difference to the
  next block's bias. The stream then needs no operator except the sum, which onnxruntime fuses into the convolution.
* Vectors are spread over the board by Resize. Unlike a broadcasting Add it exists in the blocked layout, and so becomes
  part of a convolution's fused sum.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx

from yomi.nets.errors import NetworkError
from yomi.nets.forward_program import Norm
from yomi.nets.gpu_variants import quarter_turn
from yomi.nets.graph_builder import GraphBuilder
from yomi.nets.katago.cpu_program import write_program
from yomi.nets.katago.file import read_network
from yomi.nets.katago.network import (
    SPATIAL_CHANNELS,
    FloatArray,
    KataGoNetwork,
)
from yomi.nets.katago.outputs import describe
from yomi.nets.metadata import BoardSize, area_of, recorded_size, sides, size_name

MIN_BOARD_SIZE = 2
MAX_BOARD_SIZE = 37

# Below this a positive scale is not moved through a ReLU: dividing by it would cost accuracy.
_MIN_MOVABLE_SCALE = 1e-2
# onnxruntime takes a convolution into the blocked layout only if its input channels are a multiple of this.
_CHANNEL_MULTIPLE = 4


def export_onnx(
    network: KataGoNetwork,
    board_size: BoardSize,
    metadata: dict[str, str] | None = None,
) -> onnx.ModelProto:
    """Build the ONNX model of a network for boards of exactly `board_size`.

    Inputs: `spatial` [B, 22, rows, columns], and `global` [B, 19], which 192 metadata follow if the network has their
    encoder. Outputs, all raw and for the side to move: `policy` [B, 1 or 2, area + 1] logits with pass last, `value`
    [B, 3] logits (win, loss, no result), `misc` [B, 4 or 6], `ownership` [B, area] before tanh.
    `yomi.nets.katago.outputs` converts them to probabilities and points.

    Args:
        network: the parsed file.
        board_size: N, or (columns, rows).
        metadata: written into the model as metadata_props.

    Raises:
        NetworkError: `board_size` is out of range.
    """
    if not all(MIN_BOARD_SIZE <= side <= MAX_BOARD_SIZE for side in sides(board_size)):
        raise NetworkError(f"board size {size_name(board_size)} found, expected {MIN_BOARD_SIZE} to {MAX_BOARD_SIZE}")
    builder = _OnnxBuilder(board_size, network.global_channels)
    write_program(network, board_size, builder)
    return builder.graph.model(network.name, metadata or {})


@dataclass
class _Map:
    """A map [B, C, N, N] or points [B, N * N, C], of (tensor - offset) * scale. Blocks change a stream in place."""

    tensor: str
    offset: FloatArray  # [C]
    scale: FloatArray | None = None  # [C], which the next convolution multiplies in; None: 1
    is_points: bool = False


@dataclass(frozen=True)
class _Part:
    """A part of a vector [B, C, 1, 1]."""

    tensor: str
    channels: int
    pooling: str = ""  # operator that makes the part of a map, when it is needed
    factor: float = 1.0  # multiplied into the next matrix


def _wanted_offset(norm: Norm) -> FloatArray | None:
    """Return the stream's offset with which a norm needs only an activation and a scale, or None if there is none."""
    scale, bias, activation = norm
    if (scale == 1.0).all():
        return bias
    # The scale goes through the activation into the next layer.
    if activation in ("relu", "identity") and (scale > _MIN_MOVABLE_SCALE).all():
        return bias / scale
    return None


class _OnnxBuilder:
    """Implements `KataGoBuilder`."""

    def __init__(self, size: BoardSize, global_channels: int) -> None:
        self.graph = GraphBuilder()
        self._columns, self._rows = sides(size)
        self._area = area_of(size)
        self._global_channels = global_channels
        self._pooled: dict[_Part, str] = {}
        self._padding: dict[str, int] = {}  # empty channels by padded input
        planes = self.graph.input(
            "spatial", ["batch", SPATIAL_CHANNELS, self._rows, self._columns]
        )  # the first input of the file
        self._planes = self._padded(planes, SPATIAL_CHANNELS)

    # Vectors

    def globals_(self) -> list[_Part]:
        graph, channels = self.graph, self._global_channels
        tensor = graph.op("Reshape", graph.input("global", ["batch", channels]), graph.shape(0, channels, 1, 1))
        return [_Part(self._padded(tensor, channels), channels)]

    def pool(self, source: _Map) -> list[_Part]:
        channels, area = source.offset.size, float(self._area)
        # The mean, not the sum: a sum over the board may exceed float16.
        return [
            _Part(source.tensor, channels, "GlobalAveragePool", area),
            _Part(source.tensor, channels, "GlobalMaxPool"),
        ]

    def dense(
        self, source: list[_Part], matrix: FloatArray, norm: Norm, onto: list[_Part] | None = None
    ) -> list[_Part]:
        graph, scale = self.graph, norm[0]
        tensors, rows, row = [], [], 0
        for part in source:
            weights = matrix[row : row + part.channels] * np.float32(part.factor)
            row += part.channels
            if part.pooling and not weights.any():
                continue
            if part.pooling and part not in self._pooled:
                self._pooled[part] = graph.op(part.pooling, part.tensor)
            tensors.append(self._pooled.get(part, part.tensor))
            rows.append(weights)
        joined = tensors[0] if len(tensors) == 1 else graph.op("Concat", *tensors, axis=1)
        weights = (np.concatenate(rows) * scale).T[:, :, None, None]
        tensor = self._conv(joined, weights, norm[1])
        if onto is not None:
            tensor = graph.op("Add", tensor, onto[0].tensor)
        return [_Part(self._activated(tensor, norm[2]), len(scale))]

    def _spread(self, vector: list[_Part]) -> str:
        """Spread a vector over the board: [B, C, N, N]."""
        graph, shape = self.graph, (self._rows, self._columns)
        (part,) = vector
        spread = graph.op(
            "Resize",
            part.tensor,
            "",
            graph.constant([1.0, 1.0, *shape]),
            mode="nearest",
            coordinate_transformation_mode="asymmetric",
            nearest_mode="floor",
        )
        # Resize hides the batch dimension from shape inference, and without it the sum is not fused.
        return graph.annotate(spread, ["batch", part.channels, *shape])

    # Convolutions

    def input(self, weights: FloatArray, bias: list[_Part], norm: Norm) -> tuple[_Map, _Map]:
        offset = self._offset(norm, np.zeros(len(weights), np.float32))
        conv = self._conv(self._planes, weights, offset)
        stream = _Map(self.graph.op("Add", conv, self._spread(bias)), offset)
        return stream, self.join(stream, None, norm)

    def first(self, weights: FloatArray, bias: list[_Part] | None, norm: Norm) -> _Map:
        assert bias is not None
        return self.input(weights, bias, norm)[0]  # the norm changes nothing

    def conv(self, source: _Map, weights: FloatArray, norm: Norm) -> _Map:
        scale, bias, activation = norm
        tensor = self._activated(self._conv_map(source, weights * scale[:, None, None, None], bias), activation)
        return _Map(tensor, np.zeros_like(bias))

    def convs(self, source: _Map, parts: Sequence[tuple[FloatArray, Norm]]) -> list[_Map]:
        return [self.conv(source, weights, norm) for weights, norm in parts]

    def conv_stream(self, source: _Map, weights: FloatArray, norm: Norm) -> tuple[_Map, _Map]:
        offset = self._offset(norm, np.zeros(len(weights), np.float32))
        stream = _Map(self._conv_map(source, weights, offset), offset)
        return stream, self.join(stream, None, norm)

    def conv_add(self, source: _Map, weights: FloatArray, stream: _Map, norm: Norm) -> _Map:
        self._as_map(stream)
        offset = self._offset(norm, stream.offset)
        conv = self._conv_map(source, weights, offset - stream.offset)
        stream.tensor, stream.offset = self.graph.op("Add", conv, stream.tensor), offset
        return self.join(stream, None, norm)

    def conv_onto(self, source: _Map, weights: FloatArray, onto: _Map, norm: Norm) -> _Map:
        return self.conv_add(source, weights, onto, norm)  # the norm changes nothing

    def join(self, source: _Map, onto: _Map | None, norm: Norm) -> _Map:
        assert onto is None  # KataGo's networks have no such sums
        graph = self.graph
        self._as_map(source)
        scale, bias, activation = norm
        wanted = _wanted_offset(norm)
        if wanted is not None:
            tensor, rest = self._shifted(source, wanted), None if (scale == 1.0).all() else scale
        else:
            ones, zeros = graph.constant(np.ones_like(scale)), graph.constant(np.zeros_like(scale))
            shift = graph.constant(bias - source.offset * scale)
            # Exists in the blocked layout, unlike Mul and Add by channel. Epsilon 0 makes it an exact scale and bias.
            inputs = source.tensor, graph.constant(scale), shift, zeros, ones
            tensor, rest = graph.op("BatchNormalization", *inputs, epsilon=0.0), None
        return _Map(self._activated(tensor, activation), np.zeros_like(bias), rest)

    def spread(self, source: _Map, vector: list[_Part], activation: str) -> _Map:
        added = self.graph.op("Add", source.tensor, self._spread(vector))
        return _Map(self._activated(added, activation), source.offset)

    def _offset(self, norm: Norm, otherwise: FloatArray) -> FloatArray:
        wanted = _wanted_offset(norm)
        return otherwise if wanted is None else wanted

    def _conv_map(self, source: _Map, weights: FloatArray, bias: FloatArray) -> str:
        if source.scale is not None:
            weights = weights * source.scale[:, None, None]
        return self._conv(source.tensor, weights, bias)

    def _conv(self, tensor: str, weights: FloatArray, bias: FloatArray) -> str:
        graph = self.graph
        ky, kx = weights.shape[2:]
        if tensor in self._padding:
            weights = np.pad(weights, ((0, 0), (0, self._padding[tensor]), (0, 0), (0, 0)))
        inputs = [tensor, graph.constant(weights)]
        if bias.any():
            inputs.append(graph.constant(bias))
        return graph.op("Conv", *inputs, kernel_shape=[ky, kx], pads=[ky // 2, kx // 2, ky // 2, kx // 2])

    def _padded(self, tensor: str, channels: int) -> str:
        """Add empty channels to an input until the blocked layout takes it."""
        missing = -channels % _CHANNEL_MULTIPLE
        padded = self.graph.op("Pad", tensor, self.graph.constant([0, 0, 0, 0, 0, missing, 0, 0], np.int64))
        self._padding[padded] = missing
        return padded

    def _activated(self, tensor: str, activation: str) -> str:
        graph = self.graph
        if activation == "identity":
            return tensor
        if activation == "relu":
            return graph.op("Relu", tensor)
        sigmoid = graph.op("Sigmoid", tensor)
        if activation == "silu":
            return graph.op("Mul", tensor, sigmoid)
        # Mish, x * tanh(softplus(x)), as x * p / (2 - p) with p = s * (2 - s) and s = sigmoid(x). onnxruntime's
        # Softplus computes one number at a time and would take 40% of a network's time on a processor. This form gave
        # 1.6 times the evaluations of a 6-block network. Nothing overflows, not even in half precision.
        two = graph.constant(2.0)
        p = graph.op("Mul", sigmoid, graph.op("Sub", two, sigmoid))
        return graph.op("Mul", tensor, graph.op("Div", p, graph.op("Sub", two, p)))

    # Streams as maps and as points

    def _shifted(self, source: _Map, offset: FloatArray) -> str:
        """Return the tensor of a map with another offset. This needs an Add unless the map has this offset already."""
        difference = offset - source.offset
        if not difference.any():
            return source.tensor
        addend = difference if source.is_points else difference[:, None, None]
        return self.graph.op("Add", source.tensor, self.graph.constant(addend))

    def _as_map(self, stream: _Map) -> None:
        if stream.is_points:
            graph, shape = self.graph, (self._rows, self._columns)
            rows = graph.op("Reshape", stream.tensor, graph.shape(0, *shape, stream.offset.size))
            stream.tensor, stream.is_points = graph.op("Transpose", rows, perm=[0, 3, 1, 2]), False

    def _points(self, stream: _Map) -> str:
        """Convert a stream to points [B, A, C] with offset 0, and return their tensor."""
        graph, zeros = self.graph, np.zeros_like(stream.offset)
        stream.tensor, stream.offset = self._shifted(stream, zeros), zeros
        if not stream.is_points:
            rows = graph.op("Transpose", stream.tensor, perm=[0, 2, 3, 1])
            stream.tensor = graph.op("Reshape", rows, graph.shape(0, self._area, zeros.size))
            stream.is_points = True
        return stream.tensor

    # Transformers

    def norm(
        self, source: _Map, gamma: FloatArray, beta: FloatArray, epsilon: float, spatial: bool, activation: str
    ) -> _Map:
        graph = self.graph
        tensor = graph.op("Mul", self._rms_scaled(self._points(source), epsilon, spatial), graph.constant(gamma))
        if beta.any():
            tensor = graph.op("Add", tensor, graph.constant(beta))
        normed = _Map(tensor, np.zeros_like(gamma), is_points=True)
        self._as_map(normed)
        normed.tensor = self._activated(normed.tensor, activation)
        return normed

    def _rms_scaled(self, points: str, epsilon: float, spatial: bool = False) -> str:
        """Divide points by their root mean square."""
        graph = self.graph
        # A power stays in float32 in half precision: a product of large numbers would be infinite.
        square = graph.op("Pow", points, graph.constant(np.float32(2.0)))
        mean = graph.op("ReduceMean", square, axes=[1, 2] if spatial else [2], keepdims=1)
        root = graph.op("Sqrt", graph.op("Add", mean, graph.constant(epsilon)))
        # The reciprocal of one number for each point, so that the division does not run over all channels.
        return graph.op("Mul", points, graph.op("Reciprocal", root))

    def attend(
        self,
        stream: _Map,
        query: FloatArray,
        key: FloatArray,
        value: FloatArray,
        out: FloatArray,
        heads: int,
        groups: int,
        angles: FloatArray | None,
        epsilon: float,
    ) -> None:
        """Add attention over all points to the stream.

        Keys and values that several heads share are repeated in the weights.

        RoPE is linear: rotated = x * cos + quarter_turn(x) * sin. The quarter turn of each pair, a permutation with
        signs, is applied to a copy of the weights, so that no channel moves at run time. One product for everything,
        split afterwards, is slower, since the split copies.
        """
        graph, area = self.graph, self._area
        points = self._points(stream)
        normed = self._rms_scaled(points, epsilon)
        key, value = (_repeat_heads(weights, groups, heads) for weights in (key, value))
        turns = None
        if angles is not None:
            by_channel = np.repeat(np.repeat(angles, heads // groups, axis=1), 2, axis=2).reshape(area, -1)
            turns = graph.constant(np.cos(by_channel)), graph.constant(np.sin(by_channel))

        def by_head(tensor: str, weights: FloatArray, perm: list[int]) -> str:
            shape = graph.shape(0, area, heads, weights.shape[1] // heads)
            return graph.op("Transpose", graph.op("Reshape", tensor, shape), perm=perm)

        def product(weights: FloatArray) -> str:
            return graph.op("MatMul", normed, graph.constant(weights))

        def turned(weights: FloatArray) -> str:
            if turns is None:
                return product(weights)
            cosine, sine = turns
            quarter = product(quarter_turn(weights))
            return graph.op("Add", graph.op("Mul", product(weights), cosine), graph.op("Mul", quarter, sine))

        queries = by_head(turned(query), query, [0, 2, 1, 3])
        keys = by_head(turned(key), key, [0, 2, 3, 1])
        values = by_head(product(value), value, [0, 2, 1, 3])
        weights_by_point = graph.op("Softmax", graph.op("MatMul", queries, keys), axis=3)
        mixed = graph.op("Transpose", graph.op("MatMul", weights_by_point, values), perm=[0, 2, 1, 3])
        mixed = graph.op("Reshape", mixed, graph.shape(0, area, len(out)))
        stream.tensor = graph.op("Add", points, graph.op("MatMul", mixed, graph.constant(out)))

    def feed_forward(
        self, stream: _Map, first: FloatArray, gate: FloatArray | None, second: FloatArray, epsilon: float
    ) -> None:
        graph, points = self.graph, self._points(stream)
        normed = self._rms_scaled(points, epsilon)
        inner = self._activated(graph.op("MatMul", normed, graph.constant(first)), "silu")
        if gate is not None:
            inner = graph.op("Mul", inner, graph.op("MatMul", normed, graph.constant(gate)))
        stream.tensor = graph.op("Add", points, graph.op("MatMul", inner, graph.constant(second)))

    # Outputs

    def policy(self, board: Sequence[_Map], passing: list[_Part]) -> None:
        graph, channels, area = self.graph, len(board), self._area
        tensors = [each.tensor for each in board]
        joined = tensors[0] if channels == 1 else graph.op("Concat", *tensors, axis=1)
        on_board = graph.op("Reshape", joined, graph.shape(0, channels, area))
        passes = graph.op("Reshape", passing[0].tensor, graph.shape(0, channels, 1))
        graph.output(graph.op("Concat", on_board, passes, axis=2), "policy", ["batch", channels, area + 1])

    def value(self, vector: list[_Part]) -> None:
        graph, (part,) = self.graph, vector
        joined = graph.op("Reshape", part.tensor, graph.shape(0, part.channels))
        value, misc = graph.split(joined, [3, part.channels - 3], axis=1)
        graph.output(value, "value", ["batch", 3])
        graph.output(misc, "misc", ["batch", part.channels - 3])

    def ownership(self, source: _Map) -> None:
        graph, area = self.graph, self._area
        graph.output(graph.op("Reshape", source.tensor, graph.shape(0, area)), "ownership", ["batch", area])


def _repeat_heads(weights: FloatArray, groups: int, heads: int) -> FloatArray:
    """Repeat the columns [C, groups * width] of each key-value head for the heads that share it: [C, heads * width]."""
    channels = weights.shape[0]
    return np.repeat(weights.reshape(channels, groups, -1), heads // groups, axis=1).reshape(channels, -1)


def convert(path: Path, board_size: BoardSize, source_sha256: str) -> bytes:
    """Convert a KataGo network file to the content of an ONNX file for one board size, with metadata.

    Raises:
        NetworkError: the file is broken, or the board size is out of range.
    """
    network = read_network(path)
    info = describe(network, recorded_size(board_size), path.name, source_sha256)
    content: bytes = export_onnx(network, board_size, info.to_props()).SerializeToString(deterministic=True)
    return content

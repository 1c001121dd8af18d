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

from nets.katago import onnx_transformer
from nets.katago.graph import GraphBuilder
from nets.katago.network import (
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
    ordinary and, from version 12, the optimistic policy), `value` [B, 3] logits (win, loss, no result),
    `misc` [B, 4 or 6], `ownership` [B, N * N] before tanh. `nets.katago.outputs` turns them into numbers.

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
    """Return what the stream should carry for a block to need no norm of its own, or None if nothing helps."""
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
    """Builds one graph; the methods follow the network from its inputs to its heads."""

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
        graph.output(policy, "policy", ["batch", min(2, network.policy_channels), area + 1])
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
        rows = np.concatenate([mean + scaled * ((self._size - 14) * 0.1), maximum])
        pooled = graph.op("Concat", graph.op("GlobalAveragePool", tensor), graph.op("GlobalMaxPool", tensor), axis=1)
        return self._conv_weights(rows.T[:, :, None, None], pooled, bias)

    def _broadcast(self, tensor: str) -> str:
        """Spread [B, C, 1, 1] over the board: [B, C, N, N]."""
        graph = self._graph
        scales = graph.constant([1.0, 1.0, self._size, self._size])
        return graph.op(
            "Resize",
            tensor,
            "",
            scales,
            mode="nearest",
            coordinate_transformation_mode="asymmetric",
            nearest_mode="floor",
        )

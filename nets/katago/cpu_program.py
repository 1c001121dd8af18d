"""Write a KataGo network as a sequence of operations, for yomi's own kernels and for ONNX.

`write_program` walks through a network and calls a builder. It folds some operations:

* A norm after a convolution becomes the convolution's scale and shift.
* A norm at the start of a block is computed by the operation that writes the residual stream. That operation writes two
  maps: the sum, and the input of the next block.
* The board's size is known, so the scaled means of a pooling are folded into the next matrix.
"""

import math
from collections.abc import Sequence
from typing import Generic

import numpy as np
import numpy.typing as npt

from yomi.nets.errors import NetworkError
from yomi.nets.forward_program import KataGoBuilder, M, Norm, V, identity_norm
from yomi.nets.katago import network as katago
from yomi.nets.katago.network import FloatArray
from yomi.nets.metadata import BoardSize, area_of


def unsupported(network: katago.KataGoNetwork) -> str | None:
    """Return the reason why a network cannot be written as a program, or None if it can."""
    trunk, policy, value = network.trunk, network.policy_head, network.value_head
    height, width = trunk.conv.weights.shape[2:]
    if height != width:
        return f"its first convolution is of {height}x{width} points"
    firsts = [policy.p1, policy.g1, value.v1]
    if len({conv.weights.shape[2:] for conv in firsts}) > 1:
        return "the first convolutions of its heads differ in size"
    # The ownership reads a part of the map that the heads' first convolutions write together. A convolution of 3x3
    # points can only read whole maps.
    if value.ownership.weights.shape[2:] != (1, 1):
        return "its ownership is a convolution of more than one point"
    return _unsupported_blocks(trunk.blocks) or _unsupported_convs("a head", [*firsts, policy.p2])


def _unsupported_blocks(blocks: Sequence[katago.Block]) -> str | None:
    for block in blocks:
        if isinstance(block, katago.OrdinaryBlock):
            convs = [block.conv1, block.conv2]
        elif isinstance(block, katago.GlobalPoolingBlock):
            convs = [block.conv_regular, block.conv_gpool, block.conv2]
            if block.conv_regular.weights.shape[2:] != block.conv_gpool.weights.shape[2:]:
                return f"the two convolutions of {block.name} differ in size"
        elif isinstance(block, katago.BottleneckBlock):
            convs = [block.conv1, block.conv2]
            if reason := _unsupported_blocks(block.blocks):
                return reason
        else:
            continue
        if reason := _unsupported_convs(block.name, convs):
            return reason
    return None


def _unsupported_convs(owner: str, convs: Sequence[katago.Conv]) -> str | None:
    for conv in convs:
        if conv.weights.shape[2:] not in ((1, 1), (3, 3)):
            ky, kx = conv.weights.shape[2:]
            return f"{owner} has a convolution of {ky}x{kx} points"
    return None


def write_program(network: katago.KataGoNetwork, size: BoardSize, builder: KataGoBuilder[M, V]) -> None:
    """Call `builder` for each operation of a network on boards of `size`. `unsupported` must have returned None.

    Inputs and outputs are those of `yomi.nets.katago.onnx_export`.

    Raises:
        NetworkError: products of weights exceed float32. The message has no path.
    """
    try:
        with np.errstate(over="raise"):
            _Writer(network, size, builder).write()
    except FloatingPointError:
        raise NetworkError("weights and norms beyond float32 found, expected a trained network's") from None


def _norm(norm: katago.BatchNorm, activation: katago.Activation) -> Norm:
    scale, bias = norm.folded()
    return scale, bias, activation.name.lower()


def biased(bias: FloatArray, activation: katago.Activation = katago.Activation.IDENTITY) -> Norm:
    return np.ones(bias.size, np.float32), bias, activation.name.lower()


class _Writer(Generic[M, V]):
    def __init__(self, network: katago.KataGoNetwork, size: BoardSize, builder: KataGoBuilder[M, V]) -> None:
        self._network = network
        self._size, self._area = size, area_of(size)
        self._builder = builder

    def write(self) -> None:
        trunk, builder = self._network.trunk, self._builder
        bias = self._bias(trunk)
        last = None if isinstance(trunk.tip_norm, katago.RmsNorm) else _norm(trunk.tip_norm, trunk.tip_act)
        tip: M | None = None
        if (first := _first_norm(trunk.blocks, last)) is None:
            stream = builder.first(trunk.conv.weights, bias, identity_norm(trunk.channels))
        else:
            stream, tip = builder.input(trunk.conv.weights, bias, first)
        tip = self._blocks(stream, tip, trunk.blocks, last)
        if isinstance(trunk.tip_norm, katago.RmsNorm):
            norm = trunk.tip_norm
            tip = builder.norm(stream, norm.gamma, norm.beta, norm.epsilon, norm.spatial, trunk.tip_act.name.lower())
        assert tip is not None
        self._heads(tip)

    def _bias(self, trunk: katago.Trunk) -> V:
        """Return a vector that is added to each point of the first convolution. It is computed from the globals."""
        builder, plain = self._builder, identity_norm(trunk.channels)
        numbers, encoder = builder.globals_(), trunk.meta_encoder
        if encoder is None:
            return builder.dense(numbers, trunk.matmul.weights, plain)
        # The metadata follow the globals in one vector.
        matrix = np.pad(encoder.matmul1.weights, ((katago.GLOBAL_CHANNELS, 0), (0, 0)))
        hidden = builder.dense(numbers, matrix, biased(encoder.bias1.bias, encoder.act1))
        hidden = builder.dense(hidden, encoder.matmul2.weights, biased(encoder.bias2.bias, encoder.act2))
        encoded = builder.dense(hidden, encoder.matmul3.weights, plain)
        return builder.dense(numbers, np.pad(trunk.matmul.weights, ((0, katago.META_CHANNELS), (0, 0))), plain, encoded)

    def _blocks(self, stream: M, normed: M | None, blocks: Sequence[katago.Block], last: Norm | None) -> M | None:
        """Write the blocks. Return the norm `last` of the stream after them, or None without it.

        Args:
            stream: map to which the blocks add.
            normed: input of the first block; None if that is the stream, as for transformer blocks.
            blocks: the blocks in order.
            last: norm after the blocks; None if the part after the blocks reads the stream.
        """
        builder = self._builder
        for index, block in enumerate(blocks):
            following = _first_norm(blocks[index + 1 :], last)
            if isinstance(block, katago.AttentionBlock | katago.FeedForwardBlock):
                self._add_transformer(stream, block)
                normed = None if following is None else builder.join(stream, None, following)
                continue
            assert normed is not None
            middle = self._middle(block, normed)
            if following is None:
                builder.conv_onto(middle, block.conv2.weights, stream, identity_norm(block.conv2.out_channels))
                normed = None
            else:
                normed = builder.conv_add(middle, block.conv2.weights, stream, following)
        return normed

    def _add_transformer(self, stream: M, block: katago.AttentionBlock | katago.FeedForwardBlock) -> None:
        gamma, epsilon = block.norm.gamma[:, None], block.norm.epsilon
        if isinstance(block, katago.FeedForwardBlock):
            alive = _alive(block)
            gate = None if block.gate is None else (block.gate.weights * gamma)[:, alive]
            first, second = (block.w1.weights * gamma)[:, alive], block.w2.weights[alive]
            self._builder.feed_forward(stream, first, gate, second, epsilon)
            return
        # The norm's gamma and the scale of the scores are folded into the weights.
        query = block.q.weights * gamma / np.float32(math.sqrt(block.q_dim))
        key, value = block.k.weights * gamma, block.v.weights * gamma
        angles = None if block.rope is None else katago.rope_angles(block.rope, self._size).astype(np.float32)
        heads, groups = block.heads, block.kv_heads
        self._builder.attend(stream, query, key, value, block.out.weights, heads, groups, angles, epsilon)

    def _middle(self, block: katago.OrdinaryBlock | katago.GlobalPoolingBlock | katago.BottleneckBlock, normed: M) -> M:
        """Write a block without its last convolution. Return that convolution's input."""
        builder = self._builder
        norm2 = _norm(block.norm2, block.act2)
        if isinstance(block, katago.BottleneckBlock):
            inner_normed: M | None = None
            if (first := _first_norm(block.blocks, norm2)) is None:
                inner = builder.conv(normed, block.conv1.weights, identity_norm(block.conv1.out_channels))
            else:
                inner, inner_normed = builder.conv_stream(normed, block.conv1.weights, first)
            inner_normed = self._blocks(inner, inner_normed, block.blocks, norm2)
            assert inner_normed is not None
            return inner_normed
        if isinstance(block, katago.OrdinaryBlock):
            return builder.conv(normed, block.conv1.weights, norm2)
        scale, shift, activation = norm2
        regular, pooled = builder.convs(
            normed,
            [
                (block.conv_regular.weights, (scale, np.zeros_like(shift), "identity")),
                (block.conv_gpool.weights, _norm(block.norm_gpool, block.act_gpool)),
            ],
        )
        matrix = self._pool_matrix(block.matmul.weights * scale)
        return builder.spread(regular, builder.dense(builder.pool(pooled), matrix, biased(shift)), activation)

    def _pool_matrix(self, matrix: FloatArray) -> FloatArray:
        """Convert a matrix for means, scaled means and maxima to a matrix for sums and maxima."""
        mean, scaled, greatest = np.split(matrix, 3)
        sums = (mean + scaled * katago.size_offset(self._area)) / self._area
        return np.concatenate([sums, greatest]).astype(np.float32)

    # Heads

    def _heads(self, tip: M) -> None:
        policy, value = self._network.policy_head, self._network.value_head
        scale, shift, activation = _norm(policy.norm_p1, policy.act_p1)
        # One pass over the map for the first convolutions of all heads.
        p1, g1, v1 = self._builder.convs(
            tip,
            [
                (policy.p1.weights, (scale, np.zeros_like(shift), "identity")),
                (policy.g1.weights, _norm(policy.norm_g1, policy.act_g1)),
                (value.v1.weights, _norm(value.norm_v1, value.act_v1)),
            ],
        )
        self._policy_head(policy, p1, g1, (scale, shift, activation))
        self._value_head(value, v1)

    def _policy_head(self, head: katago.PolicyHead, p1: M, g1: M, norm: Norm) -> None:
        builder = self._builder
        scale, shift, activation = norm
        channels = self._network.policy_channels
        pooled = builder.pool(g1)
        added = builder.dense(pooled, self._pool_matrix(head.matmul.weights * scale), biased(shift))
        spread = builder.spread(p1, added, activation)
        board = [builder.conv(spread, head.p2.weights[c : c + 1], identity_norm(1)) for c in range(channels)]
        matrix = self._pool_matrix(head.matmul_pass.weights)
        if head.matmul_pass2 is None or head.bias_pass is None or head.act_pass is None:
            passing = builder.dense(pooled, matrix[:, :channels], identity_norm(channels))
        else:
            hidden = builder.dense(pooled, matrix, biased(head.bias_pass.bias, head.act_pass))
            passing = builder.dense(hidden, head.matmul_pass2.weights[:, :channels], identity_norm(channels))
        builder.policy(board, passing)

    def _value_head(self, head: katago.ValueHead, v1: M) -> None:
        builder = self._builder
        by_size = katago.size_offset(self._area)
        mean, scaled, squared = np.split(head.v2.weights, 3)
        sums = (mean + scaled * by_size + squared * (by_size**2 - 0.1)) / self._area
        # Zeros for the maxima, which the value head does not read.
        matrix = np.concatenate([sums, np.zeros_like(sums)]).astype(np.float32)
        hidden = builder.dense(builder.pool(v1), matrix, biased(head.v2_bias.bias, head.act_v2))
        outputs = np.concatenate([head.v3.weights, head.sv3.weights], axis=1)
        biases = np.concatenate([head.v3_bias.bias, head.sv3_bias.bias])
        builder.value(builder.dense(hidden, outputs, biased(biases)))
        builder.ownership(builder.conv(v1, head.ownership.weights, identity_norm(1)))


def _first_norm(blocks: Sequence[katago.Block], last: Norm | None) -> Norm | None:
    """Return the norm of the first block, or without blocks the norm of the part after them."""
    if not blocks:
        return last
    block = blocks[0]
    if isinstance(block, katago.AttentionBlock | katago.FeedForwardBlock):
        return None  # it computes its own norm
    return _norm(block.norm1, block.act1)


def _alive(block: katago.FeedForwardBlock) -> npt.NDArray[np.intp]:
    # Weight decay leaves some inner channels always zero, in some blocks most of them.
    alive = block.w1.weights.any(axis=0) & block.w2.weights.any(axis=1)
    if block.gate is not None:
        alive &= block.gate.weights.any(axis=0)
    return np.flatnonzero(alive) if alive.any() else np.arange(1)

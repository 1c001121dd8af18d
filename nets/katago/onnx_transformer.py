"""Transformer blocks of KataGo networks as ONNX, on points [B, A, C] (A points of the board, row by row)."""

from __future__ import annotations

import math

import numpy as np

from yomi.nets.graph_builder import GraphBuilder
from yomi.nets.katago.network import AttentionBlock, FeedForwardBlock, FloatArray, RmsNorm, rope_angles


def rms_norm(graph: GraphBuilder, norm: RmsNorm, points: str) -> str:
    """Append norm(points), [B, A, C]."""
    tensor = graph.op("Mul", _rms_scaled(graph, norm, points), graph.constant(norm.gamma))
    if norm.beta.any():
        tensor = graph.op("Add", tensor, graph.constant(norm.beta))
    return tensor


def _rms_scaled(graph: GraphBuilder, norm: RmsNorm, points: str) -> str:
    """Append points / root mean square, without gamma and beta."""
    axes = [1, 2] if norm.spatial else [2]
    # A power, which stays in float32 where all else is halved: a product of large numbers would be infinite.
    square = graph.op("Pow", points, graph.constant(np.float32(2.0)))
    mean = graph.op("ReduceMean", square, axes=axes, keepdims=1)
    root = graph.op("Sqrt", graph.op("Add", mean, graph.constant(norm.epsilon)))
    # The reciprocal of one number for each point, so that the division does not run over all channels.
    return graph.op("Mul", points, graph.op("Reciprocal", root))


def attention(graph: GraphBuilder, block: AttentionBlock, points: str, size: int) -> str:
    """Append the sum of the points and the attention of their norm, [B, A, C].

    Keys and values that several heads share are repeated in the weights. RoPE is linear: rotated = x * cos +
    quarter_turn(x) * sin. The quarter turn of each pair, a permutation with signs, is applied to a copy of the weights,
    so that no channel moves at run time. One product for everything, split afterwards, is slower, since the split
    copies.
    """
    heads, area = block.heads, size**2
    query, key, value = _attention_weights(block)
    normed = _rms_scaled(graph, block.norm, points)
    turns = None
    if block.rope is not None:
        angles = _rope_angles(block, block.rope, size)
        turns = graph.constant(np.cos(angles)), graph.constant(np.sin(angles))

    def turned(weights: FloatArray) -> str:
        straight = graph.op("MatMul", normed, graph.constant(weights))
        if turns is None:
            return straight
        quarter = graph.op("MatMul", normed, graph.constant(_quarter_turn(weights)))
        cosine, sine = turns
        return graph.op("Add", graph.op("Mul", straight, cosine), graph.op("Mul", quarter, sine))

    queries, keys = turned(query), turned(key)
    values = graph.op("MatMul", normed, graph.constant(value))

    def by_head(tensor: str, width: int, perm: list[int]) -> str:
        return graph.op("Transpose", graph.op("Reshape", tensor, graph.shape(0, area, heads, width)), perm=perm)

    queries = by_head(queries, block.q_dim, [0, 2, 1, 3])
    keys = by_head(keys, block.q_dim, [0, 2, 3, 1])
    values = by_head(values, block.v_dim, [0, 2, 1, 3])
    weights_by_point = graph.op("Softmax", graph.op("MatMul", queries, keys), axis=3)
    mixed = graph.op("Transpose", graph.op("MatMul", weights_by_point, values), perm=[0, 2, 1, 3])
    mixed = graph.op("Reshape", mixed, graph.shape(0, area, heads * block.v_dim))
    return graph.op("Add", points, graph.op("MatMul", mixed, graph.constant(block.out.weights)))


def _attention_weights(block: AttentionBlock) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return query, key and value weights [C, heads * width], with the norm's gamma and the scale folded in."""
    gamma = block.norm.gamma[:, None]
    query = block.q.weights * gamma / np.float32(math.sqrt(block.q_dim))
    key = _repeat_heads(block.k.weights * gamma, block.kv_heads, block.heads)
    value = _repeat_heads(block.v.weights * gamma, block.kv_heads, block.heads)
    return query, key, value


def _repeat_heads(weights: FloatArray, kv_heads: int, heads: int) -> FloatArray:
    """Repeat each head's columns of [C, kv_heads * width] for the heads that share it: [C, heads * width]."""
    channels = weights.shape[0]
    by_head = weights.reshape(channels, kv_heads, -1)
    return np.repeat(by_head, heads // kv_heads, axis=1).reshape(channels, -1)


def _quarter_turn(weights: FloatArray) -> FloatArray:
    """Turn each pair of columns (a, b) into (-b, a)."""
    turned = np.empty_like(weights)
    turned[:, 0::2] = -weights[:, 1::2]
    turned[:, 1::2] = weights[:, 0::2]
    return turned


def _rope_angles(block: AttentionBlock, rope: FloatArray, size: int) -> FloatArray:
    """Return the angle of every point and channel of all queries (or keys), [A, heads * q_dim]."""
    angles = np.repeat(rope_angles(rope, size), block.heads // block.kv_heads, axis=1)
    return np.repeat(angles, 2, axis=2).reshape(size**2, -1).astype(np.float32)


def feed_forward(graph: GraphBuilder, block: FeedForwardBlock, points: str) -> str:
    """Append the sum of the points and the feed-forward net of their norm, [B, A, C]."""
    gamma = block.norm.gamma[:, None]
    normed = _rms_scaled(graph, block.norm, points)
    hidden = graph.op("MatMul", normed, graph.constant(block.w1.weights * gamma))
    inner = graph.op("Mul", hidden, graph.op("Sigmoid", hidden))
    if block.gate is not None:
        inner = graph.op("Mul", inner, graph.op("MatMul", normed, graph.constant(block.gate.weights * gamma)))
    return graph.op("Add", points, graph.op("MatMul", inner, graph.constant(block.w2.weights)))

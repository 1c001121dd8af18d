"""Attention and norms of an ONNX graph as single operators of onnxruntime's CUDA provider.

Networks are exported as standard operators, which every provider knows. For attention these write the weights of all
pairs of points to memory, several times and in half precision also as float32. onnxruntime's own operators do not.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
from onnx import helper, numpy_helper

DOMAIN = "com.microsoft"
BY_HEAD, TURNED = [0, 2, 1, 3], [0, 2, 3, 1]  # permutations of [batch, points, heads, width]
CHANNELS = 2  # axis of [batch, points, channels]


class _Graph:
    """A graph's nodes by output. Looking for a node skips casts."""

    def __init__(self, graph: onnx.GraphProto) -> None:
        self.graph = graph
        self._makers = {output: node for node in graph.node for output in node.output}
        self._readers = {name: node for node in reversed(graph.node) for name in node.input}
        self._constants = {tensor.name: tensor for tensor in graph.initializer}

    def node(self, name: str, operator: str) -> onnx.NodeProto | None:
        """Return the node that makes a tensor if it has this operator."""
        maker = self._makers.get(self.source(name))
        return maker if maker is not None and maker.op_type == operator else None

    def source(self, name: str) -> str:
        """Return the tensor of which `name` is a cast."""
        while (maker := self._makers.get(name)) is not None and maker.op_type == "Cast":
            name = maker.input[0]
        return name

    def constant(self, name: str) -> npt.NDArray[Any] | None:
        tensor = self._constants.get(self.source(name))
        return None if tensor is None else numpy_helper.to_array(tensor)

    def matrix(self, name: str) -> npt.NDArray[Any] | None:
        """Return the constant that the first reader of a tensor multiplies it with, one row for each channel."""
        reader = self._readers.get(name)
        return None if reader is None or reader.op_type not in ("MatMul", "Mul") else self.constant(reader.input[1])

    def viewed(self, name: str, perm: list[int]) -> tuple[str, list[int]] | None:
        """Return the tensor and the shape if `name` is Transpose(Reshape(tensor, shape), perm)."""
        turned = self.node(name, "Transpose")
        if turned is None or _attribute(turned, "perm") != perm:
            return None
        reshaped = self.node(turned.input[0], "Reshape")
        shape = None if reshaped is None else self.constant(reshaped.input[1])
        return None if reshaped is None or shape is None else (reshaped.input[0], [int(side) for side in shape])


def fuse(model: onnx.ModelProto) -> None:
    """Replace attention and root-mean-square norms by single operators."""
    graph = model.graph
    _replace(graph, "Reshape", _attention)
    _replace(graph, "Add", _rotation)
    _replace(graph, "Mul", _norm)
    used = {name for node in graph.node for name in node.input} | {output.name for output in graph.output}
    while unused := [node for node in graph.node if not used.intersection(node.output)]:
        for node in unused:
            graph.node.remove(node)
        used = {name for node in graph.node for name in node.input} | {output.name for output in graph.output}
    if all(each.domain != DOMAIN for each in model.opset_import):
        model.opset_import.append(helper.make_opsetid(DOMAIN, 1))


def _replace(
    graph: onnx.GraphProto, operator: str, find: Callable[[_Graph, onnx.NodeProto], onnx.NodeProto | None]
) -> None:
    parts = _Graph(graph)
    for index, node in enumerate(list(graph.node)):
        if node.op_type == operator and (fused := find(parts, node)) is not None:
            graph.node[index].CopyFrom(fused)


def _attention(parts: _Graph, node: onnx.NodeProto) -> onnx.NodeProto | None:
    """Return the attention that ends in `node`: weights of pairs of points, times values, by head."""
    joined = parts.node(node.input[0], "Transpose")
    mixed = None if joined is None or _attribute(joined, "perm") != BY_HEAD else parts.node(joined.input[0], "MatMul")
    weights = None if mixed is None else parts.node(mixed.input[0], "Softmax")
    scores = None if weights is None else parts.node(weights.input[0], "MatMul")
    if mixed is None or scores is None or weights is None or _attribute(weights, "axis") not in (3, -1):
        return None
    query = parts.viewed(scores.input[0], BY_HEAD)
    key = parts.viewed(scores.input[1], TURNED)
    value = parts.viewed(mixed.input[1], BY_HEAD)
    if query is None or key is None or value is None or not query[1][2] == key[1][2] == value[1][2]:
        return None
    return helper.make_node(
        "MultiHeadAttention",
        [query[0], key[0], value[0]],
        list(node.output),
        name=f"{node.output[0]}/attention",
        domain=DOMAIN,
        num_heads=query[1][2],
        scale=1.0,  # it is part of the weights
    )


def _rotation(parts: _Graph, node: onnx.NodeProto) -> onnx.NodeProto | None:
    """Return the rotation of pairs of channels that ends in `node`: x * cosine + quarter turn of x * sine.

    x is a product of weights, and its quarter turn one of the same weights with the columns (a, b) as (-b, a).
    """
    found = []
    for name in node.input:
        scaled = parts.node(name, "Mul")
        product = None if scaled is None else parts.node(scaled.input[0], "MatMul")
        if scaled is None or product is None:
            return None
        found.append((product, parts.constant(product.input[1]), parts.constant(scaled.input[1])))
    (product, weights, cosine), (turned, turned_weights, sine) = found
    if weights is None or turned_weights is None or cosine is None or sine is None:
        return None
    if product.input[0] != turned.input[0] or not np.array_equal(turned_weights, quarter_turn(weights)):
        return None
    if not all(each.ndim == 2 and (each[:, 0::2] == each[:, 1::2]).all() for each in (cosine, sine)):
        return None
    start, *tables = (f"{node.output[0]}/{name}" for name in ("start", "cosine", "sine"))
    parts.graph.initializer.append(numpy_helper.from_array(np.zeros(1, np.int64), start))
    for name, table in zip(tables, (cosine, sine), strict=True):
        parts.graph.initializer.append(numpy_helper.from_array(np.ascontiguousarray(table[:, 0::2]), name))
    return helper.make_node(
        "RotaryEmbedding",
        [product.output[0], start, *tables],
        list(node.output),
        name=f"{node.output[0]}/rotation",
        domain=DOMAIN,
        interleaved=1,
    )


def quarter_turn(weights: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Turn each pair of columns (a, b) into (-b, a)."""
    turned = np.empty_like(weights)
    turned[:, 0::2] = -weights[:, 1::2]
    turned[:, 1::2] = weights[:, 0::2]
    return turned


def _norm(parts: _Graph, node: onnx.NodeProto) -> onnx.NodeProto | None:
    """Return the norm that ends in `node`: points times 1 / sqrt(mean(points ** 2) + epsilon)."""
    points, divisor = node.input
    reciprocal = parts.node(divisor, "Reciprocal")
    root = None if reciprocal is None else parts.node(reciprocal.input[0], "Sqrt")
    added = None if root is None else parts.node(root.input[0], "Add")
    mean = None if added is None else parts.node(added.input[0], "ReduceMean")
    square = None if mean is None else parts.node(mean.input[0], "Pow")
    if added is None or mean is None or square is None or _attribute(mean, "axes") != [CHANNELS]:
        return None
    epsilon, power = parts.constant(added.input[1]), parts.constant(square.input[1])
    weights = parts.matrix(node.output[0])
    if epsilon is None or power is None or weights is None or parts.source(square.input[0]) != parts.source(points):
        return None
    if power.item() != 2 or not weights.ndim:
        return None
    ones = numpy_helper.from_array(np.ones(len(weights), weights.dtype), f"{node.output[0]}/ones")
    parts.graph.initializer.append(ones)
    return helper.make_node(
        "SimplifiedLayerNormalization",
        [points, ones.name],
        list(node.output),
        name=f"{node.output[0]}/norm",
        axis=-1,
        epsilon=epsilon.item(),
    )


def _attribute(node: onnx.NodeProto, name: str) -> Any:
    return next((helper.get_attribute_value(each) for each in node.attribute if each.name == name), None)

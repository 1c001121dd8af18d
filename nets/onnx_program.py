"""Writes an ONNX graph of a convolutional network as a sequence of operations for a forward pass without onnxruntime.

`write_program` walks through the nodes and calls a builder. A node is computed only when another node needs its result,
so that operations after a sum (norm, bias, activation) are folded into the operation that writes the sum:

* Convolutions of the same map are added up, a 1x1 one in the middle of a 3x3 one.
* dlshogi's second input is constant over the board: its convolution is a vector added to each point.
* A sum with an earlier map is written over that map.

`UnsupportedGraphError` reports a graph that cannot be written, and why.
"""

import enum
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Generic

import numpy as np
import numpy.typing as npt

from yomi.nets.forward_program import FloatArray, M, Norm, OnnxProgramBuilder, V, identity_norm
from yomi.nets.onnx_file import Node, OnnxGraph, UnsupportedGraphError


class Squash(enum.Enum):
    """The last operation of a graph on its value. The program omits it."""

    NONE = "none"
    SIGMOID = "sigmoid"
    TANH = "tanh"


@dataclass(frozen=True)
class Ends:
    """The names of a graph's inputs and outputs; None if the graph has no such input or output."""

    size: int  # N of the N × N boards
    planes: str
    policy: str | None
    policy_size: int
    value: str | None
    constants: str | None = None  # input whose channels are constant over the board
    channels: int = field(kw_only=True)  # channels of the planes
    extras: int = field(default=0, kw_only=True)  # channels of the constant input


@dataclass(eq=False)
class _Input:
    hands: bool


@dataclass(eq=False)
class _Points(Generic[M]):
    """A map that has already been computed."""

    map: M
    channels: int
    overwritten: bool = False


@dataclass(eq=False)
class _Sum(Generic[M]):
    """A map to be computed: (convolutions + hands + others) * scale + shift."""

    channels: int
    # Source and weights. Without a source the input is the planes.
    convs: list[tuple[_Points[M] | None, FloatArray]] = field(default_factory=list)
    hands: FloatArray | None = None  # weights [channels, extras] of the numbers that are not per point
    others: list[_Points[M]] = field(default_factory=list)
    scale: FloatArray = field(default_factory=lambda: np.ones(0, np.float32))
    shift: FloatArray = field(default_factory=lambda: np.zeros(0, np.float32))
    computed: _Points[M] | None = None

    def __post_init__(self) -> None:
        if self.scale.size == 0:
            self.scale = np.ones(self.channels, np.float32)
        if self.shift.size == 0:
            self.shift = np.zeros(self.channels, np.float32)


@dataclass(eq=False)
class _Flat(Generic[M]):
    """A map as a vector [channels * A], plus a bias."""

    points: _Sum[M] | _Points[M]
    bias: FloatArray


@dataclass(eq=False)
class _Means(Generic[V]):
    """The mean of each channel of a map."""

    pooled: V
    channels: int


@dataclass(eq=False)
class _Dense(Generic[V]):
    """A vector to be computed: source @ matrix + shift."""

    source: V
    matrix: FloatArray
    shift: FloatArray


@dataclass(eq=False)
class _Vector(Generic[V]):
    vector: V
    size: int


@dataclass(eq=False)
class _Squashed:
    of: Any
    kind: Squash


def write_program(graph: OnnxGraph, ends: Ends, builder: OnnxProgramBuilder[M, V]) -> Squash:
    """Call `builder` for each operation of a graph. Return the last operation on the value, which the caller must do.

    Args:
        graph: the whole graph of the file.
        ends: its inputs and outputs.
        builder: builder for the board's size, the planes and the constants.

    Raises:
        UnsupportedGraphError: a part of the graph cannot be written. The builder is then useless.
    """
    return _Writer(graph, ends, builder).write()


class _Writer(Generic[M, V]):
    def __init__(self, graph: OnnxGraph, ends: Ends, builder: OnnxProgramBuilder[M, V]) -> None:
        self._graph = graph
        self._ends = ends
        self._area = ends.size**2
        self._builder = builder
        self._uses = Counter(name for node in graph.nodes for name in node.inputs)
        self._values: dict[str, Any] = {ends.planes: _Input(False)}
        if ends.constants is not None:
            self._values[ends.constants] = _Input(True)
        self._readers: dict[str, Callable[[Node], Any]] = {
            "Add": self._add,
            "BatchNormalization": self._batch_norm,
            "Cast": self._same,
            "Constant": self._constant,
            "Conv": self._conv,
            "Dropout": self._same,
            "Flatten": self._flatten,
            "Gemm": self._gemm,
            "GlobalAveragePool": self._means,
            "Identity": self._same,
            "MatMul": self._matmul,
            "Mish": lambda node: self._activate(self._value(node), "mish"),
            "Mul": self._mul,
            "ReduceMean": self._means,
            "Relu": lambda node: self._activate(self._value(node), "relu"),
            "Reshape": self._flatten,
            "Sigmoid": lambda node: _Squashed(self._value(node), Squash.SIGMOID),
            "Squeeze": self._same_vector,
            "Tanh": lambda node: _Squashed(self._value(node), Squash.TANH),
            "Unsqueeze": self._same_vector,
        }

    def write(self) -> Squash:
        with np.errstate(all="ignore"):  # `_float` refuses infinite numbers
            for node in self._graph.nodes:
                read = self._readers.get(node.kind)
                if read is None:
                    raise UnsupportedGraphError(f"operator {node.kind[:40]} has no kernel")
                try:
                    self._values[node.outputs[0]] = read(node)
                except (IndexError, TypeError, ValueError, AttributeError) as error:
                    # No graph that an exporter writes: inputs are missing, or shapes and attributes do not fit.
                    if isinstance(error, UnsupportedGraphError):
                        raise
                    raise UnsupportedGraphError(f"{node.kind} has inputs or attributes that do not fit") from error
            if self._ends.policy is not None:
                self._write_policy(self._values.get(self._ends.policy))
            return Squash.NONE if self._ends.value is None else self._write_value(self._values.get(self._ends.value))

    def _write_policy(self, policy: Any) -> None:
        if isinstance(policy, _Sum | _Points):
            policy = _Flat(policy, np.zeros(policy.channels * self._area, np.float32))
        if not isinstance(policy, _Flat) or policy.bias.size != self._ends.policy_size:
            raise UnsupportedGraphError("the policy is not a map")
        self._builder.labels(self._points(policy.points).map, policy.bias)

    def _write_value(self, value: Any) -> Squash:
        squash = Squash.NONE
        if isinstance(value, _Squashed):
            value, squash = value.of, value.kind
        if not isinstance(value, _Dense | _Vector):
            raise UnsupportedGraphError("the value is not the output of a dense layer")
        vector = self._vector(value)
        _expect("the value", vector.size, 1)
        self._builder.value(vector.vector)
        return squash

    # Inputs of nodes

    def _value(self, node: Node, index: int = 0) -> Any:
        """Return an input of a node in its known form: an object of the classes above, or an array of weights."""
        name = node.inputs[index]
        if name in self._values:
            return self._values[name]
        if name in self._graph.weights:
            return _finite(node, self._graph.weights[name])
        raise UnsupportedGraphError(f"{node.kind} reads {name!r}, which nothing writes")

    def _weights(self, node: Node, index: int) -> FloatArray:
        value = self._value(node, index)
        if not isinstance(value, np.ndarray):
            raise UnsupportedGraphError(f"{node.kind} has weights that are computed")
        return value

    def _operands(self, node: Node) -> tuple[Any, Any]:
        """Return the two inputs of a commutative operator. If one of them is weights, it comes last."""
        left, right = self._value(node, 0), self._value(node, 1)
        return (right, left) if isinstance(left, np.ndarray) else (left, right)

    # Nodes

    def _same(self, node: Node) -> Any:
        if node.kind == "Cast" and node.attributes.get("to") not in (1, 10):
            raise UnsupportedGraphError(f"Cast to ONNX type {node.attributes.get('to')} has no kernel")
        return self._value(node)

    def _same_vector(self, node: Node) -> Any:
        value = self._value(node)
        if not isinstance(value, _Dense | _Vector | _Means | _Squashed):
            raise UnsupportedGraphError(f"{node.kind} of a map has no kernel")
        return value

    def _constant(self, node: Node) -> Any:
        value = node.attributes.get("value")
        if not isinstance(value, np.ndarray):
            raise UnsupportedGraphError("a Constant that is no tensor has no reader")
        return _finite(node, value)

    def _conv(self, node: Node) -> Any:
        source, weights = self._value(node), self._weights(node, 1)
        bias = self._weights(node, 2) if len(node.inputs) > 2 and node.inputs[2] else np.zeros(len(weights), np.float32)
        _expect("a bias", bias.shape, (len(weights),))
        # A 1x1 convolution of one point is a dense layer, as in squeeze and excitation.
        if isinstance(source, _Means | _Dense | _Vector):
            if weights.shape[2:] != (1, 1):
                raise UnsupportedGraphError("a convolution of means has more than one point")
            return self._dense(source, weights[:, :, 0, 0].T, bias)
        _check_conv(node, weights, self._ends.size, is_first=isinstance(source, _Input))
        if isinstance(source, _Input):
            _expect("weights", weights.shape[1], self._ends.extras if source.hands else self._ends.channels)
            if not source.hands:
                return _Sum(len(weights), convs=[(None, weights)], shift=bias)
            if weights.shape[2:] != (1, 1):
                raise UnsupportedGraphError("the second input has a convolution of more than one point")
            return _Sum(len(weights), hands=weights[:, :, 0, 0], shift=bias)
        points = self._points(source)
        _expect("weights", weights.shape[1], points.channels)
        return _Sum(len(weights), convs=[(points, weights)], shift=bias)

    def _batch_norm(self, node: Node) -> Any:
        gamma, beta, mean, variance = (self._weights(node, i).astype(np.float64) for i in range(1, 5))
        epsilon: Any = node.attributes.get("epsilon", 1e-5)
        scale = gamma / np.sqrt(variance + epsilon)
        value = self._value(node)
        # Other readers of the sum need it without this norm.
        value = self._points(value) if self._uses[node.inputs[0]] > 1 else value
        return self._scaled(value, scale, beta - mean * scale)

    def _scaled(self, value: Any, scale: npt.NDArray[Any], shift: npt.NDArray[Any]) -> _Sum[M]:
        """Return value * scale + shift, both [channels]."""
        made = self._sum(value)
        for factor in (scale, shift):
            _expect("a factor or term", factor.shape, (made.channels,))
        # Without an earlier map in the sum, the scale is multiplied into the weights and costs nothing.
        plain = made.scale * scale if made.others else np.ones(made.channels)
        factor = np.ones(made.channels) if made.others else scale
        return _Sum(
            made.channels,
            [(source, _float(weights * factor[:, None, None, None])) for source, weights in made.convs],
            None if made.hands is None else _float(made.hands * factor[:, None]),
            list(made.others),
            _float(plain),
            _float(made.shift * scale + shift),
        )

    def _add(self, node: Node) -> Any:
        left, right = self._operands(node)
        if isinstance(right, np.ndarray):
            return self._add_weights(left, right)
        if not isinstance(left, _Sum | _Points) or not isinstance(right, _Sum | _Points):
            raise UnsupportedGraphError("a sum of vectors has no kernel")
        # Two maps: their convolutions and earlier maps form one sum.
        parts = [self._unscaled(left), self._unscaled(right)]
        _expect("a sum", parts[1].channels, parts[0].channels)
        hands = [part.hands for part in parts if part.hands is not None]
        return _Sum(
            parts[0].channels,
            [conv for part in parts for conv in part.convs],
            _float(np.sum(hands, axis=0)) if hands else None,
            [other for part in parts for other in part.others],
            shift=parts[0].shift + parts[1].shift,
        )

    def _add_weights(self, value: Any, weights: FloatArray) -> Any:
        if isinstance(value, _Flat):
            return _Flat(value.points, value.bias + _broadcast(weights, value.bias.size))
        if isinstance(value, _Dense):
            return _Dense(value.source, value.matrix, value.shift + _broadcast(weights, value.shift.size))
        if not isinstance(value, _Sum | _Points):
            raise UnsupportedGraphError("a constant is added to neither a map nor a dense layer's output")
        if weights.size == value.channels * self._area:
            return _Flat(value, weights.reshape(-1))
        return self._scaled(value, np.ones(value.channels), _by_channel(weights, value.channels))

    def _mul(self, node: Node) -> Any:
        left, right = self._operands(node)
        if isinstance(right, np.ndarray):
            if not isinstance(left, _Sum | _Points):
                raise UnsupportedGraphError("a vector is multiplied by a constant")
            return self._scaled(left, _by_channel(right, left.channels), np.zeros(left.channels))
        if isinstance(left, _Squashed):
            left, right = right, left
        if not isinstance(right, _Squashed) or right.kind is not Squash.SIGMOID:
            raise UnsupportedGraphError("a product of two maps has no kernel")
        # x * sigmoid(x), as exporters write swish.
        if right.of is left:
            return self._activate(left, "silu")
        if not isinstance(left, _Sum | _Points) or not isinstance(right.of, _Dense):
            raise UnsupportedGraphError("a product with a sigmoid that is neither swish nor a gate has no kernel")
        # Squeeze and excitation: one gate for each channel.
        gates = self._activate(right.of, "sigmoid")
        _expect("gates", gates.size, left.channels)
        return _Points(self._builder.gate(self._points(left).map, gates.vector), left.channels)

    def _means(self, node: Node) -> Any:
        value = self._value(node)
        axes: Any = self._value(node, 1) if len(node.inputs) > 1 else node.attributes.get("axes", [])
        if node.kind == "ReduceMean" and sorted(axes) not in ([2, 3], [-2, -1]):
            raise UnsupportedGraphError("a mean over other axes than the board's has no kernel")
        if not isinstance(value, _Sum | _Points):
            raise UnsupportedGraphError("a mean of something else than a map has no kernel")
        # The builder pools sums and maxima; `_dense` divides the sums by the area.
        points = self._points(value)
        return _Means(self._builder.pool(points.map), points.channels)

    def _flatten(self, node: Node) -> Any:
        value = self._value(node)
        if isinstance(value, _Dense | _Vector | _Means | _Flat | _Squashed):
            return value
        size = value.channels * self._area if isinstance(value, _Sum | _Points) else 0
        if node.kind == "Reshape":
            shape = [int(number) for number in self._weights(node, 1)]
            good = len(shape) == 2 and shape[1] in (size, -1) and shape[0] != size
        else:
            good = node.attributes.get("axis", 1) == 1
        if not size or not good:
            raise UnsupportedGraphError(f"{node.kind} of something else than a map to a vector has no kernel")
        return _Flat(value, np.zeros(size, np.float32))

    def _gemm(self, node: Node) -> Any:
        attributes = node.attributes
        plain = (attributes.get("alpha", 1.0), attributes.get("beta", 1.0), attributes.get("transA", 0))
        if plain != (1.0, 1.0, 0):
            raise UnsupportedGraphError("Gemm with factors, or of a transposed input, has no kernel")
        matrix = self._weights(node, 1)
        matrix = matrix.T if attributes.get("transB", 0) else matrix
        bias = self._weights(node, 2) if len(node.inputs) > 2 else np.zeros(1, np.float32)
        return self._dense(self._value(node), matrix, _broadcast(bias, matrix.shape[1]))

    def _matmul(self, node: Node) -> Any:
        matrix = self._weights(node, 1)
        if matrix.ndim != 2:
            raise UnsupportedGraphError("MatMul by something else than a matrix has no kernel")
        return self._dense(self._value(node), matrix, np.zeros(matrix.shape[1], np.float32))

    def _dense(self, value: Any, matrix: FloatArray, shift: FloatArray) -> _Dense[V]:
        _expect("a matrix", (matrix.ndim, matrix.dtype.kind, matrix.size > 0), (2, "f", True))
        if isinstance(value, _Flat):
            _expect("a matrix", len(matrix), value.bias.size)
            flat = self._builder.flatten(self._points(value.points).map)
            return _Dense(flat, matrix, _float(shift + value.bias @ matrix))
        if isinstance(value, _Means):
            _expect("a matrix", len(matrix), value.channels)
            # Zeros for the maxima, which a mean does not read.
            both = np.concatenate([matrix / self._area, np.zeros_like(matrix)])
            return _Dense(value.pooled, _float(both), shift)
        if isinstance(value, _Dense | _Vector):
            vector = self._vector(value)
            _expect("a matrix", len(matrix), vector.size)
            return _Dense(vector.vector, matrix, shift)
        raise UnsupportedGraphError("a dense layer of something else than a vector has no kernel")

    # Computing

    def _activate(self, value: Any, activation: str) -> Any:
        if isinstance(value, _Dense):
            norm = np.ones(value.shift.size, np.float32), value.shift, activation
            return _Vector(self._builder.dense(value.source, value.matrix, norm), value.shift.size)
        if isinstance(value, _Sum | _Points):
            return self._compute(self._sum(value), activation)
        if isinstance(value, _Flat) and not value.bias.any():
            return _Flat(self._compute(self._sum(value.points), activation), value.bias)
        raise UnsupportedGraphError(f"{activation} of neither a map nor a dense layer's output has no kernel")

    def _vector(self, value: _Dense[V] | _Vector[V]) -> _Vector[V]:
        made = value if isinstance(value, _Vector) else self._activate(value, "identity")
        assert isinstance(made, _Vector)
        return made

    def _points(self, value: Any) -> _Points[M]:
        if isinstance(value, _Sum):
            # Computed at the first use, and once.
            if value.computed is None:
                value.computed = self._compute(value, "identity")
            value = value.computed
        if not isinstance(value, _Points):
            raise UnsupportedGraphError("a convolution of something else than a map has no kernel")
        return _whole(value)

    def _sum(self, value: Any) -> _Sum[M]:
        if isinstance(value, _Sum):
            return value if value.computed is None else _Sum(value.channels, others=[value.computed])
        if isinstance(value, _Points):
            return _Sum(value.channels, others=[value])
        raise UnsupportedGraphError("a norm of something else than a map has no kernel")

    def _unscaled(self, value: Any) -> _Sum[M]:
        # Only sums of scale 1 can be added to each other.
        made = self._sum(value)
        return made if (made.scale == 1.0).all() else self._sum(self._points(made))

    def _compute(self, made: _Sum[M], activation: str) -> _Points[M]:
        norm = made.scale, made.shift, activation
        sources: dict[int, tuple[_Points[M] | None, FloatArray]] = {}
        for source, weights in made.convs:
            before = sources.get(id(source))
            sources[id(source)] = (source, weights if before is None else _joined(before[1], weights))
        convs, others = list(sources.values()), list(made.others)
        if made.hands is not None or any(source is None for source, _ in convs):
            return self._compute_first(made, convs, norm)
        # The last convolution is written over another map, which must not be what it reads.
        last = next((conv for conv in convs if conv[0] not in others), None)
        for conv in convs:
            if conv is not last:
                others.append(self._convolve(conv, None, identity_norm(made.channels)))
        while len(others) > 1 and (last is not None or len(others) > 2):
            others.append(self._join(others.pop(0), others.pop(0), identity_norm(made.channels)))
        if last is None:
            return self._join(others[1] if len(others) > 1 else None, others[0], norm)
        return self._convolve(last, others[0] if others else None, norm)

    def _convolve(self, conv: tuple[_Points[M] | None, FloatArray], onto: _Points[M] | None, norm: Norm) -> _Points[M]:
        source, weights = conv
        assert source is not None
        if onto is None:
            return _Points(self._builder.conv(_whole(source).map, weights, norm), len(weights))
        # norm(convolution + onto) is written over `onto`.
        onto_map = _overwritten(onto)
        return _Points(self._builder.conv_onto(_whole(source).map, weights, onto_map, norm), len(weights))

    def _join(self, onto: _Points[M] | None, source: _Points[M], norm: Norm) -> _Points[M]:
        # norm(source + onto) is written over `onto`, if there is one.
        onto_map = None if onto is None else _overwritten(onto)
        return _Points(self._builder.join(_whole(source).map, onto_map, norm), source.channels)

    def _compute_first(
        self, made: _Sum[M], convs: list[tuple[_Points[M] | None, FloatArray]], norm: Norm
    ) -> _Points[M]:
        if len(convs) != 1 or convs[0][0] is not None or made.others:
            raise UnsupportedGraphError("a sum reads an input and something else")
        bias = None
        if made.hands is not None:
            bias = self._builder.dense(self._builder.globals_(), _float(made.hands.T), identity_norm(made.channels))
        return _Points(self._builder.first(convs[0][1], bias, norm), made.channels)


def _whole(points: _Points[M]) -> _Points[M]:
    """Return a map that is read next, after a check that no sum has been written over it.

    Raises:
        UnsupportedGraphError: a sum has been written over it.
    """
    if points.overwritten:
        # Residual networks have no other use for a map after its sum. Other graphs are refused.
        raise UnsupportedGraphError("a map is read again after a sum with it")
    return points


def _overwritten(points: _Points[M]) -> M:
    made = _whole(points).map
    points.overwritten = True
    return made


def _finite(node: Node, array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return the weights of a node, with floats as float32 and integers unchanged.

    Raises:
        UnsupportedGraphError: they are not finite.
    """
    if array.dtype.kind != "f":
        return array
    if not np.isfinite(array).all():
        raise UnsupportedGraphError(f"{node.kind} has weights that are not finite")
    return array.astype(np.float32)


def _check_conv(node: Node, weights: FloatArray, size: int, *, is_first: bool) -> None:
    """Check that a convolution keeps the board's size. On the planes it may have any odd size.

    Raises:
        UnsupportedGraphError: it does not, or is of another kind.
    """
    attributes = node.attributes
    _expect("weights", (weights.ndim, weights.dtype.kind, weights.size > 0), (4, "f", True))
    kernel = weights.shape[2:]
    if max(kernel) > 2 * size - 1:
        raise UnsupportedGraphError(f"a convolution of {'x'.join(map(str, kernel))} points has no kernel")
    if kernel not in ((1, 1), (3, 3)) and not (is_first and kernel[0] == kernel[1] and kernel[0] % 2):
        raise UnsupportedGraphError(f"a convolution of {'x'.join(map(str, kernel))} points has no kernel")
    if attributes.get("group", 1) != 1:
        raise UnsupportedGraphError(f"a convolution in {attributes['group']} groups has no kernel")
    for name in ("strides", "dilations"):
        if attributes.get(name, [1, 1]) != [1, 1]:
            raise UnsupportedGraphError(f"a convolution with {name} {attributes[name]} has no kernel")
    same = attributes.get("auto_pad", "NOTSET") in ("SAME_UPPER", "SAME_LOWER")
    if not same and attributes.get("pads", [0] * 4) != [kernel[0] // 2] * 4:
        raise UnsupportedGraphError(f"a convolution that does not yield boards of {size}x{size} has no kernel")


def _joined(left: FloatArray, right: FloatArray) -> FloatArray:
    """Return weights for the sum of two convolutions of the same map."""
    if left.shape[2:] != right.shape[2:]:
        # A 1x1 kernel becomes the middle of a 3x3 one.
        pad = ((0, 0), (0, 0), (1, 1), (1, 1))
        left, right = (np.pad(each, pad) if each.shape[2:] == (1, 1) else each for each in (left, right))
    return left + right


def _float(array: npt.NDArray[Any]) -> FloatArray:
    """Convert weights to float32.

    Raises:
        UnsupportedGraphError: they exceed its range.
    """
    made = np.ascontiguousarray(array, np.float32)
    if not np.isfinite(made).all():
        raise UnsupportedGraphError("weights beyond float32 have no kernel")
    return made


def _expect(name: str, found: object, expected: object) -> None:
    """Check that a size or shape is the expected one.

    Raises:
        UnsupportedGraphError: it differs.
    """
    # Kernels do not check the bounds of their arrays.
    if found != expected:
        raise UnsupportedGraphError(f"{name} of shape {found} found, expected {expected}")


def _broadcast(weights: FloatArray, size: int) -> FloatArray:
    """Return one weight, or `size` weights, as a vector.

    Raises:
        UnsupportedGraphError: the number of weights differs.
    """
    if weights.size not in (1, size):
        raise UnsupportedGraphError(f"a constant of shape {weights.shape} meets a vector of {size}")
    return _float(np.broadcast_to(weights.reshape(-1), (size,)))


def _by_channel(weights: FloatArray, channels: int) -> FloatArray:
    """Return weights of shape [..., channels, 1, 1], or one weight, as a vector.

    Raises:
        UnsupportedGraphError: the shape differs.
    """
    if weights.size != 1 and (weights.shape[-2:] != (1, 1) or weights.size != channels):
        raise UnsupportedGraphError(f"a constant of shape {weights.shape} meets a map of {channels} channels")
    return _broadcast(weights, channels)

"""Networks for shogi with random weights, for tests and measurements of speed."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import onnx
from onnx import TensorProto

from yomi.nets.dlshogi.network import ALPHAZERO_PLANES, AREA, DLSHOGI_EXTRAS, DLSHOGI_PLANES, SIDE, ShogiForm
from yomi.nets.files import write_atomically
from yomi.nets.graph_builder import GraphBuilder
from yomi.nets.metadata import ALPHAZERO_DIRECTIONS, DLSHOGI_DIRECTIONS

# The graphs resemble PyTorch's exports of dlshogi's networks: norms are folded into the preceding convolution, except
# for the first norm, which follows a sum of three.
# Width of the value head's dense layer.
_HIDDEN = 256


@dataclass(frozen=True)
class NetworkShape:
    blocks: int = 10
    channels: int = 192
    form: ShogiForm = ShogiForm.DLSHOGI
    extras: int = DLSHOGI_EXTRAS[0]  # channels of dlshogi's second input: 57 or 119
    activation: str = "relu"  # relu, or swish as Sigmoid and Mul
    half: bool = False  # whether everything is float16, including inputs and outputs
    folded: bool = True  # whether the blocks' norms are folded into their convolutions
    squeeze: int = 0  # hidden width of a squeeze-and-excitation in each block; 0 for none
    seed: int = 0

    @property
    def name(self) -> str:
        return f"resnet{self.blocks}x{self.channels}"


def write_network(path: str | Path, shape: NetworkShape) -> Path:
    """Write a network with random weights as an ONNX file and return its path.

    Raises:
        ValueError: the shape is impossible.
    """
    path = Path(path)
    write_atomically(path, make_model(shape).SerializeToString(deterministic=True))
    return path


def make_model(shape: NetworkShape) -> onnx.ModelProto:
    """Return a network with random weights.

    Raises:
        ValueError: the shape is impossible.
    """
    if shape.extras not in DLSHOGI_EXTRAS:
        raise ValueError(f"{shape.extras} channels of the second input found, expected 57 or 119")
    if shape.activation not in ("relu", "swish"):
        raise ValueError(f"activation {shape.activation!r} found, expected relu or swish")
    return _Writer(shape).model()


class _Writer:
    def __init__(self, shape: NetworkShape) -> None:
        self._shape = shape
        self._graph = GraphBuilder()
        self._rng = np.random.default_rng(shape.seed)
        self._dtype = np.float16 if shape.half else np.float32
        self._kind = TensorProto.FLOAT16 if shape.half else TensorProto.FLOAT

    def model(self) -> onnx.ModelProto:
        if self._shape.form is ShogiForm.ALPHAZERO:
            x, names = self._alphazero_input(), ("policy", "value")
        else:
            x, names = self._dlshogi_input(), ("output_policy", "output_value")
        for _ in range(self._shape.blocks):
            x = self._block(x)
        directions = ALPHAZERO_DIRECTIONS if self._shape.form is ShogiForm.ALPHAZERO else DLSHOGI_DIRECTIONS
        self._graph.output(self._policy(x, directions), names[0], ["batch_size", directions * AREA], self._kind)
        value = self._value(x, 1 if self._shape.form is ShogiForm.ALPHAZERO else DLSHOGI_DIRECTIONS)
        self._graph.output(value, names[1], ["batch_size", 1], self._kind)
        return self._graph.model(self._shape.name, {})

    def _dlshogi_input(self) -> str:
        channels, extras = self._shape.channels, self._shape.extras
        board = self._graph.input("input1", ["batch_size", DLSHOGI_PLANES, SIDE, SIDE], self._kind)
        hands = self._graph.input("input2", ["batch_size", extras, SIDE, SIDE], self._kind)
        wide = self._conv(board, DLSHOGI_PLANES, channels, 3, 4.0, bias=False)
        narrow = self._conv(board, DLSHOGI_PLANES, channels, 1, 4.0, bias=False)
        held = self._conv(hands, extras, channels, 1, 4.0, bias=False)
        joined = self._graph.op("Add", self._graph.op("Add", wide, narrow), held)
        return self._act(self._norm(joined, channels))

    def _alphazero_input(self) -> str:
        board = self._graph.input("input_1", ["batch_size", ALPHAZERO_PLANES, SIDE, SIDE], self._kind)
        return self._act(self._conv(board, ALPHAZERO_PLANES, self._shape.channels, 3, 4.0))

    def _block(self, x: str) -> str:
        width = self._shape.channels
        # Gains of 1 and 1/4 keep activations at the size of the inputs through all blocks.
        inner = self._act(self._conv_norm(x, 1.0))
        outer = self._conv_norm(inner, 0.25)
        if self._shape.squeeze:
            outer = self._graph.op("Mul", outer, self._excitation(outer, width, self._shape.squeeze))
        return self._act(self._graph.op("Add", outer, x))

    def _conv_norm(self, x: str, gain: float) -> str:
        width = self._shape.channels
        if self._shape.folded:
            return self._conv(x, width, width, 3, gain)
        return self._norm(self._conv(x, width, width, 3, gain, bias=False), width)

    def _excitation(self, x: str, width: int, hidden: int) -> str:
        means = self._graph.op("GlobalAveragePool", x)
        inner = self._graph.op("Relu", self._conv(means, width, hidden, 1, 1.0))
        return self._graph.op("Sigmoid", self._conv(inner, hidden, width, 1, 1.0))

    def _policy(self, x: str, directions: int) -> str:
        planes = self._conv(x, self._shape.channels, directions, 1, 1.0, bias=False)
        flat = self._graph.op("Flatten", planes, axis=1)
        return self._graph.op("Add", flat, self._constant(self._rng.normal(0.0, 0.3, directions * AREA)))

    def _value(self, x: str, planes: int) -> str:
        reduced = self._act(self._conv(x, self._shape.channels, planes, 1, 1.0))
        flat = self._graph.op("Flatten", reduced, axis=1)
        hidden = self._act(self._dense(flat, planes * AREA, _HIDDEN))
        raw = self._dense(hidden, _HIDDEN, 1)
        return self._graph.op("Tanh" if self._shape.form is ShogiForm.ALPHAZERO else "Sigmoid", raw)

    def _conv(self, x: str, inputs: int, outputs: int, kernel: int, gain: float, *, bias: bool = True) -> str:
        deviation = np.sqrt(2.0 * gain / (inputs * kernel**2))
        names = [x, self._constant(self._rng.normal(0.0, deviation, (outputs, inputs, kernel, kernel)))]
        if bias:
            names.append(self._constant(self._rng.normal(0.0, 0.1, outputs)))
        return self._graph.op("Conv", *names, kernel_shape=[kernel, kernel], pads=[kernel // 2] * 4)

    def _norm(self, x: str, width: int) -> str:
        rng = self._rng
        gamma, variance = rng.uniform(0.8, 1.2, width), rng.uniform(0.8, 1.2, width)
        beta, mean = rng.normal(0.0, 0.1, width), rng.normal(0.0, 0.1, width)
        constants = [self._constant(array) for array in (gamma, beta, mean, variance)]
        return self._graph.op("BatchNormalization", x, *constants, epsilon=1e-5)

    def _act(self, x: str) -> str:
        if self._shape.activation == "relu":
            return self._graph.op("Relu", x)
        return self._graph.op("Mul", x, self._graph.op("Sigmoid", x))

    def _dense(self, x: str, inputs: int, outputs: int) -> str:
        matrix = self._constant(self._rng.normal(0.0, np.sqrt(1.0 / inputs), (outputs, inputs)))
        return self._graph.op("Gemm", x, matrix, self._constant(self._rng.normal(0.0, 0.1, outputs)), transB=1)

    def _constant(self, array: npt.NDArray[np.float64]) -> str:
        return self._graph.constant(array, self._dtype)

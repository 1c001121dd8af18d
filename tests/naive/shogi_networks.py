"""Networks for shogi with random weights in all forms that ONNX files have."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto

from yomi.nets.dlshogi.network import ALPHAZERO_PLANES, SIDE, ShogiForm
from yomi.nets.dlshogi.random_network import RandomNetwork
from yomi.nets.files import write_atomically
from yomi.nets.metadata import ALPHAZERO_DIRECTIONS


@dataclass(frozen=True)
class NetworkShape:
    blocks: int
    channels: int
    form: ShogiForm = ShogiForm.DLSHOGI
    extras: int = RandomNetwork.extras  # channels of dlshogi's second input: 57 or 119
    activation: str = "relu"  # relu, or swish as Sigmoid and Mul
    half: bool = False  # whether everything is float16, including inputs and outputs
    folded: bool = True  # whether the blocks' norms are folded into their convolutions
    squeeze: int = 0  # hidden width of a squeeze-and-excitation in each block; 0 for none
    seed: int = 0


def write_network(path: Path, shape: NetworkShape) -> Path:
    write_atomically(path, make_model(shape).SerializeToString(deterministic=True))
    return path


def make_model(shape: NetworkShape) -> onnx.ModelProto:
    kind = _AlphaZero if shape.form is ShogiForm.ALPHAZERO else _Network
    return kind(shape).model()


class _Network(RandomNetwork):
    def __init__(self, shape: NetworkShape) -> None:
        super().__init__(shape.blocks, shape.channels, shape.seed)
        self.shape, self.extras = shape, shape.extras
        if shape.half:
            self.dtype, self.kind = np.float16, TensorProto.FLOAT16

    def inner_conv(self, x: str, gain: float) -> str:
        if self.shape.folded:
            return super().inner_conv(x, gain)
        return self.norm(self.conv(x, self.channels, self.channels, 3, gain, bias=False))

    def outer_conv(self, x: str) -> str:
        outer, hidden = super().outer_conv(x), self.shape.squeeze
        if not hidden:
            return outer
        inner = self.graph.op("GlobalAveragePool", outer)
        inner = self.graph.op("Relu", self.conv(inner, self.channels, hidden, 1, 1.0))
        gate = self.graph.op("Sigmoid", self.conv(inner, hidden, self.channels, 1, 1.0))
        return self.graph.op("Mul", outer, gate)

    def act(self, x: str) -> str:
        if self.shape.activation == "relu":
            return super().act(x)
        return self.graph.op("Mul", x, self.graph.op("Sigmoid", x))


class _AlphaZero(_Network):
    outputs = "policy", "value"
    directions, value_planes = ALPHAZERO_DIRECTIONS, 1
    squash = "Tanh"

    def first(self) -> str:
        board = self.graph.input("input_1", ["batch_size", ALPHAZERO_PLANES, SIDE, SIDE], self.kind)
        return self.act(self.conv(board, ALPHAZERO_PLANES, self.channels, 3, 4.0))

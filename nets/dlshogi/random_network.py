"""Shogi networks with random weights, for measurements of speed and trials of devices.

The graphs resemble PyTorch's exports of dlshogi's networks: norms are folded into the preceding convolution, except for
the first norm, which follows a sum of three.
"""

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
from onnx import TensorProto

from yomi.nets.dlshogi.network import AREA, DLSHOGI_EXTRAS, DLSHOGI_PLANES, SIDE
from yomi.nets.files import write_atomically
from yomi.nets.graph_builder import GraphBuilder
from yomi.nets.metadata import DLSHOGI_DIRECTIONS

HIDDEN = 256  # width of the value head's dense layer


def write_network(path: Path, blocks: int, channels: int) -> Path:
    write_atomically(path, RandomNetwork(blocks, channels).model().SerializeToString(deterministic=True))
    return path


class RandomNetwork:
    """A network in dlshogi's form. Equal shapes have equal weights. Tests have subclasses for other forms."""

    outputs = "output_policy", "output_value"
    directions = value_planes = DLSHOGI_DIRECTIONS
    extras = DLSHOGI_EXTRAS[0]  # channels of the second input
    squash = "Sigmoid"
    dtype: npt.DTypeLike = np.float32
    kind: int = TensorProto.FLOAT

    def __init__(self, blocks: int, channels: int, seed: int = 0) -> None:
        self.blocks, self.channels = blocks, channels
        self.graph, self.rng = GraphBuilder(), np.random.default_rng(seed)

    def model(self) -> onnx.ModelProto:
        x = self.first()
        for _ in range(self.blocks):
            # Gains of 1 and 1/4 keep activations at the size of the inputs through all blocks.
            inner = self.act(self.inner_conv(x, 1.0))
            x = self.act(self.graph.op("Add", self.outer_conv(inner), x))
        policy, value = self.outputs
        labels = self.directions * AREA
        self.graph.output(self.policy(x), policy, ["batch_size", labels], self.kind)
        self.graph.output(self.value(x), value, ["batch_size", 1], self.kind)
        return self.graph.model(f"resnet{self.blocks}x{self.channels}", {})

    def first(self) -> str:
        channels, extras = self.channels, self.extras
        board = self.graph.input("input1", ["batch_size", DLSHOGI_PLANES, SIDE, SIDE], self.kind)
        hands = self.graph.input("input2", ["batch_size", extras, SIDE, SIDE], self.kind)
        wide = self.conv(board, DLSHOGI_PLANES, channels, 3, 4.0, bias=False)
        narrow = self.conv(board, DLSHOGI_PLANES, channels, 1, 4.0, bias=False)
        held = self.conv(hands, extras, channels, 1, 4.0, bias=False)
        return self.act(self.norm(self.graph.op("Add", self.graph.op("Add", wide, narrow), held)))

    def inner_conv(self, x: str, gain: float) -> str:
        return self.conv(x, self.channels, self.channels, 3, gain)

    def outer_conv(self, x: str) -> str:
        return self.inner_conv(x, 0.25)

    def policy(self, x: str) -> str:
        planes = self.conv(x, self.channels, self.directions, 1, 1.0, bias=False)
        flat = self.graph.op("Flatten", planes, axis=1)
        return self.graph.op("Add", flat, self.constant(self.rng.normal(0.0, 0.3, self.directions * AREA)))

    def value(self, x: str) -> str:
        reduced = self.act(self.conv(x, self.channels, self.value_planes, 1, 1.0))
        flat = self.graph.op("Flatten", reduced, axis=1)
        hidden = self.act(self.dense(flat, self.value_planes * AREA, HIDDEN))
        return self.graph.op(self.squash, self.dense(hidden, HIDDEN, 1))

    def conv(self, x: str, inputs: int, outputs: int, kernel: int, gain: float, *, bias: bool = True) -> str:
        deviation = np.sqrt(2.0 * gain / (inputs * kernel**2))
        names = [x, self.constant(self.rng.normal(0.0, deviation, (outputs, inputs, kernel, kernel)))]
        if bias:
            names.append(self.constant(self.rng.normal(0.0, 0.1, outputs)))
        return self.graph.op("Conv", *names, kernel_shape=[kernel, kernel], pads=[kernel // 2] * 4)

    def norm(self, x: str) -> str:
        rng, width = self.rng, self.channels
        gamma, variance = rng.uniform(0.8, 1.2, width), rng.uniform(0.8, 1.2, width)
        beta, mean = rng.normal(0.0, 0.1, width), rng.normal(0.0, 0.1, width)
        constants = [self.constant(array) for array in (gamma, beta, mean, variance)]
        return self.graph.op("BatchNormalization", x, *constants, epsilon=1e-5)

    def act(self, x: str) -> str:
        return self.graph.op("Relu", x)

    def dense(self, x: str, inputs: int, outputs: int) -> str:
        matrix = self.constant(self.rng.normal(0.0, np.sqrt(1.0 / inputs), (outputs, inputs)))
        return self.graph.op("Gemm", x, matrix, self.constant(self.rng.normal(0.0, 0.1, outputs)), transB=1)

    def constant(self, array: npt.NDArray[Any]) -> str:
        return self.graph.constant(array, self.dtype)

"""Small ONNX files of Aya's and COSUMI's networks, as yomi.nets.definitions.export writes them, with random
weights.
"""

from pathlib import Path

import numpy as np
import onnx

from yomi.nets.graph_builder import GraphBuilder
from yomi.nets.metadata import NetworkInfo, feature_set

FILTERS = 8


def write_aya_policy(folder: Path) -> Path:
    """Write a policy network for all boards."""
    net = _Net("aya-49", 0)
    hidden = net.relu(net.conv(net.relu(net.conv(net.planes, 49, FILTERS, 5)), FILTERS, FILTERS, 3))
    return net.write(folder, {"policy": net.flat(net.conv(hidden, FILTERS, 1, 3))})


def write_aya_value(folder: Path, size: int) -> Path:
    """Write a value network for boards of `size`."""
    net = _Net("aya-50", size)
    hidden = net.relu(net.conv(net.relu(net.conv(net.planes, 50, FILTERS, 5)), FILTERS, FILTERS, 1))
    dense = net.relu(net.dense(net.flat(hidden), FILTERS * size**2, 16))
    return net.write(folder, {"value": net.graph.op("Tanh", net.dense(dense, 16, 1))})


def write_cosumi(folder: Path, size: int, planes: int = 3) -> Path:
    """Write a stack of convolutions without padding for boards of `size`."""
    net = _Net("cosumi-3" if planes == 3 else "go-stones-2", size)
    hidden = net.relu(net.conv(net.planes, planes, FILTERS, 3, padded=False))
    points = net.conv(hidden, FILTERS, 1, 1)
    return net.write(folder, {"score": net.flat(net.graph.op("GlobalAveragePool", points))})


class _Net:
    def __init__(self, features: str, size: int) -> None:
        self.graph = GraphBuilder()
        self._features, self._size = feature_set(features), size
        self._random = np.random.default_rng(5)
        sides: list[int | str] = [size, size] if size else ["height", "width"]
        self.planes = self.graph.input("planes", ["batch_size", self._features.planes, *sides])

    def _weights(self, *shape: int) -> str:
        scale = (2.0 / np.prod(shape[1:])) ** 0.5
        return self.graph.constant(scale * self._random.standard_normal(shape))

    def _bias(self, count: int) -> str:
        return self.graph.constant(0.1 * self._random.standard_normal(count))

    def conv(self, x: str, inputs: int, outputs: int, kernel: int, *, padded: bool = True) -> str:
        pads = [kernel // 2 if padded else 0] * 4
        weights = self._weights(outputs, inputs, kernel, kernel), self._bias(outputs)
        return self.graph.op("Conv", x, *weights, kernel_shape=[kernel, kernel], pads=pads)

    def relu(self, x: str) -> str:
        return self.graph.op("Relu", x)

    def flat(self, x: str) -> str:
        return self.graph.op("Flatten", x, axis=1)

    def dense(self, x: str, inputs: int, outputs: int) -> str:
        return self.graph.op("Gemm", x, self._weights(outputs, inputs), self._bias(outputs), transB=1)

    def write(self, folder: Path, outputs: dict[str, str]) -> Path:
        for name, tensor in outputs.items():
            length: int | str = 1 if name != "policy" else "moves"
            self.graph.output(tensor, name, ["batch_size", length])
        info = NetworkInfo(
            game="go",
            board_size=self._size,
            feature_set=self._features.name,
            name="small",
            source_file="",
            source_sha256="",
            model_version=0,
            policy_channels=1,
            misc_channels=0,
            outputs=dict.fromkeys(outputs, "numbers"),
        )
        path = folder / f"{self._features.name}.onnx"
        onnx.save(self.graph.model(info.name, info.to_props()), path)
        return path

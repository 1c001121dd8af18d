"""Networks for Othello: ONNX files of yomi that see two planes and say policy and value."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from tests.games.othello.kernels import PLANES, othello_spec
from yomi.engine.evaluators.network import Feed, PolicyValueFormat
from yomi.nets.errors import NetworkError
from yomi.nets.metadata import FEATURE_SETS, BoardSize, FeatureSet, NetworkInfo
from yomi.nets.onnx_program import Ends

if TYPE_CHECKING:
    from typing import Self

    from yomi.nets.load import NetworkFile

FEATURES = "othello-2"
FEATURE_SETS[FEATURES] = FeatureSet(FEATURES, "othello", PLANES)


class OthelloNetwork(PolicyValueFormat):
    """`planes` [B, 2, N, N]; `policy` [B, N * N] as logits, without the pass, and `value` [B, 1] in [-1, 1]."""

    title = "a network for Othello"

    @classmethod
    def recognise(cls, file: NetworkFile, size: BoardSize) -> Self | None:
        """See Format."""
        if file.info is None or file.feature_set != FEATURES:
            return None
        info = file.describe()
        assert isinstance(size, int)
        if info.board_size != size:
            raise NetworkError(f"{file.path}: made for boards of size {info.board_size}, expected size {size}")
        spec, ends = othello_spec(size), Ends(size, "planes", "policy", size**2, "value", channels=PLANES)
        return cls(file.path, info, spec, ends, (Feed("planes", spec.planes_shape),))


FORMATS = (OthelloNetwork,)


def write_network(path: Path, size: int, channels: int = 8, blocks: int = 2, seed: int = 1) -> Path:
    """Write a residual network with random weights for boards of a size, and return its path."""
    from yomi.nets.graph_builder import GraphBuilder

    rng, graph = np.random.default_rng(seed), GraphBuilder()

    def conv(x: str, inputs: int, outputs: int, kernel: int) -> str:
        weights = rng.standard_normal((outputs, inputs, kernel, kernel)) * np.sqrt(2.0 / (inputs * kernel**2))
        return graph.op("Conv", x, graph.constant(weights), pads=[kernel // 2] * 4)

    x = graph.op("Relu", conv(graph.input("planes", ["batch_size", PLANES, size, size]), PLANES, channels, 3))
    for _ in range(blocks):
        inner = graph.op("Relu", conv(x, channels, channels, 3))
        x = graph.op("Relu", graph.op("Add", conv(inner, channels, channels, 3), x))
    last = graph.constant(rng.standard_normal((size**2, 1)) * 0.3 / size)
    value = graph.op("Tanh", graph.op("MatMul", graph.op("Flatten", conv(x, channels, 1, 1)), last))
    graph.output(graph.op("Flatten", conv(x, channels, 1, 1)), "policy", ["batch_size", size**2])
    graph.output(value, "value", ["batch_size", 1])
    info = NetworkInfo("othello", size, FEATURES, f"random {blocks}x{channels}", "", "", 0, 1, 0)
    path.write_bytes(graph.model(info.name, info.to_props()).SerializeToString())
    return path

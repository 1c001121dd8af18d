"""Networks for Go with random weights, of KataGo's plain kind: a benchmark needs only their size."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from yomi.nets.files import write_atomically
from yomi.nets.katago import network as katago
from yomi.nets.katago.onnx_export import export_onnx
from yomi.nets.katago.outputs import describe

VERSION = 8
# As in KataGo's networks of 10 blocks × 128 channels.
HEAD_CHANNELS, VALUE_WIDTH = 32, 64
SEED = 1
GAINS = {"conv2": 0.3}  # of the sums that blocks add to the trunk


class _Weights:
    """Random weights that keep activations near 1."""

    def __init__(self) -> None:
        self._rng = np.random.default_rng(SEED)

    def records(self, kind: type, layout: str, kernel: int, **sizes: int) -> dict[str, Any]:
        """Return the records of a layout, whose convolutions have a kernel, by field."""
        return {
            name: self.record(record, name, kernel, *(factor * sizes[letter] for factor, letter in letters))
            for name, record, letters in katago.entries(kind, layout)
        }

    def record(self, kind: str, name: str, kernel: int, inputs: int = 0, outputs: int = 0) -> Any:
        draw = self._rng.standard_normal
        match kind:
            case "Conv":
                scale = GAINS.get(name, 1.0) * np.sqrt(2.0 / (inputs * kernel**2))
                return katago.Conv(name, (scale * draw((outputs, inputs, kernel, kernel))).astype(np.float32))
            case "MatMul":
                return katago.MatMul(name, (draw((inputs, outputs)) / np.sqrt(inputs)).astype(np.float32))
            case "MatBias":
                return katago.MatBias(name, np.zeros(inputs, np.float32))
            case "BatchNorm":
                zeros, ones = np.zeros(inputs, np.float32), np.ones(inputs, np.float32)
                return katago.BatchNorm(name, zeros, ones, ones, (0.1 * draw(inputs)).astype(np.float32), 1e-5)
        return katago.Activation.RELU


def make_go_network(blocks: int, channels: int) -> katago.KataGoNetwork:
    """Return a network with random weights. The same shape gives the same weights."""
    w, head = _Weights(), HEAD_CHANNELS
    sizes = {"c": channels, "m": channels}
    trunk = katago.Trunk(
        conv=w.record("Conv", "conv1", 5, katago.SPATIAL_CHANNELS, channels),
        matmul=w.record("MatMul", "ginputw", 0, katago.GLOBAL_CHANNELS, channels),
        meta_encoder=None,
        blocks=tuple(
            katago.OrdinaryBlock(f"block{number}", **w.records(katago.OrdinaryBlock, katago.ORDINARY, 3, **sizes))
            for number in range(blocks)
        ),
        tip_norm=w.record("BatchNorm", "norm", 0, channels),
        tip_act=katago.Activation.RELU,
    )
    heads = {"c": channels, "p": head, "g": head, "v": head, "h": VALUE_WIDTH, "o": 1, "r": 3, "s": 4}
    layout = f"{katago.POLICY}, {katago.OLD_PASS}"
    policy = katago.PolicyHead(**katago.NO_PASS_LAYER | w.records(katago.PolicyHead, layout, 1, **heads))
    value = katago.ValueHead(**w.records(katago.ValueHead, katago.VALUE, 1, **heads))
    name, scales = f"random-b{blocks}c{channels}", katago.OutputScales()
    return katago.KataGoNetwork(name, VERSION, scales, False, trunk, policy, value)


def write_go_network(path: Path, size: int, blocks: int, channels: int) -> Path:
    """Write a network with random weights as an ONNX file for boards of `size`, and return its path."""
    network = make_go_network(blocks, channels)
    info = describe(network, size, path.name, "0" * 64)
    write_atomically(path, export_onnx(network, size, info.to_props()).SerializeToString(deterministic=True))
    return path

"""Small networks with random weights, as files, evaluators of them, and runs of ONNX graphs."""

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime

from tests.naive.katago_networks import RandomNetworks
from yomi.engine.evaluators.devices import parse_device
from yomi.engine.evaluators.network import NetworkEvaluator, open_network
from yomi.engine.go.networks import FORMATS as GO
from yomi.engine.shogi.networks import FORMATS as SHOGI
from yomi.nets.dlshogi.network import SIDE
from yomi.nets.katago.write import write_network


def write_small_network(folder: Path) -> Path:
    """Write a KataGo network of three blocks into `folder` and return its path."""
    path = folder / "small.bin"
    path.write_bytes(write_network(RandomNetworks(14, seed=3).network(["ordinary", "gpool", "bottleneck"])))
    return path


def load_go(path: Path | str, size: int, device: str = "cpu", *how: Any, **options: Any) -> NetworkEvaluator:
    """Return an evaluator of a network for Go; see `FileFormat.load`."""
    return open_network(GO, path, size).load(parse_device(device), *how, **options)


def load_shogi(path: Path | str, device: str = "cpu", *how: Any, **options: Any) -> NetworkEvaluator:
    """Return an evaluator of a network for shogi; see `FileFormat.load`."""
    return open_network(SHOGI, path, SIDE).load(parse_device(device), *how, **options)


def raw_shogi(evaluator: NetworkEvaluator, planes: np.ndarray, extras: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return logits [B, P] and values [B] as the network has them."""
    policy, values = evaluator.run(planes, extras)
    return policy.reshape(len(policy), -1), values[:, 0]


def run_onnx(model: onnx.ModelProto, **inputs: np.ndarray) -> dict[str, np.ndarray]:
    """Return the outputs of a graph by name."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(names, inputs), strict=True))

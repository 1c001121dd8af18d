"""Facts about a shogi network from its graph: its size, and whether yomi's own kernels can compute it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from yomi.nets.dlshogi.network import ShogiNetwork
from yomi.nets.onnx_graph import OnnxGraph, UnsupportedGraphError, read_onnx_graph
from yomi.nets.onnx_program import write_program

_ACTIVATIONS = ("Relu", "Sigmoid", "Mish", "HardSigmoid", "HardSwish", "Elu", "LeakyRelu", "Gelu")


class _Nobody:
    """A builder that builds nothing."""

    def __getattr__(self, name: str) -> Callable[..., None]:
        return lambda *arguments: None


def unsupported(graph: OnnxGraph, network: ShogiNetwork) -> str | None:
    """Return why yomi's own kernels cannot compute a graph, or None if they can."""
    builder: Any = _Nobody()
    try:
        write_program(graph, network.ends, builder)
    except UnsupportedGraphError as error:
        return str(error)
    return None


def graph_facts(path: Path, network: ShogiNetwork) -> list[tuple[str, str]]:
    """Return names and values of a graph's properties as text. For a graph that cannot be read, only the reason.

    A block is two 3×3 convolutions between equal numbers of channels, as in the residual networks of this family.

    Raises:
        NetworkError: the file is damaged.
    """
    try:
        graph = read_onnx_graph(path)
    except UnsupportedGraphError as error:
        return [_computed_by(str(error))]
    shapes = [
        graph.weights[node.inputs[1]].shape
        for node in graph.nodes
        if node.kind == "Conv" and len(node.inputs) > 1 and node.inputs[1] in graph.weights
    ]
    wide = [shape for shape in shapes if shape[2:] == (3, 3)]
    channels = wide[0][0] if wide else 0
    blocks = sum(shape[:2] == (channels, channels) for shape in wide) // 2
    counts = Counter(node.kind for node in graph.nodes)
    # The value's own sigmoid stands alone.
    kinds = [kind for kind in _ACTIVATIONS if counts[kind] > 1]
    parameters = sum(array.size for array in graph.weights.values() if array.dtype.kind == "f")
    precisions = sorted({str(array.dtype) for array in graph.weights.values() if array.dtype.kind == "f"})
    return [
        ("blocks", str(blocks)),
        ("channels", str(channels)),
        ("activations", ", ".join(kinds) or "none"),
        ("parameters", f"{parameters:,} ({', '.join(precisions)})"),
        _computed_by(unsupported(graph, network)),
    ]


def _computed_by(reason: str | None) -> tuple[str, str]:
    """Return the fact about what computes a graph, given why yomi's own kernels cannot."""
    return "computed by", "own kernels on the CPU, or onnxruntime" if reason is None else f"onnxruntime ({reason})"

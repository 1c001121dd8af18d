"""ONNX files of trained networks, written node by node from the graph that torch.fx traces.

PyTorch's exporters need packages that nothing else here needs, and their operators vary by version. yomi's kernels read
the operators written here. For KataGo-style Go networks see `yomi.nets.definitions.katago`.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import onnx
import torch
from torch import fx, nn

from yomi.nets.definitions.base import Network, to_numpy
from yomi.nets.errors import NetworkError
from yomi.nets.features import DLSHOGI_DIRECTIONS, feature_set
from yomi.nets.graph_builder import GraphBuilder
from yomi.nets.metadata import NetworkInfo

DLSHOGI_NAMES = {"planes": "input1", "globals": "input2", "policy": "output_policy", "value_logit": "output_value"}
"""dlshogi's names of inputs and outputs, by which its networks are recognised."""
_MEANINGS = {
    "policy": "[B, P] logits",
    "value": "[B, 1] in [-1, 1]",
    "value_logit": "[B, 1] probability to win for the side to move",
    "score": "[B, 1] points by which the side to move leads without komi",
}


def describe(network: Network, name: str, training: Mapping[str, str]) -> NetworkInfo:
    """Return a network's metadata. It has no source file, since it was trained here."""
    names = DLSHOGI_NAMES if network.feature_set.startswith("dlshogi") else {}
    return describe_outputs(network, name, training, _output_kinds(network), names)


def describe_outputs(
    network: Network, name: str, training: Mapping[str, str], outputs: Iterable[str], names: Mapping[str, str]
) -> NetworkInfo:
    """Return the descriptions of known outputs, by their names in the file."""
    features = feature_set(network.feature_set)
    return NetworkInfo(
        game=features.game,
        board_size=network.board_size,
        feature_set=features.name,
        name=name,
        source_file="",
        source_sha256="",
        model_version=0,
        policy_channels=DLSHOGI_DIRECTIONS if names is DLSHOGI_NAMES else 1,
        misc_channels=0,
        outputs={names.get(kind, kind): _MEANINGS.get(kind, "raw") for kind in outputs},
        training=dict(training),
    )


def _output_kinds(network: Network) -> list[str]:
    outputs = fx.Tracer().trace(network).output_node().args[0]
    if not isinstance(outputs, dict):
        raise NetworkError(f"{type(network).__name__}: outputs without names found, expected a dict")
    return list(outputs)


def export_onnx(network: Network, name: str, training: Mapping[str, str]) -> onnx.ModelProto:
    """Return the network as an ONNX model with yomi's metadata. It computes the same as in evaluation mode.

    Raises:
        NetworkError: a part of the network is unknown.
    """
    return _Writer(network.eval(), name, training).model()


def can_export(network: Network) -> bool:
    """Whether `export_onnx` knows all parts of a user's network."""
    try:
        _Writer(network.eval(), "tried", {}).model()
    except Exception:  # while it is traced, a network's own code may raise anything
        return False
    return True


class _Writer:
    def __init__(self, network: Network, name: str, training: Mapping[str, str]) -> None:
        self._network = network
        self._info = describe(network, name, training)
        self._names = DLSHOGI_NAMES if network.feature_set.startswith("dlshogi") else {}
        self._graph = GraphBuilder()
        self._values: dict[fx.Node, str] = {}
        self._modules = dict(network.named_modules())
        self._writers: dict[type[nn.Module], Callable[[Any, str], str]] = {
            nn.BatchNorm2d: self._batch_norm,
            nn.Conv2d: self._conv,
            nn.Linear: self._linear,
            nn.ReLU: lambda module, x: self._graph.op("Relu", x),
            nn.SiLU: lambda module, x: self._graph.op("Mul", x, self._graph.op("Sigmoid", x)),
            nn.Tanh: lambda module, x: self._graph.op("Tanh", x),
        }

    def model(self) -> onnx.ModelProto:
        for node in fx.Tracer().trace(self._network).nodes:
            if node.op == "output":
                for kind, value in node.args[0].items():
                    self._output(kind, self._values[value])
            elif node.op != "placeholder" or node.users:
                self._values[node] = self._write(node)
        return self._graph.model(self._info.name, self._info.to_props())

    def _write(self, node: fx.Node) -> str:
        if node.op == "placeholder":
            return self._input(node)
        if node.op == "get_attr":
            return self._graph.constant(to_numpy(_attribute(self._network, str(node.target))))
        inputs = [self._values[value] for value in node.args if isinstance(value, fx.Node)]
        if node.op == "call_module":
            module = self._modules[str(node.target)]
            if type(module) in self._writers:
                return self._writers[type(module)](module, inputs[0])
            raise NetworkError(f"{type(module).__name__}: no ONNX writer found for this module")
        if node.target is operator.add and len(inputs) == 2:
            return self._graph.op("Add", *inputs)
        if node.target == "flatten" and node.args[1:] == (1,):
            return self._graph.op("Flatten", inputs[0], axis=1)
        if node.target == "mean" and node.args[1:] == ((2, 3),):
            return self._graph.op("Flatten", self._graph.op("GlobalAveragePool", inputs[0]), axis=1)
        raise NetworkError(f"{node.target}: no ONNX writer found for this operation")

    def _input(self, node: fx.Node) -> str:
        features = feature_set(self._network.feature_set)
        size = self._network.board_size
        sides: list[int | str] = [size, size] if size else ["height", "width"]
        first = node.name == "planes"
        kind = "planes" if first else "globals"
        return self._graph.input(
            self._names.get(kind, kind), ["batch_size", features.planes if first else features.extras, *sides]
        )

    def _output(self, kind: str, tensor: str) -> None:
        if kind == "value_logit":
            tensor = self._graph.op("Sigmoid", tensor)
        size = self._network.board_size
        with torch.no_grad():
            length: int | str = self._sample()[kind].shape[1] if size or kind != "policy" else "moves"
        self._graph.output(tensor, self._names.get(kind, kind), ["batch_size", length])

    def _sample(self) -> Any:
        """Return the outputs for an empty board."""
        features = feature_set(self._network.feature_set)
        size = self._network.board_size or 9
        parameter = next(self._network.parameters())
        planes = parameter.new_zeros((1, features.planes, size, size))
        return self._network(planes, parameter.new_zeros((1, features.extras, 1, 1)))

    def _conv(self, module: nn.Conv2d, x: str) -> str:
        weights = [self._graph.constant(to_numpy(module.weight))]
        if module.bias is not None:
            weights.append(self._graph.constant(to_numpy(module.bias)))
        kernel, padding = list(module.kernel_size), [*module.padding, *module.padding]
        return self._graph.op("Conv", x, *weights, kernel_shape=kernel, pads=padding)

    def _batch_norm(self, module: nn.BatchNorm2d, x: str) -> str:
        parts = (module.weight, module.bias, module.running_mean, module.running_var)
        constants = [self._graph.constant(to_numpy(part)) for part in parts]
        return self._graph.op("BatchNormalization", x, *constants, epsilon=module.eps)

    def _linear(self, module: nn.Linear, x: str) -> str:
        weights = [self._graph.constant(to_numpy(part)) for part in (module.weight, module.bias)]
        return self._graph.op("Gemm", x, *weights, transB=1)


def _attribute(network: nn.Module, path: str) -> Any:
    """Return an attribute by its dotted path."""
    return operator.attrgetter(path)(network)

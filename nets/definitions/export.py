"""Writes trained networks: KataGo's format for Go, safetensors for sparse networks, otherwise ONNX."""

import contextlib
import copy
import dataclasses
import gzip
import importlib.util
import operator
import tempfile
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import onnx
import torch
from torch import Tensor, fx, nn

from yomi.errors import one_line
from yomi.nets.definitions.base import DLSHOGI_NAMES, Network, describe_outputs, to_numpy
from yomi.nets.definitions.catalog import NETWORKS
from yomi.nets.definitions.go import GoNetwork
from yomi.nets.definitions.katago import to_katago
from yomi.nets.definitions.sparse import SparseShogi, export_sparse
from yomi.nets.errors import NetworkError
from yomi.nets.files import write_atomically
from yomi.nets.graph_builder import GraphBuilder
from yomi.nets.installation import missing_line
from yomi.nets.katago.network import OutputScales
from yomi.nets.katago.write import write_network
from yomi.nets.metadata import KATAGO_FEATURES, feature_set


def export_onnx(network: Network, name: str, training: Mapping[str, str]) -> onnx.ModelProto:
    """Return the network as an ONNX model with yomi's metadata. It computes the same as the network in evaluation mode.

    Raises:
        NetworkError: a part of the network is unknown.
    """
    return _Writer(network.eval(), name, training).model()


class _Writer:
    def __init__(self, network: Network, name: str, training: Mapping[str, str]) -> None:
        self._network, self._traced = network, fx.Tracer().trace(network)
        self._names = DLSHOGI_NAMES if network.feature_set.startswith("dlshogi") else {}
        outputs = self._traced.output_node().args[0]
        if not isinstance(outputs, dict):
            raise NetworkError(f"{type(network).__name__}: outputs without names found, expected a dict")
        self._info = describe_outputs(network, name, training, list(outputs), self._names)
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
        for node in self._traced.nodes:
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
            return self._graph.constant(to_numpy(operator.attrgetter(str(node.target))(self._network)))
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
        # The length of an output is found by evaluating an empty board.
        with torch.no_grad():
            length: int | str = self._sample()[kind].shape[1] if size or kind != "policy" else "moves"
        self._graph.output(tensor, self._names.get(kind, kind), ["batch_size", length])

    def _sample(self) -> Any:
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


# ONNX files are written node by node from the graph that torch.fx traces. PyTorch's exporter needs packages that
# nothing else here needs, and its operators vary by version. yomi's kernels read the operators written here. Networks
# with unknown parts go through PyTorch's exporter anyway. yomi plays with such files if a network in the catalogue has
# the same features and outputs.
_KATAGO_NAMES = {"planes": "spatial", "globals": "global", "outcome": "value"}
_KATAGO_OUTPUTS = {"policy", "outcome", "misc", "ownership"}
# KataGo's version for reading the misc outputs, by their number.
_VERSIONS = {4: 8, 6: 15}


class _Named(nn.Module):
    """A network whose outputs have the names and order that players expect in a file."""

    def __init__(self, network: Network, kinds: list[str], *, katago: bool) -> None:
        super().__init__()
        self.network = network
        self.kinds = kinds
        self.katago = katago

    def forward(self, planes: Tensor, globals_: Tensor | None = None) -> tuple[Tensor, ...]:
        if globals_ is None:  # its features have none
            globals_ = planes.new_zeros((planes.shape[0], 0, 1, 1))
        elif self.katago:
            globals_ = globals_[:, :, None, None]
        outputs = self.network(planes, globals_)
        if self.katago:
            outputs["policy"] = outputs["policy"][:, None]
        return tuple(outputs[kind].sigmoid() if kind == "value_logit" else outputs[kind] for kind in self.kinds)


def export_by_torch(network: Network, name: str, training: Mapping[str, str]) -> onnx.ModelProto:
    """Return any network as an ONNX model with yomi's metadata. It computes the same as the network in evaluation mode.

    Raises:
        NetworkError: onnxscript is not installed.
    """
    if importlib.util.find_spec("onnxscript") is None:
        raise NetworkError(missing_line("onnxscript", f"{name}: a network of one's own"))
    network = copy.deepcopy(network).eval().cpu()
    features = feature_set(network.feature_set)
    side = network.board_size or 9
    planes, globals_ = torch.zeros(2, features.planes, side, side), torch.zeros(2, features.extras, 1, 1)
    with torch.no_grad():
        outputs = network(planes, globals_)
    if not isinstance(outputs, dict):
        raise NetworkError(
            f"{name}: outputs of type {type(outputs).__name__} found, expected a dict of tensors by name"
        )
    # Go networks with these outputs get the form of converted KataGo networks.
    katago = features.name == KATAGO_FEATURES and set(outputs) >= _KATAGO_OUTPUTS
    names = _KATAGO_NAMES if katago else DLSHOGI_NAMES if features.name.startswith("dlshogi") else {}
    info = describe_outputs(network, name, training, list(outputs), names)
    if names is DLSHOGI_NAMES:
        globals_ = globals_.expand(-1, -1, side, side)  # dlshogi's file has them on all points
    if katago:
        globals_ = globals_[:, :, 0, 0]
        misc = outputs["misc"].shape[1]
        if misc not in _VERSIONS:
            raise NetworkError(f"{name}: {misc} misc outputs found, expected 4 or 6")
        scales = dataclasses.asdict(OutputScales())
        info = dataclasses.replace(info, model_version=_VERSIONS[misc], misc_channels=misc, scales=scales)
    batch = torch.export.Dim("batch_size")
    size = torch.export.Dim("size", min=2) if network.board_size == 0 else None
    wide = {0: batch, **({2: size, 3: size} if size is not None else {})}
    inputs = [("planes", planes, wide)]
    if features.extras:
        inputs.append(("globals", globals_, {0: batch}))
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # PyTorch warns of its own future changes
        path = Path(folder) / "net.onnx"
        try:
            torch.onnx.export(
                _Named(network, list(outputs), katago=katago),
                tuple(sample for _, sample, _ in inputs),
                path,
                input_names=[names.get(kind, kind) for kind, _, _ in inputs],
                output_names=[names.get(kind, kind) for kind in outputs],
                dynamic_shapes=tuple(shape for _, _, shape in inputs),
                dynamo=True,
                external_data=False,
                verbose=False,
            )
        except torch.onnx.OnnxExporterError as error:
            why = one_line(str(error.__cause__ or error))
            raise NetworkError(f"{name}: PyTorch cannot export it to ONNX: {why}") from error
        model = onnx.load(path)
    onnx.helper.set_model_props(model, info.to_props())
    return model


def export_file(network: Network, name: str, folder: Path, training: Mapping[str, str]) -> Path:
    """Write NAME.bin.gz, NAME.safetensors or NAME.onnx into a folder and return its path.

    Args:
        network: the trained network. Afterwards it is in evaluation mode.
        name: name of the network and the file.
        folder: must exist.
        training: origin of the weights, as text. KataGo's format has no field for it.

    Raises:
        NetworkError: a user's network has a part that cannot be written, the exporter is not installed, or a sparse
            network does not fit 16 bits.
        OSError: the file cannot be written.
    """
    network.eval()
    if isinstance(network, GoNetwork):
        path = folder / f"{name}.bin.gz"
        content = gzip.compress(write_network(to_katago(network, name)), 6, mtime=0)
    elif isinstance(network, SparseShogi):
        path = folder / f"{name}.safetensors"
        content = export_sparse(network, name, training)
    else:
        path = folder / f"{name}.onnx"
        content = _to_onnx(network, name, training).SerializeToString(deterministic=True)
    write_atomically(path, content)
    return path


def _to_onnx(network: Network, name: str, training: Mapping[str, str]) -> onnx.ModelProto:
    if type(network) in NETWORKS.values():
        return export_onnx(network, name, training)
    # Our kernels read only what our exporter writes. Own networks for Go need the form of KataGo's, which it does not.
    if network.feature_set != KATAGO_FEATURES:
        with contextlib.suppress(Exception):  # while it is traced, a network's own code may raise anything
            return export_onnx(network, name, training)
    return export_by_torch(network, name, training)

"""ONNX files of networks outside the catalogue, written by PyTorch's own exporter.

It needs onnxscript, which nothing else here does. yomi plays with such files if their features and outputs are those of
a network in the catalogue. Go networks (`katago-v7`: policy [B, N * N + 1], outcome, misc, ownership) get the form of
converted KataGo networks.
"""

from __future__ import annotations

import copy
import dataclasses
import importlib.util
import tempfile
import warnings
from collections.abc import Mapping
from pathlib import Path

import onnx
import torch
from torch import Tensor, nn

from yomi.nets.definitions.base import Network
from yomi.nets.definitions.onnx_export import DLSHOGI_NAMES, describe_outputs
from yomi.nets.errors import NetworkError
from yomi.nets.features import feature_set
from yomi.nets.installation import missing_line
from yomi.nets.katago.network import OutputScales
from yomi.nets.metadata import KATAGO_FEATURES

_KATAGO_NAMES = {"planes": "spatial", "globals": "global", "outcome": "value"}
_KATAGO_OUTPUTS = {"policy", "outcome", "misc", "ownership"}
_VERSIONS = {4: 8, 6: 15}
"""KataGo's version for reading the misc outputs, by their number."""


class _Named(nn.Module):
    """A network with the file's outputs, in the fixed order that players expect."""

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
    """Return any network as an ONNX model with yomi's metadata. It computes the same as in evaluation mode.

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
        warnings.simplefilter("ignore")  # PyTorch's own, of what it will drop
        path = Path(folder) / "net.onnx"
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
        model = onnx.load(path)
    onnx.helper.set_model_props(model, info.to_props())
    return model

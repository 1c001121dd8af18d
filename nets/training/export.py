"""Export a trained network: KataGo's format for Go, safetensors for sparse networks, otherwise ONNX."""

from __future__ import annotations

import gzip
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from yomi.nets.definitions.base import Network
from yomi.nets.definitions.catalog import NETWORKS
from yomi.nets.definitions.go import GoNetwork
from yomi.nets.definitions.katago import to_katago
from yomi.nets.definitions.onnx_export import can_export, export_onnx
from yomi.nets.definitions.sparse import SparseNetwork
from yomi.nets.definitions.sparse_export import export_sparse
from yomi.nets.definitions.torch_export import export_by_torch
from yomi.nets.files import write_atomically
from yomi.nets.katago.write import write_network

if TYPE_CHECKING:
    import onnx


def export_file(network: Network, name: str, folder: Path, training: Mapping[str, str]) -> Path:
    """Write NAME.bin.gz, NAME.safetensors or NAME.onnx into a folder and return its path.

    Args:
        network: the trained network. Afterwards it is in evaluation mode.
        name: of the network and the file.
        folder: must exist.
        training: origin of the weights, as text. KataGo's format has no place for it.

    Raises:
        NetworkError: a user's network has a part that cannot be written, the exporter is not installed, or a sparse
            network does not fit 16 bits.
        OSError: the file cannot be written.
    """
    network.eval()
    if isinstance(network, GoNetwork):
        path = folder / f"{name}.bin.gz"
        content = gzip.compress(write_network(to_katago(network, name)), 6, mtime=0)
    elif isinstance(network, SparseNetwork):
        path = folder / f"{name}.safetensors"
        content = export_sparse(network, name, training)
    else:
        path = folder / f"{name}.onnx"
        content = _to_onnx(network, name, training).SerializeToString(deterministic=True)
    write_atomically(path, content)
    return path


def _to_onnx(network: Network, name: str, training: Mapping[str, str]) -> onnx.ModelProto:
    """Return a model by our exporter, whose files our kernels read, or by PyTorch's if parts are unknown to ours."""
    if type(network) in NETWORKS.values() or can_export(network):
        return export_onnx(network, name, training)
    return export_by_torch(network, name, training)

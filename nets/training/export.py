"""From a trained network to the file that plays: KataGo's format for Go's network, ONNX for all others."""

from __future__ import annotations

import gzip
from collections.abc import Mapping
from pathlib import Path

from nets.definitions.base import Network
from nets.definitions.go import GoNetwork
from nets.definitions.katago import to_katago
from nets.definitions.onnx_export import export_onnx
from nets.files import write_atomically
from nets.katago.write import write_network


def export_file(network: Network, name: str, folder: Path, training: Mapping[str, str]) -> Path:
    """Write NAME.bin.gz or NAME.onnx into a folder and return its path.

    Args:
        network: trained; it computes as in evaluation afterwards.
        name: of the network and the file.
        folder: exists.
        training: where the weights come from, in words; KataGo's format has no place for it.

    Raises:
        OSError: it cannot be written.
    """
    network.eval()
    if isinstance(network, GoNetwork):
        path = folder / f"{name}.bin.gz"
        content = gzip.compress(write_network(to_katago(network, name)), 6, mtime=0)
    else:
        path = folder / f"{name}.onnx"
        content = export_onnx(network, name, training).SerializeToString(deterministic=True)
    write_atomically(path, content)
    return path

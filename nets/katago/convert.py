"""Convert a KataGo network file to ONNX with metadata."""

from __future__ import annotations

from pathlib import Path

from yomi.nets.errors import NetworkError
from yomi.nets.katago.description import describe
from yomi.nets.katago.file import read_network
from yomi.nets.katago.onnx_export import MAX_BOARD_SIZE, MIN_BOARD_SIZE, export_onnx
from yomi.nets.metadata import NetworkInfo


def convert(path: Path, board_size: int, source_sha256: str) -> tuple[bytes, NetworkInfo]:
    """Return the ONNX file made from a KataGo network file for one board size, and its metadata.

    Raises:
        NetworkError: the file is broken, or the board size is out of range.
    """
    if not MIN_BOARD_SIZE <= board_size <= MAX_BOARD_SIZE:
        raise NetworkError(f"board size {board_size} found, expected {MIN_BOARD_SIZE} to {MAX_BOARD_SIZE}")
    network = read_network(path)
    info = describe(network, board_size, path.name, source_sha256)
    return export_onnx(network, board_size, info.to_props()).SerializeToString(deterministic=True), info

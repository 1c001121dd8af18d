"""KataGo network file to ONNX file content, with the metadata that describes it."""

from __future__ import annotations

import dataclasses
from pathlib import Path

from nets.errors import NetworkError
from nets.katago.file import read_network
from nets.katago.network import KataGoNetwork
from nets.katago.onnx_export import MAX_BOARD_SIZE, MIN_BOARD_SIZE, export_onnx
from nets.metadata import KATAGO_CONVERTER_VERSION, KATAGO_FEATURES, NetworkInfo

_OUTPUTS = {
    "policy": "[B, policy_channels, N * N + 1] logits, row by row from the top, pass last; ordinary, then optimistic",
    "value": "[B, 3] logits: the side to move wins, loses, no result",
    "misc": "[B, misc_channels] raw: score mean, score stdev, lead, variance time, short-term value and score errors",
    "ownership": "[B, N * N] before tanh, positive for the side to move",
}


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


def describe(network: KataGoNetwork, board_size: int, source_file: str, source_sha256: str) -> NetworkInfo:
    """Return the metadata of a network exported for `board_size`."""
    return NetworkInfo(
        game="go",
        board_size=board_size,
        feature_set=KATAGO_FEATURES,
        name=network.name,
        source_file=source_file,
        source_sha256=source_sha256,
        model_version=network.version,
        policy_channels=min(2, network.policy_channels),
        misc_channels=network.misc_channels,
        prefer_pass_alive_under_suicide_rules=network.prefer_pass_alive_under_suicide_rules,
        scales=dataclasses.asdict(network.scales),
        outputs=_OUTPUTS,
        training={"source": "KataGo network file"},
        converter_version=KATAGO_CONVERTER_VERSION,
    )

"""All networks by their name in configurations."""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from yomi.nets.definitions.aya import AyaPolicy, AyaValue
from yomi.nets.definitions.base import Network, check_options
from yomi.nets.definitions.cosumi import ScoreResidual, ScoreStack
from yomi.nets.definitions.go import GoNetwork
from yomi.nets.definitions.shogi import AlphaZeroShogi, DlshogiResNet
from yomi.nets.definitions.sparse import SparseShogi
from yomi.nets.errors import NetworkError

NETWORKS: dict[str, type[Network]] = {
    "alphazero-shogi": AlphaZeroShogi,
    "aya-policy": AyaPolicy,
    "aya-value": AyaValue,
    "cosumi-residual": ScoreResidual,
    "cosumi-stack": ScoreStack,
    "dlshogi-resnet": DlshogiResNet,
    "go": GoNetwork,
    "sparse-shogi": SparseShogi,
}


def make(kind: str, options: Mapping[str, Any], folder: Path = Path(".")) -> Network:
    """Return a new network with random weights (from PyTorch's generator).

    Args:
        kind: a name in NETWORKS, or `FILE.py:CLASS` for your own subclass of Network. The file is executed.
        options: arguments of the class.
        folder: that FILE.py is relative to.

    Raises:
        NetworkError: the network, an option or a value is unknown.
    """
    network = _own(kind, folder) if ".py:" in kind else NETWORKS.get(kind)
    if network is None:
        raise NetworkError(f"network {kind!r} found, expected one of {', '.join(NETWORKS)}, or FILE.py:CLASS")
    check_options(f"network {kind}", network, options)
    return network(**options)


def _own(kind: str, folder: Path) -> type[Network]:
    """Return a class from a user's file. Errors of the file are not caught."""
    name, _, class_name = kind.rpartition(":")
    path = folder / name
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None or not path.is_file():
        raise NetworkError(f"network {kind!r}: no file {path} found, expected one of Python")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    network = getattr(module, class_name, None)
    if not isinstance(network, type) or not issubclass(network, Network):
        raise NetworkError(f"{path}: {class_name} = {network!r} found, expected a class below {Network.__qualname__}")
    return network

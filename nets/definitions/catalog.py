"""A table of all networks by their names in configurations, and the network with which a training starts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from yomi.errors import reraised
from yomi.nets.definitions.aya_cosumi import AyaPolicy, AyaValue, ScoreResidual, ScoreStack
from yomi.nets.definitions.base import Network, check_options
from yomi.nets.definitions.board import BoardResNet
from yomi.nets.definitions.go import GoNetwork
from yomi.nets.definitions.katago import from_katago
from yomi.nets.definitions.shogi import AlphaZeroShogi, DlshogiResNet
from yomi.nets.definitions.sparse import SparseShogi, from_sparse
from yomi.nets.errors import NetworkError
from yomi.nets.katago.file import read_network
from yomi.nets.sparse import read_sparse
from yomi.nets.user_files import PythonFileError, is_in_file, load_object

if TYPE_CHECKING:
    from yomi.nets.training.config import Config

NETWORKS: dict[str, type[Network]] = {
    "alphazero-shogi": AlphaZeroShogi,
    "aya-policy": AyaPolicy,
    "aya-value": AyaValue,
    "board-resnet": BoardResNet,
    "cosumi-residual": ScoreResidual,
    "cosumi-stack": ScoreStack,
    "dlshogi-resnet": DlshogiResNet,
    "go": GoNetwork,
    "sparse-shogi": SparseShogi,
}


def make(kind: str, options: Mapping[str, Any], folder: Path = Path(".")) -> Network:
    """Return a new network. PyTorch's generator draws its random weights.

    Args:
        kind: a name in NETWORKS, or `FILE.py:CLASS` for your own subclass of Network. The file is executed.
        options: arguments of the class.
        folder: folder to which FILE.py is relative.

    Raises:
        NetworkError: the network, an option or a value is unknown.
    """
    network = _own(kind, folder) if is_in_file(kind) else NETWORKS.get(kind)
    if network is None:
        raise NetworkError(f"network {kind!r} found, expected one of {', '.join(NETWORKS)}, or FILE.py:CLASS")
    check_options(f"network {kind}", network, options)
    return network(**options)


def _own(kind: str, folder: Path) -> type[Network]:
    with reraised(PythonFileError, NetworkError, f"network {kind!r}: "):
        network = load_object(kind, folder)
    if not isinstance(network, type) or not issubclass(network, Network):
        raise NetworkError(f"network {kind!r}: {network!r} found, expected a class below {Network.__qualname__}")
    return network


# Functions that read a network's file for further training, by kind (yomi.nets.training.config).
STARTS: dict[str, Callable[[Path], Network]] = {
    "go": lambda path: from_katago(read_network(path)),
    "sparse-shogi": lambda path: from_sparse(read_sparse(path)),
}


def first_network(config: Config) -> Network:
    """Return the network of a configuration as it is before training.

    Raises:
        NetworkError: the network is unknown, or its file cannot be used.
    """
    if not config.start:
        return make(config.kind, config.options, config.folder)
    path = config.folder / config.start
    with reraised(OSError, NetworkError, f"[network] start: {path}: cannot be read: "):
        return STARTS[config.kind](path)

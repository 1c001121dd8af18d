"""The network that a training starts with: a new network, or one from a file."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from yomi.nets.definitions.catalog import make
from yomi.nets.definitions.katago import from_katago
from yomi.nets.definitions.sparse_export import from_sparse
from yomi.nets.errors import NetworkError
from yomi.nets.katago.file import read_network
from yomi.nets.sparse.file import read_sparse

if TYPE_CHECKING:
    from yomi.nets.definitions.base import Network
    from yomi.nets.training.config import Config

STARTS: dict[str, Callable[[Path], Network]] = {
    "go": lambda path: from_katago(read_network(path)),
    "sparse-shogi": lambda path: from_sparse(read_sparse(path)),
}
"""Functions that read a network's file for further training, by kind (yomi.nets.training.config)."""


def first_network(config: Config) -> Network:
    """Return a configuration's network before any training.

    Raises:
        NetworkError: the network is unknown, or its file cannot be used.
    """
    if not config.start:
        return make(config.kind, config.options, config.folder)
    path = config.folder / config.start
    try:
        return STARTS[config.kind](path)
    except OSError as error:
        raise NetworkError(f"[network] start: {path}: cannot be read: {error.strerror or error}") from None

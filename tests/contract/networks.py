"""A small KataGo network with random weights, as a file."""

from __future__ import annotations

from pathlib import Path

from nets.katago.write import write_network
from tests.naive.katago_networks import RandomNetworks


def write_small_network(folder: Path) -> Path:
    """Write a network of three blocks into `folder` and return its path."""
    path = folder / "small.bin"
    path.write_bytes(write_network(RandomNetworks(14, seed=3).network(["ordinary", "gpool", "bottleneck"])))
    return path

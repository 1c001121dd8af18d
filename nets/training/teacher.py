"""A teacher network whose trunk after each block is a target for the trunk of the network that is trained.

The trunk tells a network of the same shape far more about a position than the outputs do: channels × points for each
block, where a policy is one number a point.
"""

from __future__ import annotations

from pathlib import Path

import torch
from torch import Tensor

from yomi.nets.definitions.base import Network
from yomi.nets.definitions.go import GoNetwork
from yomi.nets.definitions.katago import from_katago
from yomi.nets.errors import NetworkError
from yomi.nets.katago.file import read_network
from yomi.nets.training.tensors import Example


class Teacher:
    """A KataGo network that is not trained."""

    def __init__(self, path: Path, learner: Network, device: torch.device) -> None:
        """Read the network.

        Raises:
            NetworkError: it cannot be read, or its trunk has another shape than the trained network's.
        """
        self._network = from_katago(read_network(path)).requires_grad_(False).eval()
        if not isinstance(learner, GoNetwork):
            raise NetworkError(f"[teacher] network = {str(path)!r} found, expected none but for a network of kind go")
        own, other = ((len(each.blocks), each.conv.out_channels) for each in (learner, self._network))
        if own != other:
            raise NetworkError(
                f"{path}: {other[0]} blocks of {other[1]} channels found, expected the learner's {own[0]} of {own[1]}"
            )
        self._network.to(device, memory_format=torch.channels_last)

    def maps(self, example: Example) -> list[Tensor]:
        """Return the trunk after each block [B, C, N, N]."""
        found: list[Tensor] = []
        with torch.no_grad():
            self._network(*example.inputs, maps=found)
        return found

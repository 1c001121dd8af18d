"""What all evaluators of networks share, of either game and whatever computes them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

from native.spec import Inputs

if TYPE_CHECKING:
    from native.calls import Calls
    from native.tree.arrays import Batch
    from nets.metadata import NetworkInfo


class NetworkEvaluator(ABC):
    """A network on a device."""

    inputs = Inputs.NUMBERS
    backend: str
    """What computes the network: native kernels, onnxruntime, TensorRT."""

    def __init__(self, info: NetworkInfo, device: str, batch_size: int, precision: str) -> None:
        """Hold what every backend needs.

        Args:
            info: what is known of the network.
            device: where it computes: cpu, cuda or tensorrt, the latter two with or without a number.
            batch_size: rows of a batch at which it is fastest.
            precision: what it computes with: fp32, int16, fp16.
        """
        self.info = info
        self.device = device
        self.batch_size = batch_size
        self.precision = precision
        self.why = ""
        """What keeps our own kernels from computing it, in a few words; empty where nothing does, or nobody asked."""

    @property
    def description(self) -> str:
        """The network's name, the device, the backend and the precision."""
        return f"{self.info.name} on {self.device} ({self.backend}, {self.precision})"

    @abstractmethod
    def evaluate(self, batch: Batch, rows: int) -> None:
        """Write logits, values and ownership of the first `rows` rows."""

    def bind(self, batch: Batch) -> Calls | None:
        """Return None: only a backend of kernels can be called without Python."""
        return None

    @abstractmethod
    def close(self) -> None:
        """Release the device; nothing may be called afterwards."""

"""What all evaluators of networks for shogi share, whatever computes them."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import numpy.typing as npt

from engine.evaluators.base import EvaluatorError
from engine.evaluators.network import NetworkEvaluator
from native.tree.arrays import VALUE
from nets.dlshogi.network import SIDE

if TYPE_CHECKING:
    from native.tree.arrays import Batch
    from nets.dlshogi.network import ShogiNetwork
    from nets.metadata import NetworkInfo

FloatArray: TypeAlias = npt.NDArray[np.float32]


class ShogiEvaluator(NetworkEvaluator):
    """A network of dlshogi's or AlphaZero's form. `evaluate` may be called by several threads at once."""

    def __init__(self, network: ShogiNetwork, info: NetworkInfo, device: str, batch_size: int, precision: str) -> None:
        """Hold what every backend needs: the outside of the file, and what the base class holds."""
        super().__init__(info, device, batch_size, precision)
        self.network = network
        self.spec_features = (int(network.form), network.extras)
        """Form and length of the extras, which decide the game's sizes for the search (`native.shogi.spec`)."""

    @abstractmethod
    def run(self, planes: FloatArray, extras: FloatArray, logits: FloatArray) -> FloatArray:
        """Write policy logits [B, policy_size] and return the network's values [B] as they are.

        Args:
            planes: [B, 62 or 45, 9, 9].
            extras: [B, 57, 119 or 0]: the channels of dlshogi's second input, each one number.
            logits: [B, policy_size], written.

        The GIL is released where it takes long.
        """

    def evaluate(self, batch: Batch, rows: int) -> None:
        """Write logits and values of the first `rows` rows; shogi has no score and no ownership."""
        values = self.run(batch.planes[:rows], batch.extras[:rows], batch.logits[:rows])
        batch.values[:rows] = 0.0
        batch.values[:rows, VALUE] = self.network.signed(values)

    def check(self) -> None:
        """Evaluate an empty board, and see whether the value is what the form says.

        Raises:
            EvaluatorError: it is not, or a logit is not a number.
        """
        planes = np.zeros((1, self.network.planes, SIDE, SIDE), np.float32)
        logits = np.empty((1, self.network.policy_size), np.float32)
        value = float(self.run(planes, np.zeros((1, self.network.extras), np.float32), logits)[0])
        least = 0.0 if self.network.is_chance else -1.0
        if not least <= value <= 1.0:
            raise EvaluatorError(
                f"{self.info.source_file}: value {value:g} for an empty board found, expected {least:g} to 1"
            )
        if not np.isfinite(logits).all():
            raise EvaluatorError(f"{self.info.source_file}: logits that are not finite found, expected numbers")

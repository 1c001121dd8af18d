"""Networks for shogi of dlshogi's and AlphaZero's forms."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from yomi.engine.evaluators.base import EvaluatorError
from yomi.engine.evaluators.network import Feed
from yomi.engine.evaluators.policy_value import PolicyValueFormat
from yomi.native.shogi.spec import shogi_spec
from yomi.nets.load import prepare_shogi

if TYPE_CHECKING:
    from typing import Self

    from yomi.engine.evaluators.network import FloatArray
    from yomi.nets.dlshogi.network import ShogiNetwork
    from yomi.nets.load import NetworkFile
    from yomi.nets.metadata import NetworkInfo


class Dlshogi(PolicyValueFormat):
    """dlshogi's two inputs, or AlphaZero's one; policy [directions * 81] and value."""

    title = "a network for shogi (dlshogi ONNX)"

    def __init__(self, path: Path, network: ShogiNetwork, info: NetworkInfo) -> None:
        """Describe a file.

        Args:
            path: an ONNX file.
            network: its outside.
            info: what is known of it.
        """
        # dlshogi's second input is constant over the board; AlphaZero's form has counts among its planes.
        feeds = tuple(
            Feed(tensor.name, tensor.shape[1:], tensor.element_type, constant=tensor is network.hands)
            for tensor in (network.board, network.hands)
            if tensor is not None and tensor.shape is not None
        )
        super().__init__(path, info, shogi_spec(int(network.form), network.extras), network.ends, feeds)
        self.is_chance = network.is_chance
        self.fixed_rows = network.fixed_rows

    @classmethod
    def recognise(cls, file: NetworkFile, size: int) -> Self | None:
        """See Format."""
        return cls(file.path, *prepare_shogi(file.path)) if file.game == "shogi" else None

    def check(self, outputs: Sequence[FloatArray]) -> None:
        """See that the value is what the form says."""
        value = float(outputs[1][0, 0])
        least = 0.0 if self.is_chance else -1.0
        if not least <= value <= 1.0:
            name = self.info.source_file
            raise EvaluatorError(f"{name}: value {value:g} for an empty board found, expected {least:g} to 1")
        super().check(outputs)

"""Networks in dlshogi's and AlphaZero's form."""

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
        """Describe an ONNX file by its inputs and outputs (`network`) and its metadata."""
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
        return cls(file.path, *prepare_shogi(file.path)) if file.game == "shogi" else None

    def check(self, outputs: Sequence[FloatArray]) -> None:
        # The value's range depends on the form: a winrate, or -1 to 1.
        value = float(outputs[1][0, 0])
        least = 0.0 if self.is_chance else -1.0
        if not least <= value <= 1.0:
            name = self.info.source_file
            raise EvaluatorError(f"{name}: value {value:g} for an empty board found, expected {least:g} to 1")
        super().check(outputs)

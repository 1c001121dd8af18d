"""Networks for shogi of dlshogi's and AlphaZero's forms."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine.evaluators.base import EvaluatorError, UnsupportedError
from engine.evaluators.network import Feed, Format
from native.forward.builder import ProgramBuilder
from native.forward.squash import SQUASHES
from native.shogi.outputs import decode, decode_rows
from native.shogi.spec import shogi_spec
from nets.data.metrics import Judged
from nets.dlshogi.network import AREA, SIDE
from nets.load import prepare_shogi
from nets.onnx_graph import UnsupportedGraphError, read_onnx_graph
from nets.onnx_program import write_program

if TYPE_CHECKING:
    from typing import Self

    from engine.evaluators.network import Array, FloatArray
    from native.forward.builder import Program
    from native.tree.arrays import Batch
    from nets.dlshogi.network import ShogiNetwork
    from nets.load import NetworkFile
    from nets.metadata import NetworkInfo


class Dlshogi(Format):
    """dlshogi's two inputs, or AlphaZero's one; policy [directions * 81] and value."""

    title = "a network for shogi (dlshogi ONNX)"
    decode, decode_rows = decode, staticmethod(decode_rows)

    def __init__(self, path: Path, network: ShogiNetwork, info: NetworkInfo) -> None:
        """Describe a file.

        Args:
            path: an ONNX file.
            network: its outside.
            info: what is known of it.
        """
        self.path = path
        self.network = network
        self.info = info
        self.feature_set = network.feature_set
        self.spec = shogi_spec(int(network.form), network.extras)
        # dlshogi's second input is constant over the board; AlphaZero's form has counts among its planes.
        tensors = [tensor for tensor in (network.board, network.hands) if tensor is not None]
        self.feeds = tuple(
            Feed(tensor.name, tensor.shape[1:], tensor.element_type, constant=tensor is network.hands)
            for tensor in tensors
            if tensor.shape is not None
        )
        self.outputs = network.policy.name, network.value.name
        self.output_shapes = (network.directions, AREA), (1,)
        self.fixed_rows = network.fixed_rows

    @classmethod
    def recognise(cls, file: NetworkFile, size: int) -> Self | None:
        """See Format."""
        return cls(file.path, *prepare_shogi(file.path)) if file.game == "shogi" else None

    def onnx_file(self) -> Path:
        """Return the file itself."""
        return self.path

    def program(self, precision: str, *, keep: bool) -> Program:
        """Read the graph, transform and pack its weights; see Format."""
        builder = ProgramBuilder(SIDE, self.network.planes, self.network.extras, precision=precision)
        try:
            squash = write_program(read_onnx_graph(self.path), self.network.ends, builder)
        except UnsupportedGraphError as error:
            raise UnsupportedError(self.path, str(error)) from error
        return replace(builder.build(), squash=SQUASHES[squash.value])

    def arguments(self, outputs: Sequence[Array], batch: Batch) -> tuple[Any, ...]:
        """See native.shogi.outputs."""
        policy, value = (output.reshape(len(output), -1) for output in outputs)
        return policy, value, self.network.is_chance, batch.logits, batch.values

    def judge(self, outputs: Sequence[FloatArray]) -> Judged:
        """See Format."""
        policy, value = outputs
        return Judged(policy.reshape(len(policy), -1), self.network.signed(value[:, 0]))

    def check(self, outputs: Sequence[FloatArray]) -> None:
        """See that the value is what the form says."""
        value = float(outputs[1][0, 0])
        least = 0.0 if self.network.is_chance else -1.0
        if not least <= value <= 1.0:
            name = self.info.source_file
            raise EvaluatorError(f"{name}: value {value:g} for an empty board found, expected {least:g} to 1")
        super().check(outputs)

"""Networks in ONNX files with a board as input and a policy and a value as outputs: the format of most games."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from yomi.engine.evaluators.base import UnsupportedError
from yomi.engine.evaluators.network import Feed, Format
from yomi.native.forward.builder import ProgramBuilder
from yomi.native.forward.policy_value import decode, decode_rows
from yomi.native.forward.squash import SQUASHES
from yomi.nets.data.metrics import Judged
from yomi.nets.onnx_file import UnsupportedGraphError, read_onnx_graph
from yomi.nets.onnx_program import Ends, write_program

if TYPE_CHECKING:
    from pathlib import Path

    from yomi.engine.evaluators.network import Array, FloatArray
    from yomi.native.forward.builder import Program
    from yomi.native.spec import GameSpec
    from yomi.native.tree.arrays import Batch
    from yomi.nets.metadata import NetworkInfo


def graph_program(path: Path, ends: Ends, feeds: Sequence[Feed], precision: str) -> Program:
    """Return the graph of an ONNX file as a program with packed weights.

    Raises:
        UnsupportedError: the kernels cannot compute it.
        NetworkError: the file cannot be used.
    """
    planes, extras = (sum(feed.shape[0] for feed in part) for part in (feeds[:1], feeds[1:]))
    builder = ProgramBuilder(ends.size, planes, extras, precision=precision)
    try:
        squash = write_program(read_onnx_graph(path), ends, builder)
    except UnsupportedGraphError as error:
        raise UnsupportedError(path, str(error)) from error
    return replace(builder.build(), squash=SQUASHES[squash.value])


class PolicyValueFormat(Format):
    """Base of games' formats, which implement `recognise`."""

    decode, decode_rows = decode, staticmethod(decode_rows)
    is_chance: bool = False  # whether the value is a probability to win, [0, 1], instead of [-1, 1]

    def __init__(self, path: Path, info: NetworkInfo, spec: GameSpec, ends: Ends, feeds: tuple[Feed, ...]) -> None:
        """Describe an ONNX file: `feeds` are its planes, and the input that is constant over the board, if any."""
        assert ends.policy is not None
        assert ends.value is not None
        self.path, self.info, self.spec, self.ends, self.feeds = path, info, spec, ends, feeds
        self.feature_set = info.feature_set
        self.outputs = ends.policy, ends.value
        self.output_shapes = (ends.policy_size // ends.size**2, ends.size**2), (1,)

    def onnx_file(self) -> Path:
        return self.path

    def program(self, precision: str, *, keep: bool) -> Program:
        return graph_program(self.path, self.ends, self.feeds, precision)

    def arguments(self, outputs: Sequence[Array], batch: Batch) -> tuple[Any, ...]:
        policy, value = (output.reshape(len(output), -1) for output in outputs)
        return policy, value, self.is_chance, batch.logits, batch.values

    def judge(self, outputs: Sequence[FloatArray]) -> Judged:
        policy, value = outputs
        signed = 2.0 * value - 1.0 if self.is_chance else value
        return Judged(policy.reshape(len(policy), -1), signed[:, 0])

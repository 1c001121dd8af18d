"""Aya's and COSUMI's networks as ONNX files of yomi: some of KataGo's outputs, from input planes of their own."""

from __future__ import annotations

import threading
from abc import abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np

from yomi.engine.evaluators.network import Array, Feed, FloatArray, Format
from yomi.engine.evaluators.policy_value import graph_program
from yomi.native.bound_kernels import Calls
from yomi.native.forward.builder import Program
from yomi.native.go.partial import decode, decode_rows
from yomi.native.go.spec import go_spec
from yomi.native.spec import Inputs
from yomi.native.tree.arrays import Batch
from yomi.nets.data.metrics import Judged
from yomi.nets.errors import NetworkError
from yomi.nets.features import feature_set
from yomi.nets.load import NetworkFile, own_info
from yomi.nets.onnx_program import Ends

PLACES = {"policy": 0, "value": 1, "score": 1}  # output -> slot in a program


class PartialFormat(Format):
    """Networks with one input of planes, encoded from positions, and some of the outputs policy, value and score."""

    decode, decode_rows = decode, staticmethod(decode_rows)
    reads = Inputs.POSITIONS
    features: ClassVar[tuple[str, ...]]  # names of the feature sets
    value_is_blacks = False  # whether the value is Black's instead of the side to move's

    def __init__(self, file: NetworkFile, size: int) -> None:
        """Raises NetworkError if the file is for another board size, or has no known output."""
        assert file.info is not None
        assert file.header is not None
        self.path = file.path
        self.info = own_info(file.path, file.info)
        self.feature_set = self.info.feature_set
        if size and self.info.board_size not in (0, size):
            raise NetworkError(
                f"{file.path}: made for boards of size {self.info.board_size}, expected one for size {size}"
            )
        self.size = size or self.info.board_size
        self.any_size = self.info.board_size == 0
        self.spec = go_spec(self.size)
        self.feeds = (Feed(file.header.inputs[0], (feature_set(self.feature_set).planes, self.size, self.size)),)
        self.outputs = tuple(name for name in file.header.outputs if name in PLACES)
        if not self.outputs:
            found = ", ".join(file.header.outputs)
            raise NetworkError(f"{file.path}: outputs {found} found, expected some of {', '.join(PLACES)}")
        self.output_shapes = tuple((1, self.size**2) if name == "policy" else (1,) for name in self.outputs)
        self.output_slots = tuple(PLACES[name] for name in self.outputs)
        self.predicts_value = self.outputs != ("policy",)
        self.predicts_score = "score" in self.outputs

    @classmethod
    def recognise(cls, file: NetworkFile, size: int) -> Self | None:
        return cls(file, size) if file.feature_set in cls.features else None

    @abstractmethod
    def encode_planes(self, batch: Batch, planes: FloatArray) -> Calls:
        """Return calls that encode a batch's positions as planes [B, C, N, N]. They are bound to the calling thread."""

    def encode(self, batch: Batch) -> tuple[Calls, tuple[FloatArray, ...]]:
        planes = np.zeros((len(batch.logits), *self.feeds[0].shape), np.float32)
        return self.encode_planes(batch, planes), (planes, np.zeros((len(planes), 0), np.float32))

    def onnx_file(self) -> Path:
        return self.path

    def program(self, precision: str, *, keep: bool) -> Program:
        value = next((name for name in self.outputs if name != "policy"), None)
        policy = "policy" if "policy" in self.outputs else None
        ends = Ends(self.size, self.feeds[0].name, policy, self.size**2, value, channels=self.feeds[0].shape[0])
        return graph_program(self.path, ends, self.feeds, precision)

    def arguments(self, outputs: Sequence[Array], batch: Batch) -> tuple[Any, ...]:
        """Return the arguments of the decoder; see yomi.native.go.partial."""
        nothing = np.zeros((len(outputs[0]), 0), np.float32)
        found = {name: output.reshape(len(output), -1) for name, output in zip(self.outputs, outputs, strict=True)}
        policy, value, score = (found.get(name, nothing) for name in ("policy", "value", "score"))
        return policy, value, score, self.value_is_blacks, batch

    def judge(self, outputs: Sequence[FloatArray]) -> Judged:
        found = {name: output.reshape(len(output), -1) for name, output in zip(self.outputs, outputs, strict=True)}
        columns = {name: found[name][:, 0] for name in ("value", "score") if name in found}
        return Judged(found.get("policy"), columns.get("value"), columns.get("score"), counts_komi=False)


class _Scratch(threading.local):
    def __init__(self) -> None:
        from yomi.native.go.aya import AYA_SCRATCH_DTYPE

        self.aya = np.zeros(1, AYA_SCRATCH_DTYPE)[0]


class Aya(PartialFormat):
    """Aya's networks: the policy of the side to move, or Black's value."""

    title = "one with Aya's"
    features = "aya-49", "aya-50"
    value_is_blacks = True
    _scratch = _Scratch()

    def encode_planes(self, batch: Batch, planes: FloatArray) -> Calls:
        from yomi.native.go.aya import encode_aya

        return encode_aya.bind(batch, self._scratch.aya, planes)


class Cosumi(PartialFormat):
    """COSUMI's networks: the side to move's lead in points without komi."""

    title = "one with COSUMI's"
    features = "go-stones-2", "cosumi-3"

    def encode_planes(self, batch: Batch, planes: FloatArray) -> Calls:
        from yomi.native.go.stones import encode_stones

        return encode_stones.bind(batch, planes)

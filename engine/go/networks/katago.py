"""Networks with KataGo's features: KataGo's files of versions 8 to 17, and yomi's ONNX files."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from yomi.engine.evaluators.base import EvaluatorError, UnsupportedError
from yomi.engine.evaluators.network import Array, Feed, FloatArray, Format, NetworkEvaluator
from yomi.engine.evaluators.program_cache import keep_program, load_program
from yomi.native.forward.builder import MAX_SIZE, MIN_SIZE, Program, ProgramBuilder
from yomi.native.go.outputs import decode, decode_rows
from yomi.native.go.planes import policy_index, write_planes
from yomi.native.go.rules import legal_moves
from yomi.native.go.spec import go_spec
from yomi.native.spec import GameSpec
from yomi.native.tree.arrays import Batch
from yomi.nets.data.metrics import Judged
from yomi.nets.errors import NetworkError
from yomi.nets.files import known_digest
from yomi.nets.katago.cpu_program import unsupported, write_program
from yomi.nets.katago.description import describe
from yomi.nets.katago.file import read_network
from yomi.nets.katago.network import GLOBAL_CHANNELS, META_CHANNELS, SPATIAL_CHANNELS, KataGoNetwork
from yomi.nets.katago.outputs import RawOutputs, error_scales, scales_of, value_probabilities
from yomi.nets.load import NetworkFile, NetworkKind, prepare
from yomi.nets.metadata import KATAGO_FEATURES, NetworkInfo
from yomi.nets.onnx_header import read_onnx_header

# Share of the optimistic policy at the root and below it, as in KataGo's GTP engine.
ROOT_OPTIMISM, TREE_OPTIMISM = 0.2, 1.0
OPTIMISM = np.array([TREE_OPTIMISM, ROOT_OPTIMISM], np.float32)
# Rows of a GPU batch on 19x19, and maximum on smaller boards, which get the same number of points.
BATCH_SIZE, LARGEST_BATCH = 64, 256


def default_rows(size: int) -> int:
    """Return the rows of a GPU batch for a board size: a power of two."""
    return 1 << (min(LARGEST_BATCH, max(1, BATCH_SIZE * 19**2 // size**2)).bit_length() - 1)


class KataGo(Format):
    """Inputs: planes [22, N, N] and numbers [19]. Outputs: policy with a pass, outcome, score, ownership."""

    title = f"a network for Go with the features {KATAGO_FEATURES}"
    decode, decode_rows = decode, staticmethod(decode_rows)
    is_checked = False
    feature_set = KATAGO_FEATURES
    outputs = ("policy", "value", "misc", "ownership")

    def __init__(self, path: Path, kind: NetworkKind, size: int) -> None:
        self.path = path
        self.kind = kind
        self.size = size

    @classmethod
    def recognise(cls, file: NetworkFile, size: int) -> Self | None:
        if file.kind is NetworkKind.KATAGO or file.feature_set == KATAGO_FEATURES:
            return cls(file.path, file.kind, size)
        return None

    def described(self, info: NetworkInfo) -> Self:
        """Set the network's metadata. Raises NetworkError if it has too few outputs."""
        self.info = info
        size, area = self.size, self.size**2
        self.gpu_rows = default_rows(size)
        scales = scales_of(info)
        self._scales = np.array([scales.score_mean, scales.score_stdev, scales.lead, *error_scales(info)], np.float32)
        misc = 6 if self._scales[3] > 0.0 else 4  # channels that the decoder reads
        if info.misc_channels < misc or info.policy_channels < 1:
            raise NetworkError(
                f"{self.path}: {info.policy_channels} policy and {info.misc_channels} misc channels found, "
                f"expected at least 1 and {misc}"
            )
        meta = (Feed("meta", (META_CHANNELS,)),) if info.meta_input else ()
        self.feeds = Feed("spatial", (SPATIAL_CHANNELS, size, size)), Feed("global", (GLOBAL_CHANNELS,)), *meta
        self.output_shapes = (info.policy_channels, area + 1), (3,), (info.misc_channels,), (area,)
        return self

    @property
    def spec(self) -> GameSpec:  # type: ignore[override]
        areas = self.info.prefer_pass_alive_under_suicide_rules
        return go_spec(self.size, suicide_areas=areas, judges_agreement=True)

    def onnx_file(self) -> Path:
        """Return the file, converted to ONNX if it is KataGo's. Raises EvaluatorError if its inputs do not fit."""
        path, info = prepare(self.path, self.size)
        header = read_onnx_header(path)
        for tensor in () if header is None else header.input_tensors:
            if tensor.element_type != "float32" or (tensor.shape is not None and tensor.shape[:1] > (0,)):
                raise EvaluatorError(f"{path}: input {tensor} found, expected float32 for batches of any size")
        self.described(info)
        return path

    def program(self, precision: str, *, keep: bool) -> Program:
        """Read the cached program, or make it."""
        path, size = self.path, self.size
        if self.kind is not NetworkKind.KATAGO:
            raise UnsupportedError(path, "it is an ONNX file")
        digest = known_digest(path)
        stored = load_program(digest, size, precision)
        if stored is not None:
            program, info = stored
            self.described(dataclasses.replace(info, source_file=path.name))
            return program
        network = read_network(path)
        reason = unsupported(network)
        if reason is not None:
            raise UnsupportedError(path, reason)
        try:
            program = make_program(network, size, precision)
        except NetworkError as error:
            raise NetworkError(f"{path}: {error}") from None
        self.described(describe(network, size, path.name, digest))
        if keep:
            keep_program(program, self.info, precision)
        return program

    def arguments(self, outputs: Sequence[Array], batch: Batch) -> tuple[Any, ...]:
        """Return the arguments of the decoder; see yomi.native.go.outputs."""
        board = batch.is_root, self.may_have_no_result, batch.logits, batch.values, batch.ownership
        shaped = (each.reshape(len(each), *shape) for each, shape in zip(outputs, self.output_shapes, strict=True))
        return (*shaped, self._scales, OPTIMISM, *board)

    def judge(self, outputs: Sequence[FloatArray]) -> Judged:
        policy, value, misc, ownership = outputs
        win, loss, _ = value_probabilities(value, False)
        return Judged(policy[:, 0], win - loss, misc[:, 2] * self._scales[2], np.tanh(ownership))


def encode(
    spec: GameSpec, rows: Sequence[tuple[Any, npt.NDArray[np.uint64], int]]
) -> tuple[FloatArray, FloatArray, npt.NDArray[np.bool_]]:
    """Return planes [B, 22, N, N], numbers [B, 19] and legal moves [B, A + 1] of (position, history, symmetry) rows."""
    planes = np.zeros((len(rows), *spec.planes_shape), np.float32)
    extras = np.zeros((len(rows), *spec.extras_shape), np.float32)
    legal = np.zeros((len(rows), spec.policy_size), np.bool_)
    scratch, moves = np.zeros(1, spec.scratch_dtype)[0], np.zeros(spec.policy_size, np.uint16)
    for index, (position, history, symmetry) in enumerate(rows):
        write_planes(spec.with_flags(position), history, symmetry, scratch, planes[index], extras[index])
        for move in moves[: legal_moves(position, history, moves)]:
            legal[index, policy_index(int(position["size"]), int(move), symmetry)] = True
    return planes, extras, legal


def raw_outputs(network: NetworkEvaluator, planes: FloatArray, extras: FloatArray) -> RawOutputs:
    """Return the raw outputs for B inputs: planes [B, 22, N, N] and extras [B, 19]."""
    return RawOutputs(*network.run(planes, extras))


def make_program(network: KataGoNetwork, size: int, precision: str) -> Program:
    """Compile a network to a program for boards of `size`, with packed weights.

    Args:
        network: the parsed file; `yomi.nets.katago.cpu_program.unsupported` must have returned None.
        size: N.
        precision: fp32, int16, int8 or bf16, if the processor supports it.

    Raises:
        EvaluatorError: the size is out of range.
    """
    if not MIN_SIZE <= size <= MAX_SIZE:
        raise EvaluatorError(f"board size {size} found, expected {MIN_SIZE} to {MAX_SIZE}")
    builder = ProgramBuilder(size, SPATIAL_CHANNELS, GLOBAL_CHANNELS, precision=precision)
    write_program(network, size, builder)
    return builder.build()

"""Evaluators of Go: KataGo's networks (and ONNX files with their features), Aya's, COSUMI's, and rollouts."""

import dataclasses
import math
import threading
from abc import abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from yomi.engine.evaluators.base import Evaluator, EvaluatorError, UnsupportedError
from yomi.engine.evaluators.network import (
    Array,
    Feed,
    FileEvaluator,
    FloatArray,
    Format,
    NetworkEvaluator,
    OnNetwork,
    graph_program,
)
from yomi.engine.evaluators.program_cache import keep_program, load_program
from yomi.errors import reraised
from yomi.language import tr
from yomi.native.bound_kernels import Calls
from yomi.native.forward.builder import MAX_SIZE, MIN_SIZE, Program, ProgramBuilder
from yomi.native.go import outputs as decoders
from yomi.native.go.aya import AYA_SCRATCH_DTYPE, encode_aya
from yomi.native.go.board import POSITION_DTYPE
from yomi.native.go.planes import policy_index, write_planes
from yomi.native.go.rollout import mix_rollouts, write_priors
from yomi.native.go.rules import legal_moves
from yomi.native.go.spec import go_spec
from yomi.native.spec import GameSpec, Inputs
from yomi.native.tree.arrays import Batch
from yomi.nets.data.metrics import Judged
from yomi.nets.errors import NetworkError
from yomi.nets.files import known_digest
from yomi.nets.katago.cpu_program import unsupported, write_program
from yomi.nets.katago.file import read_network
from yomi.nets.katago.network import GLOBAL_CHANNELS, META_CHANNELS, SPATIAL_CHANNELS, KataGoNetwork
from yomi.nets.katago.outputs import RawOutputs, describe, error_scales, scales_of, value_probabilities
from yomi.nets.load import NetworkFile, NetworkKind, prepare
from yomi.nets.metadata import KATAGO_FEATURES, BoardSize, NetworkInfo, area_of, feature_set, sides, size_name
from yomi.nets.onnx_file import read_onnx_header
from yomi.nets.onnx_program import Ends

# Share of the optimistic policy at the root and below it, as in KataGo's GTP engine.
ROOT_OPTIMISM, TREE_OPTIMISM = 0.2, 1.0
OPTIMISM = np.array([TREE_OPTIMISM, ROOT_OPTIMISM], np.float32)
# Rows of a GPU batch on 19x19, and maximum on smaller boards, which get the same number of points.
BATCH_SIZE, LARGEST_BATCH = 64, 256


def default_rows(size: BoardSize) -> int:
    """Return the rows of a GPU batch for a board size, a power of two."""
    return 1 << (min(LARGEST_BATCH, max(1, BATCH_SIZE * 19**2 // area_of(size))).bit_length() - 1)


class KataGo(Format):
    """Networks with KataGo's inputs (planes [22, N, N], numbers [19]) and outputs (policy, outcome, score, owners)."""

    title = f"a network for Go with the features {KATAGO_FEATURES}"
    decode, decode_rows = decoders.decode, staticmethod(decoders.decode_rows)
    feature_set = KATAGO_FEATURES
    outputs = ("policy", "value", "misc", "ownership")

    def __init__(self, file: NetworkFile, size: BoardSize) -> None:
        self.file, self.path, self.size = file, file.path, size
        self.is_checked = file.kind is not NetworkKind.KATAGO  # an ONNX file may compute anything

    @classmethod
    def recognise(cls, file: NetworkFile, size: BoardSize) -> Self | None:
        if file.kind is NetworkKind.KATAGO or file.feature_set == KATAGO_FEATURES:
            return cls(file, size)
        return None

    def described(self, info: NetworkInfo) -> Self:
        """Set the network's metadata. Raises NetworkError if it has too few outputs."""
        self.info = info
        area, (columns, rows) = area_of(self.size), sides(self.size)
        self.gpu_rows = default_rows(self.size)
        self.any_size = info.board_size == 0  # a network of one's own; KataGo's are converted for one size
        scales = scales_of(info)
        self._scales = np.array([scales.score_mean, scales.score_stdev, scales.lead, *error_scales(info)], np.float32)
        misc = 6 if self._scales[3] > 0.0 else 4  # channels that the decoder reads
        if info.misc_channels < misc or info.policy_channels < 1:
            raise NetworkError(
                f"{self.path}: {info.policy_channels} policy and {info.misc_channels} misc channels found, expected "
                f"at least 1 and {misc} (a network of your own has the outputs policy, outcome, misc and ownership)"
            )
        numbers = GLOBAL_CHANNELS + (META_CHANNELS if info.meta_input else 0)
        self.feeds = Feed("spatial", (SPATIAL_CHANNELS, rows, columns)), Feed("global", (numbers,))
        self.output_shapes = (info.policy_channels, area + 1), (3,), (info.misc_channels,), (area,)
        return self

    @property
    def spec(self) -> GameSpec:  # type: ignore[override]
        info = self.info
        areas = info.prefer_pass_alive_under_suicide_rules
        return go_spec(*sides(self.size), suicide_areas=areas, judges_agreement=True, metadata=info.meta_input)

    def onnx_file(self) -> Path:
        """Return the file as ONNX. KataGo's files are converted. Raises EvaluatorError if the inputs do not fit."""
        path, info = prepare(self.file, self.size)
        header = read_onnx_header(path)
        for tensor in () if header is None else header.input_tensors:
            if tensor.element_type != "float32" or (tensor.shape is not None and tensor.shape[:1] > (0,)):
                raise EvaluatorError(f"{path}: input {tensor} found, expected float32 for batches of any size")
        self.described(info)
        return path

    def program(self, precision: str, *, keep: bool) -> Program:
        """Return the network's program, from the cache if it is there."""
        path, size = self.path, self.size
        if self.file.kind is not NetworkKind.KATAGO:
            raise UnsupportedError(path, "it is an ONNX file")
        if not isinstance(size, int):
            raise UnsupportedError(path, f"the board {size_name(size)} is not square")
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
        with reraised(NetworkError, NetworkError, f"{path}: "):
            program = make_program(network, size, precision)
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
    """Return network inputs of rows: planes [B, 22, N, N], numbers [B, 19 or more], and legal moves [B, A + 1].

    A row is (position, history, symmetry).
    """
    planes = np.zeros((len(rows), *spec.planes_shape), np.float32)
    extras = np.zeros((len(rows), *spec.extras_shape), np.float32)
    legal = np.zeros((len(rows), spec.policy_size), np.bool_)
    scratch, moves = np.zeros(1, spec.scratch_dtype)[0], np.zeros(spec.policy_size, np.uint16)
    for index, (position, history, symmetry) in enumerate(rows):
        write_planes(spec.with_flags(position), history, symmetry, scratch, planes[index], extras[index])
        for move in moves[: legal_moves(position, history, moves)]:
            legal[index, policy_index(int(position["size"]), int(position["height"]), int(move), symmetry)] = True
    return planes, extras, legal


def raw_outputs(network: NetworkEvaluator, planes: FloatArray, extras: FloatArray) -> RawOutputs:
    """Return a network's raw outputs for B inputs: planes [B, 22, N, N] and extras [B, 19], or with metadata [B, 19 +
    192].

    For missing metadata a human-SL network reads zeros.
    """
    missing = math.prod(network.spec.extras_shape) - extras.shape[1]
    return RawOutputs(*network.run(planes, np.pad(extras, ((0, 0), (0, missing)))))


def make_program(network: KataGoNetwork, size: int, precision: str) -> Program:
    """Compile a network to a program for N×N boards, with packed weights.

    `yomi.nets.katago.cpu_program.unsupported` must have returned None, and the processor must support the precision.

    Raises:
        EvaluatorError: the size is out of range.
    """
    if not MIN_SIZE <= size <= MAX_SIZE:
        raise EvaluatorError(f"board size {size} found, expected {MIN_SIZE} to {MAX_SIZE}")
    builder = ProgramBuilder(size, SPATIAL_CHANNELS, network.global_channels, precision=precision)
    write_program(network, size, builder)
    return builder.build()


PLACES = {"policy": 0, "value": 1, "score": 1}  # output -> slot in a program


class PartialFormat(Format):
    """Networks with planes as the only input, and some of the outputs policy, value and score."""

    decode, decode_rows = decoders.decode_partial, staticmethod(decoders.decode_partial_rows)
    reads = Inputs.POSITIONS
    features: ClassVar[tuple[str, ...]]  # names of the feature sets
    value_is_blacks = False  # whether the value is Black's instead of the side to move's

    def __init__(self, file: NetworkFile, size: BoardSize) -> None:
        """Read the network's form. Raises NetworkError if it is for another board size, or has no known output."""
        if not isinstance(size, int):
            raise NetworkError(
                f"{file.path}: a network for square boards found, expected one of KataGo's for {size_name(size)}"
            )
        assert file.header is not None
        self.path = file.path
        self.info = file.describe()
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
    def recognise(cls, file: NetworkFile, size: BoardSize) -> Self | None:
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
        """Return the arguments of the decoder; see yomi.native.go.outputs."""
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
        self.aya = np.zeros(1, AYA_SCRATCH_DTYPE)[0]


class Aya(PartialFormat):
    """Aya's networks: the policy of the side to move, or Black's value."""

    title = "one with Aya's"
    features = "aya-49", "aya-50"
    value_is_blacks = True
    _scratch = _Scratch()

    def encode_planes(self, batch: Batch, planes: FloatArray) -> Calls:
        return encode_aya.bind(batch, self._scratch.aya, planes)


class Cosumi(PartialFormat):
    """COSUMI's networks: the side to move's lead in points without komi."""

    title = "one with COSUMI's"
    features = "go-stones-2", "cosumi-3"

    def encode_planes(self, batch: Batch, planes: FloatArray) -> Calls:
        return decoders.encode_stones.bind(batch, planes)


class _Local(threading.local):
    """Memory for each thread: random numbers, and a board for rollouts."""

    def __init__(self, seeds: np.random.SeedSequence) -> None:
        self.rng = seeds.spawn(1)[0].generate_state(1, np.uint64) | np.uint64(1)
        self.scratch = np.zeros(1, POSITION_DTYPE)[0]

    def mix(self, batch: Batch, rollouts: int, weight: float, score_weight: float) -> Calls:
        """Return the call that mixes rollouts into the values, scores and ownership of a batch."""
        owners = np.zeros((1, batch.ownership.shape[1]), np.float32)
        means = np.zeros(2, np.float32)
        return mix_rollouts.bind(
            batch, rollouts, np.float32(weight), np.float32(score_weight), self.rng, self.scratch, means, owners
        )


class RolloutEvaluator(Evaluator):
    """Plays patterned rollouts from each leaf, without symmetries. Priors come from tactics and patterns."""

    inputs = Inputs.POSITIONS

    def __init__(self, rollouts: int = 1, batch_size: int = 1, seed: int | None = None) -> None:
        """Play `rollouts` games from each leaf. In one thread, equal seeds and calls give equal results."""
        self.rollouts = rollouts
        self.batch_size = batch_size
        self._local = _Local(np.random.SeedSequence(seed))

    @property
    def description(self) -> str:
        return tr("patterned rollouts ({n} a leaf)", n=self.rollouts)

    def bind(self, batch: Batch) -> Calls:
        """Return the calls that evaluate this batch in the calling thread."""
        return write_priors.bind(batch) + self._local.mix(batch, self.rollouts, 1.0, 1.0)


class MixedEvaluator(OnNetwork):
    """A network with rollouts mixed into its values and ownership. Priors are the network's."""

    def __init__(self, network: Evaluator, weight: float, rollouts: int = 1, seed: int | None = None) -> None:
        """Give rollouts the `weight` (0 to 1). If the network predicts no scores, rollouts provide them."""
        super().__init__(network)
        self.weight = weight
        self.rollouts = rollouts
        self.inputs = network.inputs | Inputs.POSITIONS
        source = getattr(network, "values", network)
        self._has_scores = not isinstance(source, FileEvaluator) or source.format.predicts_score
        self._local = _Local(np.random.SeedSequence(seed))

    @property
    def description(self) -> str:
        return tr("{network}, {share} rollouts", network=self.network.description, share=f"{self.weight:.0%}")

    def evaluate(self, batch: Batch, rows: int) -> None:
        self.network.evaluate(batch, rows)
        self._mix(batch).run(rows)

    def bind(self, batch: Batch) -> Calls | None:
        """Return the calls of network and rollouts, or None if the network has none."""
        network = self.network.bind(batch)
        return None if network is None else network + self._mix(batch)

    def _mix(self, batch: Batch) -> Calls:
        score_weight = self.weight if self._has_scores else 1.0
        return self._local.mix(batch, self.rollouts, self.weight, score_weight)


FORMATS = (KataGo, Aya, Cosumi)  # network formats, in the order in which they are tried on a file

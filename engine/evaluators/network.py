"""Evaluators of networks. A format (inputs and outputs of a network) is combined with a backend (the computation)."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, Self, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

from yomi.engine.evaluators.backends import Backend, GpuBackend, NativeBackend, OnnxBackend, native_precision
from yomi.engine.evaluators.base import Evaluator, EvaluatorError, UnsupportedError
from yomi.engine.evaluators.devices import CPU, NATIVE_PRECISIONS, Device, check_backend, expect_packages
from yomi.errors import one_line
from yomi.language import tr
from yomi.native.bound_kernels import NO_CALLS, Calls, Entry
from yomi.native.forward.builder import Program, ProgramBuilder
from yomi.native.forward.entry import SQUASHES, decode, decode_rows
from yomi.native.packing import pack
from yomi.native.spec import GameSpec, Inputs, packed_words
from yomi.native.tree.arrays import Batch
from yomi.native.tree.buffers import make_batch
from yomi.nets.data.metrics import Judged
from yomi.nets.errors import NetworkError
from yomi.nets.load import NetworkFile, open_file
from yomi.nets.metadata import BoardSize, NetworkInfo
from yomi.nets.onnx_file import UnsupportedGraphError, read_onnx_graph
from yomi.nets.onnx_program import Ends, write_program

Array: TypeAlias = npt.NDArray[Any]
FloatArray: TypeAlias = npt.NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Feed:
    name: str  # in the ONNX file
    shape: tuple[int, ...]  # of a row in the ONNX file
    dtype: str = "float32"
    constant: bool = False  # each channel is one number for the whole board; the evaluator gets [B, channels]

    def fill(self, rows: int, numbers: FloatArray | None) -> Array:
        """Return `rows` rows in the shape of the ONNX file: the given numbers, then zeros."""
        filled = np.zeros((rows, *self.shape), self.dtype)
        if numbers is not None:
            filled[: len(numbers)] = numbers[:, :, None, None] if self.constant else numbers
        return filled


class FileFormat(ABC):
    """The inputs and outputs of a kind of network. An object is one file, for one board size."""

    title: ClassVar[str]  # for error messages
    reads: ClassVar[Inputs] = Inputs.NUMBERS
    """The arrays of a batch that it reads. With NUMBERS the search writes planes and extras, or bits if the device
    takes them. With POSITIONS the format encodes the positions itself."""
    predicts_value: bool = True  # whether the network has values; otherwise rollouts are needed
    predicts_score: bool = True  # whether the network predicts points and ownership, in a game that has them
    # whether games can end without a result by the rules, if the network predicts that
    may_have_no_result: bool = False

    feature_set: str  # name of the inputs, as in `NetworkInfo`
    spec: GameSpec  # of the game, for a search with this network
    info: NetworkInfo  # metadata of the network; complete once an evaluator has been created

    @classmethod
    @abstractmethod
    def recognise(cls, file: NetworkFile, size: BoardSize) -> Self | None:
        """Return the network in a file for boards of `size`, or None if the file has another format.

        Raises:
            NetworkError: the file has this format but cannot be used.
        """

    @abstractmethod
    def load(
        self,
        device: Device = CPU,
        backend: str = "auto",
        batch_size: int | None = None,
        precision: str = "fp32",
        *,
        keep: bool = True,
    ) -> FileEvaluator:
        """Return the fastest evaluator of the network on a device.

        Args:
            device: where the network is computed.
            backend: native (yomi's kernels on the CPU), onnx (onnxruntime), tensorrt (TensorRT itself), or auto: the
                fastest.
            batch_size: rows of a batch; None: suits the network and the device.
            precision: fp32, fp16 (GPUs only), int16, int8 or bf16 (native only), or auto: the fastest.
            keep: whether the packed weights of a large network are cached for the next start.

        Raises:
            NetworkError: the file cannot be used.
            EvaluatorError: the device, the backend or the precision cannot be used.
        """


class Format(FileFormat):
    """A format of networks with layers over a board. Several backends can compute them."""

    decode: ClassVar[Entry]
    """Writes logits, values and ownership of a batch. Its arguments come from `arguments`; all are float32."""
    decode_rows: ClassVar[Any]
    """The kernel of `decode`: number of rows, then the same arguments. The network's may be float16, as uint16."""
    is_checked: bool = True
    """Whether other files may have the same form by chance, so that the outputs are checked after loading."""

    path: Path  # of the network's file
    feeds: tuple[Feed, ...]  # the first ones are the arrays of `encode`, in this order; the others are zeros
    outputs: tuple[str, ...]  # names in the ONNX file, in the order of `arguments`
    output_shapes: tuple[tuple[int, ...], ...]  # of a row, in the order of `outputs`; a policy is [channels, moves]
    # indices of the outputs among policy, value, misc and ownership, which a program writes
    output_slots: tuple[int, ...] = (0, 1, 2, 3)
    any_size: bool = False  # whether the ONNX file leaves the board size open, which GPUs must know
    fixed_rows: int | None = None  # rows of every batch, if the file is for batches of one size
    gpu_rows: int = 128  # rows of a batch that are fastest on a GPU

    @abstractmethod
    def onnx_file(self) -> Path:
        """Return an ONNX file that computes the network, or raise NetworkError."""

    @abstractmethod
    def program(self, precision: str, *, keep: bool) -> Program:
        """Return the network as a program of yomi's kernels.

        Args:
            precision: fp32, int16, int8 or bf16. The program contains the actual precision.
            keep: whether the program of a large network is cached for the next start.

        Raises:
            UnsupportedError: the kernels cannot compute the network.
            NetworkError: the file cannot be used.
        """

    @abstractmethod
    def arguments(self, outputs: Sequence[Array], batch: Batch) -> tuple[Any, ...]:
        """Return the arguments of `decode`: outputs [B, ...], and the arrays of a batch with at least B rows."""

    @abstractmethod
    def judge(self, outputs: Sequence[FloatArray]) -> Judged:
        """Convert raw outputs to the units of a data set's labels."""

    def load(
        self,
        device: Device = CPU,
        backend: str = "auto",
        batch_size: int | None = None,
        precision: str = "fp32",
        *,
        keep: bool = True,
    ) -> NetworkEvaluator:
        check_backend(device, backend, precision)
        reason = ""
        if backend == "native" or (backend == "auto" and device.is_cpu):
            try:
                program = self.program(native_precision(precision), keep=keep)
                return self.load_on(NativeBackend(program, self, batch_size))
            except UnsupportedError as error:
                if backend == "native" or precision in NATIVE_PRECISIONS:
                    raise
                reason = error.reason
        expect_packages(self.path, device)
        evaluator = self.load_on(
            OnnxBackend(self, batch_size) if device.is_cpu else GpuBackend(self, device, batch_size, precision)
        )
        evaluator.fallback_reason = reason
        return evaluator

    def load_on(self, backend: Backend) -> NetworkEvaluator:
        """Return an evaluator of the network on a backend. If that fails, close the backend."""
        try:
            evaluator = NetworkEvaluator(self, backend)
            if self.is_checked or not backend.device.is_cpu:
                evaluator.check()
        except BaseException:
            backend.close()
            raise
        return evaluator

    def encode(self, batch: Batch) -> tuple[Calls, tuple[FloatArray, ...]]:
        """Return calls that write the inputs of a batch's first rows, and the arrays of the inputs."""
        return NO_CALLS, (batch.planes, batch.extras)

    def check(self, outputs: Sequence[FloatArray]) -> None:
        """Check the outputs for an empty board: they must fit the format and be finite. Raises EvaluatorError."""
        if not all(np.isfinite(output).all() for output in outputs):
            names = " or ".join(self.outputs)
            text = f"{self.info.source_file}: {names} that is not finite found, expected numbers"
            raise EvaluatorError(one_line(text))


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
    """ONNX files with a board as input, and a policy and a value as outputs. Most games' formats derive from it."""

    decode, decode_rows = decode, staticmethod(decode_rows)
    is_chance: bool = False  # whether the value is a probability to win, [0, 1], instead of [-1, 1]

    def __init__(self, path: Path, info: NetworkInfo, spec: GameSpec, ends: Ends, feeds: tuple[Feed, ...]) -> None:
        """Describe an ONNX file. `feeds` are its planes, and an input that is constant over the board, if any."""
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


class FileEvaluator(Evaluator):
    format: FileFormat
    info: NetworkInfo
    device: Device
    backend: str  # what computes the network
    precision: str
    is_exact: bool = False  # whether the file contains the weights as they are computed with: no other precision exists
    fallback_reason: str = ""  # why yomi's own kernels do not compute it; empty if they were not requested
    agreement: str = ""  # result of the comparison with fp32; empty if there was none

    @property
    def description(self) -> str:
        """Name of the network, device, backend and precision."""
        kind, _, width = self.backend.partition(", vectors of ")
        native, sparse, nnue = tr("native kernels"), tr("sparse kernels"), tr("NNUE kernels")
        kind = {"native kernels": native, "sparse kernels": sparse, "NNUE kernels": nnue}.get(kind, kind)
        backend = tr("{kernels}, vectors of {n}", kernels=kind, n=width) if width else self.backend
        values = {"network": self.info.name, "device": self.device, "precision": self.precision}
        return tr("{network} on {device} ({backend}, {precision})", backend=backend, **values)

    @property
    def spec(self) -> GameSpec:
        return self.format.spec


class NetworkEvaluator(FileEvaluator):
    """A network with layers, of any format on any backend."""

    format: Format

    def __init__(self, form: Format, backend: Backend) -> None:
        self.format = form
        self._backend = backend
        self.info = form.info
        self.device, self.backend, self.precision = backend.device, backend.name, backend.precision
        self.batch_size = backend.batch_size
        is_packed = backend.takes_bits and form.reads is Inputs.NUMBERS and bool(form.spec.bits)
        self.inputs = Inputs.BITS if is_packed else form.reads

    def evaluate(self, batch: Batch, rows: int) -> None:
        for part, outputs in self._backend.run(self._encode(batch, rows)):
            self._expect_shapes(outputs)
            halves = [output.view(np.uint16) if output.dtype == np.float16 else output for output in outputs]
            arguments = self.format.arguments(halves, type(batch)(*(array[part] for array in batch)))
            self.format.decode_rows(part.stop - part.start, *arguments)

    def _expect_shapes(self, outputs: Sequence[Array]) -> None:
        """Raise EvaluatorError if an output has a wrong size: an ONNX file may compute anything; kernels trust it."""
        for name, output, shape in zip(self.format.outputs, outputs, self.format.output_shapes, strict=True):
            if output.size != len(output) * math.prod(shape):
                expected = f"expected {math.prod(shape)} numbers a row"
                raise EvaluatorError(one_line(f"{self.info.source_file}: {name} {output.shape} found, {expected}"))

    def bind(self, batch: Batch) -> Calls | None:
        shown, inputs = self.format.encode(batch)
        bound = self._backend.bind(inputs)
        if bound is None:
            return None
        calls, outputs = bound
        return shown + calls + self.format.decode.bind(*self.format.arguments(outputs, batch))

    def run(self, *inputs: FloatArray) -> list[FloatArray]:
        """Return the raw outputs [B, ...] for inputs of B rows, in the order of `Format.outputs`."""
        given: list[Array] = list(inputs)
        if self.inputs is Inputs.BITS:
            packed = len(self.spec.bits)
            given = [*map(pack, inputs[:packed]), *inputs[packed:]]
        parts = []
        for _, outputs in self._backend.run(given):
            self._expect_shapes(outputs)
            parts.append([output.astype(np.float32) for output in outputs])
        joined = (np.concatenate(each) for each in zip(*parts, strict=True))
        return [each.reshape(-1, *shape) for each, shape in zip(joined, self.format.output_shapes, strict=True)]

    def check(self) -> None:
        """Run the network once, check the form of its outputs, and compile the decoder. Raises EvaluatorError."""
        planes, *extras = (feed.shape[:1] if feed.constant else feed.shape for feed in self.format.feeds)
        spread = (np.zeros((1, *shape), np.float32) for shape in extras or [(0,)])
        self.format.check(self.run(np.zeros((1, *planes), np.float32), *spread))
        if self.format.reads is Inputs.NUMBERS:
            self.evaluate(make_batch(self.spec, 1, self.inputs), 1)

    def close(self) -> None:
        self._backend.close()

    def _encode(self, batch: Batch, rows: int) -> list[Array]:
        if self.inputs is not Inputs.BITS:
            calls, inputs = self.format.encode(batch)
            calls.run(rows)
            return [array[:rows] for array in inputs]
        end = packed_words(self.spec.bits[0])
        bits = batch.bits[:rows]
        return [bits[:, :end], bits[:, end:] if len(self.spec.bits) > 1 else batch.extras[:rows]]


class OnNetwork(Evaluator):
    """Base of evaluators that change the evaluations of another evaluator on the same device."""

    def __init__(self, network: Evaluator) -> None:
        self.network = network
        self.inputs, self.batch_size = network.inputs, network.batch_size

    @property
    def description(self) -> str:
        return self.network.description

    def evaluate(self, batch: Batch, rows: int) -> None:
        self.network.evaluate(batch, rows)

    def bind(self, batch: Batch) -> Calls | None:
        return self.network.bind(batch)

    def close(self) -> None:
        self.network.close()


class WithValues(OnNetwork):
    """Uses the policy of one network, and values, scores and ownership of another on the same device."""

    def __init__(self, network: FileEvaluator, values: FileEvaluator) -> None:
        super().__init__(network)
        self.values = values
        self.inputs = network.inputs | values.inputs

    @property
    def description(self) -> str:
        return tr("{network}, values of {other}", network=self.network.description, other=self.values.description)

    def evaluate(self, batch: Batch, rows: int) -> None:
        self.network.evaluate(batch, rows)
        self.values.evaluate(batch._replace(logits=np.empty_like(batch.logits)), rows)

    def bind(self, batch: Batch) -> Calls | None:
        network = self.network.bind(batch)
        values = self.values.bind(batch._replace(logits=np.empty_like(batch.logits)))
        return None if network is None or values is None else network + values

    def close(self) -> None:
        self.values.close()
        self.network.close()


class WithHuman(OnNetwork):
    """A network for the search, and beside it on the same device a network that predicts the moves of people."""

    def __init__(self, network: Evaluator, human: NetworkEvaluator) -> None:
        super().__init__(network)
        self.human = human

    @property
    def description(self) -> str:
        people = self.human.description
        return tr("{network}, moves of people by {people}", network=self.network.description, people=people)

    def close(self) -> None:
        self.human.close()
        self.network.close()


def network_in(evaluator: Evaluator) -> FileEvaluator | None:
    """Return the network that gives an evaluator its policy, or None."""
    while isinstance(evaluator, OnNetwork):
        evaluator = evaluator.network
    return evaluator if isinstance(evaluator, FileEvaluator) else None


F = TypeVar("F", bound=FileFormat)


def open_network(formats: Sequence[type[F]], path: str | Path, size: BoardSize) -> F:
    """Return the network in a file for boards of `size`. The first format that recognises the file is used.

    Raises:
        NetworkError: no format recognises the file, or the network cannot be used.
    """
    file = open_file(path)
    for kind in formats:
        network = kind.recognise(file, size)
        if network is not None:
            return network
    raise NetworkError(f"{path}: {file.title} found, expected {' or '.join(kind.title for kind in formats)}")

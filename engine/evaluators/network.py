"""Evaluators of networks: what a network means to the search (a format) times what computes it (a backend)."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from yomi.engine.evaluators.base import EvaluatorError
from yomi.native.bound_kernels import NO_CALLS
from yomi.native.packing import pack
from yomi.native.spec import Inputs, packed_words
from yomi.native.tree.buffers import make_batch
from yomi.nets.errors import NetworkError, one_line
from yomi.nets.load import open_file

if TYPE_CHECKING:
    from pathlib import Path
    from typing import Self

    from yomi.engine.evaluators.base import Evaluator
    from yomi.native.bound_kernels import Calls, Entry
    from yomi.native.forward.builder import Program
    from yomi.native.spec import GameSpec
    from yomi.native.tree.arrays import Batch
    from yomi.nets.data.metrics import Judged
    from yomi.nets.load import NetworkFile
    from yomi.nets.metadata import NetworkInfo

Array: TypeAlias = npt.NDArray[Any]
FloatArray: TypeAlias = npt.NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Feed:
    """One input of a network."""

    name: str
    """In the ONNX file."""
    shape: tuple[int, ...]
    """Of a row in the ONNX file."""
    dtype: str = "float32"
    constant: bool = False
    """Each channel is one number for the whole board: the evaluator is given [B, channels]."""

    def fill(self, rows: int, numbers: FloatArray | None) -> Array:
        """Return `rows` rows as the ONNX file takes them: the numbers of the first ones, then zeros."""
        filled = np.zeros((rows, *self.shape), self.dtype)
        if numbers is not None:
            filled[: len(numbers)] = numbers[:, :, None, None] if self.constant else numbers
        return filled


class FileFormat(ABC):
    """A kind of network file: what such networks see and say. An object is one file, for one board size."""

    title: ClassVar[str]
    """For error messages."""
    reads: ClassVar[Inputs] = Inputs.NUMBERS
    """What is read of a batch. With NUMBERS the search writes planes and extras, or bits if the device takes them; with
    POSITIONS the format makes its own inputs of the positions."""
    says_value: bool = True
    """Whether the network judges positions; if not, rollouts have to."""
    says_score: bool = True
    """Whether it tells points and owners, in a game that has them."""
    may_have_no_result: bool = False
    """Whether a game can end without a result under the rules that are played; it counts if the network tells that."""

    feature_set: str
    """Name of what the network sees, as in `NetworkInfo`."""
    spec: GameSpec
    """What a search with this network has to know of the game."""
    info: NetworkInfo
    """What is known of the network; at the latest when an evaluator was made of it."""

    @classmethod
    @abstractmethod
    def recognise(cls, file: NetworkFile, size: int) -> Self | None:
        """Return the network in a file for boards of `size`; None if it is of another format.

        Raises:
            NetworkError: it is of this format and cannot be used.
        """


class Format(FileFormat):
    """Networks of layers over a board, which several backends compute."""

    decode: ClassVar[Entry]
    """Writes logits, values and ownership of a batch; its arguments are `arguments`, all numbers being float32."""
    decode_rows: ClassVar[Any]
    """The kernel of `decode`: rows first, then the same arguments; numbers of the network may be halves, as uint16."""
    is_checked: ClassVar[bool] = True
    """Whether a file may be taken for this format by mistake, so that its outputs are looked at when it is loaded."""

    feeds: tuple[Feed, ...]
    """The first ones in the order of `show`; further ones are zeros."""
    outputs: tuple[str, ...]
    """Names in the ONNX file, in the order of the outputs that `arguments` takes."""
    output_shapes: tuple[tuple[int, ...], ...]
    """Of a row, in the order of `outputs`; a policy is [channels, moves]."""
    places: tuple[int, ...] = (0, 1, 2, 3)
    """Where the outputs stand among policy, value, misc and ownership, which a program writes."""
    any_size: bool = False
    """Whether the ONNX file leaves the board's size open, which GPUs have to know."""
    fixed_rows: int | None = None
    """Rows of every batch, if the file was made for batches of one size."""
    gpu_rows: int = 128
    """Rows of a batch at which a GPU is fastest."""

    @abstractmethod
    def onnx_file(self) -> Path:
        """Return an ONNX file that computes the network.

        Raises:
            NetworkError: there is none to be had.
        """

    @abstractmethod
    def program(self, precision: str, *, keep: bool) -> Program:
        """Return the network as a program of our own kernels.

        Args:
            precision: fp32, int16, int8 or bf16; the program says what it became.
            keep: whether the program of a big network is kept for the next start.

        Raises:
            UnsupportedError: they cannot compute it.
            NetworkError: the file cannot be used.
        """

    @abstractmethod
    def arguments(self, outputs: Sequence[Array], batch: Batch) -> tuple[Any, ...]:
        """Return what `decode` wants: outputs [B, ...] and the arrays of a batch, of at least B rows."""

    @abstractmethod
    def judge(self, outputs: Sequence[FloatArray]) -> Judged:
        """Return what raw outputs say, in the terms of the labels of a data set."""

    def show(self, batch: Batch) -> tuple[Calls, tuple[FloatArray, ...]]:
        """Return calls that write the inputs of a batch's first rows, and the arrays they write them to."""
        return NO_CALLS, (batch.planes, batch.extras)

    def check(self, outputs: Sequence[FloatArray]) -> None:
        """See whether the outputs for an empty board are what the format says.

        Raises:
            EvaluatorError: they are not, or not finite.
        """
        if not all(np.isfinite(output).all() for output in outputs):
            names = " or ".join(self.outputs)
            text = f"{self.info.source_file}: {names} that is not finite found, expected numbers"
            raise EvaluatorError(one_line(text))


class Backend(Protocol):
    """Computes a network."""

    name: str
    """Native kernels, onnxruntime, TensorRT."""
    device: str
    """cpu, cuda or tensorrt, the latter two with or without a number."""
    precision: str
    """fp32, int16, int8, bf16, fp16."""
    batch_size: int
    """Rows at which it is fastest."""
    takes_bits: bool
    """Whether inputs of zeros and ones are to come as bits."""

    def run(self, inputs: Sequence[Array]) -> Iterator[tuple[slice, list[Array]]]:
        """Yield the outputs for all rows of the inputs, part by part; they are valid until the next.

        Several threads may call at once, but on a GPU only the one that made the backend.
        """

    def bind(self, inputs: Sequence[FloatArray]) -> tuple[Calls, list[FloatArray]] | None:
        """Return calls that compute the first rows of these arrays without Python, and where the outputs lie then."""

    def close(self) -> None:
        """Release the device; nothing may be called afterwards."""


class FileEvaluator(ABC):
    """A network from a file; see yomi.engine.evaluators.base.Evaluator."""

    format: FileFormat
    info: NetworkInfo
    device: str
    """cpu, cuda or tensorrt, the latter two with or without a number."""
    backend: str
    """What computes it."""
    precision: str
    is_exact: bool = False
    """Whether the file holds the very numbers that are computed with: there is no other precision to compare with."""
    batch_size: int
    inputs: Inputs
    why: str = ""
    """What keeps our own kernels from computing it, in a few words; empty if nothing does, or nobody asked."""

    @property
    def description(self) -> str:
        """The network's name, the device, the backend and the precision."""
        return f"{self.info.name} on {self.device} ({self.backend}, {self.precision})"

    @property
    def spec(self) -> GameSpec:
        """What a search with this network has to know of the game."""
        return self.format.spec

    @abstractmethod
    def evaluate(self, batch: Batch, rows: int) -> None:
        """Write logits, values and ownership of the first `rows` rows."""

    @abstractmethod
    def bind(self, batch: Batch) -> Calls | None:
        """Return the calls that evaluate this batch without Python; None if there are none."""

    @abstractmethod
    def close(self) -> None:
        """Release the device; nothing may be called afterwards."""


class NetworkEvaluator(FileEvaluator):
    """A network of layers, of any format on any backend."""

    format: Format

    def __init__(self, form: Format, backend: Backend) -> None:
        """Put both together."""
        self.format = form
        self._backend = backend
        self.info = form.info
        self.device, self.backend, self.precision = backend.device, backend.name, backend.precision
        self.batch_size = backend.batch_size
        is_packed = backend.takes_bits and form.reads is Inputs.NUMBERS and bool(form.spec.bits)
        self.inputs = Inputs.BITS if is_packed else form.reads

    def evaluate(self, batch: Batch, rows: int) -> None:
        """Write logits, values and ownership of the first `rows` rows."""
        for part, outputs in self._backend.run(self._shown(batch, rows)):
            self._expect_shapes(outputs)
            halves = [output.view(np.uint16) if output.dtype == np.float16 else output for output in outputs]
            arguments = self.format.arguments(halves, type(batch)(*(array[part] for array in batch)))
            self.format.decode_rows(part.stop - part.start, *arguments)

    def _expect_shapes(self, outputs: Sequence[Array]) -> None:
        """Check the outputs of a batch: an ONNX file may compute anything, and kernels trust the sizes.

        Raises:
            EvaluatorError: an output has another size.
        """
        for name, output, shape in zip(self.format.outputs, outputs, self.format.output_shapes, strict=True):
            if output.size != len(output) * math.prod(shape):
                expected = f"expected {math.prod(shape)} numbers a row"
                raise EvaluatorError(one_line(f"{self.info.source_file}: {name} {output.shape} found, {expected}"))

    def bind(self, batch: Batch) -> Calls | None:
        """Return the calls that evaluate this batch without Python; None if the backend has none."""
        shown, inputs = self.format.show(batch)
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
        """See that the network computes, and what is said of its outputs; what decodes a batch is compiled now.

        Raises:
            EvaluatorError: it does not.
        """
        planes, *extras = (feed.shape[:1] if feed.constant else feed.shape for feed in self.format.feeds)
        spread = (np.zeros((1, *shape), np.float32) for shape in extras or [(0,)])
        self.format.check(self.run(np.zeros((1, *planes), np.float32), *spread))
        if self.format.reads is Inputs.NUMBERS:
            self.evaluate(make_batch(self.spec, 1, self.inputs), 1)

    def close(self) -> None:
        """Release the device; nothing may be called afterwards."""
        self._backend.close()

    def _shown(self, batch: Batch, rows: int) -> list[Array]:
        """Return the inputs of the first rows of a batch."""
        if self.inputs is not Inputs.BITS:
            calls, inputs = self.format.show(batch)
            calls.run(rows)
            return [array[:rows] for array in inputs]
        end = packed_words(self.spec.bits[0])
        bits = batch.bits[:rows]
        return [bits[:, :end], bits[:, end:] if len(self.spec.bits) > 1 else batch.extras[:rows]]


def network_in(evaluator: Evaluator) -> FileEvaluator | None:
    """Return the network whose moves an evaluator tells; None if there is none."""
    inner: Evaluator | None = evaluator
    while not isinstance(inner, FileEvaluator | None):
        inner = getattr(inner, "network", None)  # of one that mixes something else with it
    return inner


class WithValues:
    """A network's moves with another one's values, scores and ownership."""

    def __init__(self, network: FileEvaluator, values: FileEvaluator) -> None:
        """Put both together; they are on the same device."""
        self.network = network
        self.values = values
        self.inputs = network.inputs | values.inputs
        self.batch_size = network.batch_size

    @property
    def description(self) -> str:
        """Both on one line."""
        return f"{self.network.description}, values of {self.values.description}"

    def evaluate(self, batch: Batch, rows: int) -> None:
        """Write the logits of one and the values of the other."""
        self.network.evaluate(batch, rows)
        self.values.evaluate(batch._replace(logits=np.empty_like(batch.logits)), rows)

    def bind(self, batch: Batch) -> Calls | None:
        """Return the calls of both; None if one has none."""
        network = self.network.bind(batch)
        values = self.values.bind(batch._replace(logits=np.empty_like(batch.logits)))
        return None if network is None or values is None else network + values

    def close(self) -> None:
        """Release the device."""
        self.values.close()
        self.network.close()


def recognise(formats: Sequence[type[FileFormat]], path: Path, size: int) -> FileFormat:
    """Return the network in a file, of the first of some formats that knows it.

    Raises:
        NetworkError: none does, or the network cannot be used.
    """
    file = open_file(path)
    for each in formats:
        found = each.recognise(file, size)
        if found is not None:
            return found
    raise NetworkError(f"{path}: {file.title} found, expected {' or '.join(each.title for each in formats)}")

"""Evaluators for processors only, without layers: sparse networks, NNUE, and an evaluator without cost for tests."""

from abc import abstractmethod
from typing import ClassVar

from yomi.engine.evaluators.base import Evaluator, EvaluatorError
from yomi.engine.evaluators.devices import CPU, Device, check_backend
from yomi.engine.evaluators.network import FileEvaluator, FileFormat
from yomi.native.bound_kernels import Calls
from yomi.native.forward.emit import WIDTH
from yomi.native.sparse.network import network_of
from yomi.native.spec import Inputs
from yomi.native.tree.arrays import Batch
from yomi.native.tree.uniform import write_zeros
from yomi.nets.errors import NetworkError
from yomi.nets.load import NetworkFile
from yomi.nets.sparse import read_sparse, with_rows

ROWS = 1  # of a batch: an evaluation costs no more than the rest of a playout, and single rows make the best search


class KernelFormat(FileFormat):
    """Base of formats whose networks are kernels. The games' formats implement `recognise` and `bind`."""

    reads = Inputs.POSITIONS
    predicts_score = False
    noun: ClassVar[str]  # name of such networks, for error messages
    backend: ClassVar[str]  # description of the kernels
    precision: ClassVar[str]

    @abstractmethod
    def bind(self, batch: Batch) -> Calls:
        """Return the call that evaluates a batch, with its own scratch memory."""

    def load(
        self,
        device: Device = CPU,
        backend: str = "auto",
        batch_size: int | None = None,
        precision: str = "fp32",
        *,
        keep: bool = True,
    ) -> "KernelEvaluator":
        check_backend(device, backend, precision)
        name = self.info.source_file
        if not (device.is_cpu or device.is_auto) or backend not in ("auto", "native"):
            found = f"device {device} and backend {backend} found for {self.noun}"
            raise EvaluatorError(f"{name}: {found}, expected cpu and native, or auto")
        if precision not in ("auto", self.precision):
            raise EvaluatorError(f"{name}: precision {precision} found for {self.noun}, expected {self.precision}")
        return KernelEvaluator(self, batch_size or ROWS)


class SparseFormat(KernelFormat):
    noun = "a sparse network"
    backend = f"sparse kernels, vectors of {WIDTH}"
    precision = "int16"
    inputs: int  # rows of the game's first layer
    move_rows: int  # rows of its moves

    def __init__(self, file: NetworkFile) -> None:
        """Read a file.

        Raises:
            NetworkError: the file cannot be used.
            OSError: the file cannot be read.
        """
        self.info = file.describe()
        self.feature_set = self.info.feature_set
        self.tensors = with_rows(read_sparse(file.path), self.inputs)
        self.network = network_of(self.tensors)
        found = self.network.rows.shape[0], self.network.moves.shape[0]
        if found != (self.inputs, self.move_rows):
            raise NetworkError(
                f"{file.path}: {found[0]} rows and {found[1]} of moves found, "
                f"expected {self.inputs} and {self.move_rows}"
            )


class KernelEvaluator(FileEvaluator):
    """A network that kernels compute from positions."""

    device = CPU
    is_exact = True
    format: KernelFormat

    def __init__(self, form: KernelFormat, batch_size: int) -> None:
        self.format, self.info = form, form.info
        self.backend, self.precision = form.backend, form.precision
        self.batch_size, self.inputs = batch_size, form.reads

    def bind(self, batch: Batch) -> Calls:
        return self.format.bind(batch)


class UniformEvaluator(Evaluator):
    """An evaluator without cost, for tests and measurements: all priors are equal, all values 0."""

    description = "uniform"

    def __init__(self, batch_size: int = 16, inputs: Inputs = Inputs.NOTHING) -> None:
        """Choose the `inputs` that the search must write, although nobody reads them."""
        self.batch_size = batch_size
        self.inputs = inputs

    def bind(self, batch: Batch) -> Calls:
        return write_zeros.bind(batch.logits, batch.values, batch.ownership)

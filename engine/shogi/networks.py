"""Evaluators of shogi positions: networks by format, and material.

NNUE evaluations (nn.bin) are for the alpha-beta search (yomi.engine.search.alphabeta).
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Self

import numpy as np

from yomi.engine.evaluators.base import Evaluator, EvaluatorError
from yomi.engine.evaluators.kernel_evaluators import KernelFormat, SparseFormat
from yomi.engine.evaluators.network import Feed, FloatArray, PolicyValueFormat
from yomi.engine.options import Options
from yomi.language import tr
from yomi.native.alphabeta.nnue import make_inputs, network_of
from yomi.native.bound_kernels import Calls
from yomi.native.forward.emit import WIDTH
from yomi.native.shogi.effects import EFFECTS_DTYPE
from yomi.native.shogi.material import evaluate_rows as evaluate_material
from yomi.native.shogi.position import MAX_MOVES
from yomi.native.shogi.spec import shogi_spec
from yomi.native.sparse.network import make_scratch
from yomi.native.sparse.shogi import INPUTS, MOVE_ROWS, SCRATCH_DTYPE
from yomi.native.sparse.shogi import evaluate_rows as evaluate_sparse_rows
from yomi.native.spec import Inputs
from yomi.native.tree.arrays import Batch
from yomi.nets.dlshogi.network import ShogiNetwork
from yomi.nets.errors import NetworkError
from yomi.nets.files import source_digest
from yomi.nets.load import NetworkFile, NetworkKind
from yomi.nets.metadata import SHOGI_BOARD, BoardSize, NetworkInfo
from yomi.nets.nnue import read_nnue


class ShogiSparse(SparseFormat):
    """Sparse networks with the inputs of yomi.native.sparse.shogi."""

    title = "a sparse network for shogi"
    inputs, move_rows = INPUTS, MOVE_ROWS
    spec = shogi_spec()

    @classmethod
    def recognise(cls, file: NetworkFile, size: BoardSize) -> Self | None:
        return cls(file) if file.feature_set == SHOGI_BOARD else None

    def bind(self, batch: Batch) -> Calls:
        seen = np.zeros(1, SCRATCH_DTYPE)[0]
        return evaluate_sparse_rows.bind(batch, self.network, make_scratch(self.network, MAX_MOVES), seen)


class Dlshogi(PolicyValueFormat):
    """Shogi networks with dlshogi's two inputs or AlphaZero's one; outputs: policy [directions * 81] and value."""

    title = "a network for shogi (dlshogi ONNX)"

    def __init__(self, path: Path, network: ShogiNetwork, info: NetworkInfo) -> None:
        """Describe an ONNX file. `network` contains its inputs and outputs, `info` its metadata."""
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
    def recognise(cls, file: NetworkFile, size: BoardSize) -> Self | None:
        if file.game != "shogi":
            return None
        if file.shogi is None:
            raise NetworkError(f"{file.path}: {file.title} found, expected {cls.title}")
        return cls(file.path, file.shogi, file.describe())

    def check(self, outputs: Sequence[FloatArray]) -> None:
        # The value's range depends on the form: a winrate, or -1 to 1.
        value = float(outputs[1][0, 0])
        least = 0.0 if self.is_chance else -1.0
        if not least <= value <= 1.0:
            name = self.info.source_file
            raise EvaluatorError(f"{name}: value {value:g} for an empty board found, expected {least:g} to 1")
        super().check(outputs)


# -- NNUE --------------------------------------------------------------------------------------------------------------

FEATURE_SET = "nnue"


class Nnue(KernelFormat):
    """An NNUE evaluation. It has no policy, so only the alpha-beta search uses it."""

    title = "an NNUE evaluation (nn.bin)"
    noun = "an NNUE evaluation"
    backend = f"NNUE kernels, vectors of {WIDTH}"
    precision = "int8"
    feature_set = FEATURE_SET
    spec = shogi_spec()

    def __init__(self, file: NetworkFile) -> None:
        """Read a file. Raises NetworkError or OSError if it cannot be used."""
        self.architecture, self._tensors = read_nnue(file.path)
        name = f"{file.path.stem} ({self.architecture.name})"
        digest = source_digest(file.path)
        self.info = NetworkInfo("shogi", 9, FEATURE_SET, name, file.path.name, digest, 0, 0, 0)
        self.use(Options.for_game("shogi"))

    @classmethod
    def recognise(cls, file: NetworkFile, size: BoardSize) -> Self | None:
        return cls(file) if file.kind is NetworkKind.NNUE else None

    def use(self, options: Options) -> None:
        """Set the scale of values that the options contain."""
        inputs = make_inputs(self.architecture.features.name)
        self.network = network_of(inputs, self._tensors, options.fv_scale)

    def bind(self, batch: Batch) -> Calls:
        raise self.no_tree()

    def no_tree(self) -> NetworkError:
        """Return the error for a tree search with this evaluation, which has no policy."""
        return NetworkError(
            f"{self.info.source_file}: an NNUE evaluation found, expected a network with a policy to search a tree; "
            "such an evaluation plays in yomi play, usi, match and review"
        )


# -- without a network -------------------------------------------------------------------------------------------------


class MaterialEvaluator(Evaluator):
    """Values and priors by hand-made rules, without a network. Equal positions get equal results."""

    inputs = Inputs.POSITIONS

    @property
    def description(self) -> str:
        return tr("material, exchanges and the safety of the kings")

    def __init__(self, batch_size: int = 1) -> None:
        # A position costs microseconds, so single rows give the best search.
        self.batch_size = batch_size

    def bind(self, batch: Batch) -> Calls:
        return evaluate_material.bind(batch, np.zeros(1, EFFECTS_DTYPE)[0])


# Formats in the order in which they try to recognise a file.
FORMATS = (ShogiSparse, Nnue, Dlshogi)

"""NNUE evaluations for shogi (nn.bin): values of a search at each leaf; moves are another network's."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from yomi.engine.evaluators.sparse import KernelFormat
from yomi.native.forward.emit import WIDTH
from yomi.native.shogi.nnue import make_inputs
from yomi.native.shogi.spec import shogi_spec
from yomi.native.sparse.nnue import network_of
from yomi.native.sparse.nnue_leaf import LeafSettings, make_leaf_scratch, make_settings
from yomi.native.sparse.nnue_search import clear_rows, evaluate_leaves
from yomi.native.spec import Inputs
from yomi.nets.files import source_digest
from yomi.nets.load import NetworkKind
from yomi.nets.metadata import NetworkInfo
from yomi.nets.nnue.file import read_nnue

if TYPE_CHECKING:
    from typing import Self

    from yomi.engine.evaluators.network import FileEvaluator
    from yomi.engine.options import Options
    from yomi.native.bound_kernels import Calls
    from yomi.native.tree.arrays import Batch
    from yomi.nets.load import NetworkFile

_LAYERS = ("first", "second", "last")
FEATURE_SET = "nnue"


@dataclass(frozen=True)
class LeafSearch:
    """How leaves are searched; see the options of the same names."""

    fv_scale: int = 24
    nodes: int = 100
    value_scale: float = 450.0
    weight: float = 1.0
    boost: float = 0.0

    @classmethod
    def of(cls, options: Options) -> LeafSearch:
        """Return the settings in the options."""
        return cls(
            options.fv_scale, options.leaf_nodes, options.leaf_value_scale, options.leaf_weight, options.leaf_boost
        )

    @property
    def settings(self) -> LeafSettings:
        """The settings as kernels read them."""
        return make_settings(self.nodes, self.value_scale, self.weight, self.boost)


class Nnue(KernelFormat):
    """An NNUE evaluation. By itself it has no opinion of moves; see `WithLeafSearch`."""

    title = "an NNUE evaluation (nn.bin)"
    noun = "an NNUE evaluation"
    backend = f"NNUE kernels, vectors of {WIDTH}"
    precision = "int8"
    feature_set = FEATURE_SET
    spec = shogi_spec()

    def __init__(self, file: NetworkFile) -> None:
        """Read a file.

        Raises:
            NetworkError: it cannot be used.
            OSError: it cannot be read.
        """
        self.file = read_nnue(file.path)
        name = f"{file.path.stem} ({self.file.architecture.name})"
        digest = source_digest(file.path)
        self.info = NetworkInfo("shogi", 9, FEATURE_SET, name, file.path.name, digest, 0, 0, 0)
        self._tensors: dict[str, Any] = {"rows": self.file.rows, "bias": self.file.bias}
        for layer, numbers in zip(_LAYERS, self.file.layers, strict=True):
            self._tensors |= {layer: numbers.weights, f"{layer}_bias": numbers.bias}
        self.use(LeafSearch())

    @classmethod
    def recognise(cls, file: NetworkFile, size: int) -> Self | None:
        """See FileFormat."""
        return cls(file) if file.kind is NetworkKind.NNUE else None

    def use(self, search: LeafSearch) -> None:
        """Set how leaves are searched by what is bound from now on."""
        self.search = search
        inputs = make_inputs(self.file.architecture.features.name)
        self.network = network_of(inputs, self._tensors, search.fv_scale)

    def bind(self, batch: Batch) -> Calls:
        """Return the calls that evaluate a batch, with equal priors."""
        arguments = batch, self.network, make_leaf_scratch(self.network), self.search.settings
        return clear_rows.bind(*arguments) + evaluate_leaves.bind(*arguments)

    def bind_mixed(self, batch: Batch) -> Calls:
        """Return the call that mixes values into those that a batch has."""
        return evaluate_leaves.bind(batch, self.network, make_leaf_scratch(self.network), self.search.settings)


class WithLeafSearch:
    """A network's moves, with values of a search at each leaf by an NNUE evaluation, or both networks' values mixed."""

    def __init__(self, network: FileEvaluator, values: Nnue) -> None:
        """Put both together."""
        self.network = network
        self.values = values
        self.inputs = network.inputs | Inputs.POSITIONS
        self.batch_size = network.batch_size

    @property
    def description(self) -> str:
        """Both on one line."""
        search = self.values.search
        part = "" if search.weight == 1.0 else f"{search.weight:.0%} "
        return f"{self.network.description}, {part}values of {self.values.info.name} ({search.nodes} nodes a leaf)"

    def evaluate(self, batch: Batch, rows: int) -> None:
        """Write the network's logits and the mixed values of the first `rows` rows."""
        self.network.evaluate(batch, rows)
        self.values.bind_mixed(batch).run(rows)

    def bind(self, batch: Batch) -> Calls | None:
        """Return the calls of both; None if the network has none."""
        network = self.network.bind(batch)
        return None if network is None else network + self.values.bind_mixed(batch)

    def close(self) -> None:
        """Release the device."""
        self.network.close()

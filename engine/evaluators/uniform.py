"""An evaluator without cost, for tests and measurements: equal priors, even values."""

from __future__ import annotations

from typing import TYPE_CHECKING

from yomi.native.spec import Inputs
from yomi.native.tree.uniform import write_zeros

if TYPE_CHECKING:
    from yomi.native.bound_kernels import Calls
    from yomi.native.tree.arrays import Batch


class UniformEvaluator:
    def __init__(self, batch_size: int = 16, inputs: Inputs = Inputs.NOTHING) -> None:
        """With `inputs` the search writes network inputs although nobody reads them."""
        self.batch_size = batch_size
        self.inputs = inputs

    @property
    def description(self) -> str:
        return "uniform"

    def evaluate(self, batch: Batch, rows: int) -> None:
        self.bind(batch).run(rows)

    def bind(self, batch: Batch) -> Calls:
        return write_zeros.bind(batch.logits, batch.values, batch.ownership)

    def close(self) -> None: ...

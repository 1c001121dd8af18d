"""The evaluator that costs nothing: for tests and measurements."""

from __future__ import annotations

from typing import TYPE_CHECKING

from yomi.native.spec import Inputs
from yomi.native.tree.uniform import write_zeros

if TYPE_CHECKING:
    from yomi.native.bound_kernels import Calls
    from yomi.native.tree.arrays import Batch


class UniformEvaluator:
    """Gives every move the same prior and every position an even value, at no cost: for tests and measurements."""

    def __init__(self, batch_size: int = 16, inputs: Inputs = Inputs.NOTHING) -> None:
        """Make one; with `inputs` the search writes them although nobody reads them."""
        self.batch_size = batch_size
        self.inputs = inputs

    @property
    def description(self) -> str:
        """What judges, on one line."""
        return "uniform"

    def evaluate(self, batch: Batch, rows: int) -> None:
        """Write zeros."""
        self.bind(batch).run(rows)

    def bind(self, batch: Batch) -> Calls:
        """Return the call that writes zeros."""
        return write_zeros.bind(batch.logits, batch.values, batch.ownership)

    def close(self) -> None:
        """Do nothing."""

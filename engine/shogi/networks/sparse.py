"""Sparse networks for shogi."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from yomi.engine.evaluators.sparse import SparseFormat
from yomi.native.shogi.position import MAX_MOVES
from yomi.native.shogi.sparse import INPUTS, MOVE_ROWS, SCRATCH_DTYPE
from yomi.native.shogi.spec import shogi_spec
from yomi.native.sparse.network import make_scratch
from yomi.native.sparse.shogi import evaluate_rows
from yomi.nets.features import SHOGI_BOARD

if TYPE_CHECKING:
    from typing import Self

    from yomi.native.bound_kernels import Calls
    from yomi.native.tree.arrays import Batch
    from yomi.nets.load import NetworkFile


class ShogiSparse(SparseFormat):
    """Pieces and moves as yomi.native.shogi.sparse sees them."""

    title = "a sparse network for shogi"
    inputs, move_rows = INPUTS, MOVE_ROWS
    spec = shogi_spec()

    @classmethod
    def recognise(cls, file: NetworkFile, size: int) -> Self | None:
        """See FileFormat."""
        return cls(file) if file.feature_set == SHOGI_BOARD else None

    def bind(self, batch: Batch) -> Calls:
        """See SparseFormat."""
        seen = np.zeros(1, SCRATCH_DTYPE)[0]
        return evaluate_rows.bind(batch, self.network, make_scratch(self.network, MAX_MOVES), seen)

"""Evaluation by material, exchanges and king safety, without a network."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import numpy as np

from yomi.native.shogi.effects import EFFECTS_DTYPE
from yomi.native.shogi.material import evaluate_rows
from yomi.native.spec import Inputs

if TYPE_CHECKING:
    from yomi.native.calls import Calls
    from yomi.native.tree.arrays import Batch


class _Local(threading.local):
    # attack tables, one set for each thread

    def __init__(self) -> None:
        self.effects = np.zeros(1, EFFECTS_DTYPE)[0]


class MaterialEvaluator:
    """Hand-made values and priors. Equal positions get equal results."""

    inputs = Inputs.POSITIONS

    def __init__(self, batch_size: int = 1) -> None:
        # A position costs microseconds, so single rows give the best search.
        self.batch_size = batch_size
        self._local = _Local()

    @property
    def description(self) -> str:
        return "material, exchanges and the safety of the kings"

    def evaluate(self, batch: Batch, rows: int) -> None:
        self.bind(batch).run(rows)

    def bind(self, batch: Batch) -> Calls:
        """Return the call that evaluates this batch, with scratch memory of the calling thread."""
        return evaluate_rows.bind(batch, self._local.effects)

    def close(self) -> None: ...

"""Judging shogi positions by material, exchanges and the safety of the kings: play without a network."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import numpy as np

from yomi.native.shogi.effects import EFFECTS_DTYPE
from yomi.native.shogi.material import evaluate_rows
from yomi.native.spec import Inputs

if TYPE_CHECKING:
    from yomi.native.bound_kernels import Calls
    from yomi.native.tree.arrays import Batch


class _Local(threading.local):
    """One thread's attack tables."""

    def __init__(self) -> None:
        self.effects = np.zeros(1, EFFECTS_DTYPE)[0]


class MaterialEvaluator:
    """Hand-made values and priors; equal positions get equal answers."""

    inputs = Inputs.POSITIONS

    def __init__(self, batch_size: int = 1) -> None:
        """Make one; as it costs microseconds a position, batches of one make the best search."""
        self.batch_size = batch_size
        self._local = _Local()

    @property
    def description(self) -> str:
        """What judges, on one line."""
        return "material, exchanges and the safety of the kings"

    def evaluate(self, batch: Batch, rows: int) -> None:
        """Write logits and values of the first `rows` rows; scores are zero."""
        self.bind(batch).run(rows)

    def bind(self, batch: Batch) -> Calls:
        """Return the call that evaluates this batch, with the effects of the thread that asks."""
        return evaluate_rows.bind(batch, self._local.effects)

    def close(self) -> None:
        """Do nothing."""

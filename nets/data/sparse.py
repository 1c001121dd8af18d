"""Inputs of sparse networks: the table rows that are added up for each position, and for each legal move.

Data sets contain boards. The rows are computed for every batch by the game's encoder. The caller of a training passes
the encoder, since this package knows no rules.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class SparseRows:
    """The rows of B positions, concatenated: A active rows and M legal moves in all."""

    active: npt.NDArray[np.int32]
    """int[A]: rows of the first layer."""
    active_starts: npt.NDArray[np.int64]
    """int[B + 1]: first active row of each position."""
    rows: npt.NDArray[np.int32]
    """int[M, parts]: rows of the move table."""
    labels: npt.NDArray[np.int32]
    """int[M]: policy index of each move, unique within a position."""
    starts: npt.NDArray[np.int64]
    """int[B + 1]: first move of each position."""


class SparseEncoder(Protocol):
    """A game's encoder, and the products for moves on a processor. Any thread may call it."""

    inputs: int
    """Number of rows of the first layer."""
    max_active: int
    """Maximum number of active rows of a position."""
    tables: tuple[int, ...]
    """Number of rows of each move table. A move has one row in each; the tables are concatenated."""

    def encode(self, levels: npt.NDArray[np.uint8], globals_: npt.NDArray[Any]) -> SparseRows:
        """Return the rows of positions.

        Args:
            levels: [B, levels, N * N] as in data sets.
            globals_: [B, globals].
        """

    def logits(
        self, units: FloatArray, table: FloatArray, bias: FloatArray, found: SparseRows, threads: int
    ) -> FloatArray:
        """Return the logit of each move: its position's units times the sum of its rows, plus their biases.

        Args:
            units: [B, P].
            table: [R, P], all move tables.
            bias: [R].
            found: the rows of the positions.
            threads: number of threads to use.
        """

    def gradients(
        self, units: FloatArray, table: FloatArray, found: SparseRows, slopes: FloatArray, threads: int
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return the gradients of units, table and bias from those of the logits [M]. Arguments as in `logits`."""


FindEncoder = Callable[[str], SparseEncoder | None]
"""Returns the encoder of a feature set, or None. It must be a function that pickle can send by name to other processes.
"""


def no_encoder(feature_set: str) -> None:
    """Return None: without a game there is no encoder."""

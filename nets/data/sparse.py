"""What a sparse network sees of positions: which rows of its tables are added up for each, and for each legal move.

Data sets keep boards; the rows are found anew for every batch by the game's own encoder, which whoever makes a training
hands in: this package knows no rules.
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
    """The rows of B positions, one position's behind the other's: A active rows and M legal moves together."""

    active: npt.NDArray[np.int32]
    """[A] rows of the first layer."""
    active_starts: npt.NDArray[np.int64]
    """[B + 1], where those of each position begin."""
    rows: npt.NDArray[np.int32]
    """[M, parts] rows of the table of moves."""
    labels: npt.NDArray[np.int32]
    """[M] policy index of each move; no two moves of a position share one."""
    starts: npt.NDArray[np.int64]
    """[B + 1], the first move of each position."""


class SparseEncoder(Protocol):
    """A game's encoder, and the products of moves, as they are computed on a processor; called from any thread."""

    inputs: int
    """Rows of the first layer."""
    max_active: int
    """Of a position, at most."""
    tables: tuple[int, ...]
    """Rows of each table of moves: a move has one of each, and they lie behind one another."""

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
            table: [R, P] all tables of moves.
            bias: [R].
            found: of the positions.
            threads: that compute.
        """

    def gradients(
        self, units: FloatArray, table: FloatArray, found: SparseRows, slopes: FloatArray, threads: int
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return the gradients of units, table and bias, given those of the logits [M]; otherwise see `logits`."""


FindEncoder = Callable[[str], SparseEncoder | None]
"""Returns the encoder of a feature set, None where there is none; a function that processes can be sent by name."""


def no_encoder(feature_set: str) -> None:
    """Return None: where no game is known, there is no encoder."""

"""Move logits of sparse networks and their gradients, by kernels in threads, for the encoders of all games."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from yomi.native.datasets.sparse import LANES, add_move_gradients, move_logits
from yomi.nets.errors import NetworkError

if TYPE_CHECKING:
    from yomi.nets.sparse import FloatArray, SparseRows


Result = TypeVar("Result")


class MoveProducts:
    """Implements part of yomi.nets.sparse.SparseEncoder. Positions are divided among threads."""

    def __init__(self) -> None:
        self._pool = ThreadPoolExecutor(os.cpu_count() or 1, "products")

    def logits(
        self, units: FloatArray, table: FloatArray, bias: FloatArray, found: SparseRows, threads: int
    ) -> FloatArray:
        if units.shape[1] % LANES:
            raise NetworkError(f"{units.shape[1]} units for moves found, expected a multiple of {LANES}")
        logits = np.zeros(len(found.labels), np.float32)

        def compute(first: int, last: int) -> None:
            sums = np.zeros(units.shape[1], np.float32)
            move_logits(units, table, bias, found.rows, found.starts, first, last, sums, logits)

        self._share_out(compute, len(units), threads)
        return logits

    def gradients(
        self, units: FloatArray, table: FloatArray, found: SparseRows, slopes: FloatArray, threads: int
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        of_units = np.zeros_like(units)

        def compute(first: int, last: int) -> tuple[FloatArray, FloatArray]:
            # A table for each thread: threads must not add to the same row.
            of_table, of_bias = np.zeros_like(table), np.zeros(len(table), np.float32)
            add_move_gradients(units, table, found.rows, found.starts, slopes, first, last, of_units, of_table, of_bias)
            return of_table, of_bias

        (of_table, of_bias), *others = self._share_out(compute, len(units), threads)
        for other_table, other_bias in others:
            of_table += other_table
            of_bias += other_bias
        return of_units, of_table, of_bias

    def _share_out(self, compute: Callable[[int, int], Result], rows: int, threads: int) -> list[Result]:
        ends = [rows * part // threads for part in range(threads + 1)]
        parts = list(itertools.pairwise(ends))
        if threads == 1:
            return [compute(0, rows)]
        return list(self._pool.map(lambda part: compute(*part), parts))

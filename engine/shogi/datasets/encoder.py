"""Inputs and move logits of sparse networks for shogi, computed from the boards of data sets by kernels in threads."""

import itertools
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from yomi.native.datasets.sparse import LANES, add_move_gradients, encode_boards, move_logits
from yomi.native.shogi.pieces import HAND_TYPES, KING, PROMOTION, WHITE_PIECE
from yomi.native.shogi.position import FORM_DLSHOGI, MAX_HISTORY, MAX_MOVES, POSITION_DTYPE
from yomi.native.sparse.shogi import INPUTS, MAX_ACTIVE, PARTS, SCRATCH_DTYPE, TABLES
from yomi.nets.errors import NetworkError
from yomi.nets.metadata import SHOGI_BOARD
from yomi.nets.sparse import FloatArray, SparseRows

Result = TypeVar("Result")

# Pieces of each kind in a full set, kings last. The first entry stands for numbers that are not pieces.
PIECES = np.array([0, 18, 4, 4, 4, 2, 2, 4, 2])
EMPTY = len(PIECES)


def _kinds() -> npt.NDArray[np.uint8]:
    # The kind of each number on a board, promoted or not; EMPTY if there is no piece.
    kinds = np.zeros(256, np.uint8)
    kinds[0] = EMPTY
    for code in range(1, KING + 7):
        kinds[code] = kinds[code + WHITE_PIECE] = code if code <= KING else code - PROMOTION
    return kinds


KIND_OF = _kinds()


class ShogiEncoder:
    """Encodes levels and globals of the feature set shogi-board. Implements yomi.nets.sparse.SparseEncoder.

    Moves are those of a search (yomi.native.shogi.waivers). Boards have no history, so repetitions are ignored.
    Positions are divided among threads.
    """

    inputs = INPUTS
    max_active = MAX_ACTIVE
    tables: tuple[int, ...] = TABLES

    def __init__(self) -> None:
        self._pool = ThreadPoolExecutor(os.cpu_count() or 1, "products")

    def encode(self, levels: npt.NDArray[np.uint8], globals_: npt.NDArray[Any]) -> SparseRows:
        boards, hands = levels[:, 0], globals_.astype(np.uint8)
        _check(boards, hands)
        count = len(boards)
        position = np.zeros(1, POSITION_DTYPE)[0]
        position["form"] = FORM_DLSHOGI
        # Most of these places stay untouched, and take no memory.
        active, rows = np.empty(count * MAX_ACTIVE, np.int32), np.empty((count * MAX_MOVES, PARTS), np.int32)
        labels = np.empty(count * MAX_MOVES, np.int32)
        active_starts, starts = np.zeros(count + 1, np.int64), np.zeros(count + 1, np.int64)
        encode_boards(
            np.ascontiguousarray(boards),
            hands.reshape(count, 2, 7),
            position,
            np.zeros(MAX_HISTORY, np.uint64),
            np.zeros(1, SCRATCH_DTYPE)[0],
            np.zeros(MAX_MOVES, np.uint16),
            active,
            active_starts,
            rows,
            labels,
            starts,
        )
        return SparseRows(active[: active_starts[-1]], active_starts, rows[: starts[-1]], labels[: starts[-1]], starts)

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


def encoder_of(features: str) -> ShogiEncoder | None:
    return ShogiEncoder() if features == SHOGI_BOARD else None


def _check(boards: npt.NDArray[np.uint8], hands: npt.NDArray[np.uint8]) -> None:
    # Kernels have room for the pieces of one set only.
    kinds = KIND_OF[boards]
    counts = np.stack([(kinds == kind).sum(1) for kind in range(len(PIECES))], axis=1)
    counts[:, list(HAND_TYPES)] += hands.reshape(-1, 2, 7).sum(1, dtype=np.int64)
    if (counts > PIECES).any():
        row, kind = np.argwhere(counts > PIECES)[0].tolist()
        what = f"pieces of kind {kind}" if kind else "squares with a number that is no piece"
        raise NetworkError(f"a board with {counts[row, kind]} {what} found, expected at most {PIECES[kind]}")

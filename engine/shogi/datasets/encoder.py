"""Inputs of sparse networks from the boards of a data set (yomi.native.shogi.sparse)."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from yomi.engine.datasets.sparse import MoveProducts
from yomi.native.datasets.sparse import encode_boards
from yomi.native.shogi.position import FORM_DLSHOGI, MAX_HISTORY, MAX_MOVES, POSITION_DTYPE
from yomi.native.shogi.sparse import INPUTS, MAX_ACTIVE, PARTS, SCRATCH_DTYPE, TABLES
from yomi.native.shogi.tables import HAND_TYPES, KING, PROMOTED, WHITE_PIECE
from yomi.nets.data.sparse import SparseRows
from yomi.nets.errors import NetworkError

# Pieces of each kind in a full set, kings last. The first entry stands for numbers that are not pieces.
PIECES = np.array([0, 18, 4, 4, 4, 2, 2, 4, 2])
EMPTY = len(PIECES)


def _kinds() -> npt.NDArray[np.uint8]:
    # The kind of each number on a board, promoted or not; EMPTY if there is no piece.
    kinds = np.zeros(256, np.uint8)
    kinds[0] = EMPTY
    for code in range(1, KING + 7):
        kinds[code] = kinds[code + WHITE_PIECE] = code if code <= KING else code - PROMOTED
    return kinds


KIND_OF = _kinds()


class ShogiEncoder(MoveProducts):
    """Encodes levels and globals of the feature set shogi-board. Implements yomi.nets.data.sparse.SparseEncoder.

    Moves are those of a search (yomi.native.shogi.waivers). Boards have no history, so repetitions are ignored.
    """

    inputs = INPUTS
    max_active = MAX_ACTIVE
    tables: tuple[int, ...] = TABLES

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


def _check(boards: npt.NDArray[np.uint8], hands: npt.NDArray[np.uint8]) -> None:
    # Kernels have room for the pieces of one set only.
    kinds = KIND_OF[boards]
    counts = np.stack([(kinds == kind).sum(1) for kind in range(len(PIECES))], axis=1)
    counts[:, list(HAND_TYPES)] += hands.reshape(-1, 2, 7).sum(1, dtype=np.int64)
    if (counts > PIECES).any():
        row, kind = np.argwhere(counts > PIECES)[0].tolist()
        what = f"pieces of kind {kind}" if kind else "squares with a number that is no piece"
        raise NetworkError(f"a board with {counts[row, kind]} {what} found, expected at most {PIECES[kind]}")

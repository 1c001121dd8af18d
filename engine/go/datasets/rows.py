"""Positions of Go as columns of a data set, with labels from the game's result or a teacher."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from yomi.engine.color import BLACK
from yomi.engine.datasets.making import Columns
from yomi.engine.go.datasets.games import GameTable
from yomi.native.datasets.replay import COLOR_SHIFT, POINT_MASK, replay
from yomi.native.go.aya import AYA_SCRATCH_DTYPE, VALUE_PLANES, write_aya
from yomi.native.go.board import POSITION_DTYPE
from yomi.native.go.planes import policy_index, write_planes
from yomi.native.go.rules import MAX_HISTORY
from yomi.native.go.scratch import SCRATCH_DTYPE
from yomi.native.go.stones import write_stones
from yomi.nets.data.shards import COLUMNS, UNKNOWN_OWNER, widths
from yomi.nets.features import FeatureSet

# A position in a table: game, number of moves, and symmetry or -1.
PLY_DTYPE = np.dtype([("game", np.int64), ("ply", np.int32), ("symmetry", np.int8)])


@dataclass(frozen=True)
class Row:
    position: Any
    history: Any
    game: Any  # GAME_DTYPE
    ply: int


def blank_columns(features: FeatureSet, size: int, rows: int, moves: int, *, judged: bool) -> Columns:
    """Return the columns of an empty shard.

    Args:
        features: input features.
        size: N.
        rows: number of positions.
        moves: maximum moves of a policy target.
        judged: include columns that only a teacher can fill.
    """
    width = widths(features, size)
    shapes: dict[str, tuple[int, ...]] = {"planes": (width["planes"],), "value": (), "komi": ()}
    shapes |= {name: (width[name],) for name in ("levels", "globals") if width[name]}
    shapes |= {"policy_moves": (moves,), "policy_weights": (moves,), "lead": (), "score_mean": ()}
    if judged:
        shapes |= {"score_stdev": (), "ownership": (width["ownership"],)}
    return {name: _blank(name, (rows, *shape)) for name, shape in shapes.items()}


def _blank(name: str, shape: tuple[int, ...]) -> npt.NDArray[np.generic]:
    dtype = COLUMNS[name][0]
    if name == "ownership":
        return np.full(shape, UNKNOWN_OWNER, dtype)
    if dtype is np.float16 and name not in ("policy_weights", "globals"):
        return np.full(shape, np.nan, dtype)
    return np.zeros(shape, dtype)


class Scratch(threading.local):
    """Scratch memory of each thread."""

    def __init__(self) -> None:
        self.go = np.zeros(1, SCRATCH_DTYPE)[0]
        self.aya = np.zeros(1, AYA_SCRATCH_DTYPE)[0]


class RowWriter:
    """Writes rows of one feature set from a table of games."""

    def __init__(self, table: GameTable, features: FeatureSet, believed: npt.NDArray[np.bool_]) -> None:
        """`believed`: mask of the games with a trusted result. Other results stay unknown."""
        self.table = table
        self.features = features
        self.believed = believed
        self._scratch = Scratch()

    def replayed(self, plies: npt.NDArray[np.void]) -> list[Row]:
        """Return the positions of PLY_DTYPE[n]."""
        positions = np.zeros(len(plies), POSITION_DTYPE)
        rows = []
        for position, entry in zip(positions, plies, strict=True):
            history = np.zeros(MAX_HISTORY, np.uint64)
            game = self.table.games[entry["game"]]
            replay(position, history, game, self.table.codes, int(entry["ply"]))
            rows.append(Row(position, history, game, int(entry["ply"])))
        return rows

    def write_features(self, rows: list[Row], size: int, columns: Columns, first: int) -> None:
        features = self.features
        planes = np.zeros((len(rows), features.planes, size, size), np.float32)
        globals_ = np.zeros((len(rows), features.globals), np.float32)
        for row, target, numbers in zip(rows, planes, globals_, strict=True):
            if features.name == "katago-v7":
                write_planes(row.position, row.history, 0, self._scratch.go, target, numbers)
            elif features.name.startswith("aya"):
                write_aya(row.position, row.history, 0, self._scratch.aya, target, numbers)
            else:
                write_stones(row.position, row.history, 0, self._scratch.aya, target, numbers)
        part = slice(first, first + len(rows))
        bits = planes[:, : features.bits].reshape(len(rows), -1) != 0.0
        columns["planes"][part] = np.packbits(bits, axis=1)
        if features.levels:
            columns["levels"][part] = planes[:, features.bits :].reshape(len(rows), -1)
        if features.globals:
            columns["globals"][part] = globals_
        columns["komi"][part] = [-self.sign(row) * float(row.position["komi"]) for row in rows]

    def write_results(self, rows: list[Row], plies: npt.NDArray[np.void], columns: Columns, first: int) -> None:
        """Write the move played and the labels from the game's result."""
        for index, (row, entry) in enumerate(zip(rows, plies, strict=True), first):
            game = row.game
            if row.ply < int(game["moves"]):
                code = int(self.table.codes[int(game["start"]) + int(game["stones"]) + row.ply])
                columns["policy_moves"][index, 0] = policy_index(int(game["size"]), code & POINT_MASK, 0)
                columns["policy_weights"][index, 0] = 1.0
                assert code >> COLOR_SHIFT == row.position["side_to_move"]
            if self.believed[entry["game"]]:
                sign = self.sign(row)
                winner = int(game["winner"])
                columns["value"][index] = 0.0 if winner == 0 else sign if winner == BLACK else -sign
                if np.isfinite(game["margin"]):
                    margin = float(game["margin"]) * (sign if winner == BLACK else -sign)
                    columns["lead"][index] = columns["score_mean"][index] = margin

    def sign(self, row: Row) -> float:
        """Return 1 if the row's values are Black's, or -1 if they are White's."""
        own = self.features.bits != VALUE_PLANES and row.position["side_to_move"] != BLACK
        return -1.0 if own else 1.0

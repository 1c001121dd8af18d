"""The columns of data sets, with the type and form of each. All readers and writers use this table."""

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

Array: TypeAlias = npt.NDArray[Any]

UNKNOWN_OWNER = -128
OWNER_SCALE = 127.0
OWN = "own_"
"""Prefix of columns of a user's own targets (docs/how-to/learning.md). The end of the name decides the form."""

# Forms of columns
INPUT = "input"  # the network reads it
NUMBER = "number"  # one number a row
MOVES = "moves"  # [n, K] policy indices; symmetries change them
SHARES = "shares"  # [n, K] probabilities of the moves in the column before; 0 without a move
POINTS = "points"  # [n, N * N] numbers times OWNER_SCALE; symmetries move them
INDEX = "index"  # where the row is from, or how it is read


@dataclass(frozen=True, slots=True)
class ColumnKind:
    dtype: type[np.generic]
    form: str
    meaning: str
    is_bounded: bool = False  # whether all numbers are in [-1, 1]

    @property
    def axes(self) -> int:
        return 1 + (self.form in (MOVES, SHARES, POINTS, INPUT))

    @property
    def is_label(self) -> bool:
        return self.form not in (INPUT, INDEX)

    @property
    def unknown(self) -> float:
        """The element of a row that has no label in this column."""
        return UNKNOWN_OWNER if self.form == POINTS else np.nan if self.form == NUMBER else 0


def _number(meaning: str, *, is_bounded: bool = False) -> ColumnKind:
    return ColumnKind(np.float16, NUMBER, meaning, is_bounded)


COLUMNS: dict[str, ColumnKind] = {
    "planes": ColumnKind(np.uint8, INPUT, "[n, bytes] planes of bits [bits, N, N], packed, the first bit the highest"),
    "levels": ColumnKind(np.uint8, INPUT, "[n, levels * N * N] planes of small numbers"),
    "globals": ColumnKind(np.float16, INPUT, "[n, globals]"),
    "policy_moves": ColumnKind(np.uint16, MOVES, "[n, K] policy indices of the target's moves"),
    "policy_weights": ColumnKind(np.float16, SHARES, "[n, K] shares of these moves, 0 if there are fewer than K"),
    "value": _number("[n] result of the game, or a teacher's value, in [-1, 1]", is_bounded=True),
    "search_value": _number("[n] value of the players' own search, in [-1, 1]", is_bounded=True),
    "progress": _number("[n] share of the game's moves that were played before, in [0, 1]", is_bounded=True),
    "lead": _number("[n] lead in points"),
    "komi": _number("[n] komi in points, which all columns of points include, for their side"),
    "score_mean": _number("[n] expected final score in points"),
    "score_stdev": _number("[n] standard deviation of the final score, in points"),
    "short_value": _number(
        "[n] value of the search some moves later, for the side to move here, in [-1, 1]", is_bounded=True
    ),
    "short_score": _number("[n] expected final score of the search some moves later, in points"),
    "ownership": ColumnKind(np.int8, POINTS, "[n, N * N] ownership times 127, in [-127, 127]"),
    "game": ColumnKind(np.uint32, INDEX, "[n] number of the game in the records beside the set"),
    "ply": ColumnKind(np.uint16, INDEX, "[n] number of moves before the position"),
    "symmetry": ColumnKind(np.int8, INDEX, "[n] symmetry under which training encodes the position, 0 to 7"),
}
_OWN_FORMS = {
    "_moves": ColumnKind(np.uint16, MOVES, "[n, K] policy indices"),
    "_weights": ColumnKind(np.float16, SHARES, "[n, K] shares of the moves of the same name"),
    "_points": ColumnKind(np.int8, POINTS, "[n, N * N] numbers in [-1, 1] times 127"),
}


def kind_of(name: str) -> ColumnKind | None:
    """Return the kind of a column, or None if there is no such column."""
    if not name.startswith(OWN):
        return COLUMNS.get(name)
    ends = (kind for end, kind in _OWN_FORMS.items() if name.endswith(end))
    return next(ends, _number("[n] numbers"))


def cast(name: str, array: Array) -> Array:
    kind = kind_of(name)
    if kind is None:
        raise KeyError(name)
    return np.ascontiguousarray(array, kind.dtype)

"""What the search has to know about a game to make its arrays: sizes and types, no rules."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt


@dataclass(frozen=True, slots=True)
class GameSpec:
    """Sizes of one game's arrays. The rules are kernels, found by the type of the position record (native.game)."""

    name: str
    """go or shogi"""
    position_dtype: np.dtype[np.void]
    scratch_dtype: np.dtype[np.void]
    """What `write_planes` works in; one record for each search thread."""
    max_moves: int
    """Legal moves of a position, at most."""
    max_history: int
    policy_size: int
    area: int
    """Points that ownership is told for; 0 for none."""
    planes_shape: tuple[int, ...]
    extras_shape: tuple[int, ...]
    cached_moves: int
    """Priors that a cached evaluation has room for, in the order of the position's moves, which is always the same.
    0: one for each place of the policy, as a position's moves may come in any order."""
    mean_moves: float
    """Legal moves of a position on average; decides how a tree's memory is shared out."""
    score_unit: float
    """Points of score that count as much; the square root of the board's area in Go. Unused where scores are 0."""
    marks: tuple[tuple[str, int], ...] = ()
    """Fields of the position records, with their values, that say how the network is to be shown a position."""

    def positions(self, count: int) -> npt.NDArray[np.void]:
        """Return `count` blank position records."""
        return np.zeros(count, self.position_dtype)

    def marked(self, position: np.void) -> np.void:
        """Return a copy of a position record that has the marks."""
        record = self.positions(1)
        record[0] = position
        for name, value in self.marks:
            record[name] = value
        return record[0]  # type: ignore[no-any-return]

"""What the search has to know about a game to make its arrays: sizes and types, no rules."""

from dataclasses import dataclass
from enum import Flag, auto

import numpy as np
import numpy.typing as npt


def packed_words(count: int) -> int:
    """Return the uint64 words that `count` zeros and ones take."""
    return -(-count // 64)


class Inputs(Flag):
    """What an evaluator reads of a batch, which is all that the search writes there."""

    NOTHING = 0
    """Nothing of the position."""
    NUMBERS = auto()
    """The network's inputs as numbers: planes and extras."""
    BITS = auto()
    """The inputs that are zeros and ones as bits, as GPUs take them, and extras where they are others."""
    POSITIONS = auto()
    """The positions themselves."""
    NETWORK = NUMBERS | BITS
    """Of a network, in either form."""


@dataclass(frozen=True, slots=True)
class GameSpec:
    """Sizes of one game's arrays. The rules are kernels, found by the type of the position record
    (yomi.native.game).
    """

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
    bits: tuple[int, ...]
    """Zeros and ones of each input that `write_bits` writes as bits, which begin with a word of their own: the planes,
    and the extras if they are zeros and ones too. Empty if the planes have other numbers: there are no bits then."""
    cached_moves: int
    """Priors that a cached evaluation has room for, in the order of the position's moves, which is always the same.
    0: one for each place of the policy, as a position's moves may come in any order."""
    mean_moves: float
    """Legal moves of a position on average."""
    mean_edges: float
    """Edges of a node on average, where a network gives most moves next to nothing (native/tree/expansion.py): decides
    how a tree's memory is shared out."""
    score_unit: float
    """Points of score that count as much; the square root of the board's area in Go. Unused where scores are 0."""
    marks: tuple[tuple[str, int], ...] = ()
    """Fields of the position records, with their values, that say how the network is to be shown a position."""

    @property
    def words(self) -> int:
        """uint64 words of a position's bits."""
        return sum(map(packed_words, self.bits))

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

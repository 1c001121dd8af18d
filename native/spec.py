"""Sizes and types of a game's arrays. The rules are kernels (yomi.native.game)."""

from dataclasses import dataclass
from enum import Flag, auto

import numpy as np
import numpy.typing as npt


def packed_words(count: int) -> int:
    """Return the number of uint64 words that hold `count` bits."""
    return -(-count // 64)


class Inputs(Flag):
    """Inputs that an evaluator reads from a batch. The search writes no others."""

    NOTHING = 0
    NUMBERS = auto()  # planes and extras as float32
    BITS = auto()  # binary inputs as bits, for GPUs; extras as float32 if they are not binary
    POSITIONS = auto()  # position records
    NETWORK = NUMBERS | BITS


@dataclass(frozen=True, slots=True)
class GameSpec:
    """Sizes of one game's arrays."""

    name: str  # go or shogi
    position_dtype: np.dtype[np.void]
    scratch_dtype: np.dtype[np.void]  # working memory of `write_planes`, one record per thread
    max_moves: int  # maximum number of legal moves
    max_history: int
    policy_size: int
    area: int  # number of points with ownership; 0 for none
    planes_shape: tuple[int, ...]
    extras_shape: tuple[int, ...]
    # Bits of each input that `write_bits` writes: of the planes, and of the extras if they are binary. Each input
    # starts a new word. Empty if the planes are not binary.
    bits: tuple[int, ...]
    # Maximum number of priors of a cached evaluation, in the order of the position's moves, which must be
    # deterministic. 0: priors are cached by policy index, for games whose moves come in any order.
    cached_moves: int
    mean_moves: float  # average number of legal moves
    # Average number of edges of a node; less than mean_moves, as native/tree/expansion.py drops unlikely moves.
    mean_edges: float
    # Scale of the score utility in points: the square root of the board's area in Go. Unused if scores are 0.
    score_unit: float
    # Fields of position records, with values, that control the network's input.
    position_flags: tuple[tuple[str, int], ...] = ()
    # Whether the root may decide that a game is over: a repetition in a line counts differently once it is played.
    root_decides: bool = False

    @property
    def words(self) -> int:
        return sum(map(packed_words, self.bits))

    def positions(self, count: int) -> npt.NDArray[np.void]:
        return np.zeros(count, self.position_dtype)

    def with_flags(self, position: np.void) -> np.void:
        """Return a copy of a position record with the flags set."""
        record = self.positions(1)
        record[0] = position
        for name, value in self.position_flags:
            record[name] = value
        return record[0]  # type: ignore[no-any-return]

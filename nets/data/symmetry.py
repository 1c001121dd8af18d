"""The symmetries of boards, as tables of the new indices of points and moves.

Games whose moves are points have the eight symmetries of a square, numbered as in KataGo: flip rows (1), columns (2),
then swap the two (4). Shogi has two: identity, and left and right exchanged. Its planes are [file][rank], and moves
have the labels direction * 81 + square.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from yomi.nets.dlshogi.network import SIDE
from yomi.nets.metadata import FeatureSet

# Mirror images of the directions up, up left, up right, left, right, down, down left, down right, and the two knight's
# moves.
DLSHOGI_MIRRORED = (0, 2, 1, 4, 3, 5, 7, 6, 9, 8)
# Mirror images of the eight directions with eight distances each. Two knight's moves follow.
ALPHAZERO_MIRRORED = (3, 4, 5, 0, 1, 2, 6, 7)
DROPS = 7


@dataclass(frozen=True)
class Symmetries:
    """The symmetries of a feature set for one board size. The first one is the identity."""

    points: npt.NDArray[np.int64]  # [S, N * N]: the new index of each point
    moves: npt.NDArray[np.int64]  # [S, P]: the new index of each policy entry

    @property
    def sources(self) -> npt.NDArray[np.int64]:
        """For each symmetry and each new index, the old index of the point that comes there: [S, N * N]."""
        return np.argsort(self.points, axis=1)


def symmetries_of(features: FeatureSet, size: int) -> Symmetries:
    if not features.symmetric:
        return Symmetries(np.arange(size**2)[None], np.arange(features.policy_size(size))[None])
    if not features.directions:
        tables = symmetry_tables(size)
        return Symmetries(tables[:, :-1], tables)
    points = np.arange(SIDE * SIDE)
    mirrored = points.reshape(SIDE, SIDE)[::-1].reshape(-1)
    # dlshogi has ten directions and AlphaZero 66 ways to move, then the same with promotion, then the drops.
    steps = _mirrored_ways() if features.name.startswith("alphazero") else np.array(DLSHOGI_MIRRORED)
    directions = np.concatenate([steps, len(steps) + steps, 2 * len(steps) + np.arange(DROPS)])
    labels = np.arange(len(directions) * SIDE * SIDE)
    moves = (directions[:, None] * SIDE * SIDE + mirrored).reshape(-1)
    return Symmetries(np.stack([points, mirrored]), np.stack([labels, moves]))


def symmetry_tables(size: int) -> npt.NDArray[np.int64]:
    """Return tables [8, N * N + 1] for Go: the new index of point i under each symmetry. The pass stays last."""
    points = np.arange(size * size).reshape(size, size)
    tables = np.empty((8, size * size + 1), np.int64)
    for symmetry in range(8):
        seen = points[::-1] if symmetry & 1 else points
        seen = seen[:, ::-1] if symmetry & 2 else seen
        seen = seen.T if symmetry & 4 else seen
        # `seen[j]` is the point that the network reads at j. The inverse maps a point to its new index.
        tables[symmetry, :-1] = np.argsort(seen.reshape(-1))
        tables[symmetry, -1] = size * size
    return tables


def _mirrored_ways() -> npt.NDArray[np.int64]:
    distances = np.arange(8)
    lines = (8 * np.array(ALPHAZERO_MIRRORED)[:, None] + distances).reshape(-1)
    knights = lines.size + np.array([1, 0])
    return np.concatenate([lines, knights])

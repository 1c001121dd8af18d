"""The eight symmetries of a square board, numbered as KataGo's: flip rows (1), columns (2), then swap the two (4)."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt


def symmetry_tables(size: int) -> npt.NDArray[np.int64]:
    """Return tables [8, N * N + 1]: where point i is seen under each symmetry; the pass stays last."""
    points = np.arange(size * size).reshape(size, size)
    tables = np.empty((8, size * size + 1), np.int64)
    for symmetry in range(8):
        seen = points[::-1] if symmetry & 1 else points
        seen = seen[:, ::-1] if symmetry & 2 else seen
        seen = seen.T if symmetry & 4 else seen
        # seen[j] is the point that the network sees at j; its inverse says where a point is seen.
        tables[symmetry, :-1] = np.argsort(seen.reshape(-1))
        tables[symmetry, -1] = size * size
    return tables

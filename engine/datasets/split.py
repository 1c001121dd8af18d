"""Which games are held out for testing: whole ones, so that no test position has a neighbor in training."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt


def held_out(count: int, share: float, seed: int) -> npt.NDArray[np.bool_]:
    """Return which of `count` games are held out: their share of them, at least one where there are two and more."""
    number = round(count * share)
    if share > 0.0 and count > 1:
        number = min(max(number, 1), count - 1)
    held = np.zeros(count, np.bool_)
    held[np.random.default_rng(seed).permutation(count)[:number]] = True
    return held

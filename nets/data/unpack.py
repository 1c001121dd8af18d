"""Convert batches to a network's input arrays, in numpy: for evaluators, which do not import PyTorch."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from yomi.nets.data.batches import Batch
from yomi.nets.features import LEVEL_SCALE, FeatureSet

FloatArray = npt.NDArray[np.float32]


def unpack(batch: Batch, features: FeatureSet) -> tuple[FloatArray, FloatArray]:
    """Return planes [B, C, N, N] and extras [B, G] of the positions as they were written, without a symmetry."""
    rows, size = batch.rows, batch.size
    bits = np.unpackbits(batch.columns["planes"], axis=1, count=features.bits * size * size)
    parts = [bits.reshape(rows, features.bits, size, size).astype(np.float32)]
    if features.levels:
        levels = batch.columns["levels"].reshape(rows, features.levels, size, size).astype(np.float32)
        parts.append(np.tanh(np.float32(LEVEL_SCALE) * levels))
    globals_ = batch.columns.get("globals", np.zeros((rows, 0), np.float16)).astype(np.float32)
    if features.joined:
        parts.append(np.broadcast_to(globals_[:, :, None, None], (rows, features.globals, size, size)))
    planes = parts[0] if len(parts) == 1 else np.concatenate(parts, axis=1)
    return np.ascontiguousarray(planes), np.ascontiguousarray(globals_[:, : features.extras])

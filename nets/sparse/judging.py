"""A sparse network's predictions for the positions of a data set, in numpy, from an encoder's rows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from yomi.nets.data.metrics import ILLEGAL, Judged
from yomi.nets.sparse.file import ONE, SQUARED_ONE

if TYPE_CHECKING:
    from yomi.nets.data.shards import Arrays
    from yomi.nets.data.sparse import FloatArray, SparseEncoder

Array = npt.NDArray[Any]


def judge(tensors: Mapping[str, Array], encoder: SparseEncoder, columns: Arrays, policy_size: int) -> Judged:
    """Return policy and value of the positions of a batch. Moves that are not legal are ILLEGAL.

    Args:
        tensors: of the network's file.
        encoder: of its game.
        columns: of the batch, with levels and globals.
        policy_size: number of policy labels.
    """
    count = len(columns["levels"])
    found = encoder.encode(columns["levels"].reshape(count, 1, -1), columns["globals"])
    first = np.add.reduceat(tensors["rows"][found.active].astype(np.int32), found.active_starts[:-1], axis=0)
    direct = np.add.reduceat(tensors["direct"][found.active], found.active_starts[:-1])
    hidden_scale, moves_scale = (float(scale) * SQUARED_ONE for scale in tensors["scales"])
    units = _clipped_square((first + tensors["bias"]) / np.float32(ONE))
    width = tensors["hidden"].shape[1]
    hidden = units[:, :width] @ (tensors["hidden"].T * np.float32(hidden_scale)) + tensors["hidden_bias"]
    last = _clipped_square(hidden) @ tensors["last"] + tensors["last_bias"]
    logit = _clipped_square(last) @ tensors["out"][:-1] + tensors["out"][-1] + direct
    table = tensors["moves"] * np.float32(moves_scale)
    logits = encoder.logits(np.ascontiguousarray(units[:, width:]), table, tensors["move_bias"], found, 1)
    policy = np.full((count, policy_size), ILLEGAL, np.float32)
    policy[np.repeat(np.arange(count), np.diff(found.starts)), found.labels] = logits
    return Judged(policy, np.tanh(logit / 2.0).astype(np.float32))


def _clipped_square(sums: Array) -> FloatArray:
    """Return the units of sums (yomi.nets.definitions.sparse)."""
    return np.asarray(np.square(sums.clip(0.0, 1.0)), np.float32)

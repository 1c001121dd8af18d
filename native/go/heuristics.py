"""Priors of moves without a network: a move's logit is the sum of the weights of its features (native.go.priors)."""

import numpy as np

from native.bits import U
from native.go.board import PASS
from native.go.prior_weights import unpack
from native.go.priors import move_features
from native.go.rules import is_legal
from native.jit import kernel

WEIGHTS = unpack()
"""float32[FEATURES]"""


@kernel
def prior_logit(pos, move):  # type: ignore[no-untyped-def]
    """Return the logit of a legal move of the side to move (a point or PASS)."""
    logit = np.float32(0.0)
    for feature in move_features(pos, move):
        logit += WEIGHTS[U(feature)]
    return logit


@kernel
def heuristic_logits(pos, history, logits):  # type: ignore[no-untyped-def]
    """Write a logit for every legal move of the side to move.

    Args:
        pos: The position; unchanged.
        history: Its boards (superko).
        logits: float32[area + 1] in board order, y * size + x, pass last. Illegal moves are left as they are.
    """
    stride = np.int64(pos.stride)
    size = np.int64(pos.size)
    for k in range(U(pos.empty_count)):
        point = np.int64(pos.empties[k])
        if is_legal(pos, history, U(point), pos.side_to_move):
            logits[U((point // stride - 1) * size + point % stride - 1)] = prior_logit(pos, U(point))
    logits[U(size * size)] = prior_logit(pos, U(PASS))

"""Priors of moves without a network, by a linear policy (yomi.native.go.move_features)."""

import numpy as np

from yomi.native.bits import U
from yomi.native.go.move_features import move_features
from yomi.native.go.prior_weights import unpack
from yomi.native.jit import inlined, kernel

WEIGHTS = unpack()  # float32[FEATURES]


@kernel
def prior_logit(pos, move):  # type: ignore[no-untyped-def]
    """Return the logit of a legal move of the side to move: the sum of its features' weights."""
    logit = np.float32(0.0)
    for feature in move_features(pos, move):
        logit += WEIGHTS[U(feature)]
    return logit


@inlined
def write_prior_logits(batch, row):  # type: ignore[no-untyped-def]
    """Write the logits of the legal moves in one row of a Batch with positions."""
    for i in range(U(batch.move_count[row])):
        batch.logits[row, U(batch.indices[row, i])] = prior_logit(batch.positions[row], batch.moves[row, i])

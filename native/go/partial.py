"""Decodes Go networks with a part of the outputs (policy without pass, value, points) into a batch."""

import math

import numpy as np

from yomi.native.bits import U
from yomi.native.bound_kernels import entry, load, types_of
from yomi.native.go.board import BLACK, MIN_SIZE
from yomi.native.go.priors import prior_logit, write_prior_logits
from yomi.native.go.rollout_evaluator import white_compensation
from yomi.native.go.spec import go_spec
from yomi.native.jit import kernel
from yomi.native.packing import widened
from yomi.native.spec import Inputs
from yomi.native.tree.arrays import LEAD, SCORE, VALUE, VALUES
from yomi.native.tree.buffers import make_batch

# Lead in points with value tanh(1) = 0.76, for networks that predict points only; not measured.
POINTS = 10.0

_MATRIX = np.zeros((1, 1), np.float32)
_ARGUMENTS = types_of(_MATRIX, _MATRIX, _MATRIX, True, make_batch(go_spec(MIN_SIZE), 1, Inputs.POSITIONS))


@kernel
def _share_with_pass(batch, row):  # type: ignore[no-untyped-def]
    """Set the logit of the pass, the last move, so that it has the prior that tactics and patterns give it."""
    last = U(batch.move_count[row]) - U(1)
    pos = batch.positions[row]
    plain = np.float32(0.0)
    others = np.float32(0.0)
    top = np.float32(-1e30)
    for i in range(last):
        top = max(top, batch.logits[row, U(batch.indices[row, i])])
    for i in range(last):
        plain += math.exp(prior_logit(pos, batch.moves[row, i]))
        others += math.exp(batch.logits[row, U(batch.indices[row, i])] - top)
    logit = np.float32(0.0)
    if last != U(0):
        logit = prior_logit(pos, batch.moves[row, last]) - math.log(plain) + math.log(others) + top
    batch.logits[row, U(batch.indices[row, last])] = logit


@kernel
def decode_rows(rows, policy, value, score, is_blacks, batch):  # type: ignore[no-untyped-def]
    """Write logits, values and ownership of a batch for the side to move. Missing outputs are 0.

    Args:
        rows: number of rows.
        policy: [B, A] logits of the points, or [B, 0]: then tactics and patterns replace it. They always set the pass.
        value: [B, 1] in [-1, 1], or [B, 0].
        score: [B, 1] lead of the side to move without komi, or [B, 0].
        is_blacks: whether the value is for Black, not for the side to move.
        batch: a Batch with positions.
    """
    # Outputs are float32, or float16 viewed as uint16.
    for row in range(U(rows)):
        pos = batch.positions[row]
        if policy.shape[1] == 0:
            write_prior_logits(batch, row)
        else:
            for i in range(U(policy.shape[1])):
                batch.logits[row, i] = widened(policy[row, i])
            if batch.move_count[row] != 0:  # 0: the game is over and only its score is wanted
                _share_with_pass(batch, row)
        for i in range(U(VALUES)):
            batch.values[row, i] = 0.0
        if value.shape[1] != 0:
            found = widened(value[row, U(0)])
            batch.values[row, U(VALUE)] = -found if is_blacks and pos.side_to_move != BLACK else found
        if score.shape[1] != 0:
            komi = np.float32(white_compensation(pos))
            lead = widened(score[row, U(0)]) + (-komi if pos.side_to_move == BLACK else komi)
            batch.values[row, U(VALUE)] = math.tanh(lead / np.float32(POINTS))
            batch.values[row, U(SCORE)] = lead
            batch.values[row, U(LEAD)] = lead
        for i in range(U(batch.ownership.shape[1])):
            batch.ownership[row, i] = 0.0


@entry(_ARGUMENTS)
def decode(address, rows):  # type: ignore[no-untyped-def]
    """Call `decode_rows` with the other arguments stored at `address`; the network's are float32."""
    policy, value, score, is_blacks, batch = load(address, _ARGUMENTS)
    decode_rows(rows, policy, value, score, is_blacks, batch)

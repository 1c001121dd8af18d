"""From the raw outputs of a KataGo network to what the search wants of a batch."""

import math

import numpy as np

from native.bits import U
from native.calls import entry, load, types_of
from native.tree.arrays import LEAD, SCORE, STDEV, VALUE

_MATRIX = np.zeros((1, 1), np.float32)
_ARGUMENTS = types_of(
    np.zeros((1, 1, 1), np.float32),
    _MATRIX,
    _MATRIX,
    _MATRIX,
    np.zeros(1, np.float32),
    np.zeros(1, np.float32),
    np.zeros(1, np.uint8),
    True,
    _MATRIX,
    _MATRIX,
    _MATRIX,
)


@entry(_ARGUMENTS)
def decode(address, rows):  # type: ignore[no-untyped-def]
    """Write logits, values and ownership of a batch; the perspective stays that of the side to move.

    The slow twin, with every output, is nets.katago.outputs.post_process.

    Args:
        address: of
            policy: float32[B, 1 or 2, P]; with two channels the second is the optimistic policy.
            value: float32[B, 3]: logits of win, loss, no result.
            misc: float32[B, >= 4]: score mean, score stdev, lead, ... before scaling.
            ownership: float32[B, A] before tanh.
            scales: float32[3]: of score mean, score stdev and lead.
            optimism: float32[2]: share of the optimistic policy below the root and at it.
            is_root: uint8[B]
            may_have_no_result: whether the rules know games without a result; their logit is dropped otherwise.
            logits: float32[B, P], written.
            values: float32[B, VALUES] of a Batch, written.
            owners: float32[B, A], written.
        rows: rows in use.
    """
    (policy, value, misc, ownership, scales, optimism, is_root, may_have_no_result, logits, values, owners) = load(
        address, _ARGUMENTS
    )
    for b in range(U(rows)):
        share = optimism[U(is_root[b])] if policy.shape[1] > 1 else np.float32(0.0)
        for i in range(U(policy.shape[2])):
            logit = policy[b, U(0), i]
            if share != 0.0:
                logit += share * (policy[b, U(1), i] - logit)
            logits[b, i] = logit
        top = max(value[b, 0], value[b, 1])
        if may_have_no_result:
            top = max(top, value[b, 2])
        win = math.exp(value[b, 0] - top)
        loss = math.exp(value[b, 1] - top)
        none = math.exp(value[b, 2] - top) if may_have_no_result else np.float32(0.0)
        total = win + loss + none
        result = np.float32(1.0) - none / total
        values[b, VALUE] = (win - loss) / total
        values[b, SCORE] = misc[b, 0] * scales[0] * result
        m = misc[b, 1]
        values[b, STDEV] = (max(m, np.float32(0.0)) + math.log1p(math.exp(-abs(m)))) * scales[1]
        values[b, LEAD] = misc[b, 2] * scales[2] * result
        for i in range(U(ownership.shape[1])):
            owners[b, i] = math.tanh(ownership[b, i])

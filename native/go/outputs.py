"""Decodes the raw outputs of a KataGo network into a batch."""

import math

import numpy as np

from yomi.native.bits import U
from yomi.native.bound_kernels import entry, load, types_of
from yomi.native.jit import inlined, kernel
from yomi.native.packing import widened
from yomi.native.tree.arrays import LEAD, NO_RESULT, SCORE, SCORE_ERROR, STDEV, VALUE, VALUE_ERROR

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


@inlined
def _softplus(number):  # type: ignore[no-untyped-def]
    return max(number, np.float32(0.0)) + math.log1p(math.exp(-abs(number)))


@inlined
def _error(number, factor):  # type: ignore[no-untyped-def]
    """Return a short-term error before scaling: softplus(number * factor), or sqrt(softplus(number)) if factor is 0."""
    # The forms of networks are in yomi.nets.katago.outputs.shortterm_errors.
    if factor == 0.0:
        return np.float32(math.sqrt(_softplus(number)))
    return np.float32(_softplus(number * factor))


@kernel
def decode_rows(  # type: ignore[no-untyped-def]
    rows, policy, value, misc, ownership, scales, optimism, is_root, may_have_no_result, logits, values, owners
):
    """Write logits, values and ownership of a batch for the side to move.

    Args:
        rows: number of rows.
        policy: [B, 1 or 2, P]; the second channel is the optimistic policy. All outputs of the network are float32, or
            float16 viewed as uint16.
        value: [B, 3]: logits of win, loss, no result.
        misc: [B, >= 4]: score mean, score stdev, lead, variance of time, and from version 9 on errors, unscaled.
        ownership: [B, A] before tanh.
        scales: float32[6]: scales of score mean, score stdev, lead, value error and score error (0: none); factor of
            the errors (`_error`).
        optimism: float32[2]: weight of the optimistic policy below the root and at the root.
        is_root: uint8[B]
        may_have_no_result: whether the rules allow no result; otherwise its logit is ignored.
        logits: float32[B, P], written.
        values: float32[B, VALUES] of a Batch, written.
        owners: float32[B, A], written.
    """
    # The slow twin with every output is yomi.nets.katago.outputs.post_process.
    for b in range(U(rows)):
        share = optimism[U(is_root[b])] if policy.shape[1] > 1 else np.float32(0.0)
        for i in range(U(policy.shape[2])):
            logit = widened(policy[b, U(0), i])
            if share != 0.0:
                logit += share * (widened(policy[b, U(1), i]) - logit)
            logits[b, i] = logit
        win_logit, loss_logit, none_logit = widened(value[b, 0]), widened(value[b, 1]), widened(value[b, 2])
        top = max(win_logit, loss_logit)
        if may_have_no_result:
            top = max(top, none_logit)
        win = math.exp(win_logit - top)
        loss = math.exp(loss_logit - top)
        none = math.exp(none_logit - top) if may_have_no_result else np.float32(0.0)
        total = win + loss + none
        values[b, NO_RESULT] = none / total
        result = np.float32(1.0) - values[b, NO_RESULT]
        values[b, VALUE] = (win - loss) / total
        values[b, SCORE] = widened(misc[b, 0]) * scales[0] * result
        values[b, STDEV] = _softplus(widened(misc[b, 1])) * scales[1]
        values[b, LEAD] = widened(misc[b, 2]) * scales[2] * result
        values[b, VALUE_ERROR] = values[b, SCORE_ERROR] = np.float32(0.0)
        if scales[3] > np.float32(0.0):
            values[b, VALUE_ERROR] = _error(widened(misc[b, 4]), scales[5]) * scales[3]
            values[b, SCORE_ERROR] = _error(widened(misc[b, 5]), scales[5]) * scales[4]
        for i in range(U(ownership.shape[1])):
            owners[b, i] = math.tanh(widened(ownership[b, i]))


@entry(_ARGUMENTS)
def decode(address, rows):  # type: ignore[no-untyped-def]
    """Call `decode_rows` with the other arguments stored at `address`; the network's are float32."""
    (policy, value, misc, ownership, scales, optimism, is_root, may_have_no_result, logits, values, owners) = load(
        address, _ARGUMENTS
    )
    decode_rows(
        rows, policy, value, misc, ownership, scales, optimism, is_root, may_have_no_result, logits, values, owners
    )

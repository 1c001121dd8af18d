"""Decodes the raw outputs of Go networks into a batch. Also writes the inputs of simple networks and decodes them.

Simple networks have few planes (stones, COSUMI's three planes), or a part of the outputs (policy without pass, value,
points).
"""

import math

import numpy as np

from yomi.native.bits import U
from yomi.native.bound_kernels import entry, load, types_of
from yomi.native.go.board import BLACK, EMPTY, MIN_SIZE
from yomi.native.go.planes import symmetry_steps
from yomi.native.go.priors import prior_logit, write_prior_logits
from yomi.native.go.rollout import white_compensation
from yomi.native.go.spec import go_spec
from yomi.native.jit import inlined, kernel
from yomi.native.packing import widened
from yomi.native.spec import Inputs
from yomi.native.tree.arrays import LEAD, NO_RESULT, SCORE, SCORE_ERROR, STDEV, VALUE, VALUE_ERROR, VALUES
from yomi.native.tree.buffers import make_batch

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


# -- networks with simple inputs or a part of the outputs --------------------------------------------------------------

LEVEL_SCALE = 0.05  # COSUMI encodes n liberties as tanh(0.05 n)
MAX_LEVEL = 255


@kernel
def write_stones(pos, history, symmetry, scratch, planes, globals_):  # type: ignore[no-untyped-def]
    """Write own stones, the opponent's, and in a third plane the liberties of the stone's chain (up to 255).

    `planes` is float32[2 or 3, size, size]; `symmetry` is as in `yomi.native.go.planes`. `squash` finishes the
    liberties.
    """
    flat = planes.reshape(-1)
    size = np.int64(pos.size)
    area = U(size * size)
    for i in range(U(flat.shape[0])):
        flat[i] = np.float32(0.0)
    start, step_x, step_y = symmetry_steps(size, size, symmetry)
    for y in range(size):
        for x in range(size):
            p = U((y + 1) * np.int64(pos.stride) + x + 1)
            color = pos.color[p]
            if color == EMPTY:
                continue
            i = U(start + x * step_x + y * step_y)
            flat[i + (U(0) if color == pos.side_to_move else area)] = np.float32(1.0)
            if planes.shape[0] > 2:
                flat[i + U(2) * area] = np.float32(min(np.int64(pos.liberties[U(pos.chain[p])]), MAX_LEVEL))


@kernel
def squash(planes):  # type: ignore[no-untyped-def]
    """Replace the third plane, n liberties, by tanh(0.05 n)."""
    flat = planes.reshape(-1)
    size = U(planes.shape[1]) * U(planes.shape[2])
    for i in range(U(2) * size, U(3) * size):
        flat[i] = np.float32(np.tanh(LEVEL_SCALE * flat[i]))


_BATCH = make_batch(go_spec(MIN_SIZE), 1, Inputs.POSITIONS)
_PLANES_ARGUMENTS = types_of(_BATCH, np.zeros((1, 1, 1, 1), np.float32))


@entry(_PLANES_ARGUMENTS)
def encode_stones(address, rows):  # type: ignore[no-untyped-def]
    """Write the planes of a batch's positions, each under its symmetry.

    `address` points to a Batch with positions and float32[B, 2 or 3, N, N].
    """
    batch, planes = load(address, _PLANES_ARGUMENTS)
    for row in range(U(rows)):
        shown = planes[row]
        write_stones(batch.positions[row], shown, np.int64(batch.symmetry[row]), shown, shown, shown)
        if planes.shape[1] > 2:
            squash(shown)


# Lead in points with value tanh(1) = 0.76, for networks that predict points only; not measured.
POINTS = 10.0

_OUTPUTS_ARGUMENTS = types_of(_MATRIX, _MATRIX, _MATRIX, True, _BATCH)


@kernel
def _share_with_pass(batch, row):  # type: ignore[no-untyped-def]
    """Set the logit of the pass, the last move: its prior becomes the prior by tactics and patterns."""
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
def decode_partial_rows(rows, policy, value, score, is_blacks, batch):  # type: ignore[no-untyped-def]
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


@entry(_OUTPUTS_ARGUMENTS)
def decode_partial(address, rows):  # type: ignore[no-untyped-def]
    """Call `decode_partial_rows` with the arguments stored at `address`. The network's outputs are float32."""
    policy, value, score, is_blacks, batch = load(address, _OUTPUTS_ARGUMENTS)
    decode_partial_rows(rows, policy, value, score, is_blacks, batch)

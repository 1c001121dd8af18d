"""Go networks with simple inputs (stones, COSUMI's three planes) or a part of the outputs (policy without pass, value,
points).
"""

import math

import numpy as np

from yomi.native.bits import U
from yomi.native.bound_kernels import entry, load, types_of
from yomi.native.go.board import BLACK, EMPTY, MIN_SIZE
from yomi.native.go.planes import symmetry_steps
from yomi.native.go.priors import prior_logit, write_prior_logits
from yomi.native.go.rollout_evaluator import white_compensation
from yomi.native.go.spec import go_spec
from yomi.native.jit import kernel
from yomi.native.packing import widened
from yomi.native.spec import Inputs
from yomi.native.tree.arrays import LEAD, SCORE, VALUE, VALUES
from yomi.native.tree.buffers import make_batch

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

_MATRIX = np.zeros((1, 1), np.float32)
_OUTPUTS_ARGUMENTS = types_of(_MATRIX, _MATRIX, _MATRIX, True, _BATCH)


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


@entry(_OUTPUTS_ARGUMENTS)
def decode(address, rows):  # type: ignore[no-untyped-def]
    """Call `decode_rows` with the other arguments stored at `address`; the network's are float32."""
    policy, value, score, is_blacks, batch = load(address, _OUTPUTS_ARGUMENTS)
    decode_rows(rows, policy, value, score, is_blacks, batch)

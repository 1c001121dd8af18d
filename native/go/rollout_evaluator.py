"""Leaves of a search evaluated by patterned rollouts: value, score and ownership for the side to move."""

import numpy as np

from yomi.native.bits import U
from yomi.native.bound_kernels import entry, load, types_of
from yomi.native.go.board import BLACK, MIN_SIZE, POSITION_DTYPE, SCORING_TERRITORY, WHITE, copy
from yomi.native.go.planes import symmetry_steps
from yomi.native.go.priors import write_prior_logits
from yomi.native.go.rollout import owner_of
from yomi.native.go.rollout_policy import patterned_rollout
from yomi.native.go.spec import go_spec
from yomi.native.jit import kernel
from yomi.native.spec import Inputs
from yomi.native.tree.arrays import LEAD, SCORE, STDEV, VALUE, VALUES
from yomi.native.tree.buffers import make_batch


@kernel
def add_ownership(pos, color, ownership):  # type: ignore[no-untyped-def]
    """Add the owner of every point of a finished rollout to `ownership` (float32[area]): +1 for `color`, else -1."""
    stride = np.int64(pos.stride)
    size = np.int64(pos.size)
    k = U(0)
    for y in range(size):
        for x in range(size):
            owner = owner_of(pos, (y + 1) * stride + x + 1)
            if owner in (BLACK, WHITE):
                ownership[k] += np.float32(1.0) if owner == color else np.float32(-1.0)
            k += U(1)


@kernel
def white_compensation(pos):  # type: ignore[no-untyped-def]
    """Return the points that White gets on top of the area of a finished rollout from `pos`.

    Komi (handicap compensation included). Under territory scoring also what the moves so far change: area counts a
    stone that territory does not, so White gets a point for each move Black has made, Black one for each of White's
    (pos.white_bonus). The moves of the rollout itself count as even. Taxes on groups and the button are not counted.
    """
    points = np.float32(pos.komi)
    if pos.scoring == SCORING_TERRITORY:
        points += pos.white_bonus
    return points


@kernel
def rollout_leaves(positions, count, rollouts_per_leaf, rng, scratch, values, scores, ownership):  # type: ignore[no-untyped-def]
    """Evaluate `positions[0:count]` by `rollouts_per_leaf` patterned rollouts each, all for the side to move.

    Args:
        positions: POSITION_DTYPE[>= count], all of one board size, none of them over; unchanged.
        count: Positions to evaluate.
        rollouts_per_leaf: Rollouts from each position, at least 1.
        rng: uint64[1], state of the random numbers, never zero.
        scratch: One record that the rollouts are played on.
        values: float32[>= count], receives the mean of +1 for a win, -1 for a loss, 0 for a draw.
        scores: float32[>= count], receives the mean lead in points, komi included.
        ownership: float32[>= count, area], receives the mean owner of each point, row by row: +1 the side to move.
    """
    n = U(rollouts_per_leaf)
    scale = np.float32(1.0) / np.float32(n)
    for k in range(U(count)):
        root = positions[k]
        color = np.int64(root.side_to_move)
        white_points = white_compensation(root)
        area = U(root.size) * U(root.size)
        for p in range(area):
            ownership[k, p] = 0.0
        wins = np.float32(0.0)
        total = np.float32(0.0)
        for _ in range(n):
            copy(scratch, root)
            lead = np.float32(patterned_rollout(scratch, rng)) - white_points
            if color == WHITE:
                lead = -lead
            total += lead
            if lead > 0.0:
                wins += np.float32(1.0)
            elif lead < 0.0:
                wins -= np.float32(1.0)
            add_ownership(scratch, color, ownership[k])
        values[k] = wins * scale
        scores[k] = total * scale
        for p in range(area):
            ownership[k, p] *= scale


_BATCH = make_batch(go_spec(MIN_SIZE), 1, Inputs.POSITIONS)
_PRIOR_ARGUMENTS = types_of(_BATCH)
_ROLLOUT_ARGUMENTS = types_of(
    _BATCH,
    1,
    np.float32(1.0),
    np.float32(1.0),
    np.ones(1, np.uint64),
    np.zeros(1, POSITION_DTYPE)[0],
    np.zeros(2, np.float32),
    np.zeros((1, 1), np.float32),
)


@entry(_PRIOR_ARGUMENTS)
def write_priors(address, rows):  # type: ignore[no-untyped-def]
    """Write logits from tactics and patterns for a Batch with positions; values and ownership become 0."""
    (batch,) = load(address, _PRIOR_ARGUMENTS)
    for row in range(U(rows)):
        write_prior_logits(batch, row)
        for i in range(VALUES):
            batch.values[row, U(i)] = 0.0
        for i in range(U(batch.ownership.shape[1])):
            batch.ownership[row, i] = 0.0


@entry(_ROLLOUT_ARGUMENTS)
def mix_rollouts(address, rows):  # type: ignore[no-untyped-def]
    """Mix rollouts into the values and the ownership of a batch's first `rows` rows.

    Args:
        address: of a Batch with positions, whose rows may stand under any symmetry; of the number of rollouts from
            each; their weight, 0 to 1, in values, and in scores and ownership; a uint64[1], state of the random
            numbers, never zero; one record that the rollouts are played on; and, for means, float32[2] and
            float32[1, A].
        rows: Rows in use.
    """
    batch, rollouts, weight, score_weight, rng, scratch, means, owners = load(address, _ROLLOUT_ARGUMENTS)
    value, score = means[:1], means[1:]
    rest = np.float32(1.0) - weight
    score_rest = np.float32(1.0) - score_weight
    for row in range(U(rows)):
        rollout_leaves(batch.positions[row : row + U(1)], 1, rollouts, rng, scratch, value, score, owners)
        batch.values[row, U(VALUE)] = rest * batch.values[row, U(VALUE)] + weight * value[0]
        batch.values[row, U(SCORE)] = score_rest * batch.values[row, U(SCORE)] + score_weight * score[0]
        batch.values[row, U(STDEV)] = score_rest * batch.values[row, U(STDEV)]
        batch.values[row, U(LEAD)] = score_rest * batch.values[row, U(LEAD)] + score_weight * score[0]
        size = np.int64(batch.positions[row].size)
        start, step_x, step_y = symmetry_steps(size, np.int64(batch.symmetry[row]))
        for y in range(size):
            for x in range(size):
                seen = U(start + x * step_x + y * step_y)
                own = owners[U(0), U(y * size + x)]
                batch.ownership[row, seen] = score_rest * batch.ownership[row, seen] + score_weight * own

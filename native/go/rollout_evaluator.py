"""Evaluation of leaves by patterned rollouts: value, score and ownership for the side to move."""

import numpy as np

from yomi.native.bits import U
from yomi.native.bound_kernels import entry, load, types_of
from yomi.native.go.board import BLACK, MIN_SIZE, POSITION_DTYPE, SCORING_TERRITORY, WHITE, copy
from yomi.native.go.planes import symmetry_steps
from yomi.native.go.priors import write_prior_logits
from yomi.native.go.rollout import owner_of, patterned_rollout
from yomi.native.go.spec import go_spec
from yomi.native.jit import kernel
from yomi.native.spec import Inputs
from yomi.native.tree.arrays import LEAD, SCORE, STDEV, VALUE, VALUES
from yomi.native.tree.buffers import make_batch


@kernel
def add_ownership(pos, color, ownership):  # type: ignore[no-untyped-def]
    """Add the owners of all points to `ownership` (float32[area]): +1 for `color`, -1 for the opponent."""
    stride = np.int64(pos.stride)
    size = np.int64(pos.size)
    k = U(0)
    for y in range(np.int64(pos.height)):
        for x in range(size):
            owner = owner_of(pos, (y + 1) * stride + x + 1)
            if owner in (BLACK, WHITE):
                ownership[k] += np.float32(1.0) if owner == color else np.float32(-1.0)
            k += U(1)


@kernel
def white_compensation(pos):  # type: ignore[no-untyped-def]
    """Return White's points besides area after a rollout from `pos`: komi and the bonus of territory scoring."""
    # Area counts a stone that territory does not: White gets a point per Black move before the rollout, and Black per
    # White move. The moves of the rollout count as even. Group taxes and the button are not counted.
    points = np.float32(pos.komi)
    if pos.scoring == SCORING_TERRITORY:
        points += pos.white_bonus
    return points


@kernel
def rollout_leaves(positions, count, rollouts_per_leaf, rng, scratch, values, scores, ownership):  # type: ignore[no-untyped-def]
    """Evaluate `positions[0:count]` by patterned rollouts, for the side to move.

    Args:
        positions: POSITION_DTYPE[>= count] of one board size, not over.
        count: number of positions.
        rollouts_per_leaf: rollouts per position, at least 1.
        rng: uint64[1], the generator's state, never zero.
        scratch: a record to play on.
        values: float32[>= count], written: mean of +1 for a win, -1 for a loss, 0 for a draw.
        scores: float32[>= count], written: mean lead with komi.
        ownership: float32[>= count, area], written: mean owner, +1 the side to move.
    """
    n = U(rollouts_per_leaf)
    scale = np.float32(1.0) / np.float32(n)
    for k in range(U(count)):
        root = positions[k]
        color = np.int64(root.side_to_move)
        white_points = white_compensation(root)
        area = U(root.size) * U(root.height)
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
    """Write logits from tactics and patterns into a Batch with positions; values and ownership become 0."""
    (batch,) = load(address, _PRIOR_ARGUMENTS)
    for row in range(U(rows)):
        write_prior_logits(batch, row)
        for i in range(VALUES):
            batch.values[row, U(i)] = 0.0
        for i in range(U(batch.ownership.shape[1])):
            batch.ownership[row, i] = 0.0


@entry(_ROLLOUT_ARGUMENTS)
def mix_rollouts(address, rows):  # type: ignore[no-untyped-def]
    """Mix rollouts into values and ownership of a batch: (1 - weight) * old + weight * rollouts.

    Args:
        address: of a Batch with positions; the number of rollouts per row; their weight in values, and in scores and
            ownership; uint64[1], the generator's state; a record to play on; float32[2] and float32[1, A], working
            memory.
        rows: number of rows.
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
        size, height = np.int64(batch.positions[row].size), np.int64(batch.positions[row].height)
        start, step_x, step_y = symmetry_steps(size, height, np.int64(batch.symmetry[row]))
        for y in range(height):
            for x in range(size):
                seen = U(start + x * step_x + y * step_y)
                own = owners[U(0), U(y * size + x)]
                batch.ownership[row, seen] = score_rest * batch.ownership[row, seen] + score_weight * own

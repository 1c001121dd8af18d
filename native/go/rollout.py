"""Rollouts: games played to the end at random or by a fast policy. They estimate ownership and evaluate leaves."""

import numpy as np

from yomi.native.bits import U, lowest_bit, random_below
from yomi.native.bound_kernels import entry, load, types_of
from yomi.native.go.board import (
    BLACK,
    BORDER,
    EMPTY,
    MAX_AREA,
    MIN_SIZE,
    NO_POINT,
    PASS,
    POSITION_DTYPE,
    SCORING_TERRITORY,
    WHITE,
    copy,
    first_liberty,
    is_eye,
    is_suicide,
    place_stone,
    second_liberty,
)
from yomi.native.go.planes import symmetry_steps
from yomi.native.go.priors import write_prior_logits
from yomi.native.go.spec import go_spec
from yomi.native.go.tactics import is_pattern_move, liberties_after, self_atari_stones
from yomi.native.jit import inlined, kernel
from yomi.native.spec import Inputs
from yomi.native.tree.arrays import LEAD, SCORE, STDEV, VALUE, VALUES
from yomi.native.tree.buffers import make_batch

# Uniform rollouts play random moves. The policy of patterned rollouts, as in MoGo and Fuego, is the first that applies:
# capture the last move's chain, answer an atari, extend weak chains next to the last move, a 3x3 pattern next to it, a
# capture anywhere, a random move. No move fills its own eye, except to save a chain.

THROW_IN = 1  # stones that a random move of the policy may put into atari


@kernel
def capture_of(pos, stone):  # type: ignore[no-untyped-def]
    """Return the point that captures the chain of `stone`, or NO_POINT if it is not in atari or ko forbids it."""
    slot = U(pos.chain[U(stone)])
    if pos.liberties[slot] != 1:
        return U(NO_POINT)
    point = first_liberty(pos, slot)
    return U(NO_POINT) if point == pos.simple_ko else point


@kernel
def atari_answer(pos, color, last, rng):  # type: ignore[no-untyped-def]
    """Return a random move that saves a chain from the atari of `last`, or NO_POINT."""
    # The move extends to two liberties or more, or captures a neighbor.
    i = np.int64(last)
    stride = np.int64(pos.stride)
    own = U(color)
    enemy = U(3) - own
    found = U(0)
    choice = U(NO_POINT)
    for neighbor in (i - 1, i + 1, i - stride, i + stride):
        q = U(neighbor)
        if pos.color[q] != own:
            continue
        slot = U(pos.chain[q])
        if pos.liberties[slot] != 1:
            continue
        escape = first_liberty(pos, slot)
        if escape != pos.simple_ko and self_atari_stones(pos, escape, own) == 0:
            found += U(1)
            if random_below(rng, found) == U(0):
                choice = escape
        s = q
        while True:
            j = np.int64(s)
            for side in (j - 1, j + 1, j - stride, j + stride):
                r = U(side)
                if pos.color[r] == enemy:
                    point = capture_of(pos, r)
                    if point != U(NO_POINT):
                        found += U(1)
                        if random_below(rng, found) == U(0):
                            choice = point
            s = U(pos.next_stone[s])
            if s == q:
                break
    return choice


@kernel
def _try_liberty(pos, color, chain_color, point):  # type: ignore[no-untyped-def]
    """Return whether `point`, a liberty of a chain with two, is worth taking: the chain gains liberties there."""
    return (
        point != pos.simple_ko
        and liberties_after(pos, point, chain_color) > 2
        and self_atari_stones(pos, point, color) == 0
        and not is_eye(pos, point, color)
    )


@kernel
def weak_chain_move(pos, color, last, rng):  # type: ignore[no-untyped-def]
    """Return a move that extends a chain with two liberties next to `last`, or takes a good liberty of the last move's
    chain.
    """
    i = np.int64(last)
    stride = np.int64(pos.stride)
    own = U(color)
    found = U(0)
    choice = U(NO_POINT)
    for neighbor in (i, i - 1, i + 1, i - stride, i + stride):
        q = U(neighbor)
        c = U(pos.color[q])
        if c == own or neighbor == i:
            slot = U(pos.chain[q])
            if pos.liberties[slot] == 2:
                first = first_liberty(pos, slot)
                if _try_liberty(pos, own, c, first):
                    found += U(1)
                    if random_below(rng, found) == U(0):
                        choice = first
                second = second_liberty(pos, slot)
                if _try_liberty(pos, own, c, second):
                    found += U(1)
                    if random_below(rng, found) == U(0):
                        choice = second
    return choice


@kernel
def pattern_move(pos, color, last, rng):  # type: ignore[no-untyped-def]
    """Return a random pattern move next to `last` that is not a self-atari, or NO_POINT."""
    i = np.int64(last)
    stride = np.int64(pos.stride)
    found = U(0)
    choice = U(NO_POINT)
    for neighbor in (
        i - stride - 1,
        i - stride,
        i - stride + 1,
        i - 1,
        i + 1,
        i + stride - 1,
        i + stride,
        i + stride + 1,
    ):
        p = U(neighbor)
        if (
            pos.color[p] == EMPTY
            and is_pattern_move(pos, p, color)
            and p != pos.simple_ko
            and self_atari_stones(pos, p, color) == 0
        ):
            found += U(1)
            if random_below(rng, found) == U(0):
                choice = p
    return choice


@kernel
def capture_move(pos, color, rng):  # type: ignore[no-untyped-def]
    """Return a random move of `color` that captures anything, or NO_POINT."""
    own = U(color)
    enemy = U(3) - own
    stride = np.int64(pos.stride)
    found = U(0)
    choice = U(NO_POINT)
    for w in range(U(6)):
        bits = pos.slots[w]
        while bits != U(0):
            slot = w * U(64) + lowest_bit(bits)
            bits &= bits - U(1)
            if pos.liberties[slot] == 1:
                point = first_liberty(pos, slot)
                i = np.int64(point)
                for neighbor in (i - 1, i + 1, i - stride, i + stride):
                    q = U(neighbor)
                    if pos.color[q] == enemy and U(pos.chain[q]) == slot:
                        if point != pos.simple_ko:
                            found += U(1)
                            if random_below(rng, found) == U(0):
                                choice = point
                        break
    return choice


@inlined
def _random_move(pos, color, rng, throw_in):  # type: ignore[no-untyped-def]
    """Return a random legal move that fills no own eye and puts at most `throw_in` stones into atari, or NO_POINT."""
    # Scans from a random start, as libego does: uniform up to the order of the list.
    count = U(pos.empty_count)
    if count == U(0):
        return U(NO_POINT)
    start = random_below(rng, count)
    i = start
    while True:
        p = U(pos.empties[i])
        if (
            p != pos.simple_ko
            and not is_eye(pos, p, color)
            and (throw_in >= MAX_AREA or self_atari_stones(pos, p, color) <= throw_in)
            and not is_suicide(pos, p, color)
        ):
            return p
        i += U(1)
        if i == count:
            i = U(0)
        if i == start:
            return U(NO_POINT)


@kernel
def rollout_move(pos, color, last, rng):  # type: ignore[no-untyped-def]
    """Return the policy's move for `color`, or NO_POINT for a pass. `last`: the last move; NO_POINT: there is none."""
    if last != U(NO_POINT) and pos.color[last] != EMPTY:
        move = capture_of(pos, last)
        if move != U(NO_POINT):
            return move
        move = atari_answer(pos, color, last, rng)
        if move != U(NO_POINT):
            return move
        move = weak_chain_move(pos, color, last, rng)
        if move != U(NO_POINT):
            return move
        move = pattern_move(pos, color, last, rng)
        if move != U(NO_POINT):
            return move
    move = capture_move(pos, color, rng)
    if move != U(NO_POINT):
        return move
    return _random_move(pos, color, rng, THROW_IN)


@inlined
def owner_of(pos, i):  # type: ignore[no-untyped-def]
    """Return the owner of point `i` at the end of a rollout: the color of its stone or of its neighbors."""
    # Between both colors BLACK | WHITE, between none EMPTY.
    owner = np.int64(pos.color[U(i)])
    if owner == EMPTY:
        stride = np.int64(pos.stride)
        for neighbor in (i - 1, i + 1, i - stride, i + stride):
            color = np.int64(pos.color[U(neighbor)])
            if color != BORDER:
                owner |= color
    return owner


@kernel
def area_balance(pos):  # type: ignore[no-untyped-def]
    """Return Black's points minus White's at the end of a rollout: stones, and empty points next to one color only."""
    balance = 0
    stride = np.int64(pos.stride)
    size = np.int64(pos.size)
    for y in range(np.int64(pos.height)):
        for x in range(size):
            owner = owner_of(pos, (y + 1) * stride + x + 1)
            if owner == BLACK:
                balance += 1
            elif owner == WHITE:
                balance -= 1
    return balance


@kernel
def uniform_move(pos, color, rng):  # type: ignore[no-untyped-def]
    return _random_move(pos, color, rng, MAX_AREA)


@inlined
def _play_out(pos, rng, is_patterned):  # type: ignore[no-untyped-def]
    """Play `pos` to the end; return Black's points minus White's, without komi."""
    color = np.int64(pos.side_to_move)
    passes = 0
    last = U(pos.recent_move[0])
    if last == U(PASS):
        last = U(NO_POINT)
    for _ in range(3 * pos.size * pos.height):
        # No move left: pass. Two passes end the rollout.
        last = rollout_move(pos, color, last, rng) if is_patterned else uniform_move(pos, color, rng)
        if last == U(NO_POINT):
            passes += 1
            pos.simple_ko = NO_POINT
            if passes == 2:
                break
        else:
            passes = 0
            place_stone(pos, last, color)
        color = 3 - color
    return area_balance(pos)


@kernel
def patterned_rollout(pos, rng):  # type: ignore[no-untyped-def]
    """Play `pos` to the end with the policy; return Black's points minus White's, without komi."""
    return _play_out(pos, rng, True)


@kernel
def rollouts(root, scratch, rng, n, is_patterned):  # type: ignore[no-untyped-def]
    """Play `n` rollouts from `root`; return the sum of Black's points minus White's."""
    total = 0
    for _ in range(n):
        copy(scratch, root)
        total += patterned_rollout(scratch, rng) if is_patterned else _play_out(scratch, rng, False)
    return total


@kernel
def add_ownership(pos, color, ownership):  # type: ignore[no-untyped-def]
    """Add the owners of all points to `ownership` [area], row by row from the top: +1 for `color`, -1 for the
    opponent.
    """
    stride = np.int64(pos.stride)
    size = np.int64(pos.size)
    k = U(0)
    for y in range(np.int64(pos.height)):
        for x in range(size):
            owner = owner_of(pos, (y + 1) * stride + x + 1)
            if owner in (BLACK, WHITE):
                ownership[k] += np.int8(1) if owner == color else np.int8(-1)  # keeps float32 and int32
            k += U(1)


@kernel
def rollout_ownership(root, scratch, rng, n, totals):  # type: ignore[no-untyped-def]
    """Play `n` uniform rollouts from `root`, and count the owners of points at their ends.

    Args:
        root: the position.
        scratch: a record to play on.
        rng: uint64[1], the generator's state, never zero.
        n: number of rollouts.
        totals: int32[area], see `add_ownership`: receives +1 per rollout for Black, -1 for White.
    """
    for k in range(n):
        copy(scratch, root)
        # The sides take turns in moving first: the result does not depend on whose turn it is.
        if k & 1 == 1:
            scratch.side_to_move = 3 - root.side_to_move
            scratch.simple_ko = NO_POINT
        _play_out(scratch, rng, False)
        add_ownership(scratch, BLACK, totals)


# -- evaluation of leaves: value, score and ownership for the side to move --------------------------------------------


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

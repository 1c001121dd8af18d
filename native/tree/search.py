"""The kernels of the search: `gather` fills a batch with leaves, `scatter` puts the evaluated leaves into the tree."""

import math
from typing import TYPE_CHECKING

import numpy as np

from yomi.native.bits import U, atomic_add, atomic_max, random_bits
from yomi.native.bound_kernels import answering_entry, call_all, load, types_of
from yomi.native.game import OVER
from yomi.native.game_calls import GRAPH, PATTERN, add_row_ownership, describe, replay, step
from yomi.native.jit import CHECKED, inlined, kernel
from yomi.native.tree.arrays import (
    ALL_LEAVES,
    BLOCKED,
    COPIES,
    DESCENDS,
    EXPANDED,
    FIRST_SLOT,
    KEYS_BROKEN,
    LEAD,
    MIN_WEIGHT,
    NEW_NODE,
    NO_RESULT,
    NONE,
    ONE_LEAF,
    PENDING,
    SCORE,
    SCORE_ERROR,
    STDEV,
    TERMINAL,
    VALUE,
    VALUE_ERROR,
    VALUES,
)
from yomi.native.tree.backup import back_up, cancel_visits, report_fault, visit_shared
from yomi.native.tree.bias import bucket_of
from yomi.native.tree.buffers import example_arguments
from yomi.native.tree.cache import probe_cache, store_cache
from yomi.native.tree.descent import DISTRIBUTED, FINISHED, NEW_LEAF, distribute_visits, put_group
from yomi.native.tree.expansion import expand
from yomi.native.tree.memory import lock, unlock
from yomi.native.tree.restrictions import is_banned_below, restricted_key
from yomi.native.tree.transpositions import find_or_insert, free_node

if TYPE_CHECKING:
    from yomi.native.tree.arrays import Tree

# Score center as a share of the expected score. KataGo moves it a fifth towards zero.
CENTER_SHARE = 0.8
# Utility error at which an evaluation has about weight 1 (KataGo's value).
ERROR_OF_ONE = 0.25
# Weight of an evaluation without error, such as a finished game (KataGo's value).
MAX_WEIGHT = 8.0
# A young tree has too few good leaves for a full batch. With 32, 64 leaves at once scored 54% against 4 at 800
# visits (docs/explanation/tried.md).
VISITS_PER_LEAF = 32  # root visits for each further leaf of a batch
# Visits to leaves under evaluation, after which an empty batch is given up.
MAX_COLLISIONS = 8
# Visits without an evaluation, after which a thread looks at the clock again.
MAX_UNEVALUATED = 100_000


@kernel
def expected_arctan(mean, stdev, center, unit):  # type: ignore[no-untyped-def]
    """Return the mean of (2/pi) arctan((x - center) / unit) for a normal x."""
    # Approximation: (2/pi) arctan((mean - center) / sqrt(unit**2 + stdev**2 / 2)).
    wide = math.sqrt(unit * unit + 0.5 * stdev * stdev)
    return math.atan((mean - center) / wide) * (2.0 / math.pi)


@kernel
def dynamic_utility(tree, mean, stdev, center):  # type: ignore[no-untyped-def]
    """Return the utility of a score relative to `center`, both for the same side."""
    p = tree.parameters[0]
    return p.dynamic_score_utility * expected_arctan(mean, stdev, center, 0.75 * p.score_unit)


@kernel
def leaf_utility(tree, values, opponent_to_move):  # type: ignore[no-untyped-def]
    """Return the utility of an evaluation (a row of Batch.values) for the side to move at the leaf.

        utility = value + score_utility * E[f(score / (2 unit))] + dynamic_score_utility * E[f((score - center) / (0.75
            unit))]

    with f(x) = (2/pi) arctan x. `opponent_to_move` is 1 if the side to move at the leaf is not that at the root.
    """
    p = tree.parameters[0]
    utility = float(values[VALUE])
    if p.score_utility != 0.0 or p.dynamic_score_utility != 0.0:
        center = tree.counters[0].score_center
        mean = float(values[SCORE])
        stdev = float(values[STDEV])
        utility += p.score_utility * expected_arctan(mean, stdev, 0.0, 2.0 * p.score_unit)
        utility += dynamic_utility(tree, mean, stdev, -center if opponent_to_move else center)
    return utility


@inlined
def evaluation_weight(tree, values, opponent_to_move):  # type: ignore[no-untyped-def]
    """Return the weight of an evaluation (a row of Batch.values), from the error that the evaluator predicts:

        ERROR_OF_ONE / (error + ERROR_OF_ONE / MAX_WEIGHT),    error = VALUE_ERROR + |d utility / d score| * SCORE_ERROR

    with d utility / d score for the score alone.
    """
    # Source: KataGo's weighting by short-term errors (docs/KataGoMethods.md), with its values.
    p = tree.parameters[0]
    if not p.uncertainty or values[VALUE_ERROR] <= 0.0:
        return 1.0
    center = tree.counters[0].score_center
    mean = float(values[SCORE])
    slope = p.score_utility * _arctan_slope(mean, 2.0 * p.score_unit)
    slope += p.dynamic_score_utility * _arctan_slope(
        mean + center if opponent_to_move else mean - center, 0.75 * p.score_unit
    )
    error = float(values[VALUE_ERROR]) + slope * float(values[SCORE_ERROR])
    return float(np.float32(ERROR_OF_ONE / (error + ERROR_OF_ONE / MAX_WEIGHT)))  # rounded as in the node


@inlined
def _arctan_slope(score, unit):  # type: ignore[no-untyped-def]
    return (2.0 / math.pi) * unit / (unit * unit + score * score)


@kernel
def _recenter(tree, center, signs, order):  # type: ignore[no-untyped-def]
    counters = tree.counters[0]
    before = counters.score_center
    # Breadth first from the root: a node's children come after it in `order`.
    for i in range(U(counters.node_top)):
        signs[i] = 0.0
    order[U(0)] = counters.root
    signs[U(counters.root)] = 1.0  # -1 if the opponent is to move
    head = U(0)
    tail = U(1)
    while head < tail:
        i = U(order[head])
        node = tree.nodes[i]
        for k in range(U(node.tried)):
            child = tree.stats[U(node.stats) + k].child
            if child != NONE and signs[U(child)] == 0.0:
                signs[U(child)] = -signs[i]
                order[tail] = child
                tail += U(1)
        head += U(1)
    # Backwards: children have their new sums before their parent reads them.
    while tail > U(0):
        tail -= U(1)
        i = U(order[tail])
        node = tree.nodes[i]
        if node.visits == 0 or node.proof != 0:
            continue
        old, new = signs[i] * before, signs[i] * center
        stdev = math.sqrt(node.score_variance)
        weight = node.weight_sum
        score = node.score_sum
        change = 0.0  # of utility_sum
        for k in range(U(node.tried)):
            stat = tree.stats[U(node.stats) + k]
            utility = stat.utility
            # A pruned child has no score variance of its own: take the parent's.
            if stat.child == NONE:
                off = dynamic_utility(tree, float(stat.score), stdev, new)
                utility += np.float32(off - dynamic_utility(tree, float(stat.score), stdev, old))
            elif stat.weight > 0.0:
                child = tree.nodes[U(stat.child)]
                utility = np.float32(-child.utility_sum / child.weight_sum)
            counted = float(stat.weight) * float(stat.share)
            weight -= counted
            score -= counted * float(stat.score)
            change += counted * float(utility - stat.utility)
            stat.utility = utility
        # The rest of the node's sum is its own evaluation. Its variance is taken to be the node's, which is exact for
        # a leaf.
        if weight > MIN_WEIGHT:
            mean = score / weight
            own_change = dynamic_utility(tree, mean, stdev, new) - dynamic_utility(tree, mean, stdev, old)
            node.own_utility += np.float32(own_change)
            change += own_change * weight
        node.utility_sum += change
    counters.score_center = center


def recenter(tree: "Tree", center: float) -> None:
    """Recompute all utilities of the tree for another score center. No search thread may run.

    Args:
        tree: the Tree.
        center: the new `score_center`, for the side to move at the root.
    """
    nodes = int(tree.counters[0].node_top)
    _recenter(tree, center, np.empty(nodes), np.empty(nodes, np.uint32))


# Argument types of the entries below: a Tree, a Worker, a Batch without positions, and GameCalls.
ARGUMENTS = types_of(*example_arguments())


@inlined
def _softmax(logits, indices, count, temperature, share, weights, priors):  # type: ignore[no-untyped-def]
    """Add `share` times the softmax of logits[indices[0:count]] / temperature to priors[0:count]."""
    top = np.float32(-1e30)
    for i in range(U(count)):
        weights[i] = logits[U(indices[i])]
        top = max(top, weights[i])
    total = np.float32(0.0)
    scale = np.float32(1.0 / temperature)
    for i in range(U(count)):
        weights[i] = math.exp((weights[i] - top) * scale)
        total += weights[i]
    factor = np.float32(share) / total
    for i in range(U(count)):
        priors[i] += weights[i] * factor


@inlined
def _add_rows(tree, batch, worker, calls, row, leaf, depth):  # type: ignore[no-untyped-def]
    """Write the current leaf into the batch, from `row` on; return the next free row."""
    rows = tree.parameters[0].rows_per_leaf
    chosen = tree.parameters[0].symmetry
    facts = worker.facts[0]
    count = facts.moves
    for k in range(rows):
        r = U(row + k)
        symmetry = k
        if chosen >= 0:
            symmetry = chosen
        elif rows == 1:
            symmetry = np.int64(random_bits(worker.rng) & U(7))
        batch.node[r] = leaf
        batch.is_root[r] = 1 if leaf == tree.counters[0].root else 0
        batch.symmetry[r] = symmetry
        batch.keys[r] = facts.position_key
        batch.move_count[r] = count
        for i in range(U(count)):
            batch.moves[r, i] = worker.moves[i]
        call_all(calls.rows, row + k)
    if facts.has_indices != 0:
        for i in range(U(count)):
            batch.plain_indices[U(row), i] = worker.indices[i]
    batch.depth[U(row)] = depth
    for i in range(U(depth)):
        batch.path[U(row), i] = worker.path[i]
        batch.slots[U(row), i] = worker.slots[i]
    batch.path[U(row), U(depth)] = leaf
    return row + rows


@inlined
def _back_up_evaluation(tree, path, slots, depth, state, utility, values):  # type: ignore[no-untyped-def]
    """Back up the evaluation of a leaf, a row of Batch.values."""
    weight = evaluation_weight(tree, values, depth & 1)
    value, lead = np.float64(values[VALUE]), np.float64(values[LEAD])
    variance = np.float64(values[STDEV] * values[STDEV])
    back_up(tree, path, slots, depth, state, utility, value, lead, variance, weight, np.int64(0))


@inlined
def _leave_out_banned(tree, worker, depth):  # type: ignore[no-untyped-def]
    """Remove moves that are banned at this depth from the current position's moves."""
    facts = worker.facts[0]
    kept = U(0)
    for i in range(U(facts.moves)):
        if not is_banned_below(tree, worker.moves[i], depth):
            worker.moves[kept] = worker.moves[i]
            worker.indices[kept] = worker.indices[i]
            kept += U(1)
    facts.moves = np.int64(kept)
    facts.position_key = restricted_key(tree, facts.position_key, depth)  # its priors are of fewer moves


@inlined
def _evaluate_or_enqueue(tree, batch, worker, calls, row, leaf, depth):  # type: ignore[no-untyped-def]
    """Back up the leaf at the current position if it is over or in the cache; otherwise add it to the batch.

    Returns the next free row.
    """
    opponent_to_move = depth & 1
    has_cache = tree.cache_keys.size > 1
    state = describe(calls, np.int64(depth == 0), np.int64(has_cache))
    facts = worker.facts[0]
    values = worker.values
    if state == OVER and depth > 0:
        value, score = facts.value, facts.score
        values[VALUE] = value
        values[SCORE] = score
        values[STDEV] = 0.0
        values[LEAD] = score
        utility = leaf_utility(tree, values, opponent_to_move)
        proof = np.int64(value) if tree.parameters[0].solver else np.int64(0)
        weight = tree.counters[0].most_weight
        back_up(tree, worker.path, worker.slots, depth, TERMINAL, utility, value, score, 0.0, weight, proof)
        return row
    if depth > 0 and depth < tree.counters[0].ban_depth:
        _leave_out_banned(tree, worker, depth)
    count = facts.moves
    if depth > 0 and count > 0 and probe_cache(tree, facts.position_key, worker.indices, count, worker.priors, values):
        utility = leaf_utility(tree, values, opponent_to_move)
        if expand(tree, leaf, worker.moves, worker.priors, count):
            _back_up_evaluation(tree, worker.path, worker.slots, depth, EXPANDED, utility, values)
        else:
            # Without memory for its edges the leaf stays pending, and the visit is undone.
            cancel_visits(tree, worker.path, worker.slots, depth, 1)
        return row
    return _add_rows(tree, batch, worker, calls, row, leaf, depth)


@inlined
def _resolve(tree, worker, calls, made, depth):  # type: ignore[no-untyped-def]
    """Set up the position at the end of worker.path; return its node: `made`, or an existing node (a transposition)."""
    # `made` was allocated for this visit, before its position was known.
    p = tree.parameters[0]
    facts = worker.facts[0]
    wanted = np.int64(0)
    if p.bias_correction != 0.0:
        wanted |= PATTERN
    if p.graph:
        wanted |= GRAPH
        facts.above = tree.nodes[U(worker.path[U(depth - 1)])].key
    replay(calls, depth - 1)
    step(calls, depth - 1, wanted)
    if p.bias_correction != 0.0:
        tree.nodes[U(made)].bucket = bucket_of(tree, facts.pattern_key)
    found = np.int64(made)
    if p.graph:
        found = np.int64(find_or_insert(tree, restricted_key(tree, facts.graph_key, depth), made))
        # A re-created node starts with its edge's visits. If these are more than the transposition's, it stays
        # separate.
        if tree.nodes[U(found)].visits < tree.nodes[U(made)].visits:
            found = np.int64(made)
    return found


@kernel
def back_up_again(tree, path, slots, depth, visits):  # type: ignore[no-untyped-def]
    """Back up a finished game `visits` more times; the path ends at its node."""
    leaf = np.int64(path[U(depth)])
    lock(tree, leaf)
    node = tree.nodes[U(leaf)]
    total = node.weight_sum
    value, score = node.value_sum / total, node.score_sum / total
    stdev = math.sqrt(node.score_variance)
    variance = np.float64(stdev * stdev)
    weight = np.float64(node.own_weight)
    utility = np.float64(node.own_utility)
    proof = np.int64(node.proof)
    unlock(tree, leaf)
    for _ in range(visits):
        back_up(tree, path, slots, depth, TERMINAL, utility, value, score, variance, weight, proof)


@inlined
def _check_keys(tree, worker, calls, depth):  # type: ignore[no-untyped-def]
    """Stop the search if the key of a node on worker.path differs from the key of its position."""
    facts = worker.facts[0]
    replay(calls, 0)
    facts.above = tree.nodes[U(worker.path[U(0)])].key
    for i in range(U(depth)):
        step(calls, i, GRAPH)
        facts.above = restricted_key(tree, facts.graph_key, np.int64(i) + 1)
        if tree.nodes[U(worker.path[i + U(1)])].key != facts.above:
            report_fault(tree, KEYS_BROKEN)


@inlined
def _attach(tree, worker, node, depth):  # type: ignore[no-untyped-def]
    """Publish `node` as the child of the reserved edge at the end of worker.path."""
    above = np.int64(worker.path[U(depth - 1)])
    lock(tree, above)
    tree.stats[U(tree.nodes[U(above)].stats) + U(worker.slots[U(depth - 1)])].child = node
    unlock(tree, above)


@inlined
def _merge_transposition(tree, worker, groups, made, node, depth, visits):  # type: ignore[no-untyped-def]
    """Redirect the group at place `groups`, whose new node `made` is a transposition, to the existing `node`.

    Returns the new number of groups.
    """
    # The group becomes up to two: visits that copy the node's statistics, and visits that descend from it.
    joining = np.int64(0)
    if tree.nodes[U(node)].state != PENDING:
        joining = min(visits, np.int64(tree.nodes[U(node)].visits) - np.int64(tree.nodes[U(made)].visits))
    free_node(tree, made)
    group = worker.groups[U(groups)]
    move, slot = group.move, group.slot
    if visits > joining:
        put_group(worker, groups, node, depth, visits - joining, move, slot, DESCENDS)
        groups += 1
    if joining > 0:
        put_group(worker, groups, node, depth, joining, move, slot, COPIES)
        groups += 1
    return groups


@inlined
def _enter_new_node(tree, worker, calls, made, depth, visits, groups):  # type: ignore[no-untyped-def]
    """Resolve the group of a new node `made`; the results are those of distribute_visits."""
    # The first of the visits finds a new leaf, unless the position is a transposition.
    node = _resolve(tree, worker, calls, made, depth)
    _attach(tree, worker, node, depth)
    if node == made:
        return NEW_LEAF, groups, visits - 1
    groups = _merge_transposition(tree, worker, groups, made, node, depth, visits)
    return DISTRIBUTED, groups, np.int64(0)


@inlined
def _take_group(worker, place):  # type: ignore[no-untyped-def]
    """Put group number `place` at the end of worker.path, and return the group's kind, node, depth and visits."""
    group = worker.groups[U(place)]
    index, depth = np.int64(group.node), np.int64(group.depth)
    worker.path[U(depth)] = index
    if depth > 0:
        worker.line[U(depth - 1)] = group.move
        worker.slots[U(depth - 1)] = group.slot
    return np.int64(group.kind), index, depth, np.int64(group.visits)


@inlined
def _claim(counters, wanted):  # type: ignore[no-untyped-def]
    """Claim up to `wanted` of the playouts that may still start; return their number."""
    claimed = atomic_add(counters, "claimed", wanted)
    granted = max(np.int64(0), min(wanted, np.int64(counters.claim_limit) - claimed))
    if granted < wanted:
        atomic_add(counters, "claimed", granted - wanted)
    return granted


@answering_entry(ARGUMENTS)
def gather(address, row, capacity):  # type: ignore[no-untyped-def]
    """Descend until rows `row` to `capacity` of the batch are filled; return the first unfilled row.

    Ends early if `stop` is set, at the playout limit, if the tree is full, after MAX_COLLISIONS cancelled visits
    without a leaf, and after MAX_UNEVALUATED visits without an evaluation. Sets `stop` if nothing is left to search.
    """
    # One descent has a visit for each leaf wanted (native/tree/descent.py). Visits that end without an evaluation
    # (finished games, cached positions, transpositions) are repeated. Visits to a leaf under evaluation are cancelled.
    # Nothing is left to search if all root moves are banned or proven lost, or one is proven won.
    tree, worker, batch, calls = load(address, ARGUMENTS)
    counters = tree.counters[0]
    rows = tree.parameters[0].rows_per_leaf
    first = row
    lost = np.int64(0)
    unevaluated = np.int64(0)
    moves_made = np.int64(0)
    deepest = np.int64(0)
    while row + rows <= capacity and unevaluated < MAX_UNEVALUATED and counters.stop == 0 and counters.full == 0:
        wanted = min((capacity - row) // rows - lost, np.int64(worker.groups.size))
        if wanted <= 0:
            if row > first or lost > MAX_COLLISIONS:
                break
            wanted = np.int64(1)
        claimed = _claim(counters, wanted)
        if claimed == 0:
            break
        put_group(worker, 0, counters.root, 0, claimed, 0, 0, DESCENDS)
        groups = np.int64(1)
        while groups > 0:
            groups -= 1
            kind, index, depth, visits = _take_group(worker, groups)
            deepest = max(deepest, depth)
            # What the group finds, and the visits that are left over: they are cancelled below.
            found, left = DISTRIBUTED, np.int64(0)
            if kind == COPIES:
                for _ in range(visits):
                    visit_shared(tree, worker.path, worker.slots, depth)
                unevaluated += visits
            elif kind == BLOCKED:
                left = visits
            elif kind == NEW_NODE:
                moves_made += depth
                found, groups, left = _enter_new_node(tree, worker, calls, index, depth, visits, groups)
            else:
                found, groups, left = distribute_visits(tree, worker, calls, index, depth, visits, groups)
                if found == NEW_LEAF:
                    replay(calls, depth)
            # CHECKED is a constant: this costs nothing in the usual build.
            if CHECKED and tree.parameters[0].graph and (kind == DESCENDS or found == NEW_LEAF):
                _check_keys(tree, worker, calls, depth)
            if found == FINISHED:
                back_up_again(tree, worker.path, worker.slots, depth, visits)
                unevaluated += visits
                moves_made += depth * visits
            elif left > 0:
                cancel_visits(tree, worker.path, worker.slots, depth, left)
                lost += left
            if found == NEW_LEAF:
                row = _evaluate_or_enqueue(tree, batch, worker, calls, row, index, depth)
            elif kind == DESCENDS and found == DISTRIBUTED and left > 0 and depth == 0 and counters.full == 0:
                counters.stop = 1  # no root move is left to search
    atomic_add(counters, "moves_made", moves_made)
    atomic_max(counters, "max_depth", deepest)
    return row


@answering_entry(ARGUMENTS)
def good_rows(address, _, __):  # type: ignore[no-untyped-def]
    """Return the number of batch rows to fill: (1 + root visits / VISITS_PER_LEAF) leaves, at most all rows."""
    tree, _worker, batch, _calls = load(address, ARGUMENTS)
    root_visits = np.int64(tree.nodes[U(tree.counters[0].root)].visits)
    leaves = 1 + root_visits // VISITS_PER_LEAF
    return min(np.int64(batch.node.size), leaves * tree.parameters[0].rows_per_leaf)


@answering_entry(ARGUMENTS)
def scatter(address, row, end):  # type: ignore[no-untyped-def]
    """Expand the evaluated leaves of rows `row` to `end` and back up their values."""
    tree, worker, batch, calls = load(address, ARGUMENTS)
    p = tree.parameters[0]
    rows = p.rows_per_leaf
    values = worker.values
    used = end - row
    while row < end:
        leaf = np.int64(batch.node[U(row)])
        count = np.int64(batch.move_count[U(row)])
        opponent_to_move = np.int64(batch.depth[U(row)]) & 1
        for i in range(VALUES):
            values[i] = 0.0
        for i in range(U(count)):
            worker.priors[i] = 0.0
        share = 1.0 / float(rows)
        root_row = batch.is_root[U(row)] != 0
        temperature = p.root_policy_temperature if root_row else p.policy_temperature
        for k in range(rows):
            r = U(row + k)
            if count > 0:
                _softmax(batch.logits[r], batch.indices[r], count, temperature, share, worker.weights, worker.priors)
            for i in range(VALUES):
                values[i] += batch.values[r, U(i)] * np.float32(share)
            if p.ownership:
                add_row_ownership(calls, row + k, -rows if opponent_to_move else rows)
        if p.ownership:
            slot = np.int64(batch.slots[U(row), 0]) if batch.depth[U(row)] > 0 else np.int64(-1)
            _add_leaf_ownership(worker.ownership, slot, values[NO_RESULT], p.move_ownership)
        # The first evaluation of the root sets the score center and the weight of finished games.
        if root_row and tree.nodes[U(leaf)].visits == 0:
            tree.counters[0].score_center = CENTER_SHARE * float(values[LEAD])
            tree.counters[0].most_weight = MAX_WEIGHT if p.uncertainty and values[VALUE_ERROR] > 0.0 else 1.0
        utility = leaf_utility(tree, values, opponent_to_move)
        _store_leaf(tree, worker, batch, U(row), leaf, utility)
        row += rows
    atomic_add(tree.counters[0], "evaluated", np.int64(used))
    return 0


@inlined
def _add_leaf_ownership(sums, slot, no_result, by_move):  # type: ignore[no-untyped-def]
    """Add the current leaf to the sums of Worker.ownership, and clear it. `slot`: the root's edge above it, or -1."""
    leaf = sums[ONE_LEAF, 0]
    end = U(leaf.size - 2)
    for i in range(end):
        sums[ALL_LEAVES, 0, i] += leaf[i]
    sums[ALL_LEAVES, 0, end] += 1.0
    if by_move:
        for i in range(end):
            sums[ALL_LEAVES, 1, i] += leaf[i] * leaf[i]
        if slot >= 0:
            place = U(FIRST_SLOT + slot)
            for i in range(end):
                sums[place, 0, i] += leaf[i]
                sums[place, 1, i] += leaf[i] * leaf[i]
            sums[place, 0, end] += 1.0
            sums[place, 0, end + U(1)] += no_result
    for i in range(end):
        leaf[i] = 0.0


@inlined
def _store_leaf(tree, worker, batch, row, leaf, utility):  # type: ignore[no-untyped-def]
    """Expand an evaluated leaf, store it in the cache and back it up."""
    path, slots, depth = batch.path[row], batch.slots[row], np.int64(batch.depth[row])
    count = np.int64(batch.move_count[row])
    state = TERMINAL
    if count > 0:
        state = EXPANDED
        if batch.is_root[row] == 0:
            store_cache(tree, batch.keys[row], batch.plain_indices[row], count, worker.priors, worker.values)
        if not expand(tree, leaf, batch.moves[row], worker.priors, count):
            # No memory for its edges: it stays pending.
            cancel_visits(tree, path, slots, depth, 1)
            return
    _back_up_evaluation(tree, path, slots, depth, state, utility, worker.values)


@answering_entry(ARGUMENTS)
def are_numbers(address, rows, _):  # type: ignore[no-untyped-def]
    """Return whether all values and the logits of all legal moves in the first `rows` rows are finite."""
    batch = load(address, ARGUMENTS)[2]
    # One sum instead of many tests: it is finite if all terms are.
    total = 0.0
    for row in range(U(rows)):
        for i in range(U(batch.move_count[row])):
            total += batch.logits[row, U(batch.indices[row, i])]
        for i in range(U(VALUES)):
            total += batch.values[row, i]
    return np.int64(math.isfinite(total))

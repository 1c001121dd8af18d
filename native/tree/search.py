"""Descending the tree, and backing up what the evaluator said: gather and scatter.

Source of the selection rule: PUCT as in AlphaZero, with KataGo's logarithmic growth of the exploration constant, its
scaling by the spread of the utilities below a node, and its first-play urgency (docs of KataGo v1.17).
"""

import math

import numpy as np

from native.bits import U, atomic_add, atomic_exchange, atomic_store, random_bits
from native.game import (
    OVER,
    OVER_UNSCORED,
    add_ownership,
    copy,
    legal_moves,
    outcome,
    play,
    policy_index,
    position_key,
    write_planes,
)
from native.jit import inlined, kernel
from native.tree.arrays import (
    BANNED,
    C_PUCT,
    C_PUCT_BASE,
    C_PUCT_LOG,
    CACHE_HITS,
    CLAIM_LIMIT,
    CLAIMED,
    EXPANDED,
    FPU_FROM_MEAN,
    FPU_REDUCTION,
    FULL,
    MAX_COLLISIONS,
    MAX_DEPTH,
    MOVES_MADE,
    NONE,
    OWNERSHIP,
    PENDING,
    PLAYOUTS,
    POLICY_TEMPERATURE,
    ROOT,
    ROOT_FPU_REDUCTION,
    ROOT_POLICY_TEMPERATURE,
    ROWS_A_LEAF,
    SCORE_CENTER,
    SCORE_DYNAMIC,
    SCORE_STATIC,
    SCORE_UNIT,
    STDEV_PRIOR,
    STDEV_PRIOR_WEIGHT,
    STDEV_SCALE,
    STOP,
    SYMMETRY,
    TERMINAL,
    UNTOUCHED,
    VIRTUAL_LOSS,
)
from native.tree.memory import add_stats, lock, new_edges, new_node, unlock

PRIOR_SCALE = np.float32(1.0 / 65535.0)


@kernel
def exploration(tree, node, weight):  # type: ignore[no-untyped-def]
    """Return the factor of prior / (1 + visits) at `node`, whose children have `weight` visits in all."""
    p = tree.parameters
    c_puct = p[C_PUCT] + p[C_PUCT_LOG] * math.log((weight + p[C_PUCT_BASE]) / p[C_PUCT_BASE])
    spread = 1.0
    if p[STDEV_SCALE] > 0.0:
        n = float(node.visits)
        prior_weight = p[STDEV_PRIOR_WEIGHT]
        mean = node.utility_sum / max(n, 1.0)
        square = mean * mean + p[STDEV_PRIOR] * p[STDEV_PRIOR]
        square = (node.utility_square_sum + square * prior_weight) / (n + prior_weight)
        stdev = math.sqrt(max(0.0, square - mean * mean))
        spread = 1.0 + p[STDEV_SCALE] * (stdev / p[STDEV_PRIOR] - 1.0)
    return c_puct * spread * math.sqrt(weight + 0.01)


@kernel
def first_play_urgency(tree, node, is_root):  # type: ignore[no-untyped-def]
    """Return the utility that an untried edge of `node` is taken to have."""
    p = tree.parameters
    mass = min(1.0, float(node.tried_prior))
    weight = 1.0 if p[FPU_FROM_MEAN] != 0.0 else mass * mass
    mean = node.utility_sum / max(1.0, float(node.visits))
    parent = weight * mean + (1.0 - weight) * node.own_utility
    reduction = p[ROOT_FPU_REDUCTION] if is_root else p[FPU_REDUCTION]
    return parent - reduction * math.sqrt(mass)


@kernel
def raise_candidate(tree, node, is_root):  # type: ignore[no-untyped-def]
    """Swap the untried edge of greatest prior (banned root moves last) to the place after the tried ones."""
    first = U(node.edges) + U(node.tried)
    end = U(node.edges) + U(node.edge_count)
    if is_root and tree.counters[BANNED] != 0:
        best = first
        best_key = np.int64(-1)
        for i in range(first, end):
            edge = tree.edges[i]
            key = np.int64(-1) if tree.banned[U(edge & np.uint32(0xFFFF))] != 0 else np.int64(edge >> np.uint32(16))
            if key > best_key:
                best_key = key
                best = i
        chosen = tree.edges[best]
    else:
        chosen = np.uint32(0)
        for i in range(first, end):
            chosen = max(chosen, tree.edges[i])
        best = first
        while best + U(1) < end and tree.edges[best] != chosen:
            best += U(1)
    if first < end:
        tree.edges[best] = tree.edges[first]
        tree.edges[first] = chosen


@kernel
def select(tree, node, is_root):  # type: ignore[no-untyped-def]
    """Return the slot of the edge to follow at the locked, expanded `node`; `node.tried` means the candidate.

    Returns -1 where every edge is banned.
    """
    tried = U(node.tried)
    base = U(node.stats)
    edges = U(node.edges)
    virtual_loss = tree.parameters[VIRTUAL_LOSS]
    weight = 0.0
    for i in range(tried):
        stat = tree.stats[base + i]
        weight += float(stat.visits) + float(stat.in_flight)
    factor = exploration(tree, node, weight)
    bans = is_root and tree.counters[BANNED] != 0
    best = -1
    best_value = -1e30
    for i in range(tried):
        stat = tree.stats[base + i]
        edge = tree.edges[edges + i]
        if bans and tree.banned[U(edge & np.uint32(0xFFFF))] != 0:
            continue
        prior = float(edge >> np.uint32(16)) * PRIOR_SCALE
        n = float(stat.visits)
        loss = virtual_loss * float(stat.in_flight)
        if n + loss > 0.0:
            q = (stat.utility * n - loss) / (n + loss)
        else:
            q = first_play_urgency(tree, node, is_root)
        value = q + factor * prior / (1.0 + n + float(stat.in_flight))
        if value > best_value:
            best_value = value
            best = np.int64(i)
    if tried < U(node.edge_count):
        edge = tree.edges[edges + tried]
        if not (bans and tree.banned[U(edge & np.uint32(0xFFFF))] != 0):
            prior = float(edge >> np.uint32(16)) * PRIOR_SCALE
            if first_play_urgency(tree, node, is_root) + factor * prior > best_value:
                best = np.int64(tried)
    return best


@kernel
def expected_arctan(mean, stdev, center, unit):  # type: ignore[no-untyped-def]
    """Return the mean of (2/pi) arctan((x - center) / unit) for x normal, by the usual widening of the sigmoid."""
    wide = math.sqrt(unit * unit + 0.5 * stdev * stdev)
    return math.atan((mean - center) / wide) * (2.0 / math.pi)


@kernel
def leaf_utility(tree, values, odd):  # type: ignore[no-untyped-def]
    """Return the utility of an evaluation (a row of Batch.values) for the side to move at the leaf."""
    p = tree.parameters
    utility = float(values[0])
    if p[SCORE_STATIC] != 0.0 or p[SCORE_DYNAMIC] != 0.0:
        unit = p[SCORE_UNIT]
        center = -p[SCORE_CENTER] if odd else p[SCORE_CENTER]
        mean = float(values[1])
        stdev = float(values[2])
        utility += p[SCORE_STATIC] * expected_arctan(mean, stdev, 0.0, 2.0 * unit)
        utility += p[SCORE_DYNAMIC] * expected_arctan(mean, stdev, center, 0.75 * unit)
    return utility


@kernel
def back_up(tree, leaf, utility, value, score, stdev):  # type: ignore[no-untyped-def]
    """Add one playout's result, for the side to move at `leaf`, to the leaf and everything above it.

    `stdev` is the evaluator's uncertainty of the score.
    """
    utility_square = np.float32(utility * utility)
    score_square = np.float32(score * score + stdev * stdev)
    index = np.int64(leaf)
    lock(tree, index)
    node = tree.nodes[U(index)]
    while True:
        node.visits += 1
        node.utility_sum += utility
        node.utility_square_sum += utility_square
        node.value_sum += value
        node.score_sum += score
        node.score_square_sum += score_square
        visits = node.visits
        mean = -node.utility_sum / float(visits)
        parent = np.int64(node.parent)
        slot = U(node.parent_slot)
        unlock(tree, index)
        if parent == NONE:
            break
        utility = -utility
        value = -value
        score = -score
        index = parent
        lock(tree, index)
        node = tree.nodes[U(index)]
        stat = tree.stats[U(node.stats) + slot]
        # Threads may pass each other between the two locks: what the later one saw of the child stands.
        if visits > stat.visits:
            stat.visits = visits
            stat.utility = mean
        stat.in_flight -= 1
    atomic_add(tree.counters, U(PLAYOUTS), 1)


@kernel
def take_back(tree, leaf):  # type: ignore[no-untyped-def]
    """Undo the in-flight marks of a playout that ended at `leaf` without a result, and its claim."""
    index = np.int64(leaf)
    while True:
        parent = np.int64(tree.nodes[U(index)].parent)
        if parent == NONE:
            break
        lock(tree, parent)
        node = tree.nodes[U(parent)]
        tree.stats[U(node.stats) + U(tree.nodes[U(index)].parent_slot)].in_flight -= 1
        unlock(tree, parent)
        index = parent
    atomic_add(tree.counters, U(CLAIMED), -1)


@inlined
def expand(tree, index, moves, priors, count):  # type: ignore[no-untyped-def]
    """Give the pending node `index` its edges; False where the pool is used up (the node stays pending)."""
    first = new_edges(tree, count)
    if first == NONE:
        return False
    for i in range(U(count)):
        prior = np.uint32(min(65535.0, priors[i] * np.float32(65535.0) + np.float32(0.5)))
        tree.edges[U(first) + i] = (prior << np.uint32(16)) | np.uint32(moves[i])
    lock(tree, index)
    node = tree.nodes[U(index)]
    node.edges = first
    node.edge_count = count
    raise_candidate(tree, node, node.parent == NONE)
    node.state = EXPANDED
    unlock(tree, index)
    return True


@inlined
def _softmax(logits, indices, count, temperature, weight, priors):  # type: ignore[no-untyped-def]
    """Add `weight` times the softmax of logits[indices[0:count]] / temperature to priors[0:count]."""
    top = np.float32(-1e30)
    for i in range(U(count)):
        top = max(top, logits[U(indices[i])])
    total = np.float32(0.0)
    scale = np.float32(1.0 / temperature)
    for i in range(U(count)):
        total += math.exp((logits[U(indices[i])] - top) * scale)
    factor = np.float32(weight) / total
    for i in range(U(count)):
        priors[i] += math.exp((logits[U(indices[i])] - top) * scale) * factor


@kernel
def probe_cache(tree, key, policy_indices, count, priors, values):  # type: ignore[no-untyped-def]
    """Read the evaluation under `key` into `priors` (normalised over the given policy indices) and `values`."""
    slot = U(key) & U(tree.cache_keys.size - 1)
    if tree.cache_keys.size < 2 or tree.cache_keys[slot] != key:
        return False
    while atomic_exchange(tree.cache_locks, slot, 1) != 0:
        pass
    found = tree.cache_keys[slot] == key
    total = np.float32(0.0)
    if found:
        for i in range(U(count)):
            prior = np.float32(tree.cache_priors[slot, U(policy_indices[i])])
            priors[i] = prior
            total += prior
        for i in range(4):
            values[i] = tree.cache_values[slot, U(i)]
    atomic_store(tree.cache_locks, slot, 0)
    if not found or total <= np.float32(0.0):
        return False
    for i in range(U(count)):
        priors[i] /= total
    return True


@kernel
def store_cache(tree, key, policy_indices, count, priors, values):  # type: ignore[no-untyped-def]
    """Keep an evaluation, replacing whatever stands in its place."""
    if tree.cache_keys.size < 2:
        return
    slot = U(key) & U(tree.cache_keys.size - 1)
    while atomic_exchange(tree.cache_locks, slot, 1) != 0:
        pass
    tree.cache_keys[slot] = key
    for i in range(U(tree.cache_priors.shape[1])):
        tree.cache_priors[slot, i] = 0
    for i in range(U(count)):
        prior = min(np.float32(65535.0), priors[i] * np.float32(65535.0) + np.float32(0.5))
        tree.cache_priors[slot, U(policy_indices[i])] = np.uint16(prior)
    for i in range(4):
        tree.cache_values[slot, U(i)] = values[i]
    atomic_store(tree.cache_locks, slot, 0)


@inlined
def _add_rows(tree, batch, worker, row, leaf, odd, key, count):  # type: ignore[no-untyped-def]
    """Write the leaf at worker.positions[0] into the batch from `row` on and return the next free row."""
    pos = worker.positions[0]
    rows = np.int64(tree.parameters[ROWS_A_LEAF])
    chosen = np.int64(tree.parameters[SYMMETRY])
    for k in range(rows):
        r = U(row + k)
        symmetry = k
        if chosen >= 0:
            symmetry = chosen
        elif rows == 1:
            symmetry = np.int64(random_bits(worker.rng) & U(7))
        batch.node[r] = leaf
        batch.odd[r] = odd
        batch.is_root[r] = 1 if leaf == tree.counters[ROOT] else 0
        batch.symmetry[r] = symmetry
        batch.keys[r] = key
        batch.move_count[r] = count
        for i in range(U(count)):
            batch.indices[r, i] = policy_index(pos, worker.moves[i], symmetry)
        if batch.planes.shape[1] > 0:
            write_planes(pos, worker.history, symmetry, worker.scratch[0], batch.planes[r], batch.extras[r])
        if batch.positions.size > 0:
            copy(batch.positions[r], pos)
        for i in range(U(count)):
            batch.moves[r, i] = worker.moves[i]
    for i in range(U(count)):
        batch.plain_indices[U(row), i] = worker.indices[i]
    return row + rows


@inlined
def _open_leaf(tree, batch, worker, row, leaf, depth):  # type: ignore[no-untyped-def]
    """Settle the new leaf at worker.positions[0], or put it into the batch; return the next free row.

    A finished game and a cached evaluation are backed up at once.
    """
    pos = worker.positions[0]
    history = worker.history
    odd = depth & 1
    state, value, score = outcome(pos, history)
    values = np.empty(4, np.float32)
    if state == OVER and depth > 0:
        values[0] = value
        values[1] = score
        values[2] = 0.0
        values[3] = score
        utility = leaf_utility(tree, values, odd)
        lock(tree, leaf)
        node = tree.nodes[U(leaf)]
        node.own_utility = utility
        node.state = TERMINAL
        unlock(tree, leaf)
        back_up(tree, leaf, utility, value, score, 0.0)
        return row
    count = legal_moves(pos, history, worker.moves)
    if state == OVER_UNSCORED and depth > 0:
        count = 0
    key = U(position_key(pos, history))
    for i in range(U(count)):
        worker.indices[i] = policy_index(pos, worker.moves[i], 0)
    if depth > 0 and count > 0 and probe_cache(tree, key, worker.indices, count, worker.priors, values):
        utility = leaf_utility(tree, values, odd)
        tree.nodes[U(leaf)].own_utility = utility
        if expand(tree, leaf, worker.moves, worker.priors, count):
            back_up(tree, leaf, utility, float(values[0]), float(values[3]), float(values[2]))
            atomic_add(tree.counters, U(CACHE_HITS), 1)
        else:
            take_back(tree, leaf)
        return row
    return _add_rows(tree, batch, worker, row, leaf, odd, key, count)


@inlined
def _descend(tree, worker):  # type: ignore[no-untyped-def]
    """Go down from the root, playing moves on worker.positions[0]; return (leaf, depth, is_new).

    The leaf is -1 where there is nothing to do (everything banned, or no memory).
    """
    pos = worker.positions[0]
    index = tree.counters[ROOT]
    depth = 0
    while True:
        lock(tree, index)
        node = tree.nodes[U(index)]
        if node.state != EXPANDED:
            is_new = node.state == UNTOUCHED
            if is_new:
                node.state = PENDING
            unlock(tree, index)
            return index, depth, is_new
        slot = select(tree, node, depth == 0)
        if slot < 0:
            unlock(tree, index)
            return np.int64(-1), depth, False
        if slot == np.int64(node.tried):
            if not add_stats(tree, node):
                unlock(tree, index)
                take_back(tree, index)
                return np.int64(-2), depth, False
            stat = tree.stats[U(node.stats) + U(slot)]
            stat.child = NONE
            stat.visits = 0
            stat.utility = 0.0
            stat.in_flight = 0
            node.tried_prior += np.float32(tree.edges[U(node.edges) + U(slot)] >> np.uint32(16)) * PRIOR_SCALE
            node.tried += 1
            raise_candidate(tree, node, depth == 0)
        stat = tree.stats[U(node.stats) + U(slot)]
        move = tree.edges[U(node.edges) + U(slot)] & np.uint32(0xFFFF)
        child = np.int64(stat.child)
        is_new = child == NONE
        if is_new:
            child = new_node(tree, index, slot)
            if child == NONE:
                unlock(tree, index)
                take_back(tree, index)
                return np.int64(-2), depth, False
            stat.child = child
            if stat.visits > 0:
                _restore(tree.nodes[U(child)], stat)
        stat.in_flight += 1
        unlock(tree, index)
        play(pos, worker.history, move)
        depth += 1
        index = child
        if is_new:
            return index, depth, True


@inlined
def _restore(node, stat):  # type: ignore[no-untyped-def]
    """Give a node that was pruned, and is now made anew, the visits and utility that its edge has kept.

    The value is taken to be the utility, and the score to be unknown (0): both wash out as playouts come in.
    """
    n = float(stat.visits)
    u = -float(stat.utility)
    node.visits = stat.visits
    node.utility_sum = u * n
    node.utility_square_sum = u * u * n
    node.value_sum = u * n
    node.own_utility = u


@kernel
def gather(tree, root, worker, batch, leaves):  # type: ignore[no-untyped-def]
    """Descend until the batch holds `leaves` leaves or is full; return its rows in use, 0 where nothing was to do.

    Settles terminal and cached leaves on the way. Stops early at STOP, at the playout limit, when the tree is full, and
    after MAX_COLLISIONS descents in a row that ended at leaves which are already being evaluated. Sets STOP where every
    move of the root is banned: there is nothing to search.

    Args:
        tree: the Tree.
        root: record of the root's position.
        worker: the calling thread's Worker; worker.history begins with the root's history.
        batch: a Batch that is not in use.
        leaves: leaves to gather, at most.
    """
    row = np.int64(0)
    rows = np.int64(tree.parameters[ROWS_A_LEAF])
    capacity = min(np.int64(batch.node.size), np.int64(leaves) * rows)
    collisions = 0
    limit = tree.parameters[MAX_COLLISIONS]
    moves_made = 0
    deepest = 0
    while row + rows <= capacity and collisions <= limit:
        if tree.counters[STOP] != 0 or tree.counters[FULL] != 0:
            break
        if atomic_add(tree.counters, U(CLAIMED), 1) >= tree.counters[CLAIM_LIMIT]:
            atomic_add(tree.counters, U(CLAIMED), -1)
            break
        copy(worker.positions[0], root)
        leaf, depth, is_new = _descend(tree, worker)
        moves_made += depth
        deepest = max(deepest, depth)
        if leaf < 0:
            if leaf == -1:
                atomic_add(tree.counters, U(CLAIMED), -1)
                tree.counters[STOP] = 1
            break
        node = tree.nodes[U(leaf)]
        if not is_new and node.state == TERMINAL:
            lock(tree, leaf)
            n = max(1.0, float(node.visits))
            value, score = node.value_sum / n, node.score_sum / n
            stdev = math.sqrt(max(0.0, node.score_square_sum / n - score * score))
            unlock(tree, leaf)
            back_up(tree, leaf, float(node.own_utility), value, score, stdev)
            continue
        if not is_new:
            take_back(tree, leaf)
            collisions += 1
            continue
        row = _open_leaf(tree, batch, worker, row, leaf, depth)
    atomic_add(tree.counters, U(MOVES_MADE), moves_made)
    if deepest > tree.counters[MAX_DEPTH]:
        tree.counters[MAX_DEPTH] = deepest
    return row


@kernel
def scatter(tree, root, worker, batch, used):  # type: ignore[no-untyped-def]
    """Expand the leaves of an evaluated batch of `used` rows and back their values up."""
    rows = np.int64(tree.parameters[ROWS_A_LEAF])
    values = np.empty(4, np.float32)
    sign = 1.0
    row = np.int64(0)
    while row < used:
        leaf = np.int64(batch.node[U(row)])
        count = np.int64(batch.move_count[U(row)])
        odd = np.int64(batch.odd[U(row)])
        for i in range(4):
            values[i] = 0.0
        for i in range(U(count)):
            worker.priors[i] = 0.0
        share = 1.0 / float(rows)
        root_row = batch.is_root[U(row)] != 0
        temperature = tree.parameters[ROOT_POLICY_TEMPERATURE if root_row else POLICY_TEMPERATURE]
        for k in range(rows):
            r = U(row + k)
            if count > 0:
                _softmax(batch.logits[r], batch.indices[r], count, temperature, share, worker.priors)
            for i in range(4):
                values[i] += batch.values[r, U(i)] * np.float32(share)
            if tree.parameters[OWNERSHIP] != 0.0:
                sign = -share if odd else share
                add_ownership(root, batch.ownership[r], np.int64(batch.symmetry[r]), sign, worker.ownership)
        if tree.parameters[OWNERSHIP] != 0.0:
            worker.ownership[worker.ownership.size - 1] += 1.0
        utility = leaf_utility(tree, values, odd)
        _settle(tree, worker, batch, U(row), leaf, values, utility)
        row += rows


@inlined
def _settle(tree, worker, batch, row, leaf, values, utility):  # type: ignore[no-untyped-def]
    """Expand one evaluated leaf and back it up; without memory for its edges it stays pending and is taken back."""
    tree.nodes[U(leaf)].own_utility = utility
    count = np.int64(batch.move_count[row])
    if count == 0:
        tree.nodes[U(leaf)].state = TERMINAL
    else:
        if batch.is_root[row] == 0:
            store_cache(tree, batch.keys[row], batch.plain_indices[row], count, worker.priors, values)
        if not expand(tree, leaf, batch.moves[row], worker.priors, count):
            take_back(tree, leaf)
            return
    back_up(tree, leaf, utility, float(values[0]), float(values[3]), float(values[2]))

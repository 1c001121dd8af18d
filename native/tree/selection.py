"""Selection of the edge that a visit follows: PUCT.

    maximise  utility(edge) + c * spread * sqrt(N + 0.01) * prior(edge) / (1 + n(edge))
    c = c_puct + c_puct_log * log((N + base) / base)

n is the weight of an edge plus its visits in flight, N the sum over all edges. Source: AlphaZero, with KataGo's growth
of c, its scaling by the spread of utilities, its first-play urgency and wideRootNoise (docs of KataGo v1.17).
"""

import math

import numpy as np

from yomi.native.bits import U
from yomi.native.jit import inlined, kernel
from yomi.native.tree.arrays import IN_FLIGHT, LOST_EDGE, MIN_WEIGHT, WON_EDGE
from yomi.native.tree.edges import PRIOR_SCALE, edge_move, edge_prior, edge_quantized

# Assumed standard deviation of utilities before any visit (KataGo's value).
ASSUMED_STDEV = 0.4
ASSUMED_STDEV_VISITS = 2.0  # visits that the assumption counts as (KataGo's value)

FORCED = 1e30  # value of a root move that has fewer than its forced playouts


@inlined
def expected_stdev(variance, visits):  # type: ignore[no-untyped-def]
    """Return sqrt((variance * visits + ASSUMED_STDEV**2 * v) / (visits + v)), with v = ASSUMED_STDEV_VISITS."""
    assumed = ASSUMED_STDEV * ASSUMED_STDEV * ASSUMED_STDEV_VISITS
    return math.sqrt((variance * visits + assumed) / (visits + ASSUMED_STDEV_VISITS))


@inlined
def exploration(tree, node, is_root, weight):  # type: ignore[no-untyped-def]
    """Return the factor c * spread * sqrt(N + 0.01), with N = `weight`."""
    p = tree.parameters[0]
    base = p.root_c_puct_base if is_root else p.c_puct_base
    c_puct = (p.root_c_puct if is_root else p.c_puct) + p.c_puct_log * math.log((weight + base) / base)
    spread = 1.0
    if p.spread_scale > 0.0:
        stdev = expected_stdev(node.utility_variance, float(node.visits))
        spread = 1.0 + p.spread_scale * (stdev / ASSUMED_STDEV - 1.0)
    return c_puct * spread * math.sqrt(weight + 0.01)


@inlined
def prior_factor(tree, node, is_root):  # type: ignore[no-untyped-def]
    """Return the factor with which the priors of the tried moves, and of the others that are not banned, sum to 1."""
    # Otherwise too little prior seems to be tried, and hopeless moves look as good as the rest: after the pruning of
    # symmetric moves, which have three quarters of the priors, every move of the root got a visit.
    if not is_root or tree.counters[0].bans == 0:
        return 1.0
    return 1.0 / max(float(node.tried_prior) + tree.counters[0].prior_left, 1.0 / PRIOR_SCALE)


@inlined
def _first_play_urgency(tree, node, is_root, tried_prior):  # type: ignore[no-untyped-def]
    """Return the assumed utility of an untried edge: the node's utility, reduced more the more prior has been tried."""
    p = tree.parameters[0]
    # The more priors were tried, the better the mean stands for the rest.
    mass = min(1.0, float(tried_prior))
    weight = 1.0 if p.fpu_from_mean else mass * mass
    mean = node.utility_sum / max(MIN_WEIGHT, node.weight_sum)
    parent = weight * mean + (1.0 - weight) * node.own_utility
    reduction = p.root_fpu_reduction if is_root else p.fpu_reduction
    return parent - reduction * math.sqrt(mass)


@inlined
def _hashed(turn, move):  # type: ignore[no-untyped-def]
    # splitmix64's finalizer: the same turn and move give the same number in every thread.
    x = (turn + U(1)) * U(0x9E3779B97F4A7C15) ^ U(move) * U(0xD1B54A32D192ED03)
    x = (x ^ (x >> U(30))) * U(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> U(27))) * U(0x94D049BB133111EB)
    return x ^ (x >> U(31))


@inlined
def _noise(turn, move):  # type: ignore[no-untyped-def]
    """Return |x| for a normal x, or 0 with probability 1/2, as a hash of turn and move."""
    x = _hashed(turn, move)
    if x & U(1) != U(0):
        return 0.0
    radius = math.sqrt(-2.0 * math.log(float((x >> U(40)) + U(1)) * 2.0**-24))
    return radius * abs(math.cos(float((x >> U(16)) & U(0xFFFFFF)) * (2.0**-23 * math.pi)))


@kernel
def raise_candidate(tree, node, is_root):  # type: ignore[no-untyped-def]
    """Swap the untried edge with the greatest prior to the index behind the tried edges.

    Root moves with a goal come first, banned root moves last.
    """
    first = U(node.edges) + U(node.tried)
    end = U(node.edges) + U(node.edge_count)
    if is_root and (tree.counters[0].bans | tree.counters[0].goals) != 0:
        best = first
        best_key, left = np.int64(-1), np.int64(0)
        for i in range(first, end):
            edge = tree.edges[i]
            key = np.int64(edge_quantized(edge))
            if tree.banned[U(edge_move(edge))] != 0:
                continue
            left += key
            if tree.goals[U(edge_move(edge))] != 0:
                key += np.int64(1) << 32
            if key > best_key:
                best_key = key
                best = i
        tree.counters[0].prior_left = float(left) / PRIOR_SCALE
        chosen = tree.edges[best]
    else:
        chosen = np.uint32(0)
        for i in range(first, end):
            # Priors are the upper bits of an edge.
            chosen = max(chosen, tree.edges[i])
        best = first
        while best + U(1) < end and tree.edges[best] != chosen:
            best += U(1)
    if first < end:
        tree.edges[best] = tree.edges[first]
        tree.edges[first] = chosen


@inlined
def _mean_utility(stat, virtual_loss, urgency):  # type: ignore[no-untyped-def]
    """Return an edge's mean utility with each visit in flight counted as `virtual_loss` losses."""
    n, flying = float(stat.weight), float(stat.in_flight & IN_FLIGHT)
    if stat.in_flight == 0 and n > 0.0:
        q = float(stat.utility)
    # (w * q - loss) / (w + loss)
    elif n + virtual_loss * flying > 0.0:
        loss = virtual_loss * flying
        q = (stat.utility * n - loss) / (n + loss)
    else:
        # Without a result the edge is as good as an untried one.
        q = urgency
    return q


@inlined
def _worth(stat, utility, factor, prior):  # type: ignore[no-untyped-def]
    return utility + factor * prior / (1.0 + float(stat.weight) + float(stat.in_flight & IN_FLIGHT))


@inlined
def _best_of_tried(tree, node, factor, urgency):  # type: ignore[no-untyped-def]
    """Return the tried edge of greatest value (-1 for none), its value, and whether an edge is proven won."""
    base, edges = U(node.stats), U(node.edges)
    virtual_loss = tree.parameters[0].virtual_loss
    best, best_value, is_won = np.int64(-1), -1e30, False
    for i in range(U(node.tried)):
        stat = tree.stats[base + i]
        if stat.in_flight > IN_FLIGHT:  # proven: WON_EDGE or LOST_EDGE is set
            is_won |= stat.in_flight & WON_EDGE != 0
            continue
        value = _worth(stat, _mean_utility(stat, virtual_loss, urgency), factor, edge_prior(tree.edges[edges + i]))
        if value > best_value:
            best_value = value
            best = np.int64(i)
    return best, best_value, is_won


@inlined
def _best_of_tried_at_root(tree, node, factor, urgency, scale, total, turn):  # type: ignore[no-untyped-def]
    """Return the results of `_best_of_tried` for the root, with banned and forced moves, goals, halving and noise."""
    base, edges = U(node.stats), U(node.edges)
    p = tree.parameters[0]
    bans = tree.counters[0].bans != 0
    forced = p.forced_playouts * total
    goals = tree.counters[0].goals != 0 and turn & U(1) != U(0)
    wide = p.wide_root_noise
    best, best_value, is_won = np.int64(-1), -1e30, False
    for i in range(U(node.tried)):
        stat = tree.stats[base + i]
        edge = tree.edges[edges + i]
        if bans and tree.banned[U(edge_move(edge))] != 0:
            continue
        if stat.in_flight > IN_FLIGHT:
            is_won |= stat.in_flight & WON_EDGE != 0
            continue
        utility, prior = _mean_utility(stat, p.virtual_loss, urgency), edge_prior(edge) * scale
        if wide > 0.0:
            utility += wide * _noise(turn, edge_move(edge))
            prior = _flattened(prior, wide)
        value = _worth(stat, utility, factor, prior)
        n, flying = float(stat.weight), float(stat.in_flight)
        is_behind = goals and float(stat.visits) + flying < float(tree.goals[U(edge_move(edge))])
        # Halving visits the moves in turn: the least visited first.
        if p.halving:
            value = -float(stat.visits) - flying
        elif is_behind or (forced > 0.0 and (n + flying) * (n + flying) < forced * edge_prior(edge)):
            value = FORCED
        if value > best_value:
            best_value = value
            best = np.int64(i)
    return best, best_value, is_won


@kernel
def select_as_people(tree, node, total, turn):  # type: ignore[no-untyped-def]
    """Return the slot that PUCT chooses at the locked root by the policy of people, or -1 if `select` must choose.

    An untried edge is moved to the place behind the tried edges. `total` is the sum of all edges' weights and visits in
    flight, `turn` the number of the visit.
    """
    p = tree.parameters[0]
    share = p.human_root_weightless + p.human_root_weightful
    if float(_hashed(turn, U(0xFFFF)) >> U(11)) * 2.0**-53 >= share:
        return np.int64(-1)
    base, edges = U(node.stats), U(node.edges)
    mass = 0.0
    for i in range(U(node.tried)):
        mass += float(tree.human[U(edge_move(tree.edges[edges + i]))])
    factor = (p.human_c_puct + p.human_c_puct_permanent * math.sqrt(total)) * math.sqrt(total + 0.01)
    urgency = _first_play_urgency(tree, node, True, mass)
    best, best_value = np.int64(-1), -1e30
    for i in range(U(node.edge_count)):
        move = U(edge_move(tree.edges[edges + i]))
        prior = float(tree.human[move])
        if tree.banned[move] != 0:
            continue
        if i >= U(node.tried):
            value = urgency + factor * prior
        else:
            stat = tree.stats[base + i]
            if stat.in_flight & WON_EDGE != 0:
                return np.int64(-1)
            if stat.in_flight & LOST_EDGE != 0:
                continue
            value = _worth(stat, _mean_utility(stat, p.virtual_loss, urgency), factor, prior)
        if value > best_value:
            best_value = value
            best = np.int64(i)
    if best > np.int64(node.tried):
        first, chosen = edges + U(node.tried), edges + U(best)
        tree.edges[first], tree.edges[chosen] = tree.edges[chosen], tree.edges[first]
        best = np.int64(node.tried)
    return best


@inlined
def _flattened(prior, wide):  # type: ignore[no-untyped-def]
    """Return prior ** (1 / (4 * wide + 1)), the prior under wideRootNoise, not normalised."""
    return prior ** (1.0 / (4.0 * wide + 1.0))


@kernel
def select(tree, node, is_root):  # type: ignore[no-untyped-def]
    """Return the slot of the edge to follow at the locked, expanded `node`, or -1 if nothing is left to search.

    If the slot is also `node.edge_count`, its edge does not exist yet (native/tree/expansion.py).
    """
    # `node.tried` is the candidate. Proven edges are left out. Nothing is left if every edge is banned or proven lost,
    # or one is proven won.
    tried = U(node.tried)
    base = U(node.stats)
    total = 0.0
    under_way = U(0)
    for i in range(tried):
        stat = tree.stats[base + i]
        total += float(stat.weight) + float(stat.in_flight & IN_FLIGHT)
        under_way += U(stat.in_flight & IN_FLIGHT)
    # N counts visits in flight, so that threads spread out.
    factor = exploration(tree, node, is_root, total)
    scale = prior_factor(tree, node, is_root)
    urgency = _first_play_urgency(tree, node, is_root, node.tried_prior * scale)
    turn = U(node.visits) + under_way
    if is_root and tree.counters[0].human != 0:
        slot = select_as_people(tree, node, total, turn)
        if slot >= 0:
            return slot
    if is_root:
        best, best_value, is_won = _best_of_tried_at_root(tree, node, factor, urgency, scale, total, turn)
    else:
        best, best_value, is_won = _best_of_tried(tree, node, factor, urgency)
    # The candidate competes with its first-play urgency.
    if tried < U(node.edge_count):
        edge = tree.edges[U(node.edges) + tried]
        prior, noise, is_banned, in_turn = edge_prior(edge) * scale, 0.0, False, False
        if is_root:
            wide = tree.parameters[0].wide_root_noise
            is_banned = tree.counters[0].bans != 0 and tree.banned[U(edge_move(edge))] != 0
            in_turn = tree.parameters[0].halving
            if tree.counters[0].goals != 0 and turn & U(1) != U(0):
                in_turn |= tree.goals[U(edge_move(edge))] != 0
            if wide > 0.0:
                prior, noise = _flattened(prior, wide), wide * _noise(turn, edge_move(edge))
        if not is_banned and (in_turn or urgency + noise + factor * prior > best_value):
            best = np.int64(tried)
    elif tried < U(node.legal):  # moves without an edge share the remaining prior equally
        prior = max(0.0, 1.0 - float(node.tried_prior)) / float(U(node.legal) - tried)
        if urgency + factor * prior > best_value:
            best = np.int64(tried)
    return np.int64(-1) if is_won else best


@kernel
def all_lost(tree, node):  # type: ignore[no-untyped-def]
    """Return whether every edge of the locked `node` is proven lost."""
    if node.tried < node.legal:
        return False
    for i in range(U(node.tried)):
        if tree.stats[U(node.stats) + i].in_flight & LOST_EDGE == 0:
            return False
    return True

"""Descending: a group of visits moves down together and splits where the visits choose different edges.

worker.line and worker.path lead to the current group. Source: lc0's gathering of batches (PickNodesToExtend).
"""

import numpy as np

from yomi.native.bits import U
from yomi.native.game_calls import list_moves, replay
from yomi.native.jit import inlined
from yomi.native.tree.arrays import (
    BLOCKED,
    COPIES,
    DESCENDS,
    EXPANDED,
    IN_FLIGHT,
    NEW_NODE,
    NONE,
    PENDING,
    RESERVED,
    TERMINAL,
    UNTOUCHED,
)
from yomi.native.tree.edges import PRIOR_STEP, edge_move, edge_quantized
from yomi.native.tree.expansion import complete
from yomi.native.tree.memory import add_stats, lock, new_node, unlock
from yomi.native.tree.selection import raise_candidate, select

# A group locks a node once for all of its visits. Each visit chooses its edge (native/tree/selection.py) with the
# previous visits in flight, so that a group chooses as single descents do. Groups are processed depth first. Positions
# are set up at leaves only.

# What a group finds: a node with edges; a root without visits; the end of a game; a leaf under evaluation.
DISTRIBUTED, NEW_LEAF, FINISHED, BUSY = np.int64(0), np.int64(1), np.int64(2), np.int64(3)


@inlined
def put_group(worker, place, node, depth, visits, move, slot, kind):  # type: ignore[no-untyped-def]
    """Write a group of visits at index `place`. The parent's edge `slot` leads to the group's `node` by `move`."""
    group = worker.groups[U(place)]
    group.node = node
    group.depth = depth
    group.visits = visits
    group.move = move
    group.slot = slot
    group.kind = kind


@inlined
def distribute_visits(tree, worker, calls, index, depth, visits, groups):  # type: ignore[no-untyped-def]
    """Distribute a group's visits at node `index` to its children, as groups from place `groups` on.

    Returns the result, the new number of groups, and the visits left over.
    """
    # Visits are left over if every edge is banned or proven lost, if one is proven won, or if memory is used up (`full`
    # is set). At a leaf all are left over, except the first at a new leaf.
    top = np.int64(groups)
    left = np.int64(visits)
    lock(tree, index)
    node = tree.nodes[U(index)]
    if node.state != EXPANDED:
        found = BUSY
        if node.state == UNTOUCHED:
            node.state = PENDING
            found = NEW_LEAF
            left -= 1
        elif node.state == TERMINAL:
            found = FINISHED
        unlock(tree, index)
        return found, top, left
    while left > 0:
        slot = select(tree, node, depth == 0)
        if slot < 0 or (slot == np.int64(node.tried) and not _try_edge(tree, worker, calls, node, slot, depth)):
            break
        stat = tree.stats[U(node.stats) + U(slot)]
        child = np.int64(stat.child)
        kind = np.int64(DESCENDS)
        if child == NONE:
            kind = np.int64(NEW_NODE)
            child = new_node(tree)
            if child == NONE:
                break
            stat.child = RESERVED  # no other thread may reach the node before its position is known
            if stat.visits > 0:
                _restore(tree.nodes[U(child)], stat, node)
        elif child == RESERVED:
            kind = np.int64(BLOCKED)  # or it joins this thread's own new group
        elif _has_news(tree.nodes[U(child)], stat):
            kind = np.int64(COPIES)
        place = np.int64(groups)
        while place < top and not _is_of(worker.groups[U(place)], slot, kind):
            place += 1
        if place == top:
            move = edge_move(tree.edges[U(node.edges) + U(slot)])
            put_group(worker, place, child, depth + 1, np.int64(0), move, slot, kind)
            top += 1
        worker.groups[U(place)].visits += 1
        stat.in_flight += 1
        left -= 1
    unlock(tree, index)
    return DISTRIBUTED, top, left


@inlined
def _has_news(child, stat):  # type: ignore[no-untyped-def]
    """Return whether the child is proven, or has visits that are neither counted nor in flight at the edge."""
    # After a proof visits count at the edge alone: the child's mean is exact.
    return child.state != PENDING and (child.proof != 0 or child.visits > stat.visits + (stat.in_flight & IN_FLIGHT))


@inlined
def _is_of(group, slot, kind):  # type: ignore[no-untyped-def]
    """Return whether a visit to edge `slot` can join the group: same edge, and either both or neither are COPIES."""
    return np.int64(group.slot) == slot and (np.int64(group.kind) == COPIES) == (kind == COPIES)


@inlined
def _try_edge(tree, worker, calls, node, slot, depth):  # type: ignore[no-untyped-def]
    """Add statistics for the candidate edge of the locked `node`; False (and `full` set) if memory is used up."""
    has_room = True
    # All edges are tried: the moves without an edge get theirs.
    if node.tried == node.edge_count:
        replay(calls, depth)
        has_room = complete(tree, node, worker.moves, list_moves(calls), depth)
        if has_room:
            raise_candidate(tree, node, depth == 0)
    if has_room and add_stats(tree, node):
        stat = tree.stats[U(node.stats) + U(slot)]
        stat.child = NONE
        stat.visits = 0
        stat.utility = 0.0
        stat.value = 0.0
        stat.score = 0.0
        stat.weight = 0.0
        stat.share = 1.0
        stat.in_flight = 0
        node.tried_prior += np.float32(edge_quantized(tree.edges[U(node.edges) + U(slot)])) * PRIOR_STEP
        node.tried += 1
        raise_candidate(tree, node, depth == 0)
    else:
        has_room = False
    return has_room


@inlined
def _restore(node, stat, parent):  # type: ignore[no-untyped-def]
    """Give a node that was pruned and is created again the visits and means that its edge has kept."""
    weight = float(stat.weight)
    node.visits = stat.visits
    node.weight_sum = weight
    node.utility_sum = -weight * float(stat.utility)
    node.value_sum = -weight * float(stat.value)
    node.score_sum = -weight * float(stat.score)
    node.weight_squares = weight * weight / float(stat.visits)
    # Without a variance little below would be explored. It washes out as visits come in.
    node.utility_variance = parent.utility_variance
    node.score_variance = parent.score_variance
    node.own_utility = -stat.utility

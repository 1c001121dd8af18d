"""Going down the tree: a group of visits descends together and splits where their ways part.

A group takes a node's lock once for all of its visits. Each visit in turn follows the edge that selection
(native/tree/selection.py) says, the visits before it being under way already, so a group chooses as single descents
would. The parts go on one after the other, depth first: worker.line holds the moves to the part at hand, worker.path
the nodes, and a position is set up at leaves only.
Source: lc0's gathering of batches (PickNodesToExtend).
"""

import numpy as np

from yomi.native.bits import U
from yomi.native.game_calls import list_moves, replay
from yomi.native.jit import inlined
from yomi.native.tree.arrays import (
    EXPANDED,
    GOES_ON,
    IN_FLIGHT,
    IS_NEW,
    JOINS,
    NONE,
    PENDING,
    RESERVED,
    TERMINAL,
    UNTOUCHED,
    WAITS,
)
from yomi.native.tree.edges import PRIOR_STEP, edge_move, edge_quantized
from yomi.native.tree.expansion import complete
from yomi.native.tree.memory import add_stats, lock, new_node, unlock
from yomi.native.tree.selection import raise_candidate, select

SHARED, NEW_LEAF, FINISHED, BUSY = np.int64(0), np.int64(1), np.int64(2), np.int64(3)
"""What a group finds: a node with edges; an untouched root; the end of a game; a leaf that is being evaluated."""


@inlined
def put_group(worker, place, node, depth, visits, move, slot, kind):  # type: ignore[no-untyped-def]
    """Write a group of visits that is to go on from `node`, which `move` leads to, the edge `slot` of the one above."""
    group = worker.groups[U(place)]
    group.node = node
    group.depth = depth
    group.visits = visits
    group.move = move
    group.slot = slot
    group.kind = kind


@inlined
def share_out(tree, worker, calls, index, depth, visits, groups):  # type: ignore[no-untyped-def]
    """Share the visits of a group at node `index` out among its children, whose groups stand behind the first `groups`.

    Returns:
        What was found, the number of groups then, and how many visits found nothing to follow: every edge is banned or
        proven lost, one is proven won, or there is no memory (`full` is set then). A leaf keeps all.
    """
    top = np.int64(groups)
    left = np.int64(visits)
    lock(tree, index)
    node = tree.nodes[U(index)]
    if node.state != EXPANDED:
        found = BUSY
        if node.state == UNTOUCHED:
            node.state = PENDING
            found = NEW_LEAF
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
        kind = np.int64(GOES_ON)
        if child == NONE:
            kind = np.int64(IS_NEW)
            child = new_node(tree)
            if child == NONE:
                break
            stat.child = RESERVED  # until the position is known, no other thread may reach the node
            if stat.visits > 0:
                _restore(tree.nodes[U(child)], stat, node)
        elif child == RESERVED:
            kind = np.int64(WAITS)  # or one of the visits that this thread's new group has
        elif _says_more(tree.nodes[U(child)], stat):
            kind = np.int64(JOINS)
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
    return SHARED, top, left


@inlined
def _says_more(child, stat):  # type: ignore[no-untyped-def]
    """Whether a node has visits that this edge has neither seen nor waits for, or a proof.

    While another thread brings that proof to the edge, the visit counts at the edge alone: a proven mean is exact.
    """
    return child.state != PENDING and (child.proof != 0 or child.visits > stat.visits + (stat.in_flight & IN_FLIGHT))


@inlined
def _is_of(group, slot, kind):  # type: ignore[no-untyped-def]
    """Whether visits of this kind to an edge belong to the group."""
    return np.int64(group.slot) == slot and (np.int64(group.kind) == JOINS) == (kind == JOINS)


@inlined
def _try_edge(tree, worker, calls, node, slot, depth):  # type: ignore[no-untyped-def]
    """Give the candidate edge of the locked `node` its statistics; False (and `full` set) if there is no memory."""
    has_room = True
    if node.tried == node.edge_count:
        replay(calls, depth)
        has_room = complete(tree, node, worker.moves, list_moves(calls))
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
    """Give a node that was pruned, and is now made anew, the visits and means that its edge has kept.

    Variances, without which little below would be explored, are the parent's. They wash out as playouts come in.
    """
    weight = float(stat.weight)
    node.visits = stat.visits
    node.weight_sum = weight
    node.utility_sum = -weight * float(stat.utility)
    node.value_sum = -weight * float(stat.value)
    node.score_sum = -weight * float(stat.score)
    node.weight_squares = weight * weight / float(stat.visits)
    node.utility_variance = parent.utility_variance
    node.score_variance = parent.score_variance
    node.own_utility = -stat.utility

"""df-pn: proves mates by depth-first proof-number search (Nagai 2002) in preallocated arrays. Read `solve` first."""

from typing import Any, NamedTuple

import numpy as np

from yomi.native.bits import U
from yomi.native.jit import inlined, kernel
from yomi.native.shogi.mate import attack, checking_moves, is_pawn_drop
from yomi.native.shogi.movegen import PROMOTES, generate
from yomi.native.shogi.position import FIRST_DROP, MAX_HISTORY, MAX_MOVES, POSITION_DTYPE, copy, play
from yomi.native.shogi.tables import HAND_GUARD

# The attacker moves at even plies: one proven check proves a node. The defender moves at odd plies: all evasions must
# be proven. With pn and dn the proof and disproof numbers of the children c:
#
#     even ply: pn = min pn(c), dn = weak sum of dn(c)         odd ply: dn = min dn(c), pn = weak sum of pn(c)
#
# The weak sum is the maximum plus one for each other child that is not decided. Proofs never depend on repetitions.
MAX_PLY = 255
POOL = 32_768  # maximum number of moves of all nodes of a line
CLUSTER = 8  # table entries per board
INFINITE = 1 << 28
UNCONDITIONAL = 0xFFFF  # `low` of a result that does not depend on ancestors

MATE, NO_MATE, UNKNOWN = 1, 0, -1

ENTRY_DTYPE = np.dtype(
    [
        ("key", np.uint64),  # board and side to move
        ("hand", np.uint32),  # the attacker's, packed
        ("pn", np.uint32),
        ("dn", np.uint32),
        ("path", np.uint32),  # signature of the ancestors of a conditional disproof, otherwise 0
        ("generation", np.uint16),  # search that wrote the entry; entries of others are free
        ("effort", np.uint16),  # nodes searched below, at most 65,535
        ("move", np.uint16),  # the proving move
        ("length", np.uint16),  # plies to the mate
    ],
    align=True,
)
CHILD_DTYPE = np.dtype(
    [
        ("key", np.uint64),
        ("hand", np.uint32),
        ("pn", np.uint32),
        ("dn", np.uint32),
        ("move", np.uint16),
        ("length", np.uint16),
        ("low", np.uint16),  # first ply of the line that the disproof depends on
        ("waits_for", np.int16),  # the child this many places before must fail first; 0: none
    ],
    align=True,
)
NODE_DTYPE = np.dtype(
    [
        ("key", np.uint64),
        ("hand", np.uint32),
        ("signature", np.uint32),  # of the ancestors
        ("pn_limit", np.int64),
        ("dn_limit", np.int64),
        ("pn", np.int64),
        ("dn", np.int64),
        ("first", np.int32),  # first child in the pool
        ("count", np.int32),
        ("choice", np.int32),  # child to search
        ("length", np.int32),
        ("low", np.int32),
        ("visited_at", np.int64),  # counters[NODES] at its entry
    ],
    align=True,
)

NODES, NODE_LIMIT, GENERATION, DEPTH_LIMIT, WAS_CUT, SHORTEST, ALLOWED, COUNTERS = range(8)


class Solver(NamedTuple):
    """The arrays of a df-pn search."""

    table: Any  # ENTRY_DTYPE[power of two]
    positions: Any  # POSITION_DTYPE[MAX_PLY + 2]: the current line from the root
    nodes: Any  # NODE_DTYPE[MAX_PLY + 2]: its nodes
    children: Any  # CHILD_DTYPE[POOL]: their children
    history: Any  # uint64[MAX_HISTORY], for `positions`
    moves: Any  # uint16[4, MAX_MOVES], working memory
    squares: Any  # uint8[128], working memory
    line: Any  # POSITION_DTYPE[2], working memory of `prove`
    allowed: Any  # uint16[MAX_MOVES]: the only root moves to try, if counters[ALLOWED] > 0
    # int64[COUNTERS]: NODES searched, NODE_LIMIT, GENERATION of the table, DEPTH_LIMIT in plies, WAS_CUT (1 if a line
    # reached the depth limit), SHORTEST (1 to prefer short mates), number of ALLOWED root moves
    counters: Any
    stop: Any  # uint8[1]: another thread writes 1 to stop the search


def make_solver(memory: int) -> Solver:
    """Allocate a solver with a table of at most `memory` bytes, at least 64 KiB. Unused pages take no memory."""
    size = 1 << (max(memory, 1 << 16) // ENTRY_DTYPE.itemsize).bit_length() - 1
    return Solver(
        table=np.zeros(size, ENTRY_DTYPE),
        positions=np.zeros(MAX_PLY + 2, POSITION_DTYPE),
        nodes=np.zeros(MAX_PLY + 2, NODE_DTYPE),
        children=np.zeros(POOL, CHILD_DTYPE),
        history=np.zeros(MAX_HISTORY, np.uint64),
        moves=np.zeros((4, MAX_MOVES), np.uint16),
        squares=np.zeros(128, np.uint8),
        line=np.zeros(2, POSITION_DTYPE),
        allowed=np.zeros(MAX_MOVES, np.uint16),
        counters=np.zeros(COUNTERS, np.int64),
        stop=np.zeros(1, np.uint8),
    )


@kernel
def attackers_hand(pos, depth):  # type: ignore[no-untyped-def]
    """Return the attacker's packed hand at a ply of the line."""
    white = (U(pos.side_to_move) - U(1)) ^ (U(depth) & U(1))
    return (pos.hands >> (white * U(28))) & U((1 << 28) - 1)


@kernel
def covers(more, less):  # type: ignore[no-untyped-def]
    """Return whether the packed hand `more` has at least as many pieces of each kind as `less`."""
    return ((U(more) | U(HAND_GUARD)) - U(less)) & U(HAND_GUARD) == U(HAND_GUARD)


@inlined
def probe(solver, depth, key, hand, path, child):  # type: ignore[no-untyped-def]
    """Write the table's result for a position at `depth` into `child`; return whether there is one."""
    table = solver.table
    generation = solver.counters[U(GENERATION)]
    base = key & U(len(table) - CLUSTER)
    found = False
    for i in range(U(CLUSTER)):
        entry = table[base + i]
        if entry.generation != generation:
            break
        if entry.key != key:
            continue
        if entry.pn == 0:
            # A mate with some pieces in hand is a mate with more.
            if covers(hand, entry.hand) and depth + np.int64(entry.length) <= solver.counters[U(DEPTH_LIMIT)]:
                child.pn = 0
                child.dn = INFINITE
                child.length = entry.length
                child.low = UNCONDITIONAL
                return True
        elif entry.dn == 0:
            # No mate is no mate with fewer pieces either. After a repetition it holds below the same ancestors only.
            if (entry.path == 0 or entry.path == path) and covers(entry.hand, hand):
                child.pn = INFINITE
                child.dn = 0
                child.low = UNCONDITIONAL if entry.path == 0 else 0
                return True
        elif entry.hand == hand:
            child.pn = entry.pn
            child.dn = entry.dn
            found = True
    return found


@inlined
def store(solver, node, move, effort):  # type: ignore[no-untyped-def]
    """Write a node's result into the table: over its older result, a free entry, or the entry with the least effort."""
    table = solver.table
    generation = solver.counters[U(GENERATION)]
    base = node.key & U(len(table) - CLUSTER)
    place = base
    least = np.int64(1 << 20)
    for i in range(U(CLUSTER)):
        entry = table[base + i]
        if entry.generation != generation or (entry.key == node.key and entry.hand == node.hand):
            place = base + i
            break
        # Keep the entries that cost most.
        if np.int64(entry.effort) < least:
            least = np.int64(entry.effort)
            place = base + i
    entry = table[place]
    entry.key = node.key
    entry.hand = node.hand
    entry.pn = node.pn
    entry.dn = node.dn
    entry.path = 0 if node.dn != 0 or node.low == UNCONDITIONAL else node.signature
    entry.generation = generation
    entry.effort = min(effort, 65535)
    entry.move = move
    entry.length = node.length


@kernel
def node_key(pos, ply):  # type: ignore[no-untyped-def]
    """Return the key of a board with the attacker (even ply) or the defender to move."""
    return pos.board_key ^ (U(0x9E3779B97F4A7C15) * U(ply & 1))


@kernel
def signature_of(key, hand):  # type: ignore[no-untyped-def]
    """Return a 32-bit signature of a node of the line."""
    mixed = (key ^ (U(hand) * U(0xD6E8FEB86659FD93))) * U(0xFF51AFD7ED558CCD)
    return mixed >> U(32)


@inlined
def count_escapes(moves, count, squares):  # type: ignore[no-untyped-def]
    """Return the number of moves on the board, plus half the number of squares that drops may block."""
    for i in range(count):
        squares[U(moves[i]) & U(127)] = 0
    twice = np.int64(1)
    for i in range(count):
        to = U(moves[i]) & U(127)
        if U(moves[i]) >> U(7) & U(127) < U(FIRST_DROP):
            twice += 2
        elif squares[to] == 0:
            squares[to] = 1
            twice += 1
    return twice // 2


@inlined
def evaluate_child(solver, ply, child):  # type: ignore[no-untyped-def]
    """Evaluate the position after a child's move, positions[ply + 1], without a search.

    Returns False if the move is illegal: a pawn drop that mates.
    """
    depth = ply + 1
    pos = solver.positions[U(depth)]
    node = solver.nodes[U(ply)]
    key = node_key(pos, depth)
    hand = attackers_hand(pos, depth)
    child.key = key
    child.hand = hand
    child.length = 0
    child.low = UNCONDITIONAL
    signature = node.signature ^ signature_of(node.key, node.hand)
    if probe(solver, depth, key, hand, signature, child):
        if child.pn != 0:
            _test_repetition(solver, depth, child)
        return True
    child.pn = 1
    child.dn = 1
    if depth & 1:
        count = generate(pos, solver.moves[U(1)])
        if count == U(0):
            child.pn = 0
            child.dn = INFINITE
            return not is_pawn_drop(child.move)
        # More evasions need more proofs.
        child.pn = count_escapes(solver.moves[U(1)], count, solver.squares)
    _test_repetition(solver, depth, child)
    return True


@kernel
def _test_repetition(solver, depth, child):  # type: ignore[no-untyped-def]
    """Disprove a child whose board is on the line with at least as much in the attacker's hand."""
    for ply in range(depth & 1, depth, 2):
        ancestor = solver.nodes[U(ply)]
        if ancestor.key == child.key and covers(ancestor.hand, child.hand):
            child.pn = INFINITE
            child.dn = 0
            child.low = ply
            return
    if depth >= solver.counters[U(DEPTH_LIMIT)] and child.pn != 0 and depth & 1 == 0:
        child.pn = INFINITE
        child.dn = 0
        child.low = 0
        solver.counters[U(WAS_CUT)] = 1


@inlined
def find_leader(solver, first, n, move, attacks):  # type: ignore[no-untyped-def]
    """Return the distance back to the earlier child that must fail before `move` is tried; 0 if there is none.

    For the attacker this child is the same move with promotion, for the defender the last drop on the same square.
    """
    for back in range(1, n + 1):
        earlier = U(solver.children[U(first + n - back)].move)
        if attacks:
            if earlier ^ move == U(PROMOTES):
                return back
            if (earlier ^ move) >> U(7) & U(127) != U(0):
                return 0
        else:
            if earlier >> U(7) & U(127) < U(FIRST_DROP):
                return 0
            if (earlier ^ move) & U(127) == U(0):
                return back
    return 0


@inlined
def keep_allowed(solver, moves, count):  # type: ignore[no-untyped-def]
    """Remove the root moves that are not allowed, and return the number of moves left."""
    kept = U(0)
    for i in range(count):
        for k in range(U(solver.counters[U(ALLOWED)])):
            if moves[i] == solver.allowed[k]:
                moves[kept] = moves[i]
                kept += U(1)
                break
    return kept


@kernel
def expand(solver, ply):  # type: ignore[no-untyped-def]
    """Generate and evaluate the children of the node at `ply`. Stop at the first child that decides the node."""
    node = solver.nodes[U(ply)]
    pos = solver.positions[U(ply)]
    moves = solver.moves[U(0)]
    first = 0 if ply == 0 else solver.nodes[U(ply - 1)].first + solver.nodes[U(ply - 1)].count
    attacks = ply & 1 == 0
    count = checking_moves(pos, moves, True) if attacks else generate(pos, moves)
    if ply == 0 and solver.counters[U(ALLOWED)] != 0:
        count = keep_allowed(solver, moves, count)
    node.first = first
    node.low = UNCONDITIONAL
    if first + count > POOL:
        solver.counters[U(WAS_CUT)] = 1
        count = U(0)
        node.low = 0
    n = np.int64(0)
    for i in range(count):
        child = solver.children[U(first + n)]
        move = U(moves[i])
        child.move = move
        child.waits_for = 0
        if attacks or move >> U(7) & U(127) >= U(FIRST_DROP):
            child.waits_for = find_leader(solver, first, n, move, attacks)
        copy(solver.positions[U(ply + 1)], pos)
        play(solver.positions[U(ply + 1)], solver.history, move)
        if not evaluate_child(solver, ply, child):
            continue
        n += 1
        if (child.pn == 0 and attacks and solver.counters[U(SHORTEST)] == 0) or (child.dn == 0 and not attacks):
            solver.children[U(first)] = child
            solver.children[U(first)].waits_for = 0
            n = 1
            break
    node.count = n


@inlined
def summarize(solver, ply):  # type: ignore[no-untyped-def]
    """Compute a node's numbers from its children, and choose the child to search next.

    Returns:
        The second best number; the part of the other number that is due to the other children.
    """
    node = solver.nodes[U(ply)]
    attacks = ply & 1 == 0
    best, second, worst, open_children = np.int64(INFINITE), np.int64(INFINITE), np.int64(0), np.int64(0)
    tie = np.int64(INFINITE)
    low = np.int64(UNCONDITIONAL)
    length = np.int64(0)
    choice = np.int64(-1)
    for i in range(np.int64(node.count)):
        child = solver.children[U(node.first + i)]
        if child.waits_for != 0:  # skipped until its leader has failed
            leader = solver.children[U(node.first + i - child.waits_for)]
            if (leader.dn if attacks else leader.pn) != 0 and (child.pn if attacks else child.dn) != 0:
                continue
        mine = np.int64(child.pn) if attacks else np.int64(child.dn)
        other = np.int64(child.dn) if attacks else np.int64(child.pn)
        if mine == 0 and attacks:
            other = np.int64(child.length)  # prefer the shorter mate
        if mine < best or (mine == best and other < tie):
            second = best
            best = mine
            tie = other
            choice = i
        elif mine < second:
            second = mine
        if other > 0:
            open_children += 1
            worst = max(worst, other)
        if attacks:
            low = min(low, np.int64(child.low))
        length = max(length, np.int64(child.length))
    # A weak sum: in a sum transpositions would count twice.
    others = max(open_children - 1, 0)
    if worst < INFINITE:
        worst = min(worst + others, INFINITE - 1)
    node.choice = choice
    node.length = length + 1
    if attacks:
        node.pn = best
        node.dn = worst if best > 0 else INFINITE
        if best == 0:
            node.length = np.int64(solver.children[U(node.first + choice)].length) + 1
    else:
        node.dn = best
        node.pn = worst if best > 0 else INFINITE
        if best == 0:
            low = np.int64(solver.children[U(node.first + choice)].low)
    if node.count == 0:  # no checks, or the pool is full
        node.pn = INFINITE
        node.dn = 0
        low = np.int64(node.low)
    node.low = low
    if node.low >= ply:
        node.low = UNCONDITIONAL
    return second, others


@inlined
def solve(solver):  # type: ignore[no-untyped-def]
    """Search positions[0], whose side to move attacks, until it is proven, disproven, stopped or out of nodes.

    The result is nodes[0]: pn = 0 for a mate, dn = 0 for no mate. Its `choice` is the move.
    """
    counters = solver.counters
    root = solver.nodes[U(0)]
    root.key = node_key(solver.positions[U(0)], 0)
    root.hand = attackers_hand(solver.positions[U(0)], 0)
    root.signature = 0
    root.pn_limit = INFINITE
    root.dn_limit = INFINITE
    root.visited_at = counters[U(NODES)]
    ply = np.int64(0)
    expand(solver, 0)
    while True:
        node = solver.nodes[U(ply)]
        second, others = summarize(solver, ply)
        # The loop goes down to the chosen child while both numbers are below their limits, otherwise back to the
        # parent.
        out = counters[U(NODES)] >= counters[U(NODE_LIMIT)] or solver.stop[U(0)] != 0
        # Decided, beyond its limits, or out of nodes: store it and return to the parent.
        if node.pn >= node.pn_limit or node.dn >= node.dn_limit or node.pn == 0 or node.dn == 0 or out:
            move = 0 if node.choice < 0 else solver.children[U(node.first + node.choice)].move
            store(solver, node, move, counters[U(NODES)] - node.visited_at)
            if ply == 0 or out:
                return
            ply -= 1
            parent = solver.nodes[U(ply)]
            child = solver.children[U(parent.first + parent.choice)]
            child.pn = node.pn
            child.dn = node.dn
            child.length = node.length
            child.low = node.low
            continue
        child = solver.children[U(node.first + node.choice)]
        below = solver.nodes[U(ply + 1)]
        # Limits exceed the second best child by an eighth (1 + epsilon): fewer switches between children.
        step = second + second // 8 + 1
        if ply & 1 == 0:
            below.pn_limit = min(np.int64(node.pn_limit), step)
            below.dn_limit = np.int64(node.dn_limit) - others
        else:
            below.dn_limit = min(np.int64(node.dn_limit), step)
            below.pn_limit = np.int64(node.pn_limit) - others
        below.key = child.key
        below.hand = child.hand
        below.signature = node.signature ^ signature_of(node.key, node.hand)
        below.visited_at = counters[U(NODES)]
        copy(solver.positions[U(ply + 1)], solver.positions[U(ply)])
        play(solver.positions[U(ply + 1)], solver.history, child.move)
        ply += 1
        counters[U(NODES)] += 1
        expand(solver, ply)


@inlined
def _begin(solver, allowed, nodes, max_ply):  # type: ignore[no-untyped-def]
    """Start a search with an empty table. Return the maximum number of plies of a mate; below 1 none is possible."""
    counters = solver.counters
    counters[U(ALLOWED)] = len(allowed)
    for i in range(U(len(allowed))):
        solver.allowed[i] = allowed[i]
    counters[U(NODES)] = 0
    counters[U(WAS_CUT)] = 0
    counters[U(SHORTEST)] = 0
    counters[U(NODE_LIMIT)] = nodes
    counters[U(GENERATION)] += 1
    if counters[U(GENERATION)] > 65535:
        counters[U(GENERATION)] = 1
        for i in range(U(len(solver.table))):
            solver.table[i].generation = 0
    start = solver.positions[U(0)]
    start.history_length = 2
    limit = min(np.int64(max_ply), MAX_PLY)
    if start.max_moves != 0:
        limit = min(limit, np.int64(start.max_moves) - np.int64(start.ply))
    limit -= 1 - (limit & 1)  # mates have an odd number of plies
    counters[U(DEPTH_LIMIT)] = limit
    return limit


@inlined
def _short_mate(solver, here, evasions, limit, variation):  # type: ignore[no-untyped-def]
    """Find mates of one or three plies by full search, which is faster and gives the shortest.

    Plays and writes the moves; returns (number of moves, whether it is mate).
    """
    length = np.int64(0)
    depth = min(3, limit)
    while depth > 0:
        move = U(attack(solver.positions, solver.history, solver.moves, 0, depth))
        if move == U(0):
            break
        variation[U(length)] = move
        length += 1
        play(here, solver.history, move)
        if generate(here, evasions) == U(0):
            return length, True
        variation[U(length)] = evasions[U(0)]
        length += 1
        play(here, solver.history, evasions[U(0)])
        copy(solver.positions[U(0)], here)
        depth = 1
    return length, False


@kernel
def prove(solver, allowed, nodes, max_ply, variation):  # type: ignore[no-untyped-def]
    """Search for a mate of positions[0] by its side to move, and write its moves.

    The search ignores the history of positions[0], and respects its limit of moves.

    Args:
        solver: positions[0] must be set.
        allowed: uint16[<= MAX_MOVES], the first moves to try; empty for all.
        nodes: maximum number of positions for the proof; finding the variation may take about as many again.
        max_ply: maximum length in plies.
        variation: uint16[>= MAX_PLY], written.

    Returns:
        (MATE, NO_MATE or UNKNOWN; number of moves). If the variation exceeds the limits, only its first move is
            certain.
    """
    counters = solver.counters
    limit = _begin(solver, allowed, nodes, max_ply)
    if limit < 1:
        return UNKNOWN, np.int64(0)
    root = solver.nodes[U(0)]
    here = solver.line[U(0)]  # the current end of the variation
    copy(here, solver.positions[U(0)])
    evasions = solver.moves[U(2)]
    length, is_mated = np.int64(0), False
    if counters[U(ALLOWED)] == 0:
        length, is_mated = _short_mate(solver, here, evasions, limit, variation)
    if is_mated:
        return MATE, length
    # Each position of the variation is searched again, mostly from the table. The attacker takes the shortest mate,
    # the defender the longest: `reply` is the best evasion so far, of `longest` plies, and `best_move` answers it.
    count, next_one = U(0), U(0)
    longest, reply, best_move = np.int64(-1), U(0), U(0)
    while True:
        solve(solver)
        if root.pn != 0:
            if length == 0:
                return (NO_MATE if root.dn == 0 and counters[U(WAS_CUT)] == 0 else UNKNOWN), length
            return MATE, min(length, 1)
        counters[U(ALLOWED)] = 0  # for the root only
        # The attacker's best move in the position just searched.
        move = U(solver.children[U(root.first + root.choice)].move)
        if count != U(0):  # one of the evasions was searched
            if np.int64(root.length) > longest:
                longest = np.int64(root.length)
                reply = U(evasions[next_one])
                best_move = move
            next_one += U(1)
        # All evasions are searched: play the best one and the answer to it.
        if next_one == count:
            if count != U(0):
                variation[U(length)] = reply
                length += 1
                play(here, solver.history, reply)
                move = best_move
            variation[U(length)] = move
            length += 1
            play(here, solver.history, move)
            count = generate(here, evasions)
            if count == U(0) or length > MAX_PLY - 3:
                return MATE, length
            next_one = U(0)
            longest = -1
            # The mate is proven. From here on look for short mates, with the same number of further nodes.
            if counters[U(SHORTEST)] == 0:
                counters[U(SHORTEST)] = 1
                counters[U(NODE_LIMIT)] += counters[U(NODES)] + 1000
        counters[U(DEPTH_LIMIT)] = limit - length - 1
        copy(solver.positions[U(0)], here)
        play(solver.positions[U(0)], solver.history, evasions[next_one])

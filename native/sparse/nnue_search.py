"""Evaluation of leaves by an NNUE network and a small alpha-beta search with a quiescence search.

Values are the network's, for the side to move; a mate in n plies is MATE - n. The search ends after a number of nodes.
It is shallow: most work is done in the quiescence search and the last two plies.
"""

import math

import numpy as np

from yomi.native.bits import U
from yomi.native.bound_kernels import entry, load
from yomi.native.jit import inlined_early, kernel
from yomi.native.shogi import mate, rules
from yomi.native.shogi.effects import CAPTURE, gains
from yomi.native.shogi.movegen import generate, generate_captures
from yomi.native.shogi.position import copy, gives_check
from yomi.native.sparse.nnue import begin
from yomi.native.sparse.nnue_leaf import (
    ALL_NODES,
    ARGUMENTS,
    BEST,
    BOOST,
    DEPTH,
    EXACT,
    IS_STOPPED,
    LIMIT,
    LOWER,
    NO_VALUE,
    NODES,
    PLIES,
    SCALE,
    UPPER,
    VALUE_FOUND,
    WEIGHT,
    is_quiet,
    lookup,
    pass_at,
    play_at,
    reward,
    score_moves,
    static_at,
    store,
    take_best,
)
from yomi.native.tree import arrays

INFINITE, MATE = 32001, 32000
WON = MATE - 2 * PLIES  # values from here on are mates
DEPTHS = 24  # maximum depth
# Margin per ply above beta at which a static value ends the search of a position.
MARGIN = 60
RAZOR = 220  # margin per ply below alpha at which only the quiescence search remains
FUTILITY = 60  # margin per ply, and one more, below alpha at which quiet moves are skipped
# Gain of a capture beyond the captured piece, at most, in the quiescence search.
DELTA = 150


@kernel
def _stops(counters):  # type: ignore[no-untyped-def]
    """Count a node; return whether the limit is reached."""
    if counters[U(NODES)] >= counters[U(LIMIT)]:
        counters[U(IS_STOPPED)] = 1
        return True
    counters[U(NODES)] += 1
    return False


@kernel
def _ended(pos, history, ply):  # type: ignore[no-untyped-def]
    """Return whether the rules end the game, except by mate, and its value."""
    if pos.max_moves != 0 and pos.ply >= pos.max_moves:
        return True, 0
    kind = rules.repetition(pos, history)
    if kind != rules.NONE:
        if kind == rules.DRAW:
            return True, 0
        return True, (WON - 1 if kind == rules.WIN or kind == rules.SUPERIOR else 1 - WON)
    if rules.declaration(pos):
        return True, MATE - ply
    return False, 0


@kernel
def _to_table(value, ply):  # type: ignore[no-untyped-def]
    """Return a value for the table: mates count from the position, not from the leaf."""
    if value >= WON:
        return value + ply
    return value - ply if value <= -WON else value


@kernel
def _from_table(value, ply):  # type: ignore[no-untyped-def]
    if value >= WON:
        return value - ply
    return value + ply if value <= -WON else value


@kernel
def _holds(bound, value, alpha, beta):  # type: ignore[no-untyped-def]
    """Return whether a table's value decides a window."""
    if bound == EXACT:
        return True
    return (bound == LOWER and value >= beta) or (bound == UPPER and value <= alpha)


@kernel
def quiesce(address, ply, plies_behind, alpha, beta):  # type: ignore[no-untyped-def]
    """Return the value of the position at a ply by captures, pawn promotions and evasions.

    Args:
        address: of batch, network, scratch and settings.
        ply: of the position.
        plies_behind: plies of this quiescence search so far.
        alpha: lower bound of the window.
        beta: upper bound.
    """
    _, _, leaf, _ = load(address, ARGUMENTS)
    if _stops(leaf.counters):
        return 0
    pos = leaf.positions[U(ply)]
    if ply >= PLIES - 4:
        return static_at(address, ply)
    is_over, value = _ended(pos, leaf.history, ply)
    if is_over:
        return value
    table_move, value, static, _, bound = lookup(leaf.table, pos.key)
    value = _from_table(value, ply)
    if bound != 0 and _holds(bound, value, alpha, beta):
        return value
    first_alpha = alpha
    best = -MATE + ply
    best_move = 0
    is_in_check = pos.in_check != 0
    if is_in_check:
        static = NO_VALUE
        count = generate(pos, leaf.moves[U(ply)])
    else:
        if plies_behind == 0 and mate.attack(leaf.positions, leaf.history, leaf.moves, ply, 1) != 0:
            return MATE - ply - 1
        if static == NO_VALUE:
            static = static_at(address, ply)
        best = static
        if best >= beta:
            store(leaf.table, pos.key, 0, _to_table(best, ply), static, 0, LOWER)
            return best
        alpha = max(alpha, best)
        count = generate_captures(pos, leaf.moves[U(ply)])
    score_moves(address, ply, count, table_move)
    for i in range(count):
        move = np.int64(take_best(leaf.moves[U(ply)], leaf.scores[U(ply)], i, count))
        check = gives_check(pos, move)
        if not is_in_check and not check:
            # Delta pruning, then static exchange evaluation.
            victim = U(pos.board[U(move) & U(127)]) & U(15)
            reached = static + np.int64(CAPTURE[victim]) * 9 // 10 + DELTA
            if U(move) >> U(14) != U(0):
                reached += 450
            if reached <= alpha:
                best = max(best, reached)
                continue
        if not is_in_check and not gains(pos, move, 0):
            continue
        play_at(address, ply, move, check)
        value = -quiesce(address, ply + 1, plies_behind + 1, -beta, -alpha)
        if leaf.counters[U(IS_STOPPED)] != 0:
            return best
        if value > best:
            best = value
            if value > alpha:
                best_move = move
                alpha = value
                if value >= beta:
                    break
    bound = LOWER if best >= beta else (EXACT if best > first_alpha and is_in_check else UPPER)
    if best < beta and best > first_alpha:
        bound = EXACT
    store(leaf.table, pos.key, best_move, _to_table(best, ply), static, 0, bound)
    return best


@kernel
def search(address, ply, depth, alpha, beta):  # type: ignore[no-untyped-def]
    """Return the value of the position at a ply, searched to a depth; at ply 0 record the best move.

    Args:
        address: see `quiesce`.
        ply: of the position.
        depth: in plies, before the quiescence search.
        alpha: see `quiesce`.
        beta: see `quiesce`.
    """
    if depth <= 0 or ply >= PLIES - 8:
        return quiesce(address, ply, 0, alpha, beta)
    _, _, leaf, _ = load(address, ARGUMENTS)
    if _stops(leaf.counters):
        return 0
    pos = leaf.positions[U(ply)]
    if ply > 0:
        is_over, value = _ended(pos, leaf.history, ply)
        if is_over:
            return value
    is_open = beta - alpha > 1
    table_move, value, static, table_depth, bound = lookup(leaf.table, pos.key)
    value = _from_table(value, ply)
    if bound != 0 and ply > 0 and not is_open and table_depth >= depth and _holds(bound, value, alpha, beta):
        return value
    is_in_check = pos.in_check != 0
    is_improving = False
    if is_in_check:
        # In check the static value means nothing: take that of two plies before.
        static = NO_VALUE
        leaf.statics[U(ply)] = leaf.statics[U(ply - 2)] if ply >= 2 else 0
    else:
        if static == NO_VALUE:
            static = static_at(address, ply)
        leaf.statics[U(ply)] = static
        is_improving = ply >= 2 and static > leaf.statics[U(ply - 2)]
        if not is_open:
            # Razoring, then reverse futility pruning.
            if depth <= 2 and static + RAZOR * depth < alpha:
                value = quiesce(address, ply, 0, alpha, beta)
                if leaf.counters[U(IS_STOPPED)] != 0 or value <= alpha:
                    return value
            if depth <= 6 and static - MARGIN * (depth - is_improving) >= beta and static < WON:
                return static
        if ply > 0 and mate.attack(leaf.positions, leaf.history, leaf.moves, ply, 1) != 0:
            return MATE - ply - 1
        # Null move: if a pass is good enough, so is the best move.
        if not is_open and leaf.is_pass[U(ply)] == 0 and depth >= 3 and static >= beta and beta > -WON:
            pass_at(address, ply)
            value = -search(address, ply + 1, depth - 3 - depth // 4, -beta, -beta + 1)
            if leaf.counters[U(IS_STOPPED)] != 0:
                return 0
            if value >= beta:
                return min(value, WON - 1)
    # Internal iterative reduction.
    if table_move == 0 and depth >= 4:
        depth -= 1
    return _search_moves(address, ply, depth, alpha, beta, static, table_move, is_improving)


@inlined_early
def _search_moves(address, ply, depth, alpha, beta, static, table_move, is_improving):  # type: ignore[no-untyped-def]
    """Return the value of a position by its moves; see `search`."""
    _, _, leaf, _ = load(address, ARGUMENTS)
    pos = leaf.positions[U(ply)]
    is_open = beta - alpha > 1
    is_in_check = pos.in_check != 0
    first_alpha = alpha
    best, best_move = -MATE + ply, 0
    count = generate(pos, leaf.moves[U(ply)])
    score_moves(address, ply, count, table_move)
    for i in range(count):
        move = np.int64(take_best(leaf.moves[U(ply)], leaf.scores[U(ply)], i, count))
        quiet = is_quiet(pos, move)
        check = gives_check(pos, move)
        # Futility pruning, and pruning by static exchange.
        if ply > 0 and best > -WON and not is_in_check and not check:
            if quiet:
                if depth <= 4 and static + FUTILITY * (depth + 1) <= alpha:
                    continue
                if depth <= 3 and not gains(pos, move, -60 * depth):
                    continue
            elif depth <= 4 and not gains(pos, move, -200 * depth):
                continue
        # Checks near the horizon that lose nothing are searched deeper.
        deeper = depth - 1 + (check and depth <= 3 and gains(pos, move, 0))
        reduction = 0
        # Late quiet moves are searched less deeply.
        if depth >= 2 and i >= 2 and quiet and not check and not is_in_check:
            reduction = np.int64(leaf.reductions[U(min(depth, 63)) * U(64) + U(min(i, 63))])
            reduction += (not is_improving) - is_open
            reduction = min(max(reduction, 0), deeper)
        play_at(address, ply, move, check)
        # Principal variation search: null windows after the first move, full windows if they fail high.
        if i == 0:
            value = -search(address, ply + 1, deeper, -beta, -alpha)
        else:
            value = -search(address, ply + 1, deeper - reduction, -alpha - 1, -alpha)
            if value > alpha and reduction > 0 and leaf.counters[U(IS_STOPPED)] == 0:
                value = -search(address, ply + 1, deeper, -alpha - 1, -alpha)
            if value > alpha and is_open and leaf.counters[U(IS_STOPPED)] == 0:
                value = -search(address, ply + 1, deeper, -beta, -alpha)
        if leaf.counters[U(IS_STOPPED)] != 0:
            return best
        if value > best:
            best = value
            if value > alpha:
                best_move = move
                alpha = value
                if ply == 0:
                    leaf.counters[U(BEST)] = move
                if value >= beta:
                    if quiet:
                        reward(address, ply, depth, i)
                    break
    bound = LOWER if best >= beta else (EXACT if best > first_alpha else UPPER)
    store(leaf.table, pos.key, best_move, _to_table(best, ply), static, depth, bound)
    return best


@kernel
def search_leaf(address, pos):  # type: ignore[no-untyped-def]
    """Search a position by iterative deepening up to the settings' number of nodes; results are in the counters.

    Returns the value for the side to move; `counters[BEST]` is the best move, or 0.
    """
    _, network, leaf, settings = load(address, ARGUMENTS)
    root = leaf.positions[U(0)]
    copy(root, pos)
    root.history_length = 2
    leaf.history[U(0)] = pos.board_key
    leaf.history[U(1)] = pos.hands
    begin(network, leaf.network, root)
    leaf.is_pass[U(0)] = 0
    counters = leaf.counters
    counters[U(NODES)] = 0
    counters[U(LIMIT)] = max(settings.nodes[U(0)], 1)
    counters[U(IS_STOPPED)] = 0
    counters[U(BEST)] = 0
    counters[U(DEPTH)] = 0
    for ply in range(U(PLIES)):
        leaf.killers[ply, U(0)] = 0
        leaf.killers[ply, U(1)] = 0
    value = quiesce(address, 0, 0, -INFINITE, INFINITE)
    if counters[U(IS_STOPPED)] != 0 and value <= -WON:
        value = static_at(address, 0)  # in check, and no evasion was searched completely
    move = 0
    for depth in range(1, DEPTHS):
        if counters[U(NODES)] >= counters[U(LIMIT)]:
            break
        counters[U(BEST)] = 0
        found = search(address, 0, depth, -INFINITE, INFINITE)
        if counters[U(BEST)] != 0:
            # Of an interrupted iteration the finished moves count: the first was the best so far.
            move, value = counters[U(BEST)], found
        if counters[U(IS_STOPPED)] != 0:
            break
        counters[U(DEPTH)] = depth
        if abs(value) >= WON:
            break
    counters[U(BEST)] = move
    counters[U(VALUE_FOUND)] = value
    counters[U(ALL_NODES)] += counters[U(NODES)]
    return value


SURE = 0.998  # maximum value: a search at a leaf may miss what the tree finds


@entry(ARGUMENTS)
def evaluate_leaves(address, rows):  # type: ignore[no-untyped-def]
    """Mix the search's values into a batch's values, and raise the logits of its best moves.

    Args:
        address: of a Batch with positions, values and logits, an NnueNetwork, a LeafScratch and LeafSettings.
        rows: number of rows.
    """
    batch, _, leaf, settings = load(address, ARGUMENTS)
    weight = settings.numbers[U(WEIGHT)]
    for row in range(U(rows)):
        score = search_leaf(address, batch.positions[row])
        value = math.tanh(0.5 * score / settings.numbers[U(SCALE)])
        value = min(max(value, -SURE), SURE)
        before = batch.values[row, U(arrays.VALUE)]
        batch.values[row, U(arrays.VALUE)] = np.float32(weight * value + (1.0 - weight) * before)
        best = leaf.counters[U(BEST)]
        for i in range(U(batch.move_count[row])):
            if batch.moves[row, i] == best:
                batch.logits[row, U(batch.indices[row, i])] += settings.numbers[U(BOOST)]


@entry(ARGUMENTS)
def clear_rows(address, rows):  # type: ignore[no-untyped-def]
    """Write equal logits and values of zero into a batch's first `rows` rows."""
    batch, _, _, _ = load(address, ARGUMENTS)
    for row in range(U(rows)):
        for i in range(U(arrays.VALUES)):
            batch.values[row, i] = 0.0
        for i in range(U(batch.move_count[row])):
            batch.logits[row, U(batch.indices[row, i])] = 0.0

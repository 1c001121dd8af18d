"""Searches the root's moves to one depth. Python calls it with growing depths (yomi.engine.search.alphabeta)."""

import numpy as np

from yomi.native.alphabeta import parameters as p
from yomi.native.alphabeta.correction import hash_pawns
from yomi.native.alphabeta.nnue import begin
from yomi.native.alphabeta.node import INFINITE, WON, extend_line, to_table
from yomi.native.alphabeta.search import PAWN_SHIFT, UNIT, base_reduction, search, window_reduction
from yomi.native.alphabeta.statistics import reduction_statistics
from yomi.native.alphabeta.table import EXACT, LOWER, NO_VALUE, UPPER, store
from yomi.native.alphabeta.thread import (
    ALPHA,
    ARGUMENTS,
    BEFORE,
    BETA,
    CHANGES,
    DEEPEST,
    DEPTH,
    FIRST,
    FIRST_NEAR_ROOT,
    GENERATION,
    IS_STOPPED,
    NODES,
    NULL_FROM,
    PLIES,
    ROOT_MOVES,
    VALUE_FOUND,
    WINDOW,
    is_quiet,
    play_at,
    static_at,
)
from yomi.native.bits import U
from yomi.native.bound_kernels import entry, load
from yomi.native.shogi.position import gives_check


@entry(ARGUMENTS)
def search_root(address, _):  # type: ignore[no-untyped-def]
    """Search the root moves from index FIRST on, to DEPTH plies, in the window from ALPHA to BETA.

    Writes VALUE_FOUND, `root_scores`, `root_nodes` and `root_lines`. If IS_STOPPED is set, only the results of finished
    moves are valid, and VALUE_FOUND is undefined.
    """
    _, thread, table = load(address, ARGUMENTS)
    counters = thread.counters
    depth, alpha, beta = counters[U(DEPTH)], counters[U(ALPHA)], counters[U(BETA)]
    first, last = counters[U(FIRST)], counters[U(ROOT_MOVES)]
    counters[U(WINDOW)] = beta - alpha
    pos = thread.positions[U(0)]
    frame, following = thread.frames[U(BEFORE)], thread.frames[U(BEFORE + 1)]
    raw = static_at(address, 0) if pos.in_check == 0 else NO_VALUE
    frame.static = raw if pos.in_check == 0 else 0
    frame.in_check = pos.in_check != 0
    frame.pawns = hash_pawns(pos) >> U(PAWN_SHIFT)
    frame.is_principal = 1
    frame.is_on_line = 1
    following.failures = 0
    thread.frames[U(BEFORE + 2)].failures = 0
    best, best_move = -INFINITE, 0
    first_alpha = alpha
    for i in range(first, last):
        thread.root_scores[U(i)] = -INFINITE
    for i in range(first, last):
        move = np.int64(thread.root_moves[U(i)])
        quiet = is_quiet(pos, move)
        check = gives_check(pos, move)
        before = counters[U(NODES)]
        count = i - first + 1
        frame.count = count
        statistics = reduction_statistics(thread, pos, 0, move, quiet)
        frame.statistics = statistics
        play_at(address, 0, move, check)
        value = 0
        deeper = depth - 1
        if count > 1:
            less = deeper
            if depth >= 2:
                reduction = base_reduction(thread, depth, count, False) - window_reduction(thread, beta - alpha)
                reduction += p.R_ONCE_PRINCIPAL - p.R_PRINCIPAL - p.R_OPEN
                reduction += p.R_MORE - count * p.R_COUNT
                if following.failures > 1:
                    reduction += p.R_FAILURES
                    if following.failures > 2:
                        reduction += p.R_MORE_FAILURES
                reduction -= statistics * p.R_STATISTICS // 4096
                less = max(1, min(deeper - reduction // UNIT, deeper + 2)) + 1
            frame.reduction = deeper - less
            value = -search(address, 1, less, -alpha - 1, -alpha, np.int64(1))
            frame.reduction = 0
            if value > alpha and counters[U(IS_STOPPED)] == 0:
                if less < deeper and value > best + p.DEEPER:
                    deeper += 1
                if value < best + p.SHALLOWER:
                    deeper -= 1
                if less < deeper:
                    value = -search(address, 1, deeper, -alpha - 1, -alpha, np.int64(1))
        if (count == 1 or value > alpha) and counters[U(IS_STOPPED)] == 0:
            value = -search(address, 1, deeper, -beta, -alpha, np.int64(0))
        if counters[U(IS_STOPPED)] != 0:
            return
        thread.root_nodes[U(i)] += counters[U(NODES)] - before
        if count == 1 or value > alpha:
            thread.root_scores[U(i)] = value
            extend_line(thread, 0, move)
            for k in range(U(PLIES)):
                thread.root_lines[U(i), k] = thread.lines[U(0), k]
                if thread.lines[U(0), k] == 0:
                    break
        if value > best:
            best = value
            if value > alpha:
                best_move = move
                counters[U(CHANGES)] += count > 1
                if value >= beta:
                    break
                if 2 < depth < 14 and abs(value) < WON:
                    depth -= 2
                alpha = value
    bound = LOWER if best >= beta else (EXACT if best > first_alpha else UPPER)
    if first == 0:
        store(table, pos.key, best_move, to_table(best, 0), raw, depth, bound, True, counters[U(GENERATION)])
    counters[U(VALUE_FOUND)] = best


@entry(ARGUMENTS)
def begin_search(address, _):  # type: ignore[no-untyped-def]
    """Prepare a search of the position at ply 0."""
    network, thread, _ = load(address, ARGUMENTS)
    begin(network, thread.network, thread.positions[U(0)])
    counters = thread.counters
    counters[U(NODES)] = 0
    counters[U(IS_STOPPED)] = 0
    counters[U(DEEPEST)] = 0
    counters[U(NULL_FROM)] = 0
    for i in range(U(thread.frames.size)):
        thread.frames[i].excluded = 0
        thread.frames[i].reduction = 0
    for ply in range(U(thread.near_root.shape[0])):
        for move in range(U(thread.near_root.shape[1])):
            thread.near_root[ply, move] = FIRST_NEAR_ROOT
    for i in range(U(counters[U(ROOT_MOVES)])):
        thread.root_nodes[i] = 0
        thread.root_lines[i, U(0)] = 0

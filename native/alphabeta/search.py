"""Alpha-beta search: principal variation search with a transposition table, and a quiescence search at its ends.

Stockfish, and YaneuraOu for shogi, reduce and prune in the same ways. `yomi.native.alphabeta.parameters` has the
margins. `search` decides what a position's static value can decide, `_search_moves` tries its moves.
"""

import numpy as np

from yomi.native.alphabeta import parameters as p
from yomi.native.alphabeta.correction import correction, hash_pawns, learn_correction
from yomi.native.alphabeta.node import (
    INFINITE,
    MATE,
    WON,
    corrected,
    decides,
    ended,
    extend_line,
    from_table,
    loses,
    stops,
    to_table,
)
from yomi.native.alphabeta.ordering import after_table_move, begin_moves, next_move, skip_quiets
from yomi.native.alphabeta.quiescence import quiesce
from yomi.native.alphabeta.statistics import (
    capture_statistics,
    compare_statics,
    pruning_statistics,
    reduction_statistics,
    reward_best,
    reward_following,
    reward_last,
    reward_quiet,
    victim_value,
)
from yomi.native.alphabeta.table import EXACT, LOWER, NO_VALUE, UPPER, lookup, store
from yomi.native.alphabeta.thread import (
    ARGUMENTS,
    BEFORE,
    DEEPEST,
    DEPTH,
    GENERATION,
    IS_STOPPED,
    NODES,
    NULL_FROM,
    PAWN_ROWS,
    PLIES,
    TABLE_SUCCESS,
    TRIED,
    WINDOW,
    is_quiet,
    pass_at,
    play_at,
    static_at,
)
from yomi.native.bits import U
from yomi.native.bound_kernels import load
from yomi.native.jit import inlined, inlined_early, kernel
from yomi.native.shogi import mate
from yomi.native.shogi.position import gives_check

DEPTHS = 100  # maximum depth
UNIT = 1024  # a ply of reductions
PAWN_SHIFT = 64 - (PAWN_ROWS.bit_length() - 1)


@inlined
def base_reduction(thread, depth, count, is_improving):  # type: ignore[no-untyped-def]
    """Return the reduction of move number `count` in a node, in units of 1 / UNIT ply."""
    product = np.int64(thread.reductions[U(depth)]) * np.int64(thread.reductions[U(count)])
    return product + p.R_BASE + (0 if is_improving else product * p.R_WORSE // 512)


@inlined
def window_reduction(thread, width):  # type: ignore[no-untyped-def]
    """Return how much less to reduce in an open window. It grows with the window's share of the root's window."""
    return width * p.R_WINDOW // thread.counters[U(WINDOW)]


@kernel
def search(address, ply, depth, alpha, beta, is_cut):  # type: ignore[no-untyped-def]
    """Return the value of the position at a ply below the root.

    Args:
        address: address of network, thread and table.
        ply: ply of the position, at least 1.
        depth: plies to search before the quiescence search.
        alpha: lower bound of the window.
        beta: upper bound.
        is_cut: 1 if one of the first moves is expected to reach beta (alpha + 1 = beta), otherwise 0.
    """
    if depth <= 0:
        return quiesce(address, ply, alpha, beta)
    _, thread, table = load(address, ARGUMENTS)
    counters = thread.counters
    if stops(thread):
        return 0
    pos = thread.positions[U(ply)]
    frame, last = thread.frames[U(ply + BEFORE)], thread.frames[U(ply + BEFORE - 1)]
    thread.lines[U(ply), U(0)] = 0
    counters[U(DEEPEST)] = max(counters[U(DEEPEST)], ply)
    excluded = np.int64(frame.excluded)
    if excluded == 0:
        is_over, value = ended(pos, thread.history, ply)
        if is_over:
            return value
    if ply >= PLIES - 8:
        return static_at(address, ply)
    # No line from here is better than a mate at the next ply, or worse than being mated now.
    alpha, beta = max(alpha, ply - MATE), min(beta, MATE - ply - 1)
    if alpha >= beta:
        return alpha
    is_open = beta - alpha > 1
    is_all = not is_open and is_cut == 0  # every move is expected to fail
    is_in_check = pos.in_check != 0
    depth = min(depth, DEPTHS)
    reduced = np.int64(last.reduction)
    last.reduction = 0
    frame.statistics = 0
    frame.count = 0
    thread.frames[U(ply + BEFORE + 2)].failures = 0
    table_move, table_value, static, table_depth, bound, was_principal = lookup(table, pos.key)
    table_value = from_table(table_value, ply)
    if excluded == 0:
        frame.in_check = is_in_check
        frame.is_known = bound != 0 or static != NO_VALUE
        frame.is_principal = is_open or was_principal
        frame.pawns = hash_pawns(pos) >> U(PAWN_SHIFT)
        frame.is_on_line = last.is_on_line != 0 and frame.move == thread.root_lines[U(0), U(ply - 1)]
    table_captures = table_move != 0 and not is_quiet(pos, table_move)
    if (
        not is_open
        and excluded == 0
        and bound != 0
        and table_depth > depth - (table_value <= beta)
        and decides(bound, table_value, beta)
        and ((is_cut != 0) == (table_value >= beta) or depth > 5)
    ):
        if table_move != 0 and table_value >= beta:
            if not table_captures:
                reward_quiet(thread, ply, table_move, min(130 * depth - 71, 1043))
            if frame.move != 0 and last.count <= 4 and frame.captured == 0:
                reward_following(thread, ply - 1, U(frame.piece_square), -2142)
        return table_value
    raw = NO_VALUE  # static value for the table
    value = 0  # static value, corrected by the table
    correct = correction(thread, pos, ply)
    is_improving = False
    if is_in_check:
        # In check the static value means nothing: take that of two plies before.
        static = np.int64(thread.frames[U(ply + BEFORE - 2)].static)
        frame.static = static
    elif excluded != 0:
        static = value = np.int64(frame.static)
    else:
        if frame.is_known == 0:
            mating = mate.attack(thread.positions, thread.history, thread.moves, ply, 1)
            if mating != 0:
                # Deep enough for cuts, but replaced before long.
                is_principal = frame.is_principal != 0
                generation = counters[U(GENERATION)]
                store(table, pos.key, mating, MATE - 1, NO_VALUE, depth + 6, EXACT, is_principal, generation)
                return MATE - ply - 1
        raw = static
        if raw == NO_VALUE:
            raw = static_at(address, ply)
            if bound == 0:
                store(table, pos.key, 0, 0, raw, 0, 0, frame.is_principal != 0, counters[U(GENERATION)])
        value = static = corrected(raw, correct)
        frame.static = static
        if bound != 0 and decides(bound, table_value, value + 1):
            value = table_value
        compare_statics(thread, ply)
    if not is_in_check:
        is_improving = ply >= 2 and static > thread.frames[U(ply + BEFORE - 2)].static
        is_worsening = static > -np.int64(last.static)  # for the opponent
        if reduced >= 3 and not is_worsening:
            depth += 1
        if reduced >= 2 and depth >= 2 and static + last.static > p.HINDSIGHT:
            depth -= 1
        # Razoring: far below alpha, only captures can help.
        if not is_open and value < alpha - p.RAZOR - p.RAZOR_DEPTH * depth * depth:
            return quiesce(address, ply, alpha, beta)
        # Reverse futility: far above beta, the opponent cannot make up for it.
        unit = p.RFP_DEPTH - (p.RFP_UNKNOWN if frame.is_known == 0 else 0)
        less = p.RFP_IMPROVING * is_improving + p.RFP_WORSENING * is_worsening
        margin = unit * depth - less * unit // 1024 + abs(correct) // 180600
        if (
            frame.is_principal == 0
            and depth < 15
            and value >= beta
            and value - margin >= beta
            and (table_move == 0 or table_captures)
            and beta > -WON
            and value < WON
        ):
            return (2 * beta + value) // 3
        # Null move: if a pass is good enough, so is the best move.
        demand = beta - p.NULL_DEPTH * depth - p.NULL_IMPROVING * is_improving
        if (
            is_cut != 0
            and excluded == 0
            and static >= demand + p.NULL_BASE
            and ply >= counters[U(NULL_FROM)]
            and beta > -WON
        ):
            left = depth - p.NULL_LESS - depth // 3
            pass_at(address, ply)
            value = -search(address, ply + 1, left, -beta, -beta + 1, np.int64(0))
            if counters[U(IS_STOPPED)] != 0:
                return 0
            if value >= beta and value < WON:  # a pass proves no mate
                if counters[U(NULL_FROM)] != 0 or depth < 16:
                    return value
                # Deep in the tree a search without a pass at the next plies must agree.
                counters[U(NULL_FROM)] = ply + 3 * left // 4
                proof = search(address, ply, left, beta - 1, beta, np.int64(0))
                counters[U(NULL_FROM)] = 0
                if counters[U(IS_STOPPED)] != 0:
                    return 0
                if proof >= beta:
                    return value
        is_improving = is_improving or static >= beta
        # Without a move from the table, order and value are uncertain.
        if frame.is_on_line == 0 and not is_all and depth >= p.IIR_DEPTH and table_move == 0 and reduced <= 3:
            depth -= 1
        # Probable cut: a good capture that exceeds beta by far in a shallower search.
        target = beta + p.PROBABLE_CUT - p.PROBABLE_CUT_IMPROVING * is_improving
        if depth >= 3 and abs(beta) < WON and (bound == 0 or table_value >= target):
            value = _probable_cut(
                address,
                ply,
                max(depth - 4, 0),
                target,
                is_cut,
                raw,
                static,
                table_move if table_captures else np.int64(0),
            )
            if counters[U(IS_STOPPED)] != 0:
                return 0
            if value >= target and abs(value) < WON:
                return value - (target - beta)
    target = beta + p.TABLE_CUT
    if (
        (bound & LOWER) != 0
        and table_depth >= depth - 4
        and table_value >= target
        and abs(beta) < WON
        and abs(table_value) < WON
    ):
        return target
    return _search_moves(
        address,
        ply,
        depth,
        alpha,
        beta,
        is_cut,
        raw,
        static,
        correct,
        table_move,
        table_value,
        table_depth,
        bound,
        is_improving,
    )


@inlined_early
def _probable_cut(address, ply, depth, target, is_cut, raw, static, table_move):  # type: ignore[no-untyped-def]
    """Return the value of the first capture that reaches `target` in a shallower search, or a value below `target`."""
    _, thread, table = load(address, ARGUMENTS)
    pos = thread.positions[U(ply)]
    best = -INFINITE
    begin_moves(address, ply, table_move, 1, 0)
    while True:
        move = next_move(address, ply)
        if move == 0:
            break
        if move == thread.frames[U(ply + BEFORE)].excluded or loses(pos, move, static - target):
            continue
        play_at(address, ply, move, gives_check(pos, move))
        value = -quiesce(address, ply + 1, -target, -target + 1)
        if value >= target and depth > 0 and thread.counters[U(IS_STOPPED)] == 0:
            value = -search(address, ply + 1, depth, -target, -target + 1, 1 - is_cut)
        if thread.counters[U(IS_STOPPED)] != 0:
            break
        if value >= target:
            best = value
            if thread.frames[U(ply + BEFORE)].excluded == 0:
                is_principal = thread.frames[U(ply + BEFORE)].is_principal != 0
                generation = thread.counters[U(GENERATION)]
                store(table, pos.key, move, to_table(value, ply), raw, depth + 1, LOWER, is_principal, generation)
            if abs(value) < WON:
                break
    return best


@inlined_early
def _search_moves(  # type: ignore[no-untyped-def]
    address,
    ply,
    depth,
    alpha,
    beta,
    is_cut,
    raw,
    static,
    correct,
    table_move,
    table_value,
    table_depth,
    bound,
    is_improving,
):
    """Search the moves of a position, and return its value; see `search`."""
    _, thread, table = load(address, ARGUMENTS)
    counters = thread.counters
    pos = thread.positions[U(ply)]
    frame, following = thread.frames[U(ply + BEFORE)], thread.frames[U(ply + BEFORE + 1)]
    excluded = np.int64(frame.excluded)
    is_open = beta - alpha > 1
    is_all = not is_open and is_cut == 0
    is_in_check = pos.in_check != 0
    first_alpha = alpha
    best, best_move = -MATE + ply, 0
    table_captures = table_move != 0 and not is_quiet(pos, table_move)
    tried = thread.tried[U(ply)]
    count, failed = 0, 0
    begin_moves(address, ply, table_move, 0, depth)
    while True:
        move = next_move(address, ply)
        if move == 0:
            break
        if move == excluded:
            continue
        count += 1
        frame.count = count
        quiet = is_quiet(pos, move)
        check = gives_check(pos, move)
        reduction = base_reduction(thread, depth, count, is_improving)
        if is_open:
            reduction -= window_reduction(thread, beta - alpha)
        if frame.is_principal != 0:
            reduction += p.R_ONCE_PRINCIPAL
        if best > -WON:
            if count >= (p.LMP + depth * depth) // (2 - is_improving):
                skip_quiets(address, ply)
            left = depth - 1 - reduction // UNIT
            if not quiet or check:
                statistics = capture_statistics(thread, pos, move)
                reached = static + p.CAPTURE_FUTILITY + p.CAPTURE_FUTILITY_DEPTH * left
                reached += victim_value(pos, move) + 131 * statistics // 1024
                if not check and left < 7 and reached <= alpha:
                    continue
                margin = max(p.CAPTURE_LOSS * depth + 34 * statistics // 1024, 0)
                if alpha >= 0 and loses(pos, move, margin):
                    continue
            elif frame.is_on_line == 0 or not is_open:
                history, by_move = pruning_statistics(thread, pos, ply, move)
                if history < -p.HISTORY_PRUNING * depth:
                    continue
                left += (history + 71 * by_move // 32) // p.HISTORY_DEPTH
                reached = static + p.FUTILITY + p.FUTILITY_DEPTH * left
                reached += (p.FUTILITY_FIRST if best_move == 0 else 0) + (p.FUTILITY_ABOVE if static > alpha else 0)
                if not is_in_check and left < 13 and reached <= alpha:
                    if abs(best) < WON and reached < WON:
                        best = max(best, reached)
                    continue
                left = max(left, 0)
                if loses(pos, move, p.QUIET_LOSS * left * left):
                    continue
        # Singular extension: a move that is much better than all others is searched deeper.
        extension = 0
        deeper = depth - 1
        if (
            move == table_move
            and excluded == 0
            and depth >= p.SINGULAR_DEPTH + frame.is_principal
            and (bound & LOWER) != 0
            and table_depth >= depth - 3
            and abs(table_value) < WON
        ):
            margin = p.SINGULAR_MARGIN
            if frame.is_principal != 0 and not is_open:
                margin += p.SINGULAR_PRINCIPAL
            target = table_value - margin * depth // 55
            frame.excluded = move
            value = search(address, ply, deeper // 2, target - 1, target, is_cut)
            frame.excluded = 0
            if counters[U(IS_STOPPED)] != 0:
                return 0
            frame.count = count
            after_table_move(address, ply, table_move, depth)
            if value < target:
                is_far = ply > counters[U(DEPTH)]
                double = p.DOUBLE_MARGIN + p.DOUBLE_OPEN * is_open
                double -= p.DOUBLE_QUIET * (not table_captures) + 44 * is_far
                double -= abs(correct) // 210590 + 906 * counters[U(TABLE_SUCCESS)] // 116517
                triple = p.TRIPLE_MARGIN + p.TRIPLE_OPEN * is_open
                triple -= p.TRIPLE_QUIET * (not table_captures) + 45 * is_far
                triple += 92 * (frame.is_principal != 0) - abs(correct) // 210590
                extension = 1 + (value < target - double) + (value < target - triple)
                depth += 1
            elif value >= beta and abs(value) < WON:
                _learn_success(counters, max(-424 - 107 * depth, -3375))
                return value  # several moves are too good
            elif table_value >= beta:
                extension = -3
            elif is_cut != 0:
                extension = -2
        statistics = reduction_statistics(thread, pos, ply, move, quiet)
        frame.statistics = statistics
        play_at(address, ply, move, check)
        deeper += extension
        if frame.is_principal != 0:
            reduction -= p.R_PRINCIPAL + (p.R_OPEN if is_open else 0)
            if bound != 0 and table_value > alpha:
                reduction -= p.R_ABOVE
            if bound != 0 and table_depth >= depth:
                reduction -= p.R_DEEP + (p.R_DEEP_CUT if is_cut != 0 else 0)
        reduction += p.R_MORE - count * p.R_COUNT - abs(correct) // 25600
        if is_cut != 0:
            reduction += p.R_CUT + (p.R_CUT_UNKNOWN if table_move == 0 else 0)
        if table_captures:
            reduction += p.R_TABLE_CAPTURES
        if following.failures > 1:
            reduction += p.R_FAILURES + (p.R_FAILURES_ALL if is_all else 0)
            if following.failures > 2:
                reduction += p.R_MORE_FAILURES
        if move == table_move:
            reduction -= p.R_TABLE_MOVE
        reduction -= statistics * p.R_STATISTICS // 4096
        if is_all:
            reduction += reduction * p.R_ALL // (256 * depth + 260)
        value = 0
        if depth >= 2 and count > 1:
            # Late moves are searched less deeply first.
            less = max(1, min(deeper - reduction // UNIT, deeper + 2)) + is_open
            frame.reduction = deeper - less
            value = -search(address, ply + 1, less, -alpha - 1, -alpha, np.int64(1))
            frame.reduction = 0
            if value > alpha and counters[U(IS_STOPPED)] == 0:
                if less < deeper and value > best + p.DEEPER:
                    deeper += 1
                if value < best + p.SHALLOWER:
                    deeper -= 1
                if less < deeper:
                    value = -search(address, ply + 1, deeper, -alpha - 1, -alpha, 1 - is_cut)
                reward_following(thread, ply, U(following.piece_square), 1426)
        elif not is_open or count > 1:
            if table_move == 0:
                reduction += p.R_UNKNOWN
            less = deeper - (reduction > p.R_ONE) - (reduction > p.R_TWO and deeper > 2)
            value = -search(address, ply + 1, less, -alpha - 1, -alpha, 1 - is_cut)
        if is_open and (count == 1 or value > alpha) and counters[U(IS_STOPPED)] == 0:
            thread.lines[U(ply + 1), U(0)] = 0
            if move == table_move and table_depth > 1:
                deeper = max(deeper, 1)
            value = -search(address, ply + 1, deeper, -beta, -alpha, np.int64(0))
        if counters[U(IS_STOPPED)] != 0:
            return 0
        # Values near the end of a line are doubtful: of equal moves a later one is taken now and then.
        takes_equal = value == best and ply + 2 >= counters[U(DEPTH)] and (counters[U(NODES)] & 14) == 0
        takes_equal = takes_equal and abs(value) + 1 < WON
        if value > best or takes_equal:
            best = value
            if value > alpha or (takes_equal and value == alpha):
                best_move = move
                if is_open:
                    extend_line(thread, ply, move)
                if value >= beta:
                    frame.failures += extension < 2 or is_open
                    break
                if 2 < depth < 14 and abs(value) < WON:
                    depth -= 2  # the other moves are probably worse
                alpha = value
        if move != best_move and failed < TRIED:
            tried[U(failed)] = move
            failed += 1
    if count == 0:
        return alpha if excluded != 0 else -MATE + ply
    if best >= beta and abs(best) < WON and abs(alpha) < WON:
        best = (best * depth + beta) // (depth + 1)
    if best_move != 0:
        reward_best(thread, ply, best_move, depth, best_move == table_move, tried, failed)
        if not is_open:
            _learn_success(counters, 805 if best_move == table_move else -787)
    else:
        reward_last(thread, ply, depth, best, static)
    if best <= first_alpha and thread.frames[U(ply + BEFORE - 1)].is_principal != 0:
        frame.is_principal = 1
    if excluded == 0:
        bound = LOWER if best >= beta else (EXACT if is_open and best_move != 0 else UPPER)
        is_principal = frame.is_principal != 0
        store(table, pos.key, best_move, to_table(best, ply), raw, depth, bound, is_principal, counters[U(GENERATION)])
    # Learn from a search that shows that the static value is wrong: not by a capture, and not on the bound's side.
    captured = best_move != 0 and not is_quiet(pos, best_move)
    if not is_in_check and not captured and abs(best) < WON and (best > static) == (best_move != 0):
        learn_correction(thread, pos, ply, best - static, depth, best_move != 0)
    return best


@inlined
def _learn_success(counters, bonus):  # type: ignore[no-untyped-def]
    """Update the success rate of table moves: a bonus if the table's move was the best, otherwise a malus."""
    old = counters[U(TABLE_SUCCESS)]
    counters[U(TABLE_SUCCESS)] = old + bonus - old * abs(bonus) // 8192

"""The quiescence search: captures, promotions of pawns, and evasions of checks, until nothing hangs."""

from yomi.native.alphabeta import parameters as p
from yomi.native.alphabeta.correction import correction
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
from yomi.native.alphabeta.ordering import begin_moves, next_move
from yomi.native.alphabeta.statistics import victim_value
from yomi.native.alphabeta.table import EXACT, LOWER, NO_VALUE, UPPER, lookup, store
from yomi.native.alphabeta.thread import (
    ARGUMENTS,
    BEFORE,
    DEEPEST,
    GENERATION,
    IS_STOPPED,
    PLIES,
    is_quiet,
    play_at,
    static_at,
)
from yomi.native.bits import U
from yomi.native.bound_kernels import load
from yomi.native.jit import kernel
from yomi.native.shogi import mate
from yomi.native.shogi.position import gives_check


@kernel
def quiesce(address, ply, alpha, beta):  # type: ignore[no-untyped-def]
    """Return the value of the position at a ply after captures, pawn promotions and evasions of checks only.

    Args:
        address: address of network, thread and table.
        ply: ply of the position.
        alpha: lower bound of the window.
        beta: upper bound.
    """
    _, thread, table = load(address, ARGUMENTS)
    if stops(thread):
        return 0
    pos = thread.positions[U(ply)]
    frame = thread.frames[U(ply + BEFORE)]
    thread.lines[U(ply), U(0)] = 0
    thread.counters[U(DEEPEST)] = max(thread.counters[U(DEEPEST)], ply)
    is_over, value = ended(pos, thread.history, ply)
    if is_over:
        return value
    if ply >= PLIES - 4:
        return static_at(address, ply)
    is_open = beta - alpha > 1
    is_in_check = pos.in_check != 0
    frame.in_check = is_in_check
    table_move, table_value, static, _, bound, is_principal = lookup(table, pos.key)
    table_value = from_table(table_value, ply)
    is_known = bound != 0 or static != NO_VALUE
    frame.is_known = is_known
    if bound != 0 and not is_open and decides(bound, table_value, beta):
        return table_value
    # A known position is not searched for mates again, and the loop below omits quiet ones.
    if bound == EXACT and table_value == MATE - ply - 1:
        return table_value
    first_alpha = alpha
    best, best_move = -MATE + ply, 0
    futility = -INFINITE
    if is_in_check:
        static = NO_VALUE
    else:
        if not is_known:
            mating = mate.attack(thread.positions, thread.history, thread.moves, ply, 1)
            if mating != 0:
                store(table, pos.key, mating, MATE - 1, NO_VALUE, 0, EXACT, False, thread.counters[U(GENERATION)])
                return MATE - ply - 1
        if static == NO_VALUE:
            static = static_at(address, ply)
        # The side to move need not capture.
        best = corrected(static, correction(thread, pos, ply))
        frame.static = best
        futility = best + p.Q_FUTILITY
        if bound != 0 and abs(table_value) < WON and decides(bound, table_value, best + 1):
            best = table_value
        if best >= beta:
            if abs(best) < WON:
                best = (best + beta) // 2
            if not is_known:
                store(table, pos.key, 0, to_table(best, ply), static, 0, LOWER, False, thread.counters[U(GENERATION)])
            return best
        alpha = max(alpha, best)
        if table_move != 0 and is_quiet(pos, table_move):
            table_move = 0
    begin_moves(address, ply, table_move, 1, 0)
    last_square = U(frame.move) & U(127) if frame.move != 0 else U(127)
    count = 0
    while True:
        move = next_move(address, ply)
        if move == 0:
            break
        check = gives_check(pos, move)
        count += 1
        if best > -WON:
            if not check and not is_in_check and U(move) & U(127) != last_square:
                if count > p.Q_MOVES:
                    continue
                reached = futility + victim_value(pos, move)
                if reached <= alpha:
                    best = max(best, reached)
                    continue
                if loses(pos, move, futility - alpha):
                    best = max(best, min(alpha, futility))
                    continue
            if is_quiet(pos, move):
                continue  # an evasion was found that is not lost
            if loses(pos, move, p.Q_LOSS):
                continue
        play_at(address, ply, move, check)
        value = -quiesce(address, ply + 1, -beta, -alpha)
        if thread.counters[U(IS_STOPPED)] != 0:
            return 0
        if value > best:
            best = value
            if value > alpha:
                best_move = move
                if is_open:
                    extend_line(thread, ply, move)
                if value >= beta:
                    break
                alpha = value
    if best > beta and abs(best) < WON:
        best = (best + beta) // 2
    bound = LOWER if best >= beta else UPPER
    if is_open and first_alpha < best < beta:
        bound = EXACT
    store(
        table, pos.key, best_move, to_table(best, ply), static, 0, bound, is_principal, thread.counters[U(GENERATION)]
    )
    return best

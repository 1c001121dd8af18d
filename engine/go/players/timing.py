"""Time control of Go: how much time a move may take, from what the clock of the side to move shows.

lag is what may be lost on every move; lateness what a loaded machine may take besides, which is kept in reserve once,
for this move; moves_left an estimate from board size and ply.

- sudden death: soft = (left - reserve) / moves_left with reserve = lag_reserve + lateness. The estimate has a floor, so
  that the time decays geometrically and never runs out. hard = at most 3 times soft, never more than left - reserve.
- byo-yomi: a move may use one period, less lag and lateness (MAX_RESERVE_SHARE of it at most); periods are not spent.
- Canadian: period left / stones left, less lag and lateness, likewise.
- main time followed by byo-yomi or Canadian overtime: as sudden death, but at least what a move in overtime has.
- Fischer: as sudden death, plus the increment, less the lag; lateness and lag stay on the clock.

If nothing is left after the reserve the budget is 0: answer at once.
"""

from __future__ import annotations

from yomi.engine.clock import MAX_RESERVE_SHARE, Budget, Clock, TimeSystem, lag_reserve


def moves_left(area: int, ply: int) -> float:
    """Return an estimate of the moves that one side still has to play.

    Games end (by resignation, mostly) after about 0.6 moves a point; the floor keeps time for the endgame and for
    cleaning up.
    """
    return max(10 + area / 12, (0.6 * area + 10 - ply) / 2)


def find_budget(clock: Clock, moves: float, lag: float, lateness: float = 0.0) -> Budget:
    """Return the time for a move from the start of its clock on; the rules are at the top of this module.

    Args:
        clock: of the side to move; it has a limit. In a Canadian period that is not exact every move gets the same
            share of the period, which is right for any count of stones.
        moves: estimate of the moves still to play.
        lag: reserve for a move.
        lateness: reserve for this move besides the lag.
    """
    settings, left = clock.settings, clock
    reserve = lag_reserve(lag, moves) + lateness
    system = settings.system
    if system is TimeSystem.FISCHER:
        usable = max(left.main - lag - lateness, 0.0)
        spare = max(left.main - reserve, 0.0)
        soft = min(spare / moves + max(settings.increment - lag, 0.0), usable)
        hard = min(max(3 * spare / moves + max(settings.increment - lag, 0.0), soft), usable)
        limit = max(settings.move_limit - lag - lateness, 0.0)
        return Budget(min(soft, limit), min(hard, limit))
    spare = max(left.main - reserve, 0.0)
    if system is TimeSystem.ABSOLUTE:
        return Budget(spare / moves, min(3 * spare / moves, spare))
    first = settings.period / max(settings.count, 1) if system is TimeSystem.CANADIAN else settings.period
    kept = lag + min(lateness, max(MAX_RESERVE_SHARE * first - lag, 0.0))
    if system is TimeSystem.CANADIAN and not clock.is_exact:
        overtime = overtime_hard = max(first - kept, 0.0)
    elif system is TimeSystem.BYOYOMI:
        overtime = overtime_hard = max((left.period if left.count else 0.0) - kept, 0.0)
    else:
        stones = max(left.count, 1)
        overtime = max(left.period / stones - kept, 0.0)
        overtime_hard = max(min(3 * overtime, left.period / 2 - lag * (stones - 1) - kept), overtime)
    if left.main <= 0:
        return Budget(overtime, overtime_hard)
    # main time comes first; when it runs out within the move, what lies beyond is charged to the first period
    in_overtime = max(first - kept, 0.0)
    soft = max(left.main / moves, min(in_overtime, left.main + in_overtime))
    hard = max(soft, min(3 * soft, left.main + in_overtime))
    return Budget(soft, hard)

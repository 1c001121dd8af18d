"""Time control of shogi: how long a move may take, from what the clocks show.

The interface tells both clocks with every `go`, so nothing is kept from move to move. lag is the reserve for delays on
the way of every move, lateness what a loaded machine may take besides, which is kept in reserve once, for this move,
and M an estimate of the moves still to play:

- byo-yomi is there for every move: soft = main time / M + byo-yomi, less lag, margin and lateness; hard = three times
  the share of the main time instead. Once the main time is gone both are the byo-yomi, less lag, margin and lateness.
- increments likewise; they are not spent before they are on the clock, unless the clock shows less than one, as it
  does before the first move of a game without main time where the interface adds it on top. A third of the main time is
  kept in reserve for lag at most.
- sudden death: the time decays geometrically, with a reserve of the lag of many moves and lateness that is never
  touched.
"""

from __future__ import annotations

from yomi.engine.clock import MAX_RESERVE_SHARE, Budget, Clock, TimeSystem, lag_reserve

MAX_RESERVE = 0.4
"""Share of a byo-yomi that the reserves take at most, so that periods of less than a second can be used."""


def moves_left(ply: int) -> float:
    """Return an estimate of the own moves that a game still has: most of the time is spent before the endgame."""
    return max(18.0, 44.0 - 0.5 * ply)


def find_budget(clock: Clock, ply: int, lag: float, margin: float, lateness: float = 0.0) -> Budget:
    """Return the time for a move from the start of its clock on; both limits are 0 where nothing is left.

    Args:
        clock: of the side to move: main time with byo-yomi, or with an increment that is not on the clock yet.
        ply: moves made so far by both sides.
        lag: what may be lost between the search's end and the interface's clock.
        margin: further reserve in byo-yomi.
        lateness: how late this process was woken up of late: reserve for this move on top of lag and margin.
    """
    left, increment = clock.main, clock.settings.increment
    moves = moves_left(ply)
    last = time_left(clock, lag, margin, lateness)
    if clock.settings.system is TimeSystem.BYOYOMI:
        period = last - left
        spare = left
    else:
        period = max(increment - lag, 0.0)
        reserve = lag_reserve(lag, moves)
        if increment > 0:
            reserve = min(reserve, left / 3 + lag)
        spare = max(left - reserve - lateness, 0.0)
    soft = min(spare / moves + period, last)
    hard = min(max(3 * spare / moves + period, soft), last)
    return Budget(soft, hard)


def time_left(clock: Clock, lag: float, margin: float, lateness: float) -> float:
    """Return the seconds from the start of its clock on in which a move comes in time; arguments: see find_budget."""
    left, settings = clock.main, clock.settings
    if settings.system is TimeSystem.BYOYOMI:
        period = settings.period
        reserve = min(min(lag + margin, MAX_RESERVE * period) + lateness, MAX_RESERVE_SHARE * period)
        return left + period - reserve
    return max(max(left, settings.increment) - lag - lateness, 0.0)

"""Time control of shogi: how long a move may take.

The interface sends both clocks with every `go`, so no state is kept between moves. lag is the reserve for delays of
every move, lateness a single reserve for a loaded machine, M the estimated number of moves still to play.

- Byo-yomi: soft = main time / M + byo-yomi - reserves (lag, margin, lateness). hard = three times the main time's
  share + byo-yomi - reserves. Without main time both are byo-yomi - reserves.
- Increments: as byo-yomi, but an increment is not spent before it is on the clock. Exception: the clock shows less than
  one increment, as before the first move of a game without main time if the interface adds it later. The reserve for
  lag is at most a third of the main time.
- Sudden death: the time per move decays geometrically. The lag of many moves and lateness remain in reserve.
"""

from __future__ import annotations

from yomi.engine.clock import MOST_RESERVE, Budget, Clock, TimeSystem, lag_reserve

MAX_RESERVE = 0.4  # largest share of a byo-yomi for the reserves, so that periods below a second are of use


def moves_left(ply: int) -> float:
    """Estimate the own moves that a game still has. Most of the time is spent before the endgame."""
    return max(18.0, 44.0 - 0.5 * ply)


def find_budget(clock: Clock, ply: int, lag: float, margin: float, lateness: float = 0.0) -> Budget:
    """Return the limits of a move from the start of its clock; both are 0 if no time is left.

    Args:
        clock: of the side to move: main time with byo-yomi, or with an increment that is not on the clock yet.
        ply: moves made so far by both sides.
        lag: seconds lost between the end of the search and the interface's clock.
        margin: further reserve in byo-yomi.
        lateness: seconds by which this process was woken up late recently; a reserve besides lag and margin.
    """
    left, increment = clock.left.main, clock.settings.increment
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
    """Return the seconds in which a move arrives in time; arguments as for find_budget."""
    left, settings = clock.left.main, clock.settings
    if settings.system is TimeSystem.BYOYOMI:
        period = settings.period
        reserve = min(min(lag + margin, MAX_RESERVE * period) + lateness, MOST_RESERVE * period)
        return left + period - reserve
    return max(max(left, settings.increment) - lag - lateness, 0.0)

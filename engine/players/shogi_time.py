"""Time control of shogi: how long a move may take, from what the clocks show.

The interface tells both clocks with every `go`, so nothing is kept from move to move. lag is the reserve for delays on
the way, M an estimate of the moves still to play:

- byo-yomi is there for every move: soft = main time / M + byo-yomi, less lag and margin; hard = three times the share
  of the main time instead. Once the main time is gone both are the byo-yomi, less lag and margin.
- increments likewise; they are not spent before they are on the clock, unless the clock shows less than one, as it
  does before the first move of a game without main time where the interface adds it on top. A third of the main time is
  kept in reserve at most.
- sudden death: the time decays geometrically, with a reserve of the lag of many moves that is never touched.
"""

from __future__ import annotations

from engine.clock import Budget
from engine.color import BLACK
from engine.players.shogi_base import Times

MAX_RESERVE = 0.4
"""Share of a byo-yomi that the reserves take at most, so that periods of less than a second can be used."""
MOST_RESERVE = 0.9
"""The same with the lateness of a loaded machine."""
RESERVE_MOVES = 25
"""Own moves whose lag is kept in reserve where there is no byo-yomi."""


def moves_left(ply: int) -> float:
    """Return an estimate of the own moves that a game still has: most of the time is spent before the endgame."""
    return max(18.0, 44.0 - 0.5 * ply)


def find_budget(times: Times, color: int, ply: int, lag: float, margin: float, lateness: float = 0.0) -> Budget:
    """Return the time for a move from the start of its clock on; both limits are 0 where nothing is left.

    Args:
        times: the clocks.
        color: who moves.
        ply: moves made so far by both sides.
        lag: what may be lost between the search's end and the interface's clock.
        margin: further reserve in byo-yomi.
        lateness: how late this process was woken up of late; comes on top of lag and margin.
    """
    left = times.black if color == BLACK else times.white
    increment = times.black_increment if color == BLACK else times.white_increment
    moves = moves_left(ply)
    lag += lateness if times.byoyomi <= 0 else 0.0
    if times.byoyomi > 0:
        reserve = min(min(lag + margin, MAX_RESERVE * times.byoyomi) + lateness, MOST_RESERVE * times.byoyomi)
        period = times.byoyomi - reserve
        last = left + times.byoyomi - reserve
        spare = left
    else:
        period = max(increment - lag, 0.0)
        last = max(max(left, increment) - lag, 0.0)
        reserve = lag * (1 + 0.6 * max(moves, RESERVE_MOVES))
        if increment > 0:
            reserve = min(reserve, left / 3 + lag)
        spare = max(left - reserve, 0.0)
    soft = min(spare / moves + period, last)
    hard = min(max(3 * spare / moves + period, soft), last)
    return Budget(soft, hard)

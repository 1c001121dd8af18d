"""When White may resign a game in which Black has an advantage from handicap stones or komi.

White starts behind and catches up over many moves. It does not resign in the first fifth of the board's points. After
that it resigns only if it is well behind a schedule, by which Black's advantage shrinks evenly to zero at 0.6 moves for
each point. The numbers are KataGo's (`shouldResign` and `initialBlackAdvantage` in cpp/command/gtp.cpp).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from yomi.engine.color import WHITE
from yomi.engine.go.handicap import handicap_stones

if TYPE_CHECKING:
    from yomi.engine.go.game import GoGame

STONE_POINTS = {"AREA": 15.0, "TERRITORY": 14.0}  # points that a handicap stone is worth, by scoring
FAIR_KOMI = 7.0
LEAST_ADVANTAGE = 0.9  # Black's advantage (points) above which a game is not even
PATIENT_SHARE = 0.2  # moves for each point of the board before White may resign
LEVEL_SHARE = 0.6  # moves for each point of the board until White should have caught up
BUFFER, BUFFER_SHARE = 5.0, 0.15  # White resigns this far behind the schedule: points, and share of the advantage


def black_advantage(game: GoGame) -> float:
    """Return Black's advantage in points at the start, from handicap stones and komi."""
    stones = handicap_stones(game.setup, game.moves)
    extra = STONE_POINTS[game.rules.scoring] * max(stones - 1, 0)
    return extra + FAIR_KOMI - float(game.position["komi"])


def may_resign(game: GoGame, color: int, lead: float) -> bool:
    """Whether a player in a lost position may resign.

    Args:
        game: the game before the move.
        color: the side to move.
        lead: points by which `color` leads.
    """
    advantage = black_advantage(game)
    if color != WHITE or advantage <= LEAST_ADVANTAGE:
        return True
    area, ply = game.size**2, len(game.moves)
    first = 1 + int(PATIENT_SHARE * area)
    if ply < first:
        return False
    caught_up = min((ply - first) / max(LEVEL_SHARE * area - first, 1.0), 1.0)
    schedule = advantage * (1.0 - caught_up)
    return lead <= -(schedule + BUFFER + BUFFER_SHARE * advantage)

"""When White may give a game up in which Black has an advantage from the start, by handicap stones or komi.

White is behind there by design and catches up over many moves: it plays on for a fifth of the board, and after that as
long as it is not well behind a schedule by which Black's advantage melts away in even steps until 0.6 moves for each
point of the board. Points and shares are KataGo's (`shouldResign` and `initialBlackAdvantage` in cpp/command/gtp.cpp).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from yomi.engine.color import WHITE
from yomi.engine.go.handicap import handicap_stones

if TYPE_CHECKING:
    from yomi.engine.go.game import GoGame

STONE_POINTS = {"AREA": 15.0, "TERRITORY": 14.0}
"""What a handicap stone is worth, by the rules' scoring."""
FAIR_KOMI = 7.0
LEAST_ADVANTAGE = 0.9
"""Points of Black's from which on a game is not even."""
PATIENT_SHARE = 0.2
"""Moves for each point of the board before which White does not resign."""
LEVEL_SHARE = 0.6
"""Moves for each point of the board by which White should have caught up."""
BUFFER, BUFFER_SHARE = 5.0, 0.15
"""Points, and share of the advantage, that White must be behind the schedule."""


def black_advantage(game: GoGame) -> float:
    """Return the points that Black is ahead by from the start: by handicap stones (White moves first) and komi."""
    stones = handicap_stones(game.setup, game.moves)
    extra = STONE_POINTS[game.rules.scoring] * max(stones - 1, 0)
    return extra + FAIR_KOMI - float(game.position["komi"])


def may_resign(game: GoGame, color: int, lead: float) -> bool:
    """Whether a player whose moves look lost may resign.

    Args:
        game: as it stands before the move.
        color: who is to move.
        lead: points that `color` is ahead by.
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

"""Go as the search tree sees it: the functions of native.game for POSITION_DTYPE."""

import numpy as np

from native import game
from native.bits import U
from native.game import GOES_ON, OVER, OVER_UNSCORED
from native.go import board, rules
from native.go.board import BLACK, KO_SIMPLE, MAX_POINTS, PASS, POSITION_DTYPE, SCORING_AREA
from native.go.rules import MAX_HISTORY
from native.jit import kernel


@kernel
def outcome(pos, history):  # type: ignore[no-untyped-def]
    """Two passes end the game; under the simple ko rule a third repetition does so without a result.

    Area is counted as the board stands. Under territory scoring dead stones would have to be agreed, so the evaluator is
    asked; so it is when the history is full.
    """
    if pos.passes >= 2:
        if pos.scoring != SCORING_AREA:
            return OVER_UNSCORED, 0.0, 0.0
        score = float(rules.area_points(pos)) - float(pos.komi)
        if pos.side_to_move != BLACK:
            score = -score
        return OVER, (1.0 if score > 0.0 else (-1.0 if score < 0.0 else 0.0)), score
    if pos.ko_rule == KO_SIMPLE and rules.is_third_repetition(pos, history):
        return OVER, 0.0, 0.0
    if pos.history_length + 1 >= MAX_HISTORY:
        return OVER_UNSCORED, 0.0, 0.0
    return GOES_ON, 0.0, 0.0


@kernel
def position_key(pos, history):  # type: ignore[no-untyped-def]
    """See rules.position_key."""
    return rules.position_key(pos)

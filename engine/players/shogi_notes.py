"""What a game's record keeps of a decision."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from engine.games.shogi.notation import format_csa
from engine.games.shogi.records import RecordedMove

if TYPE_CHECKING:
    from engine.games.shogi.placement import Placement
    from engine.players.shogi_base import ShogiDecision

MATE_SCORE = 30_000
"""Centipawns of a mate, less its plies."""
LINE_MOVES = 8
"""Moves of the expected line that a record keeps."""


def note_of(decision: ShogiDecision, placement: Placement, seconds: float, scale: float) -> RecordedMove:
    """Return the move of a decision with its evaluation and the moves expected after it.

    Args:
        decision: of the side to move; it has a move.
        placement: the position before the move.
        seconds: time taken.
        scale: centipawns of a logit.
    """
    assert decision.move is not None
    lines = [line for line in decision.progress.lines if line.pv and line.pv[0] == decision.move]
    note = RecordedMove(decision.move, seconds, comment=decision.note)
    if lines and (decision.progress.playouts or lines[0].mate):
        note.score = score_of(lines[0].winrate, lines[0].mate, scale)
        words = []
        for move in lines[0].pv[:LINE_MOVES]:
            if placement.why_not(move) is not None:
                break  # another engine's line may be broken
            words.append(format_csa(move, placement))
            placement = placement.after(move)
        note.pv = " ".join(words[1:])
    return note


def score_of(winrate: float, mate: int | None, scale: float) -> int:
    """Return centipawns for the side to move.

    Args:
        winrate: in [0, 1].
        mate: plies to a mate, negative where it is the side to move that is mated; None or 0 for none.
        scale: centipawns of a logit.
    """
    if mate:
        return MATE_SCORE - mate if mate > 0 else -MATE_SCORE - mate
    bounded = min(max(winrate, 1e-9), 1.0 - 1e-9)
    score = scale * math.log(bounded / (1.0 - bounded))
    return round(min(max(score, -MATE_SCORE / 2), MATE_SCORE / 2))

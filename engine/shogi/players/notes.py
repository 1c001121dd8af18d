"""What a game's record keeps of a decision."""

from __future__ import annotations

from typing import TYPE_CHECKING

from yomi.engine.records import record_score
from yomi.engine.shogi.notation import csa_line
from yomi.engine.shogi.records.record import RecordedMove

if TYPE_CHECKING:
    from yomi.engine.players.request import Decision
    from yomi.engine.shogi.placement import Placement

LINE_MOVES = 8
"""Moves of the expected line that a record keeps."""


def note_of(decision: Decision, placement: Placement, seconds: float, scale: float) -> RecordedMove:
    """Return the move of a decision with its evaluation and the moves expected after it.

    Args:
        decision: of the side to move; it has a move.
        placement: the position before the move.
        seconds: time taken.
        scale: centipawns of a logit.
    """
    assert decision.move is not None
    lines = [move for move in decision.report.moves if move.move == decision.move]
    note = RecordedMove(decision.move, seconds, comment=decision.note)
    if lines and (decision.report.playouts or lines[0].mate):
        note.score = record_score(lines[0].winrate, lines[0].mate, scale)
        note.pv = " ".join(csa_line(lines[0].pv[:LINE_MOVES], placement)[1:])
    return note

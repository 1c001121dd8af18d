"""Results and opinions of the engine for the page and for programs."""

from __future__ import annotations

from typing import Any

from yomi.engine import play
from yomi.engine.color import COLOR_NAMES
from yomi.engine.go.game import score_text
from yomi.engine.play import Ended
from yomi.engine.shogi.game import describe
from yomi.library.position import Position
from yomi.library.values import Report
from yomi.web.setup import letter

MARKS = {play.RESIGNATION: "+R", play.TIME: "+T"}


def result_text(ended: Ended | None) -> str:
    """Return a result as in SGF, or as a sentence if SGF has no word; empty for a game that has not ended."""
    if ended is None:
        return ""
    if ended.ending == play.NO_RESULT:
        return "Void"
    if ended.score is not None:
        return score_text(ended.score)
    if ended.ending in MARKS:
        return letter(ended.winner) + MARKS[ended.ending]
    return f"{COLOR_NAMES[ended.winner]} wins: declaration" if ended.ending == play.DECLARATION else describe(ended)


def opinion(position: Position[Any], report: Report) -> dict[str, Any]:
    """Return a report for the page; play.js describes the fields (type Opinion)."""
    ownership = report.ownership
    return {
        "ply": len(position.moves),
        "visits": report.visits,
        "winrate": report.score.black.winrate,
        "score": report.score.black.lead,
        "candidates": [
            [move.move, move.visits, move.prior, move.winrate, move.score.lead, list(move.variation[:12])]
            for move in report.moves[:8]
        ],
        "ownership": None if ownership is None else [round(float(owner), 2) for owner in ownership.reshape(-1)],
    }

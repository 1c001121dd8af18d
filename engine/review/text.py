"""A review as text: the worst moves of each side, and how the sides played on the whole."""

from __future__ import annotations

from engine.color import BLACK, COLOR_NAMES, WHITE
from engine.review.model import Review, ReviewedMove

PV_MOVES = 6
"""Moves of a line in the table."""


def table(review: Review, count: int) -> str:
    """Return the worst `count` moves of each side as a table, with a line for each side above it."""
    blocks = []
    for color in (BLACK, WHITE):
        blocks.append("\n".join([_headline(review, color), *_rows(review, review.worst(color, count))]))
    return "\n\n".join(blocks)


def _headline(review: Review, color: int) -> str:
    summary, score = review.summary(color), review.score
    name = f" ({summary['name']})" if summary["name"] else ""
    if not summary["moves"]:
        return f"{COLOR_NAMES[color]}{name}: no moves"
    parts = [
        f"{summary['moves']} moves",
        f"{100 * summary['best']:.0f}% as the engine",
        f"mean loss {100 * summary['winrate_loss']:.2f}%",
    ]
    if summary["score_loss"] is not None:
        parts.append(f"{summary['score_loss']:.{score.digits + 1}f} {score.unit}")
    return f"{COLOR_NAMES[color]}{name}: {', '.join(parts)}"


def _rows(review: Review, moves: list[ReviewedMove]) -> list[str]:
    if not moves:
        return ["  no move that lost anything"]
    lines = [f"  {'move':>4}  {'played':7} {'loss':>6}  {review.score.unit:>7}  {'before':>6}  {'after':>6}  better"]
    for move in moves:
        score = "" if move.score_loss is None else f"{move.score_loss:.{review.score.digits}f}"
        lines.append(
            f"  {move.number:>4}  {move.text:7} {100 * move.winrate_loss:>5.1f}%  {score:>7}"
            f"  {100 * move.before.winrate_for(move.color):>5.1f}%  {100 * move.winrate_after:>5.1f}%"
            f"  {' '.join(move.pv_text[:PV_MOVES])}"
        )
    return lines

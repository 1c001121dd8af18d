"""The course of a game as a picture: Black's winrate over the moves, and the moves that lost most."""

from __future__ import annotations

from engine.color import BLACK, WHITE
from engine.plotting import figure, png
from engine.review.model import Review

WIDTH, HEIGHT = 10.0, 4.5
"""Inches."""
MARKED = 3
"""Moves of each side that are marked."""


def draw(review: Review, title: str) -> bytes:
    """Return a PNG of a review.

    Raises:
        PlotError: matplotlib is not there.
    """
    drawn = figure(WIDTH, HEIGHT)
    axes = drawn.add_subplot()
    turns = range(len(review.opinions))
    winrates = [100.0 * opinion.winrate_for(BLACK) for opinion in review.opinions]
    axes.plot(turns, winrates, color="black", linewidth=1.4)
    axes.fill_between(turns, winrates, 50.0, color="0.85")
    axes.axhline(50.0, color="0.5", linewidth=0.8)
    for color, marker, fill in ((BLACK, "v", "black"), (WHITE, "^", "white")):
        for move in review.worst(color, MARKED):
            axes.plot(move.number, winrates[move.number], marker, color=fill, markeredgecolor="black")
            axes.annotate(
                f"{move.number}", (move.number, winrates[move.number]), textcoords="offset points", xytext=(4, 4)
            )
    axes.set(xlim=(0, max(1, len(winrates) - 1)), ylim=(0, 100), xlabel="move", ylabel="Black's winrate (%)")
    axes.set_title(title if title.isascii() else title.encode("ascii", "replace").decode("ascii"))
    scores = [opinion.score_for(BLACK) for opinion in review.opinions]
    if all(score is not None for score in scores):
        limit = review.score.limit
        shown = [max(-limit, min(limit, score or 0.0)) for score in scores]
        other = axes.twinx()
        other.plot(turns, shown, color="tab:blue", linewidth=0.9, alpha=0.7)
        widest = 1.1 * max(1.0, *map(abs, shown))
        other.set(ylim=(-widest, widest), ylabel=review.score.axis)
    return png(drawn)

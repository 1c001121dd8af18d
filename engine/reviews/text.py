"""A review as a text table, and as a picture."""

from typing import Any

from yomi.engine.color import BLACK, WHITE
from yomi.engine.mistakes import CLASSES, PLURALS, shown_class
from yomi.engine.pictures import figure, picture
from yomi.engine.reviews.review import PHASES, Review, ReviewedMove
from yomi.engine.screen import ljust, rjust, width
from yomi.language import counted, is_japanese, tr

PV_MOVES = 6  # moves of a line in the table
WIDTHS, ALIGNED = (4, 7, 10, 6, 7, 6, 6), (rjust, ljust, ljust, rjust, rjust, rjust, rjust)  # of the table's columns
WIDTH, HEIGHT = 10.0, 4.5  # inches
CURVE, BARS = 60, "▁▂▃▄▅▆▇█"
MARKED = 3  # moves of each side that are marked in the picture


def table(review: Review, count: int) -> str:
    """Return a table of the worst `count` moves of each side, below a summary of that side."""
    blocks = []
    for color in (BLACK, WHITE):
        rows = _rows(review, review.worst(color, count)) if count else []
        blocks.append("\n".join([_headline(review, color), *rows]))
    return "\n\n".join(blocks)


def _headline(review: Review, color: int) -> str:
    summary = review.summary(color)
    side = review.side(color)
    if name := review.names.get(color):
        side = tr("{side} ({name})", side=side, name=name)
    if not summary["moves"]:
        return tr("{side}: no moves", side=side)
    lines = [tr("{side}: {facts}", side=side, facts=_facts(review, summary))]
    phases = [(name, review.summary(color, phase)) for phase, name in enumerate(PHASES)]
    played = [(name, found) for name, found in phases if found["moves"]]
    if len(played) > 1:
        lines += ["  " + tr("{side}: {facts}", side=tr(name), facts=_facts(review, found)) for name, found in played]
    return "\n".join(lines)


def _facts(review: Review, summary: dict[str, Any]) -> str:
    first, *others = review.losses(summary["winrate_loss"], summary["score_loss"], 1)
    parts = [
        counted("{n} move", "{n} moves", summary["moves"]),
        tr("{percent}% as the engine", percent=f"{100 * summary['best']:.0f}"),
        tr("mean loss {loss}", loss=first),
        *others,
    ]
    parts.append(tr("accuracy {percent}%", percent=f"{summary['accuracy']:.0f}"))
    for name in reversed(CLASSES):
        if count := summary["classes"][name]:
            kind = shown_class(name) if count == 1 or is_japanese() else PLURALS[name]
            parts.append(tr("{n} {kind}", n=count, kind=kind))
    if count := summary["missed_mates"]:
        parts.append(counted("{n} missed mate", "{n} missed mates", count))
    return tr(", ").join(parts)


def _rows(review: Review, moves: list[ReviewedMove]) -> list[str]:
    if not moves:
        return [tr("  no move that lost anything")]
    losses = [tr("loss"), tr(review.score.unit)]
    losses = losses[::-1] if review.has_points else losses
    titles = [tr("move"), tr("played"), tr("class"), *losses, tr("before"), tr("after")]
    rows = [titles, *(_cells(review, move) for move in moves)]
    widths = [max(least, *map(width, column)) for least, column in zip(WIDTHS, zip(*rows, strict=True), strict=True)]
    ends = [tr("better"), *(_better(review, move) for move in moves)]
    lines = []
    for row, end in zip(rows, ends, strict=True):
        cells = [align(cell, columns) for align, cell, columns in zip(ALIGNED, row, widths, strict=True)]
        number, played, kind, *numbers = cells
        lines.append(f"  {number}  {played} {kind} {'  '.join(numbers)}  {end}")
    return lines


def _cells(review: Review, move: ReviewedMove) -> list[str]:
    points = "" if move.score_loss is None else f"{move.score_loss:.{review.score.digits}f}"
    losses = [f"{100 * move.winrate_loss:.1f}%", points]
    return [
        str(move.number),
        review.played_text(move),
        shown_class(review.class_of(move)),
        *(losses[::-1] if review.has_points else losses),
        _value(review, move.before.winrate_for(move.color), move.before.score_for(move.color)),
        _value(review, move.winrate_after, move.settled.score_for(move.color)),
    ]


def _value(review: Review, winrate: float, score: float | None) -> str:
    """Return the value of a position as text: the winrate, and in Go also the lead."""
    percent = f"{100 * winrate:.1f}%"
    return f"{score:+.{review.score.digits}f} {percent:>6}" if review.has_points and score is not None else percent


def _better(review: Review, move: ReviewedMove) -> str:
    """Return the better line instead of a move, and a mate that it missed."""
    line = " ".join(review.better_line(move)[:PV_MOVES])
    return line if move.missed_mate is None else line + tr("  (missed mate in {plies})", plies=move.missed_mate)


def curve(review: Review) -> str:
    """Return Black's winrates over the game as a line of bars, at most CURVE characters long."""
    winrates = [opinion.winrate_for(BLACK) for opinion in review.opinions]
    width = min(CURVE, len(winrates))
    chosen = [winrates[place * (len(winrates) - 1) // max(1, width - 1)] for place in range(width)]
    return "".join(BARS[round(winrate * (len(BARS) - 1))] for winrate in chosen)


# -- as a picture --------------------------------------------------------------------------------------------------


def draw(review: Review, title: str) -> bytes:
    """Return a picture (PNG) of a review. Raises PlotError."""
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
    return picture(drawn, "png")

"""The tables of a match, with Ordo's columns: as text, Markdown and JSON."""

from __future__ import annotations

from dataclasses import asdict

from engine.matches.report import Report, Row

HEADINGS = ("#", "PLAYER", "RATING", "ERROR", "POINTS", "PLAYED", "(%)", "CFS(%)", "W", "D", "L", "D(%)")
MORE_HEADINGS = ("s/game", "s/move", "faults")


def _cells(row: Row) -> list[str]:
    score = row.score
    draws = 100.0 * score.draws / score.played if score.played else 0.0
    return [
        str(row.rank),
        row.player,
        f"{round(row.rating, 1) + 0.0:.1f}",
        f"{row.error:.1f}",
        f"{score.points:.1f}",
        str(score.played),
        f"{score.percent:.0f}",
        "---" if row.cfs is None else f"{row.cfs:.0f}",
        str(score.wins),
        str(score.draws),
        str(score.losses),
        f"{draws:.0f}",
        "-" if row.seconds is None else f"{row.seconds:.2f}",
        "-" if row.seconds_per_move is None else f"{row.seconds_per_move:.3f}",
        str(row.faults),
    ]


def _facts(report: Report) -> list[str]:
    lines = [
        f"First-player advantage = {round(report.advantage, 2) + 0.0:.2f} +/- {report.advantage_error:.2f}",
        f"Draw rate (equal opponents) = {report.draw_rate:.2f} % +/- {report.draw_error:.2f}",
    ]
    endings = ", ".join(f"{ending} {number}" for ending, number in report.endings if ending)
    games = f"{report.games} games" + (f", {report.duplicates} duplicates left out" if report.duplicates else "")
    return [*lines, f"{games}: {endings}" if endings else games]


def to_text(report: Report) -> str:
    """Return the tables as Ordo and cshogi print them, and what they do not have after that."""
    lines = [[*HEADINGS, *MORE_HEADINGS], *map(_cells, report.rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(lines[0]))]
    texts = []
    for line in lines:
        cells = [cell.rjust(width) for cell, width in zip(line, widths, strict=True)]
        cells[1] = f"{line[1].ljust(widths[1])} :"
        texts.append("  ".join(cells).replace("  ", " ", 1))
    pairs = ([f"{what}: {score}" for what, score in pair.by_color()] for pair in report.pairs)
    return "\n\n".join("\n".join(part) for part in (texts, _facts(report), *pairs)) + "\n"


def to_markdown(report: Report) -> str:
    """Return the tables in Markdown."""
    headings = [*HEADINGS, *MORE_HEADINGS]
    lines = [f"| {' | '.join(headings)} |", f"|{'|'.join('---' if h == 'PLAYER' else '---:' for h in headings)}|"]
    lines += [f"| {' | '.join(map(_escaped, _cells(row)))} |" for row in report.rows]
    lines += ["", *(f"- {fact}" for fact in _facts(report)), ""]
    lines += ["| pair | both colors | Black vs White | first as Black | first as White |", "|---|---:|---:|---:|---:|"]
    for pair in report.pairs:
        scores = pair.by_color()[:4]  # the others are those of the second player
        cells = [scores[0][0], *(str(score) for _, score in scores)]
        lines.append(f"| {' | '.join(map(_escaped, cells))} |")
    return "\n".join(lines) + "\n"


def _escaped(cell: str) -> str:
    return cell.replace("|", "\\|")


def to_json(report: Report) -> dict[str, object]:
    """Return everything as JSON has it."""
    return asdict(report)

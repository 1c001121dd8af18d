"""A report as HTML for notebooks: a table of moves and a bar for the visits of each."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from yomi.engine.pictures import element, escaped

if TYPE_CHECKING:
    from yomi.library.values import MoveReport, Report

ROWS = 10
"""Moves in the table."""
LINE_MOVES = 8
"""Moves of a variation in the table."""
BAR_WIDTH, BAR_HEIGHT = 120, 12
BEST, OTHER = "#2563eb", "#93b4f5"


def report_html(report: Report) -> str:
    """Return a table of the best moves; the bars show their shares of the visits."""
    has_lead = report.score.lead is not None
    heads = ["move", "winrate", *(["lead"] if has_lead else []), "prior", "visits", "", "variation"]
    head = element("tr", "".join(element("th", text) if text else "<th></th>" for text in heads))
    most = max((move.visits for move in report.moves), default=0)
    rows = "".join(element("tr", "".join(_cells(move, most, has_lead))) for move in report.moves[:ROWS])
    title = element("caption", escaped(f"{report.score}, {report.visits} visits, {report.seconds:.1f} s"))
    return element("table", f"{title}<thead>{head}</thead><tbody>{rows}</tbody>")


def _cells(move: MoveReport, most: int, has_lead: bool) -> Iterator[str]:
    yield element("td", escaped(move.move))
    yield element("td", f"{move.winrate:.1%}" if move.score.mate is None else f"mate {move.score.mate:+d}")
    if has_lead:
        yield element("td", f"{move.score.lead:+.1f}")
    yield element("td", f"{move.prior:.1%}")
    yield element("td", str(move.visits))
    width = BAR_WIDTH * move.visits / max(most, 1)
    bar = element("rect", width=width, height=BAR_HEIGHT, fill=BEST if move.visits == most else OTHER)
    picture = element(
        "svg", bar, xmlns="http://www.w3.org/2000/svg", width=BAR_WIDTH, height=BAR_HEIGHT, role="img",
        aria_label=f"{move.visits} visits",
    )  # fmt: skip
    yield element("td", picture)
    yield element("td", escaped(" ".join(move.variation[:LINE_MOVES])))

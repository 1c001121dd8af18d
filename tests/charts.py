"""Charts as SVG text: bars of ratios, and shares with their intervals. The same data always gives the same text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from yomi.engine.pictures import SANS, element, escaped, number

PAPER, TEXT, FAINT, FILL = "#ffffff", "#1f2937", "#d1d5db", "#1d4ed8"
WIDTH, LABELS, RIGHT = 1060.0, 560.0, 160.0
"""Width of a chart, of its labels, and of the texts at the end of the lines."""
LINE, HEAD, FOOT = 24.0, 44.0, 28.0
SIZE = 12.0
MAX_LABEL = 84
"""Characters of a label; longer labels are cut."""


class Bar(NamedTuple):
    label: str
    value: float
    text: str


class Interval(NamedTuple):
    """A share from 0 to 1 and the ends of its interval."""

    label: str
    share: float
    low: float
    high: float


def bars(title: str, rows: Sequence[Bar]) -> str:
    """Return a chart of values above 0, with a line at 1."""
    top = max((row.value for row in rows), default=1.0)
    step = 2 if top > 5 else 1
    marks = [float(mark) for mark in range(0, int(top) + step, step)]
    limit = max(top, marks[-1])
    body = _grid([(mark / limit, f"{mark:g}×") for mark in marks], len(rows), 1 / limit)
    for index, row in enumerate(rows):
        y = HEAD + LINE * index
        body += [
            _label(row.label, y),
            element("rect", x=LABELS, y=y + 5, width=_span(row.value / limit), height=LINE - 10, fill=FILL),
            _text(WIDTH - RIGHT + 10, y + LINE / 2, f"{row.value:.1f}× ({row.text})", "start"),
        ]
    return _chart(title, len(rows), body)


def intervals(title: str, rows: Sequence[Interval]) -> str:
    """Return a chart of shares with whiskers, and a line at one half."""
    body = _grid([(percent / 100, f"{percent}%") for percent in (0, 25, 50, 75, 100)], len(rows), 0.5)
    for index, row in enumerate(rows):
        y = HEAD + LINE * (index + 0.5)
        low, high = (LABELS + _span(min(max(end, 0.0), 1.0)) for end in (row.low, row.high))
        body += [
            _label(row.label, y - LINE / 2),
            element("line", x1=low, x2=high, y1=y, y2=y, stroke=FILL, stroke_width=2),
            element("circle", cx=LABELS + _span(row.share), cy=y, r=4.5, fill=FILL),
            _text(WIDTH - RIGHT + 10, y, f"{row.share:.0%}", "start"),
        ]
    return _chart(title, len(rows), body)


def _span(share: float) -> float:
    return share * (WIDTH - LABELS - RIGHT)


def _grid(marks: Sequence[tuple[float, str]], lines: int, strong: float) -> list[str]:
    bottom = HEAD + LINE * lines
    body = []
    for share, text in marks:
        x = LABELS + _span(share)
        body += [
            element("line", x1=x, x2=x, y1=HEAD, y2=bottom, stroke=FAINT),
            _text(x, bottom + FOOT / 2, text, "middle"),
        ]
    x = LABELS + _span(strong)
    return [*body, element("line", x1=x, x2=x, y1=HEAD, y2=bottom, stroke=TEXT, stroke_dasharray="4 3")]


def _label(text: str, y: float) -> str:
    text = text if len(text) <= MAX_LABEL else text[: MAX_LABEL - 1] + "…"
    return _text(LABELS - 10, y + LINE / 2, text, "end")


def _text(x: float, y: float, text: str, anchor: str, **attributes: object) -> str:
    return element(
        "text", escaped(text), x=x, y=y + 0.35 * SIZE, font_size=SIZE, text_anchor=anchor, fill=TEXT, **attributes
    )


def _chart(title: str, lines: int, body: Sequence[str]) -> str:
    height = HEAD + LINE * lines + FOOT
    content = [
        element("title", escaped(title)),
        element("rect", width=WIDTH, height=height, fill=PAPER),
        _text(WIDTH / 2, HEAD / 2, title, "middle", font_weight="bold"),
        *body,
    ]
    return (
        element(
            "svg",
            "\n".join(["", *content, ""]),
            xmlns="http://www.w3.org/2000/svg",
            viewBox=f"0 0 {number(WIDTH)} {number(height)}",
            width=WIDTH,
            height=height,
            role="img",
            aria_label=title,
            font_family=SANS,
        )
        + "\n"
    )

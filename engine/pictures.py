"""Pictures: boards as SVG text, and plots by matplotlib, which the extra `plot` installs.

An SVG sheet has its own background, for white and dark pages. It has no ids, styles or scripts, so that a page may
contain many sheets. The same data always gives the same text.
"""

from __future__ import annotations

import io
import math
import re
from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from yomi.errors import LineError, printable
from yomi.nets.files import write_atomically
from yomi.nets.installation import missing_line

if TYPE_CHECKING:
    from numpy.typing import NDArray

# A number for each point of a board: rows from the top, each from the left
Grid: TypeAlias = "Sequence[Sequence[float]] | NDArray[Any]"

# board; lines and text on it
WOOD, INK = "#e6bf76", "#3b2a14"
# Colors of the least and the greatest value, red and blue: most color-blind readers can tell them apart. They are
# opaque, because blue mixed with the color of wood is gray.
WARM, COLD = ((0xFB, 0xD8, 0xCE), (0xC8, 0x1E, 0x1E)), ((0xD5, 0xE5, 0xF7), (0x1D, 0x4E, 0xD8))
# last move, if a number hides its ring
MARK = "#e11d2e"

SANS = "system-ui, 'Noto Sans', sans-serif"

DPI = 120
_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_BASELINE = 0.35  # half the height of digits as a share of the font size; not all readers know dominant-baseline


def escaped(text: object) -> str:
    """Return text for an element or a quoted attribute, with U+FFFD for characters that XML forbids."""
    return escape(_NOT_XML.sub("\ufffd", printable(text, keep="\n")), quote=True)


def number(value: float) -> str:
    """Return a coordinate with at most two decimals."""
    text = f"{value:.2f}".rstrip("0").rstrip(".")
    return "0" if text == "-0" else text


def element(name: str, content: str = "", **attributes: object) -> str:
    """Return an element with elements or escaped text inside it.

    Attributes keep their order. In their names `_` stands for `-`, and is dropped after Python keywords. None is
    omitted.
    """
    words = [name]
    for key, value in attributes.items():
        if value is not None:
            text = number(value) if isinstance(value, int | float) else escaped(value)
            words.append(f'{key.rstrip("_").replace("_", "-")}="{text}"')
    return f"<{' '.join(words)}>{content}</{name}>" if content else f"<{' '.join(words)}/>"


def text_at(x: float, y: float, text: object, size: float, fill: str = INK, **attributes: object) -> str:
    return element(
        "text",
        escaped(text),
        x=x,
        y=y + _BASELINE * size,
        font_size=size,
        text_anchor="middle",
        fill=fill,
        **attributes,
    )


def sheet(width: float, height: float, title: str, body: Sequence[str], font: str = SANS) -> str:
    """Return a whole picture on wood. Screen readers read its title; a page may resize it by CSS."""
    content = [
        element("title", escaped(title)),
        element("rect", width=width, height=height, rx=6, fill=WOOD),
        *body,
    ]
    return element(
        "svg",
        "\n".join(["", *content, ""]),
        xmlns="http://www.w3.org/2000/svg",
        viewBox=f"0 0 {number(width)} {number(height)}",
        width=width,
        height=height,
        role="img",
        aria_label=title,
        font_family=font,
    )


def rows_of(grid: Grid, width: int, height: int, name: str) -> list[list[float]]:
    """Return a grid as lists of numbers. Raises ValueError if it does not have the board's size."""
    rows = [[float(value) for value in row] for row in grid]
    if len(rows) != height or any(len(row) != width for row in rows):
        widths = sorted({len(row) for row in rows})
        raise ValueError(f"{name} of {len(rows)} rows of {widths} values: expected {height} rows of {width}")
    return rows


def heat_color(value: float) -> str:
    """Return the color of a value from -1 (red) to 1 (blue). A square root makes small values visible."""
    share = strength(value) ** 0.5
    least, greatest = COLD if value > 0 else WARM
    mixed = (round(low + share * (high - low)) for low, high in zip(least, greatest, strict=True))
    return "#" + "".join(f"{part:02x}" for part in mixed)


def strength(value: float) -> float:
    """Return the magnitude of a value from 0 to 1. It is 0 if the value is not a number."""
    return min(1.0, abs(value)) if math.isfinite(value) else 0.0


class PlotError(LineError):
    pass


def figure(width: float, height: float) -> Any:
    """Return an empty figure; sizes are in inches. Raises PlotError if matplotlib is not installed."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise PlotError(missing_line("matplotlib", "a picture")) from None
    return Figure(figsize=(width, height), dpi=DPI, layout="constrained")


def check(path: Path | None = None) -> None:
    """Check before a long computation that a picture can be made. Raises PlotError.

    `path` is the picture's file; without a suffix it becomes a PNG.
    """
    forms = figure(1.0, 1.0).canvas.get_supported_filetypes()
    suffix = "" if path is None else path.suffix
    if suffix and suffix[1:].lower() not in forms:
        raise PlotError(f"unknown format {suffix}, expected one of {' '.join(f'.{form}' for form in sorted(forms))}")


def save(drawn: Any, path: Path) -> None:
    """Write a figure in the format of the file's suffix. Raises PlotError."""
    try:
        write_atomically(path if path.suffix else path.with_suffix(".png"), picture(drawn, path.suffix[1:] or "png"))
    except (OSError, ValueError) as error:
        raise PlotError(getattr(error, "strerror", None) or " ".join(str(error).split())) from None


def picture(drawn: Any, form: str) -> bytes:
    """Return a figure as the content of a file of a format such as png."""
    data = io.BytesIO()
    drawn.savefig(data, format=form)
    return data.getvalue()

"""Figures and files of matplotlib, which the extra `plot` installs."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

from yomi.nets.errors import LineError
from yomi.nets.installation import missing_line

DPI = 120


class PlotError(LineError):
    """A plot that cannot be made; the message is one line."""


def figure(width: float, height: float) -> Any:
    """Return an empty figure in inches.

    Raises:
        PlotError: matplotlib is not there.
    """
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise PlotError(missing_line("matplotlib", "a picture")) from None
    return Figure(figsize=(width, height), dpi=DPI, layout="constrained")


def check(path: Path | None = None) -> None:
    """See that a picture can be made, before anything that takes long.

    Args:
        path: where it will go; one without an ending becomes a PNG. None where its form is no question.

    Raises:
        PlotError: matplotlib is not there, or does not know the form.
    """
    forms = figure(1.0, 1.0).canvas.get_supported_filetypes()
    suffix = "" if path is None else path.suffix
    if suffix and suffix[1:].lower() not in forms:
        raise PlotError(f"unknown form {suffix}, expected one of {' '.join(f'.{form}' for form in sorted(forms))}")


def save(drawn: Any, path: Path) -> None:
    """Write a figure in the form that the file's name tells.

    Raises:
        PlotError: the form is not known, or the file cannot be written.
    """
    try:
        drawn.savefig(path)
    except (OSError, ValueError) as error:
        raise PlotError(" ".join(str(error).split())) from None


def png(drawn: Any) -> bytes:
    """Return a figure as a PNG file."""
    data = io.BytesIO()
    drawn.savefig(data, format="png")
    return data.getvalue()

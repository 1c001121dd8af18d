"""Plots of matches. matplotlib draws them; it is installed with the extra `plot`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from engine.matches.table import Report


class PlotError(Exception):
    """A plot that cannot be made; the message is one line."""


def figure(width: float, height: float) -> Any:
    """Return an empty figure in inches.

    Raises:
        PlotError: matplotlib is not there.
    """
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise PlotError("matplotlib is not installed: pip install 'yomi-engine[plot]'") from None
    return Figure(figsize=(width, height), layout="constrained")


def save(drawn: Any, path: Path) -> None:
    """Write a figure in the form that the file's name tells.

    Raises:
        PlotError: the form is not known, or the file cannot be written.
    """
    try:
        drawn.savefig(path, dpi=120)
    except (OSError, ValueError) as error:
        raise PlotError(" ".join(str(error).split())) from None


def plot_ratings(report: Report, path: Path) -> None:
    """Draw the ratings with their 95% intervals.

    Raises:
        PlotError: see `figure` and `save`.
    """
    rows = report.rows[::-1]
    drawn = figure(7.0, 1.2 + 0.4 * len(rows))
    axes = drawn.add_subplot()
    axes.errorbar([row.rating for row in rows], range(len(rows)), xerr=[row.error for row in rows], fmt="o", capsize=4)
    axes.set_yticks(range(len(rows)), [row.player for row in rows])
    axes.set_ylim(-0.6, len(rows) - 0.4)
    axes.set_xlabel("Elo (mean 0, 95% intervals)")
    axes.set_title(f"{report.games} games")
    axes.grid(axis="x", alpha=0.3)
    save(drawn, path)


def plot_boxes(values: Mapping[str, Sequence[float]], label: str, path: Path) -> None:
    """Draw a box plot.

    Args:
        values: by name.
        label: of the axis.
        path: of the file.

    Raises:
        PlotError: see `figure` and `save`.
    """
    drawn = figure(1.5 + 1.5 * len(values), 4.5)
    axes = drawn.add_subplot()
    axes.boxplot(list(values.values()), showmeans=True)
    axes.set_xticks(range(1, len(values) + 1), list(values), rotation=15)
    axes.set_yscale("log")
    axes.set_ylabel(label)
    axes.grid(axis="y", alpha=0.3)
    save(drawn, path)

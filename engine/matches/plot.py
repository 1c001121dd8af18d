"""Plots of matches."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from engine.plotting import figure, save

if TYPE_CHECKING:
    from engine.matches.report import Report


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

"""What a training leaves for people: tables of losses by step (CSV), and their curves as a picture."""

from __future__ import annotations

import csv
import importlib.util
from collections.abc import Mapping
from pathlib import Path

from nets.errors import NetworkError
from nets.files import naming


class CsvLog:
    """A table that grows by a row at a time; rows from a step on are dropped when training goes back to it."""

    def __init__(self, path: Path, names: tuple[str, ...], step: int) -> None:
        """Begin the table, or go on with it behind `step`."""
        self.path = path
        self.names = ("step", *names)
        rows = [row for row in read_log(path) if float(row["step"]) <= step] if path.exists() else []
        with naming(path), path.open("w", newline="", encoding="utf-8") as stream:
            writer = csv.DictWriter(stream, self.names, extrasaction="ignore")
            writer.writeheader()
            writer.writerows(rows)

    def add(self, step: int, values: Mapping[str, float]) -> None:
        """Append a row."""
        with naming(self.path), self.path.open("a", newline="", encoding="utf-8") as stream:
            row = {name: f"{value:.6g}" for name, value in values.items() if name in self.names}
            csv.DictWriter(stream, self.names).writerow({"step": step, **row})


def read_log(path: Path) -> list[dict[str, str]]:
    """Return the rows of a table.

    Raises:
        NetworkError: it is not such a table.
    """
    rows = []
    with path.open(newline="", encoding="utf-8") as stream:
        try:
            for row in csv.DictReader(stream):
                if not row.get("step") or None in row:
                    raise ValueError("a row that does not fit the first line")
                for text in row.values():
                    float(text or 0.0)
                rows.append(row)
        except (ValueError, csv.Error) as error:
            raise NetworkError(f"{path}: {error} found, expected a table of losses by step (or no file)") from None
    return rows


def can_plot() -> bool:
    """Whether matplotlib is installed (extra `plot`)."""
    return importlib.util.find_spec("matplotlib") is not None


def plot_curves(train: Path, test: Path, picture: Path) -> None:
    """Draw the columns of both tables over the steps; needs matplotlib."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    tables = [(label, read_log(path)) for label, path in (("train", train), ("test", test)) if path.exists()]
    names = [(label, rows, name) for label, rows in tables if rows for name in rows[0] if name != "step"]
    figure = Figure(figsize=(12.0, 3.0 * ((len(names) + 2) // 3)), layout="constrained")
    FigureCanvasAgg(figure)
    for number, (label, rows, name) in enumerate(names, 1):
        axes = figure.add_subplot((len(names) + 2) // 3, 3, number)
        known = [(float(row["step"]), float(row[name])) for row in rows if row[name]]
        axes.plot([x for x, _ in known], [y for _, y in known])
        axes.set_title(f"{label}: {name}")
    with naming(picture):
        figure.savefig(picture)

"""Learning rates by step, early stopping, tables of losses (CSV) and their curves. PyTorch is not needed."""

import csv
import importlib.util
import io
import logging
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from yomi.nets.errors import NetworkError
from yomi.nets.files import append_lines, write_atomically
from yomi.nets.text import csv_lines
from yomi.nets.training.config import TrainingConfig


def learning_rate(config: TrainingConfig, step: int) -> float:
    """Return the learning rate of a step, counted from 0."""
    rate = config.learning_rate
    if config.schedule == "cosine":
        progress = min(1.0, step / max(1, config.steps - 1))
        rate *= config.final + (1.0 - config.final) * 0.5 * (1.0 + math.cos(math.pi * progress))
    elif config.schedule == "steps":
        rate *= config.factor ** sum(step >= milestone for milestone in config.milestones)
    if step < config.warmup:
        rate *= (step + 1) / config.warmup
    return rate


@dataclass
class EarlyStopping:
    """Stops a training after `patience` + 1 tests in a row without a lower loss."""

    # Keras counted like this when COSUMI's networks were trained: with a patience of 0 the first failure stops.
    patience: int  # -1: never stops
    best: float = math.inf
    failures: int = 0

    def update(self, loss: float) -> bool:
        """Record the loss of a test. Return whether it is the best so far."""
        improved = loss < self.best
        self.failures = 0 if improved else self.failures + 1
        self.best = min(self.best, loss)
        return improved

    @property
    def stops(self) -> bool:
        return self.patience >= 0 and self.failures > self.patience


_log = logging.getLogger("yomi.training")


class CsvLog:
    """A table to which rows are appended. If training resumes from an earlier step, later rows are dropped."""

    def __init__(self, path: Path, names: tuple[str, ...], step: int) -> None:
        """Begin a table, or continue it after `step`."""
        self.path = path
        self.names = ("step", *names)
        rows = [row for row in read_log(path) if float(row.get("step", "inf")) <= step] if path.exists() else []
        lines = csv_lines([self.names, *([row.get(name, "") for name in self.names] for row in rows)])
        write_atomically(path, lines.encode())

    def add(self, step: int, values: Mapping[str, float]) -> None:
        row = {name: f"{value:.6g}" for name, value in values.items()} | {"step": str(step)}
        append_lines(self.path, csv_lines([[row.get(name, "") for name in self.names]]))


def read_log(path: Path) -> list[dict[str, str]]:
    """Return the rows of a table. Damaged rows, as after a power cut, are skipped with a warning.

    Raises:
        NetworkError: the file is not such a table.
    """
    with path.open(newline="", encoding="utf-8", errors="replace") as stream:
        lines = list(stream)
    found = csv.DictReader((line for line in lines if "\0" not in line), restval="?")
    try:
        rows = [row for row in found if "step" in row and all(_is_number(name, row[name]) for name in row)]
    except csv.Error as error:
        raise NetworkError(f"{path}: {error} found, expected a table of losses by step (or no file)") from None
    if damaged := max(0, len(lines) - 1 - len(rows)):
        _log.warning("%s: %d damaged rows left out", path, damaged)
    return rows


def _is_number(name: str | None, text: str | list[str]) -> bool:
    """Return whether a field of a row is valid: a number or empty; a step must be a finite number."""
    if name is None or isinstance(text, list):
        return False
    try:
        return math.isfinite(float(text)) if name == "step" else text == "" or isinstance(float(text), float)
    except ValueError:
        return False


def can_plot() -> bool:
    return importlib.util.find_spec("matplotlib") is not None


def plot_curves(train: Path, test: Path, picture: Path) -> None:
    """Plot the numeric columns of both tables over the steps. Needs matplotlib."""
    from matplotlib.figure import Figure

    curves: list[tuple[str, list[tuple[float, float]]]] = []
    for label, path in (("train", train), ("test", test)):
        rows = read_log(path) if path.exists() else []
        for name in dict.fromkeys(name for row in rows for name in row if name != "step"):
            known = [(float(row["step"]), float(row[name])) for row in rows if row.get(name)]
            if any(math.isfinite(value) for _, value in known):
                curves.append((f"{label}: {name}", known))
    columns = min(3, len(curves))
    if not curves:
        return
    height = -(-len(curves) // columns)
    figure = Figure(figsize=(4.0 * columns, 3.0 * height), layout="constrained")
    for number, (title, known) in enumerate(curves, 1):
        axes = figure.add_subplot(height, columns, number)
        axes.plot([x for x, _ in known], [y for _, y in known], marker="." if len(known) < 20 else None)
        axes.set_title(title)
    content = io.BytesIO()
    figure.savefig(content)
    write_atomically(picture, content.getvalue())


def tensorboard_writer(folder: Path) -> Any:
    """Return PyTorch's SummaryWriter for a folder, which it creates. The package tensorboard must be installed."""
    from torch.utils.tensorboard import SummaryWriter

    return SummaryWriter(str(folder))

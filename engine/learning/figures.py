"""A run's events as plain numbers: for a caller's function, for TensorBoard, and to compare runs."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from yomi.engine.learning.journal import NAME, Event, Journal, Progress

Figures = dict[str, float]
COUNTS = ("games", "rows", "moves", "evaluations", "seconds")  # of an event of self-play


def figures_of(event: Event) -> Figures:
    """Return an event's numbers by names such as `loss/policy`; empty for other events."""
    name = event["event"]
    if name == "training":
        losses = {f"loss/{key}": value for key, value in event["losses"].items()}
        return {**losses, **{f"training/{key}": event[key] for key in ("steps", "seconds", "window")}}
    if name == "selfplay":
        return {f"selfplay/{key}": event[key] for key in (*COUNTS, "lead") if key in event}
    if name in ("gate", "match"):
        games = event["wins"] + event["draws"] + event["losses"]
        share = (event["wins"] + 0.5 * event["draws"]) / games if games else 0.0
        return {f"{name}/{event['against']}": share}
    return {}


class GenerationFigures:
    """Collects the figures of one generation. Threads may call at the same time."""

    def __init__(self) -> None:
        self._found: Figures = {}
        self._lock = threading.Lock()

    def add(self, event: Event) -> None:
        with self._lock:
            for name, value in figures_of(event).items():
                is_sum = name.partition("/")[2] in COUNTS and name.startswith("selfplay/")
                self._found[name] = value + (self._found.get(name, 0.0) if is_sum else 0.0)

    def take(self, generation: int) -> Figures:
        """Return the figures since the last call: self-play's counts added up, and the newest of all others."""
        with self._lock:
            found, self._found = self._found, {}
        return {"generation": generation, **found}


class TensorBoard:
    """Writes the figures of a run as TensorBoard's files. The step is the generation."""

    def __init__(self, writer: Any) -> None:
        """Write with a SummaryWriter of torch.utils.tensorboard."""
        self._writer = writer

    def add(self, event: Event) -> None:
        for name, value in figures_of(event).items():
            self._writer.add_scalar(name, value, event["generation"], event["time"])

    def close(self) -> None:
        self._writer.close()


def comparison_text(folders: Sequence[Path], names: Sequence[str]) -> str:
    """Return a table of runs side by side: progress, speed, strength, losses, and the settings that differ."""
    runs = [Progress(Journal(folder / NAME).read()) for folder in folders]
    differing = {
        name: values for name, values in _rows([_settings(run) for run in runs]).items() if len(set(values)) > 1
    }
    rows = _rows([_column(run) for run in runs]) | differing
    table = [["", *names], *([name, *values] for name, values in rows.items())]
    widths = [max(len(line[column]) for line in table) for column in range(len(table[0]))]
    lines = ("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in table)
    return "\n".join(lines) + "\n"


def _rows(columns: Sequence[Mapping[str, str]]) -> dict[str, list[str]]:
    """Return the rows of a table by name, from its columns."""
    return {name: [column.get(name, "") for column in columns] for column in columns for name in column}


def _column(run: Progress) -> dict[str, str]:
    """Return a run's column of the table by the name of the row."""
    games, evaluations, seconds = (run.total("selfplay", name) for name in ("games", "evaluations", "seconds"))
    found = {
        "hours": f"{run.seconds / 3600:.2f}",
        "generation": str(run.generation),
        **{name: f"{run.total('selfplay', name):,}" for name in ("games", "rows", "evaluations")},
        "steps": f"{run.total('training', 'steps'):,}",
        **({"games/s": f"{games / seconds:.2f}", "evaluations/s": f"{evaluations / seconds:,.0f}"} if seconds else {}),
    }
    promoted = [name for name, event in run.networks.items() if event["promoted"]]
    if promoted and (elo := run.ratings.over(promoted[-1])):
        found[f"Elo over {run.ratings.anchor}"] = str(elo)
    for event in run.of("training")[-1:]:
        found |= {f"loss {name}": f"{value:.4f}" for name, value in event["losses"].items()}
    return found


def _settings(run: Progress) -> dict[str, str]:
    """Return the settings of the last start as text; a table's keys are TABLE.KEY."""

    def flat(prefix: str, table: Mapping[str, Any]) -> dict[str, str]:
        found: dict[str, str] = {}
        for name, value in table.items():
            found |= flat(f"{prefix}{name}.", value) if isinstance(value, dict) else {f"{prefix}{name}": str(value)}
        return found

    return flat("", run.of("start")[-1]["settings"]) if run.of("start") else {}

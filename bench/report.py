"""What every benchmark prints and writes: the facts of the machine, the command, a table, a JSON file."""

import json
import os
import platform
import sys
from collections.abc import Iterable, Mapping, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any, TextIO

Row = Mapping[str, Any]
"""One line of a table: column name -> value. Rows of one table have the same columns."""

PACKAGES = ("numpy", "numba", "onnxruntime", "onnxruntime-gpu", "tensorrt")
"""Packages whose versions a result depends on; absent ones are left out of the facts."""


def machine_facts() -> dict[str, str | int]:
    """Return what a result depends on: processor, usable cores, system, Python and package versions."""
    facts: dict[str, str | int] = {
        "cpu": processor_name(),
        "cores": usable_cores(),
        "system": f"{platform.system()} {platform.release()} {platform.machine()}",
        "python": platform.python_version(),
    }
    for package in PACKAGES:
        try:
            facts[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    return facts


def processor_name() -> str:
    """Return the processor's name as the system gives it."""
    try:
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:  # not Linux
        pass
    return platform.processor() or platform.machine()


def usable_cores() -> int:
    """Return the number of cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def format_cell(value: Any) -> str:
    """Return a cell's text: numbers with separators and three or more significant digits, None as a dash."""
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        size = abs(value)
        return f"{value:,.0f}" if size >= 1000 else f"{value:.1f}" if size >= 100 else f"{value:.3f}"
    return str(value)


def format_table(rows: Sequence[Row]) -> str:
    """Return `rows` as aligned text, one line each below the column names; text to the left, numbers to the right."""
    if not rows:
        return "(no results)"
    columns = list(rows[0])
    cells = [[format_cell(row[column]) for column in columns] for row in rows]
    widths = [max(len(column), *(len(line[i]) for line in cells)) for i, column in enumerate(columns)]
    left = [all(isinstance(row[column], str) for row in rows) for column in columns]

    def line(texts: Iterable[str]) -> str:
        parts = (t.ljust(w) if is_left else t.rjust(w) for t, w, is_left in zip(texts, widths, left, strict=True))
        return "  ".join(parts).rstrip()

    return "\n".join([line(columns), line("-" * w for w in widths), *map(line, cells)])


def print_table(rows: Sequence[Row], *, file: TextIO | None = None) -> None:
    """Print `rows` as a table (standard output unless told otherwise)."""
    print(format_table(rows), file=file)


def print_facts(*, file: TextIO | None = None) -> None:
    """Print the facts of the machine on one line."""
    print("; ".join(f"{name} {value}" for name, value in machine_facts().items()), file=file)


def write_json(path: str | Path, name: str, rows: Sequence[Row], *, command: Sequence[str] | None = None) -> None:
    """Write the results of benchmark `name` to `path` with the machine's facts and the command that made them.

    Raises:
        OSError: when the file cannot be written.
    """
    document = {
        "benchmark": name,
        "command": list(sys.argv if command is None else command),
        "machine": machine_facts(),
        "results": [dict(row) for row in rows],
    }
    Path(path).write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")

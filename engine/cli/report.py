"""What commands print and write: the facts of the machine, the command, a table, a JSON file, a picture."""

import json
import platform
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from yomi.engine.cli.errors import CliError
from yomi.engine.machine import package_versions, processor_name, usable_cores
from yomi.engine.records import printable

Row = Mapping[str, Any]
"""One line of a table: column name -> value. Rows of one table have the same columns."""


def machine_facts() -> dict[str, str | int]:
    """Return what a result depends on: processor, usable cores, system, Python and package versions."""
    facts: dict[str, str | int] = {
        "cpu": processor_name(),
        "cores": usable_cores(),
        "system": f"{platform.system()} {platform.release()} {platform.machine()}",
        "python": platform.python_version(),
    }
    return facts | package_versions()


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
    return printable(value)


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


def print_table(rows: Sequence[Row]) -> None:
    """Print `rows` as a table."""
    print(format_table(rows))


def print_facts() -> None:
    """Print the facts of the machine on one line."""
    print("; ".join(f"{name} {value}" for name, value in machine_facts().items()))


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


def plot_check(path: Path | None = None) -> None:
    """Complain before anything is done where nothing can be drawn.

    Args:
        path: of the picture, where the user chose it.

    Raises:
        CliError: matplotlib is not installed, or the name's ending tells no form.
    """
    from yomi.engine.pictures import PlotError, check

    try:
        check(path)
    except PlotError as error:
        raise CliError(f"--plot{'' if path is None else f' {path}'}: {error}") from None

"""The output of commands: messages to the user, log file, tables, facts about the machine, JSON files."""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from yomi.engine.cli.parser import CliError
from yomi.engine.machine import package_versions, processor_name, usable_cores
from yomi.errors import printable, reraised

if TYPE_CHECKING:
    from yomi.engine.options import Options

LINE_ENDS = "\n\t"


def say(line: str) -> None:
    """Print a line on stderr. Control characters in it are escaped."""
    print(f"yomi: {printable(line, keep=LINE_ENDS)}", file=sys.stderr, flush=True)


def echo(text: str) -> None:
    """Print text on stdout. Control characters in it are escaped."""
    print(printable(text, keep=LINE_ENDS), flush=True)


class _TerminalFormatter(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        return printable(super().format(record), keep=LINE_ENDS)


class LogFile(logging.FileHandler):
    """The log file. Its first failed write is reported; later records are still written if possible."""

    has_failed = False

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802  (logging's name)
        error = sys.exc_info()[1]
        if not isinstance(error, OSError):
            super().handleError(record)
        elif not self.has_failed:
            self.has_failed = True
            say(f"warning: cannot write {self.baseFilename}: {error.strerror}; yomi continues without it")


def set_up_logs(options: Options) -> None:
    """Send warnings and errors to stderr, and records of the chosen level to the log file."""
    root = logging.getLogger("yomi")
    root.handlers.clear()
    root.setLevel(logging.DEBUG)
    console = logging.StreamHandler(sys.stderr)
    console.setLevel(logging.WARNING)
    console.setFormatter(_TerminalFormatter("yomi: %(levelname)s: %(message)s"))
    root.addHandler(console)
    if options.log_file is not None:
        with reraised(OSError, CliError, f"--log-file {options.log_file}: "):
            file = LogFile(options.log_file, encoding="utf-8", errors="backslashreplace")
        file.setLevel(options.log_level.upper())
        file.setFormatter(
            logging.Formatter("%(asctime)s.%(msecs)03d %(levelname)s %(name)s: %(message)s", "%Y-%m-%d %H:%M:%S")
        )
        root.addHandler(file)
    else:
        root.setLevel(logging.WARNING)


Row = Mapping[str, Any]  # One line of a table: column name -> value. All rows of a table have the same columns.


def machine_facts() -> dict[str, str | int]:
    import platform  # not above: every start of an engine would wait for it

    facts: dict[str, str | int] = {
        "cpu": processor_name(),
        "cores": usable_cores(),
        "system": f"{platform.system()} {platform.release()} {platform.machine()}",
        "python": platform.python_version(),
    }
    return facts | package_versions()


def format_cell(value: Any) -> str:
    """Return a number with separators and at least three significant digits; None as a dash; other values as text."""
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
    """Return `rows` as a table below the column names. Text is aligned to the left, numbers to the right."""
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


def print_facts() -> None:
    print("; ".join(f"{name} {value}" for name, value in machine_facts().items()))


def write_json(path: str | Path, name: str, rows: Sequence[Row], *, command: Sequence[str] | None = None) -> None:
    """Write results as JSON, with facts about the machine and the command that made them. Raises OSError."""
    import json

    from yomi.nets.files import write_atomically

    document = {
        "benchmark": name,
        "command": list(sys.argv if command is None else command),
        "machine": machine_facts(),
        "results": [dict(row) for row in rows],
    }
    write_atomically(Path(path), (json.dumps(document, indent=2) + "\n").encode())


def plot_check(path: Path | None = None) -> None:
    """Raise CliError or OSError before a long run if matplotlib is missing or `path` cannot be written."""
    from yomi.engine.pictures import PlotError, check
    from yomi.nets.files import check_file

    with reraised(PlotError, CliError, f"--plot{'' if path is None else f' {path}'}: "):
        check(path)
    if path is not None:
        check_file(path)

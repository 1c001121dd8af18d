"""Write the tables and charts of docs/explanation/measurements.md from the results in bench/results.

`python -m tests.measurements` writes the page. `python -m tests.measurements TABLE FIELD=VALUE ...` first adds a result
to bench/results/TABLE.jsonl. Date and commit are set to the current ones if they are missing:

    python -m tests.measurements alpha-beta opponent=YaneuraOu conditions="0.2 s a move" machine="Zen 3" \
        wins=2 losses=36 draws=2 command="yomi match shogi ..."
"""

from __future__ import annotations

import datetime
import json
import math
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from tests.charts import Bar, Interval, bars, intervals
from yomi.engine.matches.rating import CONFIDENCE
from yomi.errors import LineError
from yomi.nets.files import append_lines, write_atomically
from yomi.nets.text import parse_json

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "bench" / "results"
PAGE = ROOT / "docs/explanation/measurements.md"
PICTURES = ROOT / "docs" / "pictures"
_PART = re.compile(r"(<!-- table ([\w-]+) -->\n).*?(<!-- end -->)", re.DOTALL)
_COMMON = ("date", "commit", "machine", "command")
_SCORED = ("wins", "losses", "draws")

Row = dict[str, Any]


class ReportError(LineError):
    pass


class Table(NamedTuple):
    """A file of results, and its table in the page."""

    # Fields that name a measurement. A later line with equal fields and machine replaces the earlier line in the page.
    keys: tuple[str, ...]
    # Heading and field of each column; `_cell` computes some fields.
    columns: tuple[tuple[str, str], ...]
    fields: tuple[str, ...]
    optional: tuple[str, ...] = ()
    common: tuple[str, ...] = _COMMON


_WHERE = (("machine", "machine"), ("date, version", "when"))
_SCORE = (("wins-losses-draws", "result"), ("score (95%)", "score"))
_MATCH = Table(
    ("player", "opponent", "conditions"),
    (("yomi", "player"), ("against", "opponent"), ("conditions", "conditions"), *_SCORE, *_WHERE),
    ("player", "opponent", "conditions", *_SCORED),
    ("interval",),
)
_FIGURES = Table(
    ("what", "conditions", "unit"),
    (("measured", "what"), ("conditions", "conditions"), ("figure", "figure"), *_WHERE),
    ("what", "conditions", "values", "unit"),
)
_LEARNING = Table(
    ("network",),
    (
        ("network", "network"),
        ("minutes", "minutes"),
        ("games", "games"),
        ("rows", "rows"),
        *_SCORE,
        ("date, version", "when"),
    ),
    ("network", "minutes", "games", "rows", *_SCORED),
    common=("date", "commit", "command"),
)
TABLES = {
    "machines": Table(
        ("name",),
        (("name", "name"), ("processor", "processor"), ("features", "features")),
        ("name", "processor", "features"),
        common=(),
    ),
    "speed": Table(
        ("network", "precision", "cores", "peer"),
        (
            ("network", "network"),
            ("precision", "precision"),
            ("cores", "cores"),
            ("yomi", "yomi"),
            ("peer", "peer"),
            ("ratio", "ratio"),
            ("conditions", "conditions"),
            *_WHERE,
        ),
        ("network", "precision", "cores", "yomi"),
        ("alone", "peer", "peer_values", "conditions"),
    ),
    "precision": Table(
        ("network", "precision", "board"),
        (
            ("network", "network"),
            ("compared", "precision"),
            ("board", "board"),
            ("positions", "positions"),
            ("same best move", "same"),
            ("mean error of the value", "error"),
            *_WHERE,
        ),
        ("network", "precision", "board", "positions", "same", "error"),
    ),
    "go": _MATCH,
    "shogi": _MATCH,
    "alpha-beta": Table(
        ("opponent", "conditions"),
        (("against", "opponent"), ("conditions", "conditions"), *_SCORE, *_WHERE),
        ("opponent", "conditions", *_SCORED),
        ("interval",),
    ),
    "people": Table(
        ("players",),
        (
            ("players", "players"),
            ("positions, tested", "positions"),
            ("power of the policy", "people_prior"),
            ("weight of the loss", "people_loss"),
            ("agreement in %: policy, model, old levels", "agreement"),
            ("log-likelihood: policy, model, old levels", "log_likelihood"),
            *_WHERE,
        ),
        ("players", "positions", "people_prior", "people_loss", "agreement", "log_likelihood"),
    ),
    "levels": _FIGURES,
    "levels-against": _MATCH,
    "search": _FIGURES,
    "parts": _FIGURES,
    "wins": _FIGURES,
    "learning": _FIGURES,
    "learning-7x7": _LEARNING,
    "learning-9x9": _LEARNING,
    "reliability": _FIGURES,
}


def read(name: str, folder: Path = RESULTS) -> list[Row]:
    """Return the results of a table, without results that a later line replaces.

    Raises:
        ReportError: a line does not fit the table.
        OSError: the file cannot be read.
    """
    table = TABLES[name]
    path = folder / f"{name}.jsonl"
    found: dict[tuple[Any, ...], Row] = {}
    for number, line in enumerate(path.read_text("utf-8").splitlines(), 1):
        try:
            row = parse_json(line)
        except ValueError as error:
            raise ReportError(f"{path}:{number}: {error}") from None
        fault = _fault(table, row)
        if fault:
            raise ReportError(f"{path}:{number}: {fault}")
        found[(*(row.get(key) for key in table.keys), row.get("machine"))] = row
    return list(found.values())


def _fault(table: Table, row: object) -> str:
    """Return the fault of a line, or an empty text."""
    if not isinstance(row, dict):
        return "not an object found, expected an object of fields"
    needed = {*table.fields, *table.common}
    if missing := sorted(needed - row.keys()):
        return f"no {', '.join(missing)} found, expected {', '.join(sorted(needed))}"
    if other := sorted(row.keys() - needed - {*table.optional}):
        return f"{', '.join(other)} found, expected only {', '.join(sorted(needed | {*table.optional}))}"
    for key in ("yomi", "alone", "peer_values", "values", "interval"):
        value = row.get(key, [0])
        if not isinstance(value, list) or not value or not all(isinstance(each, int | float) for each in value):
            return f"{key} {value} found, expected a list of numbers"
    for key in (*_SCORED, "games", "positions", "cores"):
        if type(row.get(key, 0)) is not int or row.get(key, 0) < 0:
            return f"{key} {row[key]} found, expected a whole number"
    if "wins" in row and not any(row[key] for key in _SCORED):
        return "no games found, expected at least one"
    if "date" in row and not re.fullmatch(r"\d{4}-\d\d-\d\d", str(row["date"])):
        return f"date {row['date']} found, expected YYYY-MM-DD"
    return ""


def score_of(row: Row) -> tuple[float, float, float]:
    """Return the share of the points of a match and its 95% interval, from 0 to 1.

    The interval is the row's own if the match measured one by pairs of games. Otherwise games count as independent.
    """
    if "share" in row:
        return row["share"] / 100, (row["share"] - row["error"]) / 100, (row["share"] + row["error"]) / 100
    wins, losses, draws = (row[key] for key in _SCORED)
    games = wins + losses + draws
    share = (wins + draws / 2) / games
    if "interval" in row:
        return share, row["interval"][0] / 100, row["interval"][1] / 100
    if games in (wins, losses):  # Wilson's interval: equal games have no spread
        reach = CONFIDENCE**2 / (games + CONFIDENCE**2)
        return share, max(0.0, share - reach), min(1.0, share + reach)
    spread = (wins * (1 - share) ** 2 + losses * share**2 + draws * (0.5 - share) ** 2) / games
    error = CONFIDENCE * math.sqrt(spread / games)
    return share, max(0.0, share - error), min(1.0, share + error)


def _numbers(values: Sequence[float]) -> str:
    return ", ".join(f"{value:,}" for value in values)


def _cell(row: Row, field: str) -> str:
    if field == "when":
        return f"{row['date']}, {row['commit']}"
    if field == "result":
        return "-".join(str(row[key]) for key in _SCORED)
    if field == "score":
        return "{:.0%} ({:.0%} to {:.0%})".format(*score_of(row))
    if field == "figure":
        space = "" if row["unit"].startswith("%") else " "
        return f"{_numbers(row['values'])}{space}{row['unit']}".strip()
    if field == "peer" and "peer_values" in row:
        return f"{row['peer']}: {_numbers(row['peer_values'])}"
    if field == "ratio":
        return f"{_ratio(row):.1f}" if "peer_values" in row else ""
    value = row.get(field, "")
    if isinstance(value, int):
        return f"{value:,}"
    return _numbers(value) if isinstance(value, list) else str(value)


def _ratio(row: Row) -> float:
    return float(max(row["yomi"]) / max(row["peer_values"]))


def table_text(name: str, rows: Sequence[Row]) -> str:
    """Return a table in Markdown. Columns without content are left out."""
    columns = [column for column in TABLES[name].columns if any(_cell(row, column[1]) for row in rows)]
    lines = [[heading for heading, _ in columns], ["---"] * len(columns)]
    lines += [[_cell(row, field).replace("|", "\\|") for _, field in columns] for row in rows]
    return "".join(f"| {' | '.join(cells)} |\n" for cells in lines)


def charts(results: dict[str, list[Row]]) -> Iterator[tuple[str, str]]:
    """Yield the name and the SVG text of each chart."""
    yield (
        "speed.svg",
        bars(
            "Evaluations a second: yomi divided by KataGo, the same network, processor and cores",
            [
                Bar(f"{row['network']} ({row['machine']}, {row['precision']})", _ratio(row), _speeds(row))
                for row in results["speed"]
                if row.get("peer", "").startswith("KataGo")
            ],
        ),
    )
    for name, title in (
        ("go", "Go: score of yomi, with 95% intervals"),
        ("shogi", "Shogi, tree search: score of yomi, with 95% intervals"),
        ("alpha-beta", "Shogi, alpha-beta: score of yomi, with 95% intervals"),
        ("learning-7x7", "Learning Go on 7×7 from nothing: score against rollouts, with 95% intervals"),
        ("learning-9x9", "Learning Go on 9×9 from nothing: score against GNU Go at level 10, with 95% intervals"),
    ):
        yield f"{name}.svg", intervals(title, [Interval(_label(row), *score_of(row)) for row in results[name]])


def _speeds(row: Row) -> str:
    return f"{max(row['yomi']):,} : {max(row['peer_values']):,}"


def _label(row: Row) -> str:
    if "minutes" in row:
        return f"after {row['minutes']} minutes, {row['games']:,} games"
    if "change" in row:
        return str(row["change"])
    return " ".join(filter(None, (row.get("player"), f"v. {row['opponent']},", row["conditions"])))


def render(page: str, results: dict[str, list[Row]]) -> str:
    """Return the page with current tables between its marks.

    Raises:
        ReportError: the page has no place for a table, or a place for an unknown table.
    """
    names = [found[2] for found in _PART.finditer(page)]
    if sorted(names) != sorted(results):
        raise ReportError(f"{PAGE}: tables {', '.join(names)} found, expected {', '.join(results)}")
    return _PART.sub(lambda found: f"{found[1]}\n{table_text(found[2], results[found[2]])}\n{found[3]}", page)


def outputs(folder: Path = RESULTS) -> dict[Path, str]:
    """Return the files that the command writes, and their texts."""
    results = {name: read(name, folder) for name in TABLES}
    pictures = {PICTURES / name: text for name, text in charts(results)}
    return {PAGE: render(PAGE.read_text("utf-8"), results), **pictures}


def add(name: str, words: Sequence[str], folder: Path = RESULTS) -> None:
    """Append a result to a table's file.

    Raises:
        ReportError: the table is unknown, or the fields do not fit it.
    """
    if name not in TABLES:
        raise ReportError(f"table {name} found, expected one of {', '.join(TABLES)}")
    row: Row = {}
    if TABLES[name].common:
        head = subprocess.run(["git", "rev-parse", "--short=7", "HEAD"], cwd=ROOT, capture_output=True, text=True)
        row = {"date": datetime.date.today().isoformat(), "commit": head.stdout.strip()}
    for word in words:
        key, sign, text = word.partition("=")
        if not sign:
            raise ReportError(f"{word} found, expected FIELD=VALUE")
        try:
            row[key] = parse_json(text)
        except ValueError:
            row[key] = text
    if fault := _fault(TABLES[name], row):
        raise ReportError(f"{name}: {fault}")
    machines = [each["name"] for each in read("machines")]
    if row.get("machine", machines[0]) not in machines:
        raise ReportError(f"machine {row['machine']} found, expected one of {', '.join(machines)} (table machines)")
    append_lines(folder / f"{name}.jsonl", json.dumps(row, ensure_ascii=False) + "\n")


def main(words: Sequence[str]) -> int:
    """Add a result if one is given, and write the page and its charts. Return 2 after an error."""
    try:
        if words:
            add(words[0], words[1:])
        for path, text in outputs().items():
            write_atomically(path, text.encode())
    except (ReportError, OSError) as error:
        print(f"tests.measurements: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""The status of runs: a summary and a comparison of runs for the terminal, and an HTML page."""

import itertools
import json
import logging
import math
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np

from yomi.engine.learning.journal import EARLIER, GENERATIONS, NAME, Event, Journal, LearningError, Progress, disk_use
from yomi.engine.matches.results import ORDER
from yomi.engine.pages.review import part
from yomi.errors import printable, reraised
from yomi.nets.files import write_atomically
from yomi.nets.text import parse_json
from yomi.system import lock_file, read_bytes

PAGE = "status.html"
LATEST = "latest.json"  # games for the page; the loop writes it
TEMPLATE = "page.html"  # contains PLACE, which is replaced by the page's data
PLACE = "{{data}}"
BOARDS = "{{boards}}"  # in the template: the script of the boards
POINTS = 300  # maximum number of points per line
INTERVALS = 30  # maximum number of intervals in the chart of time
ROWS = 30  # networks in the table
RATE = "per second of self-play"  # page.html knows this unit

LOCK = ".lock"  # a run keeps this file locked
SILENT_SECONDS = 600.0  # time without an event after which a run without a lock file counts as killed

Line = dict[str, Any]
_log = logging.getLogger("yomi.learning")


def status_text(folder: Path, now: float | None = None) -> str:
    """Return a summary of a few lines for the terminal. `now` is in Unix seconds.

    Raises:
        LearningError: the journal cannot be read.
    """
    return _text(folder, Progress(Journal(folder / NAME).read()), time.time() if now is None else now)


def _text(folder: Path, progress: Progress, now: float) -> str:
    def last(name: str, words: Callable[[Event], str]) -> str:
        found = progress.of(name)[-1:]
        return f"{words(found[0])}, {_ago(now - found[0]['time'])}" if found else ""

    recent = f" (last {GENERATIONS} generations)"
    lines = [
        ("state", _state(folder, progress, now)),
        ("settings", _settings(progress)),
        ("generation", f"{progress.generation} after {progress.seconds / 3600:.2f} hours"),
        ("games", _games(progress)),
        ("training", f"{progress.total('training', 'steps'):,} steps"),
        *_networks(progress),
        ("ladder", _ladder(progress)),
        ("engines", _engines(progress)),
        ("losses", _losses(progress.of("training"))),
        ("self-play", _speed(progress, -1)),
        ("", _speed(progress, progress.before, recent) if progress.before >= 0 else ""),
        ("time", _shares(progress, 0.0)),
        ("", _shares(progress, progress.seconds_before, recent) if progress.before >= 0 else ""),
        ("disk", ", ".join(f"{part} {_bytes(size)}" for part, size in disk_use(folder).items())),
        ("last wait", last("wait", lambda wait: f"{wait['part']} for {wait['for']}, {wait['seconds']:.1f} s")),
        ("last lost", last("lost", lambda lost: f"{lost['part']} ({lost['why']})")),
    ]
    # Names of engines could contain control sequences of the terminal.
    return "".join(f"{name:11} {printable(text)}\n" for name, text in lines if text)


def _title(progress: Progress) -> str:
    games = [str(start["settings"].get("game", "")) for start in progress.of("start")]
    return f"yomi learn {games[-1] if games else ''}".strip()


def _state(folder: Path, progress: Progress, now: float) -> str:
    if not progress.events:
        return "nothing has run yet"
    last = progress.events[-1]
    if last["event"] == "stop":
        state = f"stopped ({last['why']})"
    else:
        state = "running" if _is_going_on(folder, progress, now) else "killed (the same command continues)"
    return f"{_title(progress)}: {state}, last event ({last['event']}) {_ago(now - last['time'])}"


def _is_going_on(folder: Path, progress: Progress, now: float) -> bool:
    # A copy of a run has no lock file: there the age of the last event decides.
    if not progress.events or progress.events[-1]["event"] == "stop":
        return False
    try:
        with (folder / LOCK).open("r+b") as lock:
            return not lock_file(lock.fileno(), wait=False)
    except OSError:
        return bool(now - progress.events[-1]["time"] < SILENT_SECONDS)


def _settings(progress: Progress) -> str:
    for start in progress.of("start")[-1:]:
        settings = dict(start["settings"])
        for event in progress.of("precision")[-1:]:
            settings["precision"] = event["precision"]
        plain = [f"{name} {value}" for name, value in settings.items() if not isinstance(value, dict | list)]
        return ", ".join([f"version {start['version']}", *plain])
    return ""


def _games(progress: Progress) -> str:
    parts = [f"{progress.total('selfplay', what):,} {what}" for what in ("games", "rows", "moves")]
    reanalyzed = sum(event.get("reanalyzed", 0) for event in progress.of("selfplay"))
    return ", ".join([*parts, *([f"{reanalyzed:,} games reanalyzed"] if reanalyzed else [])])


def _networks(progress: Progress) -> list[tuple[str, str]]:
    """Return a line about the last promoted network, and a line about the newest network if it was refused."""
    promoted = [name for name, event in progress.networks.items() if event["promoted"]]
    newest = list(progress.networks)[-1:]
    shown = [("network", name) for name in promoted[-1:]] + [
        ("refused", name) for name in newest if name not in promoted
    ]
    lines = []
    for label, name in shown:
        others = dict.fromkeys([progress.ratings.anchor, *promoted[:1]])
        elos = [(other, progress.ratings.over(name, other)) for other in others if other != name]
        parts = [f"Elo {elo} over {other}{', the first' if other in promoted else ''}" for other, elo in elos if elo]
        lines.append((label, ", ".join([f"{name} (generation {progress.networks[name]['generation']})", *parts])))
    return lines


def _ladder(progress: Progress) -> str:
    newest = {match["against"]: match for match in progress.of("match") if not match["against"].startswith(EARLIER)}
    parts = []
    for name, match in newest.items():
        elo = None if name == progress.ratings.anchor else progress.ratings.over(name)
        score = "-".join(str(match[what]) for what in ("wins", "losses", "draws"))
        parts.append(f"{name} {score}" + (f" (Elo {elo})" if elo else ""))
    return ", ".join(parts) + f" ({ORDER})" if parts else ""


def _engines(progress: Progress) -> str:
    played = [event for event in progress.of("selfplay") if "engine_games" in event]
    games, points = (sum(event.get(what, 0) for event in played) for what in ("engine_games", "engine_points"))
    return f"{points:g} points of the network in {games:,} games of self-play against engines" if games else ""


def _losses(trained: Sequence[Event]) -> str:
    if not trained:
        return ""
    now, limit = trained[-1]["losses"], trained[-1]["generation"] - GENERATIONS
    then: dict[str, float] = next((event["losses"] for event in reversed(trained) if event["generation"] <= limit), {})
    parts = [f"{name} {value:.4f}" + (f" ({then[name]:.4f})" if name in then else "") for name, value in now.items()]
    return ", ".join(parts) + (f" (in brackets {GENERATIONS} generations ago)" if then else "")


def _speed(progress: Progress, after: int, when: str = "") -> str:
    games, evaluations, seconds = (progress.total("selfplay", it, after) for it in ("games", "evaluations", "seconds"))
    return f"{games / seconds:.2f} games/s, {evaluations / seconds:,.0f} evaluations/s{when}" if seconds else ""


def _shares(progress: Progress, since: float, when: str = "") -> str:
    if progress.seconds <= since:
        return ""
    shares = progress.shares([since, progress.seconds]).items()
    return ", ".join(f"{part} {100 * share:.0f}%" for part, (share,) in shares) + when


def _ago(seconds: float) -> str:
    for unit, size in (("days", 86400), ("h", 3600), ("min", 60)):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {unit} ago"
    return f"{max(0.0, seconds):.0f} s ago"


def _bytes(size: float) -> str:
    power = min(4, int(math.log10(max(1.0, size)) / 3))
    return f"{size / 1000**power:.{min(power, 1)}f} {('B', 'kB', 'MB', 'GB', 'TB')[power]}"


def comparison_text(folders: Sequence[Path], names: Sequence[str]) -> str:
    """Return a table with a column for each run: progress, speed, strength, losses, and settings that differ."""
    runs = [Progress(Journal(folder / NAME).read()) for folder in folders]
    differing = {
        name: values for name, values in _by_row([_flat_settings(run) for run in runs]).items() if len(set(values)) > 1
    }
    rows = _by_row([_column(run) for run in runs]) | differing
    table = [["", *names], *([name, *values] for name, values in rows.items())]
    widths = [max(len(line[column]) for line in table) for column in range(len(table[0]))]
    lines = ("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in table)
    return "\n".join(lines) + "\n"


def _by_row(columns: Sequence[Mapping[str, str]]) -> dict[str, list[str]]:
    """Convert the columns of a table to rows by name."""
    return {name: [column.get(name, "") for column in columns] for column in columns for name in column}


def _column(run: Progress) -> dict[str, str]:
    """Return the column of a run in the comparison, by the names of the rows."""
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


def _flat_settings(run: Progress) -> dict[str, str]:
    """Return the settings of the last start as text. Keys in a table become TABLE.KEY."""

    def flat(prefix: str, table: Mapping[str, Any]) -> dict[str, str]:
        found: dict[str, str] = {}
        for name, value in table.items():
            found |= flat(f"{prefix}{name}.", value) if isinstance(value, dict) else {f"{prefix}{name}": str(value)}
        return found

    return flat("", run.of("start")[-1]["settings"]) if run.of("start") else {}


# -- as a page ---------------------------------------------------------------------------------------------------------


def write_page(folder: Path) -> None:
    """Write the page of a run: a single file that needs no network. Damaged games are left out, with a warning.

    Raises:
        LearningError: the journal cannot be read, or the page cannot be written.
    """
    write_comparison([folder], folder / PAGE)


def write_runs(runs: Sequence[Mapping[str, Any]], path: Path, now: float) -> None:
    """Write a page about runs of any command, from their data (see `run_data` and `plain_data`).

    Raises:
        LearningError: the page cannot be written.
    """
    data = {"runs": runs, "written": now}
    embedded = json.dumps(_finite(data), allow_nan=False)
    for sign in "<>&":  # the data may not end the script element
        embedded = embedded.replace(sign, f"\\u{ord(sign):04x}")
    template = resources.files("yomi.engine.learning").joinpath(TEMPLATE).read_text(encoding="utf-8")
    with reraised(OSError, LearningError, f"{path}: "):
        write_atomically(path, template.replace(BOARDS, part("board.js")).replace(PLACE, embedded).encode())


def plain_data(name: str, title: str, text: str, running: bool) -> dict[str, Any]:
    """Return the page's data of a run that consists of text only."""
    empty: dict[str, Any] = {"charts": [], "played": [[0.0, 0]], "networks": [], "games": []}
    return {"name": name, "title": title, "text": text, "running": running, **empty}


def write_comparison(folders: Sequence[Path], path: Path) -> None:
    """Write a page that compares runs in the same charts. Raises LearningError as `write_page` does."""
    now = time.time()
    runs = [run_data(folder, name, now) for folder, name in zip(folders, short_names(folders), strict=True)]
    write_runs(runs, path, now)


def short_names(folders: Sequence[Path]) -> list[str]:
    """Return names for folders, without their common beginning."""
    paths = [folder.resolve().parts for folder in folders]
    levels = zip(*paths, strict=False)
    common = sum(1 for _ in itertools.takewhile(lambda level: len(set(level)) == 1, levels))
    return [str(Path(*parts[min(common, len(parts) - 1) :])) for parts in paths]


def run_data(folder: Path, name: str, now: float) -> dict[str, Any]:
    """Return the page's data of a run of `yomi learn`."""
    progress = Progress(Journal(folder / NAME).read())
    try:
        games = read_games(folder / LATEST)
    except LearningError as error:
        _log.warning("%s: the page shows no games", error)
        games = []
    return {
        "name": name,
        "title": _title(progress),
        "text": _text(folder, progress, now),
        "charts": _charts(progress),
        "played": _played(progress),
        "networks": _rows(progress),
        "games": games,
        "running": _is_going_on(folder, progress, now),
    }


def _played(progress: Progress) -> list[list[float]]:
    """Return at most POINTS points (hours, games of self-play until then), beginning with (0, 0)."""
    events = progress.of("selfplay")
    totals = itertools.accumulate(event["games"] for event in events)
    points = [[round(event["ran"] / 3600, 4), total] for event, total in zip(events, totals, strict=True)]
    step = max(1, -(-len(points) // POINTS))
    return [[0.0, 0], *points[::-step][::-1]]


def _charts(progress: Progress) -> list[dict[str, Any]]:
    """Return the charts over time in hours, without empty lines and charts. The page chooses the unit of rates."""
    played = [event for event in progress.of("selfplay") if event["games"] and event["seconds"]]
    trained = progress.of("training")
    losses = dict.fromkeys(name for event in trained for name in event["losses"])
    charts = [
        ("Elo", f"over {progress.ratings.anchor}; 95% intervals; gates overrate promoted networks", _elo(progress)),
        *((f"Loss: {name}", "", [_line((event, event["losses"].get(name)) for event in trained)]) for name in losses),
        ("Games", RATE, [_line((event, event["games"] / event["seconds"]) for event in played)]),
        (
            "Evaluations",
            RATE,
            [_line((event, event["evaluations"] / event["seconds"]) for event in played)],
        ),
        ("Time", "% of the hours; parts may work at once", _times(progress)),
        ("Mean lead", "Black's in self-play, in points", [_line((event, event.get("lead")) for event in played)]),
        (
            "Black's share",
            "% of the points in self-play",
            [_line((event, 100 * (event["black"] + event["drawn"] / 2) / event["games"]) for event in played)],
        ),
    ]
    shown = [(title, unit, [line for line in lines if line["points"]]) for title, unit, lines in charts]
    return [{"title": title, "unit": unit, "lines": lines} for title, unit, lines in shown if lines]


def _line(values: Iterable[tuple[Event, float | None]]) -> Line:
    """Return a line of at most POINTS points (hours, value). A point is the mean of neighbors; None is left out."""
    points = [(event["ran"] / 3600, value) for event, value in values if value is not None]
    step = max(1, -(-len(points) // POINTS))
    means = (np.mean(points[at : at + step], axis=0) for at in range(0, len(points), step))
    return {"name": "", "points": [[round(float(x), 4), float(f"{y:.5g}")] for x, y in means]}


def _times(progress: Progress) -> list[Line]:
    if not progress.seconds:
        return []
    count = min(INTERVALS, progress.generation // 4 + 1)
    edges = [progress.seconds * number / count for number in range(count + 1)]
    hours = [round((a + b) / 7200, 4) for a, b in itertools.pairwise(edges)]
    return [
        {"name": part, "points": [[x, round(100 * share, 1)] for x, share in zip(hours, shares, strict=True)]}
        for part, shares in progress.shares(edges).items()
    ]


def _elo(progress: Progress) -> list[Line]:
    """Return lines of points (hours, Elo, error, name): promoted networks as a line, refused networks as dots."""
    points: dict[bool, list[list[Any]]] = {True: [], False: []}
    for name, event in progress.networks.items():
        if elo := progress.ratings.over(name):
            point = [round(event["ran"] / 3600, 4), round(elo.value, 1), round(elo.error, 1), name]
            points[event["promoted"]].append(point)
    return [{"name": "promoted", "points": points[True]}, {"name": "refused", "points": points[False], "dots": True}]


def _rows(progress: Progress) -> list[dict[str, Any]]:
    """Return the table of the newest networks, newest first, with their scores in gates and matches."""
    rows: dict[str, dict[str, Any]] = {}
    for name, event in list(progress.networks.items())[: -ROWS - 1 : -1]:
        rows[name] = {
            "network": name,
            "generation": event["generation"],
            "hours": round(event["ran"] / 3600, 2),
            "elo": str(progress.ratings.over(name) or ""),
            "promoted": event["promoted"],
            "gate": {},
            "anchors": {},
            "networks": {},
        }
    for match in progress.of("gate", "match"):
        other = match["against"].removeprefix(EARLIER)
        kind = "gate" if match["event"] == "gate" else "networks" if other in progress.networks else "anchors"
        if match["network"] in rows:
            score = rows[match["network"]][kind].setdefault(other, [0, 0, 0])
            score[:] = [a + match[what] for a, what in zip(score, ("wins", "losses", "draws"), strict=True)]
    return list(rows.values())


def read_games(path: Path) -> list[dict[str, Any]]:
    """Return the games in a LATEST file, or an empty list if it does not exist.

    Raises:
        LearningError: the file cannot be read, or contains something else.
    """
    try:
        return [
            {
                "title": str(game["title"]),
                "result": str(game["result"]),
                "moves": list(map(str, game["moves"])),
                "first": dict(game.get("first", {})),
                "boards": list(map(str, game["boards"])),
                "values": [None if value is None else float(value) for value in game["values"]],
            }
            for game in parse_json(read_bytes(path))["games"]
        ]
    except FileNotFoundError:
        return []
    except OSError as error:
        raise LearningError(f"{path}: {error.strerror}") from None
    except (ValueError, KeyError, TypeError) as error:
        raise LearningError(f"{path}: expected games as JSON ({error!r})") from None


def _finite(value: Any) -> Any:
    """Return a copy in which None replaces infinities and NaN, which JSON lacks."""
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, Iterable) and not isinstance(value, str):
        return [_finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value

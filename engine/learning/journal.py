"""The journal of a run: one JSON object per line and event, appended by all parts. Its statistics are below."""

import json
import logging
import math
import os
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from yomi.engine.matches.rating import CONFIDENCE, Ratings, fit
from yomi.errors import LineError, reraised
from yomi.nets.files import append_object, complete_lines, sync_file, write_atomically
from yomi.system import lock_file, read_bytes


class LearningError(LineError):
    """A run cannot begin, continue or be displayed."""


_log = logging.getLogger("yomi.learning")

NAME = "journal.jsonl"

Event = dict[str, Any]  # has `event`, `time` in Unix seconds, the fields of FIELDS, and maybe more

# Required fields of an event, by its name. `seconds` is its duration; it ended at its `time`.
# Wins are those of `network`. Self-play of games with a score also has `lead`, Black's mean score. Its rows include
# rows of reanalyzed games, which `reanalyzed` counts; its other numbers do not. Events with other names may have any
# fields.
FIELDS: Mapping[str, str] = {
    "start": "version settings",
    "precision": "precision",
    "selfplay": "generation network games rows moves evaluations seconds black white drawn",
    "training": "generation steps seconds window losses",
    "gate": "generation network against wins losses draws seconds promoted",
    "promotion": "generation network",
    "match": "generation network against wins losses draws seconds",
    "wait": "part for seconds",
    "lost": "part why",
    "stop": "why",
}
_TYPES: Mapping[str, type | tuple[type, ...]] = {
    **dict.fromkeys(("event", "version", "network", "against", "part", "for", "why", "precision"), str),
    **dict.fromkeys(("time", "seconds"), (int, float)),
    "settings": dict,
    "promoted": bool,
}  # Other fields are integers. The losses of training are numbers by name.
_NUMBERS = frozenset(("lead", "reanalyzed", "engine_games", "engine_points"))  # optional numbers


class Journal:
    """The journal of a run. Several threads and processes may append to it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.listeners: list[Callable[[Event], None]] = []  # called with each event that `append` has written

    def append(self, event: str, /, **fields: object) -> None:
        """Append an event. It is not flushed to the disk, but survives a kill.

        Args:
            event: name of the event.
            fields: the fields of FIELDS; `for` needs `**{"for": ...}`.

        Raises:
            LearningError: the file cannot be written.
            ValueError: a field is missing or has the wrong type.
        """
        found = {"event": event, "time": round(time.time(), 3), **fields}
        _check(found)
        with reraised(OSError, LearningError, f"{self.path}: "), self.path.open("a+b", buffering=0) as file:
            lock_file(file.fileno(), wait=True)
            append_object(file, found)
        for listener in self.listeners:
            listener(found)

    def read(self) -> list[Event]:
        """Return all events, oldest first, without an incomplete last line; none if there is no file.

        Raises:
            LearningError: the file cannot be read, or a line is no event.
        """
        return [self._event(number, line) for number, line in enumerate(self._lines(), 1)]

    def mend(self) -> None:
        """Remove damaged lines, with a warning. No other process may use the journal.

        Raises:
            LearningError: the file cannot be read.
            OSError: it cannot be written.
        """
        kept, damaged = [], []
        for number, line in enumerate(self._lines(), 1):
            try:
                self._event(number, line)
                kept.append(line)
            except LearningError as error:
                damaged.append(str(error))
        if damaged:
            write_atomically(self.path, b"".join(line + b"\n" for line in kept), sync=True)
            more = f"; {len(damaged)} damaged lines in total" if len(damaged) > 1 else ""
            _log.warning("%s%s: left out", damaged[0], more)

    def sync(self) -> None:
        """Flush the journal to the disk.

        Raises:
            OSError: the disk failed.
        """
        if self.path.exists():
            sync_file(self.path)

    def _lines(self) -> list[bytes]:
        try:
            return complete_lines(read_bytes(self.path))
        except FileNotFoundError:
            return []
        except OSError as error:
            raise LearningError(f"{self.path}: {error.strerror}") from None

    def _event(self, number: int, line: bytes) -> Event:
        try:
            found = json.loads(line)
            _check(found)
        except (ValueError, RecursionError) as error:
            raise LearningError(f"{self.path}, line {number}: expected an event as JSON ({error})") from None
        event: Event = found
        return event


def _check(event: object) -> None:
    """Raise ValueError unless the event has its required fields."""
    if not isinstance(event, dict):
        raise ValueError("no object")
    name = event.get("event")
    for field in ("event", "time", *FIELDS.get(str(name), "").split()):
        kind = dict if (name, field) == ("training", "losses") else _TYPES.get(field, int)
        value: Any = event.get(field)
        if not isinstance(value, kind) or (isinstance(value, float) and not math.isfinite(value)):
            raise ValueError(f"{name}: {field} is {value!r}")
    for field in _NUMBERS & set(event):
        if not isinstance(event[field], int | float):
            raise ValueError(f"{name}: {field} is {event[field]!r}")
    losses = event.get("losses", {}).values() if name == "training" else ()
    if not all(isinstance(value, int | float) for value in losses):
        raise ValueError(f"{name}: losses are {event['losses']!r}")


# -- statistics, for the terminal and the page -----------------------------------------------------------------------

ANCHORS = ("uniform", "rollouts", "material")  # players that never change
EARLIER = "earlier "  # prefix of a network that a newer one plays in the ladder
# Elo. Networks form a long chain: with 1000, the prior of matches, 50 steps of 50 games gave 2340 of 3520 Elo.
PRIOR_SD = 30_000.0


MIN_GAMES = 20  # games of a match that can reach the goal of a run


@dataclass(frozen=True, slots=True)
class Elo:
    """A difference of two ratings."""

    value: float
    error: float  # half the 95% interval

    def __str__(self) -> str:
        return f"{round(self.value):+d} ± {self.error:.0f}"


@dataclass(frozen=True, slots=True)
class NetworkRatings:
    """Ratings of the networks and of the players that they met."""

    fitted: Ratings
    indices: Mapping[str, int]  # in `fitted` by name: the anchor, and players connected with it by games
    anchor: str  # has rating 0; empty before the first game

    def over(self, name: str, other: str | None = None) -> Elo | None:
        """Return the rating of a player above another player, or above the anchor; None if no games connect them."""
        first, second = self.indices.get(name), self.indices.get(self.anchor if other is None else other)
        if first is None or second is None:
            return None
        elo = self.fitted.elo
        return Elo(float(elo[first] - elo[second]), CONFIDENCE * self.fitted.difference_error(first, second))


def newest_shares(events: Iterable[Event]) -> dict[str, float]:
    """Return the share of the points that a network won in the newest match of MIN_GAMES games, by opponent."""
    shares = {}
    for event in events:
        if event["event"] == "match" and (games := event["wins"] + event["draws"] + event["losses"]) >= MIN_GAMES:
            shares[event["against"]] = (event["wins"] + event["draws"] / 2) / games
    return shares


def ratings(events: Iterable[Event]) -> NetworkRatings:
    """Rate all networks and their opponents by maximum likelihood (see `yomi.engine.matches.rating`).

    The anchor is the first of ANCHORS that played, otherwise the first network. Colors are taken as balanced.
    """
    # A gate favors lucky networks, so a long series of promotions looks too steep: each step by up to the error of its
    # games. Matches with earlier networks correct part of that.
    met = [match for match in events if match["event"] in ("gate", "match")]
    pairs = [(match["network"], match["against"].removeprefix(EARLIER)) for match in met]
    players = list(dict.fromkeys(name for network, against in pairs for name in (against, network)))
    indices = {name: number for number, name in enumerate(players)}
    counts = np.zeros((len(players), len(players), 3))
    for (network, against), match in zip(pairs, met, strict=True):
        row, column = sorted((indices[network], indices[against]))
        result = (match["wins"], match["draws"], match["losses"])
        counts[row, column] += result if row == indices[network] else result[::-1]
    evenness = np.minimum(counts[..., 0], counts[..., 2]) + counts[..., 1] / 2  # points of the weaker one
    # A network that has won all its games would be limited by the prior alone. Therefore one virtual draw is added to
    # the most even pairs that connect all players. Draws for every pair would pull all networks together if an anchor
    # loses to each.
    groups = np.arange(len(players))  # equal numbers: connected by games
    for row, column in sorted(np.argwhere(counts.any(axis=2)).tolist(), key=lambda pair: -evenness[tuple(pair)]):
        if groups[row] != groups[column]:
            counts[row, column] += (0.5, 0.0, 0.5)
            groups[groups == groups[row]] = groups[column]
    fitted = fit(players, counts, advantage=False, prior_sd=PRIOR_SD)
    networks = (match["against" if match["event"] == "gate" else "network"] for match in met)
    anchor = next((name for name in players if name in ANCHORS), next(networks, ""))
    connected = {name: at for name, at in indices.items() if groups[at] == groups[indices[anchor]]}
    return NetworkRatings(fitted, connected, anchor)


FOLDERS = ("rows", "games", "networks", "train")
GENERATIONS = 10  # that count as recent
PARTS = {
    "self-play": ("selfplay", None),
    "training": ("training", None),
    "gate": ("gate", None),
    "ladder": ("match", None),
    "players wait": ("wait", "selfplay"),
    "trainer waits": ("wait", "training"),
}  # the uses of time: an event, and for waits the part that waits


class Progress:
    """The events of a journal, with totals."""

    def __init__(self, events: Sequence[Event]) -> None:
        # Each has `ran`: seconds of running time, without the time between two starts.
        self.events: list[Event] = []
        self.seconds = 0.0  # total running time
        for number, event in enumerate(events):
            if number and event["event"] != "start":
                self.seconds += max(0.0, event["time"] - events[number - 1]["time"])
            self.events.append({**event, "ran": self.seconds})
        made = self.of("selfplay", "training", "gate", "match")
        self.generation = max((event["generation"] for event in made), default=0)
        self.before = self.generation - GENERATIONS  # the generation before the recent ones; negative if all are recent
        # Running time until then
        self.seconds_before = max((event["ran"] for event in made if event["generation"] <= self.before), default=0.0)
        self.networks: dict[str, Event] = {}  # by name: its last gate or promotion, with `ran` of its first
        for event in self.of("gate", "promotion"):
            known = self.networks.get(event["network"], event)
            self.networks[event["network"]] = {"promoted": True, **event, "ran": known["ran"]}
        self.ratings = ratings(self.events)

    def of(self, *names: str) -> list[Event]:
        """Return the events with one of these names, oldest first."""
        return [event for event in self.events if event["event"] in names]

    def total(self, name: str, field: str, after: int = -1) -> float:
        """Return the sum of a field over the events with a name, from generations above `after`."""
        numbers: list[float] = [event[field] for event in self.of(name) if event["generation"] > after]
        return sum(numbers)

    def shares(self, edges: Sequence[float]) -> dict[str, list[float]]:
        """Return for each part of PARTS the share of each interval in which it was busy. Parts may overlap.

        `edges` are the boundaries of the intervals, in seconds of running time.
        """
        found = {}
        for name, (event, part) in PARTS.items():
            chosen = [span for span in self.of(event) if part in (None, span.get("part"))]
            lengths = np.array([span["seconds"] for span in chosen])
            starts = np.array([span["ran"] for span in chosen]) - lengths
            busy = [float(np.clip(edge - starts, 0.0, lengths).sum()) for edge in edges]
            found[name] = [float(share) for share in np.diff(busy) / np.diff(edges)]
        return found


def disk_use(folder: Path) -> dict[str, int]:
    """Return the bytes of a run's files, by part of FOLDERS; the rest is `other`."""
    found = dict.fromkeys((*FOLDERS, "other"), 0)
    for path, _, files in os.walk(folder):
        top = Path(path).relative_to(folder).parts[:1]
        part = top[0] if top and top[0] in FOLDERS else "other"
        for name in files:
            try:
                found[part] += os.lstat(os.path.join(path, name)).st_size
            except FileNotFoundError:  # the run may remove files at the same time
                continue
    return found


# -- the figures of events, for a caller's function and for TensorBoard ------------------------------------------------

Figures = dict[str, float]
COUNTS = ("games", "rows", "moves", "evaluations", "seconds")  # of an event of self-play


def figures_of(event: Event) -> Figures:
    """Return the numbers of an event by names such as `loss/policy`; empty for events without figures."""
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
    """Collects the figures of one generation. Thread-safe."""

    def __init__(self) -> None:
        self._found: Figures = {}
        self._lock = threading.Lock()

    def add(self, event: Event) -> None:
        with self._lock:
            for name, value in figures_of(event).items():
                is_sum = name.partition("/")[2] in COUNTS and name.startswith("selfplay/")
                self._found[name] = value + (self._found.get(name, 0.0) if is_sum else 0.0)

    def take(self, generation: int) -> Figures:
        """Return the figures since the last call: sums of self-play's counts, and the newest values of all others."""
        with self._lock:
            found, self._found = self._found, {}
        return {"generation": generation, **found}

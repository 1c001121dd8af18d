"""Statistics of a run's journal, for the terminal and the page."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from yomi.engine.learning.journal import Event
from yomi.engine.learning.ratings import ratings

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
        self.events: list[Event] = []
        """Each has `ran`: seconds of running time, without the time between two starts."""
        self.seconds = 0.0  # total running time
        for number, each in enumerate(events):
            if number and each["event"] != "start":
                self.seconds += max(0.0, each["time"] - events[number - 1]["time"])
            self.events.append({**each, "ran": self.seconds})
        made = self.of("selfplay", "training", "gate", "match")
        self.generation = max((each["generation"] for each in made), default=0)
        self.before = self.generation - GENERATIONS  # the generation before the recent ones; negative if all are recent
        # Running time until then
        self.seconds_before = max((each["ran"] for each in made if each["generation"] <= self.before), default=0.0)
        self.networks: dict[str, Event] = {}  # by name: its last gate or promotion, with `ran` of its first
        for each in self.of("gate", "promotion"):
            known = self.networks.get(each["network"], each)
            self.networks[each["network"]] = {"promoted": True, **each, "ran": known["ran"]}
        self.ratings = ratings(self.events)

    def of(self, *names: str) -> list[Event]:
        """Return the events with these names, oldest first."""
        return [each for each in self.events if each["event"] in names]

    def total(self, name: str, field: str, after: int = -1) -> float:
        """Return the sum of a field over the events of a name with a generation above `after`."""
        numbers: list[float] = [each[field] for each in self.of(name) if each["generation"] > after]
        return sum(numbers)

    def shares(self, edges: Sequence[float]) -> dict[str, list[float]]:
        """Return the share of time in which each part of PARTS was busy, per interval. Parts may overlap.

        Args:
            edges: boundaries of the intervals, in seconds of running time, rising.
        """
        found = {}
        for name, (event, part) in PARTS.items():
            chosen = [each for each in self.of(event) if part in (None, each.get("part"))]
            lengths = np.array([each["seconds"] for each in chosen])
            starts = np.array([each["ran"] for each in chosen]) - lengths
            busy = [float(np.clip(edge - starts, 0.0, lengths).sum()) for edge in edges]
            found[name] = [float(share) for share in np.diff(busy) / np.diff(edges)]
        return found


def disk_use(folder: Path) -> dict[str, int]:
    """Return the bytes of a folder's files by part of FOLDERS, and of `other` files."""
    found = dict.fromkeys((*FOLDERS, "other"), 0)
    for path, _, files in os.walk(folder):
        top = Path(path).relative_to(folder).parts[:1]
        part = top[0] if top and top[0] in FOLDERS else "other"
        for name in files:
            try:
                found[part] += os.lstat(os.path.join(path, name)).st_size
            except FileNotFoundError:  # the other parts go on while this counts
                continue
    return found

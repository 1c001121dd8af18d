"""Statistics of a run's journal, for the terminal and the page."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from yomi.engine.learning.journal import Event
from yomi.engine.matches.rating import CONFIDENCE, Ratings, fit

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
    """Ratings of the networks and their opponents."""

    fitted: Ratings
    indices: Mapping[str, int]  # in `fitted` by name: the anchor, and players connected with it by games
    anchor: str  # has rating 0; empty before the first game

    def over(self, name: str, other: str | None = None) -> Elo | None:
        """Return how much stronger a player is than another, or than the anchor; None if no games connect them."""
        first, second = self.indices.get(name), self.indices.get(self.anchor if other is None else other)
        if first is None or second is None:
            return None
        elo = self.fitted.elo
        return Elo(float(elo[first] - elo[second]), CONFIDENCE * self.fitted.difference_error(first, second))


def newest_shares(events: Iterable[Event]) -> dict[str, float]:
    """Return the share of the points in the newest match of at least MIN_GAMES games, by opponent."""
    shares = {}
    for event in events:
        if event["event"] == "match" and (games := event["wins"] + event["draws"] + event["losses"]) >= MIN_GAMES:
            shares[event["against"]] = (event["wins"] + event["draws"] / 2) / games
    return shares


def ratings(events: Iterable[Event]) -> NetworkRatings:
    """Rate all networks and their opponents by maximum likelihood (see `yomi.engine.matches.rating`).

    The anchor is the first of ANCHORS that played, otherwise the first network. Colors are unknown and taken as
    balanced. A gate favors lucky networks, so a long series of promotions looks too steep: each step by up to the error
    of its games. Matches with earlier networks correct part of that.

    A network that has won all its games would be limited by the prior alone. Therefore one virtual draw is added to the
    most even pairs that connect all players; of equally even pairs, to those that met first. (Draws for every pair
    would make an anchor that loses to all networks pull them together.)
    """
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
        self.events: list[Event] = []
        """Each has `ran`: seconds of running time, without the time between two starts."""
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
        """Return the events with these names, oldest first."""
        return [event for event in self.events if event["event"] in names]

    def total(self, name: str, field: str, after: int = -1) -> float:
        """Return the sum of a field over the events of a name with a generation above `after`."""
        numbers: list[float] = [event[field] for event in self.of(name) if event["generation"] > after]
        return sum(numbers)

    def shares(self, edges: Sequence[float]) -> dict[str, list[float]]:
        """Return the share of time in which each part of PARTS was busy, per interval. Parts may overlap.

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
    """Return the bytes of a folder's files by part of FOLDERS, and of `other` files."""
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

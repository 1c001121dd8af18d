from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

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
    for each in events:
        if each["event"] == "match" and (games := each["wins"] + each["draws"] + each["losses"]) >= MIN_GAMES:
            shares[each["against"]] = (each["wins"] + each["draws"] / 2) / games
    return shares


def ratings(events: Iterable[Event]) -> NetworkRatings:
    """Rate all networks and their opponents by maximum likelihood (see `yomi.engine.matches.rating`).

    The anchor is the first of ANCHORS that played, otherwise the first network. Colors are unknown and taken as
    balanced. A gate favors lucky networks, so a long series of promotions looks too steep: each step by up to the error
    of its games. Matches with earlier networks correct part of that.

    A network that has won all its games would be limited by the prior alone. Therefore one virtual draw is added to the
    most even pairs that connect all players; of equally even pairs, to those that met first. (Draws for every pair
    would make an anchor that loses to all networks pull them together.)

    Args:
        events: events; only gates and matches count.
    """
    met = [each for each in events if each["event"] in ("gate", "match")]
    pairs = [(each["network"], each["against"].removeprefix(EARLIER)) for each in met]
    players = list(dict.fromkeys(name for network, against in pairs for name in (against, network)))
    indices = {name: number for number, name in enumerate(players)}
    counts = np.zeros((len(players), len(players), 3))
    for (network, against), each in zip(pairs, met, strict=True):
        row, column = sorted((indices[network], indices[against]))
        result = (each["wins"], each["draws"], each["losses"])
        counts[row, column] += result if row == indices[network] else result[::-1]
    evenness = np.minimum(counts[..., 0], counts[..., 2]) + counts[..., 1] / 2  # points of the weaker one
    groups = np.arange(len(players))  # equal numbers: connected by games
    for row, column in sorted(np.argwhere(counts.any(axis=2)).tolist(), key=lambda pair: -evenness[tuple(pair)]):
        if groups[row] != groups[column]:
            counts[row, column] += (0.5, 0.0, 0.5)
            groups[groups == groups[row]] = groups[column]
    fitted = fit(players, counts, advantage=False, prior_sd=PRIOR_SD)
    networks = (each["against" if each["event"] == "gate" else "network"] for each in met)
    anchor = next((name for name in players if name in ANCHORS), next(networks, ""))
    connected = {name: at for name, at in indices.items() if groups[at] == groups[indices[anchor]]}
    return NetworkRatings(fitted, connected, anchor)

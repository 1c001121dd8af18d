"""Elo of networks, from their gates and matches."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from yomi.engine.learning.journal import Event
from yomi.engine.matches.rating import CONFIDENCE, Ratings, fit

ANCHORS = ("uniform", "rollouts", "material")
"""Players that never change."""
EARLIER = "earlier "
"""Stands before the name of a network that a newer one meets again."""
PRIOR_SD = 30_000.0
"""Elo. Networks are a long chain: that of matches, 1000, makes 2340 of 3520 Elo in 50 steps of 50 games."""


ENOUGH = 20
"""Games of a match, at least, that tell whether a run has come to its goal."""


@dataclass(frozen=True, slots=True)
class Elo:
    """A difference of two ratings."""

    value: float
    error: float
    """Half the 95% interval."""

    def __str__(self) -> str:
        """Return it rounded, with its error."""
        return f"{round(self.value):+d} ± {self.error:.0f}"


@dataclass(frozen=True, slots=True)
class NetworkRatings:
    """What is known of the players' strength."""

    fitted: Ratings
    indices: Mapping[str, int]
    """Of the players in `fitted`, by name: the anchor and those that games connect with it."""
    anchor: str
    """Its rating is 0; empty before the first game."""

    def over(self, name: str, other: str | None = None) -> Elo | None:
        """Return how much stronger than another player, or than the anchor, one is; None where no games tell."""
        first, second = self.indices.get(name), self.indices.get(self.anchor if other is None else other)
        if first is None or second is None:
            return None
        elo = self.fitted.elo
        return Elo(float(elo[first] - elo[second]), CONFIDENCE * self.fitted.difference_error(first, second))


def newest_shares(events: Iterable[Event]) -> dict[str, float]:
    """Return the points for a game that the newest networks have won in matches of ENOUGH games, by whom they met."""
    shares = {}
    for each in events:
        if each["event"] == "match" and (games := each["wins"] + each["draws"] + each["losses"]) >= ENOUGH:
            shares[each["against"]] = (each["wins"] + each["draws"] / 2) / games
    return shares


def ratings(events: Iterable[Event]) -> NetworkRatings:
    """Rate all networks and what they have met, by maximum likelihood (see yomi.engine.matches.rating).

    The anchor is the one of ANCHORS that was met first, else the first network. Who had Black is not known; colors are
    taken to be balanced. A gate lets lucky networks pass rather than others, so a long row of promotions looks steeper
    than it is, by as many Elo a step as its games leave open; matches with earlier networks set that right in part.

    A network that has won all its games would be as far off as the prior lets it. So the most even pairs that connect
    all players, of equally even ones those met first, count as having drawn a game more. (Were it every pair, an anchor
    that loses to all networks would draw them together.)

    Args:
        events: those other than gates and matches are left out.
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

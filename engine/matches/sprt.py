"""The sequential probability ratio test: ends a match when it is clear whether a player is stronger.

The hypotheses are the expected scores of elo0 and elo1. The likelihood ratio is generalized: it compares the likeliest
distributions with these means. (Van den Bergh, "A practical introduction to the GSPRT"; other test frameworks do the
same.) The unit is a pair of games with the same opening and reversed colors. Its five possible scores account for
openings that favor a side. Games without a partner do not count.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from yomi.engine.matches.rating import BETA, CONFIDENCE, expected_score, normal
from yomi.engine.matches.results import GameResult

PAIR_SCORES = (0.0, 0.25, 0.5, 0.75, 1.0)
REGULARIZATION = 1e-3  # added to each count, so that no score is impossible


@dataclass(frozen=True, slots=True)
class Sprt:
    elo0: float
    elo1: float  # above elo0
    alpha: float = 0.05  # probability of accepting elo1 although elo0 is true
    beta: float = 0.05  # probability of accepting elo0 although elo1 is true

    def __post_init__(self) -> None:
        if not self.elo0 < self.elo1:
            raise ValueError(f"bounds {self.elo0:g} and {self.elo1:g}: expected the first below the second")
        if not (0.0 < self.alpha < 0.5 and 0.0 < self.beta < 0.5):
            raise ValueError(f"error rates {self.alpha:g} and {self.beta:g}: expected numbers from 0 to 0.5")

    @property
    def lower(self) -> float:
        """Log-likelihood ratio at which elo0 is accepted."""
        return math.log(self.beta / (1.0 - self.alpha))

    @property
    def upper(self) -> float:
        """Log-likelihood ratio at which elo1 is accepted."""
        return math.log((1.0 - self.beta) / self.alpha)

    def ratio(self, counts: Sequence[float]) -> float:
        """Return the log-likelihood ratio of elo1 to elo0, given the number of pairs with each of PAIR_SCORES."""
        if not any(counts):
            return 0.0
        weights = [count + REGULARIZATION for count in counts]
        total = sum(weights)
        shares = [weight / total for weight in weights]
        return total * (_log_likelihood(shares, self.elo1) - _log_likelihood(shares, self.elo0))

    def verdict(self, counts: Sequence[float]) -> str:
        """Return "elo1", "elo0", or "" while the test is undecided."""
        ratio = self.ratio(counts)
        return "elo1" if ratio >= self.upper else "elo0" if ratio <= self.lower else ""

    def line(self, counts: Sequence[float]) -> str:
        """Return the state of the test on one line."""
        verdict = {"elo1": f": at least {self.elo1:g} Elo", "elo0": f": at most {self.elo0:g} Elo", "": ""}
        return (
            f"SPRT {self.elo0:g} {self.elo1:g}: LLR {self.ratio(counts):.2f} [{self.lower:.2f}, {self.upper:.2f}]"
            f" after {sum(counts):.0f} pairs {verdict[self.verdict(counts)]}".rstrip()
        )


@dataclass(frozen=True, slots=True)
class Difference:
    """How much stronger one of two players is."""

    elo: float
    low: float
    high: float  # ends of the 95% interval
    superiority: float  # probability of being stronger at all

    def __str__(self) -> str:
        return f"{self.elo:+.0f} Elo (95%: {self.low:+.0f} to {self.high:+.0f}), stronger with {self.superiority:.1%}"


def difference(counts: Sequence[float]) -> Difference:
    """Return the Elo difference of two players. The error comes from the spread of the pairs' scores.

    Half a pair with each of the three middle scores is added, so that a few games prove little.

    Args:
        counts: number of pairs with each of PAIR_SCORES.
    """
    weights = [count + prior for count, prior in zip(counts, (0.0, 0.5, 0.5, 0.5, 0.0), strict=True)]
    total = sum(weights)
    mean = sum(weight * score for weight, score in zip(weights, PAIR_SCORES, strict=True)) / total
    variance = sum(weight * (score - mean) ** 2 for weight, score in zip(weights, PAIR_SCORES, strict=True)) / total
    error = math.sqrt(variance / total)
    elo, low, high = (_elo(mean + side * CONFIDENCE * error) for side in (0.0, -1.0, 1.0))
    return Difference(elo, low, high, normal((mean - 0.5) / error))


def _elo(score: float) -> float:
    # Limited to the difference of a score of 0.9999.
    score = min(max(score, 1e-4), 1.0 - 1e-4)
    return math.log(score / (1.0 - score)) / BETA


def _log_likelihood(shares: Sequence[float], elo: float) -> float:
    """Return the log-likelihood per pair of the likeliest distribution with the mean of `elo`, less that of `shares`.

    It is p_i = shares_i / (1 + t (a_i - mean)), where t gives the mean.
    """
    mean = expected_score(elo)
    offsets = [score - mean for score in PAIR_SCORES]
    low, high = -1.0 / max(offsets), -1.0 / min(offsets)

    def excess(t: float) -> float:
        return sum(share * offset / (1.0 + t * offset) for share, offset in zip(shares, offsets, strict=True))

    for _ in range(100):  # excess falls from +infinity to -infinity
        middle = (low + high) / 2.0
        if excess(middle) > 0.0:
            low = middle
        else:
            high = middle
    t = (low + high) / 2.0
    return -sum(share * math.log1p(t * offset) for share, offset in zip(shares, offsets, strict=True))


def pair_counts(results: Iterable[GameResult], player: str) -> list[int]:
    """Return the number of pairs with each of PAIR_SCORES for a player in a match of two.

    Games 2n and 2n+1 are a pair.
    """
    halves: dict[int, list[float]] = {}
    for result in results:
        score = result.score if result.black == player else 1.0 - result.score
        halves.setdefault(result.number // 2, []).append(score)
    counts = [0] * len(PAIR_SCORES)
    for scores in halves.values():
        if len(scores) == 2:
            counts[PAIR_SCORES.index(sum(scores) / 2.0)] += 1
    return counts

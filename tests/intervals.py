"""Coverage of the 95% intervals of matches: `python -m tests.intervals` prints the table of docs/how-to/matches.md.

Differences of pairs (duel, tune, match) are computed exactly up to 20 pairs, and otherwise from drawn matches. The fit
of single games (`yomi rate` of records) is always drawn.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np

from yomi.engine.color import BLACK, DRAW, WHITE
from yomi.engine.matches.rating import BETA, PAIR_SCORES, difference, expected_score
from yomi.engine.matches.report import report
from yomi.engine.matches.results import GameResult

PAIRS = (2, 6, 10, 20, 200, 2000)
EXACT = 20  # number of pairs up to which all results are listed
DRAWN = 20_000
Shares = tuple[float, ...]


def independent(elo: float, draws: float = 0.0) -> Shares:
    """Return the shares of PAIR_SCORES if the two games of a pair are independent."""
    score = expected_score(elo)
    win, loss = score - draws / 2, 1 - score - draws / 2
    return loss * loss, 2 * loss * draws, 2 * win * loss + draws * draws, 2 * win * draws, win * win


def split(share: float, elo: float) -> Shares:
    """Return the shares if one color wins both games of this share of the pairs."""
    lead = expected_score(elo) - 0.5
    return (1 - share) / 2 - lead, 0.0, share, 0.0, (1 - share) / 2 + lead


KINDS = {
    "independent, 0 Elo": independent(0),
    "independent, +100 Elo": independent(100),
    "independent, +300 Elo": independent(300),
    "80% of games drawn, 0 Elo": independent(0, 0.8),
    "60% of games drawn, +100 Elo": independent(100, 0.6),
    "80% of pairs split, 0 Elo": split(0.8, 0),
    "80% of pairs split, +35 Elo": split(0.8, 35),
    "87% of pairs split, 0 Elo": split(0.87, 0),
    "87% of pairs split, +45 Elo": split(0.87, 45),
    "72% of pairs split, +97 Elo": split(0.72, 97),
}


def results(pairs: int, places: int = len(PAIR_SCORES)) -> Iterator[tuple[int, ...]]:
    """Yield all numbers of pairs with each score."""
    if places == 1:
        yield (pairs,)
        return
    for first in range(pairs + 1):
        for rest in results(pairs - first, places - 1):
            yield (first, *rest)


def likelihood(counts: Sequence[int], shares: Shares) -> float:
    found = float(math.factorial(sum(counts)))
    for number, share in zip(counts, shares, strict=True):
        found *= share**number / math.factorial(number)
    return found


def coverage(pairs: int, kinds: dict[str, Shares]) -> list[float]:
    """Return the probability of each kind that `difference` contains the true difference."""
    covered = []
    rng = np.random.default_rng(1)
    known = {}
    if pairs <= EXACT:
        known = {counts: difference(counts) for counts in results(pairs)}
    for shares in kinds.values():
        mean = sum(share * score for share, score in zip(shares, PAIR_SCORES, strict=True))
        true = math.log(mean / (1 - mean)) / BETA
        if known:
            inside = (counts for counts, found in known.items() if found.low - 1e-9 <= true <= found.high + 1e-9)
            covered.append(sum(likelihood(counts, shares) for counts in inside))
        else:
            drawn, numbers = np.unique(rng.multinomial(pairs, shares, DRAWN), axis=0, return_counts=True)
            found = [difference(counts.tolist()) for counts in drawn]
            covered.append(sum(n for n, d in zip(numbers, found, strict=True) if d.low <= true <= d.high) / DRAWN)
    return covered


def games(pairs: int, elo: float, share: float, draws: float, rng: np.random.Generator) -> list[GameResult]:
    """Return drawn games of A against B and C. In `share` of the pairs one color wins both games."""
    played: list[GameResult] = []
    for _ in range(pairs):
        for other in "BC":
            colors: tuple[int, ...] = (BLACK, WHITE)
            score = expected_score(elo)
            if rng.random() < share:
                winners = 2 * [int(rng.choice(colors))]
            else:
                score = 0.5 + (score - 0.5) / (1 - share)
                points = rng.random(2)
                winners = [
                    mine if u < score - draws / 2 else DRAW if u < score + draws / 2 else 3 - mine
                    for u, mine in zip(points, colors, strict=True)
                ]
            for (black, white), winner in zip((("A", other), (other, "A")), winners, strict=True):
                played.append(GameResult(len(played), black, white, winner, "score"))
    return played


def table_coverage(pairs: int, elo: float, share: float, draws: float, matches: int) -> tuple[float, float]:
    """Return how often ERROR of the table's first player, and the difference of A and B, contain the truth."""
    rng = np.random.default_rng(1)
    ratings = differences = 0
    for _ in range(matches):
        made = report(games(pairs, elo, share, draws, rng))
        row = next(row for row in made.rows if row.player == "A")
        ratings += abs(row.rating - elo * 2 / 3) <= row.error
        found = made.pairs[0].difference
        differences += found.low <= elo <= found.high
    return ratings / matches, differences / matches


def main() -> None:
    columns = {pairs: coverage(pairs, KINDS) for pairs in PAIRS}
    print(f"| pairs of games | {' | '.join(f'{pairs:,}' for pairs in PAIRS)} |\n|---|{'---:|' * len(PAIRS)}")
    for row, name in enumerate(KINDS):
        print(f"| {name} | {' | '.join(f'{100 * columns[pairs][row]:.1f}' for pairs in PAIRS)} |")
    tables = {"independent, +100 Elo": (100, 0, 0), "60% drawn, +100 Elo": (100, 0, 0.6), "80% split": (0, 0.8, 0)}
    for name, (elo, share, draws) in tables.items():
        found = [table_coverage(pairs, elo, share, draws, 1000 if pairs < 200 else 300) for pairs in PAIRS[:-1]]
        print(f"| ERROR of three players, {name} | {' | '.join(f'{100 * rating:.0f}' for rating, _ in found)} | |")


if __name__ == "__main__":
    main()

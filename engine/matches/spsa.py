"""Parameters of the search tuned by matches: simultaneous perturbation stochastic approximation.

Every pair of games is played between the present values with all parameters moved by their perturbations, each up or
down by chance, and the same values with all moved the other way. What the first player scores beyond one half moves
each value on by its part of that. (Spall, "Implementation of the simultaneous perturbation algorithm", 1998; the gains
as Stockfish's and Leela's testers give them, by what they are at the end.) One pair says something of all parameters at
once, so the games needed hardly grow with their number. That fits matches, whose single result is almost nothing but
noise: a Bayesian optimiser wants a match of hundreds of games for each point that it looks at, models noise that is a
hundred times the slope, and would come with a library larger than this program's own dependencies.

All values lie in [0, 1] here: the share of the parameter's range.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from yomi.engine.matches.duel import Task

ALPHA, GAMMA = 0.602, 0.101
"""Exponents with which gain and perturbation fall (Spall)."""
STABILITY = 0.1
"""Of all pairs: by so many the fall of the gain is put off."""
C_END = 0.15
"""Perturbation at the end, as a share of the range. What a pair tells grows with its square, and where strength falls
off alike on both sides even a large one misleads nobody. In simulated matches of 4000 games for two parameters, whose
strength fell by 25, 50 and 150 Elo from the middle to the ends of the ranges, 1.1, 0.7 and 0.2 Elo were missing at the
end with 0.15, and 5.7, 6.6 and 2.7 with the usual 0.05."""
R_END_PAIRS = 40.0
"""The default of the gain at the end, times the pairs; for 20,000 pairs it is Stockfish's 0.002."""
AVERAGED = 0.5
"""Share of the iterations, the last ones, whose values' mean is the result: it swings less than any of them."""

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter; see its option for the meaning."""

    name: str
    low: float
    high: float
    start: float
    is_whole: bool = False
    """Rounded to an integer."""

    def value(self, share: float) -> float:
        """Return the value at a share of the range."""
        value = self.low + (self.high - self.low) * share
        return round(value) if self.is_whole else value

    def share(self, value: float) -> float:
        """Return where a value lies in the range."""
        return (value - self.low) / (self.high - self.low)


@dataclass(frozen=True, slots=True)
class Spsa:
    """A tuning: what is played in each iteration, and what follows from it."""

    parameters: Sequence[Parameter]
    iterations: int
    batch: int
    """Pairs of an iteration; each has perturbations of its own."""
    seed: int
    c_end: float = C_END
    r_end: float = 0.0
    """At the end a pair that is won twice moves a value by twice this times the perturbation; 0: see R_END_PAIRS."""

    @property
    def start(self) -> Floats:
        """The values before the first iteration, [parameters]."""
        return np.array([each.share(each.start) for each in self.parameters])

    def tasks(self, values: Floats, iteration: int) -> list[Task]:
        """Return the games of an iteration, counted from 0, at some values."""
        tasks = []
        for pair in range(iteration * self.batch, (iteration + 1) * self.batch):
            moved = self._perturbation(iteration) * self._signs(pair)
            changes = self.settings(values + moved), self.settings(values - moved)
            tasks += [Task(2 * pair + game, changes) for game in range(2)]
        return tasks

    def step(self, values: Floats, iteration: int, points: Mapping[int, int]) -> Floats:
        """Return the values after an iteration, from the points of its games by number (see Played.points)."""
        pairs, total = iteration * self.batch, self.iterations * self.batch
        put_off = STABILITY * total
        r_end = self.r_end or R_END_PAIRS / total
        ratio = r_end * ((put_off + total) / (put_off + pairs + 1.0)) ** ALPHA
        perturbation = self._perturbation(iteration)
        gain = ratio * self.c_end**2 / perturbation  # Spall's a_k / c_k, where a_end is r_end * c_end ** 2
        moved = values.copy()
        for pair in range(pairs, pairs + self.batch):
            moved += gain * (points[2 * pair] + points[2 * pair + 1] - 2) * self._signs(pair)
        return moved.clip(0.0, 1.0)

    def replay(self, points: Mapping[int, int]) -> list[Floats]:
        """Return the values before each iteration and after the last one whose games have all been played."""
        found = [self.start]
        while all(number in points for number in self._numbers(len(found) - 1)) and len(found) <= self.iterations:
            found.append(self.step(found[-1], len(found) - 1, points))
        return found

    def result(self, history: Sequence[Floats]) -> Floats:
        """Return the mean of the last values."""
        count = max(1, round(AVERAGED * (len(history) - 1)))
        mean: Floats = np.mean(history[-count:], axis=0)
        return mean

    def settings(self, values: Floats) -> dict[str, float]:
        """Return the settings of the search at some values; what is outside of the range is brought to its end."""
        shares = values.clip(0.0, 1.0).tolist()
        return {each.name: each.value(share) for each, share in zip(self.parameters, shares, strict=True)}

    def _numbers(self, iteration: int) -> range:
        return range(2 * iteration * self.batch, 2 * (iteration + 1) * self.batch)

    def _perturbation(self, iteration: int) -> float:
        pairs, total = iteration * self.batch, self.iterations * self.batch
        return float(self.c_end * (total / (pairs + 1.0)) ** GAMMA)

    def _signs(self, pair: int) -> Floats:
        rng = np.random.default_rng([self.seed, pair])
        return np.where(rng.integers(0, 2, len(self.parameters)) > 0, 1.0, -1.0)

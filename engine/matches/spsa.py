"""Tuning of search parameters by matches: simultaneous perturbation stochastic approximation (SPSA).

Two players with different values play each pair of games. Each value of the first player is moved up or down at random.
The second player's values are moved the opposite way. Then all values move towards the winner's, in proportion to the
difference between the first player's score and one half.

The method is Spall's ("Implementation of the simultaneous perturbation algorithm", 1998). The gain and the perturbation
fall during the tuning. They are set by their values at the end, as in the testing frameworks of Stockfish and Leela.

One pair measures all parameters at once, so the number of games hardly grows with the number of parameters. That suits
matches, whose single results are almost only noise. A Bayesian optimizer would need hundreds of games per point, and a
library larger than yomi's own dependencies.

All values are in [0, 1]: fractions of the parameter's range.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from yomi.engine.matches.duel import DuelTask

ALPHA, GAMMA = 0.602, 0.101  # exponents with which gain and perturbation fall (Spall)
STABILITY = 0.1  # delay of the gain's fall, as a fraction of all pairs
# Perturbation at the end, as a fraction of the range. The information of a pair grows with its square, and a large
# one does no harm if strength falls off alike on both sides. In simulated matches of 4000 games for two parameters,
# whose strength fell by 25, 50 and 150 Elo from the middle to the ends of the ranges, the result lacked 1.1, 0.7 and
# 0.2 Elo with 0.15, and 5.7, 6.6 and 2.7 Elo with the usual 0.05.
C_END = 0.15
R_END_PAIRS = 40.0  # default gain at the end, times the number of pairs; 0.002 for 20,000 pairs, as in Stockfish
# The result is the mean over this last fraction of the iterations, which fluctuates less than single ones
AVERAGED = 0.5

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Parameter:
    """A tuned parameter."""

    name: str
    low: float
    high: float
    start: float
    is_whole: bool = False  # rounded to an integer

    def value(self, share: float) -> float:
        value = self.low + (self.high - self.low) * share
        return round(value) if self.is_whole else value

    def share(self, value: float) -> float:
        return (value - self.low) / (self.high - self.low)


@dataclass(frozen=True, slots=True)
class Spsa:
    """The schedule and the update rule of a tuning."""

    parameters: Sequence[Parameter]
    iterations: int
    batch: int  # pairs per iteration; each has its own perturbation
    seed: int
    c_end: float = C_END
    # Gain at the end: a pair won twice moves a value by twice this times the perturbation. 0 selects R_END_PAIRS /
    # pairs.
    r_end: float = 0.0

    @property
    def start(self) -> Floats:
        """Values before the first iteration, [parameters]."""
        return np.array([parameter.share(parameter.start) for parameter in self.parameters])

    def tasks(self, values: Floats, iteration: int) -> list[DuelTask]:
        """Return the games of an iteration, counted from 0, around some values."""
        tasks = []
        for pair in range(iteration * self.batch, (iteration + 1) * self.batch):
            moved = self._perturbation(iteration) * self._signs(pair)
            changes = self.settings(values + moved), self.settings(values - moved)
            tasks += [DuelTask(2 * pair + game, changes) for game in range(2)]
        return tasks

    def step(self, values: Floats, iteration: int, points: Mapping[int, int]) -> Floats:
        """Return the values after an iteration, given the points of its games by number (see `DuelGame.points`)."""
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
        """Return the values before each iteration, and after the last complete one."""
        found = [self.start]
        while all(number in points for number in self._numbers(len(found) - 1)) and len(found) <= self.iterations:
            found.append(self.step(found[-1], len(found) - 1, points))
        return found

    def result(self, history: Sequence[Floats]) -> Floats:
        """Return the tuned values: the mean of the last ones."""
        count = max(1, round(AVERAGED * (len(history) - 1)))
        mean: Floats = np.mean(history[-count:], axis=0)
        return mean

    def settings(self, values: Floats) -> dict[str, float]:
        """Return the search settings at some values, limited to the ranges."""
        pairs = zip(self.parameters, values.clip(0.0, 1.0).tolist(), strict=True)
        return {parameter.name: parameter.value(share) for parameter, share in pairs}

    def _numbers(self, iteration: int) -> range:
        return range(2 * iteration * self.batch, 2 * (iteration + 1) * self.batch)

    def _perturbation(self, iteration: int) -> float:
        pairs, total = iteration * self.batch, self.iterations * self.batch
        return float(self.c_end * (total / (pairs + 1.0)) ** GAMMA)

    def _signs(self, pair: int) -> Floats:
        rng = np.random.default_rng([self.seed, pair])
        return np.where(rng.integers(0, 2, len(self.parameters)) > 0, 1.0, -1.0)

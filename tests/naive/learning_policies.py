"""The slow twins of engine/learning/policies.py."""

import math
from collections.abc import Callable
from typing import NamedTuple


class Improved(NamedTuple):
    """What sequential halving finds."""

    counts: dict[int, int]
    target: dict[int, float]
    chosen: int


def sequential_halving(
    priors: dict[int, float],
    gumbels: dict[int, float],
    own_value: float,
    playouts: int,
    considered: int,
    mean: Callable[[int, int], float],
) -> Improved:
    """Search moves, which `mean` judges by move and number of playouts; those least searched come first."""
    counts = dict.fromkeys(priors, 0)
    worth = {move: math.log(prior) + gumbels[move] for move, prior in priors.items()}
    left = sorted(priors, key=lambda move: -worth[move])[:considered]
    halvings = 0
    while len(left) > 2**halvings:
        halvings += 1
    for phase in range(max(1, halvings)):
        share = playouts // (max(1, halvings) - phase)
        playouts -= share
        for _ in range(share):
            counts[min(left, key=lambda move: (counts[move], move))] += 1
        values = completed(priors, counts, own_value, mean)
        bonus = {move: (50 + max(counts.values())) * SCALE * (values[move] + 1) / 2 for move in priors}
        left.sort(key=lambda move: -(worth[move] + bonus[move]))
        left = left[: math.ceil(len(left) / 2)]
    weights = {move: prior * math.exp(bonus[move]) for move, prior in priors.items()}
    target = {move: weight / sum(weights.values()) for move, weight in weights.items()}
    return Improved(counts, target, left[0])


SCALE = 0.5


def completed(
    priors: dict[int, float], counts: dict[int, int], own_value: float, mean: Callable[[int, int], float]
) -> dict[int, float]:
    """Return the values of all moves; those never searched are taken for average ones (appendix D of the paper)."""
    tried = [move for move in priors if counts[move]]
    if not tried:
        return dict.fromkeys(priors, own_value)
    average = sum(priors[move] * mean(move, counts[move]) for move in tried) / sum(priors[move] for move in tried)
    visits = sum(counts.values())
    mixed = (own_value + visits * average) / (1 + visits)
    return {move: mean(move, counts[move]) if counts[move] else mixed for move in priors}


def without_forced(
    priors: list[float], counts: list[int], utilities: list[float], exploration: float, forced: float
) -> list[int]:
    """Take visits away one by one, as long as they were forced and the move does not look better than the best then."""
    total = sum(counts)
    best = max(range(len(counts)), key=lambda move: counts[move] - (counts[move] > 0) + 2.0 * priors[move])

    def promise(move: int, visits: int) -> float:
        return utilities[move] + exploration * priors[move] / (1 + visits)

    left = list(counts)
    for move in range(len(counts)):
        least = counts[move] - math.sqrt(forced * priors[move] * total)
        while move != best and left[move] - 1 >= max(0, least):
            if promise(move, left[move] - 1) > promise(best, counts[best]):
                break
            left[move] -= 1
        if move != best and left[move] == 1:
            left[move] = 0
    return left

"""Chooses moves as people do: by a network's policy, and by the loss of each move in a short search.

The model is a conditional logit, the usual model of choices with errors:

    P(move) ~ prior ** people_prior * exp(-people_loss * loss)

`loss` is the utility that a move loses against the best visited move. Moves without a visit have loss UNSEEN.
docs/how-to/levels.md describes the fit to games of people, and `yomi bench people` repeats it.
"""

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from yomi.engine.search.types import MoveReport

UNSEEN = 0.1  # utility that a move without a visit is taken to lose
MIN_PRIOR = 1e-6  # a quantized prior of 0 is less than this


def features(
    priors: Mapping[int, float], visited: Sequence[MoveReport], *, is_ranked: bool = False
) -> npt.NDArray[np.float64]:
    """Return [moves, 2] for the moves of `priors`: the logarithm of the prior, and the negative loss.

    Args:
        priors: probability of each move.
        visited: moves of a search; moves without a visit are ignored.
        is_ranked: whether the visited moves are better than all other moves, as in a report of an alpha-beta search.
    """
    utilities = {move.move: move.utility for move in visited if move.visits}
    best = max(utilities.values(), default=0.0)
    unseen = max(UNSEEN, best - min(utilities.values(), default=best)) if is_ranked else UNSEEN
    losses = [best - utilities[move] if move in utilities else unseen for move in priors]
    return np.stack([np.log(np.maximum(list(priors.values()), MIN_PRIOR)), -np.array(losses)], axis=1)


def probabilities(
    priors: Mapping[int, float],
    visited: Sequence[MoveReport],
    prior_weight: float,
    loss_weight: float,
    *,
    is_ranked: bool = False,
) -> dict[int, float]:
    """Return the probability of each move of `priors`. Arguments: see `features`."""
    logits = features(priors, visited, is_ranked=is_ranked) @ np.array([prior_weight, loss_weight])
    shares = np.exp(logits - logits.max())
    return dict(zip(priors, (shares / shares.sum()).tolist(), strict=True))


def draw(chances: Mapping[int, float], rng: np.random.Generator) -> int:
    return int(rng.choice(list(chances), p=list(chances.values())))

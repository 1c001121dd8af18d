"""How self-play searches a position: which move is played, and what the network is to learn of it.

A policy is a generator, written as if its game were alone: it yields whenever its search has been asked for playouts,
and goes on once they are made. `yomi.engine.learning.games` lets many of them run side by side.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from collections.abc import Generator

    from yomi.engine.learning.searches import SmallSearch
    from yomi.engine.learning.settings import SelfPlaySettings

FloatArray: TypeAlias = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Found:
    """What a search found, for the side to move."""

    move: int
    """Drawn to be played."""
    value: float
    """Win minus loss, [-1, 1]."""
    score: float
    """Points."""
    visits: int
    """Of the root."""
    moves: npt.NDArray[np.int64]
    """Moves of the target."""
    target: FloatArray
    """Their shares, the sum is 1."""
    surprise: float
    """Kullback-Leibler divergence of the target from the policy, in nats; 0 if the position is not learned."""


PROVEN = 1e6
"""Added to the logits of a move that is proven to win, taken from those of one that loses: more than all else."""
Policy: TypeAlias = "Callable[[SmallSearch, SelfPlaySettings, np.random.Generator, int, float, bool], Searching]"
"""(search whose root is set, settings, generator, visits, temperature, whether the position is learned)"""
Searching: TypeAlias = "Generator[None, None, Found]"


def puct(
    search: SmallSearch,
    settings: SelfPlaySettings,
    rng: np.random.Generator,
    visits: int,
    temperature: float,
    learned: bool,
) -> Searching:
    """Search by PUCT; a position that is learned has noise and forced playouts, which the target leaves out."""
    search.set(forced_playouts=settings.forced_playouts if learned else 0.0)
    priors: dict[int, float] = {}
    if learned:
        yield from _expand(search)
        priors = _priors(search)
        if settings.noise > 0.0:
            search.add_noise()
    else:
        search.temper()
    if visits > search.visits:
        search.search(visits - search.visits)
        yield
    children = search.children()
    if learned and settings.forced_playouts > 0.0:
        counts = _without_forced(search, children, settings.forced_playouts)
    else:
        counts = children["weight"].copy()
    return _found(search, children, counts, temperature, priors, rng)


def gumbel(
    search: SmallSearch,
    settings: SelfPlaySettings,
    rng: np.random.Generator,
    visits: int,
    temperature: float,
    learned: bool,
) -> Searching:
    """Search by sequential halving over moves drawn without replacement, and learn the improved policy.

    Danihelka et al., Policy improvement by planning with Gumbel (ICLR 2022); their constants. A position that is not
    learned is searched in the same way, as its move is no worse for it.
    """
    yield from _expand(search)
    priors = _priors(search)
    moves = np.fromiter(priors, np.int64, len(priors))
    logits = np.log(np.maximum(np.fromiter(priors.values(), np.float64, len(priors)), 1e-9))
    drawn = logits + rng.gumbel(size=len(moves)) * (temperature > 0.0)
    left = np.argsort(-drawn)[: min(settings.considered, len(moves), max(2, visits // 2))]
    own_value = search.value
    search.set(halving=True)
    budget = visits - search.visits
    phases = max(1, math.ceil(math.log2(len(left))))
    for phase in range(phases):
        playouts = budget // (phases - phase)
        if len(left) == 1:
            playouts = budget
        if playouts > 0:
            search.allow(moves[left])
            search.search(playouts)
            yield
            budget -= playouts
        counts, values, proven = _by_move(search.children(), moves)
        sigma = _sigma(counts, _completed(counts, values, logits, own_value)) + PROVEN * proven
        left = left[np.argsort(-(drawn + sigma)[left])][: max(1, math.ceil(len(left) / 2))]
    search.allow(None)
    search.set(halving=False)
    improved = logits + sigma
    target = np.exp(improved - improved.max())
    target /= target.sum()
    chosen = int(moves[left[0]])
    surprise = float(np.sum(target * (np.log(np.maximum(target, 1e-9)) - logits)))
    return Found(chosen, search.value, search.score, search.visits, moves, target, max(0.0, surprise))


POLICIES: dict[str, Policy] = {"puct": puct, "gumbel": gumbel}


def _expand(search: SmallSearch) -> Iterator[None]:
    """Have the root evaluated, unless it is."""
    if search.visits == 0:
        search.search(1)
        yield
    else:
        search.temper()


def _priors(search: SmallSearch) -> dict[int, float]:
    children = search.children()
    return dict(zip(children["move"].tolist(), children["prior"].tolist(), strict=True))


def _tempered(counts: FloatArray, temperature: float) -> FloatArray:
    """Return shares that are the counts' powers; at 0 all goes to the greatest."""
    if temperature < 0.01:
        shares: FloatArray = (counts == counts.max()).astype(np.float64)
    else:
        shares = (counts / counts.max()) ** (1.0 / temperature)
    shares /= shares.sum()
    return shares


def _found(
    search: SmallSearch,
    children: npt.NDArray[Any],
    counts: FloatArray,
    temperature: float,
    priors: dict[int, float],
    rng: np.random.Generator,
) -> Found:
    won, lost = children["proven"] > 0, children["proven"] < 0
    if won.any():  # these, and nothing else
        counts = won.astype(np.float64)
    elif counts[~lost].any():
        counts = np.where(lost, 0.0, counts)
    move = int(children["move"][_drawn(_tempered(counts, temperature), rng)])
    kept = counts > 0.0
    moves, target = children["move"][kept].astype(np.int64), counts[kept] / counts.sum()
    surprise = 0.0
    if priors:
        before = np.array([max(priors[each], 1e-6) for each in moves.tolist()])
        surprise = float(np.sum(target * np.log(target / before)))
    return Found(move, search.value, search.score, search.visits, moves, target, max(0.0, surprise))


def _drawn(shares: FloatArray, rng: np.random.Generator) -> int:
    """Return an index drawn by shares. (Generator.choice looks at its arguments for longer than it draws.)"""
    sums = shares.cumsum()
    return int(np.searchsorted(sums, rng.random() * sums[-1], side="right"))


def _without_forced(search: SmallSearch, children: npt.NDArray[Any], forced: float) -> FloatArray:
    """Return the weights that PUCT itself would have given (KataGo's policy target pruning).

    Of each move but the most visited one, as many visits as it was forced to have are taken away, as long as it does
    not look better than that one then; a single visit that is left is none.
    """
    counts: FloatArray = children["weight"].copy()
    best = int(np.argmax(counts))
    total = counts.sum()
    prior, utility = children["prior"].astype(np.float64), children["utility"]
    factor = search.exploration(total)
    bar = utility[best] + factor * prior[best] / (1.0 + counts[best])
    with np.errstate(divide="ignore", invalid="ignore"):
        enough = np.where(bar > utility, factor * prior / (bar - utility) - 1.0, counts)
    least = counts - np.sqrt(forced * prior * total)
    pruned: FloatArray = np.minimum(counts, np.ceil(np.maximum(np.maximum(enough, least), 0.0)))
    pruned[pruned <= 1.0] = 0.0
    pruned[best] = counts[best]
    return pruned


def _by_move(children: npt.NDArray[Any], moves: npt.NDArray[np.int64]) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return visits and utility of moves, in their order, and whether they are proven to win (1) or to lose (-1)."""
    order = np.argsort(children["move"])
    place = order[np.searchsorted(children["move"][order], moves)]
    visits, proven = (children[name][place].astype(np.float64) for name in ("visits", "proven"))
    return visits, children["utility"][place], proven


def _completed(counts: FloatArray, values: FloatArray, logits: FloatArray, own_value: float) -> FloatArray:
    """Return the values of all moves: those not visited get a mixture of the root's own and the visited ones'."""
    visited = counts > 0.0
    if not visited.any():
        return np.full(len(counts), own_value)
    prior = np.exp(logits)
    weighted = float(np.sum(prior[visited] * values[visited]) / np.sum(prior[visited]))
    total = counts.sum()
    completed: FloatArray = np.where(visited, values, (own_value + total * weighted) / (1.0 + total))
    return completed


def _sigma(counts: FloatArray, values: FloatArray) -> FloatArray:
    """Return what values, [-1, 1], add to logits: (50 + the most visits) * 0.1 * value in [0, 1].

    The scale is mctx's, which also stretches the values of a position over all of [0, 1]. On 15,000 rows of Othello 6x6
    from nothing that learned less (0.36 of the points against one network, 0.47 with the paper's scale of 1 for Go and
    chess, 0.67 as it is here; one run each): early values are noise.
    """
    scale = 0.1 * (50.0 + float(counts.max()))
    return scale * (values + 1.0) / 2.0

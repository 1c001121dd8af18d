"""Search policies of self-play. They choose the move to play, and the policy target to learn.

A policy is a generator for a single game. It requests playouts, yields, and continues when they are made.
`yomi.engine.learning.searches` runs many of them at the same time.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt

from yomi.engine.search.read_tree import draw, wanted_weights
from yomi.native.tree.halving import rank_moves
from yomi.nets.user_files import check_function, find_function, is_in_file

if TYPE_CHECKING:
    from collections.abc import Generator

    from yomi.engine.learning.searches import GameSearch
    from yomi.engine.learning.settings import SelfPlaySettings

FloatArray: TypeAlias = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class SearchResult:
    """The result of a search, from the point of view of the side to move."""

    move: int  # to play
    value: float  # win minus loss, [-1, 1]
    score: float  # lead in points
    visits: int  # of the root
    moves: npt.NDArray[np.int64]  # moves of the policy target
    target: FloatArray  # their probabilities
    # Kullback-Leibler divergence of the target from the network's policy, in nats; 0 after a cheap search.
    surprise: float


# Arguments: search with its root set, settings, random generator, visits, temperature, full search or cheap.
Policy: TypeAlias = "Callable[[GameSearch, SelfPlaySettings, np.random.Generator, int, float, bool], Searching]"
Searching: TypeAlias = "Generator[None, None, SearchResult]"


def puct(
    search: GameSearch,
    settings: SelfPlaySettings,
    rng: np.random.Generator,
    visits: int,
    temperature: float,
    full_search: bool,
) -> Searching:
    """Search by PUCT. A full search adds noise and forced playouts. The target excludes the effects of both."""
    search.set(forced_playouts=settings.forced_playouts if full_search else 0.0)
    priors: dict[int, float] = {}
    if full_search:
        yield from _expand(search)
    search.prepare()
    if full_search:
        priors = _priors(search)
        if settings.noise > 0.0:
            search.prepare(noise=True)
    if visits > search.visits:
        search.search(visits - search.visits)
        yield
    children = search.children()
    if full_search and settings.forced_playouts > 0.0:
        factor = search.exploration(float(children["weight"].sum()))
        counts = _without_forced(children, factor, settings.forced_playouts)
    else:
        counts = children["weight"].copy()
    return search_result(search, children, counts, temperature, priors, rng)


def gumbel(
    search: GameSearch,
    settings: SelfPlaySettings,
    rng: np.random.Generator,
    visits: int,
    temperature: float,
    full_search: bool,
) -> Searching:
    """Search by Gumbel AlphaZero: draw moves from the policy, and halve their number after each phase of the search.

    The policy target is the improved policy. Source: Danihelka et al., Policy improvement by planning with Gumbel (ICLR
    2022). `full_search` makes no difference, because the move chosen with few visits is no weaker than the policy's.
    """
    yield from _expand(search)
    search.prepare()
    children = search.children()
    moves = children["move"].astype(np.int64)
    logits = np.zeros(int(moves.max()) + 1)  # by move, as the two below
    logits[moves] = np.log(np.maximum(children["prior"].astype(np.float64), 1e-9))
    drawn, improved = logits.copy(), logits.copy()
    if temperature > 0.0:
        drawn[moves] += rng.gumbel(size=len(moves))
    left = moves[np.argsort(-drawn[moves])][: min(settings.considered, len(moves), max(2, visits // 2))]
    constants = search.value, settings.value_scale, settings.value_visits
    search.set(halving=True)
    budget = visits - search.visits
    phases = max(1, math.ceil(math.log2(len(left))))
    for phase in range(phases):
        playouts = budget // (phases - phase)
        if len(left) == 1:
            playouts = budget
        if playouts > 0:
            search.allow(left)
            search.search(playouts)
            yield
            budget -= playouts
        rank_moves(search.children(), logits, drawn, *constants, left, improved)
        left = left[: max(1, math.ceil(len(left) / 2))]
    search.allow(None)
    search.set(halving=False)
    target = np.exp(improved[moves] - improved[moves].max())
    target /= target.sum()
    surprise = float(np.sum(target * (np.log(np.maximum(target, 1e-9)) - logits[moves])))
    return SearchResult(int(left[0]), search.value, search.score, search.visits, moves, target, max(0.0, surprise))


POLICIES: dict[str, Policy] = {"puct": puct, "gumbel": gumbel}


def check_policy(name: str) -> str:
    """Return the name of a policy; a file's path becomes absolute. Raises ValueError if there is no such policy."""
    if name in POLICIES:
        return name
    if not is_in_file(name):
        raise ValueError(f"expected one of {', '.join(POLICIES)}, or FILE.py:NAME, found {name!r}")
    return check_function(name)


def find_policy(name: str) -> Policy:
    """Return a policy of POLICIES, or the function that `FILE.py:NAME` names."""
    policy: Policy = POLICIES[name] if name in POLICIES else find_function(name)
    return policy


def _expand(search: GameSearch) -> Iterator[None]:
    if search.visits == 0:
        search.search(1)
        yield


def _priors(search: GameSearch) -> dict[int, float]:
    children = search.children()
    return dict(zip(children["move"].tolist(), children["prior"].tolist(), strict=True))


def search_result(
    search: GameSearch,
    children: npt.NDArray[Any],
    counts: FloatArray,
    temperature: float,
    priors: dict[int, float],
    rng: np.random.Generator,
) -> SearchResult:
    """Return the result of a search. The move is drawn by `counts`, which are also the policy target.

    Args:
        search: a finished search.
        children: its moves.
        counts: a weight for each move. Only won moves count if there are any, and lost moves only if all are lost.
        temperature: temperature of the choice of the move.
        priors: the network's policy, with which the target is compared for its surprise; empty after a cheap search.
        rng: draws the move.
    """
    won, lost = children["proven"] > 0, children["proven"] < 0
    if won.any():  # play and learn only winning moves
        counts = won.astype(np.float64)
    elif counts[~lost].any():
        counts = np.where(lost, 0.0, counts)
    move = int(children["move"][draw(counts, temperature, rng)])
    kept = counts > 0.0
    moves, target = children["move"][kept].astype(np.int64), counts[kept] / counts.sum()
    surprise = 0.0
    if priors:
        before = np.array([max(priors[move], 1e-6) for move in moves.tolist()])
        surprise = float(np.sum(target * np.log(target / before)))
    return SearchResult(move, search.value, search.score, search.visits, moves, target, max(0.0, surprise))


def _without_forced(children: npt.NDArray[Any], factor: float, forced: float) -> FloatArray:
    """Return the weights without forced playouts (KataGo's policy target pruning). `factor` is PUCT's.

    A move loses at most its forced visits, and keeps its wanted weight. A single remaining visit counts as 0.
    """
    counts: FloatArray = children["weight"].copy()
    wanted = wanted_weights(children, factor)
    unforced = np.ceil(np.maximum(counts - np.sqrt(forced * children["prior"] * counts.sum()), 0.0))
    pruned: FloatArray = np.minimum(counts, np.maximum(wanted, unforced))
    pruned[(pruned <= 1.0) & (pruned < pruned.max())] = 0.0
    return pruned

"""Choose moves as people do: the policy of a human-SL network, mixed with the choice of the search."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from yomi.native.go.board import PASS

if TYPE_CHECKING:
    from yomi.engine.options import Options
    from yomi.engine.search.types import SearchReport


def human_choice(
    report: SearchReport,
    priors: Mapping[int, float],
    policy: Mapping[int, float],
    allowed: Iterable[int],
    options: Options,
) -> dict[int, float]:
    """Return the weight of each move that may be played, at least 0.

    The rules are those of KataGo's getPlaySelectionValues (cpp/search/searchresults.cpp).

    Args:
        report: result of the search.
        priors: policy of the search's network, used if the search has visited no move.
        policy: policy of the human-SL network.
        allowed: moves that may be played.
        options: share of the policy, and how passes and losses count.
    """
    visited = {move.move: move for move in report.moves if move.symmetry_of is None}
    most = max((move.wanted for move in visited.values()), default=0.0)
    weights = {move.move: most if move.order == 0 else move.wanted for move in visited.values()}
    if most <= 0.0:
        weights = {move: priors.get(move, 0.0) for move in allowed}
    weights = {**dict.fromkeys(allowed, 0.0), **weights}
    losses = _losses({move.move: move.utility for move in visited.values()}, weights)
    human = {
        move: max(0.0, policy.get(move, 0.0)) * math.exp(-losses[move] / options.human_move_tolerance)
        for move in weights
    }
    total, total_human = sum(weights.values()), sum(human.values())
    if total_human <= 0.0 or total <= 0.0:
        return weights
    human = {move: part / total_human for move, part in human.items()}
    if options.human_ignore_pass:
        without_pass = sum(part for move, part in human.items() if move != PASS)
        passing = weights.get(PASS, 0.0) / total
        if without_pass > 0.0:
            scale = (1.0 - passing) / without_pass
            human = {move: passing if move == PASS else part * scale for move, part in human.items()}
    share = options.human_move_share
    return {move: weight + share * (total * human[move] - weight) for move, weight in weights.items()}


def _losses(utilities: Mapping[int, float], moves: Iterable[int]) -> dict[int, float]:
    """Return the utility that each move loses against the best. A move without visits counts as the visited mean."""
    mean = sum(utilities.values()) / max(1, len(utilities))
    best = max((*utilities.values(), mean))
    return {move: best - utilities.get(move, mean) for move in moves}

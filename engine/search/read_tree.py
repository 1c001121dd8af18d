"""Converts the arrays of a tree to a SearchReport: statistics, confidence bounds, order of the moves."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from yomi.engine.search.types import MoveReport, Owners, SearchReport
from yomi.native.tree.arrays import ALL_LEAVES, FIRST_SLOT, MIN_WEIGHT, Tree
from yomi.native.tree.report import CHILD_DTYPE, most_visited_path, root_children, root_exploration

LCB_STDEVS = 5.0  # distance of a lower confidence bound from the mean, in standard deviations (KataGo's value)
COLD = 0.01  # temperature below which no move is drawn
LCB_MIN_SHARE = 0.15  # share of the leading move's visits that a move needs to lead by its bound


def read_report(
    tree: Tree,
    *,
    side_to_move: int,
    seconds: float,
    evaluations: int,
    owner_sums: npt.NDArray[np.float64] | None,
    use_lcb: bool,
    pv_length: int,
) -> SearchReport:
    """Read a report from the tree. Threads may be searching it meanwhile.

    `seconds` and `evaluations` count from the start of the search. `owner_sums` are sums as in Worker.ownership; the
    rows of moves may be missing.
    """
    root = tree.nodes[tree.counters[0].root]
    visits = int(root["visits"])
    stdev = 0.0 if tree.counters[0].broken else math.sqrt(float(root["score_variance"]))
    children = read_children(tree)
    tried = children[(children["visits"] > 0) & (tree.banned[children["move"]] == 0)]
    with_people = _explores_people(tree)
    wanted = wanted_weights(tried, float(root_exploration(tree, float(tried["weight"].sum()))), by_value=with_people)
    value, utility, score = _root_means(tree, tried, wanted)
    bounds = utility_bounds(tried)
    order = move_order(tried, bounds, use_lcb, wanted if with_people else None)
    p = tree.parameters[0]
    most = 1.0 + float(p.score_utility) + float(p.dynamic_score_utility)  # utility there is
    facts = [dict(zip(CHILD_DTYPE.names or (), child, strict=True)) for child in tried.tolist()]
    limits, parts = bounds.tolist(), wanted.tolist()
    moves = tuple(
        _move_report(tree, facts[i], limits[i], parts[i], most, rank, pv_length) for rank, i in enumerate(order)
    )
    owners = None if owner_sums is None else _owners(owner_sums[ALL_LEAVES])
    by_move = owner_sums is not None and len(owner_sums) > FIRST_SLOT
    if by_move:
        assert owner_sums is not None
        slots = dict(zip(children["move"].tolist(), owner_sums[FIRST_SLOT:], strict=False))  # tried moves come first
        moves = tuple(replace(move, owners=_owners(slots[move.move])) for move in moves)
    return SearchReport(
        side_to_move=side_to_move,
        visits=visits,
        playouts=int(tree.counters[0].playouts),
        evaluations=evaluations,
        seconds=seconds,
        weight=float(tried["weight"].sum() if tree.counters[0].broken else root["weight_sum"]),
        winrate=min(1.0, max(0.0, 0.5 + 0.5 * value)),
        utility=utility,
        score_lead=score,
        score_stdev=stdev,
        moves=moves,
        deepest=int(tree.counters[0].max_depth),
        fullness=fullness(tree),
        ownership=None if owners is None else owners.mean,
        ownership_stdev=owners.stdev if owners is not None and by_move else None,
        proven=_proven(tree, children),
    )


def fullness(tree: Tree) -> float:
    """Return the used share, from 0 to 1, of the fullest pool of the tree's memory."""
    counters = tree.counters[0]
    return max(
        int(counters.node_top) / len(tree.nodes),
        int(counters.edge_top) / len(tree.edges),
        int(counters.stats_top) / len(tree.stats),
    )


def root_priors(tree: Tree) -> dict[int, float]:
    """Return the prior of each legal move of the root; empty before the root is evaluated."""
    children = read_children(tree)
    return dict(zip(children["move"].tolist(), children["prior"].tolist(), strict=True))


def read_children(tree: Tree) -> npt.NDArray[Any]:
    """Return all moves of the root, CHILD_DTYPE[n], visited moves first; empty if the root is not expanded."""
    children = np.zeros(int(tree.nodes[tree.counters[0].root]["edge_count"]), CHILD_DTYPE)
    count = root_children(tree, children) if len(children) else 0
    return children[:count]


def _proven(tree: Tree, children: npt.NDArray[Any]) -> int:
    """Return the proven result for the side to move at the root: +1 a win, -1 a loss, 0 unknown.

    A loss counts as unknown while a move of the root is banned, because the banned move may be better.
    """
    allowed = children[tree.banned[children["move"]] == 0]
    if len(allowed) == 0:
        return 0
    best = int(allowed["proven"].max())
    return best if best > 0 or len(allowed) == len(children) else 0


def utility_bounds(tried: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
    spread = tried["utility_stdev"] / np.sqrt(np.maximum(tried["evidence"], 1.0))
    bounds: npt.NDArray[np.float64] = tried["utility"] - LCB_STDEVS * spread
    return bounds


def move_order(
    tried: npt.NDArray[Any],
    bounds: npt.NDArray[np.float64],
    use_lcb: bool,
    weights: npt.NDArray[np.float64] | None = None,
) -> list[int]:
    """Return indices of the moves, best first.

    Moves are sorted by weight. The much visited move with the best bound leads if `use_lcb` is set. Proven wins precede
    all others, and proven losses follow them. `weights` replace the moves' weights and visits.
    """
    proven, visits, weight, prior = (tried[name] for name in ("proven", "visits", "weight", "prior"))
    if weights is not None:
        weight = visits = weights
    order: list[int] = np.lexsort((-prior, -weight, -proven)).tolist()
    if use_lcb and order:
        enough = LCB_MIN_SHARE * float(visits[order[0]])
        equals = [i for i in order if proven[i] == proven[order[0]] and visits[i] >= enough]
        best = max(equals, key=lambda i: bounds[i])
        order.remove(best)
        order.insert(0, best)
    return order


def wanted_weights(children: npt.NDArray[Any], factor: float, *, by_value: bool = False) -> npt.NDArray[np.float64]:
    """Return the weight that each move would have if the search had known its current value from the start.

    No weight exceeds the real one, which noise, forced playouts and wrong first values make larger. `factor` is PUCT's
    (native.tree.report.root_exploration). The moves are compared with the move of greatest weight, or with `by_value`
    of greatest PUCT value, as visits of people may have chosen the former. Source: KataGo's
    getReducedPlaySelectionWeight (cpp/search/searchexplorehelpers.cpp).
    """
    weight, utility, prior = (children[name].astype(np.float64) for name in ("weight", "utility", "prior"))
    if len(children) == 0:
        return weight
    best = int(np.argmax(weight * (1.0 - 1.0 / np.maximum(children["visits"], 1)) + 2.0 * prior))
    if by_value:
        best = int(np.argmax(utility + factor * prior / (1.0 + weight)))
    behind = utility[best] + factor * prior[best] / (1.0 + weight[best]) - utility
    wanted = np.where(behind > 0.0, np.ceil(factor * prior / np.maximum(behind, 1e-9) - 1.0), weight)
    wanted[best] = weight[best]
    return np.clip(wanted, 0.0, weight)


def draw(counts: npt.NDArray[np.float64], temperature: float, rng: np.random.Generator, only_below: float = 1.0) -> int:
    """Draw an index with a probability proportional to counts ** (1 / temperature). Near 0, take the maximum.

    Counts above the share `only_below` of the sum keep their proportions. The temperature changes smaller counts only.
    """
    if temperature < COLD and only_below >= 1.0:
        shares = (counts == counts.max()).astype(np.float64)
    else:
        start = min(only_below * counts.sum() / counts.max(), 1.0)
        shares = counts / counts.max()
        low = shares < start
        shares[low] = start * (shares[low] / start) ** (1.0 / max(temperature, COLD))
    sums = shares.cumsum()  # Generator.choice checks its arguments for longer than it draws
    return int(np.searchsorted(sums, rng.random() * sums[-1], side="right"))


def _root_means(tree: Tree, tried: npt.NDArray[Any], wanted: npt.NDArray[np.float64]) -> tuple[float, float, float]:
    """Return the root's mean value, utility and score, without visits that noise, goals or people caused."""
    root, names = tree.nodes[tree.counters[0].root], ("value", "utility", "score")
    has_extra_visits = tree.parameters[0].wide_root_noise > 0.0 or tree.counters[0].goals or _explores_people(tree)
    excess = tried["weight"] - wanted if has_extra_visits and not root["proof"] else np.zeros(len(tried))
    if tree.counters[0].broken:  # the root's own sums may not be numbers; its edges keep the last sound means
        weights = tried["weight"] / max(MIN_WEIGHT, float(tried["weight"].sum()))
        value, utility, score = (float(weights @ np.nan_to_num(tried[name])) for name in names)
        return value, utility, score
    weight = max(MIN_WEIGHT, float(root["weight_sum"]) - float(excess.sum()))
    value, utility, score = ((float(root[f"{name}_sum"]) - float(excess @ tried[name])) / weight for name in names)
    return value, utility, score


def _explores_people(tree: Tree) -> bool:
    return bool(tree.counters[0].human) and tree.parameters[0].human_root_weightless > 0.0


def _move_report(
    tree: Tree, child: dict[str, Any], bound: float, wanted: float, most: float, rank: int, pv_length: int
) -> MoveReport:
    utility = child["utility"]
    winrate = min(1.0, max(0.0, 0.5 + 0.5 * child["value"]))
    pv, visits, node_visits = [child["move"]], [child["visits"]], [child["node_visits"]]
    if pv_length:
        moves = np.zeros(pv_length, np.uint16)
        counts = np.zeros((2, pv_length), np.uint32)
        length = int(most_visited_path(tree, child["node"], moves, *counts))
        for line, found in ((pv, moves), (visits, counts[0]), (node_visits, counts[1])):
            line.extend(found[:length].tolist())
    return MoveReport(
        move=child["move"],
        visits=child["visits"],
        node_visits=child["node_visits"],
        weight=child["weight"],
        node_weight=child["node_weight"],
        wanted=wanted,
        winrate=winrate,
        utility=utility,
        score_lead=_known(child["score"]),
        score_stdev=_known(child["score_stdev"]),
        prior=child["prior"],
        lcb=winrate + 0.5 * (bound - utility) / most,
        utility_lcb=bound,
        order=rank,
        pv=tuple(pv),
        pv_visits=tuple(visits),
        pv_node_visits=tuple(node_visits),
        proven=child["proven"],
    )


def _owners(sums: npt.NDArray[np.float64]) -> Owners | None:
    """Return the ownership in a row of Worker.ownership, or None if it counts no leaf."""
    count = float(sums[0, -2])
    if count == 0.0:
        return None
    mean, square = sums[0, :-2] / count, sums[1, :-2] / count
    stdev = np.sqrt(np.maximum(square - mean * mean, 0.0))
    return Owners(mean.astype(np.float32), stdev.astype(np.float32), float(sums[0, -1]) / count)


def _known(number: float) -> float:
    """Return the score below a move; 0 if it is unknown, because pruning has removed it."""
    return 0.0 if math.isnan(number) else number

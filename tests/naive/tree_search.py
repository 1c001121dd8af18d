"""The slow twin of native/tree/search.py: one worker, one leaf at a time, no memory to manage.

The rules of Go are the kernels' (they have twins of their own); what is done here again is the tree.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from engine.search.parameters import SearchSettings
from engine.search.search import CENTER_TOLERANCE
from native.go import board, rules
from native.go.board import BLACK, KO_SIMPLE, MAX_AREA, POSITION_DTYPE, REPEATED_PASS
from native.go.game import position_key
from native.go.planes import policy_index
from native.tree.arrays import LEAD, SCORE, STDEV, VALUE
from tests.naive.go_area import area_balance

F = np.float32
ZERO = F(0)
UNSCORED = (math.inf, math.inf)
"""The end of a game that the evaluator has to score."""
Opinion = Callable[[int], tuple[npt.NDArray[np.float32], npt.NDArray[np.float32]]]
"""position key -> (logits[P], values[VALUES]) for the side to move."""


@dataclass
class SlowEdge:
    """A legal move of a node. The fields of statistics mean something once it was tried."""

    move: int
    prior: int
    """65535 is all of it."""
    child: SlowNode | None = None
    visits: int = 0
    utility: np.float32 = ZERO
    """Mean utility of the child for the side to move here."""

    @property
    def share(self) -> float:
        """The prior in [0, 1]."""
        return self.prior * float(F(1 / 65535))


@dataclass
class SlowNode:
    """All sums are for the side to move at the node."""

    edges: list[SlowEdge] = field(default_factory=list)
    tried: int = 0
    is_terminal: bool = False
    visits: int = 0
    utility_sum: float = 0.0
    utilities: list[float] = field(default_factory=list)
    """Of all playouts through the node."""
    value_sum: float = 0.0
    score_sum: float = 0.0
    scores: list[tuple[float, float]] = field(default_factory=list)
    """Of all playouts, each with the evaluator's uncertainty as a variance."""
    tried_prior: np.float32 = ZERO
    own_utility: np.float32 = ZERO

    @property
    def utility_variance(self) -> float:
        """How far the playouts' utilities are from their mean."""
        return float(np.var(self.utilities))

    @property
    def score_variance(self) -> float:
        """How far the playouts' scores are from their mean, and how far each may be from what it is."""
        return float(np.var([score for score, _ in self.scores]) + np.mean([own for _, own in self.scores]))


class SlowSearch:
    """Searches one position."""

    def __init__(self, position: Any, history: npt.NDArray[np.uint64], settings: SearchSettings, said: Opinion) -> None:
        """Take the root's position record and history, the settings, and what judges the leaves."""
        self.position = position.copy()
        self.history = history.copy()
        self.settings = settings
        self.said = said
        self.root = SlowNode()
        self.banned: set[int] = set()
        self.center = 0.0

    def run(self, playouts: int) -> None:
        """Make playouts; the score's center is measured once, before, or as the first of them evaluates the root."""
        if self.root.visits:
            center = 0.8 * self.root.score_sum / self.root.visits
            if abs(self.dynamic_utility(center, 0.0, self.center)) > CENTER_TOLERANCE:
                self.recenter(self.root, center, 1)
                self.center = center
        self.order(self.root)
        for _ in range(playouts):
            self.playout()

    def add_noise(self, noise: npt.NDArray[np.float64]) -> None:
        """Mix Dirichlet noise into the priors of the root, which is expanded."""
        share = self.settings.root_noise
        for edge, part in zip(self.root.edges, noise, strict=True):
            edge.prior = int(edge.prior * (1 - share) + 65535 * share * float(part) + 0.5)

    def playout(self) -> None:
        """Descend to a leaf, judge it, back the result up."""
        pos, history = np.zeros(1, POSITION_DTYPE)[0], self.history.copy()
        board.copy(pos, self.position)
        node, path = self.root, [self.root]
        taken: list[SlowEdge] = []
        while node.edges:
            edge = self.select(node)
            if edge is None:
                return
            if edge.child is None:
                edge.child = SlowNode()
                node.tried += 1
                node.tried_prior = F(node.tried_prior + F(F(edge.prior) * F(1 / 65535)))
                self.order(node)
            rules.play(pos, history, edge.move)
            taken.append(edge)
            node = edge.child
            path.append(node)
        self.back_up(path, taken, *self.judge(node, pos, history, len(taken)))

    def select(self, node: SlowNode) -> SlowEdge | None:
        """Return the edge to follow: one that was tried, or the best of those that were not."""
        best, best_value = None, -1e30
        factor = self.exploration(node)
        for edge in node.edges[: node.tried + 1]:
            if node is self.root and edge.move in self.banned:
                continue
            q = float(edge.utility) if edge.visits else self.first_play_urgency(node)
            value = q + factor * edge.share / (1.0 + edge.visits)
            if value > best_value:
                best, best_value = edge, value
        return best

    def exploration(self, node: SlowNode) -> float:
        """Return c_puct, grown with the visits and with the spread of the utilities, times their square root."""
        s = self.settings
        weight = float(sum(edge.visits for edge in node.edges))
        c, base = s.c_puct, s.c_puct_base
        if node is self.root:
            c = c if s.root_c_puct is None else s.root_c_puct
            base = base if s.root_c_puct_base is None else s.root_c_puct_base
        c += s.c_puct_log * math.log((weight + base) / base)
        stdev = math.sqrt((node.utility_variance * node.visits + 2.0 * 0.4 * 0.4) / (node.visits + 2.0))
        return c * (1.0 + s.spread_scale * (stdev / 0.4 - 1.0)) * math.sqrt(weight + 0.01)

    def first_play_urgency(self, node: SlowNode) -> float:
        """Return the utility that an untried move is taken to have."""
        s = self.settings
        mass = min(1.0, float(node.tried_prior))
        share = 1.0 if s.fpu_from_mean else mass**2
        parent = share * node.utility_sum / node.visits + (1.0 - share) * float(node.own_utility)
        return parent - (s.root_fpu_reduction if node is self.root else s.fpu_reduction) * math.sqrt(mass)

    def order(self, node: SlowNode) -> None:
        """Put the untried edge of greatest prior next, by swapping.

        Among equals the greatest move is first; where moves are banned at the root, these are last and among equals
        the one that stands first stays so.
        """
        rest = range(node.tried, len(node.edges))
        if not rest:
            return
        if node is self.root and self.banned:
            ranks = [-1 if node.edges[i].move in self.banned else node.edges[i].prior for i in rest]
            best = rest[ranks.index(max(ranks))]
        else:
            best = max(rest, key=lambda i: (node.edges[i].prior, node.edges[i].move))
        node.edges[node.tried], node.edges[best] = node.edges[best], node.edges[node.tried]

    def judge(self, node: SlowNode, pos: Any, history: Any, depth: int) -> tuple[float, float, float, float]:
        """Return (utility, value, score, the score's stdev) of a leaf for its side to move; expand it."""
        if node.is_terminal:
            n = node.visits
            return float(node.own_utility), node.value_sum / n, node.score_sum / n, math.sqrt(node.score_variance)
        end = self.end_of_game(pos, history) if depth else None
        node.is_terminal = end is not None
        if end is not None and end != UNSCORED:
            values = np.array([end[0], end[1], 0, end[1]], F)
        else:
            logits, values = self.said(self.key(pos, history))
        if not node.is_terminal:
            node.edges = self.expand(pos, history, logits, self.temperature(depth))
            if node is self.root:
                self.center = 0.8 * float(values[LEAD])
        utility = self.utility(values, depth)
        node.own_utility = F(utility)
        self.order(node)
        return utility, float(values[VALUE]), float(values[LEAD]), float(values[STDEV])

    def key(self, pos: Any, history: Any) -> int:
        """Return the key of the position's evaluation."""
        moves = np.zeros(MAX_AREA + 1, np.uint16)
        return int(position_key(pos, history, moves, rules.legal_moves(pos, history, moves)))

    def temperature(self, depth: int) -> float:
        """Return the temperature of the policy."""
        return self.settings.policy_temperature if depth else self.settings.root_temperature

    def end_of_game(self, pos: Any, history: Any) -> tuple[float, float] | None:
        """Return (value, score) of a finished game (area scoring) for the side to move, else None.

        UNSCORED where the players would agree on dead stones.
        """
        repeated = pos["passes"] == 1 and pos["finished"] == REPEATED_PASS
        if pos["passes"] >= 2 and pos["friendly_pass"] and pos["judges_agreement"]:
            return UNSCORED
        if pos["passes"] >= 2 or repeated:
            score = area_balance(pos) - float(pos["komi"])
            score = score if pos["side_to_move"] == BLACK else -score
            return float(np.sign(score)), score
        if pos["ko_rule"] == KO_SIMPLE and rules.is_third_repetition(pos, history):
            return 0.0, 0.0
        return None

    def expand(self, pos: Any, history: Any, logits: npt.NDArray[np.float32], temperature: float) -> list[SlowEdge]:
        """Return the edges of a leaf."""
        moves = np.zeros(MAX_AREA + 1, np.uint16)
        moves = moves[: rules.legal_moves(pos, history, moves)]
        scores = [float(logits[policy_index(int(pos["size"]), int(move), 0)]) for move in moves]
        weights = [math.exp((score - max(scores)) / temperature) for score in scores]
        priors = [int(min(65535.0, weight / sum(weights) * 65535.0 + 0.5)) for weight in weights]
        return [SlowEdge(int(move), prior) for move, prior in zip(moves, priors, strict=True)]

    def utility(self, values: npt.NDArray[np.float32], depth: int) -> float:
        """Return value and score together."""
        mean, stdev = float(values[SCORE]), float(values[STDEV])
        static = self.settings.score_utility * squashed(mean, stdev, 2.0 * float(self.position["size"]))
        center = -self.center if depth % 2 else self.center
        return float(values[VALUE]) + static + self.dynamic_utility(mean, stdev, center)

    def dynamic_utility(self, mean: float, stdev: float, center: float) -> float:
        """Return the utility of a score measured from `center`."""
        width = 0.75 * float(self.position["size"])
        return self.settings.dynamic_score_utility * squashed(mean - center, stdev, width)

    def recenter(self, node: SlowNode, center: float, sign: int) -> float:
        """Count the utilities from `node` down anew, and return by how much its sum changes.

        center and self.center are for the root's side, for which sign is 1.
        """
        children = [edge.child for edge in node.edges[: node.tried] if edge.child is not None]
        visits = node.visits - sum(child.visits for child in children)
        mean = (node.score_sum + sum(child.score_sum for child in children)) / visits
        stdev = math.sqrt(node.score_variance)
        own = self.dynamic_utility(mean, stdev, sign * center) - self.dynamic_utility(mean, stdev, sign * self.center)
        change = own * visits - sum(self.recenter(child, center, -sign) for child in children)
        node.own_utility = F(node.own_utility + F(own))
        node.utility_sum += change
        for edge in node.edges[: node.tried]:
            if edge.child is not None:
                edge.utility = F(-edge.child.utility_sum / edge.child.visits)
        return change

    def back_up(
        self, path: list[SlowNode], taken: list[SlowEdge], utility: float, value: float, score: float, stdev: float
    ) -> None:
        """Add the result to the leaf and to all nodes above it."""
        for depth in range(len(path) - 1, -1, -1):
            node = path[depth]
            node.visits += 1
            node.utility_sum += utility
            node.utilities.append(utility)
            node.value_sum += value
            node.score_sum += score
            node.scores.append((score, stdev * stdev))
            if depth:
                taken[depth - 1].visits = node.visits
                taken[depth - 1].utility = F(-node.utility_sum / node.visits)
            utility, value, score = -utility, -value, -score


def squashed(score: float, stdev: float, width: float) -> float:
    """Return the mean of (2/pi) arctan(x / width) for x normal around `score`."""
    return math.atan(score / math.sqrt(width * width + 0.5 * stdev * stdev)) * 2.0 / math.pi


def shape_of(node: SlowNode) -> dict[str, Any]:
    """Return the node and all below it, as tests.unit.trees.shape_of returns those of the real tree."""
    return {
        "visits": node.visits,
        "state": "terminal" if node.is_terminal else "expanded",
        "legal": len(node.edges),
        "children": {
            edge.move: (edge.visits, shape_of(edge.child))
            for edge in node.edges[: node.tried]
            if edge.child is not None
        },
    }

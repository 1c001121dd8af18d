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

from tests.naive.go_area import area_balance
from yomi.engine.search.root import CENTER_TOLERANCE
from yomi.engine.search.types import SearchSettings
from yomi.native.go import board, rules
from yomi.native.go.board import BLACK, KO_SIMPLE, MAX_AREA, POSITION_DTYPE, REPEATED_PASS, pattern_key
from yomi.native.go.planes import policy_index
from yomi.native.go.scratch import SCRATCH_DTYPE
from yomi.native.go.spec import graph_key, position_key
from yomi.native.tree.arrays import LEAD, MIN_BUCKETS, SCORE, SCORE_ERROR, STDEV, VALUE, VALUE_ERROR

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
    exact: float = 0.0
    """The prior in [0, 1] before it was rounded."""
    child: SlowNode | None = None
    visits: int = 0
    weight: float = 0.0
    """Of the child's evaluations, as of the means below when a playout last came back."""
    counts: float = 1.0
    """Share of the weight that counts in the node's mean."""
    utility: float = 0.0
    """Mean utility of the child for the side to move here."""
    value: float = 0.0
    score: float = 0.0

    @property
    def share(self) -> float:
        """The prior in [0, 1]."""
        return self.prior * float(F(1 / 65535))


@dataclass
class SlowNode:
    """Everything is for the side to move at the node."""

    edges: list[SlowEdge] = field(default_factory=list)
    without: list[int] = field(default_factory=list)
    """Legal moves that have no edge, since they share next to nothing of the priors."""
    tried: int = 0
    is_terminal: bool = False
    visits: int = 0
    own_weight: float = 0.0
    """Of the node's own evaluation; of a finished game, of all that ended there."""
    each_weight: float = 0.0
    """Of a single evaluation."""
    stdev: float = 0.0
    own_value: float = 0.0
    own_score: float = 0.0
    own_bias: float = 0.0
    """What its own utility is corrected by."""
    weight_sum: float = 0.0
    utility_sum: float = 0.0
    value_sum: float = 0.0
    score_sum: float = 0.0
    utility_variance: float = 0.0
    score_variance: float = 0.0
    bucket: int | None = None
    key: int = 0
    """Under which lines share the node."""
    weigh_at: int = 0
    """Visits at which it is decided anew what counts."""
    given: tuple[float, float] = (0.0, 0.0)
    """Weighted difference, and weight, that the node has put into its bucket."""
    tried_prior: np.float32 = ZERO
    own_utility: np.float32 = ZERO

    def add_up(self) -> None:
        """Make the sums of the node's own evaluation and of its edges."""
        taken = self.edges[: self.tried]
        own = self.own_weight
        self.weight_sum = own + sum(edge.weight * edge.counts for edge in taken)
        own_utility = float(self.own_utility) + self.own_bias
        self.utility_sum = own * own_utility + sum(edge.weight * edge.counts * edge.utility for edge in taken)
        self.value_sum = own * self.own_value + sum(edge.weight * edge.counts * edge.value for edge in taken)
        self.score_sum = own * self.own_score + sum(edge.weight * edge.counts * edge.score for edge in taken)

    def add_spread(self, weight: float, utility: float, score: float, variances: tuple[float, float]) -> None:
        """Add a playout to the variances; the sums hold it."""
        share = min(1.0, weight / self.weight_sum)  # of which much may have been taken for noise
        unbiased = self.visits / max(1, self.visits - 1)
        off, score_off = utility - self.utility_sum / self.weight_sum, score - self.score_sum / self.weight_sum
        self.utility_variance += (off**2 * unbiased + variances[0] - self.utility_variance) * share
        self.score_variance += (score_off**2 * unbiased + variances[1] - self.score_variance) * share


def noise(turn: int, move: int) -> float:
    """Return what is drawn for a move in a turn: the size of a normal number, or 0."""
    word = (turn + 1) * 0x9E3779B97F4A7C15 % 2**64 ^ move * 0xD1B54A32D192ED03 % 2**64
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB), (31, 1)):
        word = (word ^ word >> shift) * factor % 2**64
    first, second = (word >> 40) + 1, word >> 16 & 0xFFFFFF
    drawn = math.sqrt(-2.0 * math.log(first / 2**24)) * abs(math.cos(2.0 * math.pi * second / 2**24))
    return 0.0 if word % 2 else drawn


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
        self.most_weight = 1.0
        self.buckets: dict[int, tuple[float, float]] = {}
        """By pattern: weighted differences and their weights, added up."""
        self.nodes: dict[int, SlowNode] = {}
        """Those that lines share, by key."""
        self.scratch = np.zeros(1, SCRATCH_DTYPE)[0]

    def run(self, playouts: int) -> None:
        """Make playouts; the score's center is measured once, before, or as the first of them evaluates the root."""
        if self.root.visits:
            center = 0.8 * self.root.score_sum / self.root.weight_sum
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
            pattern = int(pattern_key(pos, history, edge.move)) % MIN_BUCKETS
            rules.play(pos, history, edge.move)
            if edge.child is None:
                edge.child = SlowNode(bucket=pattern if self.settings.bias_correction else None)
                if self.settings.graph:
                    edge.child.key = int(graph_key(pos, history, edge.move, np.uint64(node.key), self.scratch))
                    edge.child = self.nodes.setdefault(edge.child.key, edge.child)
                node.tried += 1
                node.tried_prior = F(node.tried_prior + F(F(edge.prior) * F(1 / 65535)))
                self.order(node)
            taken.append(edge)
            node = edge.child
            path.append(node)
            if node.visits > edge.visits:  # other lines know more of it
                self.back_up(path, taken, joins=True)
                return
        self.judge(node, pos, history, len(taken))
        self.back_up(path, taken)

    def select(self, node: SlowNode) -> SlowEdge | None:
        """Return the edge to follow: one that was tried, or the best of those that were not."""
        best, best_value = None, -1e30
        factor = self.exploration(node)
        for edge in node.edges[: node.tried + 1]:
            if node is self.root and edge.move in self.banned:
                continue
            q = float(edge.utility) if edge.visits else self.first_play_urgency(node)
            share = edge.share * self.prior_factor(node)
            if node is self.root and self.settings.wide_root_noise:
                q += self.settings.wide_root_noise * noise(node.visits, edge.move)
                share **= 1.0 / (4.0 * self.settings.wide_root_noise + 1.0)
            value = q + factor * share / (1.0 + edge.weight)
            if value > best_value:
                best, best_value = edge, value
        if node.tried == len(node.edges) and node.without:
            share = max(0.0, 1.0 - float(node.tried_prior)) / len(node.without)
            if self.first_play_urgency(node) + factor * share > best_value:
                left = max(0, 65535 - sum(edge.prior for edge in node.edges))
                prior = int(left / len(node.without) + 0.5)
                node.edges += [SlowEdge(move, prior) for move in node.without]
                node.without = []
                self.order(node)
                return node.edges[node.tried]
        return best

    def exploration(self, node: SlowNode) -> float:
        """Return c_puct, grown with the visits and with the spread of the utilities, times their square root."""
        s = self.settings
        weight = sum(edge.weight for edge in node.edges)
        c, base = s.c_puct, s.c_puct_base
        if node is self.root:
            c = c if s.root_c_puct is None else s.root_c_puct
            base = base if s.root_c_puct_base is None else s.root_c_puct_base
        c += s.c_puct_log * math.log((weight + base) / base)
        stdev = math.sqrt((node.utility_variance * node.visits + 2.0 * 0.4 * 0.4) / (node.visits + 2.0))
        return c * (1.0 + s.spread_scale * (stdev / 0.4 - 1.0)) * math.sqrt(weight + 0.01)

    def prior_factor(self, node: SlowNode) -> float:
        """Return the factor with which the root's priors, without untried banned moves, sum to 1; 1 elsewhere."""
        if node is not self.root or not self.banned:
            return 1.0
        left = sum(edge.prior for edge in node.edges[node.tried :] if edge.move not in self.banned)
        return 1.0 / max(float(node.tried_prior) + left / 65535, 1.0 / 65535)

    def first_play_urgency(self, node: SlowNode) -> float:
        """Return the utility that an untried move is taken to have."""
        s = self.settings
        mass = min(1.0, float(node.tried_prior) * self.prior_factor(node))
        share = 1.0 if s.fpu_from_mean else mass**2
        parent = share * node.utility_sum / node.weight_sum + (1.0 - share) * float(node.own_utility)
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

    def judge(self, node: SlowNode, pos: Any, history: Any, depth: int) -> None:
        """Give a leaf its evaluation, and its edges; a finished game has its own once more each time."""
        if node.is_terminal:
            node.own_weight += node.each_weight
            return
        end = self.end_of_game(pos, history) if depth else None
        node.is_terminal = end is not None
        if end is not None and end != UNSCORED:
            values = np.array([end[0], end[1], 0, end[1], 0, 0], F)
        else:
            logits, values = self.said(self.key(pos, history))
        if not node.is_terminal:
            node.edges = self.expand(pos, history, logits, self.temperature(depth))
            if depth:
                bound = 1 / 1024
                while sum(edge.exact for edge in node.edges if edge.exact < bound) > 0.02:
                    bound /= 2
                node.without = [edge.move for edge in node.edges if edge.exact < bound]
                node.edges = [edge for edge in node.edges if edge.exact >= bound]
            if node is self.root:
                self.center = 0.8 * float(values[LEAD])
                self.most_weight = 8.0 if self.settings.uncertainty and values[VALUE_ERROR] > 0 else 1.0
        node.own_utility = F(self.utility(values, depth))
        node.own_value, node.own_score, node.stdev = float(values[VALUE]), float(values[LEAD]), float(values[STDEV])
        is_exact = end is not None and end != UNSCORED
        node.own_weight = node.each_weight = float(F(self.most_weight if is_exact else self.weight(values, depth)))
        self.order(node)

    def weight(self, values: npt.NDArray[np.float32], depth: int) -> float:
        """Return the weight of an evaluation: the greater the expected error of its utility, the less."""
        if not self.settings.uncertainty or values[VALUE_ERROR] <= 0:
            return 1.0
        plain = values.copy()
        plain[VALUE] = plain[STDEV] = 0
        step = 1e-3
        above, below = plain.copy(), plain.copy()
        above[SCORE] += step
        below[SCORE] -= step
        slope = (self.utility(above, depth) - self.utility(below, depth)) / float(above[SCORE] - below[SCORE])
        error = float(values[VALUE_ERROR]) + slope * float(values[SCORE_ERROR])
        return 0.25 / (error + 0.25 / 8.0)

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
        scores = [float(logits[policy_index(int(pos["size"]), int(pos["height"]), int(move), 0)]) for move in moves]
        weights = [math.exp((score - max(scores)) / temperature) for score in scores]
        shares = [weight / sum(weights) for weight in weights]
        priors = [int(min(65535.0, share * 65535.0 + 0.5)) for share in shares]
        return [SlowEdge(int(move), *each) for move, *each in zip(moves, priors, shares, strict=True)]

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

    def recenter(self, node: SlowNode, center: float, sign: int) -> None:
        """Count the utilities from `node` down anew.

        center and self.center are for the root's side, for which sign is 1.
        """
        taken = node.edges[: node.tried]
        own_weight = node.weight_sum - sum(edge.weight * edge.counts for edge in taken)
        mean = (node.score_sum - sum(edge.weight * edge.counts * edge.score for edge in taken)) / own_weight
        stdev = math.sqrt(node.score_variance)
        own = self.dynamic_utility(mean, stdev, sign * center) - self.dynamic_utility(mean, stdev, sign * self.center)
        node.own_utility = F(node.own_utility + F(own))
        for edge in taken:
            if edge.child is not None:
                self.recenter(edge.child, center, -sign)
                edge.utility = float(F(-edge.child.utility_sum / edge.child.weight_sum))
        node.add_up()

    def correct(self, node: SlowNode) -> None:
        """Tell the node's bucket what was found below it, and correct its evaluation by what the bucket holds."""
        if node.bucket is None or node.is_terminal:
            return
        taken = node.edges[: node.tried]
        weight = sum(edge.weight * edge.counts for edge in taken)
        given = (0.0, 0.0)
        if weight > 1e-3:
            found = sum(edge.weight * edge.counts * edge.utility for edge in taken) / weight
            given = ((found - float(node.own_utility)) * weight**0.75, weight**0.75)
        before = self.buckets.get(node.bucket, (0.0, 0.0))
        total, weights = (old + new - gone for old, new, gone in zip(before, given, node.given, strict=True))
        self.buckets[node.bucket] = total, weights
        node.given = given
        node.own_bias = float(F(self.settings.bias_correction * total / weights)) if weights > 1e-3 else 0.0

    def weigh(self, node: SlowNode) -> None:
        """Decide how much of the weight of each edge counts, where visits have grown by an eighth."""
        scale, power = self.settings.noise_pruning, self.settings.value_weighting
        if not (scale or power) or node.visits < node.weigh_at:
            return
        node.weigh_at = node.visits + 1 + node.visits // 8
        taken = [edge for edge in node.edges[: node.tried] if edge.weight]
        weight = utility = prior = 0.0
        """Of the moves of greater prior."""
        for edge in taken:
            counted = edge.weight
            gap = utility / weight - edge.utility if weight else 0.0
            excess = edge.weight - 2.0 * weight * edge.share / prior if prior else 0.0
            if scale and gap > 0 and excess > 0:
                counted -= excess * (1 - math.exp(-gap / scale))
            edge.counts = float(F(counted / edge.weight))
            weight, utility, prior = weight + counted, utility + counted * edge.utility, prior + edge.share
        if not weight:
            return
        weights = np.array([edge.weight * edge.counts for edge in taken])
        utilities = np.array([edge.utility for edge in taken])
        z = (utilities - weights @ utilities / weights.sum()) * np.sqrt(1.5 * np.sqrt(weights))
        shares = (student(z) + 1e-4) ** power
        factor = F(weights.sum() / (weights @ shares))
        for edge, share in zip(taken, shares, strict=True):
            edge.counts = float(F(F(F(edge.counts) * F(share)) * factor))

    def back_up(self, path: list[SlowNode], taken: list[SlowEdge], *, joins: bool = False) -> None:
        """Bring what the leaf was found to be worth, or what a node that the line joins says, to all nodes above it."""
        leaf = path[-1]
        if joins:
            weight, variances = leaf.weight_sum / leaf.visits, (leaf.utility_variance, leaf.score_variance)
            utility, score = leaf.utility_sum / leaf.weight_sum, leaf.score_sum / leaf.weight_sum
        else:
            leaf.visits += 1
            self.correct(leaf)
            leaf.add_up()
            weight, variances = leaf.each_weight, (0.0, leaf.stdev**2)
            utility, score = float(leaf.own_utility) + leaf.own_bias, leaf.own_score
            leaf.add_spread(weight, utility, score, variances)
        for node, edge in zip(path[-2::-1], taken[::-1], strict=True):
            child = edge.child
            assert child is not None
            utility, score = -utility, -score
            edge.visits += 1
            edge.weight = float(F(child.weight_sum * min(1.0, math.sqrt(edge.visits / child.visits))))
            edge.utility, edge.value, edge.score = (
                float(F(-each / child.weight_sum)) for each in (child.utility_sum, child.value_sum, child.score_sum)
            )
            self.weigh(node)
            self.correct(node)
            node.visits += 1
            node.add_up()
            node.add_spread(weight, utility, score, variances)


def student(z: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return the distribution function of Student's t with three degrees of freedom."""
    return 0.5 + (z / math.sqrt(3) / (1 + z * z / 3) + np.arctan(z / math.sqrt(3))) / math.pi


def squashed(score: float, stdev: float, width: float) -> float:
    """Return the mean of (2/pi) arctan(x / width) for x normal around `score`."""
    return math.atan(score / math.sqrt(width * width + 0.5 * stdev * stdev)) * 2.0 / math.pi


def shape_of(node: SlowNode) -> dict[str, Any]:
    """Return the node and all below it, as tests.unit.trees.shape_of returns those of the real tree."""
    return {
        "visits": node.visits,
        "state": "terminal" if node.is_terminal else "expanded",
        "legal": len(node.edges) + len(node.without),
        "children": {
            edge.move: (edge.visits, shape_of(edge.child))
            for edge in node.edges[: node.tried]
            if edge.child is not None
        },
    }

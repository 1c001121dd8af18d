"""The root of a tree: position, allowed moves, priors with noise and temperature, score center, reuse of the tree.

The search (`yomi.engine.search.search`) and self-play (`yomi.engine.learning.searches`) share it.
"""

import threading
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from yomi.engine.evaluators.queue import EvaluationQueue, evaluate_batch
from yomi.engine.search.read_tree import read_children
from yomi.engine.search.types import SearchableGame, SearchSettings
from yomi.native.game_calls import BoundBoard
from yomi.native.spec import GameSpec, Inputs
from yomi.native.tree.arrays import EXPANDED, MIN_WEIGHT, Tree, Worker, make_tree
from yomi.native.tree.buffers import make_batch
from yomi.native.tree.edges import PRIOR_SCALE, PRIOR_STEP, all_moves, all_quantized, with_quantized
from yomi.native.tree.expansion import complete_root
from yomi.native.tree.memory import clear_tree, compact
from yomi.native.tree.report import find_child, restore_root_order, root_exploration
from yomi.native.tree.search import CENTER_SHARE, dynamic_utility, recenter
from yomi.native.tree.searcher import Searcher

CENTER_TOLERANCE = 0.002  # utility; the score is centered again only beyond this, because that takes time


class TreeRoot:
    """The root of one tree. Call methods that change it only while no search thread runs."""

    def __init__(
        self,
        spec: GameSpec,
        settings: SearchSettings,
        tree: Tree,
        worker: Worker,
        board: BoundBoard,
        generator: np.random.Generator,
    ) -> None:
        """Clear the tree. `worker` and `board` evaluate the root; `generator` draws the noise."""
        self.spec, self.tree, self._worker, self._board = spec, tree, worker, board
        # Held while the root changes, and by readers of a tree that may change.
        self.lock = threading.RLock()
        self._generator = generator
        self.configure(settings)
        self.clear()

    def configure(self, settings: SearchSettings) -> None:
        """Apply search settings. The number of rows per leaf must not change."""
        self.settings = settings
        settings.write(self.tree, self.spec.score_unit)

    # -- reading ---------------------------------------------------------------------------------------------------

    @property
    def visits(self) -> int:
        return int(self._node["visits"])

    @property
    def value(self) -> float:
        """Mean value in [-1, 1], for the side to move."""
        return self._mean("value_sum")

    @property
    def score(self) -> float:
        """Mean lead of the side to move, in points."""
        return self._mean("score_sum")

    def children(self) -> npt.NDArray[Any]:
        """Return all moves of the root, CHILD_DTYPE[n], visited moves first; empty before the root is evaluated."""
        return read_children(self.tree)

    def exploration(self, playouts: float) -> float:
        """Return the factor that PUCT multiplies with prior / (1 + visits) at the root after `playouts` playouts."""
        return float(root_exploration(self.tree, playouts))

    # -- position and moves ----------------------------------------------------------------------------------------

    def clear(self) -> None:
        with self.lock:
            clear_tree(self.tree)
            # The edges without noise, in any order, while the tree has noise.
            self._clean: npt.NDArray[np.uint32] | None = None
            self._is_tempered = True  # whether the priors have the root's temperature

    def move_to(self, game: SearchableGame, line: Sequence[int] | None) -> bool:
        """Make a game's position the root. Return whether its subtree was kept.

        `line` contains the moves from the current root to the position; None drops the tree. After a move or a drop of
        the tree all moves are allowed.
        """
        with self.lock:
            board = self._board.board
            board.root[0] = self.spec.with_flags(game.position)
            length = int(game.position["history_length"])
            board.history[:length] = game.history[:length]
            if line is not None and not line:
                return True
            self.ban(None)
            count = self._board.count_moves()
            if (
                line is None
                or not self._follow(line)
                or not self._is_of(board.moves[:count])
                or not complete_root(self.tree, board.moves, count)
            ):
                self.clear()
                return False
            return True

    def _follow(self, line: Sequence[int]) -> bool:
        """Move the root along a line. Return False if the tree has not expanded its last position."""
        counters = self.tree.counters[0]
        for move in line:
            child = int(find_child(self.tree, move))
            if child < 0:
                return False
            counters.root = child
        if int(self._node["state"]) != EXPANDED:
            return False
        compact(self.tree, counters.root, 0, drop_draws=self.spec.root_decides)
        if len(line) % 2:
            counters.score_center *= -1.0  # for the side to move
        counters.max_depth = 0
        self._clean, self._is_tempered = None, False
        return True

    def _is_of(self, moves: npt.NDArray[np.uint16]) -> bool:
        """Return whether the root was expanded with exactly these legal moves.

        Two lines that share a node may have different superko bans later (`may_repeat_soon` in native/go/rules.py). The
        node may have been expanded for a line that was not played.
        """
        return int(self._node["legal"]) == len(moves) and bool(np.isin(all_moves(self._edges()), moves).all())

    def ban(self, banned: npt.NDArray[np.uint8] | None) -> None:
        """Restrict the root to moves that are 0 in `banned`, an array like `Tree.banned`; None allows all moves."""
        counters = self.tree.counters[0]
        if (banned is None and not counters.bans) or (banned is not None and np.array_equal(banned, self.tree.banned)):
            return
        self.tree.banned[:] = 0 if banned is None else banned
        counters.bans = int(self.tree.banned.any())
        restore_root_order(self.tree)

    # -- before a search -------------------------------------------------------------------------------------------

    def prepare(self, *, noise: bool = False) -> None:
        """Center the score, and give the root's priors their temperature and noise.

        `noise`: mix in the settings' Dirichlet noise; the root must be expanded. Without it, earlier noise is removed.
        """
        settings = self.settings
        with self.lock:
            self._center_score()
            self._remove_noise()  # each search has noise of its own, or none
            self._temper(settings.policy_temperature / settings.root_temperature)
            if noise and len(edges := self._edges()):
                self._clean = edges.copy()
                drawn = self._generator.dirichlet(np.full(len(edges), settings.root_noise_total / len(edges)))
                share = settings.root_noise
                edges[:] = with_quantized(edges, all_quantized(edges) * (1.0 - share) + PRIOR_SCALE * share * drawn)
                self._update_priors()

    def renew(self, queue: EvaluationQueue, *, hide_history: bool = False) -> None:
        """Evaluate a reused root again, if the settings ask for it and a network is used, or if `hide_history` is set.

        The root gets new priors. With `hide_history`, the new value also replaces the old value in the root's sums.

        Raises:
            Exception: from the evaluator. The tree is empty then.
        """
        if not (hide_history or (self.settings.renew_root and queue.evaluator.inputs & Inputs.NETWORK)):
            return
        if self.visits <= 1:  # nothing below is worth keeping
            self.clear()
            return
        # The root was expanded as an inner node: with the temperature and optimism of the policy there, and without
        # edges for the least likely moves.
        try:
            other = self._evaluate(queue)
        except Exception:
            self.clear()
            raise
        with self.lock:
            if hide_history:
                self._replace_evaluation(other)
            edges, new = self._edges(), _edges_of(other)
            edges[np.argsort(all_moves(edges))] = new[np.argsort(all_moves(new))]
            self._is_tempered = True
            self._update_priors()

    @property
    def _node(self) -> Any:
        return self.tree.nodes[self.tree.counters[0].root]

    def _mean(self, name: str) -> float:
        node = self._node
        return float(node[name]) / max(MIN_WEIGHT, float(node["weight_sum"]))

    def _edges(self) -> npt.NDArray[np.uint32]:
        return _edges_of(self.tree)

    def _center_score(self) -> None:
        """Center the utility of scores on the root's expected score, unless this would change almost nothing."""
        if not self.visits:  # the root's evaluation will be the center
            return
        center = CENTER_SHARE * self.score
        # The center's own utility is 0, and nothing changes by more than it does.
        if abs(dynamic_utility(self.tree, center, 0.0, self.tree.counters[0].score_center)) > CENTER_TOLERANCE:
            recenter(self.tree, center)

    def _remove_noise(self) -> None:
        if self._clean is not None:
            edges, clean = self._edges(), self._clean
            edges[np.argsort(all_moves(edges))] = clean[np.argsort(all_moves(clean))]
            self._clean = None
            self._update_priors()

    def _temper(self, exponent: float) -> None:
        """Raise the priors of a former inner node to a power. Happens once after each change of the root."""
        if self._is_tempered or exponent == 1.0:
            return
        edges = self._edges()
        priors = all_quantized(edges).astype(np.float64)
        priors = (priors / priors.max()) ** exponent
        edges[:] = with_quantized(edges, priors * (PRIOR_SCALE / priors.sum()))
        self._is_tempered = True
        self._update_priors()

    def _update_priors(self) -> None:
        node = self._node
        node["tried_prior"] = float(all_quantized(self._edges()[: int(node["tried"])]).sum()) * PRIOR_STEP
        restore_root_order(self.tree)

    def _evaluate(self, queue: EvaluationQueue) -> Tree:
        tree = evaluate_root(queue, self.spec, self.settings, self._worker, self._board)
        recenter(tree, float(self.tree.counters[0].score_center))
        return tree

    def _replace_evaluation(self, other: Tree) -> None:
        """Replace the root's own evaluation in its sums by that of another tree's root, which has one visit."""
        node, new = self._node, other.nodes[other.counters[0].root]
        if node["proof"]:  # no evaluation counts there any more
            return
        first = int(node["stats"])
        stats = self.tree.stats[first : first + int(node["tried"])]
        counted = stats["weight"].astype(np.float64) * stats["share"]
        for name in ("weight", "utility", "value", "score"):
            sums = counted if name == "weight" else counted * stats[name]
            node[f"{name}_sum"] = sums.sum() + new[f"{name}_sum"]
        for name in ("own_utility", "own_weight", "own_bias"):
            node[name] = new[name]


def evaluate_root(
    queue: EvaluationQueue, spec: GameSpec, settings: SearchSettings, worker: Worker, board: BoundBoard
) -> Tree:
    """Return a tree with one visit: the board's root, evaluated and expanded as a root."""
    tree = make_tree(0, spec.mean_moves, 0, spec.policy_size, spec.cached_moves)
    clear_tree(tree)
    settings.write(tree, spec.score_unit)
    tree.counters[0].claim_limit = 1
    batch = make_batch(spec, settings.rows_per_leaf, queue.evaluator.inputs)
    searcher = Searcher(tree, worker, board, batch)
    searcher.advance(evaluate_batch(queue, batch, searcher.advance(0)))
    return tree


def _edges_of(tree: Tree) -> npt.NDArray[np.uint32]:
    node = tree.nodes[tree.counters[0].root]
    first = int(node["edges"])
    edges: npt.NDArray[np.uint32] = tree.edges[first : first + int(node["edge_count"])]
    return edges

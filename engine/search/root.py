"""The root of a tree: priors with its own temperature and noise, and its evaluation after a search has moved on.

A root from further down the tree was expanded as an inner node: with the temperature and optimism of the policy there,
and without edges for the least likely moves.
"""

from __future__ import annotations

from queue import SimpleQueue
from typing import TYPE_CHECKING

import numpy as np

from yomi.engine.evaluators.queue import Job
from yomi.native.spec import Inputs
from yomi.native.tree.arrays import make_tree
from yomi.native.tree.buffers import make_batch
from yomi.native.tree.edges import PRIOR_SCALE, PRIOR_STEP, all_moves, all_quantized, with_quantized
from yomi.native.tree.memory import clear_tree
from yomi.native.tree.report import restore_root_order
from yomi.native.tree.search import recenter
from yomi.native.tree.searcher import Searcher

if TYPE_CHECKING:
    import numpy.typing as npt

    from yomi.engine.evaluators.queue import EvaluationQueue
    from yomi.engine.search.settings import SearchSettings
    from yomi.native.game_calls import BoundBoard
    from yomi.native.spec import GameSpec
    from yomi.native.tree.arrays import Tree, Worker


class RootPriors:
    """Changes the priors of the root's edges in place, while no search thread runs."""

    def __init__(self, tree: Tree, generator: np.random.Generator) -> None:
        """The tree is empty; `generator` draws the noise."""
        self._tree = tree
        self._generator = generator
        # the root's edges without noise, in any order, while the tree has noise
        self._clean: npt.NDArray[np.uint32] | None = None
        self._is_tempered = True  # whether the priors have the root's temperature

    def clear(self) -> None:
        self._clean = None
        self._is_tempered = True

    def move_on(self) -> None:
        self._clean = None
        self._is_tempered = False

    def remove_noise(self) -> None:
        if self._clean is None:
            return
        edges, clean = self._edges(), self._clean
        edges[np.argsort(all_moves(edges))] = clean[np.argsort(all_moves(clean))]
        self._clean = None
        self._bring_up_to_date()

    def temper(self, exponent: float) -> None:
        """Raise the priors of a root that was an inner node to a power, once."""
        if self._is_tempered or exponent == 1.0:
            return
        edges = self._edges()
        priors = all_quantized(edges).astype(np.float64)
        priors = (priors / priors.max()) ** exponent
        edges[:] = with_quantized(edges, priors * (PRIOR_SCALE / priors.sum()))
        self._is_tempered = True
        self._bring_up_to_date()

    def add_noise(self, share: float, total: float) -> None:
        """Mix a `share` of Dirichlet noise into the priors. Its parameters are equal for all moves, with the sum
        `total`.
        """
        edges = self._edges()
        if len(edges) == 0:
            return
        self._clean = edges.copy()
        noise = self._generator.dirichlet(np.full(len(edges), total / len(edges)))
        edges[:] = with_quantized(edges, all_quantized(edges) * (1.0 - share) + PRIOR_SCALE * share * noise)
        self._bring_up_to_date()

    def replace(self, other: Tree) -> None:
        """Copy the priors of another tree's root: of the same position, expanded as a root."""
        edges, new = self._edges(), _edges_of(other)
        edges[np.argsort(all_moves(edges))] = new[np.argsort(all_moves(new))]
        self._is_tempered = True
        self._bring_up_to_date()

    def _edges(self) -> npt.NDArray[np.uint32]:
        return _edges_of(self._tree)

    def _bring_up_to_date(self) -> None:
        root = self._tree.counters[0].root
        tried = self._edges()[: int(self._tree.nodes[root]["tried"])]
        self._tree.nodes[root]["tried_prior"] = float(all_quantized(tried).sum()) * PRIOR_STEP
        restore_root_order(self._tree)


def _edges_of(tree: Tree) -> npt.NDArray[np.uint32]:
    node = tree.nodes[tree.counters[0].root]
    first = int(node["edges"])
    edges: npt.NDArray[np.uint32] = tree.edges[first : first + int(node["edge_count"])]
    return edges


def is_renewed(queue: EvaluationQueue, settings: SearchSettings) -> bool:
    """Whether a reused root is evaluated again: if `renew_root` is set and a network is used."""
    return settings.renew_root and bool(queue.evaluator.inputs & Inputs.NETWORK)


def evaluate_root(
    spec: GameSpec, queue: EvaluationQueue, settings: SearchSettings, worker: Worker, board: BoundBoard, center: float
) -> Tree:
    """Return a tree of one visit: its root, evaluated and expanded as a root.

    The worker's board has the root and its history; no other thread uses them. `center` is the center of the score's
    dynamic utility, for the side to move. The evaluator's exceptions are raised.
    """
    tree = make_tree(0, spec.mean_moves, 0, spec.policy_size, spec.cached_moves)
    clear_tree(tree)
    settings.write(tree, spec.score_unit)
    tree.counters[0].claim_limit = 1
    done: SimpleQueue[Job] = SimpleQueue()
    batch = make_batch(spec, settings.rows_per_leaf, queue.evaluator.inputs)
    searcher = Searcher(tree, worker, board, batch)
    rows = searcher.advance(0)
    queue.submit(Job(batch, rows, done))
    job = done.get()
    if job.error is not None:
        raise job.error
    searcher.advance(job.rows)
    recenter(tree, center)
    return tree


def replace_root_evaluation(tree: Tree, other: Tree) -> None:
    """Replace the root's own evaluation, in its sums, by that of another tree's root with one visit."""
    node, new = tree.nodes[tree.counters[0].root], other.nodes[other.counters[0].root]
    if node["proof"]:  # no evaluation counts there any more
        return
    first = int(node["stats"])
    stats = tree.stats[first : first + int(node["tried"])]
    counted = stats["weight"].astype(np.float64) * stats["share"]
    for name in ("weight", "utility", "value", "score"):
        sums = counted if name == "weight" else counted * stats[name]
        node[f"{name}_sum"] = sums.sum() + new[f"{name}_sum"]
    for name in ("own_utility", "own_weight", "own_bias"):
        node[name] = new[name]

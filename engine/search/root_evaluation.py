"""The evaluation of a tree's root by itself, where the root comes from further down a tree.

It was expanded there as any other node: with the policy's temperature and optimism in the tree, and without edges of
their own for the least likely moves.
"""

from __future__ import annotations

from queue import SimpleQueue
from typing import TYPE_CHECKING

import numpy as np

from yomi.engine.evaluators.queue import Job
from yomi.native.spec import Inputs
from yomi.native.tree.arrays import make_tree
from yomi.native.tree.buffers import make_batch
from yomi.native.tree.memory import clear_tree
from yomi.native.tree.search import recenter
from yomi.native.tree.searcher import Searcher

if TYPE_CHECKING:
    from yomi.engine.evaluators.queue import EvaluationQueue
    from yomi.engine.search.settings import SearchSettings
    from yomi.native.game_calls import BoundBoard
    from yomi.native.spec import GameSpec
    from yomi.native.tree.arrays import Tree, Worker


def is_renewed(queue: EvaluationQueue, settings: SearchSettings) -> bool:
    """Whether a root that was expanded further down a tree is evaluated by itself: if that costs a network's say."""
    return settings.renew_root and bool(queue.evaluator.inputs & Inputs.NETWORK)


def evaluate_root(
    spec: GameSpec, queue: EvaluationQueue, settings: SearchSettings, worker: Worker, board: BoundBoard, center: float
) -> Tree:
    """Return a tree of one visit: its root, evaluated and expanded as a root.

    Args:
        spec: of the game.
        queue: of the evaluator.
        settings: of the search.
        worker: no other thread uses it.
        board: its; has the root and its history.
        center: what the dynamic part of the score's utility is measured from, for the side to move.

    Raises:
        Exception: what the evaluator raised.
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


def replace_own(tree: Tree, other: Tree) -> None:
    """Put the evaluation of another tree's root, which has one visit, in the place of the root's own in its sums."""
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

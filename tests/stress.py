"""Search with many threads and little memory in the checked build: `python -m tests.stress [--minutes 10]`.

YOMI_CHECKED=1 compiles kernels that compare the key of each node on the way to a leaf with its position. Each search
continues the tree of the position before it and is pruned many times. Its tree is then checked as in the tests.
"""

from __future__ import annotations

import argparse
import itertools
import logging
import os
import sys
import time

os.environ["YOMI_CHECKED"] = "1"

import numpy as np

from tests.unit.trees import check_tree
from yomi.engine.evaluators.kernel_evaluators import UniformEvaluator
from yomi.engine.evaluators.queue import InlineQueue
from yomi.engine.go.game import GoGame
from yomi.engine.go.players.setup import go_subject
from yomi.engine.search.search import Search
from yomi.engine.search.types import Limits, SearchSettings
from yomi.engine.shogi.networks import MaterialEvaluator
from yomi.engine.shogi.players.setup import shogi_subject
from yomi.native.tree.memory import compact

PLIES = 6
"""Positions of each game."""
CHECKED_NODES = 3000
"""Nodes of a tree that are checked one by one, which is slow."""


def _check(search: Search) -> None:
    """Assert that all sums are finite and nothing is in flight, and that the most visited nodes fit together."""
    tree = search.tree
    counters = tree.counters[0]
    nodes = tree.nodes[: int(counters.node_top)]
    for name in ("weight_sum", "utility_sum", "value_sum", "score_sum", "utility_variance", "score_variance"):
        assert np.isfinite(nodes[name]).all(), f"{name} is not finite"
    assert not nodes["lock"].any(), "a lock is held"
    for exponent in range(32):
        compact(tree, counters.root, 1 << exponent)
        if counters.node_top <= CHECKED_NODES:
            break
    check_tree(search, pruned=True)


def main() -> int:
    """Search until the time is up; return 1 if a fault was found."""
    parser = argparse.ArgumentParser(prog="python -m tests.stress", description=__doc__)
    parser.add_argument("--minutes", type=float, default=10.0, help="time to search for (default 10)")
    parser.add_argument("--workers", type=int, default=4 * (os.cpu_count() or 1), help="threads (default 4 a core)")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    logging.basicConfig(level=logging.ERROR)
    subjects = [
        (go_subject(9), lambda: UniformEvaluator(8), {}),
        (shogi_subject(mate_depth=3), MaterialEvaluator, {"solver": True}),
        (go_subject(9), lambda: UniformEvaluator(2), {"graph": False, "cache_size": 2**18}),
        (go_subject(19), lambda: UniformEvaluator(4), {"bias_correction": 0.3, "noise_pruning": 0.15}),
    ]
    print("compiling the checked build", flush=True)
    for subject, evaluator, _ in subjects[:2]:
        search = Search(subject.spec, InlineQueue(evaluator()), SearchSettings(workers=1, memory=2**21, cache_size=0))
        search.set_position(subject.games[0])
        search.run(Limits(playouts=10))
    rng = np.random.default_rng(options.seed)
    begin = time.monotonic()
    searches = playouts = faults = 0
    for number in itertools.count():
        subject, evaluator, extra = subjects[number % len(subjects)]
        memory = int(2 ** rng.uniform(21, 26))
        settings = SearchSettings(
            **{
                **{"workers": options.workers, "memory": memory, "cache_size": 0, "symmetry": "none", "seed": number},
                **extra,
            }
        )
        search = Search(subject.spec, InlineQueue(evaluator()), settings)
        game = subject.games[int(rng.integers(len(subject.games)))].copy()
        for _ in range(PLIES):
            search.set_position(game)
            report = search.run(Limits(seconds=1.0))
            searches, playouts = searches + 1, playouts + report.playouts
            faults += int(search.tree.counters[0].broken != 0)
            try:
                _check(search)
            except AssertionError as error:
                faults += 1
                print(f"{subject.name}, seed {number}, memory {memory}: {error!r}", flush=True)
            if not report.moves or time.monotonic() - begin > 60.0 * options.minutes:
                break
            if isinstance(game, GoGame):
                game.play(game.side_to_move, report.moves[0].move)
            else:
                game.play(report.moves[0].move)
        if time.monotonic() - begin > 60.0 * options.minutes:
            break
    print(f"{searches} searches, {playouts} playouts, {options.workers} workers, 2 to 64 MiB: {faults} faults")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())

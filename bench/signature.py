"""`bench signature`: a number that changes whenever the search's decisions change.

A change that is not meant to alter the search must not alter it.
"""

import functools
import zlib
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from yomi.engine.evaluators.base import Evaluator
from yomi.engine.evaluators.queue import InlineQueue
from yomi.engine.game import BenchmarkPositions
from yomi.engine.go.networks import RolloutEvaluator
from yomi.engine.go.players.setup import go_subject
from yomi.engine.search.search import Search
from yomi.engine.search.types import Limits, SearchSettings
from yomi.engine.shogi.networks import MaterialEvaluator
from yomi.engine.shogi.players.setup import shogi_subject

SEED = 20070201
# Plies of the mate search at leaves of shogi.
MATE_DEPTH = 3


def run(playouts: int = 2000) -> list[dict[str, Any]]:
    """Return one row for each game (Go: board size) and part of the search, and the signature of all parts.

    The number is a hash of the visits of every root move. One worker searches fixed positions of both games, with a
    fixed seed and evaluators without a network, also with a tree instead of a graph (Go) and with the solver (shogi).
    """
    plain = SearchSettings(workers=1, memory=2**26, cache_size=0, symmetry="none", seed=SEED)
    go, shogi = {size: go_subject(size) for size in (9, 13, 19)}, shogi_subject(mate_depth=MATE_DEPTH)
    rollouts: Callable[[], Evaluator] = functools.partial(RolloutEvaluator, seed=SEED)
    material: Callable[[], Evaluator] = MaterialEvaluator
    searches = [
        *((subject.name, subject, rollouts, plain) for subject in go.values()),
        (shogi.name, shogi, material, plain),
        ("9x9, tree", go[9], rollouts, replace(plain, graph=False, cache_size=2**20)),
        ("shogi, solver", shogi, material, replace(plain, solver=True)),
    ]
    rows: list[dict[str, Any]] = []
    total = 0
    for name, subject, evaluator, settings in searches:
        signature = _signature(subject, evaluator(), settings, playouts)
        total = zlib.crc32(signature.to_bytes(4, "little"), total)
        rows.append({"game": name, "signature": f"{signature:08x}"})
    rows.append({"game": "all", "signature": f"{total:08x}"})
    return rows


def _signature(subject: BenchmarkPositions, evaluator: Evaluator, settings: SearchSettings, playouts: int) -> int:
    search = Search(subject.spec, InlineQueue(evaluator), settings)
    result = 0
    for game in subject.games:
        search.set_position(game)
        report = search.run(Limits(playouts=playouts))
        for move in sorted(report.moves, key=lambda move: move.move):
            result = zlib.crc32(f"{move.move}:{move.visits} ".encode(), result)
    return result

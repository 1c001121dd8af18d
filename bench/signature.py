"""`bench signature`: one number that changes whenever the search's decisions change.

One worker searches fixed positions with a fixed seed and the evaluator of tactics and patterns; the visits of every
root move go into the number. A change that is not meant to alter the search must leave it as it is.
"""

from __future__ import annotations

import zlib
from typing import Any

from bench.positions import positions
from engine.evaluators.queue import InlineQueue
from engine.evaluators.rollouts import RolloutEvaluator
from engine.search.parameters import SearchSettings
from engine.search.report import Limits
from engine.search.search import Search
from native.go.spec import go_spec

SEED = 20070201


def run(playouts: int = 2000) -> list[dict[str, Any]]:
    """Return one row a board size, and the signature of all."""
    rows: list[dict[str, Any]] = []
    total = 0
    for size in (9, 13, 19):
        signature = _signature(size, playouts)
        total = zlib.crc32(signature.to_bytes(4, "little"), total)
        rows.append({"size": str(size), "signature": f"{signature:08x}"})
    rows.append({"size": "all", "signature": f"{total:08x}"})
    return rows


def _signature(size: int, playouts: int) -> int:
    settings = SearchSettings(workers=1, memory=2**26, cache_size=0, symmetry="none", seed=SEED)
    search = Search(go_spec(size), InlineQueue(RolloutEvaluator(seed=SEED)), settings)
    result = 0
    for game in positions(size):
        search.set_position(game)
        report = search.run(Limits(playouts=playouts))
        for move in sorted(report.moves, key=lambda move: move.move):
            result = zlib.crc32(f"{move.move}:{move.visits} ".encode(), result)
    return result

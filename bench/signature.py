"""`bench signature`: one number that changes whenever the search's decisions change.

One worker searches fixed positions of both games with a fixed seed and the evaluators that need no network; the visits
of every root move go into the number. A change that is not meant to alter the search must leave it as it is.
"""

from __future__ import annotations

import zlib
from typing import Any

from bench.subjects import Subject, go_subject, shogi_subject
from engine.evaluators.material import MaterialEvaluator
from engine.evaluators.queue import InlineQueue
from engine.evaluators.rollouts import RolloutEvaluator
from engine.search.parameters import SearchSettings
from engine.search.report import Limits
from engine.search.search import Search

SEED = 20070201
MATE_DEPTH = 3
"""Plies of the mate search at leaves of shogi."""


def run(playouts: int = 2000) -> list[dict[str, Any]]:
    """Return one row a game (Go: a board size), and the signature of all."""
    rows: list[dict[str, Any]] = []
    total = 0
    for subject in (*map(go_subject, (9, 13, 19)), shogi_subject(mate_depth=MATE_DEPTH)):
        signature = _signature(subject, playouts)
        total = zlib.crc32(signature.to_bytes(4, "little"), total)
        rows.append({"game": subject.name, "signature": f"{signature:08x}"})
    rows.append({"game": "all", "signature": f"{total:08x}"})
    return rows


def _signature(subject: Subject, playouts: int) -> int:
    settings = SearchSettings(workers=1, memory=2**26, cache_size=0, symmetry="none", seed=SEED)
    evaluator = MaterialEvaluator() if subject.name == "shogi" else RolloutEvaluator(seed=SEED)
    search = Search(subject.spec, InlineQueue(evaluator), settings)
    result = 0
    for game in subject.games:
        search.set_position(game)
        report = search.run(Limits(playouts=playouts))
        for move in sorted(report.moves, key=lambda move: move.move):
            result = zlib.crc32(f"{move.move}:{move.visits} ".encode(), result)
    return result

"""Running an evaluator or a search for a while and counting."""

from __future__ import annotations

import functools
import threading
import time
from typing import TYPE_CHECKING

import numpy as np

from engine.search.report import Limits
from native.tree.buffers import make_batch

if TYPE_CHECKING:
    from bench.subjects import Subject
    from engine.evaluators.queue import EvaluationQueue
    from engine.search.position import SearchableGame
    from engine.search.search import Search

BATCH_SIZES = (1, 2, 4, 8, 16, 32)


def evaluator_rate(
    queue: EvaluationQueue, subject: Subject, game: SearchableGame, rows: int, threads: int, seconds: float
) -> float:
    """Return positions/s of the evaluator alone: each thread evaluates full batches of `rows` rows of `game`."""
    evaluator, spec = queue.evaluator, subject.spec
    counts = [0] * threads
    stop = threading.Event()

    def work(index: int) -> None:
        batch = make_batch(spec, rows, planes=evaluator.wants_planes, positions=evaluator.wants_positions)
        scratch = np.zeros(1, spec.scratch_dtype)[0]
        for row in range(rows):
            if evaluator.wants_planes:
                planes, extras = batch.planes[row], batch.extras[row]
                subject.write_planes(game.position, game.history, row % 8, scratch, planes, extras)
            if evaluator.wants_positions:
                batch.positions[row] = game.position
        calls = evaluator.bind(batch)
        evaluate = calls.run if calls is not None else functools.partial(evaluator.evaluate, batch)
        evaluate(rows)
        ready.wait()
        while not stop.is_set():
            evaluate(rows)
            counts[index] += rows

    ready = threading.Barrier(threads + 1)
    workers = [threading.Thread(target=work, args=(index,), daemon=True) for index in range(threads)]
    for worker in workers:
        worker.start()
    ready.wait()
    begin = time.perf_counter()
    time.sleep(seconds)
    stop.set()
    for worker in workers:
        worker.join()
    return sum(counts) / (time.perf_counter() - begin)


def best_batch(queue: EvaluationQueue, subject: Subject, threads: int, seconds: float) -> dict[int, float]:
    """Return positions/s by batch size, at the game's start."""
    return {rows: evaluator_rate(queue, subject, subject.games[0], rows, threads, seconds) for rows in BATCH_SIZES}


def search_counts(search: Search, game: SearchableGame, seconds: float) -> dict[str, float]:
    """Search `game` from scratch for `seconds` and return what was done each second."""
    search.clear()
    search.set_position(game)
    report = search.run(Limits(seconds=seconds))
    return {
        "evaluations_per_second": report.evaluations / report.seconds,
        "playouts_per_second": report.playouts / report.seconds,
        "moves_per_second": search.moves_made / report.seconds,
    }

"""Running an evaluator or a search for a while and counting."""

from __future__ import annotations

import threading
import time
from queue import SimpleQueue
from typing import TYPE_CHECKING

import numpy as np

from engine.evaluators.queue import Job
from engine.search.report import Limits
from native.tree.buffers import make_batch

if TYPE_CHECKING:
    from bench.subjects import Subject
    from engine.evaluators.queue import EvaluationQueue
    from engine.search.position import SearchableGame
    from engine.search.search import Search

BATCH_SIZES = (1, 2, 4, 8, 16, 32)


def evaluator_rate(
    queue: EvaluationQueue,
    subject: Subject,
    game: SearchableGame,
    rows: int,
    threads: int,
    seconds: float,
    in_flight: int = 1,
) -> float:
    """Return positions/s of the evaluator alone: each thread has `in_flight` full batches of `game` under way.

    Raises:
        Exception: what the evaluator raised.
    """
    evaluator, spec = queue.evaluator, subject.spec
    counts = [0] * threads
    failures: list[Exception] = []
    stop = threading.Event()

    def make_job(done: SimpleQueue[Job]) -> Job:
        batch = make_batch(spec, rows, planes=evaluator.wants_planes, positions=evaluator.wants_positions)
        scratch = np.zeros(1, spec.scratch_dtype)[0]
        for row in range(rows):
            if evaluator.wants_planes:
                planes, extras = batch.planes[row], batch.extras[row]
                subject.write_planes(game.position, game.history, row % 8, scratch, planes, extras)
            if evaluator.wants_positions:
                batch.positions[row] = game.position
        return Job(batch, rows, done)

    def work(index: int) -> None:
        done: SimpleQueue[Job] = SimpleQueue()
        first = make_job(done)
        calls = queue.bind(first.batch)
        if calls is not None:
            calls.run(rows)
            ready.wait()
            while not stop.is_set():
                calls.run(rows)
                counts[index] += rows
            return
        for job in (first, *(make_job(done) for _ in range(in_flight - 1))):
            queue.submit(job)
        jobs = [_next(done, failures) for _ in range(in_flight)]
        ready.wait()
        for job in jobs:
            queue.submit(job)
        while not stop.is_set() and not failures:
            queue.submit(_next(done, failures))
            counts[index] += rows
        for _ in range(in_flight):
            _next(done, failures)
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
    if failures:
        raise failures[0]
    return sum(counts) / (time.perf_counter() - begin)


def _next(done: SimpleQueue[Job], failures: list[Exception]) -> Job:
    """Wait for a job; note its error, if any."""
    job = done.get()
    if job.error is not None:
        failures.append(job.error)
    return job


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

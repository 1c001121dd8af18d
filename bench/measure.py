"""Running an evaluator or a search for a while and counting."""

from __future__ import annotations

import threading
import time
from queue import SimpleQueue
from typing import TYPE_CHECKING

import numpy as np

from engine.evaluators.queue import Job
from native.bits import U
from native.game import legal_moves, policy_index
from native.jit import kernel
from native.tree.buffers import make_batch

if TYPE_CHECKING:
    from bench.subjects import Subject
    from engine.evaluators.queue import EvaluationQueue
    from engine.search.parameters import SearchSettings
    from engine.search.position import SearchableGame

LARGEST_BATCH = 32
"""Rows that are tried even where the search takes fewer."""


@kernel
def _write_moves(pos, history, symmetry, moves, indices):  # type: ignore[no-untyped-def]
    """Write the legal moves and their places in the policy under a symmetry; return how many there are."""
    count = legal_moves(pos, history, moves)
    for i in range(U(count)):
        indices[i] = policy_index(pos, moves[i], symmetry)
    return count


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
        position, scratch = spec.marked(game.position), np.zeros(1, spec.scratch_dtype)[0]
        for row in range(rows):
            symmetry = row % 8 if evaluator.wants_planes else 0
            moves, indices = batch.moves[row], batch.indices[row]
            batch.symmetry[row] = symmetry
            batch.move_count[row] = _write_moves(position, game.history, symmetry, moves, indices)
            if evaluator.wants_planes:
                subject.write_planes(position, game.history, symmetry, scratch, batch.planes[row], batch.extras[row])
            if evaluator.wants_positions:
                batch.positions[row] = position
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


def batch_sizes(queue: EvaluationQueue, settings: SearchSettings) -> list[int]:
    """Return the batch sizes to try: the search's own, and the powers of two up to it or to LARGEST_BATCH."""
    own = max(settings.rows_a_leaf, queue.evaluator.batch_size)
    largest = max(own, LARGEST_BATCH)
    return sorted({own, *(1 << exponent for exponent in range(largest.bit_length()))})


def best_batch(queue: EvaluationQueue, subject: Subject, settings: SearchSettings, seconds: float) -> dict[int, float]:
    """Return positions/s by batch size, at the game's start, with as many batches under way as the search has."""
    workers, in_flight = settings.workers, settings.batches_in_flight
    return {
        rows: evaluator_rate(queue, subject, subject.games[0], rows, workers, seconds, in_flight)
        for rows in batch_sizes(queue, settings)
    }

"""Runs an evaluator or a search for some time, and counts its work."""

import contextlib
import threading
import time
from collections.abc import Callable, Iterator
from queue import SimpleQueue

import numpy as np

from yomi.engine.evaluators.base import Evaluator
from yomi.engine.evaluators.queue import EvaluationQueue, Job
from yomi.engine.game import BenchmarkPositions
from yomi.engine.search.types import SearchableGame, SearchSettings
from yomi.native.game_calls import index_legal_moves
from yomi.native.spec import Inputs
from yomi.native.tree.arrays import Batch
from yomi.native.tree.buffers import make_batch

# Largest batch size to try, even if the search uses smaller batches.
LARGEST_BATCH = 32


def fill_row(
    batch: Batch, row: int, subject: BenchmarkPositions, game: SearchableGame, symmetry: int, inputs: Inputs
) -> None:
    """Write a position into a row of a batch like the search: its moves, and the inputs that the evaluator reads."""
    positions, scratch = subject.spec.positions(1), np.zeros(1, subject.spec.scratch_dtype)[0]
    positions[0] = position = subject.spec.with_flags(game.position)
    part = slice(row, row + 1)
    batch.symmetry[row] = symmetry
    lists = batch.moves[part], batch.move_count[part], batch.indices[part]
    index_legal_moves(positions, game.history, symmetry, *lists)
    if Inputs.BITS in inputs:
        subject.write_bits(position, game.history, symmetry, scratch, batch.bits[row], batch.extras[row])
    if Inputs.NUMBERS in inputs:
        subject.write_planes(position, game.history, symmetry, scratch, batch.planes[row], batch.extras[row])
    if Inputs.POSITIONS in inputs:
        batch.positions[row] = position


def run_threads(work: Callable[[threading.Event], Iterator[int]], threads: int, seconds: float) -> float:
    """Return the total count per second of all threads.

    Args:
        work: a generator function that each thread runs. It prepares and yields once, then yields counts until the
            event is set and its pending work has ended.
        threads: number of threads.
        seconds: time to count.

    Raises:
        Exception: the first failure of a thread.
    """
    counts = [0] * threads
    failures: list[Exception] = []
    ready = threading.Barrier(threads + 1)
    stop = threading.Event()

    def run(index: int) -> None:
        try:
            counting = work(stop)
            next(counting)
            ready.wait()
            counts[index] = sum(counting)
        except Exception as error:
            failures.append(error)
            ready.abort()
            stop.set()

    workers = [threading.Thread(target=run, args=(index,), daemon=True) for index in range(threads)]
    for worker in workers:
        worker.start()
    with contextlib.suppress(threading.BrokenBarrierError):
        ready.wait()
    begin = time.perf_counter()
    stop.wait(seconds)
    stop.set()
    for worker in workers:
        worker.join()
    if failures:
        raise failures[0]
    return sum(counts) / (time.perf_counter() - begin)


def evaluator_rate(
    queue: EvaluationQueue,
    subject: BenchmarkPositions,
    game: SearchableGame,
    rows: int,
    threads: int,
    seconds: float,
    in_flight: int = 1,
) -> float:
    """Return positions/s of the evaluator alone, while each thread keeps `in_flight` full batches of `game` in
    evaluation.

    Raises:
        Exception: the evaluator's failure.
    """

    def work(stop: threading.Event) -> Iterator[int]:
        done: SimpleQueue[Job] = SimpleQueue()
        jobs = [make_job(queue.evaluator, subject, game, rows, done) for _ in range(in_flight)]
        calls = queue.bind(jobs[0].batch)
        if calls is not None:
            calls.run(rows)
            yield 0
            while True:  # at least once, however short the time is or long the machine stalls
                calls.run(rows)
                yield rows
                if stop.is_set():
                    return
        for job in jobs:
            queue.submit(job)
        jobs = [_next(done) for _ in jobs]
        yield 0
        for job in jobs:
            queue.submit(job)
        while not stop.is_set():
            queue.submit(_next(done))
            yield rows
        for _ in jobs:
            _next(done)
            yield rows

    return run_threads(work, threads, seconds)


def make_job(
    evaluator: Evaluator, subject: BenchmarkPositions, game: SearchableGame, rows: int, done: SimpleQueue[Job]
) -> Job:
    """Return a job with a full batch of a game's position. Planes of different rows have different symmetries."""
    inputs = evaluator.inputs
    batch = make_batch(subject.spec, rows, inputs)
    for row in range(rows):
        fill_row(batch, row, subject, game, row % 8 if inputs & Inputs.NETWORK else 0, inputs)
    return Job(batch, rows, done)


def _next(done: SimpleQueue[Job]) -> Job:
    """Wait for the next job that has been evaluated.

    Raises:
        Exception: its evaluation failed.
    """
    job = done.get()
    if job.error is not None:
        raise job.error
    return job


def batch_sizes(queue: EvaluationQueue, settings: SearchSettings) -> list[int]:
    """Return the batch sizes to try: the size in a search, and the powers of two up to it or to LARGEST_BATCH."""
    own = max(settings.rows_per_leaf, queue.evaluator.batch_size)
    largest = max(own, LARGEST_BATCH)
    return sorted({own, *(1 << exponent for exponent in range(largest.bit_length()))})


def best_batch(
    queue: EvaluationQueue, subject: BenchmarkPositions, settings: SearchSettings, seconds: float
) -> dict[int, float]:
    """Return positions/s by batch size, for the start of a game and as many batches in flight as in a search."""
    workers, in_flight = settings.workers, settings.batches_in_flight
    return {
        rows: evaluator_rate(queue, subject, subject.games[0], rows, workers, seconds, in_flight)
        for rows in batch_sizes(queue, settings)
    }
